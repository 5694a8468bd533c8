// RUN: attn-opt --convert-attn-to-tile=target=sm_80 --canonicalize --cse --split-input-file -verify-diagnostics %s | FileCheck %s

// A program of the first kernel for each tile of each read, of the second for
// each granule of 64 queries and 8 tiles of keys, of the third for each tile of
// queries; of a size 1 where nothing depends on the index.
// CHECK-LABEL: func.func @documents
// CHECK-DAG: %[[GRANULES:.*]] = arith.ceildivsi %{{.*}}, %c64
// CHECK-DAG: %[[KEYS:.*]] = arith.ceildivsi %{{.*}}, %c32
// CHECK-DAG: %[[TILES:.*]] = arith.ceildivsi %{{.*}}, %c128
// CHECK-DAG: %[[PADDED:.*]] = arith.muli %[[TILES]], %c2
// CHECK: memref.alloc(%[[B:.*]], %[[GRANULES]]) : memref<?x1x?x1x2xi32>
// CHECK: memref.alloc(%[[KEYS]]) : memref<1x1x1x?x2xi32>
// CHECK: %[[GROUPS:.*]] = arith.ceildivsi %[[KEYS]], %c8
// CHECK: %[[CLASSES:.*]] = memref.alloc(%[[B]], %[[GRANULES]], %[[GROUPS]]) : memref<?x1x?x?xi32>
// CHECK: %[[LISTS:.*]] = memref.alloc(%[[B]], %[[TILES]], %[[KEYS]]) : memref<?x1x?x?xi32>
// CHECK: memref.alloc(%[[B]], %[[PADDED]]) : memref<?x1x?x4xi32>
// CHECK: tile.launch @[[NAME:.*]]_extremes grid(%{{.*}}) args(%arg1, %arg2, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) prepass
// CHECK: tile.launch @[[NAME]]_classes grid(%{{.*}}) args(%arg1, %arg2, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[CLASSES:.*]]) prepass
// CHECK: tile.launch @[[NAME]]_tiles grid(%{{.*}}) args(%arg1, %arg2, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[CLASSES]], %[[LISTS:.*]], %[[RANGES:.*]]) prepass
// CHECK: tile.launch @[[NAME]] grid(%{{.*}}) args({{.*}}, %[[RANGES]], %[[LISTS]]) cost

// i64 is kept within i32.
// CHECK: tile.kernel @[[NAME]]_extremes({{.*}}) attributes {num_warps = 1 : i32}
// CHECK: scf.if
// CHECK: tile.reduce_range %c0_i32 to %{{.*}} min 1
// CHECK: tile.gather %{{.*}} in_bounds [0] : memref<?x?xi32>, (i32, i32) -> i32
// CHECK: scf.if
// CHECK: tile.reduce_range
// CHECK: %[[WIDE:.*]] = tile.gather %{{.*}} : memref<?xi64>, (i32) -> i64
// CHECK: arith.maxsi %[[WIDE]], %c-2147483648_i64
// CHECK: arith.trunci

// Each thread bounds a tile; what is open (3), the elements decide, until it is
// known that some are visible and some aren't.
// CHECK: tile.kernel @[[NAME]]_classes({{.*}}) attributes {num_warps = 1 : i32}
// CHECK-COUNT-2: tile.gather %{{.*}} in_bounds [0, 1, 3, 4]
// CHECK: tile.reduce_range %c0_i32 to %c8_i32 min 0
// CHECK-COUNT-2: tile.gather %{{.*}} in_bounds [0, 1, 3, 4]
// CHECK: %[[CLASSES:.*]] = scf.for %{{.*}} = %c0_i32 to %{{.*}} step %c1_i32 iter_args(%[[BEFORE:.*]] = %c0_i32)
// CHECK: arith.cmpi eq, %{{.*}}, %c3_i32
// CHECK: %[[CLASS:.*]] = scf.if
// CHECK: scf.for {{.*}} step %c16_i32
// CHECK: %[[MIXED:.*]] = arith.cmpi slt
// CHECK: scf.if %[[MIXED]]
// CHECK: } else {
// CHECK: tile.reduce_range {{.*}} min 1
// CHECK: tile.gather %{{.*}} in_bounds [0] : memref<?x?xi32>, (i32, i32) -> i32
// CHECK: %[[SHIFTED:.*]] = arith.shli %[[CLASS]]
// CHECK: arith.ori %[[BEFORE]], %[[SHIFTED]]
// CHECK: tile.store_element %[[CLASSES]], %{{.*}} : memref<?x?x?x?xi32>

// Two granules a tile, 8 tiles of keys at once: full tiles first, then the
// others.
// CHECK: tile.kernel @[[NAME]]_tiles({{.*}}) attributes {num_warps = 1 : i32}
// CHECK: %[[FULL:.*]] = scf.for {{.*}} step %c8_i32 iter_args(%{{.*}} = %c0_i32) -> (i32)
// CHECK-COUNT-2: tile.gather
// CHECK-COUNT-8: tile.store_element
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %[[FULL]], {{.*}}) -> (i32, i32, i32, i32, i32, i32, i32, i32, i32)
// CHECK-COUNT-8: tile.store_element {{.*}} : memref<?x?x?x?xi32>
// CHECK-COUNT-8: tile.store_element {{.*}} : memref<?x?x?x4xi32>

// CHECK: tile.kernel @[[NAME]](
// CHECK: tile.mask %{{.*}} bounds(%{{.*}}[%{{.*}}, %c0_i32, %c0_i32] : memref<?x?x?x4xi32>) rows 64 tiles(%{{.*}} : memref<?x?x?x?xi32>) (
func.func @documents(%q: memref<?x2x?x64xf16>, %of_q: memref<?x?xi32>, %of_k: memref<?xi64>) {
  // expected-remark @below {{one range of keys for each tile of queries doesn't say what this mask hides; kernels that run first list the tiles to visit}}
  attn.attention ins(%q, %q, %q, %of_q, %of_k : memref<?x2x?x64xf16>, memref<?x2x?x64xf16>, memref<?x2x?x64xf16>, memref<?x?xi32>, memref<?xi64>)
    outs(%q : memref<?x2x?x64xf16>)
    {schedule = #attn.schedule<block_m = 128, block_n = 32, num_stages = 1, num_warps = 4>}
    mask_mod (%b: i32, %h: i32, %i: i32, %j: i32, %x: memref<?x?xi32>, %y: memref<?xi64>) {
      %a = attn.capture_load %x[%b, %i] : memref<?x?xi32> -> i32
      // expected-note @below {{mask analysis can't see through this}}
      %c = attn.capture_load %y[%j] : memref<?xi64> -> i64
      // expected-note @below {{mask analysis can't see through this}}
      %d = arith.extsi %a : i32 to i64
      %keep = arith.cmpi eq, %c, %d : i64
      attn.yield %keep : i1
    }
  return
}

// -----

// A read by query and key has no bounds that cost less than its elements. Each
// head has a list of its own.
// CHECK-LABEL: func.func @table
// CHECK-NOT: _extremes
// CHECK: memref.alloc(%{{.*}}, %{{.*}}) : memref<1x4x?x?xi32>
// CHECK: tile.launch @[[NAME:.*]]_classes grid(%{{.*}}) args(%arg2, %{{.*}}, %{{.*}}, %{{.*}}) prepass
// CHECK: tile.kernel @[[NAME]](
// CHECK: %[[HEAD:.*]] = arith.remui %{{.*}}, %c4_i32
// CHECK: bounds(%{{.*}}[%c0_i32, %[[HEAD]], %c0_i32]
func.func @table(%q: memref<?x4x?x64xf16>, %bias: memref<?xf32>, %t: memref<4x?x?xf16>) {
  // expected-remark @below {{kernels that run first list the tiles to visit}}
  attn.attention ins(%q, %q, %q, %bias, %t : memref<?x4x?x64xf16>, memref<?x4x?x64xf16>, memref<?x4x?x64xf16>, memref<?xf32>, memref<4x?x?xf16>)
    outs(%q : memref<?x4x?x64xf16>)
    {schedule = #attn.schedule<block_m = 128, block_n = 32, num_stages = 1, num_warps = 4>}
    score_mod (%s: f32, %b: i32, %h: i32, %i: i32, %j: i32, %w: memref<?xf32>, %x: memref<4x?x?xf16>) {
      %a = attn.capture_load %w[%j] : memref<?xf32> -> f32
      %r = arith.addf %s, %a : f32
      attn.yield %r : f32
    }
    mask_mod (%b: i32, %h: i32, %i: i32, %j: i32, %w: memref<?xf32>, %x: memref<4x?x?xf16>) {
      %a = attn.capture_load %x[%h, %i, %j] : memref<4x?x?xf16> -> f16
      %zero = arith.constant 0.0 : f16
      // expected-note @below {{mask analysis can't see through this}}
      %keep = arith.cmpf ogt, %a, %zero : f16
      attn.yield %keep : i1
    }
  return
}

// -----

// Visible keys on both sides of hidden ones.
// CHECK-LABEL: func.func @two_ranges
// CHECK: tile.launch @{{.*}}_classes grid(%{{.*}}) args(%{{.*}}, %{{.*}}, %{{.*}}) prepass : i32, i32, memref<?x?x?x?xi32>
// CHECK: tile.kernel @{{.*}}_classes
func.func @two_ranges(%q: memref<?x4x?x64xf16>) {
  // expected-remark @below {{kernels that run first list the tiles to visit}}
  attn.attention ins(%q, %q, %q : memref<?x4x?x64xf16>, memref<?x4x?x64xf16>, memref<?x4x?x64xf16>)
    outs(%q : memref<?x4x?x64xf16>)
    {schedule = #attn.schedule<block_m = 128, block_n = 32, num_stages = 1, num_warps = 4>}
    mask_mod (%b: i32, %h: i32, %i: i32, %j: i32) {
      %c4 = arith.constant 4 : i32
      %first = arith.cmpi slt, %j, %c4 : i32
      %d = arith.subi %i, %j : i32
      %near = arith.cmpi ult, %d, %c4 : i32
      %keep = arith.ori %first, %near : i1
      attn.yield %keep : i1
    }
  return
}

// -----

// One range of keys says it all: causal up to the length of the batch, behind a
// prefix that all see.
// CHECK-LABEL: func.func @nothing_to_list
// CHECK-NOT: prepass
// CHECK-NOT: bounds(
func.func @nothing_to_list(%q: memref<?x4x?x64xf16>, %n: memref<?xi32>) {
  attn.attention ins(%q, %q, %q, %n : memref<?x4x?x64xf16>, memref<?x4x?x64xf16>, memref<?x4x?x64xf16>, memref<?xi32>)
    outs(%q : memref<?x4x?x64xf16>)
    {schedule = #attn.schedule<block_m = 128, block_n = 32, num_stages = 1, num_warps = 4>}
    mask_mod (%b: i32, %h: i32, %i: i32, %j: i32, %lens: memref<?xi32>) {
      %len = attn.capture_load %lens[%b] : memref<?xi32> -> i32
      %in = arith.cmpi slt, %j, %len : i32
      %before = arith.cmpi sle, %j, %i : i32
      %c100 = arith.constant 100 : i32
      %first = arith.cmpi slt, %j, %c100 : i32
      %causal = arith.ori %before, %first : i1
      %keep = arith.andi %in, %causal : i1
      attn.yield %keep : i1
    }
  return
}

// -----

// Of packed sequences, each granule of 64 queries is of one: a tile's number
// says of which, and the programs behind those that whole tiles fill take what the
// sequences leave over. At most 8 programs share the groups of a granule, which
// may be many or none. The mask reads lists and ranges from the number of the
// sequence's first tile on.
// CHECK-LABEL: func.func @packed
// CHECK: %[[NQ:.*]] = memref.dim %arg0, %c2
// CHECK: %[[NK:.*]] = memref.dim %arg1, %c2
// CHECK: %[[OFFSETS:.*]] = memref.dim %arg2, %c0
// CHECK: %[[S:.*]] = arith.subi %[[OFFSETS]], %c1
// CHECK: %[[WHOLE:.*]] = arith.floordivsi %[[NQ]], %c128
// CHECK: %[[TILES:.*]] = arith.addi %[[WHOLE]], %[[S]]
// CHECK: %[[GRANULES:.*]] = arith.muli %[[TILES]], %c2
// CHECK: memref.alloc(%[[GRANULES]]) : memref<1x1x?x1x2xi32>
// CHECK: memref.alloc(%[[S]], %{{.*}}) : memref<?x1x1x?x2xi32>
// CHECK: memref.alloc(%[[GRANULES]], %{{.*}}) : memref<1x1x?x?xi32>
// CHECK: tile.launch @[[NAME:.*]]_classes grid(%{{.*}}) args(%arg4, %arg5, %arg2, %arg3, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) prepass
// CHECK: tile.kernel @[[NAME]]_classes(%{{.*}}, %{{.*}}, %[[CU_Q:[a-z0-9]+]]: memref<?xi32>, %[[CU_K:[a-z0-9]+]]: memref<?xi32>,
// CHECK: %[[PROGRAMS:.*]] = arith.minsi %{{.*}}, %c8_i32
// CHECK: %[[FOUND:.*]] = scf.for
// CHECK: tile.gather %[[CU_Q]]
// CHECK: tile.gather %[[CU_K]][%[[FOUND]]]
// CHECK: scf.for %[[GROUP:.*]] = %{{.*}} to %{{.*}} step %[[PROGRAMS]]
// CHECK: tile.store_element {{.*}}, %[[GROUP]]] :
// CHECK: tile.kernel @[[NAME]](
// CHECK: %[[SEQUENCE:.*]] = scf.for
// CHECK: scf.yield
// CHECK: %[[FIRST:.*]] = arith.addi %{{.*}}, %[[SEQUENCE]] : i32
// CHECK: bounds(%{{.*}}[%c0_i32, %c0_i32, %[[FIRST]]] : memref<?x?x?x4xi32>) rows 64 tiles
func.func @packed(%q: memref<1x4x?x64xf16>, %k: memref<1x4x?x64xf16>, %cu_q: memref<?xi32>, %cu_k: memref<?xi32>, %of_q: memref<?x?xi32>, %of_k: memref<?x?xi32>) {
  // expected-remark @below {{kernels that run first list the tiles to visit}}
  attn.attention ins(%q, %k, %k, %of_q, %of_k : memref<1x4x?x64xf16>, memref<1x4x?x64xf16>, memref<1x4x?x64xf16>, memref<?x?xi32>, memref<?x?xi32>)
    cu_q(%cu_q : memref<?xi32>) cu_k(%cu_k : memref<?xi32>) outs(%q : memref<1x4x?x64xf16>)
    {schedule = #attn.schedule<block_m = 128, block_n = 32, num_stages = 1, num_warps = 4>}
    mask_mod (%b: i32, %h: i32, %i: i32, %j: i32, %x: memref<?x?xi32>, %y: memref<?x?xi32>) {
      // expected-note @below {{mask analysis can't see through this}}
      %a = attn.capture_load %x[%b, %i] : memref<?x?xi32> -> i32
      // expected-note @below {{mask analysis can't see through this}}
      %c = attn.capture_load %y[%b, %j] : memref<?x?xi32> -> i32
      %keep = arith.cmpi eq, %c, %a : i32
      attn.yield %keep : i1
    }
  return
}

// -----

// Each sequence of a cache has its own classes, whatever the mask reads: its
// last keys are somewhere else.
// CHECK-LABEL: func.func @cache
// CHECK: memref.alloc(%[[B:.*]], %{{.*}}, %{{.*}}) : memref<?x1x?x?xi32>
// CHECK: tile.launch @[[NAME:.*]]_classes grid(%{{.*}}) args(%arg2, %{{.*}}, %{{.*}}, %{{.*}}) prepass
// CHECK: tile.kernel @[[NAME]]_classes(%[[LENGTHS:[a-z0-9]+]]: memref<?xi32>,
// CHECK: tile.gather %[[LENGTHS]]
func.func @cache(%q: memref<?x4x?x64xf16>, %k: memref<?x4x?x64xf16>, %n: memref<?xi32>) {
  // expected-remark @below {{kernels that run first list the tiles to visit}}
  attn.attention ins(%q, %k, %k : memref<?x4x?x64xf16>, memref<?x4x?x64xf16>, memref<?x4x?x64xf16>)
    kv_len(%n : memref<?xi32>) outs(%q : memref<?x4x?x64xf16>)
    {schedule = #attn.schedule<block_m = 128, block_n = 32, num_stages = 1, num_warps = 4>}
    mask_mod (%b: i32, %h: i32, %i: i32, %j: i32) {
      %c4 = arith.constant 4 : i32
      %first = arith.cmpi slt, %j, %c4 : i32
      %d = arith.subi %i, %j : i32
      %near = arith.cmpi ult, %d, %c4 : i32
      %keep = arith.ori %first, %near : i1
      attn.yield %keep : i1
    }
  return
}

// -----

// Few queries: no list, and the mask is evaluated in every tile.
// CHECK-LABEL: func.func @decode
// CHECK-NOT: prepass
func.func @decode(%q: memref<?x4x?x64xf16>) {
  // expected-remark @below {{doesn't say what this mask hides; kernels for few queries don't wait for a list, visit all tiles in the range, and evaluate the mask}}
  attn.attention ins(%q, %q, %q : memref<?x4x?x64xf16>, memref<?x4x?x64xf16>, memref<?x4x?x64xf16>)
    outs(%q : memref<?x4x?x64xf16>)
    {schedule = #attn.schedule<block_m = 16, block_n = 32, num_stages = 1, num_warps = 1, decode = <programs_per_sm = 1>>}
    mask_mod (%b: i32, %h: i32, %i: i32, %j: i32) {
      %c2 = arith.constant 2 : i32
      // expected-note @below {{mask analysis can't see through this}}
      %rest = arith.remsi %j, %c2 : i32
      %keep = arith.cmpi slt, %rest, %i : i32
      attn.yield %keep : i1
    }
  return
}

// -----

// One remark for all kernels of an operator.
// CHECK-LABEL: func.func @some_few
// CHECK-COUNT-2: prepass
// CHECK-NOT: prepass
func.func @some_few(%q: memref<?x4x?x64xf16>) {
  // expected-remark @below {{kernels that run first list the tiles to visit}}
  // expected-note @below {{kernels for few queries don't wait for a list, visit all tiles in the range, and evaluate the mask}}
  attn.attention ins(%q, %q, %q : memref<?x4x?x64xf16>, memref<?x4x?x64xf16>, memref<?x4x?x64xf16>)
    outs(%q : memref<?x4x?x64xf16>)
    {schedule = #attn.schedule<block_m = 128, block_n = 32, num_stages = 1, num_warps = 4>,
     short_schedules = [#attn.short_schedule<max_q_len = 16,
       schedule = <block_m = 16, block_n = 32, num_stages = 1, num_warps = 1, decode = <programs_per_sm = 1>>>]}
    mask_mod (%b: i32, %h: i32, %i: i32, %j: i32) {
      %c2 = arith.constant 2 : i32
      // expected-note @below {{mask analysis can't see through this}}
      %rest = arith.remsi %j, %c2 : i32
      %keep = arith.cmpi slt, %rest, %i : i32
      attn.yield %keep : i1
    }
  return
}
