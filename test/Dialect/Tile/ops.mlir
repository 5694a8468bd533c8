// RUN: attn-opt %s | attn-opt | FileCheck %s
// RUN: attn-opt %s -mlir-print-op-generic | attn-opt | FileCheck %s

// CHECK-DAG: #[[MMA:.*]] = #tile.mma<warps = 4>
// CHECK-DAG: #[[OPERAND:.*]] = #tile.operand<#mma>
// CHECK-DAG: #[[BLOCKED:.*]] = #tile.blocked<vector = 8, threads_per_row = 8, warps = 4>
// CHECK-DAG: #[[ROW:.*]] = #tile.row<#[[MMA]]>
// CHECK-DAG: #[[COL:.*]] = #tile.col<#[[MMA]]>
// CHECK-DAG: #[[SHARED:shared]] = #tile.shared
#mma = #tile.mma<warps = 4>
#operand = #tile.operand<<warps = 4>>
#blocked = #tile.blocked<vector = 8, threads_per_row = 8, warps = 4>
#row = #tile.row<#mma>
#col = #tile.col<#mma>
#shared = #tile.shared

// CHECK-LABEL: func private @layouts
// CHECK-SAME: tensor<64x64xf32, #[[MMA]]>
// CHECK-SAME: tensor<64x64xbf16, #[[OPERAND]]>
// CHECK-SAME: tensor<64x64xbf16, #[[BLOCKED]]>
// CHECK-SAME: tensor<64xf32, #[[ROW]]>
// CHECK-SAME: tensor<64xi32, #[[COL]]>
// CHECK-SAME: tensor<64x64xbf16, #[[SHARED]]>
func.func private @layouts(tensor<64x64xf32, #mma>,
                           tensor<64x64xbf16, #operand>,
                           tensor<64x64xbf16, #blocked>,
                           tensor<64xf32, #row>, tensor<64xi32, #col>,
                           tensor<64x64xbf16, #shared>)

// CHECK-LABEL: tile.kernel @scale(
// CHECK-SAME: %[[X:.*]]: memref<?x?xf32, strided<[?, 1]>>, %[[C:.*]]: f32) attributes {num_warps = 4 : i32} {
// CHECK: %[[PID:.*]] = tile.program_id : i32
// CHECK: tile.load %[[X]][%{{.*}}, %{{.*}}] : memref<?x?xf32, strided<[?, 1]>> -> tensor<64x64xf32>
// CHECK: tile.store %{{.*}}, %[[X]][%{{.*}}, %{{.*}}] : tensor<64x64xf32>, memref<?x?xf32, strided<[?, 1]>>
// CHECK: tile.return
tile.kernel @scale(%x: memref<?x?xf32, strided<[?, 1]>>, %c: f32) attributes {num_warps = 4 : i32} {
  %pid = tile.program_id : i32
  %zero = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %row = arith.muli %pid, %c64 : i32
  %t = tile.load %x[%row, %zero] : memref<?x?xf32, strided<[?, 1]>> -> tensor<64x64xf32>
  %s = tensor.splat %c : tensor<64x64xf32>
  %y = arith.mulf %t, %s : tensor<64x64xf32>
  tile.store %y, %x[%row, %zero] : tensor<64x64xf32>, memref<?x?xf32, strided<[?, 1]>>
  tile.return
}

// CHECK-LABEL: func @launch
// CHECK: tile.launch @scale grid(%{{.*}}) args(%{{.*}}, %{{.*}}) cost(bytes %{{.*}}, flops %{{.*}}) : memref<?x?xf32, strided<[?, 1]>>, f32
// CHECK: tile.launch @scale grid(%{{.*}}) args(%{{.*}}, %{{.*}}) : memref<?x?xf32, strided<[?, 1]>>, f32
// CHECK: tile.launch @nothing grid(%{{.*}}) args(){{$}}
func.func @launch(%x: memref<?x?xf32, strided<[?, 1]>>, %c: f32, %n: index,
                  %b: index, %f: index) {
  tile.launch @scale grid(%n) args(%x, %c) cost(bytes %b, flops %f)
    : memref<?x?xf32, strided<[?, 1]>>, f32
  tile.launch @scale grid(%n) args(%x, %c) : memref<?x?xf32, strided<[?, 1]>>, f32
  tile.launch @nothing grid(%n) args()
  return
}

tile.kernel @nothing() attributes {num_warps = 1 : i32} {
  tile.return
}

// CHECK-LABEL: func @compute
// CHECK: tile.mma mma %{{.*}}, %{{.*}}, %{{.*}} {transpose_b} : tensor<128x64xbf16>, tensor<64x64xbf16>, tensor<128x64xf32>
// CHECK: tile.mma tf32x3 %{{.*}}, %{{.*}}, %{{.*}} : tensor<128x64xf32>, tensor<64x64xf32>, tensor<128x64xf32>
// CHECK: tile.mma fma
// CHECK: tile.reduce max %{{.*}} : tensor<128x64xf32> -> tensor<128xf32>
// CHECK: tile.reduce add %{{.*}} : tensor<128x64xf32> -> tensor<128xf32>
// CHECK: tile.broadcast %{{.*}} dim 0 : tensor<128xf32> -> tensor<128x64xf32>
// CHECK: tile.iota : tensor<64xi32>
// CHECK: tile.broadcast %{{.*}} dim 1 : tensor<64xi32> -> tensor<128x64xi32>
// CHECK: tile.exp_diff %{{.*}}, %{{.*}} scale %{{.*}} : tensor<128x64xf32>, tensor<128xf32>
// CHECK: tile.exp_diff %{{.*}}, %{{.*}} scale %{{.*}} : tensor<128xf32>, tensor<128xf32>
// CHECK: %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} = tile.online_softmax %{{.*}}, %{{.*}}, %{{.*}} scale %{{.*}} : tensor<128x64xf32>, tensor<128xf32>
func.func @compute(%q: tensor<128x64xbf16>, %k: tensor<64x64xbf16>,
                   %a: tensor<128x64xf32>, %b: tensor<64x64xf32>,
                   %zero: tensor<128x64xf32>, %c: f32) {
  %s = tile.mma mma %q, %k, %zero {transpose_b}
    : tensor<128x64xbf16>, tensor<64x64xbf16>, tensor<128x64xf32>
  %s1 = tile.mma tf32x3 %a, %b, %zero
    : tensor<128x64xf32>, tensor<64x64xf32>, tensor<128x64xf32>
  %s2 = tile.mma fma %a, %b, %zero
    : tensor<128x64xf32>, tensor<64x64xf32>, tensor<128x64xf32>
  %m = tile.reduce max %s : tensor<128x64xf32> -> tensor<128xf32>
  %l = tile.reduce add %s : tensor<128x64xf32> -> tensor<128xf32>
  %mb = tile.broadcast %m dim 0 : tensor<128xf32> -> tensor<128x64xf32>
  %i = tile.iota : tensor<64xi32>
  %ib = tile.broadcast %i dim 1 : tensor<64xi32> -> tensor<128x64xi32>
  %p = tile.exp_diff %s, %m scale %c : tensor<128x64xf32>, tensor<128xf32>
  %alpha = tile.exp_diff %m, %m scale %c : tensor<128xf32>, tensor<128xf32>
  %o:4 = tile.online_softmax %s, %m, %l scale %c
    : tensor<128x64xf32>, tensor<128xf32>
  return
}

// CHECK-LABEL: func @element
// CHECK: tile.score_mod
// CHECK: tile.element %{{.*}} : tensor<128x64xbf16>
func.func @element(%s: tensor<128x64xf32>, %bias: tensor<128x64xbf16>, %q0: i32, %kv: i32) -> tensor<128x64xf32> {
  %t = tile.score_mod %s at (%q0, %kv) (%x: f32, %qi: i32, %ki: i32) {
    %b = tile.element %bias : tensor<128x64xbf16>
    %f = arith.extf %b : bf16 to f32
    %y = arith.addf %x, %f : f32
    tile.yield %y : f32
  } : tensor<128x64xf32>
  return %t : tensor<128x64xf32>
}

// CHECK-LABEL: func @score_regions
// CHECK: tile.score_mod %{{.*}} at(%{{.*}}, %{{.*}}) (%[[X:.*]]: f32, %{{.*}}: i32, %{{.*}}: i32) {
// CHECK: tile.yield %{{.*}} : f32
// CHECK: } : tensor<128x64xf32>
// CHECK: tile.mask %{{.*}} at(%{{.*}}, %{{.*}}) (%[[QI:.*]]: i32, %[[KI:.*]]: i32) {
// CHECK: arith.cmpi sle, %[[KI]], %[[QI]] : i32
// CHECK: tile.yield %{{.*}} : i1
// CHECK: } : tensor<128x64xf32>
func.func @score_regions(%s: tensor<128x64xf32>, %q0: i32, %kv: i32, %head: i32)
    -> tensor<128x64xf32> {
  %t = tile.score_mod %s at (%q0, %kv) (%x: f32, %qi: i32, %ki: i32) {
    %d = arith.subi %ki, %head : i32
    %f = arith.sitofp %d : i32 to f32
    %y = arith.addf %x, %f : f32
    tile.yield %y : f32
  } : tensor<128x64xf32>
  %u = tile.mask %t at (%q0, %kv) (%qi: i32, %ki: i32) {
    %keep = arith.cmpi sle, %ki, %qi : i32
    tile.yield %keep : i1
  } : tensor<128x64xf32>
  return %u : tensor<128x64xf32>
}

// CHECK-LABEL: func @deferred_rescale
// CHECK: tile.any_exceeds %{{.*}}, %{{.*}} : tensor<128x64xf32>, tensor<128xf32>
// CHECK: tile.fold_sum %{{.*}} : tensor<128x64xf32> -> tensor<128x8xf32>
func.func @deferred_rescale(%s: tensor<128x64xf32>, %limits: tensor<128xf32>) -> (i1, tensor<128x8xf32>) {
  %grew = tile.any_exceeds %s, %limits : tensor<128x64xf32>, tensor<128xf32>
  %sums = tile.fold_sum %s : tensor<128x64xf32> -> tensor<128x8xf32>
  return %grew, %sums : i1, tensor<128x8xf32>
}

// The regions hand values on and share the loop-carried ones.

// CHECK-LABEL: func @kv_loop_unordered
// CHECK: tile.kv_loop ranges({{.*}}) step 64 rows %{{.*}} iter_args(%{{.*}}) : f32 {unordered} qk
func.func @kv_loop_unordered(%n: i32, %rows: i32, %x: f32) -> f32 {
  %r = tile.kv_loop ranges(%n, %n, %n, %n) step 64 rows %rows iter_args(%x) : f32 {unordered}
    qk (%kv: i32, %c: f32) {
      tile.yield
    } score (%kv: i32, %c: f32) {
      tile.yield
    } softmax (%kv: i32, %c: f32) {
      tile.yield
    } pv (%kv: i32, %c: f32) {
      tile.yield %c : f32
    }
  return %r : f32
}

// CHECK-LABEL: func @kv_loop
// CHECK: tile.kv_loop ranges(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) step 64 iter_args(%{{.*}}, %{{.*}}, %{{.*}}) : tensor<128x64xf32>, tensor<128xf32>, tensor<128xf32>
// CHECK-SAME: qk (%[[KV:.*]]: i32, %{{.*}}: tensor<128x64xf32>, %{{.*}}: tensor<128xf32>, %{{.*}}: tensor<128xf32>) {
// CHECK: tile.load %{{.*}}[%{{.*}}, %{{.*}}, %[[KV]], %{{.*}}]
// CHECK: } score (
// CHECK: } softmax (
// CHECK: } pv (%{{.*}}: i32, %{{.*}}: tensor<128x64xf32>, %{{.*}}: tensor<128xf32>, %{{.*}}: tensor<128xf32>, %{{.*}}: tensor<128xf32>, %{{.*}}: tensor<128x64xf32>, %{{.*}}: tensor<128xf32>, %{{.*}}: tensor<128xf32>) {
// CHECK: tile.yield %{{.*}}, %{{.*}}, %{{.*}} : tensor<128x64xf32>, tensor<128xf32>, tensor<128xf32>
func.func @kv_loop(%k: memref<?x4x?x64xf32, strided<[?, ?, ?, 1]>>,
                   %q: tensor<128x64xf32>, %acc0: tensor<128x64xf32>,
                   %m0: tensor<128xf32>, %l0: tensor<128xf32>,
                   %zero: tensor<128x64xf32>, %c0: i32, %n: i32, %c: f32)
    -> tensor<128x64xf32> {
  %r:3 = tile.kv_loop ranges(%c0, %n, %n, %n) step 64
      iter_args(%acc0, %m0, %l0)
      : tensor<128x64xf32>, tensor<128xf32>, tensor<128xf32>
    qk (%kv: i32, %acc: tensor<128x64xf32>, %m: tensor<128xf32>,
        %l: tensor<128xf32>) {
      %kt = tile.load %k[%c0, %c0, %kv, %c0]
        : memref<?x4x?x64xf32, strided<[?, ?, ?, 1]>> -> tensor<64x64xf32>
      %s = tile.mma fma %q, %kt, %zero {transpose_b}
        : tensor<128x64xf32>, tensor<64x64xf32>, tensor<128x64xf32>
      tile.yield %s : tensor<128x64xf32>
    } score (%kv: i32, %s: tensor<128x64xf32>, %acc: tensor<128x64xf32>,
             %m: tensor<128xf32>, %l: tensor<128xf32>) {
      tile.yield %s : tensor<128x64xf32>
    } softmax (%kv: i32, %s: tensor<128x64xf32>, %acc: tensor<128x64xf32>,
               %m: tensor<128xf32>, %l: tensor<128xf32>) {
      %p, %m1, %l1, %alpha = tile.online_softmax %s, %m, %l scale %c
        : tensor<128x64xf32>, tensor<128xf32>
      tile.yield %p, %m1, %l1, %alpha
        : tensor<128x64xf32>, tensor<128xf32>, tensor<128xf32>, tensor<128xf32>
    } pv (%kv: i32, %p: tensor<128x64xf32>, %m1: tensor<128xf32>,
          %l1: tensor<128xf32>, %alpha: tensor<128xf32>,
          %acc: tensor<128x64xf32>, %m: tensor<128xf32>,
          %l: tensor<128xf32>) {
      %ab = tile.broadcast %alpha dim 0
        : tensor<128xf32> -> tensor<128x64xf32>
      %scaled = arith.mulf %acc, %ab : tensor<128x64xf32>
      %v = tile.load %k[%c0, %c0, %kv, %c0]
        : memref<?x4x?x64xf32, strided<[?, ?, ?, 1]>> -> tensor<64x64xf32>
      %acc1 = tile.mma fma %p, %v, %scaled
        : tensor<128x64xf32>, tensor<64x64xf32>, tensor<128x64xf32>
      tile.yield %acc1, %m1, %l1
        : tensor<128x64xf32>, tensor<128xf32>, tensor<128xf32>
    }
  return %r#0 : tensor<128x64xf32>
}

// CHECK-LABEL: tile.kernel @gather(
// CHECK-SAME: %[[TABLE:[a-z0-9]+]]: memref<16x?xbf16, strided<[?, 1]>>, %[[H:[a-z0-9]+]]: i32
// CHECK: tile.gather %[[TABLE]][%[[H]], %[[H]]] : memref<16x?xbf16, strided<[?, 1]>>, (i32, i32) -> bf16
// CHECK: tile.gather %[[TABLE]][%[[H]], %{{.*}}] in_bounds [0] : memref<16x?xbf16, strided<[?, 1]>>, (i32, tensor<64x64xi32>) -> tensor<64x64xbf16>
tile.kernel @gather(%table: memref<16x?xbf16, strided<[?, 1]>>, %h: i32) attributes {num_warps = 4 : i32} {
  %x = tile.gather %table[%h, %h] : memref<16x?xbf16, strided<[?, 1]>>, (i32, i32) -> bf16
  %d = tensor.splat %h : tensor<64x64xi32>
  %t = tile.gather %table[%h, %d] in_bounds [0] : memref<16x?xbf16, strided<[?, 1]>>, (i32, tensor<64x64xi32>) -> tensor<64x64xbf16>
  tile.return
}

// CHECK-LABEL: tile.kernel @reduce_range(
// CHECK-SAME: %[[TABLE:[a-z0-9]+]]: memref<?xi32>, %[[N:[a-z0-9]+]]: i32, %[[OUT:[a-z0-9]+]]: memref<?x2xi32>
// CHECK: %[[R:.*]]:2 = tile.reduce_range %{{.*}} to %[[N]] min 1 (%[[I:.*]]: i32) {
// CHECK: %[[X:.*]] = tile.gather %[[TABLE]][%[[I]]]
// CHECK: tile.yield %[[X]], %[[X]] : i32, i32
// CHECK: } -> i32, i32
// CHECK: tile.store_element %[[R]]#0, %[[OUT]][%{{.*}}, %{{.*}}] : memref<?x2xi32>
tile.kernel @reduce_range(%table: memref<?xi32>, %n: i32, %out: memref<?x2xi32>) attributes {num_warps = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %min, %max = tile.reduce_range %c0 to %n min 1 (%i: i32) {
    %x = tile.gather %table[%i] : memref<?xi32>, (i32) -> i32
    tile.yield %x, %x : i32, i32
  } -> i32, i32
  tile.store_element %min, %out[%c0, %c0] : memref<?x2xi32>
  tile.return
}

// CHECK-LABEL: func @bounded_mask
// CHECK: tile.mask %{{.*}} at(%{{.*}}, %{{.*}}) bounds(%{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}] : memref<?x?x?x4xi32>) rows 64 (
func.func @bounded_mask(%s: tensor<128x64xf32>, %m: memref<?x?x?x4xi32>, %i: i32) -> tensor<128x64xf32> {
  %t = tile.mask %s at (%i, %i) bounds(%m[%i, %i, %i] : memref<?x?x?x4xi32>) rows 64 (%q: i32, %k: i32) {
    %keep = arith.cmpi sle, %k, %q : i32
    tile.yield %keep : i1
  } : tensor<128x64xf32>
  return %t : tensor<128x64xf32>
}

// CHECK-LABEL: func @listed_tiles
// CHECK: tile.kv_loop ranges({{.*}}) step 64 rows %{{.*}} tiles(%{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}] : memref<?x?x?x?xi32>) {unordered}
// CHECK: tile.mask %{{.*}} rows 64 tiles(%{{.*}} : memref<?x?x?x?xi32>) (
func.func @listed_tiles(%s: tensor<128x64xf32>, %m: memref<?x?x?x4xi32>, %tiles: memref<?x?x?x?xi32>, %i: i32) {
  tile.kv_loop ranges(%i, %i, %i, %i) step 64 rows %i tiles(%tiles[%i, %i, %i] : memref<?x?x?x?xi32>) {unordered}
    qk (%kv: i32) {
      tile.yield
    } score (%kv: i32) {
      tile.yield
    } softmax (%kv: i32) {
      tile.yield
    } pv (%kv: i32) {
      tile.yield
    }
  %t = tile.mask %s at (%i, %i) bounds(%m[%i, %i, %i] : memref<?x?x?x4xi32>) rows 64 tiles(%tiles : memref<?x?x?x?xi32>) (%q: i32, %k: i32) {
    %keep = arith.cmpi sle, %k, %q : i32
    tile.yield %keep : i1
  } : tensor<128x64xf32>
  return
}

// CHECK-LABEL: tile.kernel @interleave(
// CHECK: tile.load %{{.*}} interleave 3 : memref<?x6x?x64xf16> -> tensor<16x64xf16>
// CHECK: tile.store %{{.*}} interleave 3 : tensor<16x64xf16>, memref<?x6x?x64xf16>
// CHECK: tile.store %{{.*}} interleave 3 : tensor<16xf16>, memref<?x6x?x64xf16>
tile.kernel @interleave(%q: memref<?x6x?x64xf16>, %i: i32) attributes {num_warps = 1 : i32} {
  %t = tile.load %q[%i, %i, %i, %i] interleave 3 : memref<?x6x?x64xf16> -> tensor<16x64xf16>
  tile.store %t, %q[%i, %i, %i, %i] interleave 3 : tensor<16x64xf16>, memref<?x6x?x64xf16>
  %v = tile.load %q[%i, %i, %i, %i] : memref<?x6x?x64xf16> -> tensor<16xf16>
  tile.store %v, %q[%i, %i, %i, %i] interleave 3 : tensor<16xf16>, memref<?x6x?x64xf16>
  tile.return
}

// CHECK-LABEL: func.func @num_sms
// CHECK: tile.num_sms : index
func.func @num_sms() -> index {
  %n = tile.num_sms : index
  return %n : index
}

// CHECK-LABEL: tile.kernel @paged_rows(
// CHECK: %[[ROWS:.*]] = tile.paged_rows %{{.*}} through %{{.*}}[%[[S:.*]]] length %{{.*}} : memref<?x4x16x64xbf16, strided<[?, ?, ?, 1]>>, memref<?x?xi32> -> memref<1x4x?x64xbf16, #tile.pages>
// CHECK: tile.load %[[ROWS]][{{.*}}] : memref<1x4x?x64xbf16, #tile.pages> -> tensor<32x64xbf16>
tile.kernel @paged_rows(%pool: memref<?x4x16x64xbf16, strided<[?, ?, ?, 1]>>, %table: memref<?x?xi32>, %s: i32, %n: i32) attributes {num_warps = 4 : i32} {
  %rows = tile.paged_rows %pool through %table[%s] length %n
    : memref<?x4x16x64xbf16, strided<[?, ?, ?, 1]>>, memref<?x?xi32> -> memref<1x4x?x64xbf16, #tile.pages>
  %t = tile.load %rows[%s, %s, %s, %s] : memref<1x4x?x64xbf16, #tile.pages> -> tensor<32x64xbf16>
  tile.return
}
