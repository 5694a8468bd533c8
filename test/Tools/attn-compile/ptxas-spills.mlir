// REQUIRES: ptxas

// A tile that is too large for the registers of its warps is refused.

// RUN: not attn-compile %s --entry=spills --target=sm_90a --emit=cubin -Werror-perf -o %t.cubin 2>&1 | FileCheck %s --check-prefix=SPILLS
// SPILLS: ptxas-spills.mlir:[[# @LINE + 9]]:8: remark: fused_attn_wgmma_bf16_d128: 256 threads,
// SPILLS: error: 'fused_attn_wgmma_bf16_d128' spills registers to memory: {{[1-9][0-9]*}} bytes stored

// RUN: not attn-compile %s --entry=hopeless --target=sm_90a --emit=cubin -o %t.cubin 2>&1 | FileCheck %s --check-prefix=HOPELESS
// HOPELESS: ptxas-spills.mlir:[[# @LINE + 11]]:8: error: {{.*}}ptxas failed for sm_90a: {{.*}}Insufficient registers

!qkv = tensor<?x8x?x128xbf16>

func.func @spills(%q: !qkv, %k: !qkv, %v: !qkv, %o: !qkv) -> !qkv {
  %r = attn.attention ins(%q, %k, %v : !qkv, !qkv, !qkv) outs(%o : !qkv)
    {schedule = #attn.schedule<block_m = 64, block_n = 256, num_stages = 1, num_warps = 8>} -> !qkv
  return %r : !qkv
}

func.func @hopeless(%q: !qkv, %k: !qkv, %v: !qkv, %o: !qkv) -> !qkv {
  %r = attn.attention ins(%q, %k, %v : !qkv, !qkv, !qkv) outs(%o : !qkv)
    {schedule = #attn.schedule<block_m = 192, block_n = 256, num_stages = 1, num_warps = 16>} -> !qkv
  return %r : !qkv
}
