// RUN: attn-opt %s --hopper-stage-captures | FileCheck %s

!mem = memref<?x?x64xbf16, strided<[?, ?, 1]>>
!mem128 = memref<?x?x128xbf16, strided<[?, ?, 1]>>
!bias = memref<?x1x?x?xbf16, strided<[?, ?, ?, 1]>>
!keep = memref<?x?xi1, strided<[?, 1]>>
!wide = memref<1x1x1x1x?x?xbf16>

// A bias and a boolean mask; what two rules read is loaded once.
// CHECK-LABEL: tile.kernel @bias(
// CHECK: %[[B:.*]] = tile.program_id
// CHECK: } score (%[[KV:[a-z0-9]+]]: i32
// CHECK: %[[BIAS:.*]] = tile.load %{{.*}}[%[[B]], %c0{{.*}}, %c0{{.*}}, %[[KV]]] {hopper.stages = 3 : i32} : {{.*}} -> tensor<128x32xbf16>
// CHECK: tile.score_mod
// CHECK: %[[T:.*]] = tile.element %[[BIAS]] : tensor<128x32xbf16>
// CHECK: arith.extf %[[T]]
// CHECK: %[[KEEP:.*]] = tile.load %{{.*}}[%c0{{.*}}, %[[KV]]] {hopper.stages = 3 : i32} : {{.*}} -> tensor<128x32xi1>
// CHECK: tile.mask
// CHECK: tile.element %[[KEEP]] : tensor<128x32xi1>
// CHECK: tile.element %[[BIAS]] : tensor<128x32xbf16>
// CHECK-NOT: tile.gather
tile.kernel @bias(%q: !mem, %k: !mem, %v: !mem, %o: !mem, %n: i32, %bias: !bias, %keep: !keep)
    attributes {num_warps = 4 : i32, num_stages = 3 : i32} {
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
      %u0 = tile.score_mod %s at (%c0, %kv) (%x: f32, %i: i32, %j: i32) {
        %t = tile.gather %bias[%b, %c0, %i, %j] in_bounds [0, 1] : !bias, (i32, i32, i32, i32) -> bf16
        %f = arith.extf %t : bf16 to f32
        %y = arith.addf %x, %f : f32
        tile.yield %y : f32
      } : tensor<128x32xf32>
      %u = tile.mask %u0 at (%c0, %kv) (%i: i32, %j: i32) {
        %t = tile.gather %keep[%i, %j] : !keep, (i32, i32) -> i1
        %again = tile.gather %bias[%b, %c0, %i, %j] in_bounds [0, 1] : !bias, (i32, i32, i32, i32) -> bf16
        %zero = arith.constant 0.0 : bf16
        %some = arith.cmpf une, %again, %zero : bf16
        %keeps = arith.andi %t, %some : i1
        tile.yield %keeps : i1
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

// Elements of 64 bits, six dimensions, a computed index, the transpose, and an
// index of the batch that may lie outside stay as they are.
// CHECK-LABEL: tile.kernel @no_plane(
// CHECK-NOT: hopper.stages
// CHECK-COUNT-6: tile.gather
// CHECK-NOT: tile.element
tile.kernel @no_plane(%q: !mem, %k: !mem, %v: !mem, %o: !mem, %n: i32, %vector: memref<?xf32>, %positions: memref<?x?xi64>, %wide: !wide, %bias: !bias)
    attributes {num_warps = 4 : i32} {
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
      %u = tile.score_mod %s at (%c0, %kv) (%x: f32, %i: i32, %j: i32) {
        %t0 = tile.gather %vector[%j] : memref<?xf32>, (i32) -> f32
        %t1 = tile.gather %positions[%i, %j] : memref<?x?xi64>, (i32, i32) -> i64
        %t2 = tile.gather %wide[%c0, %c0, %c0, %c0, %i, %j] in_bounds [0, 1, 2, 3] : !wide, (i32, i32, i32, i32, i32, i32) -> bf16
        %d = arith.subi %i, %j : i32
        %t3 = tile.gather %bias[%b, %c0, %d, %j] in_bounds [0, 1] : !bias, (i32, i32, i32, i32) -> bf16
        %t4 = tile.gather %bias[%b, %c0, %j, %i] in_bounds [0, 1] : !bias, (i32, i32, i32, i32) -> bf16
        %t5 = tile.gather %bias[%b, %c0, %i, %j] in_bounds [0] : !bias, (i32, i32, i32, i32) -> bf16
        %f1 = arith.sitofp %t1 : i64 to f32
        %f2 = arith.extf %t2 : bf16 to f32
        %f3 = arith.extf %t3 : bf16 to f32
        %f4 = arith.extf %t4 : bf16 to f32
        %f5 = arith.extf %t5 : bf16 to f32
        %y0 = arith.addf %t0, %f1 : f32
        %y1 = arith.addf %f2, %f3 : f32
        %y2 = arith.addf %f4, %f5 : f32
        %y3 = arith.addf %y0, %y1 : f32
        %y = arith.addf %y3, %y2 : f32
        tile.yield %y : f32
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

// 64 KB a stage of K and V, and as much of the bias: with three stages of K and
// V there would be no room for one. One stage each more and two don't fit.
// CHECK-LABEL: tile.kernel @fewer_stages(
// CHECK-SAME: num_stages = 2 : i32
// CHECK: hopper.stages = 1 : i32
tile.kernel @fewer_stages(%q: !mem, %k: !mem, %v: !mem, %o: !mem, %n: i32, %bias: !bias)
    attributes {num_warps = 4 : i32, num_stages = 3 : i32} {
  %c0 = arith.constant 0 : i32
  %c128 = arith.constant 128 : i32
  %b = tile.program_id : i32
  %full = arith.divsi %n, %c128 : i32
  %full_end = arith.muli %full, %c128 : i32
  %qt = tile.load %q[%b, %c0, %c0] : !mem -> tensor<128x64xbf16>
  %acc0 = arith.constant dense<0.0> : tensor<128x64xf32>
  %m0 = arith.constant dense<0xFF800000> : tensor<128xf32>
  %l0 = arith.constant dense<0.0> : tensor<128xf32>
  %r:3 = tile.kv_loop ranges(%c0, %c0, %full_end, %n) step 256
      iter_args(%acc0, %m0, %l0) : tensor<128x64xf32>, tensor<128xf32>, tensor<128xf32>
    qk (%kv: i32, %acc: tensor<128x64xf32>, %m: tensor<128xf32>, %l: tensor<128xf32>) {
      %kt = tile.load %k[%b, %kv, %c0] : !mem -> tensor<256x64xbf16>
      %zero = arith.constant dense<0.0> : tensor<128x256xf32>
      %s = tile.mma mma %qt, %kt, %zero {transpose_b} : tensor<128x64xbf16>, tensor<256x64xbf16>, tensor<128x256xf32>
      tile.yield %s : tensor<128x256xf32>
    } score (%kv: i32, %s: tensor<128x256xf32>, %acc: tensor<128x64xf32>, %m: tensor<128xf32>, %l: tensor<128xf32>) {
      %u = tile.score_mod %s at (%c0, %kv) (%x: f32, %i: i32, %j: i32) {
        %t = tile.gather %bias[%b, %c0, %i, %j] in_bounds [0, 1] : !bias, (i32, i32, i32, i32) -> bf16
        %f = arith.extf %t : bf16 to f32
        %y = arith.addf %x, %f : f32
        tile.yield %y : f32
      } : tensor<128x256xf32>
      tile.yield %u : tensor<128x256xf32>
    } softmax (%kv: i32, %s: tensor<128x256xf32>, %acc: tensor<128x64xf32>, %m: tensor<128xf32>, %l: tensor<128xf32>) {
      %one = arith.constant 1.0 : f32
      %p, %m1, %l1, %a = tile.online_softmax %s, %m, %l scale %one : tensor<128x256xf32>, tensor<128xf32>
      tile.yield %p, %m1, %l1, %a : tensor<128x256xf32>, tensor<128xf32>, tensor<128xf32>, tensor<128xf32>
    } pv (%kv: i32, %p: tensor<128x256xf32>, %m1: tensor<128xf32>, %l1: tensor<128xf32>, %a: tensor<128xf32>,
          %acc: tensor<128x64xf32>, %m: tensor<128xf32>, %l: tensor<128xf32>) {
      %vt = tile.load %v[%b, %kv, %c0] : !mem -> tensor<256x64xbf16>
      %ab = tile.broadcast %a dim 0 : tensor<128xf32> -> tensor<128x64xf32>
      %scaled = arith.mulf %acc, %ab : tensor<128x64xf32>
      %ph = arith.truncf %p : tensor<128x256xf32> to tensor<128x256xbf16>
      %next = tile.mma mma %ph, %vt, %scaled : tensor<128x256xbf16>, tensor<256x64xbf16>, tensor<128x64xf32>
      tile.yield %next, %m1, %l1 : tensor<128x64xf32>, tensor<128xf32>, tensor<128xf32>
    }
  %out = arith.truncf %r#0 : tensor<128x64xf32> to tensor<128x64xbf16>
  tile.store %out, %o[%b, %c0, %c0] : tensor<128x64xbf16>, !mem
  tile.return
}

// K and V alone take 256 KB here.
// CHECK-LABEL: tile.kernel @no_room(
// CHECK: tile.gather
// CHECK-NOT: tile.element
tile.kernel @no_room(%q: !mem128, %k: !mem128, %v: !mem128, %o: !mem128, %n: i32, %bias: !bias)
    attributes {num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c128 = arith.constant 128 : i32
  %b = tile.program_id : i32
  %full = arith.divsi %n, %c128 : i32
  %full_end = arith.muli %full, %c128 : i32
  %qt = tile.load %q[%b, %c0, %c0] : !mem128 -> tensor<128x128xbf16>
  %acc0 = arith.constant dense<0.0> : tensor<128x128xf32>
  %m0 = arith.constant dense<0xFF800000> : tensor<128xf32>
  %l0 = arith.constant dense<0.0> : tensor<128xf32>
  %r:3 = tile.kv_loop ranges(%c0, %c0, %full_end, %n) step 256
      iter_args(%acc0, %m0, %l0) : tensor<128x128xf32>, tensor<128xf32>, tensor<128xf32>
    qk (%kv: i32, %acc: tensor<128x128xf32>, %m: tensor<128xf32>, %l: tensor<128xf32>) {
      %kt = tile.load %k[%b, %kv, %c0] : !mem128 -> tensor<256x128xbf16>
      %zero = arith.constant dense<0.0> : tensor<128x256xf32>
      %s = tile.mma mma %qt, %kt, %zero {transpose_b} : tensor<128x128xbf16>, tensor<256x128xbf16>, tensor<128x256xf32>
      tile.yield %s : tensor<128x256xf32>
    } score (%kv: i32, %s: tensor<128x256xf32>, %acc: tensor<128x128xf32>, %m: tensor<128xf32>, %l: tensor<128xf32>) {
      %u = tile.score_mod %s at (%c0, %kv) (%x: f32, %i: i32, %j: i32) {
        %t = tile.gather %bias[%b, %c0, %i, %j] in_bounds [0, 1] : !bias, (i32, i32, i32, i32) -> bf16
        %f = arith.extf %t : bf16 to f32
        %y = arith.addf %x, %f : f32
        tile.yield %y : f32
      } : tensor<128x256xf32>
      tile.yield %u : tensor<128x256xf32>
    } softmax (%kv: i32, %s: tensor<128x256xf32>, %acc: tensor<128x128xf32>, %m: tensor<128xf32>, %l: tensor<128xf32>) {
      %one = arith.constant 1.0 : f32
      %p, %m1, %l1, %a = tile.online_softmax %s, %m, %l scale %one : tensor<128x256xf32>, tensor<128xf32>
      tile.yield %p, %m1, %l1, %a : tensor<128x256xf32>, tensor<128xf32>, tensor<128xf32>, tensor<128xf32>
    } pv (%kv: i32, %p: tensor<128x256xf32>, %m1: tensor<128xf32>, %l1: tensor<128xf32>, %a: tensor<128xf32>,
          %acc: tensor<128x128xf32>, %m: tensor<128xf32>, %l: tensor<128xf32>) {
      %vt = tile.load %v[%b, %kv, %c0] : !mem128 -> tensor<256x128xbf16>
      %ab = tile.broadcast %a dim 0 : tensor<128xf32> -> tensor<128x128xf32>
      %scaled = arith.mulf %acc, %ab : tensor<128x128xf32>
      %ph = arith.truncf %p : tensor<128x256xf32> to tensor<128x256xbf16>
      %next = tile.mma mma %ph, %vt, %scaled : tensor<128x256xbf16>, tensor<256x128xbf16>, tensor<128x128xf32>
      tile.yield %next, %m1, %l1 : tensor<128x128xf32>, tensor<128xf32>, tensor<128xf32>
    }
  %out = arith.truncf %r#0 : tensor<128x128xf32> to tensor<128x128xbf16>
  tile.store %out, %o[%b, %c0, %c0] : tensor<128x128xbf16>, !mem128
  tile.return
}
