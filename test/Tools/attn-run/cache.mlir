// Code is kept on disk, and the profile says whether it was found there.
// RUN: rm -rf %t
// RUN: env ATTNC_CACHE_DIR=%t attn-run %s --entry=plain --target=cpu --repeat=1 --shapes=1x2x70x16,1x2x70x16,1x2x70x16 --verify --profile | FileCheck %s --check-prefix=MISS
// RUN: env ATTNC_CACHE_DIR=%t attn-run %s --entry=plain --target=cpu --repeat=1 --shapes=1x2x70x16,1x2x70x16,1x2x70x16 --verify --profile | FileCheck %s --check-prefix=HIT
// MISS: fused (cpu): {{.*}}e-07{{$}}
// MISS: before that: {{.*}}compile {{.*}}, load {{.*}}, code compiled
// HIT: fused (cpu): {{.*}}e-07{{$}}
// HIT-NOT: compile {{.*}}
// HIT: before that: lookup {{.*}}, load {{.*}}, plan {{.*}}, code from disk

// Another variant is another entry on disk.
// RUN: env ATTNC_CACHE_DIR=%t attn-run %s --entry=plain --variant=naive --target=cpu --repeat=0 --shapes=1x2x70x16,1x2x70x16,1x2x70x16
// RUN: env ATTNC_CACHE_DIR=%t attn-cache list | FileCheck %s --check-prefix=TWO
// TWO: plain{{ +}}naive
// TWO: plain{{ +}}fused
// TWO: 2 entries

// What the compiler says isn't lost on the second run.
// RUN: env ATTNC_CACHE_DIR=%t attn-run %s --entry=opaque --target=cpu --repeat=0 --shapes=1x2x70x16,1x2x70x16,1x2x70x16 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: env ATTNC_CACHE_DIR=%t attn-run %s --entry=opaque --target=cpu --repeat=0 --shapes=1x2x70x16,1x2x70x16,1x2x70x16 2>&1 | FileCheck %s --check-prefix=REMARK
// REMARK: remark: mask analysis can't see through this

!t = tensor<?x2x?x16xf32>
func.func @plain(%q: !t, %k: !t, %v: !t, %o: !t {attn.name = "o"}) -> !t {
  %r = attn.attention ins(%q, %k, %v : !t, !t, !t) outs(%o : !t) -> !t
  return %r : !t
}

func.func @opaque(%q: !t, %k: !t, %v: !t, %o: !t {attn.name = "o"}) -> !t {
  %r = attn.attention ins(%q, %k, %v : !t, !t, !t) outs(%o : !t)
    mask_mod (%b: i32, %h: i32, %q_idx: i32, %kv_idx: i32) {
      %c3 = arith.constant 3 : i32
      %x = arith.xori %kv_idx, %c3 : i32
      %visible = arith.cmpi sle, %x, %q_idx : i32
      attn.yield %visible : i1
    } -> !t
  return %r : !t
}
