// RUN: attn-opt %s --convert-tile-to-hopper --canonicalize --hopper-verify-protocol | FileCheck %s
// RUN: sed 's/persistent = true, //' %s | attn-opt --convert-tile-to-hopper --canonicalize --hopper-verify-protocol | FileCheck %s --check-prefix=ONCE

// V of 8 bits as it lies: the producer loads it to a ring of two, out of which
// the transposer fills that of the products, which has the kernel's stages.

!mem = memref<?x?x64xf8E4M3FN, strided<[?, ?, 1]>>
!out = memref<?x?x64xbf16, strided<[?, ?, 1]>>

// CHECK-LABEL: tile.kernel @attention(
// CHECK: %[[V:.*]] = hopper.create_ring : <3 x tensor<64x96xf8E4M3FN>>
// CHECK: %[[STAGING:.*]] = hopper.create_ring : <2 x tensor<96x64xf8E4M3FN>>
// CHECK: hopper.create_ring : <2 x tensor<{{.*}}xi32>>
// CHECK: hopper.warp_specialize
// CHECK: producer
// CHECK-COUNT-4: hopper.tma_load
// CHECK: hopper.tma_load %{{.*}} to %{{.*}} : {{.*}}, <tensor<96x64xf8E4M3FN>>
// What the producer posted says how many tiles there are.
// CHECK: } transposer
// CHECK: scf.while (%[[COUNT:.*]] = %c0_i32{{.*}}, %[[KV:.*]] = %c0_i32
// CHECK: hopper.wait %[[NUMBERS:.*]][%[[COUNT]]] : <2 x tensor<{{.*}}xi32>>
// CHECK: } do {
// CHECK: ^bb0(%[[COUNT:.*]]: i32, %[[FIRST:.*]]: i32):
// CHECK: %[[SLOT:.*]] = hopper.slot %[[NUMBERS]][%[[COUNT]]]
// CHECK: %[[TOTAL:.*]] = hopper.get %[[SLOT]]
// CHECK: hopper.release %[[SLOT]]
// CHECK: %[[END:.*]] = arith.addi %[[FIRST]], %[[TOTAL]]
// CHECK: scf.for %[[NUMBER:.*]] = %[[FIRST]] to %[[END]] step
// CHECK-NEXT: %[[SOURCE:.*]] = hopper.wait %{{.*}}[%[[NUMBER]]] : <2 x tensor<96x64xf8E4M3FN>>
// CHECK-NEXT: %[[TARGET:.*]] = hopper.acquire %{{.*}}[%[[NUMBER]]] : <3 x tensor<64x96xf8E4M3FN>>
// CHECK-NEXT: hopper.transpose %[[SOURCE]] to %[[TARGET]]
// CHECK-NEXT: hopper.commit %[[TARGET]]
// CHECK-NEXT: hopper.release %[[SOURCE]]
// CHECK: scf.yield
// CHECK: hopper.release
// CHECK: } consumer
// CHECK: hopper.wgmma %{{.*}} {permuted_k, transpose_b} : tensor<128x96xf8E4M3FN>, <tensor<64x96xf8E4M3FN>>
// CHECK-NOT: hopper.transpose

// ONCE: } transposer
// ONCE: %[[STEPS:.*]] = arith.divui
// ONCE: scf.for %{{.*}} = %c0_i32 to %[[STEPS]] step
// ONCE-NEXT: hopper.wait
// ONCE: hopper.transpose
// ONCE: } consumer
tile.kernel @attention(%q: !mem, %k: !mem, %v: !mem, %o: !out, %n: i32)
    attributes {num_warps = 4 : i32, num_stages = 3 : i32, attn.warp_roles = #attn.warp_roles<persistent = true, q_stages = 2>} {
  %c0 = arith.constant 0 : i32
  %b = tile.program_id : i32
  %qt = tile.load %q[%b, %c0, %c0] : !mem -> tensor<128x64xf8E4M3FN>
  %acc0 = arith.constant dense<0.0> : tensor<128x64xf32>
  %m0 = arith.constant dense<0xFF800000> : tensor<128xf32>
  %l0 = arith.constant dense<0.0> : tensor<128xf32>
  %r:3 = tile.kv_loop ranges(%c0, %c0, %n, %n) step 96
      iter_args(%acc0, %m0, %l0) : tensor<128x64xf32>, tensor<128xf32>, tensor<128xf32>
    qk (%kv: i32, %acc: tensor<128x64xf32>, %m: tensor<128xf32>, %l: tensor<128xf32>) {
      %kt = tile.load %k[%b, %kv, %c0] : !mem -> tensor<96x64xf8E4M3FN>
      %zero = arith.constant dense<0.0> : tensor<128x96xf32>
      %s = tile.mma mma %qt, %kt, %zero {transpose_b} : tensor<128x64xf8E4M3FN>, tensor<96x64xf8E4M3FN>, tensor<128x96xf32>
      tile.yield %s : tensor<128x96xf32>
    } score (%kv: i32, %s: tensor<128x96xf32>, %acc: tensor<128x64xf32>, %m: tensor<128xf32>, %l: tensor<128xf32>) {
      tile.yield %s : tensor<128x96xf32>
    } softmax (%kv: i32, %s: tensor<128x96xf32>, %acc: tensor<128x64xf32>, %m: tensor<128xf32>, %l: tensor<128xf32>) {
      %one = arith.constant 1.0 : f32
      %p, %m1, %l1, %a = tile.online_softmax %s, %m, %l scale %one : tensor<128x96xf32>, tensor<128xf32>
      tile.yield %p, %m1, %l1, %a : tensor<128x96xf32>, tensor<128xf32>, tensor<128xf32>, tensor<128xf32>
    } pv (%kv: i32, %p: tensor<128x96xf32>, %m1: tensor<128xf32>, %l1: tensor<128xf32>, %a: tensor<128xf32>,
          %acc: tensor<128x64xf32>, %m: tensor<128xf32>, %l: tensor<128xf32>) {
      %vt = tile.load %v[%b, %kv, %c0] : !mem -> tensor<96x64xf8E4M3FN>
      %ab = tile.broadcast %a dim 0 : tensor<128xf32> -> tensor<128x64xf32>
      %scaled = arith.mulf %acc, %ab : tensor<128x64xf32>
      %ph = arith.truncf %p : tensor<128x96xf32> to tensor<128x96xf8E4M3FN>
      %next = tile.mma mma %ph, %vt, %scaled : tensor<128x96xf8E4M3FN>, tensor<96x64xf8E4M3FN>, tensor<128x64xf32>
      tile.yield %next, %m1, %l1 : tensor<128x64xf32>, tensor<128xf32>, tensor<128xf32>
    }
  %out = arith.truncf %r#0 : tensor<128x64xf32> to tensor<128x64xbf16>
  tile.store %out, %o[%b, %c0, %c0] : tensor<128x64xbf16>, !out
  tile.return
}
