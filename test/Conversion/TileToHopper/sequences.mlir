// RUN: attn-opt %s --convert-attn-to-tile=target=sm_90a --tile-split-kv-ranges --convert-tile-to-hopper --canonicalize --cse | FileCheck %s

// Lengths that the device knows, in a persistent kernel: the producer searches for the sequence and posts what follows from it.

// CHECK-LABEL: tile.kernel @fused_attn_wgmma_bf16_d64(
// CHECK: producer
// CHECK: hopper.next_tile
// CHECK: %[[SEQUENCE:.*]] = scf.for
// CHECK: tile.gather
// CHECK: tile.gather %{{.*}}[%[[SEQUENCE]]]
// CHECK: %[[QUERIES:.*]] = memref.subview %{{.*}} to memref<1x8x?x64xbf16
// CHECK: %[[KEYS:.*]] = memref.subview %{{.*}} to memref<1x2x?x64xbf16
// CHECK: hopper.put
// CHECK: hopper.tma_load %[[KEYS]][%{{.*}}] to
// CHECK: hopper.tma_load %[[QUERIES]][%{{.*}}] to
// The consumers search nothing, and store through the part that ends with the sequence.
// CHECK: consumer
// CHECK-NOT: tile.gather
// CHECK: memref.subview
// CHECK: hopper.tma_store
// CHECK-NOT: tile.gather
func.func @packed(%q: memref<1x8x?x64xbf16>, %k: memref<1x2x?x64xbf16>, %v: memref<1x2x?x64xbf16>,
                  %ends: memref<?xi32>, %k_ends: memref<?xi32>, %o: memref<1x8x?x64xbf16>) {
  attn.attention ins(%q, %k, %v : memref<1x8x?x64xbf16>, memref<1x2x?x64xbf16>, memref<1x2x?x64xbf16>)
    cu_q(%ends : memref<?xi32>) cu_k(%k_ends : memref<?xi32>)
    outs(%o : memref<1x8x?x64xbf16>)
    {schedule = #attn.schedule<block_m = 128, block_n = 64, num_stages = 2, num_warps = 12,
                               warp_roles = #attn.warp_roles<persistent = true, tma_store = true>>}
    mask_mod (%b: i32, %h: i32, %q_idx: i32, %kv_idx: i32) {
      %q_len = attn.q_len : i32
      %kv_len = attn.kv_len : i32
      %shift = arith.subi %kv_len, %q_len : i32
      %last = arith.addi %q_idx, %shift : i32
      %keep = arith.cmpi sle, %kv_idx, %last : i32
      attn.yield %keep : i1
    }
  return
}
