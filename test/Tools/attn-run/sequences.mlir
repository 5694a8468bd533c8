// Random inputs are sequences that fit; files that hold others are refused before anything is written.
// RUN: attn-run %attnc_src_root/examples/packed.mlir --shapes=1x16x90x64,1x4x90x64,1x4x90x64,5 --repeat=0 --outputs=%t.npy | FileCheck %s
// RUN: attn-run %attnc_src_root/examples/paged-decode.mlir --shapes=3x16x1x64,7x4x16x64,7x4x16x64,3,3x4 --repeat=0 | FileCheck %s --check-prefix=PAGES
// RUN: not attn-run %attnc_src_root/examples/packed.mlir --variant=naive --shapes=1x16x90x64,1x4x90x64,1x4x90x64,5 2>&1 | FileCheck %s --check-prefix=UNFUSED
// RUN: not attn-run %attnc_src_root/examples/paged-decode.mlir --shapes=3x16x1x64,7x4x16x64,7x4x16x64,2,3x4 2>&1 | FileCheck %s --check-prefix=COUNT

// CHECK: fused_attn_cpu_bf16_d64
// PAGES: fused_attn_cpu_bf16_d64
// UNFUSED: error: 'attn.attention' op has lengths that only the device knows (cu_q, cu_k, kv_len, block_table), which the unfused sequences don't serve; use the fused variant
// COUNT: q and kv_len are for different numbers of sequences
