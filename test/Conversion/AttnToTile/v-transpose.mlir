// RUN: attn-opt --convert-attn-to-tile=target=sm_90a %s | FileCheck %s

!q = memref<?x8x?x64xf8E4M3FN, strided<[?, ?, ?, 1]>>
!kv = memref<?x2x?x64xf8E5M2, strided<[?, ?, ?, 1]>>
!o = memref<?x8x?x64xbf16>

// With v_transpose = producer no kernel in front transposes V: it is read as it
// lies, and its product says so.
// CHECK-LABEL: func.func @producer(
// CHECK-SAME: %[[Q:[a-z0-9]+]]: {{.*}}, %[[K:[a-z0-9]+]]: {{.*}}, %[[V:[a-z0-9]+]]: {{.*}}, %[[O:[a-z0-9]+]]: {{.*}})
// CHECK-NOT: tile.launch
// CHECK: tile.launch @fused_attn_wgmma_f8E4M3FN_d64 grid(%{{.*}}) args(%[[Q]], %[[K]], %[[V]], %[[O]])
// CHECK-NOT: tile.launch
func.func @producer(%q: !q, %k: !kv, %v: !kv, %o: !o) {
  attn.attention ins(%q, %k, %v : !q, !kv, !kv) outs(%o : !o)
    {schedule = #attn.schedule<block_m = 128, block_n = 96, num_stages = 2, num_warps = 12,
                               warp_roles = <v_transpose = producer>>}
  return
}

// Each schedule reads the V that it is for.
// CHECK-LABEL: func.func @both(
// CHECK-SAME: %[[Q:[a-z0-9]+]]: {{.*}}, %[[K:[a-z0-9]+]]: {{.*}}, %[[V:[a-z0-9]+]]: {{.*}}, %[[O:[a-z0-9]+]]: {{.*}})
// CHECK: %[[VT:.*]] = memref.alloc
// CHECK: tile.launch @fused_transpose_v_f8E5M2_d64 grid(%{{.*}}) args(%[[V]], %[[VT]])
// CHECK: tile.launch @fused_attn_wgmma_f8E4M3FN_d64_q512 grid(%{{.*}}) args(%[[Q]], %[[K]], %[[VT]], %[[O]])
// CHECK: tile.launch @fused_attn_wgmma_f8E4M3FN_d64{{.*}} grid(%{{.*}}) args(%[[Q]], %[[K]], %[[V]], %[[O]])
// CHECK-NOT: tile.launch
func.func @both(%q: !q, %k: !kv, %v: !kv, %o: !o) {
  attn.attention ins(%q, %k, %v : !q, !kv, !kv) outs(%o : !o)
    {schedule = #attn.schedule<block_m = 128, block_n = 96, num_stages = 2, num_warps = 12,
                               warp_roles = <v_transpose = producer>>,
     short_schedules = [#attn.short_schedule<max_q_len = 512, schedule = <block_m = 64, block_n = 96, num_stages = 2, num_warps = 8>>]}
  return
}

// Keys that a mask hides from all queries may hold anything: V ends before.
// CHECK-LABEL: func.func @padding(
// CHECK-NOT: transpose_v
// CHECK: return
func.func @padding(%q: !q, %k: !kv, %v: !kv, %o: !o, %lens: memref<?xi32>) {
  attn.attention ins(%q, %k, %v, %lens : !q, !kv, !kv, memref<?xi32>) outs(%o : !o)
    {schedule = #attn.schedule<block_m = 128, block_n = 96, num_stages = 2, num_warps = 12,
                               warp_roles = <v_transpose = producer>>}
    mask_mod (%b: i32, %h: i32, %qi: i32, %ki: i32, %l: memref<?xi32>) {
      %len = attn.capture_load %l[%b] : memref<?xi32> -> i32
      %in = arith.cmpi slt, %ki, %len : i32
      attn.yield %in : i1
    }
  return
}

// CHECK-LABEL: tile.kernel @fused_attn_wgmma_f8E4M3FN_d64(
// CHECK-SAME: %{{[a-z0-9]+}}: {{.*}}, %{{[a-z0-9]+}}: {{.*}}, %[[V:[a-z0-9]+]]: {{.*}}, %{{[a-z0-9]+}}: {{.*}})
// CHECK: tile.kv_loop
// CHECK: %[[P:.*]] = arith.truncf %{{.*}} : tensor<128x96xf32> to tensor<128x96xf8E4M3FN>
// CHECK: %[[TILE:.*]] = tile.load %[[V]][%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}] : {{.*}} -> tensor<96x64xf8E5M2>
// CHECK: tile.mma mma %[[P]], %[[TILE]], %{{.*}} : tensor<128x96xf8E4M3FN>, tensor<96x64xf8E5M2>, tensor<128x64xf32>

// CHECK: tile.kernel @{{.*}}memref<?xi32>
// CHECK: %[[PART:.*]] = memref.subview %{{.*}} : memref<?x2x?x64xf8E5M2
// CHECK: tile.kv_loop
// CHECK: tile.load %{{.*}} -> tensor<96x64xf8E5M2>
// CHECK: tile.load %[[PART]][%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}] : {{.*}} -> tensor<96x64xf8E5M2>
