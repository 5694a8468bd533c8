// Origin: in the shape of torch-mlir's output for scaled_dot_product_attention
// as torch decomposes it (q and k are each scaled by the root of the scale) with
// heads of k and v repeated by repeat_interleave: expanded to [B, Hkv, G, N, D]
// by a broadcasting generic and collapsed.
// RUN: attn-opt %s -raise-linalg-to-attn -canonicalize | FileCheck %s

// CHECK-LABEL: func @attention
// CHECK-SAME: (%[[Q:.*]]: tensor<2x8x32x64xf32>, %[[K:.*]]: tensor<2x2x48x64xf32>, %[[V:.*]]: tensor<2x2x48x64xf32>)
// CHECK: %[[R:.*]] = attn.attention ins(%[[Q]], %[[K]], %[[V]] :
// CHECK-SAME: {scale = 2.500000e-01 : f32}
// CHECK: return %[[R]]
#id = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#id5 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>
#rep = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d3, d4)>
!q = tensor<2x8x32x64xf32>
!kv = tensor<2x2x48x64xf32>
!rep = tensor<2x2x4x48x64xf32>
!kr = tensor<2x8x48x64xf32>
!s = tensor<16x32x48xf32>
func.func @attention(%q: !q, %k: !kv, %v: !kv) -> !q {
  %zero = arith.constant 0.000000e+00 : f32
  %half = arith.constant 5.000000e-01 : f32
  %0 = tensor.empty() : !q
  %qs = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%q : !q) outs(%0 : !q) {
  ^bb0(%in: f32, %out: f32):
    %y = arith.mulf %in, %half : f32
    linalg.yield %y : f32
  } -> !q
  %1 = tensor.empty() : !rep
  %kb = linalg.generic {indexing_maps = [#rep, #id5], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%k : !kv) outs(%1 : !rep) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> !rep
  %vb = linalg.generic {indexing_maps = [#rep, #id5], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%v : !kv) outs(%1 : !rep) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> !rep
  %kr = tensor.collapse_shape %kb [[0], [1, 2], [3], [4]] : !rep into !kr
  %vr = tensor.collapse_shape %vb [[0], [1, 2], [3], [4]] : !rep into !kr
  %2 = tensor.empty() : tensor<2x8x64x48xf32>
  %kt = linalg.transpose ins(%kr : !kr) outs(%2 : tensor<2x8x64x48xf32>) permutation = [0, 1, 3, 2]
  %ks = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%kt : tensor<2x8x64x48xf32>) outs(%2 : tensor<2x8x64x48xf32>) {
  ^bb0(%in: f32, %out: f32):
    %y = arith.mulf %in, %half : f32
    linalg.yield %y : f32
  } -> tensor<2x8x64x48xf32>
  %qc = tensor.collapse_shape %qs [[0, 1], [2], [3]] : !q into tensor<16x32x64xf32>
  %kc = tensor.collapse_shape %ks [[0, 1], [2], [3]] : tensor<2x8x64x48xf32> into tensor<16x64x48xf32>
  %vc = tensor.collapse_shape %vr [[0, 1], [2], [3]] : !kr into tensor<16x48x64xf32>
  %se = tensor.empty() : !s
  %sz = linalg.fill ins(%zero : f32) outs(%se : !s) -> !s
  %s = linalg.batch_matmul ins(%qc, %kc : tensor<16x32x64xf32>, tensor<16x64x48xf32>) outs(%sz : !s) -> !s
  %p = linalg.softmax dimension(2) ins(%s : !s) outs(%se : !s) -> !s
  %oe = tensor.empty() : tensor<16x32x64xf32>
  %oz = linalg.fill ins(%zero : f32) outs(%oe : tensor<16x32x64xf32>) -> tensor<16x32x64xf32>
  %o = linalg.batch_matmul ins(%p, %vc : !s, tensor<16x48x64xf32>) outs(%oz : tensor<16x32x64xf32>) -> tensor<16x32x64xf32>
  %r = tensor.expand_shape %o [[0, 1], [2], [3]] output_shape [2, 8, 32, 64] : tensor<16x32x64xf32> into !q
  return %r : !q
}
