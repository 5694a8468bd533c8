// RUN: attn-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-assign-layouts))' -split-input-file -verify-diagnostics

tile.kernel @computed_right_operand(%a: memref<?x64xbf16>, %o: memref<?x64xf32>) attributes {num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %t = tile.load %a[%c0, %c0] : memref<?x64xbf16> -> tensor<64x64xbf16>
  %b = arith.addf %t, %t : tensor<64x64xbf16>
  // expected-error @below {{takes its right operand from shared memory on this target; it must come straight from a tile.load}}
  %s = tile.mma mma %t, %b, %zero : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
  tile.store %s, %o[%c0, %c0] : tensor<64x64xf32>, memref<?x64xf32>
  tile.return
}

// -----

tile.kernel @row_and_column(%a: memref<?xf32>, %o: memref<?x64xf32>) attributes {num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  // expected-error @below {{a vector is used along the rows (queries) and along the columns (keys) of a tile; compute it separately for each, from other values}}
  %t = tile.load %a[%c0] : memref<?xf32> -> tensor<64xf32>
  %u = arith.addf %t, %t : tensor<64xf32>
  %rows = tile.broadcast %t dim 0 : tensor<64xf32> -> tensor<64x64xf32>
  %cols = tile.broadcast %u dim 1 : tensor<64xf32> -> tensor<64x64xf32>
  %s = arith.addf %rows, %cols : tensor<64x64xf32>
  tile.store %s, %o[%c0, %c0] : tensor<64x64xf32>, memref<?x64xf32>
  tile.return
}
