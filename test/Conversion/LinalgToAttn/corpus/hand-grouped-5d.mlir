// Origin: written by hand, grouped queries without a repeat: q is
// [B, Hkv, G, N, D] and shares k and v in the products themselves; softcap.
// RUN: attn-opt %s -raise-linalg-to-attn -canonicalize | FileCheck %s

// CHECK-LABEL: func @attention
// CHECK-SAME: (%[[Q:.*]]: tensor<2x3x4x16x32xf32>, %[[K:.*]]: tensor<2x3x24x32xf32>, %[[V:.*]]: tensor<2x3x24x32xf32>)
// CHECK: %[[QC:.*]] = tensor.collapse_shape %[[Q]] {{\[\[}}0], [1, 2], [3], [4]]
// CHECK: attn.attention ins(%[[QC]], %[[K]], %[[V]] : tensor<2x12x16x32xf32>, tensor<2x3x24x32xf32>, tensor<2x3x24x32xf32>)
// CHECK-SAME: {scale = 5.000000e-03 : f32}
// CHECK-SAME: score_mod (%[[S:.*]]: f32,
// CHECK: %[[T:.*]] = math.tanh %[[S]] : f32
// CHECK: %[[Y:.*]] = arith.mulf %[[T]], %{{.*}} : f32
// CHECK: attn.yield %[[Y]] : f32
#p5 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>
!q = tensor<2x3x4x16x32xf32>
!k = tensor<2x3x24x32xf32>
!s = tensor<2x3x4x16x24xf32>
func.func @attention(%q: !q, %k: !k, %v: !k) -> !q {
  %zero = arith.constant 0.0 : f32
  %scale = arith.constant 0.25 : f32
  %cap = arith.constant 50.0 : f32
  %se = tensor.empty() : !s
  %sz = linalg.fill ins(%zero : f32) outs(%se : !s) -> !s
  %s = linalg.contract
      indexing_maps = [affine_map<(b, g, r, i, j, d) -> (b, g, r, i, d)>,
                       affine_map<(b, g, r, i, j, d) -> (b, g, j, d)>,
                       affine_map<(b, g, r, i, j, d) -> (b, g, r, i, j)>]
      ins(%q, %k : !q, !k) outs(%sz : !s) -> !s
  %x = linalg.map ins(%s : !s) outs(%se : !s)
    (%in: f32, %out: f32) {
      %m = arith.mulf %in, %scale : f32
      %c = arith.divf %m, %cap : f32
      %t = math.tanh %c : f32
      %y = arith.mulf %cap, %t : f32
      linalg.yield %y : f32
    }
  %p = linalg.softmax dimension(4) ins(%x : !s) outs(%se : !s) -> !s
  %oe = tensor.empty() : !q
  %oz = linalg.fill ins(%zero : f32) outs(%oe : !q) -> !q
  %o = linalg.contract
      indexing_maps = [affine_map<(b, g, r, i, d, j) -> (b, g, r, i, j)>,
                       affine_map<(b, g, r, i, d, j) -> (b, g, j, d)>,
                       affine_map<(b, g, r, i, d, j) -> (b, g, r, i, d)>]
      ins(%p, %v : !s, !k) outs(%oz : !q) -> !q
  return %o : !q
}
