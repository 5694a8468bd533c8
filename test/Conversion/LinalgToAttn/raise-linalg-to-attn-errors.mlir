// RUN: attn-opt %s -raise-linalg-to-attn -split-input-file -verify-diagnostics | FileCheck %s

// What looks like attention but isn't stays, with a remark.

#qk0 = affine_map<(b, h, i, j, d) -> (b, h, i, d)>
#qk1 = affine_map<(b, h, i, j, d) -> (b, h, j, d)>
#qk2 = affine_map<(b, h, i, j, d) -> (b, h, i, j)>
#pv0 = affine_map<(b, h, i, d, j) -> (b, h, i, j)>
#pv1 = affine_map<(b, h, i, d, j) -> (b, h, j, d)>
#pv2 = affine_map<(b, h, i, d, j) -> (b, h, i, d)>
#id = affine_map<(b, h, i, j) -> (b, h, i, j)>
#row = affine_map<(b, h, i, j) -> (b, h, i)>
!t = tensor<2x4x32x64xf32>
!s = tensor<2x4x32x32xf32>
!r = tensor<2x4x32xf32>

// CHECK-LABEL: func @softmax_over_queries
// CHECK-NOT: attn.attention
// CHECK: return
func.func @softmax_over_queries(%q: !t, %k: !t, %v: !t) -> !t {
  %zero = arith.constant 0.0 : f32
  %ninf = arith.constant 0xFF800000 : f32
  %se = tensor.empty() : !s
  %sz = linalg.fill ins(%zero : f32) outs(%se : !s) -> !s
  %s = linalg.contract indexing_maps = [#qk0, #qk1, #qk2] ins(%q, %k : !t, !t) outs(%sz : !s) -> !s
  // expected-note@+1 {{see here}}
  %p = linalg.softmax dimension(2) ins(%s : !s) outs(%se : !s) -> !s
  %oe = tensor.empty() : !t
  %oz = linalg.fill ins(%zero : f32) outs(%oe : !t) -> !t
  // expected-remark@+1 {{not raised to attn.attention: the softmax does not run over the keys}}
  %o = linalg.contract indexing_maps = [#pv0, #pv1, #pv2] ins(%p, %v : !s, !t) outs(%oz : !t) -> !t
  return %o : !t
}

// -----

#qk0 = affine_map<(b, h, i, j, d) -> (b, h, i, d)>
#qk1 = affine_map<(b, h, i, j, d) -> (b, h, j, d)>
#qk2 = affine_map<(b, h, i, j, d) -> (b, h, i, j)>
#pv0 = affine_map<(b, h, i, d, j) -> (b, h, i, j)>
#pv1 = affine_map<(b, h, i, d, j) -> (b, h, j, d)>
#pv2 = affine_map<(b, h, i, d, j) -> (b, h, i, d)>
#id = affine_map<(b, h, i, j) -> (b, h, i, j)>
#row = affine_map<(b, h, i, j) -> (b, h, i)>
!t = tensor<2x4x32x64xf32>
!s = tensor<2x4x32x32xf32>
!r = tensor<2x4x32xf32>

// CHECK-LABEL: func @scores_returned
// CHECK-NOT: attn.attention
// CHECK: return
func.func @scores_returned(%q: !t, %k: !t, %v: !t) -> (!t, !s) {
  %zero = arith.constant 0.0 : f32
  %ninf = arith.constant 0xFF800000 : f32
  %se = tensor.empty() : !s
  %sz = linalg.fill ins(%zero : f32) outs(%se : !s) -> !s
  %s = linalg.contract indexing_maps = [#qk0, #qk1, #qk2] ins(%q, %k : !t, !t) outs(%sz : !s) -> !s
  %p = linalg.softmax dimension(3) ins(%s : !s) outs(%se : !s) -> !s
  %oe = tensor.empty() : !t
  %oz = linalg.fill ins(%zero : f32) outs(%oe : !t) -> !t
  // expected-remark@+1 {{not raised to attn.attention: the scores or weights have another use}}
  %o = linalg.contract indexing_maps = [#pv0, #pv1, #pv2] ins(%p, %v : !s, !t) outs(%oz : !t) -> !t
  // expected-note@+1 {{see here}}
  %u = arith.negf %s : !s
  return %o, %u : !t, !s
}

// -----

#qk0 = affine_map<(b, h, i, j, d) -> (b, h, i, d)>
#qk1 = affine_map<(b, h, i, j, d) -> (b, h, j, d)>
#qk2 = affine_map<(b, h, i, j, d) -> (b, h, i, j)>
#pv0 = affine_map<(b, h, i, d, j) -> (b, h, i, j)>
#pv1 = affine_map<(b, h, i, d, j) -> (b, h, j, d)>
#pv2 = affine_map<(b, h, i, d, j) -> (b, h, i, d)>
#id = affine_map<(b, h, i, j) -> (b, h, i, j)>
#row = affine_map<(b, h, i, j) -> (b, h, i)>
!t = tensor<2x4x32x64xf32>
!s = tensor<2x4x32x32xf32>
!r = tensor<2x4x32xf32>

// CHECK-LABEL: func @weights_used
// CHECK-NOT: attn.attention
// CHECK: return
func.func @weights_used(%q: !t, %k: !t, %v: !t) -> (!t, !s) {
  %zero = arith.constant 0.0 : f32
  %ninf = arith.constant 0xFF800000 : f32
  %se = tensor.empty() : !s
  %sz = linalg.fill ins(%zero : f32) outs(%se : !s) -> !s
  %s = linalg.contract indexing_maps = [#qk0, #qk1, #qk2] ins(%q, %k : !t, !t) outs(%sz : !s) -> !s
  %p = linalg.softmax dimension(3) ins(%s : !s) outs(%se : !s) -> !s
  %oe = tensor.empty() : !t
  %oz = linalg.fill ins(%zero : f32) outs(%oe : !t) -> !t
  // expected-remark@+1 {{not raised to attn.attention: the scores or weights have another use}}
  %o = linalg.contract indexing_maps = [#pv0, #pv1, #pv2] ins(%p, %v : !s, !t) outs(%oz : !t) -> !t
  // expected-note@+1 {{see here}}
  %u = arith.negf %p : !s
  return %o, %u : !t, !s
}

// -----

#qk0 = affine_map<(b, h, i, j, d) -> (b, h, i, d)>
#qk1 = affine_map<(b, h, i, j, d) -> (b, h, j, d)>
#qk2 = affine_map<(b, h, i, j, d) -> (b, h, i, j)>
#pv0 = affine_map<(b, h, i, d, j) -> (b, h, i, j)>
#pv1 = affine_map<(b, h, i, d, j) -> (b, h, j, d)>
#pv2 = affine_map<(b, h, i, d, j) -> (b, h, i, d)>
#id = affine_map<(b, h, i, j) -> (b, h, i, j)>
#row = affine_map<(b, h, i, j) -> (b, h, i)>
!t = tensor<2x4x32x64xf32>
!s = tensor<2x4x32x32xf32>
!r = tensor<2x4x32xf32>

// CHECK-LABEL: func @mask_argument
// CHECK-NOT: attn.attention
// CHECK: return
// expected-note@+1 {{see here}}
func.func @mask_argument(%q: !t, %k: !t, %v: !t, %m: !s) -> !t {
  %zero = arith.constant 0.0 : f32
  %ninf = arith.constant 0xFF800000 : f32
  %se = tensor.empty() : !s
  %sz = linalg.fill ins(%zero : f32) outs(%se : !s) -> !s
  %s = linalg.contract indexing_maps = [#qk0, #qk1, #qk2] ins(%q, %k : !t, !t) outs(%sz : !s) -> !s
  %x = arith.addf %s, %m : !s
  %p = linalg.softmax dimension(3) ins(%x : !s) outs(%se : !s) -> !s
  %oe = tensor.empty() : !t
  %oz = linalg.fill ins(%zero : f32) outs(%oe : !t) -> !t
  // expected-remark@+1 {{not raised to attn.attention: reads a tensor argument elementwise: only masks and biases computed from positions are raised}}
  %o = linalg.contract indexing_maps = [#pv0, #pv1, #pv2] ins(%p, %v : !s, !t) outs(%oz : !t) -> !t
  return %o : !t
}

// -----

#qk0 = affine_map<(b, h, i, j, d) -> (b, h, i, d)>
#qk1 = affine_map<(b, h, i, j, d) -> (b, h, j, d)>
#qk2 = affine_map<(b, h, i, j, d) -> (b, h, i, j)>
#pv0 = affine_map<(b, h, i, d, j) -> (b, h, i, j)>
#pv1 = affine_map<(b, h, i, d, j) -> (b, h, j, d)>
#pv2 = affine_map<(b, h, i, d, j) -> (b, h, i, d)>
#id = affine_map<(b, h, i, j) -> (b, h, i, j)>
#row = affine_map<(b, h, i, j) -> (b, h, i)>
!t = tensor<2x4x32x64xf32>
!s = tensor<2x4x32x32xf32>
!r = tensor<2x4x32xf32>

// CHECK-LABEL: func @maximum_of_other
// CHECK-NOT: attn.attention
// CHECK: return
func.func @maximum_of_other(%q: !t, %k: !t, %v: !t) -> !t {
  %zero = arith.constant 0.0 : f32
  %ninf = arith.constant 0xFF800000 : f32
  %se = tensor.empty() : !s
  %sz = linalg.fill ins(%zero : f32) outs(%se : !s) -> !s
  %s = linalg.contract indexing_maps = [#qk0, #qk1, #qk2] ins(%q, %k : !t, !t) outs(%sz : !s) -> !s
  %n = arith.negf %s : !s
  %re = tensor.empty() : !r
  %ri = linalg.fill ins(%ninf : f32) outs(%re : !r) -> !r
  // expected-note@+1 {{see here}}
  %m = linalg.reduce { arith.maximumf } ins(%n : !s) outs(%ri : !r) dimensions = [3]
  %e = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%s, %m : !s, !r) outs(%se : !s) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %d = arith.subf %a, %b : f32
    %y = math.exp %d : f32
    linalg.yield %y : f32
  } -> !s
  %rz = linalg.fill ins(%zero : f32) outs(%re : !r) -> !r
  %l = linalg.reduce { arith.addf } ins(%e : !s) outs(%rz : !r) dimensions = [3]
  %p = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%e, %l : !s, !r) outs(%se : !s) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %y = arith.divf %a, %b : f32
    linalg.yield %y : f32
  } -> !s
  %oe = tensor.empty() : !t
  %oz = linalg.fill ins(%zero : f32) outs(%oe : !t) -> !t
  // expected-remark@+1 {{not raised to attn.attention: what the softmax subtracts is not the maximum of the scores over the keys}}
  %o = linalg.contract indexing_maps = [#pv0, #pv1, #pv2] ins(%p, %v : !s, !t) outs(%oz : !t) -> !t
  return %o : !t
}

// -----

#qk0 = affine_map<(b, h, i, j, d) -> (b, h, i, d)>
#qk1 = affine_map<(b, h, i, j, d) -> (b, h, j, d)>
#qk2 = affine_map<(b, h, i, j, d) -> (b, h, i, j)>
#pv0 = affine_map<(b, h, i, d, j) -> (b, h, i, j)>
#pv1 = affine_map<(b, h, i, d, j) -> (b, h, j, d)>
#pv2 = affine_map<(b, h, i, d, j) -> (b, h, i, d)>
#id = affine_map<(b, h, i, j) -> (b, h, i, j)>
#row = affine_map<(b, h, i, j) -> (b, h, i)>
!t = tensor<2x4x32x64xf32>
!s = tensor<2x4x32x32xf32>
!r = tensor<2x4x32xf32>

// CHECK-LABEL: func @sum_of_other
// CHECK-NOT: attn.attention
// CHECK: return
func.func @sum_of_other(%q: !t, %k: !t, %v: !t) -> !t {
  %zero = arith.constant 0.0 : f32
  %ninf = arith.constant 0xFF800000 : f32
  %se = tensor.empty() : !s
  %sz = linalg.fill ins(%zero : f32) outs(%se : !s) -> !s
  %s = linalg.contract indexing_maps = [#qk0, #qk1, #qk2] ins(%q, %k : !t, !t) outs(%sz : !s) -> !s
  %re = tensor.empty() : !r
  %ri = linalg.fill ins(%ninf : f32) outs(%re : !r) -> !r
  %m = linalg.reduce { arith.maximumf } ins(%s : !s) outs(%ri : !r) dimensions = [3]
  %e = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%s, %m : !s, !r) outs(%se : !s) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %d = arith.subf %a, %b : f32
    %y = math.exp %d : f32
    linalg.yield %y : f32
  } -> !s
  %rz = linalg.fill ins(%zero : f32) outs(%re : !r) -> !r
  // expected-note@+1 {{see here}}
  %l = linalg.reduce { arith.addf } ins(%s : !s) outs(%rz : !r) dimensions = [3]
  %p = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%e, %l : !s, !r) outs(%se : !s) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %y = arith.divf %a, %b : f32
    linalg.yield %y : f32
  } -> !s
  %oe = tensor.empty() : !t
  %oz = linalg.fill ins(%zero : f32) outs(%oe : !t) -> !t
  // expected-remark@+1 {{not raised to attn.attention: the weights are not divided by the sum of their exponentials}}
  %o = linalg.contract indexing_maps = [#pv0, #pv1, #pv2] ins(%p, %v : !s, !t) outs(%oz : !t) -> !t
  return %o : !t
}

// -----

#qk0 = affine_map<(b, h, i, j, d) -> (b, h, i, d)>
#qk1 = affine_map<(b, h, i, j, d) -> (b, h, j, d)>
#qk2 = affine_map<(b, h, i, j, d) -> (b, h, i, j)>
#pv0 = affine_map<(b, h, i, d, j) -> (b, h, i, j)>
#pv1 = affine_map<(b, h, i, d, j) -> (b, h, j, d)>
#pv2 = affine_map<(b, h, i, d, j) -> (b, h, i, d)>
#id = affine_map<(b, h, i, j) -> (b, h, i, j)>
#row = affine_map<(b, h, i, j) -> (b, h, i)>
!t = tensor<2x4x32x64xf32>
!s = tensor<2x4x32x32xf32>
!r = tensor<2x4x32xf32>

// CHECK-LABEL: func @sum_over_queries
// CHECK-NOT: attn.attention
// CHECK: return
func.func @sum_over_queries(%q: !t, %k: !t, %v: !t) -> !t {
  %zero = arith.constant 0.0 : f32
  %ninf = arith.constant 0xFF800000 : f32
  %se = tensor.empty() : !s
  %sz = linalg.fill ins(%zero : f32) outs(%se : !s) -> !s
  %s = linalg.contract indexing_maps = [#qk0, #qk1, #qk2] ins(%q, %k : !t, !t) outs(%sz : !s) -> !s
  %re = tensor.empty() : !r
  %ri = linalg.fill ins(%ninf : f32) outs(%re : !r) -> !r
  %m = linalg.reduce { arith.maximumf } ins(%s : !s) outs(%ri : !r) dimensions = [3]
  %e = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%s, %m : !s, !r) outs(%se : !s) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %d = arith.subf %a, %b : f32
    %y = math.exp %d : f32
    linalg.yield %y : f32
  } -> !s
  %rz = linalg.fill ins(%zero : f32) outs(%re : !r) -> !r
  // expected-note@+1 {{see here}}
  %l = linalg.reduce { arith.addf } ins(%e : !s) outs(%rz : !r) dimensions = [2]
  %p = linalg.generic {indexing_maps = [#id, affine_map<(b, h, i, j) -> (b, h, j)>, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%e, %l : !s, !r) outs(%se : !s) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %y = arith.divf %a, %b : f32
    linalg.yield %y : f32
  } -> !s
  %oe = tensor.empty() : !t
  %oz = linalg.fill ins(%zero : f32) outs(%oe : !t) -> !t
  // expected-remark@+1 {{not raised to attn.attention: the softmax does not run over the keys}}
  %o = linalg.contract indexing_maps = [#pv0, #pv1, #pv2] ins(%p, %v : !s, !t) outs(%oz : !t) -> !t
  return %o : !t
}

// -----

#qk0 = affine_map<(b, h, i, j, d) -> (b, h, i, d)>
#qk1 = affine_map<(b, h, i, j, d) -> (b, h, j, d)>
#qk2 = affine_map<(b, h, i, j, d) -> (b, h, i, j)>
#pv0 = affine_map<(b, h, i, d, j) -> (b, h, i, j)>
#pv1 = affine_map<(b, h, i, d, j) -> (b, h, j, d)>
#pv2 = affine_map<(b, h, i, d, j) -> (b, h, i, d)>
#id = affine_map<(b, h, i, j) -> (b, h, i, j)>
#row = affine_map<(b, h, i, j) -> (b, h, i)>
!t = tensor<2x4x32x64xf32>
!s = tensor<2x4x32x32xf32>
!r = tensor<2x4x32xf32>

// CHECK-LABEL: func @unnormalized
// CHECK-NOT: attn.attention
// CHECK: return
func.func @unnormalized(%q: !t, %k: !t, %v: !t) -> !t {
  %zero = arith.constant 0.0 : f32
  %ninf = arith.constant 0xFF800000 : f32
  %se = tensor.empty() : !s
  %sz = linalg.fill ins(%zero : f32) outs(%se : !s) -> !s
  %s = linalg.contract indexing_maps = [#qk0, #qk1, #qk2] ins(%q, %k : !t, !t) outs(%sz : !s) -> !s
  // expected-note@+1 {{see here}}
  %p = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%s : !s) outs(%se : !s) {
  ^bb0(%a: f32, %out: f32):
    %y = math.exp %a : f32
    linalg.yield %y : f32
  } -> !s
  %oe = tensor.empty() : !t
  %oz = linalg.fill ins(%zero : f32) outs(%oe : !t) -> !t
  // expected-remark@+1 {{not raised to attn.attention: the weights are not a softmax: expected exp(x - max) divided by its sum over the keys}}
  %o = linalg.contract indexing_maps = [#pv0, #pv1, #pv2] ins(%p, %v : !s, !t) outs(%oz : !t) -> !t
  return %o : !t
}

// -----

#qk0 = affine_map<(b, h, i, j, d) -> (b, h, i, d)>
#qk1 = affine_map<(b, h, i, j, d) -> (b, h, j, d)>
#qk2 = affine_map<(b, h, i, j, d) -> (b, h, i, j)>
#pv0 = affine_map<(b, h, i, d, j) -> (b, h, i, j)>
#pv1 = affine_map<(b, h, i, d, j) -> (b, h, j, d)>
#pv2 = affine_map<(b, h, i, d, j) -> (b, h, i, d)>
#id = affine_map<(b, h, i, j) -> (b, h, i, j)>
#row = affine_map<(b, h, i, j) -> (b, h, i)>
!t = tensor<2x4x32x64xf32>
!s = tensor<2x4x32x32xf32>
!r = tensor<2x4x32xf32>

// CHECK-LABEL: func @accumulates
// CHECK-NOT: attn.attention
// CHECK: return
func.func @accumulates(%q: !t, %k: !t, %v: !t) -> !t {
  %zero = arith.constant 0.0 : f32
  %ninf = arith.constant 0xFF800000 : f32
  %se = tensor.empty() : !s
  %sz = linalg.fill ins(%zero : f32) outs(%se : !s) -> !s
  %s = linalg.contract indexing_maps = [#qk0, #qk1, #qk2] ins(%q, %k : !t, !t) outs(%sz : !s) -> !s
  %p = linalg.softmax dimension(3) ins(%s : !s) outs(%se : !s) -> !s
  %oe = tensor.empty() : !t
  %oz = linalg.fill ins(%zero : f32) outs(%oe : !t) -> !t
  // expected-note@+2 {{see here}}
  // expected-remark@+1 {{not raised to attn.attention: the matrix product adds to something other than zero}}
  %o = linalg.contract indexing_maps = [#pv0, #pv1, #pv2] ins(%p, %v : !s, !t) outs(%q : !t) -> !t
  return %o : !t
}

// -----

#qk0 = affine_map<(b, h, i, j, d) -> (b, h, i, d)>
#qk1 = affine_map<(b, h, i, j, d) -> (b, h, j, d)>
#qk2 = affine_map<(b, h, i, j, d) -> (b, h, i, j)>
#pv0 = affine_map<(b, h, i, d, j) -> (b, h, i, j)>
#pv1 = affine_map<(b, h, i, d, j) -> (b, h, j, d)>
#pv2 = affine_map<(b, h, i, d, j) -> (b, h, i, d)>
#id = affine_map<(b, h, i, j) -> (b, h, i, j)>
#row = affine_map<(b, h, i, j) -> (b, h, i)>
!t = tensor<2x4x32x64xf32>
!s = tensor<2x4x32x32xf32>
!r = tensor<2x4x32xf32>

// CHECK-LABEL: func @runtime_scale
// CHECK-NOT: attn.attention
// CHECK: return
// expected-note@+1 {{see here}}
func.func @runtime_scale(%q: !t, %k: !t, %v: !t, %c: f32) -> !t {
  %zero = arith.constant 0.0 : f32
  %ninf = arith.constant 0xFF800000 : f32
  %se = tensor.empty() : !s
  %sz = linalg.fill ins(%zero : f32) outs(%se : !s) -> !s
  %s = linalg.contract indexing_maps = [#qk0, #qk1, #qk2] ins(%q, %k : !t, !t) outs(%sz : !s) -> !s
  %x = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%s : !s) outs(%se : !s) {
  ^bb0(%a: f32, %out: f32):
    %y = arith.mulf %a, %c : f32
    linalg.yield %y : f32
  } -> !s
  %p = linalg.softmax dimension(3) ins(%x : !s) outs(%se : !s) -> !s
  %oe = tensor.empty() : !t
  %oz = linalg.fill ins(%zero : f32) outs(%oe : !t) -> !t
  // expected-remark@+1 {{not raised to attn.attention: depends on a scalar that is not a constant}}
  %o = linalg.contract indexing_maps = [#pv0, #pv1, #pv2] ins(%p, %v : !s, !t) outs(%oz : !t) -> !t
  return %o : !t
}

// -----

#qk0 = affine_map<(b, h, i, j, d) -> (b, h, i, d)>
#qk1 = affine_map<(b, h, i, j, d) -> (b, h, j, d)>
#qk2 = affine_map<(b, h, i, j, d) -> (b, h, i, j)>
#pv0 = affine_map<(b, h, i, d, j) -> (b, h, i, j)>
#pv1 = affine_map<(b, h, i, d, j) -> (b, h, j, d)>
#pv2 = affine_map<(b, h, i, d, j) -> (b, h, i, d)>
#id = affine_map<(b, h, i, j) -> (b, h, i, j)>
#row = affine_map<(b, h, i, j) -> (b, h, i)>
!t = tensor<2x4x32x64xf32>
!s = tensor<2x4x32x32xf32>
!r = tensor<2x4x32xf32>

// CHECK-LABEL: func @mask_table
// CHECK-NOT: attn.attention
// CHECK: return
func.func @mask_table(%q: !t, %k: !t, %v: !t) -> !t {
  %zero = arith.constant 0.0 : f32
  %ninf = arith.constant 0xFF800000 : f32
  %se = tensor.empty() : !s
  %sz = linalg.fill ins(%zero : f32) outs(%se : !s) -> !s
  %s = linalg.contract indexing_maps = [#qk0, #qk1, #qk2] ins(%q, %k : !t, !t) outs(%sz : !s) -> !s
  // expected-note@+1 {{see here}}
  %m = arith.constant dense<[[[[0.0, 0xFF800000], [0.0, 0.0]]]]> : tensor<1x1x2x2xf32>
  %x = linalg.generic {indexing_maps = [#id, affine_map<(b, h, i, j) -> (0, 0, 0, 0)>, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%s, %m : !s, tensor<1x1x2x2xf32>) outs(%se : !s) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %y = arith.addf %a, %b : f32
    linalg.yield %y : f32
  } -> !s
  %p = linalg.softmax dimension(3) ins(%x : !s) outs(%se : !s) -> !s
  %oe = tensor.empty() : !t
  %oz = linalg.fill ins(%zero : f32) outs(%oe : !t) -> !t
  // expected-remark@+1 {{not raised to attn.attention: can't look through 'arith.constant'; only masks and biases computed from positions are raised}}
  %o = linalg.contract indexing_maps = [#pv0, #pv1, #pv2] ins(%p, %v : !s, !t) outs(%oz : !t) -> !t
  return %o : !t
}

// -----

#id = affine_map<(b, h, i, j) -> (b, h, i, j)>
!t = tensor<8x32x64xbf16>
!s = tensor<8x32x32xf32>

// Rounding q, k, v's products to their type would lose what f32 keeps here.

// CHECK-LABEL: func @wide_output
// CHECK-NOT: attn.attention
// CHECK: return
func.func @wide_output(%q: !t, %k: tensor<8x64x32xbf16>, %v: !t) -> tensor<8x32x64xf32> {
  %zero = arith.constant 0.0 : f32
  %se = tensor.empty() : !s
  %sz = linalg.fill ins(%zero : f32) outs(%se : !s) -> !s
  %s = linalg.batch_matmul ins(%q, %k : !t, tensor<8x64x32xbf16>) outs(%sz : !s) -> !s
  %p = linalg.softmax dimension(2) ins(%s : !s) outs(%se : !s) -> !s
  %oe = tensor.empty() : tensor<8x32x64xf32>
  %oz = linalg.fill ins(%zero : f32) outs(%oe : tensor<8x32x64xf32>) -> tensor<8x32x64xf32>
  // expected-note@+2 {{see here}}
  // expected-remark@+1 {{not raised to attn.attention: q, k and v are not tensors of the output's element type with the same batch and head axes}}
  %o = linalg.batch_matmul ins(%p, %v : !s, !t) outs(%oz : tensor<8x32x64xf32>) -> tensor<8x32x64xf32>
  return %o : tensor<8x32x64xf32>
}

// -----

// Two matrix products with something else between them: no remark.

// CHECK-LABEL: func @mlp
// CHECK: linalg.matmul
// CHECK: linalg.matmul
func.func @mlp(%x: tensor<8x16xf32>, %a: tensor<16x32xf32>, %b: tensor<32x16xf32>) -> tensor<8x16xf32> {
  %zero = arith.constant 0.0 : f32
  %he = tensor.empty() : tensor<8x32xf32>
  %hz = linalg.fill ins(%zero : f32) outs(%he : tensor<8x32xf32>) -> tensor<8x32xf32>
  %h = linalg.matmul ins(%x, %a : tensor<8x16xf32>, tensor<16x32xf32>) outs(%hz : tensor<8x32xf32>) -> tensor<8x32xf32>
  %g = math.tanh %h : tensor<8x32xf32>
  %oe = tensor.empty() : tensor<8x16xf32>
  %oz = linalg.fill ins(%zero : f32) outs(%oe : tensor<8x16xf32>) -> tensor<8x16xf32>
  %o = linalg.matmul ins(%g, %b : tensor<8x32xf32>, tensor<32x16xf32>) outs(%oz : tensor<8x16xf32>) -> tensor<8x16xf32>
  return %o : tensor<8x16xf32>
}
