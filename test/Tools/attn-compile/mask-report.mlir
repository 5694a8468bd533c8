// The tiles that the fused kernel skips, visits with the mask, or without it.

// RUN: attn-compile %s --entry=causal --emit=mask-report --lengths=256x512 | FileCheck %s --check-prefix=CAUSAL --match-full-lines --strict-whitespace
//      CAUSAL:fused_attn_cpu_f16_d64: 256 queries x 512 keys, batch 0, head 0, tiles of 64 x 64
// CAUSAL-EMPTY:
// CAUSAL-NEXT:####/...
// CAUSAL-NEXT:#####/..
// CAUSAL-NEXT:######/.
// CAUSAL-NEXT:#######/
// CAUSAL-EMPTY:
// CAUSAL-NEXT:query tiles down, key tiles across: . skipped, / partial (evaluates the mask), # full (doesn't)
// CAUSAL-NEXT:32 tiles: 6 skipped (18.8%), 4 partial (12.5%), 22 full (68.8%)
// CAUSAL-NEXT:work saved: 18.8% of the tiles' products; the mask is evaluated in 15.4% of what is left

// Lengths that aren't multiples: the last key tile always needs the mask.

// RUN: attn-compile %s --entry=none --emit=mask-report --lengths=65x150 | FileCheck %s --check-prefix=RAGGED
//      RAGGED: 65 queries x 150 keys
//      RAGGED: {{^}}##/{{$}}
// RAGGED-NEXT: {{^}}##/{{$}}
//      RAGGED: 6 tiles: 0 skipped (0.0%), 2 partial (33.3%), 4 full (66.7%)

// Nothing has no tiles, by ranges or lists.

// RUN: attn-compile %s --entry=causal --emit=mask-report --lengths=0x10 | FileCheck %s --check-prefix=ZERO
// RUN: attn-compile %s --entry=causal --emit=mask-report --lengths=10x0 | FileCheck %s --check-prefix=ZERO
// RUN: attn-compile %s --entry=two_sides --emit=mask-report --lengths=0x10 2>/dev/null | FileCheck %s --check-prefix=ZERO
// RUN: attn-compile %s --entry=two_sides --emit=mask-report --lengths=10x0 2>/dev/null | FileCheck %s --check-prefix=ZERO
// RUN: attn-compile %s --entry=causal --emit=mask-report --lengths=0x0 -o %t.zero.svg
// RUN: FileCheck %s --check-prefix=ZERO < %t.zero.svg
// ZERO: {{(^|>)}}0 tiles: 0 skipped (0.0%), 0 partial (0.0%), 0 full (0.0%)

// RUN: attn-compile %s --entry=none --emit=mask-report | FileCheck %s --check-prefix=NONE
// NONE: 1024 queries x 1024 keys
// NONE: {{^}}################{{$}}
// NONE: 256 tiles: 0 skipped (0.0%), 0 partial (0.0%), 256 full (100.0%)

// Keys from query - 64 to query, 64 rows and 64 keys a tile.

// RUN: attn-compile %s --entry=window --emit=mask-report --lengths=256x256 | FileCheck %s --check-prefix=WINDOW
//      WINDOW: {{^}}/...{{$}}
// WINDOW-NEXT: {{^}}//..{{$}}
// WINDOW-NEXT: {{^}}.//.{{$}}
// WINDOW-NEXT: {{^}}..//{{$}}

// RUN: attn-compile %s --entry=prefix --emit=mask-report --lengths=128x256 | FileCheck %s --check-prefix=PREFIX
//      PREFIX: {{^}}#/..{{$}}
// PREFIX-NEXT: {{^}}#/..{{$}}

// The last query tile has one query, which decides: keys 64 to 128 for it, and
// 0 to 64, where the window's begin hides some from each query, for none.

// RUN: attn-compile %s --entry=window --emit=mask-report --lengths=129x256 | FileCheck %s --check-prefix=TAIL
//      TAIL: {{^}}/...{{$}}
// TAIL-NEXT: {{^}}//..{{$}}
// TAIL-NEXT: {{^}}.#/.{{$}}

// Only head 1 sees anything.

// RUN: attn-compile %s --entry=one_head --emit=mask-report --lengths=64x128 | FileCheck %s --check-prefix=HEAD0
// RUN: attn-compile %s --entry=one_head --emit=mask-report --lengths=64x128 --head=1 --batch=3 | FileCheck %s --check-prefix=HEAD1
// HEAD0: batch 0, head 0
// HEAD0: {{^}}..{{$}}
// HEAD1: batch 3, head 1
// HEAD1: {{^}}##{{$}}

// The schedule is the one of the query length.

// RUN: attn-compile %s --entry=short --emit=mask-report --lengths=32x64 | FileCheck %s --check-prefix=SHORT
// RUN: attn-compile %s --entry=short --emit=mask-report --lengths=33x64 | FileCheck %s --check-prefix=LONG
// SHORT: tiles of 16 x 32
// LONG: tiles of 64 x 64

// Of tiles that are listed when the kernel runs every element is evaluated.

// RUN: attn-compile %s --entry=two_sides --emit=mask-report --lengths=256x256 2>/dev/null | FileCheck %s --check-prefix=LISTED
//      LISTED: {{^}}/...{{$}}
// LISTED-NEXT: {{^}}//..{{$}}
// LISTED-NEXT: {{^}}///.{{$}}
// LISTED-NEXT: {{^}}/.//{{$}}
//      LISTED: 16 tiles: 7 skipped (43.8%), 9 partial (56.2%), 0 full (0.0%)

// Tiles are those of the target.

// RUN: attn-compile %s --entry=causal --emit=mask-report --lengths=1024x1024 --target=sm_90a | FileCheck %s --check-prefix=SM90A
// SM90A: fused_attn_wgmma_f16_d64: 1024 queries x 1024 keys, batch 0, head 0, tiles of 192 x 128
// SM90A: {{^}}//......{{$}}

// Cells of large maps stand for several tiles.

// RUN: attn-compile %s --entry=causal --emit=mask-report --lengths=8192x16384 | FileCheck %s --check-prefix=LARGE
//      LARGE: {{^}}################################/...............................{{$}}
// LARGE-NEXT: {{^}}################################/...............................{{$}}
// LARGE-NEXT: {{^}}#
//      LARGE: each cell stands for 2 x 4 tiles; / also where they differ

// RUN: attn-compile %s --entry=causal --emit=mask-report --lengths=128x256 -o %t.svg
// RUN: FileCheck %s --check-prefix=SVG < %t.svg
// RUN: %python -c "import sys, xml.dom.minidom as dom; dom.parse(sys.argv[1])" %t.svg
//      SVG: <svg xmlns="http://www.w3.org/2000/svg"
//      SVG: <rect class="full" x="8" y="24" width="16" height="8"/>
// SVG-NEXT: <rect class="partial" x="24" y="24" width="8" height="8"/>
// SVG-NEXT: <rect class="skipped" x="32" y="24" width="8" height="8"/>
// SVG-NEXT: <rect class="full" x="8" y="32" width="24" height="8"/>
// SVG-NEXT: <rect class="partial" x="32" y="32" width="8" height="8"/>
//      SVG: 8 tiles: 1 skipped
//      SVG: </svg>

!t = tensor<?x2x?x64xf16>

func.func @causal(%q: !t, %k: !t, %o: !t) -> !t {
  %r = attn.attention ins(%q, %k, %k : !t, !t, !t) outs(%o : !t)
    mask_mod (%b: i32, %h: i32, %q_idx: i32, %kv_idx: i32) {
      %q_len = attn.q_len : i32
      %kv_len = attn.kv_len : i32
      %shift = arith.subi %kv_len, %q_len : i32
      %last = arith.addi %q_idx, %shift : i32
      %visible = arith.cmpi sle, %kv_idx, %last : i32
      attn.yield %visible : i1
    } -> !t
  return %r : !t
}

func.func @none(%q: !t, %k: !t, %o: !t) -> !t {
  %r = attn.attention ins(%q, %k, %k : !t, !t, !t) outs(%o : !t) -> !t
  return %r : !t
}

func.func @window(%q: !t, %k: !t, %o: !t) -> !t {
  %r = attn.attention ins(%q, %k, %k : !t, !t, !t) outs(%o : !t)
    mask_mod (%b: i32, %h: i32, %q_idx: i32, %kv_idx: i32) {
      %c64 = arith.constant 64 : i32
      %first = arith.subi %q_idx, %c64 : i32
      %near = arith.cmpi sge, %kv_idx, %first : i32
      %past = arith.cmpi sle, %kv_idx, %q_idx : i32
      %visible = arith.andi %near, %past : i1
      attn.yield %visible : i1
    } -> !t
  return %r : !t
}

func.func @prefix(%q: !t, %k: !t, %o: !t) -> !t {
  %r = attn.attention ins(%q, %k, %k : !t, !t, !t) outs(%o : !t)
    mask_mod (%b: i32, %h: i32, %q_idx: i32, %kv_idx: i32) {
      %c100 = arith.constant 100 : i32
      %visible = arith.cmpi slt, %kv_idx, %c100 : i32
      attn.yield %visible : i1
    } -> !t
  return %r : !t
}

func.func @one_head(%q: !t, %k: !t, %o: !t) -> !t {
  %r = attn.attention ins(%q, %k, %k : !t, !t, !t) outs(%o : !t)
    mask_mod (%b: i32, %h: i32, %q_idx: i32, %kv_idx: i32) {
      %c1 = arith.constant 1 : i32
      %visible = arith.cmpi eq, %h, %c1 : i32
      attn.yield %visible : i1
    } -> !t
  return %r : !t
}

func.func @two_sides(%q: !t, %k: !t, %o: !t) -> !t {
  %r = attn.attention ins(%q, %k, %k : !t, !t, !t) outs(%o : !t)
    mask_mod (%b: i32, %h: i32, %q_idx: i32, %kv_idx: i32) {
      %c4 = arith.constant 4 : i32
      %c64 = arith.constant 64 : i32
      %first = arith.cmpi slt, %kv_idx, %c4 : i32
      %d = arith.subi %q_idx, %kv_idx : i32
      %near = arith.cmpi ule, %d, %c64 : i32
      %visible = arith.ori %first, %near : i1
      attn.yield %visible : i1
    } -> !t
  return %r : !t
}

func.func @short(%q: !t, %k: !t, %o: !t) -> !t {
  %r = attn.attention ins(%q, %k, %k : !t, !t, !t) outs(%o : !t)
    {schedule = #attn.schedule<block_m = 64, block_n = 64, num_stages = 1, num_warps = 1>,
     short_schedules = [#attn.short_schedule<max_q_len = 32,
       schedule = <block_m = 16, block_n = 32, num_stages = 1, num_warps = 1>>]} -> !t
  return %r : !t
}
