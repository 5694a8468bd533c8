// What ptxas says becomes diagnostics at the operator that the kernel is made from.

// RUN: env ATTNC_PTXAS=%S/Inputs/fake-ptxas.sh attn-compile %attnc_src_root/examples/causal.mlir --target=sm_90a --emit=cubin -o %t.cubin --remarks=%t.yaml 2>&1 | FileCheck %s
// RUN: FileCheck %s --check-prefix=CODE < %t.cubin
// CHECK: causal.mlir:9:8: remark: fused_attn_wgmma_bf16_d64: 512 threads, 128 registers, 16 bytes spilled, {{[0-9]+}} bytes of shared memory; 1 block an SM (16 of 64 warps), limited by registers
// CHECK: causal.mlir:9:8: warning: 'fused_attn_wgmma_bf16_d64' spills registers to memory: 16 bytes stored and 20 loaded by each thread; lower block_n or block_m
// CHECK: causal.mlir:9:8: warning: ptxas: (C7510) wgmma.mma_async instructions are serialized due to ill formed pipeline stage
// CODE: code
// RUN: FileCheck %s --check-prefix=YAML < %t.yaml
// YAML: --- !Analysis
// YAML-NEXT: Pass: {{ *}}ptxas
// YAML: Function: {{ *}}causal
// YAML: 512 threads, 128 registers, 16 bytes spilled
// YAML: --- !Missed
// YAML-NEXT: Pass: {{ *}}ptxas
// YAML: spills registers to memory: 16 bytes stored and 20 loaded by each thread

// With -Werror-perf, nothing slow is written, whatever is asked for.

// RUN: rm -f %t.kept
// RUN: env ATTNC_PTXAS=%S/Inputs/fake-ptxas.sh not attn-compile %attnc_src_root/examples/causal.mlir --target=sm_90a --emit=ptx -Werror-perf -o %t.kept 2>&1 | FileCheck %s --check-prefix=WERROR
// RUN: not ls %t.kept
// WERROR: causal.mlir:9:8: remark: fused_attn_wgmma_bf16_d64:
// WERROR: causal.mlir:9:8: error: 'fused_attn_wgmma_bf16_d64' spills registers to memory
// WERROR: causal.mlir:9:8: error: ptxas: (C7510)

// RUN: env ATTNC_PTXAS=/nonexistent/ptxas not attn-compile %attnc_src_root/examples/causal.mlir --target=sm_90a --emit=cubin 2>&1 | FileCheck %s --check-prefix=MISSING
// MISSING: attn-compile: error: $ATTNC_PTXAS names '/nonexistent/ptxas', which can't be executed

// RUN: not attn-compile %attnc_src_root/examples/causal.mlir -Werror-perf 2>&1 | FileCheck %s --check-prefix=CPU
// CPU: attn-compile: error: -Werror-perf is about GPU targets, e.g. --target=sm_80
