// Origin: in the shape of torch-mlir's output for masked_fill(triu(ones, 1),
// -inf) on the scores: positions as i64 from aranges, an i1 mask tensor of
// [N, N] broadcast over batch and heads, bf16 throughout with f32 softmax.
// RUN: attn-opt %s -raise-linalg-to-attn -canonicalize | FileCheck %s

// CHECK-LABEL: func @attention
// CHECK: attn.attention
// CHECK-SAME: {scale = 1.250000e-01 : f32}
// CHECK-SAME: mask_mod (%{{.*}}: i32, %{{.*}}: i32, %[[I:.*]]: i32, %[[J:.*]]: i32) {
// CHECK-NEXT: %[[ONE:.*]] = arith.constant 1 : i32
// CHECK-NEXT: %[[NEXT:.*]] = arith.addi %[[I]], %[[ONE]] : i32
// CHECK-NEXT: %[[C:.*]] = arith.cmpi slt, %[[J]], %[[NEXT]] : i32
// CHECK-NEXT: attn.yield %[[C]] : i1
// CHECK-NEXT: }
// CHECK-NOT: linalg
#id = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#mask = affine_map<(d0, d1, d2, d3) -> (d2, d3)>
#row = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, 0)>
!t = tensor<1x8x256x64xbf16>
!sb = tensor<1x8x256x256xbf16>
!s = tensor<1x8x256x256xf32>
!r = tensor<1x8x256x1xf32>
func.func @attention(%q: !t, %k: !t, %v: !t) -> !t {
  %zero = arith.constant 0.000000e+00 : f32
  %zerob = arith.constant 0.000000e+00 : bf16
  %ninf = arith.constant 0xFF800000 : f32
  %ninfb = arith.constant 0xFF80 : bf16
  %qc = tensor.collapse_shape %q [[0, 1], [2], [3]] : !t into tensor<8x256x64xbf16>
  %0 = tensor.empty() : tensor<1x8x64x256xbf16>
  %kt = linalg.transpose ins(%k : !t) outs(%0 : tensor<1x8x64x256xbf16>) permutation = [0, 1, 3, 2]
  %kc = tensor.collapse_shape %kt [[0, 1], [2], [3]] : tensor<1x8x64x256xbf16> into tensor<8x64x256xbf16>
  %1 = tensor.empty() : tensor<8x256x256xbf16>
  %2 = linalg.fill ins(%zerob : bf16) outs(%1 : tensor<8x256x256xbf16>) -> tensor<8x256x256xbf16>
  %3 = linalg.batch_matmul ins(%qc, %kc : tensor<8x256x64xbf16>, tensor<8x64x256xbf16>) outs(%2 : tensor<8x256x256xbf16>) -> tensor<8x256x256xbf16>
  %4 = tensor.expand_shape %3 [[0, 1], [2], [3]] output_shape [1, 8, 256, 256] : tensor<8x256x256xbf16> into !sb
  %5 = tensor.empty() : !sb
  %cst = arith.constant 1.250000e-01 : bf16
  %6 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%4 : !sb) outs(%5 : !sb) {
  ^bb0(%in: bf16, %out: bf16):
    %y = arith.mulf %in, %cst : bf16
    linalg.yield %y : bf16
  } -> !sb
  %7 = tensor.empty() : tensor<256x256xi1>
  %8 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} outs(%7 : tensor<256x256xi1>) {
  ^bb0(%out: i1):
    %r = linalg.index 0 : index
    %ri = arith.index_cast %r : index to i64
    %c = linalg.index 1 : index
    %ci = arith.index_cast %c : index to i64
    %one = arith.constant 1 : i64
    %next = arith.addi %ri, %one : i64
    %keep = arith.cmpi sge, %ci, %next : i64
    linalg.yield %keep : i1
  } -> tensor<256x256xi1>
  %9 = linalg.generic {indexing_maps = [#mask, #id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%8, %6 : tensor<256x256xi1>, !sb) outs(%5 : !sb) {
  ^bb0(%m: i1, %in: bf16, %out: bf16):
    %y = arith.select %m, %ninfb, %in : bf16
    linalg.yield %y : bf16
  } -> !sb
  %10 = tensor.empty() : !s
  %11 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%9 : !sb) outs(%10 : !s) {
  ^bb0(%in: bf16, %out: f32):
    %y = arith.extf %in : bf16 to f32
    linalg.yield %y : f32
  } -> !s
  %12 = tensor.empty() : !r
  %13 = linalg.fill ins(%ninf : f32) outs(%12 : !r) -> !r
  %14 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%11 : !s) outs(%13 : !r) {
  ^bb0(%in: f32, %out: f32):
    %y = arith.maximumf %in, %out : f32
    linalg.yield %y : f32
  } -> !r
  %15 = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%11, %14 : !s, !r) outs(%10 : !s) {
  ^bb0(%in: f32, %m: f32, %out: f32):
    %d = arith.subf %in, %m : f32
    %y = math.exp %d : f32
    linalg.yield %y : f32
  } -> !s
  %16 = linalg.fill ins(%zero : f32) outs(%12 : !r) -> !r
  %17 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%15 : !s) outs(%16 : !r) {
  ^bb0(%in: f32, %out: f32):
    %y = arith.addf %in, %out : f32
    linalg.yield %y : f32
  } -> !r
  %18 = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%15, %17 : !s, !r) outs(%5 : !sb) {
  ^bb0(%in: f32, %d: f32, %out: bf16):
    %y = arith.divf %in, %d : f32
    %t = arith.truncf %y : f32 to bf16
    linalg.yield %t : bf16
  } -> !sb
  %pc = tensor.collapse_shape %18 [[0, 1], [2], [3]] : !sb into tensor<8x256x256xbf16>
  %vc = tensor.collapse_shape %v [[0, 1], [2], [3]] : !t into tensor<8x256x64xbf16>
  %19 = tensor.empty() : tensor<8x256x64xbf16>
  %20 = linalg.fill ins(%zerob : bf16) outs(%19 : tensor<8x256x64xbf16>) -> tensor<8x256x64xbf16>
  %21 = linalg.batch_matmul ins(%pc, %vc : tensor<8x256x256xbf16>, tensor<8x256x64xbf16>) outs(%20 : tensor<8x256x64xbf16>) -> tensor<8x256x64xbf16>
  %22 = tensor.expand_shape %21 [[0, 1], [2], [3]] output_shape [1, 8, 256, 64] : tensor<8x256x64xbf16> into !t
  return %22 : !t
}
