// RUN: attn-opt --convert-attn-to-tile=target=sm_80 %s | FileCheck %s

// Captures are arguments of the kernel behind the others. Of a size that is 1,
// every index reads the one element; batch, head and constants are in bounds.
// CHECK-LABEL: func.func @captures
// CHECK: tile.launch @[[NAME:fused_attn_s16816_f16_d64]] {{.*}} args(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %arg1, %{{.*}})
// CHECK: tile.kernel @[[NAME]](
// CHECK-SAME: %[[C:[a-z0-9]+]]: memref<?x1x5x?xi8>, %{{.*}})
// CHECK: %[[ZERO:.*]] = arith.constant 0 : i32
// CHECK: tile.load %{{.*}}[%[[B:.*]], %{{.*}}, %{{.*}}, %[[ZERO]]]
// CHECK: tile.mask
// CHECK-SAME: rows 64 tiles(%{{.*}}) (%{{.*}}: i32, %[[KV:.*]]: i32)
// CHECK: %[[FOUR:.*]] = arith.constant 4 : i32
// CHECK: tile.gather %[[C]][%[[B]], %[[ZERO]], %[[FOUR]], %[[KV]]] in_bounds [0, 1, 2]
func.func @captures(%q: memref<?x2x?x64xf16>, %c: memref<?x1x5x?xi8>) {
  attn.attention ins(%q, %q, %q, %c : memref<?x2x?x64xf16>, memref<?x2x?x64xf16>, memref<?x2x?x64xf16>, memref<?x1x5x?xi8>)
    outs(%q : memref<?x2x?x64xf16>)
    {schedule = #attn.schedule<block_m = 64, block_n = 64, num_stages = 1, num_warps = 1>}
    mask_mod (%b: i32, %h: i32, %i: i32, %j: i32, %t: memref<?x1x5x?xi8>) {
      %four = arith.constant 4 : i32
      %x = attn.capture_load %t[%b, %h, %four, %j] : memref<?x1x5x?xi8> -> i8
      %zero = arith.constant 0 : i8
      %keep = arith.cmpi ne, %x, %zero : i8
      attn.yield %keep : i1
    }
  return
}
