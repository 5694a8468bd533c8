// RUN: attn-compile %attnc_src_root/examples/causal.mlir --variant=fused --target=sm_90a --emit=ptx | FileCheck %s
// RUN: attn-compile %attnc_src_root/examples/causal.mlir --variant=fused --target=sm_90a --emit=manifest | FileCheck %s --check-prefix=MANIFEST
// RUN: attn-compile %attnc_src_root/examples/causal.mlir --variant=naive --target=sm_90a --emit=ptx | FileCheck %s --check-prefix=NAIVE

// CHECK: .target sm_90a
// CHECK: .visible .entry fused_attn_wgmma_bf16_d64
// CHECK: .param .align 64 .b8 {{.*}}[128]
// CHECK: .reqntid 512
// CHECK: setmaxnreg.inc.sync.aligned.u32 160
// CHECK: wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16
// CHECK: setmaxnreg.dec.sync.aligned.u32 32
// CHECK: cp.async.bulk.tensor.4d

// MANIFEST: "type": "tensor_map"

// Unfused kernels are those of sm_80.
// NAIVE: .target sm_90a
// NAIVE: mma.sync.aligned.m16n8k16
// NAIVE-NOT: wgmma
