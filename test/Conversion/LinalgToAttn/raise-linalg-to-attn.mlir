// RUN: attn-opt %s -raise-linalg-to-attn | FileCheck %s

#qk0 = affine_map<(b, h, i, j, d) -> (b, h, i, d)>
#qk1 = affine_map<(b, h, i, j, d) -> (b, h, j, d)>
#qk2 = affine_map<(b, h, i, j, d) -> (b, h, i, j)>
#pv0 = affine_map<(b, h, i, d, j) -> (b, h, i, j)>
#pv1 = affine_map<(b, h, i, d, j) -> (b, h, j, d)>
#pv2 = affine_map<(b, h, i, d, j) -> (b, h, i, d)>
#id = affine_map<(b, h, i, j) -> (b, h, i, j)>
#row = affine_map<(b, h, i, j) -> (b, h, i)>
!t = tensor<2x4x32x64xf32>
!s = tensor<2x4x32x32xf32>
!r = tensor<2x4x32xf32>

// CHECK-LABEL: func @plain
// CHECK: attn.attention ins(%arg0, %arg1, %arg2 :
// CHECK-SAME: {scale = 1.000000e+00 : f32} -> tensor<2x4x32x64xf32>
// CHECK-NOT: linalg
func.func @plain(%q: !t, %k: !t, %v: !t) -> !t {
  %zero = arith.constant 0.0 : f32
  %ninf = arith.constant 0xFF800000 : f32
  %se = tensor.empty() : !s
  %sz = linalg.fill ins(%zero : f32) outs(%se : !s) -> !s
  %s = linalg.contract indexing_maps = [#qk0, #qk1, #qk2] ins(%q, %k : !t, !t) outs(%sz : !s) -> !s
  %p = linalg.softmax dimension(3) ins(%s : !s) outs(%se : !s) -> !s
  %oe = tensor.empty() : !t
  %oz = linalg.fill ins(%zero : f32) outs(%oe : !t) -> !t
  %o = linalg.contract indexing_maps = [#pv0, #pv1, #pv2] ins(%p, %v : !s, !t) outs(%oz : !t) -> !t
  return %o : !t
}

// A mask that hides where it is true.

// CHECK-LABEL: func @hide_where
// CHECK: mask_mod (%{{.*}}: i32, %{{.*}}: i32, %[[I:.*]]: i32, %[[J:.*]]: i32) {
// CHECK-NEXT: %[[C:.*]] = arith.cmpi sle, %[[J]], %[[I]] : i32
// CHECK-NEXT: attn.yield %[[C]] : i1
func.func @hide_where(%q: !t, %k: !t, %v: !t) -> !t {
  %zero = arith.constant 0.0 : f32
  %ninf = arith.constant 0xFF800000 : f32
  %se = tensor.empty() : !s
  %sz = linalg.fill ins(%zero : f32) outs(%se : !s) -> !s
  %s = linalg.contract indexing_maps = [#qk0, #qk1, #qk2] ins(%q, %k : !t, !t) outs(%sz : !s) -> !s
  %x = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%s : !s) outs(%se : !s) {
  ^bb0(%a: f32, %out: f32):
    %i = linalg.index 2 : index
    %j = linalg.index 3 : index
    %c = arith.cmpi sgt, %j, %i : index
    %y = arith.select %c, %ninf, %a : f32
    linalg.yield %y : f32
  } -> !s
  %p = linalg.softmax dimension(3) ins(%x : !s) outs(%se : !s) -> !s
  %oe = tensor.empty() : !t
  %oz = linalg.fill ins(%zero : f32) outs(%oe : !t) -> !t
  %o = linalg.contract indexing_maps = [#pv0, #pv1, #pv2] ins(%p, %v : !s, !t) outs(%oz : !t) -> !t
  return %o : !t
}

// Two masks, one under the other, with the scale in between.

// CHECK-LABEL: func @two_masks
// CHECK: {scale = 5.000000e-01 : f32}
// CHECK-NOT: score_mod
// CHECK: mask_mod (%{{.*}}: i32, %{{.*}}: i32, %[[I:.*]]: i32, %[[J:.*]]: i32) {
// CHECK-DAG: %[[A:.*]] = arith.cmpi sle, %[[J]], %[[I]] : i32
// CHECK-DAG: %[[B:.*]] = arith.cmpi slt, %[[J]], %{{.*}} : i32
// CHECK: %[[C:.*]] = arith.andi %{{.*}}, %{{.*}} : i1
// CHECK: attn.yield %[[C]] : i1
func.func @two_masks(%q: !t, %k: !t, %v: !t) -> !t {
  %zero = arith.constant 0.0 : f32
  %ninf = arith.constant 0xFF800000 : f32
  %se = tensor.empty() : !s
  %sz = linalg.fill ins(%zero : f32) outs(%se : !s) -> !s
  %s = linalg.contract indexing_maps = [#qk0, #qk1, #qk2] ins(%q, %k : !t, !t) outs(%sz : !s) -> !s
  %x = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%s : !s) outs(%se : !s) {
  ^bb0(%a: f32, %out: f32):
    %i = linalg.index 2 : index
    %j = linalg.index 3 : index
    %c = arith.cmpi sle, %j, %i : index
    %m = arith.select %c, %a, %ninf : f32
    %half = arith.constant 0.5 : f32
    %z = arith.mulf %m, %half : f32
    %n = arith.constant 20 : index
    %e = arith.cmpi slt, %j, %n : index
    %y = arith.select %e, %z, %ninf : f32
    linalg.yield %y : f32
  } -> !s
  %p = linalg.softmax dimension(3) ins(%x : !s) outs(%se : !s) -> !s
  %oe = tensor.empty() : !t
  %oz = linalg.fill ins(%zero : f32) outs(%oe : !t) -> !t
  %o = linalg.contract indexing_maps = [#pv0, #pv1, #pv2] ins(%p, %v : !s, !t) outs(%oz : !t) -> !t
  return %o : !t
}

// A condition on the scores is no mask, but -inf has no weight either way.

// CHECK-LABEL: func @relu_like
// CHECK: score_mod
// CHECK: arith.select
// CHECK-NOT: mask_mod
// CHECK: return
func.func @relu_like(%q: !t, %k: !t, %v: !t) -> !t {
  %zero = arith.constant 0.0 : f32
  %ninf = arith.constant 0xFF800000 : f32
  %se = tensor.empty() : !s
  %sz = linalg.fill ins(%zero : f32) outs(%se : !s) -> !s
  %s = linalg.contract indexing_maps = [#qk0, #qk1, #qk2] ins(%q, %k : !t, !t) outs(%sz : !s) -> !s
  %x = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%s : !s) outs(%se : !s) {
  ^bb0(%a: f32, %out: f32):
    %c = arith.cmpf ogt, %a, %zero : f32
    %y = arith.select %c, %a, %ninf : f32
    linalg.yield %y : f32
  } -> !s
  %p = linalg.softmax dimension(3) ins(%x : !s) outs(%se : !s) -> !s
  %oe = tensor.empty() : !t
  %oz = linalg.fill ins(%zero : f32) outs(%oe : !t) -> !t
  %o = linalg.contract indexing_maps = [#pv0, #pv1, #pv2] ins(%p, %v : !s, !t) outs(%oz : !t) -> !t
  return %o : !t
}

// A score that is scaled and used unscaled too has no common scale.

// CHECK-LABEL: func @scale_and_score
// CHECK: {scale = 1.000000e+00 : f32}
// CHECK-SAME: score_mod (%[[S:.*]]: f32,
// CHECK: %[[M:.*]] = arith.mulf %[[S]],
// CHECK: arith.addf %[[M]], %[[S]]
func.func @scale_and_score(%q: !t, %k: !t, %v: !t) -> !t {
  %zero = arith.constant 0.0 : f32
  %ninf = arith.constant 0xFF800000 : f32
  %se = tensor.empty() : !s
  %sz = linalg.fill ins(%zero : f32) outs(%se : !s) -> !s
  %s = linalg.contract indexing_maps = [#qk0, #qk1, #qk2] ins(%q, %k : !t, !t) outs(%sz : !s) -> !s
  %x = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%s : !s) outs(%se : !s) {
  ^bb0(%a: f32, %out: f32):
    %c = arith.constant 3.0 : f32
    %m = arith.mulf %a, %c : f32
    %y = arith.addf %m, %a : f32
    linalg.yield %y : f32
  } -> !s
  %p = linalg.softmax dimension(3) ins(%x : !s) outs(%se : !s) -> !s
  %oe = tensor.empty() : !t
  %oz = linalg.fill ins(%zero : f32) outs(%oe : !t) -> !t
  %o = linalg.contract indexing_maps = [#pv0, #pv1, #pv2] ins(%p, %v : !s, !t) outs(%oz : !t) -> !t
  return %o : !t
}

// A position product may overflow i32, so it is computed in i64.

// CHECK-LABEL: func @wide_positions
// CHECK: score_mod
// CHECK: arith.extsi %{{.*}} : i32 to i64
// CHECK: arith.muli %{{.*}}, %{{.*}} : i64
// CHECK: arith.sitofp %{{.*}} : i64 to f32
func.func @wide_positions(%q: !t, %k: !t, %v: !t) -> !t {
  %zero = arith.constant 0.0 : f32
  %ninf = arith.constant 0xFF800000 : f32
  %se = tensor.empty() : !s
  %sz = linalg.fill ins(%zero : f32) outs(%se : !s) -> !s
  %s = linalg.contract indexing_maps = [#qk0, #qk1, #qk2] ins(%q, %k : !t, !t) outs(%sz : !s) -> !s
  %x = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%s : !s) outs(%se : !s) {
  ^bb0(%a: f32, %out: f32):
    %i = linalg.index 2 : index
    %j = linalg.index 3 : index
    %p2 = arith.muli %i, %j : index
    %l = arith.index_cast %p2 : index to i64
    %f = arith.sitofp %l : i64 to f32
    %y = arith.addf %a, %f : f32
    linalg.yield %y : f32
  } -> !s
  %p = linalg.softmax dimension(3) ins(%x : !s) outs(%se : !s) -> !s
  %oe = tensor.empty() : !t
  %oz = linalg.fill ins(%zero : f32) outs(%oe : !t) -> !t
  %o = linalg.contract indexing_maps = [#pv0, #pv1, #pv2] ins(%p, %v : !s, !t) outs(%oz : !t) -> !t
  return %o : !t
}

// Without the maximum it is the same softmax.

// CHECK-LABEL: func @no_maximum
// CHECK: attn.attention
// CHECK-NOT: linalg
func.func @no_maximum(%q: !t, %k: !t, %v: !t) -> !t {
  %zero = arith.constant 0.0 : f32
  %ninf = arith.constant 0xFF800000 : f32
  %se = tensor.empty() : !s
  %sz = linalg.fill ins(%zero : f32) outs(%se : !s) -> !s
  %s = linalg.contract indexing_maps = [#qk0, #qk1, #qk2] ins(%q, %k : !t, !t) outs(%sz : !s) -> !s
  %re = tensor.empty() : !r
  %e = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%s : !s) outs(%se : !s) {
  ^bb0(%a: f32, %out: f32):
    %y = math.exp %a : f32
    linalg.yield %y : f32
  } -> !s
  %rz = linalg.fill ins(%zero : f32) outs(%re : !r) -> !r
  %l = linalg.reduce { arith.addf } ins(%e : !s) outs(%rz : !r) dimensions = [3]
  %p = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%e, %l : !s, !r) outs(%se : !s) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %y = arith.divf %a, %b : f32
    linalg.yield %y : f32
  } -> !s
  %oe = tensor.empty() : !t
  %oz = linalg.fill ins(%zero : f32) outs(%oe : !t) -> !t
  %o = linalg.contract indexing_maps = [#pv0, #pv1, #pv2] ins(%p, %v : !s, !t) outs(%oz : !t) -> !t
  return %o : !t
}

// A mask shared with other code stays where it is.

// CHECK-LABEL: func @shared_mask
// CHECK: linalg.generic
// CHECK: attn.attention
// CHECK: score_mod
func.func @shared_mask(%q: !t, %k: !t, %v: !t) -> (!t, !s) {
  %zero = arith.constant 0.0 : f32
  %ninf = arith.constant 0xFF800000 : f32
  %se = tensor.empty() : !s
  %sz = linalg.fill ins(%zero : f32) outs(%se : !s) -> !s
  %s = linalg.contract indexing_maps = [#qk0, #qk1, #qk2] ins(%q, %k : !t, !t) outs(%sz : !s) -> !s
  %m = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%se : !s) {
  ^bb0(%out: f32):
    %j = linalg.index 3 : index
    %ji = arith.index_cast %j : index to i32
    %y = arith.sitofp %ji : i32 to f32
    linalg.yield %y : f32
  } -> !s
  %x = arith.addf %s, %m : !s
  %p = linalg.softmax dimension(3) ins(%x : !s) outs(%se : !s) -> !s
  %oe = tensor.empty() : !t
  %oz = linalg.fill ins(%zero : f32) outs(%oe : !t) -> !t
  %o = linalg.contract indexing_maps = [#pv0, #pv1, #pv2] ins(%p, %v : !s, !t) outs(%oz : !t) -> !t
  return %o, %m : !t, !s
}

// Two layers, one after the other.

// CHECK-LABEL: func @two_layers
// CHECK: %[[A:.*]] = attn.attention ins(%arg0,
// CHECK: attn.attention ins(%[[A]],
// CHECK-NOT: linalg
func.func @two_layers(%q: !t, %k: !t, %v: !t) -> !t {
  %zero = arith.constant 0.0 : f32
  %ninf = arith.constant 0xFF800000 : f32
  %se = tensor.empty() : !s
  %sz = linalg.fill ins(%zero : f32) outs(%se : !s) -> !s
  %s = linalg.contract indexing_maps = [#qk0, #qk1, #qk2] ins(%q, %k : !t, !t) outs(%sz : !s) -> !s
  %p = linalg.softmax dimension(3) ins(%s : !s) outs(%se : !s) -> !s
  %oe = tensor.empty() : !t
  %oz = linalg.fill ins(%zero : f32) outs(%oe : !t) -> !t
  %o = linalg.contract indexing_maps = [#pv0, #pv1, #pv2] ins(%p, %v : !s, !t) outs(%oz : !t) -> !t
  %s2 = linalg.contract indexing_maps = [#qk0, #qk1, #qk2] ins(%o, %k : !t, !t) outs(%sz : !s) -> !s
  %p2 = linalg.softmax dimension(3) ins(%s2 : !s) outs(%se : !s) -> !s
  %o2 = linalg.contract indexing_maps = [#pv0, #pv1, #pv2] ins(%p2, %v : !s, !t) outs(%oz : !t) -> !t
  return %o2 : !t
}
