// RUN: attn-opt %s --split-input-file --convert-attn-to-tile=target=sm_80 --canonicalize | FileCheck %s

// Programs share the columns of V: neighbours have the same rows.

// CHECK-LABEL: func.func @shared
// CHECK: %[[TILES:.*]] = arith.ceildivsi %{{.*}}, %c64
// CHECK: %[[PROGRAMS:.*]] = arith.muli %[[TILES]], %c16
// CHECK: tile.launch @fused_attn_s16816_bf16_d576_512 grid(%[[PROGRAMS]])
// CHECK: tile.kernel @fused_attn_s16816_bf16_d576_512
// CHECK-SAME: %[[V:[a-z0-9]+]]: memref<2x1x?x512xbf16>, %[[O:[a-z0-9]+]]: memref<2x4x?x512xbf16>
// CHECK: %[[ID:.*]] = tile.program_id
// CHECK: %[[NUMBER:.*]] = arith.remui %[[ID]], %c2_i32
// CHECK: %[[REST:.*]] = arith.divui %[[ID]], %c2_i32
// CHECK: %[[FIRST:.*]] = arith.muli %[[NUMBER]], %c256_i32
// CHECK: arith.remui %[[REST]]
// CHECK: tile.load {{.*}} -> tensor<64x576xbf16>
// CHECK: tile.load {{.*}} -> tensor<16x576xbf16>
// CHECK: tile.load %[[V]][%{{.*}}, %{{.*}}, %{{.*}}, %[[FIRST]]] : memref<2x1x?x512xbf16> -> tensor<16x256xbf16>
// CHECK: tile.store %{{.*}}, %[[O]][%{{.*}}, %{{.*}}, %{{.*}}, %[[FIRST]]] : tensor<64x256xbf16>
func.func @shared(%q: memref<2x4x?x576xbf16>, %k: memref<2x1x?x576xbf16>, %v: memref<2x1x?x512xbf16>, %o: memref<2x4x?x512xbf16>) {
  attn.attention ins(%q, %k, %v : memref<2x4x?x576xbf16>, memref<2x1x?x576xbf16>, memref<2x1x?x512xbf16>)
    outs(%o : memref<2x4x?x512xbf16>)
    {schedule = #attn.schedule<block_m = 64, block_n = 16, num_stages = 2, num_warps = 4, v_columns = 256>}
  return
}

// -----

// Parts hold all columns; a merge has programs of its own for them.
// CHECK-LABEL: func.func @parts
// CHECK: memref.alloc({{.*}}) : memref<2x1x?x?x512xf32>
// CHECK: tile.kernel @fused_attn_s16816_bf16_d576_512_decode
// CHECK: %[[FIRST:.*]] = arith.muli %{{.*}}, %c192_i32
// CHECK: tile.store %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[FIRST]]] : tensor<16x192xf32>, memref<?x1x?x?x512xf32>
// CHECK: tile.kernel @fused_attn_s16816_bf16_d576_512_merge
// CHECK: %[[FIRST:.*]] = arith.muli %{{.*}}, %c256_i32
// CHECK: tile.load %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[FIRST]]] : memref<?x1x?x?x512xf32> -> tensor<1x256xf32>
func.func @parts(%q: memref<2x4x?x576xbf16>, %k: memref<2x1x?x576xbf16>, %v: memref<2x1x?x512xbf16>, %o: memref<2x4x?x512xbf16>) {
  attn.attention ins(%q, %k, %v : memref<2x4x?x576xbf16>, memref<2x1x?x576xbf16>, memref<2x1x?x512xbf16>)
    outs(%o : memref<2x4x?x512xbf16>)
    {schedule = #attn.schedule<block_m = 16, block_n = 16, num_stages = 2, num_warps = 1, decode = <max_splits = 8>, v_columns = 192>}
  return
}
