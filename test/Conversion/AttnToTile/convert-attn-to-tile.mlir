// RUN: attn-opt --convert-attn-to-tile=target=sm_80 %s | FileCheck %s
// RUN: attn-opt --convert-attn-to-tile=target=cpu %s | FileCheck %s --check-prefix=CPU

#schedule = #attn.schedule<block_m = 128, block_n = 64, num_stages = 2, num_warps = 4>

// The launch: one program per 128 rows of a query head.
// CHECK-LABEL: func.func @plain(
// CHECK-SAME: %[[Q:[a-z0-9]+]]: memref<?x8x?x64xf16>, %[[K:[a-z0-9]+]]: memref<?x2x?x64xf16>
// CHECK: %[[NQ:.*]] = memref.dim %[[Q]], %c2
// CHECK: %[[TILES:.*]] = arith.ceildivsi %[[NQ]], %c128
// CHECK: %[[B:.*]] = memref.dim %[[Q]], %c0
// CHECK: %[[PER_BATCH:.*]] = arith.muli %[[TILES]], %c8
// CHECK: %[[GRID:.*]] = arith.muli %[[PER_BATCH]], %[[B]]
// Bytes: 2 * 8 * (64 + 64) a query row, 2 * 2 * (64 + 64) a key.
// CHECK: %[[QUERIES:.*]] = arith.muli %{{.*}}, %{{.*}} : index
// CHECK: %[[QB:.*]] = arith.muli %[[QUERIES]], %c2048
// CHECK: %[[KEYS:.*]] = arith.muli %{{.*}}, %{{.*}} : index
// CHECK: %[[KB:.*]] = arith.muli %[[KEYS]], %c512
// CHECK: %[[BYTES:.*]] = arith.addi %[[QB]], %[[KB]]
// Operations: 2 * 8 * (64 + 64) a pair of query row and key.
// CHECK: %[[C:.*]] = arith.constant 2048 : index
// CHECK: %[[FLOPS:.*]] = arith.muli %{{.*}}, %[[C]]
// CHECK: tile.launch @fused_attn_s16816_f16_d64 grid(%[[GRID]]) args({{.*}}) cost(bytes %[[BYTES]], flops %[[FLOPS]])
func.func @plain(%q: memref<?x8x?x64xf16>, %k: memref<?x2x?x64xf16>,
                 %v: memref<?x2x?x64xf16>, %o: memref<?x8x?x64xf16>) {
  attn.attention ins(%q, %k, %v : memref<?x8x?x64xf16>, memref<?x2x?x64xf16>, memref<?x2x?x64xf16>)
    outs(%o : memref<?x8x?x64xf16>) {schedule = #schedule}
  return
}

// The scale operand reaches the kernel; the scores are multiplied by it.
// CHECK-LABEL: func.func @everything(
// CHECK-SAME: %[[Q:[a-z0-9]+]]: memref<1x2x?x32xf32>, %[[K:[a-z0-9]+]]: memref<1x2x?x32xf32>, %[[V:[a-z0-9]+]]: memref<1x2x?x32xf32>, %[[O:[a-z0-9]+]]: memref<1x2x?x32xf32>, %[[LSE:[a-z0-9]+]]: memref<1x2x?xf32>, %[[SCALE:[a-z0-9]+]]: f32
// CHECK: tile.launch @fused_attn_s1688_tf32x3_f32_d32 grid(%{{.*}}) args(%[[Q]], %[[K]], %[[V]], %[[O]], %[[LSE]], %[[SCALE]])
// CPU-LABEL: func.func @everything(
// CPU: tile.launch @fused_attn_cpu_f32_d32
func.func @everything(%q: memref<1x2x?x32xf32>, %k: memref<1x2x?x32xf32>, %v: memref<1x2x?x32xf32>,
                      %o: memref<1x2x?x32xf32>, %lse: memref<1x2x?xf32>, %scale: f32) {
  attn.attention ins(%q, %k, %v : memref<1x2x?x32xf32>, memref<1x2x?x32xf32>, memref<1x2x?x32xf32>)
    scale(%scale : f32)
    outs(%o, %lse : memref<1x2x?x32xf32>, memref<1x2x?xf32>)
    {schedule = #attn.schedule<block_m = 64, block_n = 32, num_stages = 2, num_warps = 4>}
    score_mod (%s: f32, %b: i32, %h: i32, %q_idx: i32, %kv_idx: i32) {
      %hf = arith.sitofp %h : i32 to f32
      %t = arith.addf %s, %hf : f32
      attn.yield %t : f32
    }
    mask_mod (%b: i32, %h: i32, %q_idx: i32, %kv_idx: i32) {
      %n = attn.kv_len : i32
      %m = attn.q_len : i32
      %shift = arith.subi %n, %m : i32
      %last = arith.addi %q_idx, %shift : i32
      %keep = arith.cmpi sle, %kv_idx, %last : i32
      attn.yield %keep : i1
    }
  return
}

func.func @sink(%q: memref<1x2x?x64xbf16>, %o: memref<1x2x?x64xbf16>, %lse: memref<1x2x?xf32>, %s: memref<2xf16>) {
  attn.attention ins(%q, %q, %q : memref<1x2x?x64xbf16>, memref<1x2x?x64xbf16>, memref<1x2x?x64xbf16>)
    sink(%s : memref<2xf16>)
    outs(%o, %lse : memref<1x2x?x64xbf16>, memref<1x2x?xf32>)
    {schedule = #attn.schedule<block_m = 64, block_n = 32, num_stages = 2, num_warps = 4>}
  return
}

// Head dimensions that aren't multiples of a matrix instruction's depth: tiles
// have more columns than the memrefs, on the GPU only. Costs don't count them.
// CHECK-LABEL: func.func @head_dims(
// CHECK: arith.muli %{{.*}}, %c448 : index
// CHECK: tile.launch @fused_attn_s16816_f16_d40_72
func.func @head_dims(%q: memref<1x2x?x40xf16>, %v: memref<1x2x?x72xf16>, %o: memref<1x2x?x72xf16>) {
  attn.attention ins(%q, %q, %v : memref<1x2x?x40xf16>, memref<1x2x?x40xf16>, memref<1x2x?x72xf16>)
    outs(%o : memref<1x2x?x72xf16>) {schedule = #schedule}
  return
}

// CHECK-LABEL: tile.kernel @fused_attn_s16816_f16_d64(
// CHECK-SAME: %[[Q:[a-z0-9]+]]: memref<?x8x?x64xf16>, %[[K:[a-z0-9]+]]: memref<?x2x?x64xf16>, %[[V:[a-z0-9]+]]: memref<?x2x?x64xf16>, %[[O:[a-z0-9]+]]: memref<?x8x?x64xf16>)
// CHECK-SAME: num_warps = 4
// CHECK: %[[ID:.*]] = tile.program_id
// CHECK: %[[TILE:.*]] = arith.remui %[[ID]]
// CHECK: %[[HB:.*]] = arith.divui %[[ID]]
// CHECK: %[[H:.*]] = arith.remui %[[HB]], %c8_i32
// CHECK: %[[B:.*]] = arith.divui %[[HB]], %c8_i32
// CHECK: %[[KEYS:.*]] = memref.dim %[[K]], %c2
// CHECK: %[[NK:.*]] = arith.index_cast %[[KEYS]]
// CHECK: %[[M:.*]] = arith.muli %[[TILE]], %c128_i32
// CHECK: %[[G:.*]] = arith.divui %[[H]], %c4_i32
// CHECK: tile.load %[[Q]][%[[B]], %[[H]], %[[M]], %c0_i32] : {{.*}} -> tensor<128x64xf16>
// CHECK: %[[SCALE:.*]] = arith.constant 1.250000e-01 : f32
// CHECK: %[[R:.*]]:3 = tile.kv_loop ranges(%c0_i32, %c0_i32, %c0_i32, %[[NK]]) step 64
// CHECK-SAME: qk (%[[KV:[a-z0-9]+]]: i32
// CHECK:   tile.load %[[K]][%[[B]], %[[G]], %[[KV]], %c0_i32] : {{.*}} -> tensor<64x64xf16>
// CHECK:   tile.mma mma %{{.*}} {transpose_b}
// CHECK: score (
// CHECK-NOT: arith.mulf
// CHECK:   tile.mask %{{.*}} at(%[[M]], %{{.*}}) (%{{.*}}: i32, %[[KI:.*]]: i32)
// CHECK-NEXT: %[[IN:.*]] = arith.cmpi slt, %[[KI]], %[[NK]] : i32
// CHECK-NEXT: tile.yield %[[IN]]
// CHECK: softmax (
// CHECK:   tile.online_softmax %{{.*}} scale %[[SCALE]]
// CHECK: pv (
// CHECK:   tile.load %[[V]][%[[B]], %[[G]],
// CHECK:   arith.truncf %{{.*}} : tensor<128x64xf32> to tensor<128x64xf16>
// CHECK:   tile.mma mma
// A row without keys has sum 0 and output 0.
// CHECK: %[[L:.*]] = tile.broadcast %[[R]]#2 dim 0
// CHECK: %[[EMPTY:.*]] = arith.cmpf oeq, %[[L]], %cst
// CHECK: arith.select %[[EMPTY]], %cst
// CHECK: tile.store %{{.*}}, %[[O]][%[[B]], %[[H]], %[[M]], %c0_i32]

// CHECK-LABEL: tile.kernel @fused_attn_s1688_tf32x3_f32_d32(
// CHECK-SAME: %[[LSE:[a-z0-9]+]]: memref<1x2x?xf32>, %[[SCALE:[a-z0-9]+]]: f32)
// The last rows come first.
// CHECK: %[[FORWARD:.*]] = arith.remui
// CHECK: %[[H:.*]] = arith.remui
// CHECK: %[[LAST:.*]] = arith.subi %{{.*}}, %c1_i32
// CHECK: %[[TILE:.*]] = arith.subi %[[LAST]], %[[FORWARD]]
// CHECK: %[[M:.*]] = arith.muli %[[TILE]], %c64_i32
// CHECK: %[[ONE:.*]] = arith.constant 1.000000e+00 : f32
// CHECK: tile.mma tf32x3
// CHECK: tile.score_mod %{{.*}} at(%[[M]], %{{.*}}) (%[[S:.*]]: f32,
// CHECK:   arith.mulf %[[S]], %[[SCALE]] : f32
// CHECK: tile.mask
// CHECK:   arith.cmpi slt
// CHECK:   arith.cmpi sle
// CHECK:   arith.andi
// CHECK: tile.online_softmax %{{.*}} scale %[[ONE]]
// CHECK: math.log
// CHECK: tile.store %{{.*}}, %[[LSE]][%{{.*}}, %[[H]], %[[M]]]

// The sink takes its share of the sum by the lse over the keys, and joins the
// lse that is stored.
// CHECK-LABEL: tile.kernel @fused_attn_s16816_bf16_d64(
// CHECK-SAME: %[[O:[a-z0-9]+]]: memref<1x2x?x64xbf16>, %[[LSE_OUT:[a-z0-9]+]]: memref<1x2x?xf32>, %[[SINK:[a-z0-9]+]]: memref<2xf16>)
// CHECK: %[[LOOP:.*]]:3 = tile.kv_loop
// CHECK: %[[LSE:.*]] = arith.select
// CHECK: %[[F16:.*]] = tile.gather %[[SINK]][%{{.*}}] in_bounds [0] : memref<2xf16>, (i32) -> f16
// CHECK: %[[F32:.*]] = arith.extf %[[F16]] : f16 to f32
// CHECK: %[[SINKS:.*]] = tensor.splat %[[F32]] : tensor<64xf32>
// CHECK: %[[DIFFERENCE:.*]] = arith.subf %[[SINKS]], %[[LSE]]
// CHECK: %[[WEIGHT:.*]] = math.exp %[[DIFFERENCE]]
// CHECK: %[[FACTOR:.*]] = arith.addf %{{.*}}, %[[WEIGHT]]
// CHECK: %[[TOTAL:.*]] = arith.mulf %[[LOOP]]#2, %[[FACTOR]]
// CHECK: arith.divf %{{.*}}, %[[TOTAL]]
// CHECK: tile.store {{.*}}, %[[O]]
// CHECK: %[[LOG:.*]] = math.log1p
// CHECK: %[[WITH_SINK:.*]] = arith.addf %{{.*}}, %[[LOG]]
// CHECK: tile.store %[[WITH_SINK]], %[[LSE_OUT]]

// CHECK-LABEL: tile.kernel @fused_attn_s16816_f16_d40_72(
// CHECK: tile.load %{{.*}} : memref<1x2x?x40xf16> -> tensor<128x48xf16>
// CHECK: tile.load %{{.*}} : memref<1x2x?x40xf16> -> tensor<64x48xf16>
// CHECK: tile.load %{{.*}} : memref<1x2x?x72xf16> -> tensor<64x80xf16>
// CHECK: tile.store %{{.*}} : tensor<128x80xf16>, memref<1x2x?x72xf16>
// CPU-LABEL: tile.kernel @fused_attn_cpu_f16_d40_72(
// CPU: tile.load %{{.*}} : memref<1x2x?x40xf16> -> tensor<128x40xf16>
// CPU: tile.store %{{.*}} : tensor<128x72xf16>, memref<1x2x?x72xf16>
