// RUN: attn-opt %s -canonicalize -split-input-file | FileCheck %s
// RUN: attn-opt %s -cse -split-input-file | FileCheck %s --check-prefix=CSE

!t = tensor<1x2x8x32xf32>

// CHECK-LABEL: func @drop_identity_score_mod
// CHECK: attn.attention
// CHECK-NOT: score_mod
// CHECK: return
func.func @drop_identity_score_mod(%q: !t) -> !t {
  %r = attn.attention ins(%q, %q, %q : !t, !t, !t) outs(%q : !t)
    score_mod (%s: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      %zero = arith.constant 0 : i32
      %unused = arith.addi %i, %zero : i32
      attn.yield %s : f32
    } -> !t
  return %r : !t
}

// -----

!t = tensor<1x2x8x32xf32>

// The rule folds to true, in the region.

// CHECK-LABEL: func @drop_true_mask_mod
// CHECK: attn.attention
// CHECK-NOT: mask_mod
// CHECK: return
func.func @drop_true_mask_mod(%q: !t) -> !t {
  %r = attn.attention ins(%q, %q, %q : !t, !t, !t) outs(%q : !t)
    mask_mod (%b: i32, %h: i32, %i: i32, %j: i32) {
      %one = arith.constant 1 : i32
      %two = arith.constant 2 : i32
      %keep = arith.cmpi slt, %one, %two : i32
      attn.yield %keep : i1
    } -> !t
  return %r : !t
}

// -----

!t = tensor<1x2x8x32xf32>

// A rule that hides everything stays.

// CHECK-LABEL: func @keep_false_mask_mod
// CHECK: mask_mod
// CHECK: %[[FALSE:.*]] = arith.constant false
// CHECK: attn.yield %[[FALSE]]
func.func @keep_false_mask_mod(%q: !t) -> !t {
  %r = attn.attention ins(%q, %q, %q : !t, !t, !t) outs(%q : !t)
    mask_mod (%b: i32, %h: i32, %i: i32, %j: i32) {
      %keep = arith.cmpi slt, %i, %i : i32
      attn.yield %keep : i1
    } -> !t
  return %r : !t
}

// -----

!t = tensor<1x2x8x32xf32>

// CHECK-LABEL: func @fold_scale_operand
// CHECK-NOT: arith.constant
// CHECK: attn.attention
// CHECK-NOT: scale(
// CHECK-SAME: {scale = 5.000000e-01 : f32}
func.func @fold_scale_operand(%q: !t) -> !t {
  %scale = arith.constant 0.5 : f32
  %r = attn.attention ins(%q, %q, %q : !t, !t, !t) scale(%scale : f32)
      outs(%q : !t) -> !t
  return %r : !t
}

// -----

!t = tensor<1x2x8x32xf32>

// The attribute can't hold infinity, so the operand stays.

// CHECK-LABEL: func @keep_infinite_scale
// CHECK: scale(%{{.*}} : f32)
func.func @keep_infinite_scale(%q: !t) -> !t {
  %scale = arith.constant 0x7F800000 : f32
  %r = attn.attention ins(%q, %q, %q : !t, !t, !t) scale(%scale : f32)
      outs(%q : !t) -> !t
  return %r : !t
}

// -----

!t = tensor<1x2x8x32xf32>

// Constants neither leave the regions nor come in from outside.

// CHECK-LABEL: func @constants_stay
// CHECK: arith.constant 3 : i32
// CHECK: attn.attention
// CHECK: mask_mod
// CHECK-NEXT: arith.constant 3 : i32
// CSE-LABEL: func @constants_stay
// CSE: arith.constant 3 : i32
// CSE: attn.attention
// CSE: mask_mod
// CSE-NEXT: arith.constant 3 : i32
func.func @constants_stay(%q: !t) -> (!t, i32) {
  %outside = arith.constant 3 : i32
  %r = attn.attention ins(%q, %q, %q : !t, !t, !t) outs(%q : !t)
    mask_mod (%b: i32, %h: i32, %i: i32, %j: i32) {
      %three = arith.constant 3 : i32
      %keep = arith.cmpi sle, %j, %three : i32
      attn.yield %keep : i1
    } -> !t
  return %r, %outside : !t, i32
}

// -----

!t = tensor<1x2x8x32xf32>

// CHECK-LABEL: func @dead
// CHECK-NOT: attn.attention
func.func @dead(%q: !t) {
  %r = attn.attention ins(%q, %q, %q : !t, !t, !t) outs(%q : !t) -> !t
  return
}

// -----

!m = memref<1x2x8x32xf32>

// Writing memory is an effect.

// CHECK-LABEL: func @not_dead
// CHECK: attn.attention
func.func @not_dead(%q: !m, %o: !m) {
  attn.attention ins(%q, %q, %q : !m, !m, !m) outs(%o : !m)
  return
}
