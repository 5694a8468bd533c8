// RUN: attn-opt %s --convert-tile-to-vector --split-input-file --verify-diagnostics

tile.kernel @mask(%x: memref<64x64xf32>) attributes {num_warps = 4 : i32} {
  %zero = arith.constant 0 : i32
  %t = tile.load %x[%zero, %zero] : memref<64x64xf32> -> tensor<64x64xf32>
  // expected-error @below {{'tile.mask' op must be lowered before convert-tile-to-vector}}
  %m = tile.mask %t at (%zero, %zero) (%qi: i32, %ki: i32) {
    %keep = arith.cmpi sle, %ki, %qi : i32
    tile.yield %keep : i1
  } : tensor<64x64xf32>
  tile.store %m, %x[%zero, %zero] : tensor<64x64xf32>, memref<64x64xf32>
  tile.return
}

// -----

tile.kernel @libm(%x: memref<64xf32>) attributes {num_warps = 4 : i32} {
  %zero = arith.constant 0 : i32
  %t = tile.load %x[%zero] : memref<64xf32> -> tensor<64xf32>
  // expected-error @below {{isn't supported on the CPU; run tile-lower-math first, which leaves absf, absi, ceil}}
  %s = math.sin %t : tensor<64xf32>
  tile.store %s, %x[%zero] : tensor<64xf32>, memref<64xf32>
  tile.return
}

// -----

tile.kernel @constant(%x: memref<2xf32>) attributes {num_warps = 4 : i32} {
  %zero = arith.constant 0 : i32
  // expected-error @below {{must be a splat; other constants can be made from tile.iota}}
  %c = arith.constant dense<[0.0, 1.0]> : tensor<2xf32>
  tile.store %c, %x[%zero] : tensor<2xf32>, memref<2xf32>
  tile.return
}

// -----

tile.kernel @extract(%x: memref<64xf32>) attributes {num_warps = 4 : i32} {
  %zero = arith.constant 0 : i32
  %i = arith.constant 0 : index
  %t = tile.load %x[%zero] : memref<64xf32> -> tensor<64xf32>
  // expected-error @below {{isn't supported in a CPU kernel; legal are tile, arith and math operations, scf.for, scf.if and memref.dim}}
  %e = tensor.extract %t[%i] : tensor<64xf32>
  tile.return
}

// -----

tile.kernel @dim(%x: memref<?xf32>, %i: i32) attributes {num_warps = 4 : i32} {
  %index = arith.index_cast %i : i32 to index
  // expected-error @below {{must ask for a constant, existing dimension of a kernel argument}}
  %n = memref.dim %x, %index : memref<?xf32>
  tile.return
}

// -----

// expected-error @below {{needs 8388608 bytes of stack for its tiles; at most 4194304 are allowed: choose smaller tiles}}
tile.kernel @stack(%x: memref<2048x1024xf32>) attributes {num_warps = 4 : i32} {
  %zero = arith.constant 0 : i32
  // expected-note @below {{8388608 bytes here}}
  %t = tile.load %x[%zero, %zero] : memref<2048x1024xf32> -> tensor<2048x1024xf32>
  tile.store %t, %x[%zero, %zero] : tensor<2048x1024xf32>, memref<2048x1024xf32>
  tile.return
}
