// RUN: attn-run %s --entry=causal --target=cpu --backend=fused,naive --shapes=1x2x9x16,1x2x9x16,1x2x9x16 --repeat=0 --verify | FileCheck %s --check-prefix=TWO
// TWO: fused (cpu): 1 kernel
// TWO: naive (cpu): 5 kernels + 1 copy

// auto is the fused kernel.
// RUN: attn-run %s --entry=causal --target=cpu --backend=auto --shapes=1x2x9x16,1x2x9x16,1x2x9x16 --repeat=0 | FileCheck %s --check-prefix=AUTO
// AUTO: fused (cpu): 1 kernel

// Of all, one that can't serve is listed with its condition, and no failure.
// RUN: attn-run %s --entry=causal --target=cpu --backend=all --shapes=1x2x9x16,1x2x9x16,1x2x9x16 --repeat=0 | FileCheck %s --check-prefix=ALL
// ALL: naive (cpu)
// ALL: math (cpu)
// ALL: fused (cpu): 1 kernel
// ALL: cudnn (cpu): not served
// ALL: cudnn: it needs a GPU, the target is cpu

// One that is named is never replaced.
// RUN: not attn-run %s --entry=causal --target=cpu --backend=cudnn --shapes=1x2x9x16,1x2x9x16,1x2x9x16 2>&1 | FileCheck %s --check-prefix=NAMED
// NAMED: backends.mlir:[[#]]:1: error: cuDNN needs a GPU, the target is cpu; choose another backend
// NAMED: cudnn (cpu): error

// RUN: not attn-run %s --backend=flash 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// UNKNOWN: error: unknown backend 'flash'; known are auto, fused, naive, inplace, math, cudnn, and all
// RUN: not attn-run %s --backend=fused --variant=fused 2>&1 | FileCheck %s --check-prefix=BOTH
// BOTH: error: --variant and --backend say the same thing; give one of them

// Reasons need no GPU, with sizes or without.
// RUN: attn-run %s --entry=causal --target=sm_90a --explain --shapes=8x2x1024x16,8x2x1024x16,8x2x1024x16 --json=%t.json | FileCheck %s --check-prefix=SIZES
// RUN: FileCheck %s --check-prefix=JSON < %t.json
// SIZES: backends of 'causal' on sm_90a
// SIZES-SAME: asked for: backend 'auto'
// SIZES-NEXT: {{^}}  fused   chosen    no scores in memory, 1 kernel that moves 2.1 MB{{$}}
// SIZES-NEXT: {{^}}  naive   available slower by estimate: 5 kernels and 1 copy that move {{.*}} times the bytes of fused; never chosen by auto
// SIZES-NEXT: inplace available slower by estimate: 5 kernels
// SIZES-NEXT: math    available slower by estimate: 20 kernels
// SIZES-NEXT: cudnn
// JSON: "entry": "causal"
// JSON: "target": "sm_90a"
// JSON: "backend": "fused",
// JSON-NEXT: "status": "chosen",

// RUN: attn-run %s --entry=causal --target=cpu --explain --backend=naive | FileCheck %s --check-prefix=OTHER
// OTHER: asked for: backend 'naive'
// OTHER-NEXT: naive   chosen    slower by estimate: 5 kernels that write the scores to memory, O(N^2) bytes
// OTHER-NEXT: fused   available

// Where what is asked for can't serve, nothing is chosen.
// RUN: not attn-run %s --entry=softcap --target=sm_90a --explain --backend=cudnn | FileCheck %s --check-prefix=NONE
// NONE-NOT: chosen {{ }}
// NONE: cudnn   can't     score_mod: softcap; it knows an added bias
// RUN: not attn-run %s --entry=causal --target=sm_90a --explain --backend=cudnn --shapes=1x2x9x16,1x2x8x16,1x2x8x16 | FileCheck %s --check-prefix=LENGTHS
// LENGTHS: cudnn   can't     'causal': cuDNN needs at least as many keys as queries for this mask: rows without keys would be undefined

// RUN: not attn-run %s --explain 2>&1 | FileCheck %s --check-prefix=SEVERAL
// SEVERAL: error: backends are explained for one attn.attention, there are 2; choose a function by its name

!t = tensor<?x2x?x16xbf16>

func.func @causal(%q: !t, %k: !t, %v: !t, %o: !t) -> !t {
  %r = attn.attention ins(%q, %k, %v : !t, !t, !t) outs(%o : !t)
    mask_mod (%b: i32, %h: i32, %q_idx: i32, %kv_idx: i32) {
      %ql = attn.q_len : i32
      %kl = attn.kv_len : i32
      %shift = arith.subi %kl, %ql : i32
      %last = arith.addi %q_idx, %shift : i32
      %keep = arith.cmpi sle, %kv_idx, %last : i32
      attn.yield %keep : i1
    } -> !t
  return %r : !t
}

func.func @softcap(%q: !t, %k: !t, %v: !t, %o: !t) -> !t {
  %r = attn.attention ins(%q, %k, %v : !t, !t, !t) outs(%o : !t)
    score_mod (%s: f32, %b: i32, %h: i32, %q_idx: i32, %kv_idx: i32) {
      %c = arith.constant 30.0 : f32
      %x = arith.divf %s, %c : f32
      %y = math.tanh %x : f32
      %z = arith.mulf %y, %c : f32
      attn.yield %z : f32
    } -> !t
  return %r : !t
}
