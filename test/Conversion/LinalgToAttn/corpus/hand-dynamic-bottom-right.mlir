// Origin: written by hand, everything dynamic but heads and head dimension;
// causal aligned to the end by the tensors' own sizes, ALiBi slopes by head.
// RUN: attn-opt %s -raise-linalg-to-attn -canonicalize | FileCheck %s

// CHECK-LABEL: func @attention
// CHECK: attn.attention
// CHECK-SAME: {scale = 1.250000e-01 : f32}
// CHECK-SAME: score_mod (%[[S:.*]]: f32, %{{.*}}: i32, %[[H:.*]]: i32, %[[SI:.*]]: i32, %[[SJ:.*]]: i32) {
// CHECK: arith.sitofp %[[H]] : i32 to f32
// CHECK: arith.subi %[[SJ]], %[[SI]] : i32
// CHECK: arith.addf %[[S]], %{{.*}} : f32
// CHECK: mask_mod (%{{.*}}: i32, %{{.*}}: i32, %[[I:.*]]: i32, %[[J:.*]]: i32) {
// CHECK-DAG: %[[NK:.*]] = attn.kv_len : i32
// CHECK-DAG: %[[NQ:.*]] = attn.q_len : i32
// CHECK: %[[SHIFT:.*]] = arith.subi %[[NK]], %[[NQ]] : i32
// CHECK: %[[LAST:.*]] = arith.addi %[[I]], %[[SHIFT]] : i32
// CHECK: arith.cmpi sle, %[[J]], %[[LAST]] : i32
#p4 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
!t = tensor<?x8x?x64xf32>
!s = tensor<?x8x?x?xf32>
func.func @attention(%q: !t, %k: !t, %v: !t) -> !t {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  %scale = arith.constant 0.125 : f32
  %slope = arith.constant 0.5 : f32
  %ninf = arith.constant 0xFF800000 : f32
  %b = tensor.dim %q, %c0 : !t
  %n = tensor.dim %q, %c2 : !t
  %m = tensor.dim %k, %c2 : !t
  %shift = arith.subi %m, %n : index
  %se = tensor.empty(%b, %n, %m) : !s
  %sz = linalg.fill ins(%zero : f32) outs(%se : !s) -> !s
  %s = linalg.contract
      indexing_maps = [affine_map<(b, h, i, j, d) -> (b, h, i, d)>,
                       affine_map<(b, h, i, j, d) -> (b, h, j, d)>,
                       affine_map<(b, h, i, j, d) -> (b, h, i, j)>]
      ins(%q, %k : !t, !t) outs(%sz : !s) -> !s
  %x = linalg.generic {indexing_maps = [#p4, #p4], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%s : !s) outs(%se : !s) {
  ^bb0(%a: f32, %out: f32):
    %h = linalg.index 1 : index
    %i = linalg.index 2 : index
    %j = linalg.index 3 : index
    %scaled = arith.mulf %a, %scale : f32
    %hi = arith.index_cast %h : index to i32
    %hf = arith.sitofp %hi : i32 to f32
    %mh = arith.mulf %hf, %slope : f32
    %d = arith.subi %j, %i : index
    %di = arith.index_cast %d : index to i32
    %df = arith.sitofp %di : i32 to f32
    %bias = arith.mulf %mh, %df : f32
    %biased = arith.addf %scaled, %bias : f32
    %last = arith.addi %i, %shift : index
    %c = arith.cmpi sle, %j, %last : index
    %y = arith.select %c, %biased, %ninf : f32
    linalg.yield %y : f32
  } -> !s
  %p = linalg.softmax dimension(3) ins(%x : !s) outs(%se : !s) -> !s
  %oe = tensor.empty(%b, %n) : !t
  %oz = linalg.fill ins(%zero : f32) outs(%oe : !t) -> !t
  %o = linalg.contract
      indexing_maps = [affine_map<(b, h, i, d, j) -> (b, h, i, j)>,
                       affine_map<(b, h, i, d, j) -> (b, h, j, d)>,
                       affine_map<(b, h, i, d, j) -> (b, h, i, d)>]
      ins(%p, %v : !s, !t) outs(%oz : !t) -> !t
  return %o : !t
}
