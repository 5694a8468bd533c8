// Origin: written by hand, the plainest form: one head, rank-2 matmuls, k
// transposed by an indexing map, linalg.softmax, no scale, no mask.
// RUN: attn-opt %s -raise-linalg-to-attn -canonicalize | FileCheck %s

// CHECK-LABEL: func @attention
// CHECK-SAME: (%[[Q:.*]]: tensor<16x64xf32>, %[[K:.*]]: tensor<40x64xf32>, %[[V:.*]]: tensor<40x32xf32>)
// CHECK-DAG: %[[Q4:.*]] = tensor.expand_shape %[[Q]] {{.*}} into tensor<1x1x16x64xf32>
// CHECK-DAG: %[[K4:.*]] = tensor.expand_shape %[[K]] {{.*}} into tensor<1x1x40x64xf32>
// CHECK-DAG: %[[V4:.*]] = tensor.expand_shape %[[V]] {{.*}} into tensor<1x1x40x32xf32>
// CHECK: %[[R:.*]] = attn.attention ins(%[[Q4]], %[[K4]], %[[V4]] :
// CHECK-SAME: {scale = 1.000000e+00 : f32}
// CHECK-NOT: _mod
// CHECK: %[[O:.*]] = tensor.collapse_shape %[[R]] {{.*}} into tensor<16x32xf32>
// CHECK: return %[[O]]
// CHECK-NOT: linalg
func.func @attention(%q: tensor<16x64xf32>, %k: tensor<40x64xf32>,
                     %v: tensor<40x32xf32>) -> tensor<16x32xf32> {
  %zero = arith.constant 0.0 : f32
  %se = tensor.empty() : tensor<16x40xf32>
  %sz = linalg.fill ins(%zero : f32) outs(%se : tensor<16x40xf32>) -> tensor<16x40xf32>
  %s = linalg.matmul
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>,
                       affine_map<(m, n, k) -> (n, k)>,
                       affine_map<(m, n, k) -> (m, n)>]
      ins(%q, %k : tensor<16x64xf32>, tensor<40x64xf32>)
      outs(%sz : tensor<16x40xf32>) -> tensor<16x40xf32>
  %p = linalg.softmax dimension(1) ins(%s : tensor<16x40xf32>) outs(%se : tensor<16x40xf32>) -> tensor<16x40xf32>
  %oe = tensor.empty() : tensor<16x32xf32>
  %oz = linalg.fill ins(%zero : f32) outs(%oe : tensor<16x32xf32>) -> tensor<16x32xf32>
  %o = linalg.matmul ins(%p, %v : tensor<16x40xf32>, tensor<40x32xf32>)
      outs(%oz : tensor<16x32xf32>) -> tensor<16x32xf32>
  return %o : tensor<16x32xf32>
}
