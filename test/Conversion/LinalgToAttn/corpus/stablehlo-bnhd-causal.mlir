// Origin: in the shape of stablehlo-to-linalg (IREE's input) for
// jax.nn.dot_product_attention on [B, N, H, D]: dot_generals as generics with
// the heads in the middle, iotas as i32 tensors, a compare, a select against a
// broadcast -inf, reductions with explicit maps, then the division after a
// broadcast.
// RUN: attn-opt %s -raise-linalg-to-attn -canonicalize | FileCheck %s

// CHECK-LABEL: func @attention
// CHECK-SAME: (%[[Q:[^:]*]]: tensor<4x64x8x32xf32>,
// CHECK: %[[QT:.*]] = linalg.transpose ins(%[[Q]] : {{.*}}) outs({{.*}} : tensor<4x8x64x32xf32>) permutation = [0, 2, 1, 3]
// CHECK: %[[R:.*]] = attn.attention ins(%[[QT]],
// CHECK-SAME: {scale = 0.176776692 : f32}
// CHECK-SAME: mask_mod (%{{.*}}: i32, %{{.*}}: i32, %[[I:.*]]: i32, %[[J:.*]]: i32) {
// CHECK-NEXT: %[[C:.*]] = arith.cmpi sge, %[[I]], %[[J]] : i32
// CHECK-NEXT: attn.yield %[[C]]
// CHECK: %[[O:.*]] = linalg.transpose ins(%[[R]] : {{.*}}) outs({{.*}} : tensor<4x64x8x32xf32>) permutation = [0, 2, 1, 3]
// CHECK: return %[[O]]
#p4 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#row = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#ij = affine_map<(d0, d1, d2, d3) -> (d2, d3)>
!t = tensor<4x64x8x32xf32>
!s = tensor<4x8x64x64xf32>
!r = tensor<4x8x64xf32>
func.func @attention(%q: !t, %k: !t, %v: !t) -> !t {
  %zero = arith.constant 0.000000e+00 : f32
  %ninf = arith.constant 0xFF800000 : f32
  %scale = arith.constant dense<0.176776692> : !s
  %se = tensor.empty() : !s
  %sz = linalg.fill ins(%zero : f32) outs(%se : !s) -> !s
  %s = linalg.generic {indexing_maps = [
      affine_map<(b, h, i, j, d) -> (b, i, h, d)>,
      affine_map<(b, h, i, j, d) -> (b, j, h, d)>,
      affine_map<(b, h, i, j, d) -> (b, h, i, j)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%q, %k : !t, !t) outs(%sz : !s) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %y = arith.addf %c, %m : f32
    linalg.yield %y : f32
  } -> !s
  %scaled = linalg.generic {indexing_maps = [#p4, #p4, #p4], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%s, %scale : !s, !s) outs(%se : !s) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %y = arith.mulf %a, %b : f32
    linalg.yield %y : f32
  } -> !s
  %ie = tensor.empty() : tensor<64x64xi32>
  %rows = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} outs(%ie : tensor<64x64xi32>) {
  ^bb0(%out: i32):
    %i = linalg.index 0 : index
    %y = arith.index_cast %i : index to i32
    linalg.yield %y : i32
  } -> tensor<64x64xi32>
  %columns = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} outs(%ie : tensor<64x64xi32>) {
  ^bb0(%out: i32):
    %i = linalg.index 1 : index
    %y = arith.index_cast %i : index to i32
    linalg.yield %y : i32
  } -> tensor<64x64xi32>
  %me = tensor.empty() : tensor<64x64xi1>
  %mask = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%rows, %columns : tensor<64x64xi32>, tensor<64x64xi32>) outs(%me : tensor<64x64xi1>) {
  ^bb0(%a: i32, %b: i32, %out: i1):
    %y = arith.cmpi sge, %a, %b : i32
    linalg.yield %y : i1
  } -> tensor<64x64xi1>
  %be = tensor.empty() : tensor<4x8x64x64xi1>
  %maskb = linalg.broadcast ins(%mask : tensor<64x64xi1>) outs(%be : tensor<4x8x64x64xi1>) dimensions = [0, 1]
  %low = linalg.fill ins(%ninf : f32) outs(%se : !s) -> !s
  %masked = linalg.generic {indexing_maps = [#p4, #p4, #p4, #p4], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%maskb, %scaled, %low : tensor<4x8x64x64xi1>, !s, !s) outs(%se : !s) {
  ^bb0(%c: i1, %a: f32, %b: f32, %out: f32):
    %y = arith.select %c, %a, %b : f32
    linalg.yield %y : f32
  } -> !s
  %re = tensor.empty() : !r
  %rinf = linalg.fill ins(%ninf : f32) outs(%re : !r) -> !r
  %max = linalg.reduce ins(%masked : !s) outs(%rinf : !r) dimensions = [3]
    (%in: f32, %acc: f32) {
      %y = arith.maximumf %in, %acc : f32
      linalg.yield %y : f32
    }
  %diff = linalg.generic {indexing_maps = [#p4, #row, #p4], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%masked, %max : !s, !r) outs(%se : !s) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %y = arith.subf %a, %b : f32
    linalg.yield %y : f32
  } -> !s
  %exp = linalg.generic {indexing_maps = [#p4, #p4], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%diff : !s) outs(%se : !s) {
  ^bb0(%a: f32, %out: f32):
    %y = math.exp %a : f32
    linalg.yield %y : f32
  } -> !s
  %rzero = linalg.fill ins(%zero : f32) outs(%re : !r) -> !r
  %sum = linalg.reduce ins(%exp : !s) outs(%rzero : !r) dimensions = [3]
    (%in: f32, %acc: f32) {
      %y = arith.addf %in, %acc : f32
      linalg.yield %y : f32
    }
  %sumb = linalg.broadcast ins(%sum : !r) outs(%se : !s) dimensions = [3]
  %p = linalg.generic {indexing_maps = [#p4, #p4, #p4], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%exp, %sumb : !s, !s) outs(%se : !s) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %y = arith.divf %a, %b : f32
    linalg.yield %y : f32
  } -> !s
  %oe = tensor.empty() : !t
  %oz = linalg.fill ins(%zero : f32) outs(%oe : !t) -> !t
  %o = linalg.generic {indexing_maps = [
      affine_map<(b, i, h, d, j) -> (b, h, i, j)>,
      affine_map<(b, i, h, d, j) -> (b, j, h, d)>,
      affine_map<(b, i, h, d, j) -> (b, i, h, d)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%p, %v : !s, !t) outs(%oz : !t) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %y = arith.addf %c, %m : f32
    linalg.yield %y : f32
  } -> !t
  return %o : !t
}
