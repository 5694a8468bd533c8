// RUN: attn-opt %s -split-input-file -verify-diagnostics -allow-unregistered-dialect

!q = tensor<2x4x8x64xf32>
func.func @batch_of_k(%q: !q, %k: tensor<3x4x8x64xf32>) -> !q {
  // expected-error@+1 {{batch sizes differ: q has 2, k has 3}}
  %r = attn.attention ins(%q, %k, %k : !q, tensor<3x4x8x64xf32>, tensor<3x4x8x64xf32>) outs(%q : !q) -> !q
  return %r : !q
}

// -----

!q = tensor<2x4x8x64xf32>
func.func @batch_of_v(%q: !q, %v: tensor<3x4x8x64xf32>) -> !q {
  // expected-error@+1 {{batch sizes differ: k has 2, v has 3}}
  %r = attn.attention ins(%q, %q, %v : !q, !q, tensor<3x4x8x64xf32>) outs(%q : !q) -> !q
  return %r : !q
}

// -----

!q = tensor<2x4x8x64xf32>
!o = tensor<3x4x8x64xf32>
func.func @batch_of_o(%q: !q, %o: !o) -> !o {
  // expected-error@+1 {{batch sizes differ: q has 2, o has 3}}
  %r = attn.attention ins(%q, %q, %q : !q, !q, !q) outs(%o : !o) -> !o
  return %r : !o
}

// -----

!q = tensor<2x4x8x64xf32>
func.func @heads_of_v(%q: !q, %v: tensor<2x2x8x64xf32>) -> !q {
  // expected-error@+1 {{head counts differ: k has 4, v has 2}}
  %r = attn.attention ins(%q, %q, %v : !q, !q, tensor<2x2x8x64xf32>) outs(%q : !q) -> !q
  return %r : !q
}

// -----

!q = tensor<2x4x8x64xf32>
!o = tensor<2x2x8x64xf32>
func.func @heads_of_o(%q: !q, %o: !o) -> !o {
  // expected-error@+1 {{head counts differ: q has 4, o has 2}}
  %r = attn.attention ins(%q, %q, %q : !q, !q, !q) outs(%o : !o) -> !o
  return %r : !o
}

// -----

!q = tensor<2x4x8x64xf32>
!o = tensor<2x4x9x64xf32>
func.func @query_length(%q: !q, %o: !o) -> !o {
  // expected-error@+1 {{query lengths differ: q has 8, o has 9}}
  %r = attn.attention ins(%q, %q, %q : !q, !q, !q) outs(%o : !o) -> !o
  return %r : !o
}

// -----

!q = tensor<2x4x8x64xf32>
func.func @key_length(%q: !q, %v: tensor<2x4x9x64xf32>) -> !q {
  // expected-error@+1 {{key lengths differ: k has 8, v has 9}}
  %r = attn.attention ins(%q, %q, %v : !q, !q, tensor<2x4x9x64xf32>) outs(%q : !q) -> !q
  return %r : !q
}

// -----

!q = tensor<2x4x8x64xf32>
func.func @qk_head_dim(%q: !q, %k: tensor<2x4x8x32xf32>) -> !q {
  // expected-error@+1 {{head dimensions differ: q has 64, k has 32}}
  %r = attn.attention ins(%q, %k, %q : !q, tensor<2x4x8x32xf32>, !q) outs(%q : !q) -> !q
  return %r : !q
}

// -----

!q = tensor<2x4x8x64xf32>
func.func @v_head_dim(%q: !q, %v: tensor<2x4x8x32xf32>) -> !q {
  // expected-error@+1 {{head dimensions differ: v has 32, o has 64}}
  %r = attn.attention ins(%q, %q, %v : !q, !q, tensor<2x4x8x32xf32>) outs(%q : !q) -> !q
  return %r : !q
}

// -----

!q = tensor<2x?x8x64xf32>
func.func @dynamic_heads(%q: !q) -> !q {
  // expected-error@+1 {{q must have a static number of heads}}
  %r = attn.attention ins(%q, %q, %q : !q, !q, !q) outs(%q : !q) -> !q
  return %r : !q
}

// -----

!q = tensor<2x4x8x64xf32>
!v = tensor<2x4x8x?xf32>
func.func @dynamic_head_dim(%q: !q, %v: !v) -> !v {
  // expected-error@+1 {{v must have a static head dimension}}
  %r = attn.attention ins(%q, %q, %v : !q, !q, !v) outs(%v : !v) -> !v
  return %r : !v
}

// -----

!q = tensor<2x6x8x64xf32>
!k = tensor<2x4x8x64xf32>
func.func @grouped_heads(%q: !q, %k: !k) -> !q {
  // expected-error@+1 {{the number of query heads (6) must be a multiple of the number of key/value heads (4)}}
  %r = attn.attention ins(%q, %k, %k : !q, !k, !k) outs(%q : !q) -> !q
  return %r : !q
}

// -----

!q = tensor<2x6x8x64xf32>
!k = tensor<2x0x8x64xf32>
func.func @no_kv_heads(%q: !q, %k: !k) -> !q {
  // expected-error@+1 {{the number of query heads (6) must be a multiple of the number of key/value heads (0)}}
  %r = attn.attention ins(%q, %k, %k : !q, !k, !k) outs(%q : !q) -> !q
  return %r : !q
}

// -----

!q = tensor<2x4x8x64xf32>
func.func @rank(%q: !q, %k: tensor<8x64xf32>) -> !q {
  // expected-error@+1 {{operand #1 must be rank-4 tensor or memref, but got 'tensor<8x64xf32>'}}
  %r = attn.attention ins(%q, %k, %q : !q, tensor<8x64xf32>, !q) outs(%q : !q) -> !q
  return %r : !q
}

// -----

!q = tensor<*xf32>
func.func @unranked(%q: !q) -> !q {
  // expected-error@+1 {{operand #0 must be rank-4 tensor or memref, but got 'tensor<*xf32>'}}
  %r = attn.attention ins(%q, %q, %q : !q, !q, !q) outs(%q : !q) -> !q
  return %r : !q
}

// -----

!q = tensor<2x4x8x64xi32>
func.func @integers(%q: !q) -> !q {
  // expected-error@+1 {{q must have a floating-point element type, not 'i32'}}
  %r = attn.attention ins(%q, %q, %q : !q, !q, !q) outs(%q : !q) -> !q
  return %r : !q
}

// -----

!q = tensor<2x4x8x64xf32>
!o = tensor<2x4x8x64xbf16>
func.func @element_types(%q: !q, %o: !o) -> !o {
  // expected-error@+1 {{element types differ: q has 'f32', o has 'bf16'}}
  %r = attn.attention ins(%q, %q, %q : !q, !q, !q) outs(%o : !o) -> !o
  return %r : !o
}

// -----

!q = tensor<2x4x8x64xbf16>
!l = tensor<2x4x8xbf16>
func.func @lse_type(%q: !q, %l: !l) -> (!q, !l) {
  // expected-error@+1 {{lse must be a rank-3 f32 value [B, Hq, Nq], not 'tensor<2x4x8xbf16>'}}
  %r:2 = attn.attention ins(%q, %q, %q : !q, !q, !q) outs(%q, %l : !q, !l) -> !q, !l
  return %r#0, %r#1 : !q, !l
}

// -----

!q = tensor<2x4x8x64xbf16>
!l = tensor<2x4x9xf32>
func.func @lse_shape(%q: !q, %l: !l) -> (!q, !l) {
  // expected-error@+1 {{sizes differ: q has 8, lse has 9}}
  %r:2 = attn.attention ins(%q, %q, %q : !q, !q, !q) outs(%q, %l : !q, !l) -> !q, !l
  return %r#0, %r#1 : !q, !l
}

// -----

!q = tensor<2x4x8x64xf32>
!m = memref<2x4x8x64xf32>
func.func @mixed_forms(%q: !q, %m: !m) -> !q {
  // expected-error@+1 {{mixes tensors and memrefs}}
  %r = attn.attention ins(%q, %m, %m : !q, !m, !m) outs(%q : !q) -> !q
  return %r : !q
}

// -----

!m = memref<2x4x8x64xf32>
func.func @result_of_memory_form(%m: !m, %t: tensor<2x4x8x64xf32>) {
  // expected-error@+1 {{must have the types of its outs as results (none for memrefs), but has ('tensor<2x4x8x64xf32>')}}
  %r = attn.attention ins(%m, %m, %m : !m, !m, !m) outs(%m : !m) -> tensor<2x4x8x64xf32>
  return
}

// -----

!q = tensor<2x4x8x64xf32>
func.func @result_type(%q: !q) -> tensor<2x4x?x64xf32> {
  // expected-error@+1 {{must have the types of its outs as results (none for memrefs), but has ('tensor<2x4x?x64xf32>')}}
  %r = attn.attention ins(%q, %q, %q : !q, !q, !q) outs(%q : !q) -> tensor<2x4x?x64xf32>
  return %r : tensor<2x4x?x64xf32>
}

// -----

!q = tensor<2x4x8x64xf32>
func.func @two_scales(%q: !q, %s: f32) -> !q {
  // expected-error@+1 {{has both a scale attribute and a scale operand}}
  %r = attn.attention ins(%q, %q, %q : !q, !q, !q) scale(%s : f32) outs(%q : !q) {scale = 1.0 : f32} -> !q
  return %r : !q
}

// -----

!q = tensor<2x4x8x64xf32>
func.func @infinite_scale(%q: !q) -> !q {
  // expected-error@+1 {{scale must be finite}}
  %r = attn.attention ins(%q, %q, %q : !q, !q, !q) outs(%q : !q) {scale = 0x7F800000 : f32} -> !q
  return %r : !q
}

// -----

!q = tensor<2x4x8x64xf32>
func.func @mask_args(%q: !q) -> !q {
  // expected-error@+1 {{mask_mod must take ('i32', 'i32', 'i32', 'i32'), but takes ('i32', 'i32')}}
  %r = attn.attention ins(%q, %q, %q : !q, !q, !q) outs(%q : !q)
    mask_mod (%i: i32, %j: i32) {
      %keep = arith.cmpi sle, %j, %i : i32
      attn.yield %keep : i1
    } -> !q
  return %r : !q
}

// -----

!q = tensor<2x4x8x64xf32>
func.func @capture_args(%q: !q, %t: tensor<4xf32>) -> !q {
  // expected-error@+1 {{score_mod must take ('f32', 'i32', 'i32', 'i32', 'i32', 'tensor<4xf32>'), but takes ('f32', 'i32', 'i32', 'i32', 'i32')}}
  %r = attn.attention ins(%q, %q, %q, %t : !q, !q, !q, tensor<4xf32>) outs(%q : !q)
    score_mod (%s: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      attn.yield %s : f32
    } -> !q
  return %r : !q
}

// -----

!q = tensor<2x4x8x64xf32>
func.func @mask_yields_score(%q: !q) -> !q {
  %r = attn.attention ins(%q, %q, %q : !q, !q, !q) outs(%q : !q)
    mask_mod (%b: i32, %h: i32, %i: i32, %j: i32) {
      %f = arith.sitofp %i : i32 to f32
      // expected-error@+1 {{must yield one 'i1' from mask_mod}}
      attn.yield %f : f32
    } -> !q
  return %r : !q
}

// -----

!q = tensor<2x4x8x64xf32>
func.func @impure(%q: !q, %m: memref<f32>) -> !q {
  %r = attn.attention ins(%q, %q, %q : !q, !q, !q) outs(%q : !q)
    score_mod (%s: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      // expected-error@+1 {{is not allowed in score_mod: its body must be pure scalar arith and math}}
      %a = memref.alloc() : memref<f32>
      attn.yield %s : f32
    } -> !q
  return %r : !q
}

// -----

!q = tensor<2x4x8x64xf32>
func.func @not_scalar(%q: !q) -> !q {
  %r = attn.attention ins(%q, %q, %q : !q, !q, !q) outs(%q : !q)
    score_mod (%s: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      // expected-error@+1 {{must work on i1, i8, i16, i32, i64, index, f16, bf16 or f32 in score_mod, not on 'vector<4xf32>'}}
      %a = arith.constant dense<1.0> : vector<4xf32>
      attn.yield %s : f32
    } -> !q
  return %r : !q
}

// -----

!q = tensor<2x4x8x64xf32>
func.func @unknown_op(%q: !q) -> !q {
  %r = attn.attention ins(%q, %q, %q : !q, !q, !q) outs(%q : !q)
    score_mod (%s: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      // expected-error@+1 {{'foo.bar' op is not allowed in score_mod}}
      %a = "foo.bar"(%s) : (f32) -> f32
      attn.yield %a : f32
    } -> !q
  return %r : !q
}

// -----

!q = tensor<2x4x8x64xf32>
func.func @value_from_above(%q: !q, %x: f32) -> !q {
  %r = attn.attention ins(%q, %q, %q : !q, !q, !q) outs(%q : !q)
    score_mod (%s: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      // expected-error@+1 {{use of undeclared SSA value name}}
      %y = arith.addf %s, %x : f32
      attn.yield %y : f32
    } -> !q
  return %r : !q
}

// -----

// A value of one region used in the other, where the op doesn't parse.

!q = tensor<2x4x8x64xf32>
func.func @value_of_other_region(%q: !q) -> !q {
  %r = attn.attention ins(%q, %q, %q : !q, !q, !q) outs(%q : !q)
    score_mod (%s: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      // expected-error@+1 {{use of undeclared SSA value name}}
      %y = arith.addf %s, %x : f32
      attn.yield %y : f32
    }
    mask_mod (%b: i32, %h: i32, %i: i32, %j: i32) {
      %x = arith.sitofp %i : i32 to f32
      %c = arith.cmpi sle, %i, %j : i32
      attn.yield %c : i1
    } -> !q
  return %r : !q
}

// -----

// Another dialect's terminator would surprise every lowering.

!q = tensor<2x4x8x64xf32>
func.func @foreign_terminator(%q: !q) -> !q {
  // expected-error@+1 {{score_mod must end in attn.yield}}
  %r = attn.attention ins(%q, %q, %q : !q, !q, !q) outs(%q : !q)
    score_mod (%s: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      llvm.return %s : f32
    } -> !q
  return %r : !q
}

// -----

!q = tensor<2x4x8x64xf32>
func.func @two_blocks(%q: !q) -> !q {
  // expected-error@+1 {{expects region #0 to have 0 or 1 blocks}}
  %r = attn.attention ins(%q, %q, %q : !q, !q, !q) outs(%q : !q)
    score_mod (%s: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      cf.br ^next
    ^next:
      attn.yield %s : f32
    } -> !q
  return %r : !q
}

// -----

!q = tensor<2x4x8x64xf32>
func.func @segment_sizes(%q: !q) -> !q {
  // expected-error@+1 {{operand count (4) does not match with the total size (3) specified in attribute 'operandSegmentSizes'}}
  %r = "attn.attention"(%q, %q, %q, %q)
    <{operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>}>
    ({}, {}) : (!q, !q, !q, !q) -> !q
  return %r : !q
}

// -----

!q = tensor<2x4x8x64xf32>
func.func @no_output(%q: !q) -> !q {
  // expected-error@+1 {{must have one o operand: see operandSegmentSizes}}
  %r = "attn.attention"(%q, %q, %q, %q)
    <{operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>}>
    ({}, {}) : (!q, !q, !q, !q) -> !q
  return %r : !q
}

// -----

!q = tensor<2x4x8x64xf32>
func.func @missing_region(%q: !q) -> !q {
  // expected-error@+1 {{expected 2 regions}}
  %r = "attn.attention"(%q, %q, %q, %q)
    <{operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0>}>
    ({}) : (!q, !q, !q, !q) -> !q
  return %r : !q
}

// -----

func.func @q_len_outside() -> i32 {
  // expected-error@+1 {{is legal only in the score_mod or mask_mod of attn.attention}}
  %n = attn.q_len : i32
  return %n : i32
}

// -----

func.func @capture_load_outside(%t: tensor<4xf32>, %i: i32) -> f32 {
  // expected-error@+1 {{is legal only in the score_mod or mask_mod of attn.attention}}
  %x = attn.capture_load %t[%i] : tensor<4xf32> -> f32
  return %x : f32
}

// -----

!q = tensor<2x4x8x64xf32>
func.func @capture_rank(%q: !q, %t: tensor<4x8xf32>) -> !q {
  %r = attn.attention ins(%q, %q, %q, %t : !q, !q, !q, tensor<4x8xf32>) outs(%q : !q)
    score_mod (%s: f32, %b: i32, %h: i32, %i: i32, %j: i32, %c: tensor<4x8xf32>) {
      // expected-error@+1 {{has 1 indices for a rank-2 capture}}
      %x = attn.capture_load %c[%h] : tensor<4x8xf32> -> f32
      attn.yield %x : f32
    } -> !q
  return %r : !q
}

// -----

!q = tensor<2x4x8x64xf32>
func.func @capture_type(%q: !q, %t: tensor<4xf16>) -> !q {
  %r = attn.attention ins(%q, %q, %q, %t : !q, !q, !q, tensor<4xf16>) outs(%q : !q)
    score_mod (%s: f32, %b: i32, %h: i32, %i: i32, %j: i32, %c: tensor<4xf16>) {
      // expected-error@+1 {{must yield the capture's element type 'f16'}}
      %x = attn.capture_load %c[%h] : tensor<4xf16> -> f32
      attn.yield %x : f32
    } -> !q
  return %r : !q
}

// -----

!q = tensor<2x4x8x64xf32>
func.func @capture_negative_index(%q: !q, %t: tensor<?xf32>) -> !q {
  %r = attn.attention ins(%q, %q, %q, %t : !q, !q, !q, tensor<?xf32>) outs(%q : !q)
    score_mod (%s: f32, %b: i32, %h: i32, %i: i32, %j: i32, %c: tensor<?xf32>) {
      %minus_one = arith.constant -1 : i32
      // expected-error@+1 {{index -1 is out of range for dimension 0 of 'tensor<?xf32>'}}
      %x = attn.capture_load %c[%minus_one] : tensor<?xf32> -> f32
      attn.yield %x : f32
    } -> !q
  return %r : !q
}

// -----

!q = tensor<2x4x8x64xf32>
func.func @divisor(%q: !q) -> !q {
  %r = attn.attention ins(%q, %q, %q : !q, !q, !q) outs(%q : !q)
    mask_mod (%b: i32, %h: i32, %i: i32, %j: i32) {
      %zero = arith.constant 0 : i32
      // expected-error@+1 {{'arith.remui' op divides by the constant 0}}
      %x = arith.remui %j, %zero : i32
      %keep = arith.cmpi eq, %x, %i : i32
      attn.yield %keep : i1
    } -> !q
  return %r : !q
}

// -----

!q = tensor<2x4x8x64xf32>
func.func @shift(%q: !q) -> !q {
  %r = attn.attention ins(%q, %q, %q : !q, !q, !q) outs(%q : !q)
    mask_mod (%b: i32, %h: i32, %i: i32, %j: i32) {
      %width = arith.constant 32 : i32
      // expected-error@+1 {{'arith.shrsi' op shifts 'i32' by the constant 32; it must be from 0 to 31}}
      %x = arith.shrsi %j, %width : i32
      %keep = arith.cmpi eq, %x, %i : i32
      attn.yield %keep : i1
    } -> !q
  return %r : !q
}

// -----

!q = tensor<2x4x8x64xf32>
func.func @f64(%q: !q) -> !q {
  %r = attn.attention ins(%q, %q, %q : !q, !q, !q) outs(%q : !q)
    score_mod (%s: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      // expected-error@+1 {{must work on i1, i8, i16, i32, i64, index, f16, bf16 or f32 in score_mod, not on 'f64'}}
      %wide = arith.extf %s : f32 to f64
      %narrow = arith.truncf %wide : f64 to f32
      attn.yield %narrow : f32
    } -> !q
  return %r : !q
}

// -----

!q = tensor<2x4x8x64xf32>
func.func @odd_integer(%q: !q) -> !q {
  %r = attn.attention ins(%q, %q, %q : !q, !q, !q) outs(%q : !q)
    mask_mod (%b: i32, %h: i32, %i: i32, %j: i32) {
      // expected-error@+1 {{bf16 or f32 in mask_mod, not on 'i7'}}
      %low = arith.trunci %i : i32 to i7
      %x = arith.extui %low : i7 to i32
      %keep = arith.cmpi eq, %x, %j : i32
      attn.yield %keep : i1
    } -> !q
  return %r : !q
}

// -----

!q = tensor<2x4x8x64xf32>
func.func @capture_index(%q: !q, %t: tensor<4xf32>) -> !q {
  %r = attn.attention ins(%q, %q, %q, %t : !q, !q, !q, tensor<4xf32>) outs(%q : !q)
    score_mod (%s: f32, %b: i32, %h: i32, %i: i32, %j: i32, %c: tensor<4xf32>) {
      %four = arith.constant 4 : i32
      // expected-error@+1 {{index 4 is out of range for dimension 0 of 'tensor<4xf32>'}}
      %x = attn.capture_load %c[%four] : tensor<4xf32> -> f32
      attn.yield %x : f32
    } -> !q
  return %r : !q
}

// -----

func.func @merge_counts(%o: tensor<8x64xf32>, %l: tensor<8xf32>) {
  // expected-error@+1 {{needs one lse for each partial output, and at least one of them}}
  %r, %s = attn.merge %o, %o with %l : tensor<8x64xf32>, tensor<8x64xf32> with tensor<8xf32> -> tensor<8x64xf32>, tensor<8xf32>
  return
}

// -----

func.func @merge_partial_type(%o: tensor<8x64xf16>, %l: tensor<8xf32>) {
  // expected-error@+1 {{partial outputs must have the type of the result}}
  %r, %s = attn.merge %o with %l : tensor<8x64xf16> with tensor<8xf32> -> tensor<8x64xf32>, tensor<8xf32>
  return
}

// -----

func.func @merge_lse_type(%o: tensor<8x64xf16>, %l: tensor<8xf16>) {
  // expected-error@+1 {{partial lses must have the type of the result's lse}}
  %r, %s = attn.merge %o with %l : tensor<8x64xf16> with tensor<8xf16> -> tensor<8x64xf16>, tensor<8xf32>
  return
}

// -----

func.func @merge_lse_shape(%o: tensor<8x64xf16>, %l: tensor<9xf32>) {
  // expected-error@+1 {{lse must be f32 of the output's shape without its last dimension}}
  %r, %s = attn.merge %o with %l : tensor<8x64xf16> with tensor<9xf32> -> tensor<8x64xf16>, tensor<9xf32>
  return
}

// -----

// expected-error@+1 {{block_m must be a multiple of 8 in [8, 1024], not 12}}
#s = #attn.schedule<block_m = 12, block_n = 64, num_stages = 2, num_warps = 4>

// -----

// expected-error@+1 {{block_n must be a multiple of 8 in [8, 1024], not 2048}}
#s = #attn.schedule<block_m = 64, block_n = 2048, num_stages = 2, num_warps = 4>

// -----

// expected-error@+1 {{num_stages must be in [1, 8], not 0}}
#s = #attn.schedule<block_m = 64, block_n = 64, num_stages = 0, num_warps = 4>

// -----

// expected-error@+1 {{num_warps must be in [1, 32], not 33}}
#s = #attn.schedule<block_m = 64, block_n = 64, num_stages = 2, num_warps = 33>

// -----

func.func @short_without_schedule(%x: tensor<1x2x?x64xf16>) -> tensor<1x2x?x64xf16> {
  // expected-error @below {{has short_schedules but no schedule for longer sequences}}
  %r = attn.attention
      ins(%x, %x, %x : tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16>)
      outs(%x : tensor<1x2x?x64xf16>)
      {short_schedules = [#attn.short_schedule<max_q_len = 8, schedule = <block_m = 64, block_n = 64, num_stages = 2, num_warps = 4>>]}
      -> tensor<1x2x?x64xf16>
  return %r : tensor<1x2x?x64xf16>
}

// -----

#s = #attn.schedule<block_m = 64, block_n = 64, num_stages = 2, num_warps = 4>
func.func @short_order(%x: tensor<1x2x?x64xf16>) -> tensor<1x2x?x64xf16> {
  // expected-error @below {{short_schedules: max_q_len must increase, but 8 follows 8}}
  %r = attn.attention
      ins(%x, %x, %x : tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16>)
      outs(%x : tensor<1x2x?x64xf16>)
      {schedule = #s, short_schedules = [#attn.short_schedule<max_q_len = 8, schedule = #s>,
                                         #attn.short_schedule<max_q_len = 8, schedule = #s>]}
      -> tensor<1x2x?x64xf16>
  return %r : tensor<1x2x?x64xf16>
}

// -----

// expected-error @below {{max_q_len must be in [1, 1073741824], not 0}}
#short = #attn.short_schedule<max_q_len = 0, schedule = <block_m = 64, block_n = 64, num_stages = 2, num_warps = 4>>

// -----

// expected-error @+1 {{q_stages must be 1 or 2, not 3}}
func.func private @q_stages() attributes {roles = #attn.warp_roles<q_stages = 3>}

// -----

!q = tensor<2x4x8x64xf32>
func.func @capture_too_small(%q: !q, %t: tensor<2x7xf32>) -> !q {
  %r = attn.attention ins(%q, %q, %q, %t : !q, !q, !q, tensor<2x7xf32>) outs(%q : !q)
    score_mod (%s: f32, %b: i32, %h: i32, %i: i32, %j: i32, %c: tensor<2x7xf32>) {
      // expected-error@+1 {{indexes dimension 1, which has 7 elements, by kv_idx; it needs the key length, 8, or 1 to be broadcast}}
      %x = attn.capture_load %c[%b, %j] : tensor<2x7xf32> -> f32
      attn.yield %x : f32
    } -> !q
  return %r : !q
}

// -----

!q = tensor<2x4x8x64xf32>
func.func @capture_too_few_heads(%q: !q, %t: tensor<3xi1>) -> !q {
  %r = attn.attention ins(%q, %q, %q, %t : !q, !q, !q, tensor<3xi1>) outs(%q : !q)
    mask_mod (%b: i32, %h: i32, %i: i32, %j: i32, %c: tensor<3xi1>) {
      // expected-error@+1 {{indexes dimension 0, which has 3 elements, by h; it needs the number of query heads, 4}}
      %x = attn.capture_load %c[%h] : tensor<3xi1> -> i1
      attn.yield %x : i1
    } -> !q
  return %r : !q
}

// -----

!q = tensor<2x4x8x64xf32>
func.func @sink_size(%q: !q, %s: tensor<3xf32>) -> !q {
  // expected-error@+1 {{sink must hold one f16, bf16 or f32 logit for each of the 4 query heads, not be 'tensor<3xf32>'}}
  %r = attn.attention ins(%q, %q, %q : !q, !q, !q) sink(%s : tensor<3xf32>) outs(%q : !q) -> !q
  return %r : !q
}

// -----

!q = tensor<2x4x8x64xf32>
func.func @sink_dynamic(%q: !q, %s: tensor<?xf32>) -> !q {
  // expected-error@+1 {{logit for each of the 4 query heads, not be 'tensor<?xf32>'}}
  %r = attn.attention ins(%q, %q, %q : !q, !q, !q) sink(%s : tensor<?xf32>) outs(%q : !q) -> !q
  return %r : !q
}

// -----

!q = tensor<2x4x8x64xf32>
func.func @sink_type(%q: !q, %s: tensor<4xi32>) -> !q {
  // expected-error@+1 {{logit for each of the 4 query heads, not be 'tensor<4xi32>'}}
  %r = attn.attention ins(%q, %q, %q : !q, !q, !q) sink(%s : tensor<4xi32>) outs(%q : !q) -> !q
  return %r : !q
}

// -----

!q = tensor<1x4x8x64xf32>
func.func @offsets_type(%q: tensor<1x4x8x64xf32>, %c: tensor<3xi64>) -> !q {
  // expected-error@+1 {{cu_q must hold i32 numbers of shape [S + 1], not be 'tensor<3xi64>'}}
  %r = attn.attention ins(%q, %q, %q : !q, !q, !q) cu_q(%c : tensor<3xi64>) outs(%q : !q) -> !q
  return %r : !q
}

// -----

!q = tensor<1x4x8x64xf32>
func.func @offsets_rank(%q: tensor<1x4x8x64xf32>, %c: tensor<3x1xi32>) -> !q {
  // expected-error@+1 {{cu_k must hold i32 numbers of shape [S + 1]}}
  %r = attn.attention ins(%q, %q, %q : !q, !q, !q) cu_k(%c : tensor<3x1xi32>) outs(%q : !q) -> !q
  return %r : !q
}

// -----

!q = tensor<1x4x8x64xf32>
func.func @no_offsets(%q: tensor<1x4x8x64xf32>, %c: tensor<0xi32>) -> !q {
  // expected-error@+1 {{cu_q must hold at least the 0 that it begins with}}
  %r = attn.attention ins(%q, %q, %q : !q, !q, !q) cu_q(%c : tensor<0xi32>) outs(%q : !q) -> !q
  return %r : !q
}

// -----

!q = tensor<2x4x8x64xf32>
func.func @packed_batches(%q: tensor<2x4x8x64xf32>, %c: tensor<3xi32>) -> !q {
  // expected-error@+1 {{q must have a batch size of 1 in its type with cu_q}}
  %r = attn.attention ins(%q, %q, %q : !q, !q, !q) cu_q(%c : tensor<3xi32>) outs(%q : !q) -> !q
  return %r : !q
}

// -----

!q = tensor<?x4x8x64xf32>
func.func @packed_dynamic_batch(%q: tensor<?x4x8x64xf32>, %c: tensor<3xi32>) -> !q {
  // expected-error@+1 {{k must have a batch size of 1 in its type with cu_k}}
  %r = attn.attention ins(%q, %q, %q : !q, !q, !q) cu_k(%c : tensor<3xi32>) outs(%q : !q) -> !q
  return %r : !q
}

// -----

!q = tensor<1x4x8x64xf32>
func.func @sequence_counts(%q: tensor<1x4x8x64xf32>, %c: tensor<3xi32>, %n: tensor<3xi32>) -> !q {
  // expected-error@+1 {{numbers of sequences differ: cu_q is for 2, kv_len for 3}}
  %r = attn.attention ins(%q, %q, %q : !q, !q, !q) cu_q(%c : tensor<3xi32>) cu_k(%c : tensor<3xi32>) kv_len(%n : tensor<3xi32>) outs(%q : !q) -> !q
  return %r : !q
}

// -----

!q = tensor<2x4x8x64xf32>
func.func @length_count(%q: tensor<2x4x8x64xf32>, %n: tensor<3xi32>) -> !q {
  // expected-error@+1 {{numbers of sequences differ: q is for 2, kv_len for 3}}
  %r = attn.attention ins(%q, %q, %q : !q, !q, !q) kv_len(%n : tensor<3xi32>) outs(%q : !q) -> !q
  return %r : !q
}

// -----

!q = tensor<2x4x8x64xf32>
func.func @pages_without_lengths(%q: tensor<2x4x8x64xf32>, %t: tensor<2x3xi32>) -> !q {
  // expected-error@+1 {{block_table needs kv_len}}
  %r = attn.attention ins(%q, %q, %q : !q, !q, !q) block_table(%t : tensor<2x3xi32>) outs(%q : !q) -> !q
  return %r : !q
}

// -----

!q = tensor<1x4x8x64xf32>
func.func @pages_and_offsets(%q: tensor<1x4x8x64xf32>, %c: tensor<2xi32>, %n: tensor<1xi32>, %t: tensor<1x3xi32>) -> !q {
  // expected-error@+1 {{has block_table and cu_k}}
  %r = attn.attention ins(%q, %q, %q : !q, !q, !q) cu_k(%c : tensor<2xi32>) kv_len(%n : tensor<1xi32>) block_table(%t : tensor<1x3xi32>) outs(%q : !q) -> !q
  return %r : !q
}

// -----

!q = tensor<2x4x8x64xf32>
func.func @table_rank(%q: tensor<2x4x8x64xf32>, %n: tensor<2xi32>) -> !q {
  // expected-error@+1 {{block_table must hold i32 numbers of shape [S, P]}}
  %r = attn.attention ins(%q, %q, %q : !q, !q, !q) kv_len(%n : tensor<2xi32>) block_table(%n : tensor<2xi32>) outs(%q : !q) -> !q
  return %r : !q
}

// -----

!q = tensor<2x4x24x64xf32>
func.func @page_size(%q: tensor<2x4x24x64xf32>, %n: tensor<2xi32>, %t: tensor<2x3xi32>) -> !q {
  // expected-error@+1 {{whose number of rows must be a power of two from 1 to 256 in the type, not 24}}
  %r = attn.attention ins(%q, %q, %q : !q, !q, !q) kv_len(%n : tensor<2xi32>) block_table(%t : tensor<2x3xi32>) outs(%q : !q) -> !q
  return %r : !q
}

// -----

!q = tensor<2x4x?x64xf32>
func.func @page_size_dynamic(%q: tensor<2x4x?x64xf32>, %n: tensor<2xi32>, %t: tensor<2x3xi32>) -> !q {
  // expected-error@+1 {{from 1 to 256 in the type, not dynamic}}
  %r = attn.attention ins(%q, %q, %q : !q, !q, !q) kv_len(%n : tensor<2xi32>) block_table(%t : tensor<2x3xi32>) outs(%q : !q) -> !q
  return %r : !q
}

// -----

func.func @quantized_output(%x: tensor<1x2x?x64xf8E4M3FN>) -> tensor<1x2x?x64xf8E4M3FN> {
  // expected-error @below {{with q of 'f8E4M3FN', o must be of f16, bf16 or f32, not of 'f8E4M3FN'}}
  %r = attn.attention
      ins(%x, %x, %x : tensor<1x2x?x64xf8E4M3FN>, tensor<1x2x?x64xf8E4M3FN>, tensor<1x2x?x64xf8E4M3FN>)
      outs(%x : tensor<1x2x?x64xf8E4M3FN>) -> tensor<1x2x?x64xf8E4M3FN>
  return %r : tensor<1x2x?x64xf8E4M3FN>
}

// -----

func.func @partly_quantized(%x: tensor<1x2x?x64xf8E4M3FN>, %y: tensor<1x2x?x64xf16>) -> tensor<1x2x?x64xf16> {
  // expected-error @below {{with q of 'f8E4M3FN', v must be of f8E4M3FN or f8E5M2 too, not of 'f16'}}
  %r = attn.attention
      ins(%x, %x, %y : tensor<1x2x?x64xf8E4M3FN>, tensor<1x2x?x64xf8E4M3FN>, tensor<1x2x?x64xf16>)
      outs(%y : tensor<1x2x?x64xf16>) -> tensor<1x2x?x64xf16>
  return %r : tensor<1x2x?x64xf16>
}

// -----

func.func @scaled_f16(%x: tensor<1x2x?x64xf16>, %s: tensor<1xf32>) -> tensor<1x2x?x64xf16> {
  // expected-error @below {{k_scale is for q, k and v of f8E4M3FN or f8E5M2, not of 'f16'; use scale, or scale the tensor}}
  %r = attn.attention
      ins(%x, %x, %x : tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16>)
      k_scale(%s : tensor<1xf32>)
      outs(%x : tensor<1x2x?x64xf16>) -> tensor<1x2x?x64xf16>
  return %r : tensor<1x2x?x64xf16>
}

// -----

func.func @scale_shape(%q: tensor<1x4x?x64xf8E4M3FN>, %x: tensor<1x2x?x64xf8E4M3FN>, %s: tensor<4xf32>, %o: tensor<1x4x?x64xf16>) -> tensor<1x4x?x64xf16> {
  // expected-error @below {{k_scale must hold f32 of shape [1], [2] (heads) or [B, 2], not be 'tensor<4xf32>'}}
  %r = attn.attention
      ins(%q, %x, %x : tensor<1x4x?x64xf8E4M3FN>, tensor<1x2x?x64xf8E4M3FN>, tensor<1x2x?x64xf8E4M3FN>)
      q_scale(%s : tensor<4xf32>) k_scale(%s : tensor<4xf32>)
      outs(%o : tensor<1x4x?x64xf16>) -> tensor<1x4x?x64xf16>
  return %r : tensor<1x4x?x64xf16>
}

// -----

func.func @scale_type(%x: tensor<1x2x?x64xf8E4M3FN>, %s: tensor<1xf16>, %o: tensor<1x2x?x64xf16>) -> tensor<1x2x?x64xf16> {
  // expected-error @below {{v_scale must hold f32 of shape [1], [2] (heads) or [B, 2], not be 'tensor<1xf16>'}}
  %r = attn.attention
      ins(%x, %x, %x : tensor<1x2x?x64xf8E4M3FN>, tensor<1x2x?x64xf8E4M3FN>, tensor<1x2x?x64xf8E4M3FN>)
      v_scale(%s : tensor<1xf16>)
      outs(%o : tensor<1x2x?x64xf16>) -> tensor<1x2x?x64xf16>
  return %r : tensor<1x2x?x64xf16>
}

// -----

// expected-error @below {{max_splits must be in [1, 65536], not 0}}
#s = #attn.schedule<block_m = 64, block_n = 64, num_stages = 2, num_warps = 4, decode = <max_splits = 0>>

// -----

// expected-error @below {{programs_per_sm must be in [1, 65536], not 0}}
#s = #attn.schedule<block_m = 64, block_n = 64, num_stages = 2, num_warps = 4, decode = <programs_per_sm = 0>>

// -----

// expected-error @below {{split_keys must be in [0, 2^30], not -64}}
#s = #attn.schedule<block_m = 64, block_n = 64, num_stages = 2, num_warps = 4, decode = <split_keys = -64>>

// -----

// expected-error @below {{split_keys must be a multiple of block_n = 64, not 96}}
#s = #attn.schedule<block_m = 64, block_n = 64, num_stages = 2, num_warps = 4, decode = <split_keys = 96>>

// -----

// expected-error @below {{a schedule with decode has no warp_roles}}
#s = #attn.schedule<block_m = 64, block_n = 64, num_stages = 2, num_warps = 4, warp_roles = <>, decode = <>>

// -----

// expected-error @below {{expected one warp_roles, decode or v_columns}}
#s = #attn.schedule<block_m = 64, block_n = 64, num_stages = 2, num_warps = 4, decode = <>, decode = <>>

// -----

// expected-error @below {{expected one warp_roles, decode or v_columns}}
#s = #attn.schedule<block_m = 64, block_n = 64, num_stages = 2, num_warps = 4, roles = <>>

// -----

// expected-error @below {{v_columns must be a multiple of 16 in [0, 1024], not 40}}
#s = #attn.schedule<block_m = 64, block_n = 64, num_stages = 2, num_warps = 4, v_columns = 40>
