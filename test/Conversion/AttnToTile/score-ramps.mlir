// RUN: attn-opt %s --split-input-file --convert-attn-to-tile=target=sm_90a | FileCheck %s
// RUN: sed 's/num_warps = 12/num_warps = 8/' %s | attn-opt --split-input-file --convert-attn-to-tile=target=sm_80 \
// RUN:   | FileCheck %s --check-prefix=SM80

!q = memref<1x2x?x64xbf16>
!l = memref<1x2x?xf32>
#schedule = #attn.schedule<block_m = 128, block_n = 64, num_stages = 2, num_warps = 12>

// Without a mask, a term that rises or falls with the key starts where it is
// greatest, and the rest of it is the row's.

// CHECK-LABEL: tile.kernel @
// CHECK-SAME: %[[SLOPES:[a-z0-9]+]]: memref<2xf32>
// CHECK: %[[SLOPE:.*]] = tile.gather %[[SLOPES]]
// CHECK: %[[RISES:.*]] = arith.cmpf ogt, %[[SLOPE]],
// CHECK: %[[KEY:.*]] = arith.select %[[RISES]], %[[END:[a-z0-9_]+]], %[[BEGIN:[a-z0-9_]+]] : i32
// CHECK: %[[START:.*]] = arith.subi %{{.*}}, %[[KEY]] : i32
// CHECK: %[[INVERSE:.*]] = arith.divf
// CHECK: %[[OWN:.*]] = arith.mulf %[[SLOPE]], %[[INVERSE]]
// CHECK: tile.kv_loop ranges(%[[BEGIN]], %[[BEGIN]], %[[BEGIN]], %[[END]])
// CHECK: qk (%[[KV:[a-z0-9]+]]: i32
// CHECK: %[[FIRST:.*]] = arith.addi %[[KV]], %[[START]]
// CHECK: %[[COLUMNS:.*]] = arith.sitofp %{{.*}} : tensor<64xi32>
// CHECK: %[[FLOAT:.*]] = arith.sitofp %[[FIRST]] : i32
// CHECK: %[[STARTS:.*]] = tensor.splat %[[FLOAT]]
// CHECK: %[[SUM:.*]] = arith.addf %[[COLUMNS]], %[[STARTS]]
// CHECK: %[[OWNS:.*]] = tensor.splat %[[OWN]]
// CHECK: %[[RAMP:.*]] = arith.mulf %[[SUM]], %[[OWNS]]
// CHECK: %[[INIT:.*]] = tile.broadcast %[[RAMP]] dim 1 : tensor<64xf32> -> tensor<128x64xf32>
// CHECK: tile.mma mma %{{.*}}, %{{.*}}, %[[INIT]]
// CHECK: score (
// CHECK-NOT: score_mod
// CHECK: pv (
// CHECK: %[[DISTANCE:.*]] = arith.sitofp %{{.*}} : i32 to f32
// CHECK: %[[REST:.*]] = arith.mulf %[[DISTANCE]], %[[SLOPE]]
// CHECK: %[[RESTS:.*]] = tensor.splat %[[REST]] : tensor<128xf32>
// CHECK: arith.addf %{{.*}}, %[[RESTS]] : tensor<128xf32>
// CHECK: math.log

// SM80-LABEL: tile.kernel @
// SM80: tile.mma mma %{{.*}}, %{{.*}}, %cst
// SM80: tile.score_mod
func.func @slopes(%q: !q, %slopes: memref<2xf32>, %o: !q, %lse: !l) {
  attn.attention ins(%q, %q, %q, %slopes : !q, !q, !q, memref<2xf32>) outs(%o, %lse : !q, !l) {schedule = #schedule}
    score_mod (%s: f32, %b: i32, %h: i32, %q_idx: i32, %kv_idx: i32, %table: memref<2xf32>) {
      %d = arith.subi %kv_idx, %q_idx : i32
      %f = arith.sitofp %d : i32 to f32
      %slope = attn.capture_load %table[%h] : memref<2xf32> -> f32
      %bias = arith.mulf %f, %slope : f32
      %r = arith.addf %s, %bias : f32
      attn.yield %r : f32
    }
  return
}

// -----

!q = memref<1x2x?x64xbf16>
#schedule = #attn.schedule<block_m = 128, block_n = 64, num_stages = 2, num_warps = 12>

// Under a mask it is relative to the tile's first query where it rises; the other
// way around the slope is negative.

// CHECK-LABEL: tile.kernel @
// CHECK: %[[TILE:.*]] = arith.muli %{{.*}}, %c128_i32
// CHECK: %[[AGAINST:.*]] = arith.constant -1.000000e+00 : f32
// CHECK: %[[OFFSET:.*]] = arith.subi %c0_i32{{.*}}, %[[TILE]]
// CHECK: %[[QUERY:.*]] = arith.subi %c0_i32{{.*}}, %[[OFFSET]]
// CHECK: %[[ORIGIN:.*]] = arith.select %{{.*}}, %[[QUERY]], %{{.*}} : i32
// CHECK: %[[START:.*]] = arith.subi %{{.*}}, %[[ORIGIN]] : i32
// CHECK: %[[SLOPE:.*]] = arith.mulf %[[AGAINST]],
// CHECK: qk (%[[KV:[a-z0-9]+]]: i32
// CHECK: arith.addi %[[KV]], %[[START]]
// CHECK: tensor.splat %[[SLOPE]]
// CHECK: tile.mma
// CHECK: score (
// CHECK-NOT: score_mod
// CHECK: tile.mask
func.func @masked(%q: !q, %o: !q) {
  attn.attention ins(%q, %q, %q : !q, !q, !q) outs(%o : !q) {schedule = #schedule}
    score_mod (%s: f32, %b: i32, %h: i32, %q_idx: i32, %kv_idx: i32) {
      %d = arith.subi %q_idx, %kv_idx : i32
      %f = arith.sitofp %d : i32 to f32
      %r = arith.addf %s, %f : f32
      attn.yield %r : f32
    }
    mask_mod (%b: i32, %h: i32, %q_idx: i32, %kv_idx: i32) {
      %r = arith.cmpi sle, %kv_idx, %q_idx : i32
      attn.yield %r : i1
    }
  return
}

// -----

!q = memref<1x2x?x64xbf16>
#schedule = #attn.schedule<block_m = 128, block_n = 64, num_stages = 2, num_warps = 12>

// A magnitude is no ramp, nor is what is added to scores that only the launch
// scales.

// CHECK-LABEL: tile.kernel @
// CHECK: tile.mma mma %{{.*}}, %{{.*}}, %cst
// CHECK: tile.score_mod
func.func @magnitude(%q: !q, %o: !q) {
  attn.attention ins(%q, %q, %q : !q, !q, !q) outs(%o : !q) {schedule = #schedule}
    score_mod (%s: f32, %b: i32, %h: i32, %q_idx: i32, %kv_idx: i32) {
      %d = arith.subi %q_idx, %kv_idx : i32
      %a = math.absi %d : i32
      %f = arith.sitofp %a : i32 to f32
      %r = arith.subf %s, %f : f32
      attn.yield %r : f32
    }
  return
}

// CHECK-LABEL: tile.kernel @
// CHECK: tile.mma mma %{{.*}}, %{{.*}}, %cst
// CHECK: tile.score_mod
func.func @scale(%q: !q, %scale: f32, %o: !q) {
  attn.attention ins(%q, %q, %q : !q, !q, !q) scale(%scale : f32) outs(%o : !q) {schedule = #schedule}
    score_mod (%s: f32, %b: i32, %h: i32, %q_idx: i32, %kv_idx: i32) {
      %f = arith.sitofp %kv_idx : i32 to f32
      %r = arith.addf %s, %f : f32
      attn.yield %r : f32
    }
  return
}
