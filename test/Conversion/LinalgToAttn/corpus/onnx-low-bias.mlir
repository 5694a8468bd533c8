// Origin: in the shape of onnx-mlir / onnx-to-linalg for a Hugging Face encoder
// export: (1 - mask) * -10000 added to the scores. A finite bias is no mask: it
// becomes a score_mod, with the scale taken out.
// RUN: attn-opt %s -raise-linalg-to-attn -canonicalize | FileCheck %s

// CHECK-LABEL: func @attention
// CHECK: attn.attention
// CHECK-SAME: {scale = 1.250000e-01 : f32}
// CHECK-SAME: score_mod (%[[S:.*]]: f32, %{{.*}}: i32, %{{.*}}: i32, %{{.*}}: i32, %[[J:.*]]: i32) {
// CHECK-DAG: %[[LOW:.*]] = arith.constant -1.000000e+04 : f32
// CHECK: %[[BIAS:.*]] = arith.select %{{.*}}, %{{.*}}, %[[LOW]] : f32
// CHECK: %[[Y:.*]] = arith.addf %[[S]], %[[BIAS]] : f32
// CHECK: attn.yield %[[Y]] : f32
// CHECK-NOT: mask_mod
#p4 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#key = affine_map<(d0, d1, d2, d3) -> (0, 0, 0, d3)>
!t = tensor<2x4x32x64xf32>
!s = tensor<2x4x32x32xf32>
func.func @attention(%q: !t, %k: !t, %v: !t) -> !t {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant -10000.0 : f32
  %scale = arith.constant 0.125 : f32
  %length = arith.constant 20 : index
  %se = tensor.empty() : !s
  %sz = linalg.fill ins(%zero : f32) outs(%se : !s) -> !s
  %s = linalg.generic {indexing_maps = [
      affine_map<(b, h, i, j, d) -> (b, h, i, d)>,
      affine_map<(b, h, i, j, d) -> (b, h, j, d)>,
      affine_map<(b, h, i, j, d) -> (b, h, i, j)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%q, %k : !t, !t) outs(%sz : !s) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %y = arith.addf %m, %c : f32
    linalg.yield %y : f32
  } -> !s
  %be = tensor.empty() : tensor<1x1x1x32xf32>
  %bias = linalg.generic {indexing_maps = [#p4], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%be : tensor<1x1x1x32xf32>) {
  ^bb0(%out: f32):
    %j = linalg.index 3 : index
    %c = arith.cmpi ult, %j, %length : index
    %y = arith.select %c, %zero, %low : f32
    linalg.yield %y : f32
  } -> tensor<1x1x1x32xf32>
  %x = linalg.generic {indexing_maps = [#p4, #key, #p4], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%s, %bias : !s, tensor<1x1x1x32xf32>) outs(%se : !s) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %m = arith.mulf %a, %scale : f32
    %y = arith.addf %m, %b : f32
    linalg.yield %y : f32
  } -> !s
  %p = linalg.softmax dimension(3) ins(%x : !s) outs(%se : !s) -> !s
  %oe = tensor.empty() : !t
  %oz = linalg.fill ins(%zero : f32) outs(%oe : !t) -> !t
  %o = linalg.generic {indexing_maps = [
      affine_map<(b, h, i, d, j) -> (b, h, i, j)>,
      affine_map<(b, h, i, d, j) -> (b, h, j, d)>,
      affine_map<(b, h, i, d, j) -> (b, h, i, d)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%p, %v : !s, !t) outs(%oz : !t) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %y = arith.addf %m, %c : f32
    linalg.yield %y : f32
  } -> !t
  return %o : !t
}
