// Origin: in the shape of onnx-mlir / onnx-to-linalg for an ONNX decoder export:
// MatMul as a 4-D generic, Div by a constant, Where with -inf on a position mask
// that is aligned to the end of the keys (q_len != kv_len), softmax written with
// a reciprocal, the max fused into the exponential.
// RUN: attn-opt %s -raise-linalg-to-attn -canonicalize | FileCheck %s

// CHECK-LABEL: func @attention
// CHECK-SAME: (%[[Q:.*]]: tensor<1x16x7x128xf32>, %[[K:.*]]: tensor<1x16x135x128xf32>, %[[V:.*]]: tensor<1x16x135x128xf32>)
// CHECK: %[[R:.*]] = attn.attention ins(%[[Q]], %[[K]], %[[V]] :
// CHECK-SAME: {scale = 0.0883883461 : f32}
// CHECK-SAME: mask_mod (%{{.*}}: i32, %{{.*}}: i32, %[[I:.*]]: i32, %[[J:.*]]: i32) {
// CHECK-NEXT: %[[SHIFT:.*]] = arith.constant 128 : i32
// CHECK-NEXT: %[[LAST:.*]] = arith.addi %[[I]], %[[SHIFT]] : i32
// CHECK-NEXT: %[[C:.*]] = arith.cmpi sle, %[[J]], %[[LAST]] : i32
// CHECK-NEXT: attn.yield %[[C]]
// CHECK: return %[[R]]
#p4 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#ij = affine_map<(d0, d1, d2, d3) -> (0, 0, d2, d3)>
#row = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, 0)>
!q = tensor<1x16x7x128xf32>
!k = tensor<1x16x135x128xf32>
!s = tensor<1x16x7x135xf32>
!r = tensor<1x16x7x1xf32>
func.func @attention(%q: !q, %k: !k, %v: !k) -> !q {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %ninf = arith.constant 0xFF800000 : f32
  %root = arith.constant 11.3137083 : f32
  %shift = arith.constant 128 : i64
  %te = tensor.empty() : tensor<1x16x128x135xf32>
  %kt = linalg.transpose ins(%k : !k) outs(%te : tensor<1x16x128x135xf32>) permutation = [0, 1, 3, 2]
  %se = tensor.empty() : !s
  %sz = linalg.fill ins(%zero : f32) outs(%se : !s) -> !s
  %s = linalg.generic {indexing_maps = [
      affine_map<(b, h, i, j, d) -> (b, h, i, d)>,
      affine_map<(b, h, i, j, d) -> (b, h, d, j)>,
      affine_map<(b, h, i, j, d) -> (b, h, i, j)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%q, %kt : !q, tensor<1x16x128x135xf32>) outs(%sz : !s) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %y = arith.addf %m, %c : f32
    linalg.yield %y : f32
  } -> !s
  %me = tensor.empty() : tensor<1x1x7x135xi1>
  %mask = linalg.generic {indexing_maps = [#p4], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%me : tensor<1x1x7x135xi1>) {
  ^bb0(%out: i1):
    %i = linalg.index 2 : index
    %j = linalg.index 3 : index
    %ii = arith.index_cast %i : index to i64
    %ji = arith.index_cast %j : index to i64
    %last = arith.addi %ii, %shift : i64
    %y = arith.cmpi sle, %ji, %last : i64
    linalg.yield %y : i1
  } -> tensor<1x1x7x135xi1>
  %x = linalg.generic {indexing_maps = [#ij, #p4, #p4], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%mask, %s : tensor<1x1x7x135xi1>, !s) outs(%se : !s) {
  ^bb0(%c: i1, %a: f32, %out: f32):
    %d = arith.divf %a, %root : f32
    %y = arith.select %c, %d, %ninf : f32
    linalg.yield %y : f32
  } -> !s
  %re = tensor.empty() : !r
  %ri = linalg.fill ins(%ninf : f32) outs(%re : !r) -> !r
  %max = linalg.generic {indexing_maps = [#p4, #row], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%x : !s) outs(%ri : !r) {
  ^bb0(%a: f32, %acc: f32):
    %y = arith.maxnumf %a, %acc : f32
    linalg.yield %y : f32
  } -> !r
  %rz = linalg.fill ins(%zero : f32) outs(%re : !r) -> !r
  %sum = linalg.generic {indexing_maps = [#p4, #row, #row], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%x, %max : !s, !r) outs(%rz : !r) {
  ^bb0(%a: f32, %m: f32, %acc: f32):
    %d = arith.subf %a, %m : f32
    %e = math.exp %d : f32
    %y = arith.addf %e, %acc : f32
    linalg.yield %y : f32
  } -> !r
  %p = linalg.generic {indexing_maps = [#p4, #row, #row, #p4], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%x, %max, %sum : !s, !r, !r) outs(%se : !s) {
  ^bb0(%a: f32, %m: f32, %l: f32, %out: f32):
    %d = arith.subf %a, %m : f32
    %e = math.exp %d : f32
    %i = arith.divf %one, %l : f32
    %y = arith.mulf %e, %i : f32
    linalg.yield %y : f32
  } -> !s
  %oe = tensor.empty() : !q
  %oz = linalg.fill ins(%zero : f32) outs(%oe : !q) -> !q
  %o = linalg.generic {indexing_maps = [
      affine_map<(b, h, i, d, j) -> (b, h, i, j)>,
      affine_map<(b, h, i, d, j) -> (b, h, j, d)>,
      affine_map<(b, h, i, d, j) -> (b, h, i, d)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%p, %v : !s, !k) outs(%oz : !q) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %y = arith.addf %m, %c : f32
    linalg.yield %y : f32
  } -> !q
  return %o : !q
}
