// RUN: attn-compile %s --target=sm_90a --emit=ptx 2>%t.err | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t.err
// RUN: attn-compile %s --target=sm_90a --emit=manifest 2>/dev/null | FileCheck %s --check-prefix=MANIFEST

// TMA can't read rows of 72 bytes; sm_80's kernel does.

// CHECK: .visible .entry fused_attn_s16816_bf16_d40_36
// CHECK-NOT: wgmma
// REMARK: [[# @LINE + 9]]:8: remark: a head dimension of 36 runs the kernel of sm_80 on sm_90a, whose own don't serve it
// MANIFEST: "kernel_target": "sm_80"

!qk = tensor<?x2x?x40xbf16>
!vo = tensor<?x2x?x36xbf16>

func.func @rows_of_72_bytes(%q: !qk {attn.name = "q"}, %k: !qk {attn.name = "k"},
                            %v: !vo {attn.name = "v"}, %o: !vo {attn.name = "o"}) -> !vo {

  %r = attn.attention ins(%q, %k, %v : !qk, !qk, !vo) outs(%o : !vo) -> !vo
  return %r : !vo
}
