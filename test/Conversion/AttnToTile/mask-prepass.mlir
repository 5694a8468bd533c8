// RUN: attn-opt --convert-attn-to-tile=target=sm_80 --canonicalize --cse --split-input-file -verify-diagnostics %s | FileCheck %s

// A program of the first kernel for each tile of each read, of the second for
// each granule of 64 queries; of a size 1 where nothing depends on the index.
// CHECK-LABEL: func.func @documents
// CHECK-DAG: %[[GRANULES:.*]] = arith.ceildivsi %{{.*}}, %c64
// CHECK-DAG: %[[KEYS:.*]] = arith.ceildivsi %{{.*}}, %c32
// CHECK: memref.alloc(%[[B:.*]], %[[GRANULES]]) : memref<?x1x?x1x2xi32>
// CHECK: memref.alloc(%[[KEYS]]) : memref<1x1x1x?x2xi32>
// CHECK: %[[TILES:.*]] = arith.ceildivsi %{{.*}}, %c128
// CHECK: %[[PADDED:.*]] = arith.muli %[[TILES]], %c2
// CHECK: memref.alloc(%[[B]], %[[PADDED]]) : memref<?x1x?x4xi32>
// CHECK: tile.launch @[[NAME:.*]]_extremes grid(%{{.*}}) args(%arg1, %arg2, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) prepass
// CHECK: tile.launch @[[NAME]]_ranges grid(%{{.*}}) args(%arg1, %arg2, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[CAST:.*]]) prepass
// CHECK: tile.launch @[[NAME]] grid(%{{.*}}) args({{.*}}, %[[CAST]]) cost

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

// What depends on the query alone is read once.
// CHECK: tile.kernel @[[NAME]]_ranges({{.*}}) attributes {num_warps = 1 : i32}
// CHECK-COUNT-2: tile.gather %{{.*}} in_bounds [0, 1, 3, 4]
// CHECK: tile.reduce_range %c0_i32 to %{{.*}} min 2
// CHECK-COUNT-2: tile.gather %{{.*}} in_bounds [0, 1, 3, 4]
// CHECK: tile.reduce_range %{{.*}} to %{{.*}} min 1
// CHECK-COUNT-4: tile.store_element

// CHECK: tile.kernel @[[NAME]](
// CHECK: tile.mask %{{.*}} bounds(%{{.*}}[%{{.*}}, %c0_i32] : memref<?x?x?x4xi32>) rows 64 (
func.func @documents(%q: memref<?x2x?x64xf16>, %of_q: memref<?x?xi32>, %of_k: memref<?xi64>) {
  attn.attention ins(%q, %q, %q, %of_q, %of_k : memref<?x2x?x64xf16>, memref<?x2x?x64xf16>, memref<?x2x?x64xf16>, memref<?x?xi32>, memref<?xi64>)
    outs(%q : memref<?x2x?x64xf16>)
    {schedule = #attn.schedule<block_m = 128, block_n = 32, num_stages = 1, num_warps = 4>}
    mask_mod (%b: i32, %h: i32, %i: i32, %j: i32, %x: memref<?x?xi32>, %y: memref<?xi64>) {
      %a = attn.capture_load %x[%b, %i] : memref<?x?xi32> -> i32
      %c = attn.capture_load %y[%j] : memref<?xi64> -> i64
      %d = arith.extsi %a : i32 to i64
      %keep = arith.cmpi eq, %c, %d : i64
      attn.yield %keep : i1
    }
  return
}

// -----

// Four heads share the mask.
// CHECK-LABEL: func.func @shared_table
// CHECK: memref.alloc(%{{.*}}, %{{.*}}) : memref<1x1x?x?x2xi32>
// CHECK: _extremes
func.func @shared_table(%q: memref<?x4x?x64xf16>, %t: memref<?x?xi1>) {
  attn.attention ins(%q, %q, %q, %t : memref<?x4x?x64xf16>, memref<?x4x?x64xf16>, memref<?x4x?x64xf16>, memref<?x?xi1>)
    outs(%q : memref<?x4x?x64xf16>)
    {schedule = #attn.schedule<block_m = 128, block_n = 32, num_stages = 1, num_warps = 4>}
    mask_mod (%b: i32, %h: i32, %i: i32, %j: i32, %x: memref<?x?xi1>) {
      %keep = attn.capture_load %x[%i, %j] : memref<?x?xi1> -> i1
      attn.yield %keep : i1
    }
  return
}

// -----

// Lengths of the batch need no pre-pass, nor does a mask that each head has for
// itself, or floats.
// CHECK-LABEL: func.func @nothing_to_find
// CHECK-NOT: _extremes
// CHECK-NOT: bounds(
func.func @nothing_to_find(%q: memref<?x4x?x64xf16>, %n: memref<?xi32>, %t: memref<4x?x?xi1>, %f: memref<?xf32>) {
  attn.attention ins(%q, %q, %q, %n, %t, %f : memref<?x4x?x64xf16>, memref<?x4x?x64xf16>, memref<?x4x?x64xf16>, memref<?xi32>, memref<4x?x?xi1>, memref<?xf32>)
    outs(%q : memref<?x4x?x64xf16>)
    {schedule = #attn.schedule<block_m = 128, block_n = 32, num_stages = 1, num_warps = 4>}
    mask_mod (%b: i32, %h: i32, %i: i32, %j: i32, %lens: memref<?xi32>, %x: memref<4x?x?xi1>, %y: memref<?xf32>) {
      %len = attn.capture_load %lens[%b] : memref<?xi32> -> i32
      %in = arith.cmpi slt, %j, %len : i32
      %own = attn.capture_load %x[%h, %i, %j] : memref<4x?x?xi1> -> i1
      %w = attn.capture_load %y[%j] : memref<?xf32> -> f32
      %zero = arith.constant 0.0 : f32
      %p = arith.cmpf ogt, %w, %zero : f32
      %both = arith.andi %in, %own : i1
      %keep = arith.andi %both, %p : i1
      attn.yield %keep : i1
    }
  return
}

// -----

// CHECK-LABEL: func.func @opaque
// CHECK: _extremes
func.func @opaque(%q: memref<?x4x?x64xf16>, %t: memref<?xi32>) {
  attn.attention ins(%q, %q, %q, %t : memref<?x4x?x64xf16>, memref<?x4x?x64xf16>, memref<?x4x?x64xf16>, memref<?xi32>)
    outs(%q : memref<?x4x?x64xf16>)
    {schedule = #attn.schedule<block_m = 128, block_n = 32, num_stages = 1, num_warps = 4>}
    mask_mod (%b: i32, %h: i32, %i: i32, %j: i32, %x: memref<?xi32>) {
      %a = attn.capture_load %x[%j] : memref<?xi32> -> i32
      // expected-remark @below {{bounds of this aren't known before the attention runs}}
      %bits = arith.xori %a, %i : i32
      %keep = arith.cmpi slt, %bits, %i : i32
      attn.yield %keep : i1
    }
  return
}
