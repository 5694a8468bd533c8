// REQUIRES: ptxas

// A tile that is a little too large for the registers of its warps is refused if that is asked for.

// RUN: not attn-compile %s --target=sm_90a --emit=cubin -Werror-perf -o %t.cubin 2>&1 | FileCheck %s --check-prefix=SPILLS
// SPILLS: ptxas-spills.mlir:[[# @LINE + 6]]:8: remark: fused_attn_wgmma_bf16_d128: 384 threads,
// SPILLS: error: 'fused_attn_wgmma_bf16_d128' spills registers to memory: {{[1-9][0-9]*}} bytes stored

!qkv = tensor<?x8x?x128xbf16>

func.func @spills(%q: !qkv, %k: !qkv, %v: !qkv, %o: !qkv) -> !qkv {
  %r = attn.attention ins(%q, %k, %v : !qkv, !qkv, !qkv) outs(%o : !qkv)
    {schedule = #attn.schedule<block_m = 128, block_n = 128, num_stages = 2, num_warps = 12, warp_roles = <pipeline = ahead, lazy_rescale = true>>} -> !qkv
  return %r : !qkv
}
