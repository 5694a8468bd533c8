// RUN: attn-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-assign-layouts))' | FileCheck %s

// Bytes alone are accessed 16 at a time.

// CHECK: #[[BYTES:.*]] = #tile.blocked<vector = 16, threads_per_row = 4, warps = 4>
// CHECK-LABEL: tile.kernel @bytes
tile.kernel @bytes(%x: memref<64x64xi8>) attributes {num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  // CHECK: tile.load {{.*}} -> tensor<64x64xi8, #[[BYTES]]>
  %t = tile.load %x[%c0, %c0] : memref<64x64xi8> -> tensor<64x64xi8>
  tile.store %t, %x[%c0, %c0] : tensor<64x64xi8>, memref<64x64xi8>
  tile.return
}
