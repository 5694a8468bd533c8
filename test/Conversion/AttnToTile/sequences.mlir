// RUN: attn-opt --convert-attn-to-tile=target=sm_80 --split-input-file %s | FileCheck %s

// Lengths that the device knows: the launch takes a bound, the kernel finds its sequence.

#schedule = #attn.schedule<block_m = 128, block_n = 64, num_stages = 2, num_warps = 4>

// At most one tile a sequence is without work.
// CHECK-LABEL: func.func @packed(
// CHECK-SAME: %[[ENDS:[a-z0-9]+]]: memref<?xi32>, %[[K_ENDS:[a-z0-9]+]]: memref<?xi32>, %[[O:[a-z0-9]+]]: memref
// CHECK: %[[WHOLE:.*]] = arith.floordivsi %{{.*}}, %c128
// CHECK: %[[SEQUENCES:.*]] = arith.subi %{{.*}}, %c1
// CHECK: arith.addi %[[WHOLE]], %[[SEQUENCES]]
// CHECK: tile.launch @fused_attn_s16816_f16_d64 {{.*}} args(%{{.*}}, %[[O]], %[[ENDS]], %[[K_ENDS]])
func.func @packed(%q: memref<1x8x?x64xf16>, %k: memref<1x2x?x64xf16>, %v: memref<1x2x?x64xf16>,
                  %ends: memref<?xi32>, %k_ends: memref<?xi32>, %o: memref<1x8x?x64xf16>) {
  attn.attention ins(%q, %k, %v : memref<1x8x?x64xf16>, memref<1x2x?x64xf16>, memref<1x2x?x64xf16>)
    cu_q(%ends : memref<?xi32>) cu_k(%k_ends : memref<?xi32>)
    outs(%o : memref<1x8x?x64xf16>) {schedule = #schedule}
  return
}

// Bit by bit, the last sequence whose first tile, start / 128 + number, isn't behind this program's.
// CHECK-LABEL: tile.kernel @fused_attn_s16816_f16_d64(
// CHECK-SAME: %[[CUQ:[a-z0-9]+]]: memref<?xi32>, %[[CUK:[a-z0-9]+]]: memref<?xi32>)
// CHECK: %[[SEQUENCE:.*]] = scf.for
// CHECK: %[[START:.*]] = tile.gather %[[CUQ]][%[[CANDIDATE:.*]]]
// CHECK: %[[BEFORE:.*]] = arith.divui %[[START]], %c128_i32
// CHECK: arith.addi %[[BEFORE]], %[[CANDIDATE]]
// CHECK: scf.yield
// Parts of the tensors end where the sequence does.
// CHECK: tile.gather %[[CUQ]][%[[SEQUENCE]]]
// CHECK: tile.gather %[[CUK]][%[[SEQUENCE]]]
// CHECK: %[[QUERIES:.*]] = memref.subview {{.*}} to memref<1x8x?x64xf16, strided<[?, ?, 64, 1], offset: ?>>
// CHECK: tile.load %[[QUERIES]][%{{c0.*}}, %
// CHECK: %[[KEYS:.*]] = memref.subview {{.*}} to memref<1x2x?x64xf16, strided<[?, ?, 64, 1], offset: ?>>
// CHECK: tile.kv_loop
// CHECK: tile.load %[[KEYS]]
// CHECK: memref.subview
// CHECK: tile.store

// -----

#schedule = #attn.schedule<block_m = 128, block_n = 64, num_stages = 2, num_warps = 4>

// A cache: rows of every batch up to its length.
// CHECK-LABEL: tile.kernel @fused_attn_s16816_f16_d64(
// CHECK-SAME: %[[LENS:[a-z0-9]+]]: memref<3xi32>)
// CHECK-NOT: scf.for
// CHECK: %[[LENGTH:.*]] = tile.gather %[[LENS]][%[[BATCH:.*]]]
// CHECK: memref.subview %{{.*}}[0, 0, 0, 0] [3, 2, %{{.*}}, 64]
// CHECK: tile.load %{{.*}}[%[[BATCH]], %
func.func @cache(%q: memref<3x8x?x64xf16>, %k: memref<3x2x?x64xf16>, %lens: memref<3xi32>) {
  attn.attention ins(%q, %k, %k : memref<3x8x?x64xf16>, memref<3x2x?x64xf16>, memref<3x2x?x64xf16>)
    kv_len(%lens : memref<3xi32>)
    outs(%q : memref<3x8x?x64xf16>) {schedule = #schedule}
  return
}
