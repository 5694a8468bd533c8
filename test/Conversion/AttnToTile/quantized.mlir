// RUN: attn-opt --convert-attn-to-tile=target=sm_90a %s | FileCheck %s
// RUN: attn-opt --convert-attn-to-tile=target=sm_90a %s | FileCheck %s --check-prefix=TRANSPOSE

!q = memref<?x8x?x64xf8E4M3FN, strided<[?, ?, ?, 1]>>
!kv = memref<?x2x?x64xf8E5M2, strided<[?, ?, ?, 1]>>
!o = memref<?x8x?x64xbf16>
!lse = memref<?x8x?xf32>

// Before the kernel V is transposed, once, with whole tiles of 32 keys.
// CHECK-LABEL: func.func @quantized(
// CHECK-SAME: %[[Q:[a-z0-9]+]]: {{.*}}, %[[K:[a-z0-9]+]]: {{.*}}, %[[V:[a-z0-9]+]]: {{.*}}, %[[O:[a-z0-9]+]]: {{.*}}, %[[LSE:[a-z0-9]+]]: {{.*}}, %[[QS:[a-z0-9]+]]: memref<8xf32>, %[[KS:[a-z0-9]+]]: memref<?x2xf32>, %[[VS:[a-z0-9]+]]: memref<1xf32>)
// CHECK: %[[N:.*]] = memref.dim %[[V]], %c2
// CHECK: %[[TILES:.*]] = arith.ceildivsi %[[N]], %c32
// CHECK: %[[SOME:.*]] = arith.maxsi %[[TILES]], %c1
// CHECK: %[[KEYS:.*]] = arith.muli %[[SOME]], %c32
// CHECK: %[[VT:.*]] = memref.alloc(%{{.*}}, %[[KEYS]]) : memref<?x2x64x?xf8E5M2>
// CHECK: tile.launch @fused_transpose_v_f8E5M2_d64 grid(%{{.*}}) args(%[[V]], %[[VT]])
// CHECK-NOT: transpose_v
// CHECK: tile.launch @fused_attn_wgmma_f8E4M3FN_d64 grid(%{{.*}}) args(%[[Q]], %[[K]], %[[VT]], %[[O]], %[[LSE]], %[[QS]], %[[KS]], %[[VS]])
func.func @quantized(%q: !q, %k: !kv, %v: !kv, %o: !o, %lse: !lse,
                     %qs: memref<8xf32>, %ks: memref<?x2xf32>, %vs: memref<1xf32>) {
  attn.attention ins(%q, %k, %v : !q, !kv, !kv)
    q_scale(%qs : memref<8xf32>) k_scale(%ks : memref<?x2xf32>) v_scale(%vs : memref<1xf32>)
    outs(%o, %lse : !o, !lse)
    {schedule = #attn.schedule<block_m = 128, block_n = 96, num_stages = 2, num_warps = 12>}
  return
}

// A program's keys, 16 of them in the order of an 8-bit operand.
// TRANSPOSE-LABEL: tile.kernel @fused_transpose_v_f8E5M2_d64(
// TRANSPOSE-SAME: %[[V:[a-z0-9]+]]: memref<?x2x?x64xf8E5M2, {{.*}}>, %[[VT:[a-z0-9]+]]: memref<?x2x64x?xf8E5M2>
// TRANSPOSE: %[[SLOT:.*]] = tile.iota : tensor<32xi32>
// TRANSPOSE: arith.constant dense<-15> : tensor<32xi32>
// TRANSPOSE: %[[SAME:.*]] = arith.andi %[[SLOT]],
// TRANSPOSE: arith.constant dense<12> : tensor<32xi32>
// TRANSPOSE: %[[T:.*]] = arith.andi %[[SLOT]],
// TRANSPOSE: arith.constant dense<1> : tensor<32xi32>
// TRANSPOSE: %[[THREAD:.*]] = arith.shrui %[[T]],
// TRANSPOSE: arith.constant dense<2> : tensor<32xi32>
// TRANSPOSE: %[[B:.*]] = arith.andi %[[SLOT]],
// TRANSPOSE: arith.constant dense<2> : tensor<32xi32>
// TRANSPOSE: %[[BLOCK:.*]] = arith.shli %[[B]],
// TRANSPOSE: %[[OTHERS:.*]] = arith.ori %[[THREAD]], %[[BLOCK]]
// TRANSPOSE: %[[KEY:.*]] = arith.ori %[[SAME]], %[[OTHERS]]
// TRANSPOSE: %[[KEYS:.*]] = arith.addi %{{.*}}, %[[KEY]]
// TRANSPOSE: %[[COLUMNS:.*]] = tile.broadcast %[[KEYS]] dim 1 : tensor<32xi32> -> tensor<64x32xi32>
// TRANSPOSE: %[[ROWS:.*]] = tile.broadcast %{{.*}} dim 0 : tensor<64xi32> -> tensor<64x32xi32>
// Keys beyond the last read as 0.
// TRANSPOSE: %[[T:.*]] = tile.gather %[[V]][%[[BATCH:.*]], %[[HEAD:.*]], %[[COLUMNS]], %[[ROWS]]] in_bounds [0, 1]
// TRANSPOSE: tile.store %[[T]], %[[VT]][%[[BATCH]], %[[HEAD]], %{{.*}}, %{{.*}}] : tensor<64x32xf8E5M2>, memref<?x2x64x?xf8E5M2>

// The scales of q and k go into the exponent, with the operator's own.
// CHECK-LABEL: tile.kernel @fused_attn_wgmma_f8E4M3FN_d64(
// CHECK-SAME: %[[VT:[a-z0-9]+]]: memref<?x2x64x?xf8E5M2>,
// CHECK-SAME: %[[LSE:[a-z0-9]+]]: memref<?x8x?xf32>, %[[QS:[a-z0-9]+]]: memref<8xf32>, %[[KS:[a-z0-9]+]]: memref<?x2xf32>, %[[VS:[a-z0-9]+]]: memref<1xf32>
// CHECK: %[[OFQ:.*]] = tile.gather %[[QS]][%[[HEAD:.*]]] in_bounds [0] : memref<8xf32>, (i32) -> f32
// CHECK: %[[OFK:.*]] = tile.gather %[[KS]][%{{.*}}, %[[KVHEAD:.*]]] in_bounds [0, 1] : memref<?x2xf32>, (i32, i32) -> f32
// CHECK: %[[BOTH:.*]] = arith.mulf %[[OFQ]], %[[OFK]]
// CHECK: %[[SCALE:.*]] = arith.mulf %{{.*}}, %[[BOTH]]
// CHECK: tile.kv_loop
// CHECK: tile.mma mma %{{.*}} {transpose_b} : tensor<128x64xf8E4M3FN>, tensor<96x64xf8E5M2>, tensor<128x96xf32>
// CHECK: tile.online_softmax %{{.*}} scale %[[SCALE]] {exponent = 5 : i32}
// CHECK: %[[V:.*]] = tile.load %[[VT]][%{{.*}}, %[[KVHEAD]], %{{.*}}, %{{.*}}] : {{.*}} -> tensor<64x96xf8E5M2>
// Weights are of the type with more precision.
// CHECK: %[[P:.*]] = arith.truncf %{{.*}} : tensor<128x96xf32> to tensor<128x96xf8E4M3FN>
// CHECK: tile.mma mma %[[P]], %[[V]], %{{.*}} {permuted_k, transpose_b}
// The scale of v takes the place of 1 in the normalisation.
// CHECK: %[[OFV:.*]] = tile.gather %[[VS]][%{{.*}}] in_bounds [0]
// CHECK: %[[ONE:.*]] = tensor.splat %[[OFV]]
// CHECK: arith.divf %[[ONE]],
// CHECK: arith.truncf %{{.*}} to tensor<128x64xbf16>
// The sum is 2^5 times too large: 5 ln 2.
// CHECK: %[[SUM:.*]] = arith.addf %{{.*}}, %{{.*}} : tensor<128xf32>
// CHECK: %[[C:.*]] = arith.constant dense<3.46573591> : tensor<128xf32>
// CHECK: arith.subf %[[SUM]], %[[C]]

// V is 0 behind padding already where it is transposed.
// TRANSPOSE-LABEL: tile.kernel @fused_transpose_v_f8E4M3FN_d64(
// TRANSPOSE-SAME: %[[V:[a-z0-9]+]]: memref<2x2x?x64xf8E4M3FN>, %{{[a-z0-9]+}}: memref<2x2x64x?xf8E4M3FN>, %{{[a-z0-9]+}}: memref<2x8x?x64xf8E4M3FN>, %[[LENS:[a-z0-9]+]]: memref<2xi32>
// TRANSPOSE: %[[N:.*]] = tile.gather %[[LENS]]
// TRANSPOSE: arith.minsi %[[N]]
// TRANSPOSE: %[[PART:.*]] = memref.subview %[[V]]
// TRANSPOSE: tile.gather %[[PART]]
func.func @padded(%q: memref<2x8x?x64xf8E4M3FN>, %k: memref<2x2x?x64xf8E4M3FN>, %o: memref<2x8x?x64xbf16>, %lens: memref<2xi32>) {
  attn.attention ins(%q, %k, %k, %lens : memref<2x8x?x64xf8E4M3FN>, memref<2x2x?x64xf8E4M3FN>, memref<2x2x?x64xf8E4M3FN>, memref<2xi32>)
    outs(%o : memref<2x8x?x64xbf16>)
    {schedule = #attn.schedule<block_m = 128, block_n = 96, num_stages = 2, num_warps = 12>}
    mask_mod (%b: i32, %h: i32, %q_idx: i32, %kv_idx: i32, %l: memref<2xi32>) {
      %n = attn.capture_load %l[%b] : memref<2xi32> -> i32
      %r = arith.cmpi slt, %kv_idx, %n : i32
      attn.yield %r : i1
    }
  return
}
