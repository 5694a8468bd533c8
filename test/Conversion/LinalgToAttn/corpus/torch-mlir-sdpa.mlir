// Origin: in the shape of torch-mlir's linalg-on-tensors output for
// q @ k.transpose(-2, -1) / sqrt(d), softmax(-1), @ v on [B, H, N, D]: heads
// collapsed into batch_matmul and expanded again, a transposing generic, the
// softmax decomposed with an argmax that no one reads.
// RUN: attn-opt %s -raise-linalg-to-attn -canonicalize | FileCheck %s

// CHECK-LABEL: func @attention
// CHECK-SAME: (%[[Q:.*]]: tensor<2x12x128x64xf32>, %[[K:.*]]: tensor<2x12x128x64xf32>, %[[V:.*]]: tensor<2x12x128x64xf32>)
// CHECK: %[[R:.*]] = attn.attention ins(%[[Q]], %[[K]], %[[V]] :
// CHECK-SAME: {scale = 1.250000e-01 : f32}
// CHECK-NOT: _mod
// CHECK: return %[[R]]
// CHECK-NOT: linalg
#id = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#swap = affine_map<(d0, d1, d2, d3) -> (d0, d1, d3, d2)>
#row = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, 0)>
!t = tensor<2x12x128x64xf32>
!s = tensor<2x12x128x128xf32>
!r = tensor<2x12x128x1xf32>
func.func @attention(%q: !t, %k: !t, %v: !t) -> !t {
  %cst = arith.constant 0.000000e+00 : f32
  %cst_0 = arith.constant 0xFF800000 : f32
  %c0_i64 = arith.constant 0 : i64
  %cst_1 = arith.constant 8.000000e+00 : f64
  %0 = tensor.empty() : tensor<2x12x64x128xf32>
  %kt = linalg.generic {indexing_maps = [#id, #swap], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%k : !t) outs(%0 : tensor<2x12x64x128xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<2x12x64x128xf32>
  %qc = tensor.collapse_shape %q [[0, 1], [2], [3]] : !t into tensor<24x128x64xf32>
  %kc = tensor.collapse_shape %kt [[0, 1], [2], [3]] : tensor<2x12x64x128xf32> into tensor<24x64x128xf32>
  %1 = tensor.empty() : tensor<24x128x128xf32>
  %2 = linalg.fill ins(%cst : f32) outs(%1 : tensor<24x128x128xf32>) -> tensor<24x128x128xf32>
  %3 = linalg.batch_matmul ins(%qc, %kc : tensor<24x128x64xf32>, tensor<24x64x128xf32>) outs(%2 : tensor<24x128x128xf32>) -> tensor<24x128x128xf32>
  %4 = tensor.expand_shape %3 [[0, 1], [2], [3]] output_shape [2, 12, 128, 128] : tensor<24x128x128xf32> into !s
  %5 = tensor.empty() : !s
  %6 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%4 : !s) outs(%5 : !s) {
  ^bb0(%in: f32, %out: f32):
    %t = arith.truncf %cst_1 : f64 to f32
    %y = arith.divf %in, %t : f32
    linalg.yield %y : f32
  } -> !s
  %7 = tensor.empty() : tensor<2x12x128x1xi64>
  %8 = linalg.fill ins(%c0_i64 : i64) outs(%7 : tensor<2x12x128x1xi64>) -> tensor<2x12x128x1xi64>
  %9 = tensor.empty() : !r
  %10 = linalg.fill ins(%cst_0 : f32) outs(%9 : !r) -> !r
  %11:2 = linalg.generic {indexing_maps = [#id, #row, #row], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%6 : !s) outs(%10, %8 : !r, tensor<2x12x128x1xi64>) {
  ^bb0(%in: f32, %out: f32, %out_i: i64):
    %i = linalg.index 3 : index
    %ii = arith.index_cast %i : index to i64
    %m = arith.maximumf %in, %out : f32
    %c = arith.cmpf ogt, %in, %out : f32
    %x = arith.select %c, %ii, %out_i : i64
    linalg.yield %m, %x : f32, i64
  } -> (!r, tensor<2x12x128x1xi64>)
  %12 = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%6, %11#0 : !s, !r) outs(%5 : !s) {
  ^bb0(%in: f32, %m: f32, %out: f32):
    %y = arith.subf %in, %m : f32
    linalg.yield %y : f32
  } -> !s
  %13 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%12 : !s) outs(%5 : !s) {
  ^bb0(%in: f32, %out: f32):
    %y = math.exp %in : f32
    linalg.yield %y : f32
  } -> !s
  %14 = linalg.fill ins(%cst : f32) outs(%9 : !r) -> !r
  %15 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%13 : !s) outs(%14 : !r) {
  ^bb0(%in: f32, %out: f32):
    %y = arith.addf %in, %out : f32
    linalg.yield %y : f32
  } -> !r
  %16 = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%13, %15 : !s, !r) outs(%5 : !s) {
  ^bb0(%in: f32, %d: f32, %out: f32):
    %y = arith.divf %in, %d : f32
    linalg.yield %y : f32
  } -> !s
  %pc = tensor.collapse_shape %16 [[0, 1], [2], [3]] : !s into tensor<24x128x128xf32>
  %vc = tensor.collapse_shape %v [[0, 1], [2], [3]] : !t into tensor<24x128x64xf32>
  %17 = tensor.empty() : tensor<24x128x64xf32>
  %18 = linalg.fill ins(%cst : f32) outs(%17 : tensor<24x128x64xf32>) -> tensor<24x128x64xf32>
  %19 = linalg.batch_matmul ins(%pc, %vc : tensor<24x128x128xf32>, tensor<24x128x64xf32>) outs(%18 : tensor<24x128x64xf32>) -> tensor<24x128x64xf32>
  %20 = tensor.expand_shape %19 [[0, 1], [2], [3]] output_shape [2, 12, 128, 64] : tensor<24x128x64xf32> into !t
  return %20 : !t
}
