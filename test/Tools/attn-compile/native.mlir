// RUN: env CUDA_VISIBLE_DEVICES= attn-compile %attnc_src_root/examples/causal.mlir --target=native --emit=manifest 2>&1 | FileCheck %s
// RUN: env CUDA_VISIBLE_DEVICES= attn-opt %attnc_src_root/examples/causal.mlir --attn-fused=target=native 2>&1 | FileCheck %s --check-prefix=OPT

// Without a GPU, native is the CPU.

// CHECK: attn-compile: native is cpu ({{.*}} threads)
// CHECK: "target": "cpu"
// OPT: attn-fused: native is cpu
// OPT: llvm.func @fused_attn_cpu
