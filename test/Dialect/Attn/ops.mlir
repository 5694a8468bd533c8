// RUN: attn-opt %s -split-input-file | attn-opt -split-input-file | FileCheck %s
// RUN: attn-opt %s -split-input-file -mlir-print-op-generic | attn-opt -split-input-file | FileCheck %s

// CHECK-LABEL: func @plain
// CHECK: attn.attention ins(%{{.*}}, %{{.*}}, %{{.*}} : tensor<2x4x8x64xf32>, tensor<2x4x8x64xf32>, tensor<2x4x8x64xf32>)
// CHECK-SAME: outs(%{{.*}} : tensor<2x4x8x64xf32>) -> tensor<2x4x8x64xf32>
func.func @plain(%q: tensor<2x4x8x64xf32>, %k: tensor<2x4x8x64xf32>,
                 %v: tensor<2x4x8x64xf32>, %o: tensor<2x4x8x64xf32>)
    -> tensor<2x4x8x64xf32> {
  %r = attn.attention
      ins(%q, %k, %v : tensor<2x4x8x64xf32>, tensor<2x4x8x64xf32>,
                       tensor<2x4x8x64xf32>)
      outs(%o : tensor<2x4x8x64xf32>) -> tensor<2x4x8x64xf32>
  return %r : tensor<2x4x8x64xf32>
}

// -----

// The ODS example: grouped heads, bottom-right causal.

// CHECK-LABEL: func @causal
// CHECK: mask_mod (%{{.*}}: i32, %{{.*}}: i32, %[[QI:.*]]: i32, %[[KI:.*]]: i32) {
// CHECK-NEXT: %[[QL:.*]] = attn.q_len : i32
// CHECK-NEXT: %[[KL:.*]] = attn.kv_len : i32
// CHECK-NEXT: %[[D:.*]] = arith.subi %[[KL]], %[[QL]] : i32
// CHECK-NEXT: %[[LAST:.*]] = arith.addi %[[QI]], %[[D]] : i32
// CHECK-NEXT: %[[KEEP:.*]] = arith.cmpi sle, %[[KI]], %[[LAST]] : i32
// CHECK-NEXT: attn.yield %[[KEEP]] : i1
// CHECK-NEXT: } -> tensor<2x16x?x64xbf16>
func.func @causal(%q: tensor<2x16x?x64xbf16>, %k: tensor<2x4x?x64xbf16>,
                  %v: tensor<2x4x?x64xbf16>, %o: tensor<2x16x?x64xbf16>)
    -> tensor<2x16x?x64xbf16> {
  %r = attn.attention ins(%q, %k, %v : tensor<2x16x?x64xbf16>,
                          tensor<2x4x?x64xbf16>, tensor<2x4x?x64xbf16>)
                      outs(%o : tensor<2x16x?x64xbf16>)
    mask_mod (%b: i32, %h: i32, %q_idx: i32, %kv_idx: i32) {
      %ql = attn.q_len : i32
      %kl = attn.kv_len : i32
      %d = arith.subi %kl, %ql : i32
      %last = arith.addi %q_idx, %d : i32
      %keep = arith.cmpi sle, %kv_idx, %last : i32
      attn.yield %keep : i1
    } -> tensor<2x16x?x64xbf16>
  return %r : tensor<2x16x?x64xbf16>
}

// -----

// Everything dynamic that may be, both mods, lse, attributes.

// CHECK-LABEL: func @full
// CHECK: %{{.*}}:2 = attn.attention
// CHECK-SAME: outs(%{{.*}}, %{{.*}} : tensor<?x6x?x32xf16>, tensor<?x6x?xf32>)
// CHECK-SAME: scale = 2.500000e-01 : f32
// CHECK-SAME: schedule = #attn.schedule<block_m = 128, block_n = 64, num_stages = 2, num_warps = 4>
// CHECK-SAME: score_mod (%[[S:.*]]: f32, %{{.*}}: i32, %{{.*}}: i32, %{{.*}}: i32, %{{.*}}: i32) {
// CHECK: math.tanh
// CHECK: attn.yield %{{.*}} : f32
// CHECK: mask_mod
// CHECK: attn.yield %{{.*}} : i1
// CHECK: -> tensor<?x6x?x32xf16>, tensor<?x6x?xf32>
func.func @full(%q: tensor<?x6x?x96xf16>, %k: tensor<?x2x?x96xf16>,
                %v: tensor<?x2x?x32xf16>, %o: tensor<?x6x?x32xf16>,
                %lse: tensor<?x6x?xf32>)
    -> (tensor<?x6x?x32xf16>, tensor<?x6x?xf32>) {
  %r:2 = attn.attention
      ins(%q, %k, %v : tensor<?x6x?x96xf16>, tensor<?x2x?x96xf16>,
                       tensor<?x2x?x32xf16>)
      outs(%o, %lse : tensor<?x6x?x32xf16>, tensor<?x6x?xf32>)
      {scale = 0.25 : f32,
       schedule = #attn.schedule<block_m = 128, block_n = 64, num_stages = 2,
                                 num_warps = 4>}
    score_mod (%s: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      %cap = arith.constant 50.0 : f32
      %x = arith.divf %s, %cap : f32
      %t = math.tanh %x : f32
      %y = arith.mulf %t, %cap : f32
      attn.yield %y : f32
    }
    mask_mod (%b: i32, %h: i32, %i: i32, %j: i32) {
      %keep = arith.cmpi ule, %j, %i : i32
      attn.yield %keep : i1
    } -> tensor<?x6x?x32xf16>, tensor<?x6x?xf32>
  return %r#0, %r#1 : tensor<?x6x?x32xf16>, tensor<?x6x?xf32>
}

// -----

// CHECK-LABEL: func @memory
// CHECK: attn.attention
// CHECK-SAME: outs(%{{.*}}, %{{.*}} : memref<?x4x?x64xf32, strided<[?, ?, ?, 1], offset: ?>>, memref<?x4x?xf32>)
// CHECK-NEXT: return
func.func @memory(%q: memref<?x4x?x64xf32, strided<[?, ?, ?, 1], offset: ?>>,
                  %o: memref<?x4x?x64xf32, strided<[?, ?, ?, 1], offset: ?>>,
                  %lse: memref<?x4x?xf32>) {
  attn.attention
      ins(%q, %q, %q : memref<?x4x?x64xf32, strided<[?, ?, ?, 1], offset: ?>>,
                       memref<?x4x?x64xf32, strided<[?, ?, ?, 1], offset: ?>>,
                       memref<?x4x?x64xf32, strided<[?, ?, ?, 1], offset: ?>>)
      outs(%o, %lse : memref<?x4x?x64xf32, strided<[?, ?, ?, 1], offset: ?>>,
                      memref<?x4x?xf32>)
  return
}

// -----

// Captures are arguments of the regions.

// CHECK-LABEL: func @captures
// CHECK: ins({{.*}}, %[[TABLE:.*]], %{{.*}} : {{.*}}, tensor<4x?xf32>, tensor<2xi8>)
// CHECK: score_mod (%{{.*}}: f32, %{{.*}}: i32, %[[H:.*]]: i32, %{{.*}}: i32, %[[J:.*]]: i32, %[[ARG:.*]]: tensor<4x?xf32>, %{{.*}}: tensor<2xi8>)
// CHECK: attn.capture_load %[[ARG]][%[[H]], %[[J]]] : tensor<4x?xf32> -> f32
func.func @captures(%q: tensor<2x4x?x64xf32>, %table: tensor<4x?xf32>,
                    %flags: tensor<2xi8>) -> tensor<2x4x?x64xf32> {
  %r = attn.attention
      ins(%q, %q, %q, %table, %flags :
          tensor<2x4x?x64xf32>, tensor<2x4x?x64xf32>, tensor<2x4x?x64xf32>,
          tensor<4x?xf32>, tensor<2xi8>)
      outs(%q : tensor<2x4x?x64xf32>)
    score_mod (%s: f32, %b: i32, %h: i32, %i: i32, %j: i32,
               %t: tensor<4x?xf32>, %f: tensor<2xi8>) {
      %bias = attn.capture_load %t[%h, %j] : tensor<4x?xf32> -> f32
      %y = arith.addf %s, %bias : f32
      attn.yield %y : f32
    }
    mask_mod (%b: i32, %h: i32, %i: i32, %j: i32,
              %t: tensor<4x?xf32>, %f: tensor<2xi8>) {
      %flag = attn.capture_load %f[%b] : tensor<2xi8> -> i8
      %zero = arith.constant 0 : i8
      %keep = arith.cmpi ne, %flag, %zero : i8
      attn.yield %keep : i1
    } -> tensor<2x4x?x64xf32>
  return %r : tensor<2x4x?x64xf32>
}

// -----

// Types of 8 bits may differ; a scale is for the tensor, heads, or batches and
// heads.
// CHECK-LABEL: func @quantized
// CHECK: q_scale(%{{.*}} : tensor<4xf32>) k_scale(%{{.*}} : tensor<1xf32>) v_scale(%{{.*}} : tensor<?x2xf32>) outs
func.func @quantized(%q: tensor<?x4x?x64xf8E5M2>, %k: tensor<?x2x?x64xf8E4M3FN>,
                     %v: tensor<?x2x?x64xf8E5M2>, %heads: tensor<4xf32>,
                     %one: tensor<1xf32>, %batches: tensor<?x2xf32>,
                     %o: tensor<?x4x?x64xbf16>) -> tensor<?x4x?x64xbf16> {
  %r = attn.attention
      ins(%q, %k, %v : tensor<?x4x?x64xf8E5M2>, tensor<?x2x?x64xf8E4M3FN>,
                       tensor<?x2x?x64xf8E5M2>)
      q_scale(%heads : tensor<4xf32>) k_scale(%one : tensor<1xf32>)
      v_scale(%batches : tensor<?x2xf32>)
      outs(%o : tensor<?x4x?x64xbf16>) -> tensor<?x4x?x64xbf16>
  return %r : tensor<?x4x?x64xbf16>
}

// -----

// CHECK-LABEL: func @every_operand
// CHECK: scale(%{{.*}} : f32) sink(%{{[^ ]*}} : tensor<4xf32>) cu_q(%{{[^ ]*}} : tensor<?xi32>)
// CHECK-SAME: kv_len(%{{.*}} : tensor<?xi32>) block_table(%{{[^ ]*}} : tensor<?x?xi32>)
// CHECK-SAME: outs
func.func @every_operand(%q: tensor<1x4x?x64xf32>, %pool: tensor<?x4x16x64xf32>, %scale: f32,
                         %head: tensor<4xf32>, %lens: tensor<?xi32>,
                         %pages: tensor<?x?xi32>) -> tensor<1x4x?x64xf32> {
  %r = attn.attention
      ins(%q, %pool, %pool : tensor<1x4x?x64xf32>, tensor<?x4x16x64xf32>,
                             tensor<?x4x16x64xf32>)
      scale(%scale : f32) sink(%head : tensor<4xf32>)
      cu_q(%lens : tensor<?xi32>)
      kv_len(%lens : tensor<?xi32>) block_table(%pages : tensor<?x?xi32>)
      outs(%q : tensor<1x4x?x64xf32>) -> tensor<1x4x?x64xf32>
  return %r : tensor<1x4x?x64xf32>
}

// -----

// Packed keys with room behind every sequence, and queries with a batch each.

// CHECK-LABEL: func @packed_cache
// CHECK: cu_k(%{{[^ ]*}} : tensor<4xi32>) kv_len(%{{.*}} : tensor<3xi32>) outs
func.func @packed_cache(%q: tensor<3x4x?x64xf32>, %k: tensor<1x4x?x64xf32>,
                        %ends: tensor<4xi32>, %lens: tensor<3xi32>) -> tensor<3x4x?x64xf32> {
  %r = attn.attention
      ins(%q, %k, %k : tensor<3x4x?x64xf32>, tensor<1x4x?x64xf32>, tensor<1x4x?x64xf32>)
      cu_k(%ends : tensor<4xi32>) kv_len(%lens : tensor<3xi32>)
      outs(%q : tensor<3x4x?x64xf32>) -> tensor<3x4x?x64xf32>
  return %r : tensor<3x4x?x64xf32>
}

// -----

// Sizes of zero are legal everywhere.

// CHECK-LABEL: func @zero_sizes
// CHECK: attn.attention
func.func @zero_sizes(%q: tensor<0x0x0x0xf32>, %k: tensor<0x0x0x0xf32>)
    -> tensor<0x0x0x0xf32> {
  %r = attn.attention
      ins(%q, %k, %k : tensor<0x0x0x0xf32>, tensor<0x0x0x0xf32>,
                       tensor<0x0x0x0xf32>)
      outs(%q : tensor<0x0x0x0xf32>) -> tensor<0x0x0x0xf32>
  return %r : tensor<0x0x0x0xf32>
}

// -----

// CHECK-LABEL: func @merge
// CHECK: attn.merge %{{.*}}, %{{.*}} with %{{.*}}, %{{.*}} : tensor<1x4x8x64xf32>, tensor<1x4x8x64xf32> with tensor<1x4x8xf32>, tensor<1x4x8xf32> -> tensor<1x4x8x64xf32>, tensor<1x4x8xf32>
func.func @merge(%o0: tensor<1x4x8x64xf32>, %o1: tensor<1x4x8x64xf32>,
                 %l0: tensor<1x4x8xf32>, %l1: tensor<1x4x8xf32>)
    -> (tensor<1x4x8x64xf32>, tensor<1x4x8xf32>) {
  %o, %lse = attn.merge %o0, %o1 with %l0, %l1
    : tensor<1x4x8x64xf32>, tensor<1x4x8x64xf32> with tensor<1x4x8xf32>, tensor<1x4x8xf32>
    -> tensor<1x4x8x64xf32>, tensor<1x4x8xf32>
  return %o, %lse : tensor<1x4x8x64xf32>, tensor<1x4x8xf32>
}

// -----

// CHECK-LABEL: func.func @decode_schedule
// CHECK: batch_invariant
// CHECK-SAME: schedule = #attn.schedule<block_m = 16, block_n = 64, num_stages = 2, num_warps = 1, decode = <max_splits = 8, programs_per_sm = 2, split_keys = 128>>
func.func @decode_schedule(%x: tensor<1x2x?x64xf16>) -> tensor<1x2x?x64xf16> {
  %r = attn.attention
      ins(%x, %x, %x : tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16>)
      outs(%x : tensor<1x2x?x64xf16>)
      {batch_invariant,
       schedule = #attn.schedule<block_m = 16, block_n = 64, num_stages = 2, num_warps = 1,
                                 decode = <split_keys = 128, programs_per_sm = 2, max_splits = 8>>}
      -> tensor<1x2x?x64xf16>
  return %r : tensor<1x2x?x64xf16>
}
