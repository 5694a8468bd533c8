// RUN: attn-compile %attnc_src_root/examples/causal.mlir --variant=fused --target=sm_80 --emit=ptx | FileCheck %s
// RUN: attn-compile %attnc_src_root/examples/causal.mlir --variant=fused --target=sm_80 --emit=ptx | FileCheck %s --check-prefix=NOT

// CHECK: .target sm_80
// CHECK: .visible .entry fused_attn_s16816_bf16_d64(
// CHECK: .reqntid 128
// CHECK: cp.async.cg.shared.global
// CHECK: mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32

// Few queries have kernels of their own. No library, no local memory.
// NOT-COUNT-4: .entry
// NOT-NOT: .entry
// NOT-NOT: __nv_
// NOT-NOT: .local
