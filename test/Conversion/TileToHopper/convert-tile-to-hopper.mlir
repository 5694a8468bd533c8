// RUN: sed 's/<pipeline = overlap>/<pipeline = simple>/' %s | attn-opt --convert-tile-to-hopper \
// RUN:   | FileCheck %s --check-prefixes=CHECK,SIMPLE
// RUN: attn-opt %s --convert-tile-to-hopper | FileCheck %s --check-prefixes=CHECK,OVERLAP

!mem = memref<?x?x64xbf16, strided<[?, ?, 1]>>

// Attention of a hand-written kernel: batch in the first dimension, a softcap
// between S and the mask, no scale.
// CHECK-LABEL: tile.kernel @attention(
// CHECK-SAME: num_warps = 12 : i32
tile.kernel @attention(%q: !mem, %k: !mem, %v: !mem, %o: !mem, %n: i32)
    attributes {num_warps = 4 : i32, attn.warp_roles = #attn.warp_roles<pipeline = overlap>} {
  // CHECK-DAG: %[[QRING:.*]] = hopper.create_ring : <1 x tensor<128x64xbf16>>
  // CHECK: %[[KRING:.*]] = hopper.create_ring : <2 x tensor<32x64xbf16>>
  // CHECK: %[[VRING:.*]] = hopper.create_ring : <2 x tensor<32x64xbf16>>
  // CHECK: hopper.warp_specialize(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[QRING]], %[[KRING]], %[[VRING]] :

  // The producer: Q, and K and V of every step in the order in which the
  // consumers take them, whatever the masks are; K before Q, for whose slot the
  // consumers of a persistent kernel may make it wait.
  // CHECK: producer registers(40) (%[[Q:[a-z0-9]+]]: {{.*}}, %[[K:[a-z0-9]+]]: {{.*}}, %[[V:[a-z0-9]+]]: {{.*}}, %{{[a-z0-9]+}}: memref{{.*}}, %{{[a-z0-9]+}}: i32, %[[QR:[a-z0-9]+]]: {{.*}}, %[[KR:[a-z0-9]+]]: {{.*}}, %[[VR:[a-z0-9]+]]: {{.*}}) {
  // CHECK: %[[HAS_STEPS:.*]] = arith.cmpi sgt, %[[COUNT:.*]], %{{.*}}
  // CHECK: scf.if %[[HAS_STEPS]]
  // CHECK: %[[KSLOT:.*]] = hopper.acquire %[[KR]][%{{.*}}]
  // CHECK: hopper.tma_load %[[K]][%{{.*}}] to %[[KSLOT]]
  // CHECK: hopper.commit %[[KSLOT]]
  // CHECK: %[[QSLOT:.*]] = hopper.acquire %[[QR]]
  // CHECK: hopper.tma_load %[[Q]][%{{.*}}] to %[[QSLOT]]
  // CHECK: hopper.commit %[[QSLOT]]
  // CHECK: scf.if %[[HAS_STEPS]]
  // SIMPLE: hopper.acquire %[[VR]][%{{.*}}]
  // CHECK: scf.for %[[N:.*]] = %{{.*}} to %[[COUNT]] step %{{.*}} : i32
  // CHECK: %[[KV:.*]] = arith.muli %[[N]], %c32
  // CHECK: %[[KSLOT:.*]] = hopper.acquire %[[KR]][%[[N]]]
  // CHECK: hopper.tma_load %[[K]][%{{.*}}, %[[KV]], %{{.*}}] to %[[KSLOT]]
  // SIMPLE: %[[VSLOT:.*]] = hopper.acquire %[[VR]][%[[N]]]
  // SIMPLE: hopper.tma_load %[[V]][%{{.*}}] to %[[VSLOT]]
  // OVERLAP: %[[PREVIOUS:.*]] = arith.subi %[[N]]
  // OVERLAP: %[[VSLOT:.*]] = hopper.acquire %[[VR]][%[[PREVIOUS]]]
  // OVERLAP: hopper.tma_load %[[V]][%{{.*}}] to %[[VSLOT]]
  // OVERLAP: }
  // OVERLAP: hopper.acquire %[[VR]]
  // CHECK-NOT: tile.online_softmax
  // CHECK: } consumer warpgroups(2) registers(232)

  // Consumers: no loads; the score code is that of the kernel. Keys up to the
  // last whole tile are a range of their own, without a mask.
  // CHECK-NOT: tile.load
  // CHECK: %[[QT:.*]] = hopper.wait
  // SIMPLE: scf.for %[[N:.*]] = %{{.*}} to %[[FULL_BEGIN:.*]] step
  // SIMPLE: %[[KT:.*]] = hopper.wait %[[KR:.*]][%[[N]]]
  // SIMPLE: %[[S:.*]] = hopper.wgmma %[[QT]], %[[KT]] {transpose_b}
  // SIMPLE: hopper.wgmma_wait 0, %[[S]]
  // SIMPLE: %[[KDONE:.*]] = hopper.slot %[[KR]][%[[N]]]
  // SIMPLE: hopper.release %[[KDONE]]
  // SIMPLE: tile.mask
  // SIMPLE: tile.online_softmax
  // SIMPLE: %[[VT:.*]] = hopper.wait %[[VR:.*]][%[[N]]]
  // SIMPLE: %[[O:.*]] = hopper.wgmma %{{.*}}, %[[VT]] acc
  // SIMPLE: hopper.wgmma_wait 0, %[[O]]
  // SIMPLE: %[[VDONE:.*]] = hopper.slot %[[VR]][%[[N]]]
  // SIMPLE: hopper.release %[[VDONE]]
  // SIMPLE: scf.for %{{.*}} = %[[FULL_BEGIN]] to %[[FULL_END:.*]] step
  // SIMPLE-NOT: tile.mask
  // SIMPLE: scf.for %{{.*}} = %[[FULL_END]] to
  // SIMPLE: tile.mask
  // SIMPLE: }
  // SIMPLE: hopper.release %[[QT]]

  // The first product alone, then a step per range, then the last one alone.
  // OVERLAP: scf.if
  // OVERLAP: hopper.wgmma %[[QT]]
  // OVERLAP: tile.online_softmax
  // OVERLAP: scf.for %{{.*}} = %{{.*}} to %[[FULL_BEGIN:.*]] step
  // OVERLAP: tile.mask
  // The full range has no mask; it begins behind the first step.
  // OVERLAP: %[[BEGIN:.*]] = arith.maxsi %[[FULL_BEGIN]]
  // OVERLAP: scf.for %{{.*}} = %[[BEGIN]] to %[[FULL_END:.*]] step
  // OVERLAP-NOT: tile.mask
  // OVERLAP: %[[S:.*]] = hopper.wgmma %[[QT]]
  // OVERLAP: %[[O:.*]] = hopper.wgmma %{{.*}} acc
  // OVERLAP: hopper.wgmma_wait 1, %[[S]]
  // OVERLAP-NOT: tile.mask
  // OVERLAP: tile.online_softmax
  // OVERLAP: hopper.wgmma_wait 0, %[[O]]
  // OVERLAP: arith.truncf
  // OVERLAP: arith.maxsi %[[FULL_END]]
  // OVERLAP: scf.for
  // OVERLAP: tile.mask
  // OVERLAP: scf.yield
  // Nothing reads Q any more.
  // OVERLAP: hopper.release %[[QT]]
  // OVERLAP: %[[LAST:.*]] = hopper.wgmma
  // OVERLAP: hopper.wgmma_wait 0, %[[LAST]]
  // OVERLAP: } else {
  // OVERLAP-NEXT: hopper.release %[[QT]]
  // CHECK: tile.store
  %c0 = arith.constant 0 : i32
  %c128 = arith.constant 128 : i32
  %b = tile.program_id : i32
  %full = arith.divsi %n, %c128 : i32
  %full_end = arith.muli %full, %c128 : i32
  %qt = tile.load %q[%b, %c0, %c0] : !mem -> tensor<128x64xbf16>
  %acc0 = arith.constant dense<0.0> : tensor<128x64xf32>
  %m0 = arith.constant dense<0xFF800000> : tensor<128xf32>
  %l0 = arith.constant dense<0.0> : tensor<128xf32>
  %r:3 = tile.kv_loop ranges(%c0, %c0, %full_end, %n) step 32
      iter_args(%acc0, %m0, %l0) : tensor<128x64xf32>, tensor<128xf32>, tensor<128xf32>
    qk (%kv: i32, %acc: tensor<128x64xf32>, %m: tensor<128xf32>, %l: tensor<128xf32>) {
      %kt = tile.load %k[%b, %kv, %c0] : !mem -> tensor<32x64xbf16>
      %zero = arith.constant dense<0.0> : tensor<128x32xf32>
      %s = tile.mma mma %qt, %kt, %zero {transpose_b} : tensor<128x64xbf16>, tensor<32x64xbf16>, tensor<128x32xf32>
      tile.yield %s : tensor<128x32xf32>
    } score (%kv: i32, %s: tensor<128x32xf32>, %acc: tensor<128x64xf32>, %m: tensor<128xf32>, %l: tensor<128xf32>) {
      %t = math.tanh %s : tensor<128x32xf32>
      %u = tile.mask %t at (%c0, %kv) (%i: i32, %j: i32) {
        %keep = arith.cmpi slt, %j, %n : i32
        tile.yield %keep : i1
      } : tensor<128x32xf32>
      tile.yield %u : tensor<128x32xf32>
    } softmax (%kv: i32, %s: tensor<128x32xf32>, %acc: tensor<128x64xf32>, %m: tensor<128xf32>, %l: tensor<128xf32>) {
      %one = arith.constant 1.0 : f32
      %p, %m1, %l1, %a = tile.online_softmax %s, %m, %l scale %one : tensor<128x32xf32>, tensor<128xf32>
      tile.yield %p, %m1, %l1, %a : tensor<128x32xf32>, tensor<128xf32>, tensor<128xf32>, tensor<128xf32>
    } pv (%kv: i32, %p: tensor<128x32xf32>, %m1: tensor<128xf32>, %l1: tensor<128xf32>, %a: tensor<128xf32>,
          %acc: tensor<128x64xf32>, %m: tensor<128xf32>, %l: tensor<128xf32>) {
      %vt = tile.load %v[%b, %kv, %c0] : !mem -> tensor<32x64xbf16>
      %ab = tile.broadcast %a dim 0 : tensor<128xf32> -> tensor<128x64xf32>
      %scaled = arith.mulf %acc, %ab : tensor<128x64xf32>
      %ph = arith.truncf %p : tensor<128x32xf32> to tensor<128x32xbf16>
      %next = tile.mma mma %ph, %vt, %scaled : tensor<128x32xbf16>, tensor<32x64xbf16>, tensor<128x64xf32>
      tile.yield %next, %m1, %l1 : tensor<128x64xf32>, tensor<128xf32>, tensor<128xf32>
    }
  %out = arith.truncf %r#0 : tensor<128x64xf32> to tensor<128x64xbf16>
  tile.store %out, %o[%b, %c0, %c0] : tensor<128x64xbf16>, !mem
  tile.return
}
