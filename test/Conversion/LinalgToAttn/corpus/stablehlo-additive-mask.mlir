// Origin: in the shape of stablehlo-to-linalg for a sliding window given as an
// additive mask, where(visible, 0, -inf), and dynamic batch and lengths; V first
// in the second product, which is transposed.
// RUN: attn-opt %s -raise-linalg-to-attn -canonicalize | FileCheck %s

// CHECK-LABEL: func @attention
// CHECK-SAME: (%[[Q:.*]]: tensor<?x8x?x32xf16>, %[[K:.*]]: tensor<?x8x?x32xf16>, %[[V:.*]]: tensor<?x8x?x32xf16>)
// CHECK: attn.attention ins(%[[Q]], %[[K]], %[[V]] :
// CHECK-SAME: {scale = 1.000000e+00 : f32}
// CHECK-SAME: mask_mod (%{{.*}}: i32, %{{.*}}: i32, %[[I:.*]]: i32, %[[J:.*]]: i32) {
// CHECK: %[[D:.*]] = arith.subi %[[I]], %[[J]] : i32
// CHECK: arith.cmpi sge, %[[D]], %{{.*}} : i32
// CHECK: arith.cmpi slt, %[[D]], %{{.*}} : i32
// CHECK: %[[C:.*]] = arith.andi
// CHECK: attn.yield %[[C]] : i1
#p4 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#ij = affine_map<(d0, d1, d2, d3) -> (d2, d3)>
!t = tensor<?x8x?x32xf16>
!s = tensor<?x8x?x?xf32>
func.func @attention(%q: !t, %k: !t, %v: !t) -> tensor<?x8x32x?xf16> {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.000000e+00 : f32
  %ninf = arith.constant 0xFF800000 : f32
  %b = tensor.dim %q, %c0 : !t
  %n = tensor.dim %q, %c2 : !t
  %m = tensor.dim %k, %c2 : !t
  %se = tensor.empty(%b, %n, %m) : !s
  %sz = linalg.fill ins(%zero : f32) outs(%se : !s) -> !s
  %s = linalg.generic {indexing_maps = [
      affine_map<(b, h, i, j, d) -> (b, h, i, d)>,
      affine_map<(b, h, i, j, d) -> (b, h, j, d)>,
      affine_map<(b, h, i, j, d) -> (b, h, i, j)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%q, %k : !t, !t) outs(%sz : !s) {
  ^bb0(%x: f16, %y: f16, %acc: f32):
    %xf = arith.extf %x : f16 to f32
    %yf = arith.extf %y : f16 to f32
    %p = arith.mulf %xf, %yf : f32
    %r = arith.addf %acc, %p : f32
    linalg.yield %r : f32
  } -> !s
  %me = tensor.empty(%n, %m) : tensor<?x?xf32>
  %mask = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} outs(%me : tensor<?x?xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %d = arith.subi %i, %j : index
    %ci = arith.constant 0 : index
    %cw = arith.constant 128 : index
    %past = arith.cmpi sge, %d, %ci : index
    %near = arith.cmpi slt, %d, %cw : index
    %c = arith.andi %past, %near : i1
    %y = arith.select %c, %zero, %ninf : f32
    linalg.yield %y : f32
  } -> tensor<?x?xf32>
  %x = linalg.generic {indexing_maps = [#p4, #ij, #p4], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%s, %mask : !s, tensor<?x?xf32>) outs(%se : !s) {
  ^bb0(%a: f32, %c: f32, %out: f32):
    %y = arith.addf %a, %c : f32
    linalg.yield %y : f32
  } -> !s
  %p = linalg.softmax dimension(3) ins(%x : !s) outs(%se : !s) -> !s
  %he = tensor.empty(%b, %n, %m) : tensor<?x8x?x?xf16>
  %h = linalg.generic {indexing_maps = [#p4, #p4], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%p : !s) outs(%he : tensor<?x8x?x?xf16>) {
  ^bb0(%a: f32, %out: f16):
    %y = arith.truncf %a : f32 to f16
    linalg.yield %y : f16
  } -> tensor<?x8x?x?xf16>
  %oe = tensor.empty(%b, %n) : tensor<?x8x32x?xf32>
  %oz = linalg.fill ins(%zero : f32) outs(%oe : tensor<?x8x32x?xf32>) -> tensor<?x8x32x?xf32>
  %o = linalg.generic {indexing_maps = [
      affine_map<(b, h, d, i, j) -> (b, h, j, d)>,
      affine_map<(b, h, d, i, j) -> (b, h, i, j)>,
      affine_map<(b, h, d, i, j) -> (b, h, d, i)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%v, %h : !t, tensor<?x8x?x?xf16>) outs(%oz : tensor<?x8x32x?xf32>) {
  ^bb0(%x1: f16, %y1: f16, %acc: f32):
    %xf = arith.extf %x1 : f16 to f32
    %yf = arith.extf %y1 : f16 to f32
    %p1 = arith.mulf %xf, %yf : f32
    %r = arith.addf %acc, %p1 : f32
    linalg.yield %r : f32
  } -> tensor<?x8x32x?xf32>
  %re = tensor.empty(%b, %n) : tensor<?x8x32x?xf16>
  %r = linalg.generic {indexing_maps = [#p4, #p4], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%o : tensor<?x8x32x?xf32>) outs(%re : tensor<?x8x32x?xf16>) {
  ^bb0(%a: f32, %out: f16):
    %y = arith.truncf %a : f32 to f16
    linalg.yield %y : f16
  } -> tensor<?x8x32x?xf16>
  return %r : tensor<?x8x32x?xf16>
}
