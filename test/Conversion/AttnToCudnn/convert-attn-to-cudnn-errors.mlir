// RUN: attn-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(attn-bufferize,convert-attn-to-cudnn)'

!t = tensor<1x2x8x20xf32>
func.func @all_at_once(%q: !t, %k: !t, %v: !t, %o: !t) -> !t {
  // expected-error @below {{cuDNN can't compute this: q, k and v are f32; it takes f16 and bf16; head dim 20 is not a multiple of 8; batch_invariant (choose the backend fused, which can)}}
  %r = attn.attention ins(%q, %k, %v : !t, !t, !t) outs(%o : !t) {batch_invariant} -> !t
  return %r : !t
}

// -----

!t = tensor<1x2x8x264xbf16>
func.func @wide(%q: !t, %k: !t, %v: !t, %o: !t) -> !t {
  // expected-error @below {{head dim 264 > 256}}
  %r = attn.attention ins(%q, %k, %v : !t, !t, !t) outs(%o : !t) -> !t
  return %r : !t
}

// -----

!t = tensor<1x2x8x64xbf16>
func.func @softcap(%q: !t, %k: !t, %v: !t, %o: !t) -> !t {
  // expected-error @below {{score_mod: softcap; it knows an added bias [B or 1, H or 1, Nq, Nk] only}}
  %r = attn.attention ins(%q, %k, %v : !t, !t, !t) outs(%o : !t)
    score_mod (%s: f32, %b: i32, %h: i32, %q_idx: i32, %kv_idx: i32) {
      %c = arith.constant 30.0 : f32
      %x = arith.divf %s, %c : f32
      %y = math.tanh %x : f32
      %z = arith.mulf %y, %c : f32
      attn.yield %z : f32
    } -> !t
  return %r : !t
}

// -----

!t = tensor<1x2x8x64xbf16>
func.func @relative(%q: !t, %k: !t, %v: !t, %o: !t) -> !t {
  // expected-error @below {{score_mod: a function of the positions (ALiBi, relative)}}
  %r = attn.attention ins(%q, %k, %v : !t, !t, !t) outs(%o : !t)
    score_mod (%s: f32, %b: i32, %h: i32, %q_idx: i32, %kv_idx: i32) {
      %d = arith.subi %kv_idx, %q_idx : i32
      %x = arith.sitofp %d : i32 to f32
      %y = arith.addf %s, %x : f32
      attn.yield %y : f32
    } -> !t
  return %r : !t
}

// -----

!t = tensor<1x2x8x64xbf16>
!b = tensor<1x2x1x8xf32>
func.func @bias_of_keys(%q: !t, %k: !t, %v: !t, %bias: !b, %o: !t) -> !t {
  // expected-error @below {{score_mod: a bias that is the same for all queries}}
  %r = attn.attention ins(%q, %k, %v, %bias : !t, !t, !t, !b) outs(%o : !t)
    score_mod (%s: f32, %b: i32, %h: i32, %q_idx: i32, %kv_idx: i32, %t: !b) {
      %x = attn.capture_load %t[%b, %h, %q_idx, %kv_idx] : !b -> f32
      %y = arith.addf %s, %x : f32
      attn.yield %y : f32
    } -> !t
  return %r : !t
}

// -----

!t = tensor<1x2x8x64xbf16>
!m = tensor<1x1x8x8xi1>
func.func @tensor_mask(%q: !t, %k: !t, %v: !t, %mask: !m, %o: !t) -> !t {
  // expected-error @below {{mask_mod: a tensor of i1 [1, 1, 8, 8]; it knows causal masks, windows and key padding, and all of them at once}}
  %r = attn.attention ins(%q, %k, %v, %mask : !t, !t, !t, !m) outs(%o : !t)
    mask_mod (%b: i32, %h: i32, %q_idx: i32, %kv_idx: i32, %t: !m) {
      %x = attn.capture_load %t[%b, %h, %q_idx, %kv_idx] : !m -> i1
      attn.yield %x : i1
    } -> !t
  return %r : !t
}

// -----

!t = tensor<1x2x8x64xbf16>
!d = tensor<1x8xi32>
func.func @documents(%q: !t, %k: !t, %v: !t, %docs: !d, %o: !t) -> !t {
  // expected-error @below {{mask_mod: a tensor of i32 [1, 8]}}
  %r = attn.attention ins(%q, %k, %v, %docs : !t, !t, !t, !d) outs(%o : !t)
    mask_mod (%b: i32, %h: i32, %q_idx: i32, %kv_idx: i32, %t: !d) {
      %x = attn.capture_load %t[%b, %q_idx] : !d -> i32
      %y = attn.capture_load %t[%b, %kv_idx] : !d -> i32
      %z = arith.cmpi eq, %x, %y : i32
      attn.yield %z : i1
    } -> !t
  return %r : !t
}

// -----

!t = tensor<1x2x8x64xbf16>
func.func @prefix(%q: !t, %k: !t, %v: !t, %o: !t) -> !t {
  // A prefix: not a window.
  // expected-error @below {{mask_mod: arith.cmpi; it knows causal masks}}
  %r = attn.attention ins(%q, %k, %v : !t, !t, !t) outs(%o : !t)
    mask_mod (%b: i32, %h: i32, %q_idx: i32, %kv_idx: i32) {
      %c = arith.constant 4 : i32
      %z = arith.cmpi slt, %kv_idx, %c : i32
      attn.yield %z : i1
    } -> !t
  return %r : !t
}

// -----

!t = tensor<1x2x8x64xbf16>
func.func @causal_or(%q: !t, %k: !t, %v: !t, %o: !t) -> !t {
  // expected-error @below {{mask_mod: arith.ori}}
  %r = attn.attention ins(%q, %k, %v : !t, !t, !t) outs(%o : !t)
    mask_mod (%b: i32, %h: i32, %q_idx: i32, %kv_idx: i32) {
      %c = arith.constant 4 : i32
      %x = arith.cmpi slt, %kv_idx, %c : i32
      %y = arith.cmpi sle, %kv_idx, %q_idx : i32
      %z = arith.ori %x, %y : i1
      attn.yield %z : i1
    } -> !t
  return %r : !t
}

// -----

!t = tensor<1x2x8x64xbf16>
func.func @before_itself(%q: !t, %k: !t, %v: !t, %o: !t) -> !t {
  // expected-error @below {{mask_mod: a window that leaves out the query's own position}}
  %r = attn.attention ins(%q, %k, %v : !t, !t, !t) outs(%o : !t)
    mask_mod (%b: i32, %h: i32, %q_idx: i32, %kv_idx: i32) {
      %z = arith.cmpi slt, %kv_idx, %q_idx : i32
      attn.yield %z : i1
    } -> !t
  return %r : !t
}

// -----

!t = tensor<1x2x8x64xbf16>
func.func @mixed(%q: !t, %k: !t, %v: !t, %o: !t) -> !t {
  // expected-error @below {{mask_mod: bounds that count from the first key and from the last one}}
  %r = attn.attention ins(%q, %k, %v : !t, !t, !t) outs(%o : !t)
    mask_mod (%b: i32, %h: i32, %q_idx: i32, %kv_idx: i32) {
      %ql = attn.q_len : i32
      %kl = attn.kv_len : i32
      %shift = arith.subi %kl, %ql : i32
      %last = arith.addi %q_idx, %shift : i32
      %x = arith.cmpi sle, %kv_idx, %last : i32
      %y = arith.cmpi sle, %kv_idx, %q_idx : i32
      %z = arith.andi %x, %y : i1
      attn.yield %z : i1
    } -> !t
  return %r : !t
}

// -----

!t = tensor<2x2x8x64xbf16>
!l = tensor<2xi32>
func.func @padding_and_causal(%q: !t, %k: !t, %v: !t, %lens: !l, %o: !t) -> !t {
  // expected-error @below {{mask_mod: key padding from a capture beside a mask that counts from the last key of the tensor; give the lengths as kv_len}}
  %r = attn.attention ins(%q, %k, %v, %lens : !t, !t, !t, !l) outs(%o : !t)
    mask_mod (%b: i32, %h: i32, %q_idx: i32, %kv_idx: i32, %t: !l) {
      %ql = attn.q_len : i32
      %kl = attn.kv_len : i32
      %shift = arith.subi %kl, %ql : i32
      %last = arith.addi %q_idx, %shift : i32
      %x = arith.cmpi sle, %kv_idx, %last : i32
      %n = attn.capture_load %t[%b] : !l -> i32
      %y = arith.cmpi slt, %kv_idx, %n : i32
      %z = arith.andi %x, %y : i1
      attn.yield %z : i1
    } -> !t
  return %r : !t
}

// -----

!t = tensor<1x2x8x64xbf16>
func.func @sink(%q: !t, %k: !t, %v: !t, %sink: tensor<2xf32>, %o: !t) -> !t {
  // expected-error @below {{cuDNN can't compute this: a sink}}
  %r = attn.attention ins(%q, %k, %v : !t, !t, !t) sink(%sink : tensor<2xf32>) outs(%o : !t) -> !t
  return %r : !t
}

// -----

!t = tensor<1x2x8x64xbf16>
func.func @one(%q: !t, %k: !t, %v: !t, %o: !t) -> !t {
  %r = attn.attention ins(%q, %k, %v : !t, !t, !t) outs(%o : !t) -> !t
  return %r : !t
}
func.func @another(%q: !t, %k: !t, %v: !t, %o: !t) -> !t {
  // expected-error @below {{is the second function's; cuDNN is called for one (choose it with --entry)}}
  %r = attn.attention ins(%q, %k, %v : !t, !t, !t) outs(%o : !t) -> !t
  return %r : !t
}

// -----

// Sums that double at each step don't double the work.
!t = tensor<1x2x8x64xbf16>
func.func @doubled(%q: !t, %k: !t, %v: !t, %o: !t) -> !t {
  // expected-error @below {{mask_mod: arith.cmpi}}
  %r = attn.attention ins(%q, %k, %v : !t, !t, !t) outs(%o : !t)
    mask_mod (%b: i32, %h: i32, %q_idx: i32, %kv_idx: i32) {
      %0 = arith.addi %kv_idx, %kv_idx : i32
      %1 = arith.addi %0, %0 : i32
      %2 = arith.addi %1, %1 : i32
      %3 = arith.addi %2, %2 : i32
      %4 = arith.addi %3, %3 : i32
      %5 = arith.addi %4, %4 : i32
      %6 = arith.addi %5, %5 : i32
      %7 = arith.addi %6, %6 : i32
      %8 = arith.addi %7, %7 : i32
      %9 = arith.cmpi sle, %8, %q_idx : i32
      attn.yield %9 : i1
    } -> !t
  return %r : !t
}

// -----

!t = tensor<1x2x8x64xbf16>
func.func @twice(%q: !t, %k: !t, %v: !t, %o: !t) -> !t {
  // expected-error @below {{'twice' holds 2 attn.attention, not one}}
  %r = attn.attention ins(%q, %k, %v : !t, !t, !t) outs(%o : !t) -> !t
  %s = attn.attention ins(%q, %k, %v : !t, !t, !t) outs(%r : !t) -> !t
  return %s : !t
}
