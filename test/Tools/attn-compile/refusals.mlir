// What is refused is said once, of the target that was asked for.

// An operator has kernels for several lengths.
// RUN: not attn-compile %s --entry=function --target=sm_80 --emit=manifest 2>&1 | FileCheck %s --check-prefix=FUNCTION --implicit-check-not=error:
// FUNCTION: refusals.mlir:[[#@LINE+12]]:12: error: 'math.atan' op on 'f32' is not lowered to any target

// RUN: not attn-compile %s --entry=lengths --target=sm_90a --emit=manifest 2>&1 | FileCheck %s --check-prefix=LENGTHS --implicit-check-not=sm_80
// LENGTHS: error: 'attn.attention' op has no kernel for sm_90a, which doesn't serve 8-bit floats with lengths that only the device knows; leave cu_q, cu_k, kv_len and block_table out, or convert q, k and v to bf16

// RUN: not attn-compile %s --entry=head --target=sm_90a --emit=manifest 2>&1 | FileCheck %s --check-prefix=HEAD --implicit-check-not=sm_80
// HEAD: error: 'attn.attention' op head dimension 72 of q and k is not supported yet

!q = tensor<1x2x?x64xbf16>
func.func @function(%q: !q, %k: !q, %v: !q, %o: !q) -> !q {
  %r = attn.attention ins(%q, %k, %v : !q, !q, !q) outs(%o : !q)
    score_mod (%s: f32, %b: i32, %h: i32, %q_idx: i32, %kv_idx: i32) {
      %x = math.atan %s : f32
      attn.yield %x : f32
    } -> !q
  return %r : !q
}

!f8 = tensor<1x2x?x64xf8E4M3FN>
func.func @lengths(%q: !f8, %k: !f8, %v: !f8, %lens: tensor<1xi32>, %o: !q) -> !q {
  %r = attn.attention ins(%q, %k, %v : !f8, !f8, !f8) kv_len(%lens : tensor<1xi32>) outs(%o : !q) -> !q
  return %r : !q
}

!f8_72 = tensor<1x2x?x72xf8E4M3FN>
!q_72 = tensor<1x2x?x72xbf16>
func.func @head(%q: !f8_72, %k: !f8_72, %v: !f8_72, %o: !q_72) -> !q_72 {
  %r = attn.attention ins(%q, %k, %v : !f8_72, !f8_72, !f8_72) outs(%o : !q_72) -> !q_72
  return %r : !q_72
}
