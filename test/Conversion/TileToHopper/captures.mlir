// RUN: attn-opt %s --convert-tile-to-hopper | FileCheck %s

!mem = memref<?x?x64xbf16, strided<[?, ?, 1]>>
!bias = memref<?x?xbf16, strided<[?, 1]>>

// A tile that a rule reads has a ring of its own. The producer fills it with K's;
// the consumers read it under the product and give it back at once.
// CHECK-LABEL: tile.kernel @captures(
// CHECK: %[[RING:.*]] = hopper.create_ring : <3 x tensor<128x32xbf16>>
// CHECK: hopper.warp_specialize({{.*}}, %[[RING]] :
// CHECK: producer registers(40) (%{{[a-z0-9]+}}: {{.*}}, %[[K:[a-z0-9]+]]: {{.*}}, %[[V:[a-z0-9]+]]: {{.*}}, %{{[a-z0-9]+}}: memref{{.*}}, %{{[a-z0-9]+}}: i32, %[[BIAS:[a-z0-9]+]]: memref{{.*}}, %{{[a-z0-9]+}}: {{.*}}, %{{[a-z0-9]+}}: {{.*}}, %{{[a-z0-9]+}}: {{.*}}, %[[R:[a-z0-9]+]]: !hopper.ring<3 x tensor<128x32xbf16>>) {
// CHECK: hopper.tma_load %[[K]]
// CHECK: hopper.acquire %[[R]]
// CHECK: hopper.tma_load %[[BIAS]]
// CHECK: scf.for %[[N:.*]] = %{{.*}} to
// CHECK: %[[KV:.*]] = arith.muli %[[N]], %c32
// CHECK: hopper.tma_load %[[K]]
// CHECK: %[[SLOT:.*]] = hopper.acquire %[[R]][%[[N]]]
// CHECK: hopper.tma_load %[[BIAS]][%c0{{.*}}, %{{.*}}] to %[[SLOT]]
// CHECK: hopper.commit %[[SLOT]]
// CHECK: hopper.tma_load %[[V]]
// CHECK: } consumer
// CHECK: scf.for
// CHECK: %[[S:.*]] = hopper.wgmma %{{.*}} {transpose_b}
// CHECK: %[[SLOT:.*]] = hopper.wait %{{.*}} : <3 x tensor<128x32xbf16>>
// CHECK: %[[T:.*]] = hopper.read %[[SLOT]] : <tensor<128x32xbf16>> -> tensor<128x32xbf16>
// CHECK: hopper.release %[[SLOT]]
// CHECK: hopper.wgmma_wait 1, %[[S]]
// CHECK: tile.score_mod
// CHECK: tile.element %[[T]]
tile.kernel @captures(%q: !mem, %k: !mem, %v: !mem, %o: !mem, %n: i32, %bias: !bias)
    attributes {num_warps = 4 : i32, attn.warp_roles = #attn.warp_roles<pipeline = overlap>} {
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
      %t = tile.load %bias[%c0, %kv] {hopper.stages = 3 : i32} : !bias -> tensor<128x32xbf16>
      %u = tile.score_mod %s at (%c0, %kv) (%x: f32, %i: i32, %j: i32) {
        %y = tile.element %t : tensor<128x32xbf16>
        %f = arith.extf %y : bf16 to f32
        %z = arith.addf %x, %f : f32
        tile.yield %z : f32
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
