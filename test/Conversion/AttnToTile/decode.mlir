// RUN: attn-opt --convert-attn-to-tile=target=sm_80 --split-input-file %s | FileCheck %s
// RUN: attn-opt --convert-attn-to-tile=target=sm_90a --split-input-file %s | FileCheck %s

// Three heads share a KV head: a tile's rows are theirs in turn, and the rules
// see a row's query and head.
// CHECK-LABEL: func.func @packed
// CHECK: %[[THREE:.*]] = arith.constant 3 : index
// CHECK: %[[ROWS:.*]] = arith.muli %{{.*}}, %[[THREE]] : index
// CHECK: arith.ceildivsi %[[ROWS]], %{{.*}} : index
// CHECK-NOT: memref.alloc
// CHECK: tile.launch @[[KERNEL:fused_attn_s16816_f16_d64_decode]] grid
// CHECK-NOT: tile.launch
// CHECK: tile.kernel @[[KERNEL]](
// CHECK-SAME: num_warps = 1
// CHECK: %[[ID:.*]] = tile.program_id
// CHECK: %[[TILE:.*]] = arith.remui %[[ID]],
// CHECK: %[[KV_HEAD:.*]] = arith.remui
// CHECK: %[[B:.*]] = arith.divui
// CHECK: %[[HEAD:.*]] = arith.muli %[[KV_HEAD]], %{{.*}} : i32
// CHECK: %[[ROW:.*]] = arith.muli %[[TILE]],
// CHECK: tile.load %{{.*}}[%[[B]], %[[HEAD]], %[[ROW]], %{{.*}}] interleave 3 : {{.*}} -> tensor<16x64xf16>
// CHECK: tile.load %{{.*}}[%[[B]], %[[KV_HEAD]], %{{.*}}, %{{.*}}] :
// CHECK: tile.mask %{{.*}} at(%[[ROW]],
// CHECK-SAME: (%[[R:.*]]: i32, %[[KV:.*]]: i32)
// CHECK: %[[IN_GROUP:.*]] = arith.remui %[[R]], %{{.*}}
// CHECK: %[[QUERY:.*]] = arith.divui %[[R]], %{{.*}}
// CHECK: %[[H:.*]] = arith.addi %[[HEAD]], %[[IN_GROUP]]
// CHECK: tile.gather %{{.*}}[%[[H]]] in_bounds [0]
// CHECK: arith.cmpi sle, %[[KV]], %[[QUERY]]
// CHECK: tile.store %{{.*}}[%[[B]], %[[HEAD]], %[[ROW]], %{{.*}}] interleave 3 : tensor<16x64xf16>
// CHECK: tile.store %{{.*}}[%[[B]], %[[HEAD]], %[[ROW]]] interleave 3 : tensor<16xf32>
func.func @packed(%q: memref<?x6x?x64xf16>, %k: memref<?x2x?x64xf16>, %lse: memref<?x6x?xf32>, %c: memref<6xi32>) {
  attn.attention ins(%q, %k, %k, %c : memref<?x6x?x64xf16>, memref<?x2x?x64xf16>, memref<?x2x?x64xf16>, memref<6xi32>)
    outs(%q, %lse : memref<?x6x?x64xf16>, memref<?x6x?xf32>)
    {schedule = #attn.schedule<block_m = 16, block_n = 64, num_stages = 2, num_warps = 1, decode = <max_splits = 1>>}
    mask_mod (%b: i32, %h: i32, %i: i32, %j: i32, %t: memref<6xi32>) {
      %x = attn.capture_load %t[%h] : memref<6xi32> -> i32
      %zero = arith.constant 0 : i32
      %a = arith.cmpi ne, %x, %zero : i32
      %d = arith.cmpi sle, %j, %i : i32
      %keep = arith.andi %a, %d : i1
      attn.yield %keep : i1
    }
  return
}

// -----

// The keys in parts, as many as fill the device, whose results a second kernel
// merges. One part leaves no work and no memory for it.
// CHECK-LABEL: func.func @split
// CHECK: %[[SMS:.*]] = tile.num_sms
// CHECK: %[[WANTED:.*]] = arith.muli %[[SMS]], %{{.*}} : index
// CHECK: arith.floordivsi %[[WANTED]]
// CHECK: arith.ceildivsi %{{.*}}, %c64
// CHECK-NEXT: %[[STEPS:.*]] = arith.maxsi %{{.*}}, %{{.*}} : index
// CHECK-NEXT: %[[PER_PART:.*]] = arith.ceildivsi %[[STEPS]], %{{.*}} : index
// CHECK-NEXT: %[[PARTS:.*]] = arith.ceildivsi %[[STEPS]], %[[PER_PART]] : index
// CHECK: arith.cmpi slt, %{{.*}}, %[[PARTS]] : index
// CHECK: memref.alloc(%{{.*}}, %[[STORED:.*]], %{{.*}}) : memref<?x2x?x?x48xf32>
// CHECK: arith.muli %[[STORED]], %{{.*}}
// CHECK: memref.alloc(%{{.*}}) : memref<?x2x?x?xf32>
// CHECK: tile.launch @[[KERNEL:fused_attn_s16816_bf16_d40_decode]] grid
// CHECK: tile.launch @[[MERGE:fused_attn_s16816_bf16_d40_merge]] grid
// CHECK: tile.kernel @[[KERNEL]](
// CHECK-SAME: %[[OUTPUTS:[a-z0-9]+]]: memref<?x2x?x?x48xf32>, %[[STATISTICS:[a-z0-9]+]]: memref<?x2x?x?xf32>, %[[NUM:[a-z0-9]+]]: i32)
// CHECK: %[[PART:.*]] = arith.remui %{{.*}}, %[[NUM]] : i32
// CHECK-NEXT: arith.divui
// CHECK: %[[STEPS:.*]] = arith.divui %{{.*}}, %[[NUM]] : i32
// CHECK: %[[KEYS:.*]] = arith.muli %[[STEPS]], %{{.*}} : i32
// CHECK: %[[FIRST:.*]] = arith.muli %[[PART]], %[[KEYS]] : i32
// CHECK: %[[BEGIN:.*]] = arith.minsi %{{.*}}, %[[FIRST]] : i32
// CHECK: %[[PAST:.*]] = arith.addi %[[BEGIN]], %[[KEYS]] : i32
// CHECK: %[[END:.*]] = arith.minsi %{{.*}}, %[[PAST]] : i32
// CHECK: tile.kv_loop ranges(%[[BEGIN]], %[[BEGIN]], %[[BEGIN]], %[[END]])
// CHECK: %[[WHOLE:.*]] = arith.cmpi sle, %[[NUM]], %{{.*}} : i32
// CHECK: scf.if %[[WHOLE]]
// CHECK: tile.store %{{.*}} : tensor<16x48xbf16>
// CHECK: else
// CHECK: tile.store %{{.*}}, %[[OUTPUTS]][%{{.*}}, %{{.*}}, %[[PART]], %{{.*}}, %{{.*}}] : tensor<16x48xf32>
// CHECK: tile.store %{{.*}}, %[[STATISTICS]][{{.*}}] : tensor<16xf32>
// CHECK: tile.store %{{.*}}, %[[STATISTICS]][{{.*}}] : tensor<16xf32>
// The merge takes 16 parts at a time, and of the rest 4, which needn't exist.
// CHECK: tile.kernel @[[MERGE]](
// CHECK-SAME: %[[NUMBER:[a-z0-9]+]]: i32)
// CHECK: %[[GROUPED:.*]] = arith.subi %[[NUMBER]], %{{.*}} : i32
// CHECK: %[[GROUPS:.*]]:3 = scf.for %[[FIRST:.*]] = %{{.*}} to %[[GROUPED]] step
// CHECK-NOT: arith.select
// CHECK: arith.addi %[[FIRST]], %{{.*}} overflow<nsw> : i32
// CHECK: math.fma
// CHECK: scf.for %[[LAST:.*]] = %[[GROUPED]] to %[[NUMBER]] step {{.*}} iter_args(%{{.*}} = %[[GROUPS]]#0
// CHECK: %[[SECOND:.*]] = arith.addi %[[LAST]], %c1_i32{{.*}} overflow<nsw> : i32
// CHECK: %[[EXISTS:.*]] = arith.cmpi slt, %[[SECOND]], %[[NUMBER]] : i32
// CHECK: arith.select %[[EXISTS]]
// CHECK: tile.exp_diff
// CHECK: tile.store %{{.*}} : tensor<4x64xbf16>
func.func @split(%q: memref<?x2x?x40xbf16>, %k: memref<?x2x?x40xbf16>) {
  attn.attention ins(%q, %k, %k : memref<?x2x?x40xbf16>, memref<?x2x?x40xbf16>, memref<?x2x?x40xbf16>)
    outs(%q : memref<?x2x?x40xbf16>)
    {schedule = #attn.schedule<block_m = 16, block_n = 64, num_stages = 2, num_warps = 1, decode = <max_splits = 8>>}
  return
}

// -----

// Parts of a fixed size don't depend on the device.
// CHECK-LABEL: func.func @batch_invariant
// CHECK-NOT: tile.num_sms
// CHECK: %[[KEYS:.*]] = arith.constant 256 : index
// CHECK: arith.ceildivsi %{{.*}}, %[[KEYS]] : index
func.func @batch_invariant(%q: memref<?x2x?x64xbf16>, %k: memref<?x2x?x64xbf16>) {
  attn.attention ins(%q, %k, %k : memref<?x2x?x64xbf16>, memref<?x2x?x64xbf16>, memref<?x2x?x64xbf16>)
    outs(%q : memref<?x2x?x64xbf16>)
    {batch_invariant, schedule = #attn.schedule<block_m = 16, block_n = 64, num_stages = 2, num_warps = 1, decode = <split_keys = 256>>}
  return
}

// -----

// Packed queries: a program finds its sequence by the rows of all heads, and
// parts, of which the merge knows no sequences, end where the sequence does.
// CHECK-LABEL: func.func @packed_queries
// CHECK: tile.kernel @fused_attn_s16816_f16_d64_decode
// CHECK-SAME: %[[OFFSETS:[a-z0-9]+]]: memref<?xi32>, %[[LENGTHS:[a-z0-9]+]]: memref<?xi32>, %[[PARTS:[a-z0-9]+]]: memref<?x2x?x?x64xf32>
// CHECK: scf.for
// CHECK: %[[START:.*]] = tile.gather %[[OFFSETS]]
// CHECK: %[[ROWS:.*]] = arith.muli %[[START]], %{{.*}} : i32
// CHECK: arith.divui %[[ROWS]]
// CHECK: tile.load {{.*}} interleave 2 : {{.*}} -> tensor<16x64xf16>
// CHECK: scf.if
// CHECK: else
// CHECK: %[[PART:.*]] = memref.subview %[[PARTS]][0, 0, 0, %{{.*}}, 0]
// CHECK: tile.store %{{.*}}, %[[PART]][%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}] : tensor<16x64xf32>
// CHECK: tile.kernel @fused_attn_s16816_f16_d64_merge
// CHECK-SAME: %[[OFFSETS:[a-z0-9]+]]: memref<?xi32>, %[[LENGTHS:[a-z0-9]+]]: memref<?xi32>,
// CHECK: tile.gather %[[OFFSETS]]
// CHECK-NOT: tile.gather
// CHECK: tile.store {{.*}} interleave 2
func.func @packed_queries(%q: memref<1x4x?x64xf16>, %k: memref<?x2x?x64xf16>, %o: memref<1x4x?x64xf16>, %c: memref<?xi32>, %n: memref<?xi32>) {
  attn.attention ins(%q, %k, %k : memref<1x4x?x64xf16>, memref<?x2x?x64xf16>, memref<?x2x?x64xf16>)
    cu_q(%c : memref<?xi32>) kv_len(%n : memref<?xi32>)
    outs(%o : memref<1x4x?x64xf16>)
    {schedule = #attn.schedule<block_m = 16, block_n = 64, num_stages = 2, num_warps = 1, decode = <max_splits = 8>>}
  return
}
