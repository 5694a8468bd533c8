// RUN: attn-compile %s --target=sm_90a --emit=ptx 2>%t.err | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t.err
// RUN: attn-compile %s --target=sm_90a --emit=manifest 2>/dev/null | FileCheck %s --check-prefix=MANIFEST
// RUN: attn-compile %s --target=sm_80 --emit=manifest | FileCheck %s --check-prefix=SM80
// RUN: attn-tune %s --target=sm_90a --dry-run 2>&1 | FileCheck %s --check-prefix=TUNE

// f32 runs sm_80's kernel on sm_90a, and every tool says so.

// CHECK: .target sm_90a
// CHECK: .visible .entry fused_attn_s1688_tf32x3_f32_d64
// CHECK-NOT: wgmma
// REMARK: f32-sm90a.mlir:[[# @LINE + 11]]:8: remark: 'f32' runs the kernel of sm_80 on sm_90a, whose own don't serve it
// MANIFEST: "kernel_target": "sm_80"
// MANIFEST: "target": "sm_90a"
// SM80: "kernel_target": "sm_80"
// SM80: "target": "sm_80"
// TUNE: attn-tune: 'f32' runs the kernel of sm_80 on sm_90a
// TUNE: #attn.schedule<block_m = 64, block_n = 32, num_stages = 2, num_warps = 4>

!t = tensor<?x2x?x64xf32>

func.func @f(%q: !t, %k: !t, %v: !t, %o: !t) -> !t {
  %r = attn.attention ins(%q, %k, %v : !t, !t, !t) outs(%o : !t) -> !t
  return %r : !t
}
