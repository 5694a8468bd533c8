// RUN: attn-opt %s --split-input-file --convert-attn-to-tile=target=sm_80 | FileCheck %s

// V ends where a mask_mod ends the keys of all queries, so that what lies behind
// never meets a weight of 0.

// CHECK-LABEL: tile.kernel @
// CHECK-SAME: %{{[a-z0-9]+}}: memref<2x2x?x64xbf16>, %[[K:[a-z0-9]+]]: memref<2x2x?x64xbf16>, %[[V:[a-z0-9]+]]: memref<2x2x?x64xbf16>, %{{.*}}: memref<2x2x?x64xbf16>, %[[LENS:[a-z0-9]+]]: memref<2xi32>)
// CHECK: %[[N:.*]] = tile.gather %[[LENS]]
// CHECK: %[[MIN:.*]] = arith.minsi %[[N]], %[[KEYS:.*]] : i32
// CHECK: %[[COUNT:.*]] = arith.maxsi %[[MIN]], %{{.*}} : i32
// CHECK: %[[SIZE:.*]] = arith.index_cast %[[COUNT]] : i32 to index
// CHECK: %[[PART:.*]] = memref.subview %[[V]][0, 0, 0, 0] [2, 2, %[[SIZE]], 64]
// CHECK: tile.load %[[K]]
// CHECK: tile.load %[[PART]]
func.func @lengths(%q: memref<2x2x?x64xbf16>, %k: memref<2x2x?x64xbf16>, %v: memref<2x2x?x64xbf16>, %o: memref<2x2x?x64xbf16>, %lens: memref<2xi32>) {
  attn.attention ins(%q, %k, %v, %lens : memref<2x2x?x64xbf16>, memref<2x2x?x64xbf16>, memref<2x2x?x64xbf16>, memref<2xi32>)
    outs(%o : memref<2x2x?x64xbf16>)
    {schedule = #attn.schedule<block_m = 64, block_n = 32, num_stages = 2, num_warps = 4>}
    mask_mod (%b: i32, %h: i32, %q_idx: i32, %kv_idx: i32, %l: memref<2xi32>) {
      %n = attn.capture_load %l[%b] : memref<2xi32> -> i32
      %padding = arith.cmpi slt, %kv_idx, %n : i32
      %causal = arith.cmpi sle, %kv_idx, %q_idx : i32
      %r = arith.andi %causal, %padding : i1
      attn.yield %r : i1
    }
  return
}

// -----

// One of two conditions hides no key for sure, and neither does a bound that
// depends on the query.
// CHECK-LABEL: tile.kernel @
// CHECK-NOT: memref.subview
// CHECK: tile.return
func.func @either(%q: memref<2x2x?x64xbf16>, %o: memref<2x2x?x64xbf16>) {
  attn.attention ins(%q, %q, %q : memref<2x2x?x64xbf16>, memref<2x2x?x64xbf16>, memref<2x2x?x64xbf16>)
    outs(%o : memref<2x2x?x64xbf16>)
    {schedule = #attn.schedule<block_m = 64, block_n = 32, num_stages = 2, num_warps = 4>}
    mask_mod (%b: i32, %h: i32, %q_idx: i32, %kv_idx: i32) {
      %n = arith.constant 40 : i32
      %prefix = arith.cmpi slt, %kv_idx, %n : i32
      %causal = arith.cmpi sle, %kv_idx, %q_idx : i32
      %r = arith.ori %causal, %prefix : i1
      attn.yield %r : i1
    }
  return
}

// -----

// What is not hidden, by 64-bit lengths.
// CHECK-LABEL: tile.kernel @fused_attn_s16816_bf16_d64(
// CHECK-SAME: %[[V:[a-z0-9]+]]: memref<2x2x?x64xbf16>, %{{[a-z0-9]+}}: memref<2x2x?x64xbf16>, %[[LENS:[a-z0-9]+]]: memref<2xi64>
// CHECK: %[[N:.*]] = tile.gather %[[LENS]]
// CHECK: %[[ROOM:.*]] = arith.extsi %{{.*}} : i32 to i64
// CHECK: %[[MIN:.*]] = arith.minsi %[[N]], %[[ROOM]] : i64
// CHECK: %[[CLAMPED:.*]] = arith.maxsi %[[MIN]], %{{.*}} : i64
// CHECK: %[[NARROW:.*]] = arith.trunci %[[CLAMPED]] : i64 to i32
// CHECK: %[[COUNT:.*]] = arith.maxsi %[[NARROW]], %{{.*}} : i32
// CHECK: %[[SIZE:.*]] = arith.index_cast %[[COUNT]] : i32 to index
// CHECK: memref.subview %[[V]][0, 0, 0, 0] [2, 2, %[[SIZE]], 64]
func.func @hidden(%q: memref<2x2x?x64xbf16>, %k: memref<2x2x?x64xbf16>, %v: memref<2x2x?x64xbf16>, %o: memref<2x2x?x64xbf16>, %lens: memref<2xi64>) {
  attn.attention ins(%q, %k, %v, %lens : memref<2x2x?x64xbf16>, memref<2x2x?x64xbf16>, memref<2x2x?x64xbf16>, memref<2xi64>)
    outs(%o : memref<2x2x?x64xbf16>)
    {schedule = #attn.schedule<block_m = 64, block_n = 32, num_stages = 2, num_warps = 4>}
    mask_mod (%b: i32, %h: i32, %q_idx: i32, %kv_idx: i32, %l: memref<2xi64>) {
      %n = attn.capture_load %l[%b] : memref<2xi64> -> i64
      %key = arith.extsi %kv_idx : i32 to i64
      %padding = arith.cmpi sge, %key, %n : i64
      %future = arith.cmpi sgt, %kv_idx, %q_idx : i32
      %hidden = arith.ori %padding, %future : i1
      %true = arith.constant true
      %r = arith.xori %hidden, %true : i1
      attn.yield %r : i1
    }
  return
}
