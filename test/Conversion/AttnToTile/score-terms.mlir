// RUN: attn-opt %s --split-input-file --convert-attn-to-tile=target=sm_80 | FileCheck %s

// A score_mod as factor * s + element + row: a positive factor is the softmax's
// scale, and what a row shares is left to the LSE.

// CHECK-LABEL: tile.kernel @
// CHECK: %[[SCALE:.*]] = arith.constant 2.500000e-01 : f32
// CHECK: %[[LOOP:.*]]:3 = tile.kv_loop
// CHECK: score (
// CHECK-NOT: score_mod
// CHECK-NOT: mulf
// CHECK: tile.mask
// CHECK: tile.online_softmax %{{.*}} scale %[[SCALE]]
func.func @double(%q: memref<1x2x?x64xbf16>, %o: memref<1x2x?x64xbf16>, %lse: memref<1x2x?xf32>) {
  attn.attention ins(%q, %q, %q : memref<1x2x?x64xbf16>, memref<1x2x?x64xbf16>, memref<1x2x?x64xbf16>)
    outs(%o, %lse : memref<1x2x?x64xbf16>, memref<1x2x?xf32>)
    {schedule = #attn.schedule<block_m = 64, block_n = 32, num_stages = 2, num_warps = 4>}
    score_mod (%s: f32, %b: i32, %h: i32, %q_idx: i32, %kv_idx: i32) {
      %two = arith.constant 2.0 : f32
      %r = arith.mulf %s, %two : f32
      attn.yield %r : f32
    }
  return
}

// -----

// CHECK-LABEL: tile.kernel @
// CHECK-SAME: %[[OFFSETS:[a-z0-9]+]]: memref<2xf32>)
// CHECK: %[[X:.*]] = tile.gather %[[OFFSETS]]
// CHECK: tile.kv_loop
// CHECK: score (
// CHECK-NOT: score_mod
// CHECK: pv (
// CHECK: %[[ROW:.*]] = tensor.splat %[[X]] : tensor<64xf32>
// A row of -inf is an empty one.
// CHECK: %[[ROWS:.*]] = tile.broadcast %[[ROW]] dim 0
// CHECK: %[[EMPTY:.*]] = arith.cmpf oeq, %[[ROWS]], %{{.*}}
// CHECK: arith.select %[[EMPTY]]
// CHECK: tile.store
// CHECK: math.log
// CHECK: %[[LSE:.*]] = arith.addf %{{.*}}, %[[ROW]]
// CHECK: tile.store
func.func @head_offset(%q: memref<1x2x?x64xbf16>, %o: memref<1x2x?x64xbf16>, %lse: memref<1x2x?xf32>, %t: memref<2xf32>) {
  attn.attention ins(%q, %q, %q, %t : memref<1x2x?x64xbf16>, memref<1x2x?x64xbf16>, memref<1x2x?x64xbf16>, memref<2xf32>)
    outs(%o, %lse : memref<1x2x?x64xbf16>, memref<1x2x?xf32>)
    {schedule = #attn.schedule<block_m = 64, block_n = 32, num_stages = 2, num_warps = 4>}
    score_mod (%s: f32, %b: i32, %h: i32, %q_idx: i32, %kv_idx: i32, %offsets: memref<2xf32>) {
      %x = attn.capture_load %offsets[%h] : memref<2xf32> -> f32
      %r = arith.addf %s, %x : f32
      attn.yield %r : f32
    }
  return
}

// -----

// A distance is split at the tile's first query. The query's part leaves the
// loop, the key's is one multiply-add with the scale.
// CHECK-LABEL: tile.kernel @
// CHECK: tile.kv_loop
// CHECK: tile.score_mod %{{.*}} at(%[[START:.*]], %{{.*}}) (%[[S:.*]]: f32, %{{.*}}: i32, %[[KEY:.*]]: i32)
// CHECK:   %[[OFFSET:.*]] = arith.subi %{{.*}}, %[[START]]
// CHECK:   %[[NEAR:.*]] = arith.addi %[[KEY]], %[[OFFSET]]
// CHECK:   %[[FAR:.*]] = arith.sitofp %[[NEAR]] : i32 to f32
// CHECK:   %[[R:.*]] = math.fma %[[S]], %{{.*}}, %[[FAR]] : f32
// CHECK:   tile.yield %[[R]]
// CHECK: math.log
// CHECK: tile.store
func.func @relative(%q: memref<1x2x?x64xbf16>, %o: memref<1x2x?x64xbf16>, %lse: memref<1x2x?xf32>) {
  attn.attention ins(%q, %q, %q : memref<1x2x?x64xbf16>, memref<1x2x?x64xbf16>, memref<1x2x?x64xbf16>)
    outs(%o, %lse : memref<1x2x?x64xbf16>, memref<1x2x?xf32>)
    {schedule = #attn.schedule<block_m = 64, block_n = 32, num_stages = 2, num_warps = 4>}
    score_mod (%s: f32, %b: i32, %h: i32, %q_idx: i32, %kv_idx: i32) {
      %d = arith.subi %kv_idx, %q_idx : i32
      %f = arith.sitofp %d : i32 to f32
      %r = arith.addf %s, %f : f32
      attn.yield %r : f32
    }
  return
}

// -----

// A magnitude stays with the elements, as that of a float.
// CHECK-LABEL: tile.kernel @
// CHECK: tile.score_mod %{{.*}} (%[[S:.*]]: f32, %[[Q:.*]]: i32, %[[K:.*]]: i32)
// CHECK:   %[[I:.*]] = arith.subi %[[K]], %[[Q]] : i32
// CHECK:   %[[D:.*]] = arith.sitofp %[[I]] : i32 to f32
// CHECK:   %[[A:.*]] = math.absf %[[D]]
// CHECK:   %[[N:.*]] = arith.negf %[[A]]
// CHECK:   %[[R:.*]] = math.fma %[[S]], %{{.*}}, %[[N]] : f32
// CHECK:   tile.yield %[[R]]
func.func @symmetric(%q: memref<1x2x?x64xbf16>, %o: memref<1x2x?x64xbf16>, %lse: memref<1x2x?xf32>) {
  attn.attention ins(%q, %q, %q : memref<1x2x?x64xbf16>, memref<1x2x?x64xbf16>, memref<1x2x?x64xbf16>)
    outs(%o, %lse : memref<1x2x?x64xbf16>, memref<1x2x?xf32>)
    {schedule = #attn.schedule<block_m = 64, block_n = 32, num_stages = 2, num_warps = 4>}
    score_mod (%s: f32, %b: i32, %h: i32, %q_idx: i32, %kv_idx: i32) {
      %low = arith.minsi %kv_idx, %q_idx : i32
      %high = arith.maxsi %q_idx, %kv_idx : i32
      %d = arith.subi %low, %high : i32
      %f = arith.sitofp %d : i32 to f32
      %r = arith.addf %f, %s : f32
      attn.yield %r : f32
    }
  return
}

// -----

// A cap: scaling and the division are one product, and tanh needs no more
// precision than the score.
// CHECK-LABEL: tile.kernel @
// CHECK: tile.score_mod %{{.*}} (%[[S:.*]]: f32,
// CHECK:   %[[X:.*]] = arith.mulf %[[S]], %{{.*}} : f32
// CHECK-NOT: divf
// CHECK:   %[[T:.*]] = math.tanh %[[X]] fastmath<afn>
// CHECK:   %[[R:.*]] = arith.mulf %[[T]]
// CHECK:   tile.yield %[[R]]
func.func @softcap(%q: memref<1x2x?x64xbf16>, %o: memref<1x2x?x64xbf16>, %lse: memref<1x2x?xf32>) {
  attn.attention ins(%q, %q, %q : memref<1x2x?x64xbf16>, memref<1x2x?x64xbf16>, memref<1x2x?x64xbf16>)
    outs(%o, %lse : memref<1x2x?x64xbf16>, memref<1x2x?xf32>)
    {schedule = #attn.schedule<block_m = 64, block_n = 32, num_stages = 2, num_warps = 4>}
    score_mod (%s: f32, %b: i32, %h: i32, %q_idx: i32, %kv_idx: i32) {
      %cap = arith.constant 50.0 : f32
      %x = arith.divf %s, %cap : f32
      %t = math.tanh %x : f32
      %r = arith.mulf %t, %cap : f32
      attn.yield %r : f32
    }
  return
}

// -----

// A negative or unknown factor can't be the softmax's scale.
// CHECK-LABEL: tile.kernel @
// CHECK: %[[ONE:.*]] = arith.constant 1.000000e+00 : f32
// CHECK: tile.score_mod %{{.*}} (%[[S:.*]]: f32,
// CHECK:   %[[R:.*]] = arith.mulf %[[S]], %{{.*}} : f32
// CHECK:   tile.yield %[[R]]
// CHECK: tile.online_softmax %{{.*}} scale %[[ONE]]
func.func @negated(%q: memref<1x2x?x64xbf16>, %o: memref<1x2x?x64xbf16>, %lse: memref<1x2x?xf32>) {
  attn.attention ins(%q, %q, %q : memref<1x2x?x64xbf16>, memref<1x2x?x64xbf16>, memref<1x2x?x64xbf16>)
    outs(%o, %lse : memref<1x2x?x64xbf16>, memref<1x2x?xf32>)
    {schedule = #attn.schedule<block_m = 64, block_n = 32, num_stages = 2, num_warps = 4>}
    score_mod (%s: f32, %b: i32, %h: i32, %q_idx: i32, %kv_idx: i32) {
      %r = arith.negf %s : f32
      attn.yield %r : f32
    }
  return
}

// -----

// An index divided by a constant may be rounded down after: it stays exact.
// CHECK-LABEL: tile.kernel @
// CHECK: tile.score_mod
// CHECK:   arith.divf
// CHECK:   math.floor
func.func @blocks(%q: memref<1x2x?x64xbf16>, %o: memref<1x2x?x64xbf16>, %lse: memref<1x2x?xf32>) {
  attn.attention ins(%q, %q, %q : memref<1x2x?x64xbf16>, memref<1x2x?x64xbf16>, memref<1x2x?x64xbf16>)
    outs(%o, %lse : memref<1x2x?x64xbf16>, memref<1x2x?xf32>)
    {schedule = #attn.schedule<block_m = 64, block_n = 32, num_stages = 2, num_warps = 4>}
    score_mod (%s: f32, %b: i32, %h: i32, %q_idx: i32, %kv_idx: i32) {
      %c = arith.constant 41.0 : f32
      %f = arith.sitofp %kv_idx : i32 to f32
      %x = arith.divf %f, %c : f32
      %y = math.floor %x : f32
      %r = arith.addf %s, %y : f32
      attn.yield %r : f32
    }
  return
}
