// RUN: attn-opt --tile-lower-math --split-input-file --verify-diagnostics %s

tile.kernel @sine(%m: memref<?xf32>) attributes {num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %t = tile.load %m[%c0] : memref<?xf32> -> tensor<64xf32>
  // expected-error@+1 {{'math.sin' op on 'f32' is not lowered to any target; use f32 (or f16, bf16) and one of absf, absi, ceil, ctlz, erf,}}
  %a = math.sin %t : tensor<64xf32>
  tile.store %a, %m[%c0] : tensor<64xf32>, memref<?xf32>
  tile.return
}

// -----

tile.kernel @general_power(%x: f32, %m: memref<?xf32>) attributes {num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  // expected-error@+1 {{'math.powf' op on 'f32' is not lowered to any target}}
  %a = math.powf %x, %x : f32
  %t = tensor.splat %a : tensor<64xf32>
  tile.store %t, %m[%c0] : tensor<64xf32>, memref<?xf32>
  tile.return
}

// -----

tile.kernel @double(%x: f32, %m: memref<?xf32>) attributes {num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %w = arith.extf %x : f32 to f64
  // expected-error@+1 {{'math.exp' op on 'f64' is not lowered to any target}}
  %e = math.exp %w : f64
  %a = arith.truncf %e : f64 to f32
  %t = tensor.splat %a : tensor<64xf32>
  tile.store %t, %m[%c0] : tensor<64xf32>, memref<?xf32>
  tile.return
}

// -----

// The remainder would become a call of fmodf.
tile.kernel @remainder(%x: f32, %m: memref<?xf32>) attributes {num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  // expected-error@+1 {{'arith.remf' op on 'f32' is not lowered to any target}}
  %a = arith.remf %x, %x : f32
  %t = tensor.splat %a : tensor<64xf32>
  tile.store %t, %m[%c0] : tensor<64xf32>, memref<?xf32>
  tile.return
}
