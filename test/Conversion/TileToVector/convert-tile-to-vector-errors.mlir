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
  // expected-error @below {{isn't supported in a CPU kernel; legal are tile, arith and math operations, scf.for, scf.if, memref.dim and memref.subview}}
  %e = tensor.extract %t[%i] : tensor<64xf32>
  tile.return
}

// -----

tile.kernel @dim(%x: memref<?xf32>, %i: i32) attributes {num_warps = 4 : i32} {
  %index = arith.index_cast %i : i32 to index
  // expected-error @below {{must ask for a constant, existing dimension}}
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

// -----

tile.kernel @half_exp2(%x: memref<64xf16>) attributes {num_warps = 4 : i32} {
  %zero = arith.constant 0 : i32
  %t = tile.load %x[%zero] : memref<64xf16> -> tensor<64xf16>
  // expected-error @below {{'math.exp2' op is supported in f32 only, not in 'f16'}}
  %e = math.exp2 %t : tensor<64xf16>
  tile.store %e, %x[%zero] : tensor<64xf16>, memref<64xf16>
  tile.return
}

// -----

tile.kernel @element_type(%x: memref<64xf8E4M3FN>) attributes {num_warps = 4 : i32} {
  %zero = arith.constant 0 : i32
  // expected-error @below {{has a tile of 'f8E4M3FN'; the CPU takes f16, bf16, f32, f64, i1, i8, i16, i32 and i64}}
  %t = tile.load %x[%zero] : memref<64xf8E4M3FN> -> tensor<64xf8E4M3FN>
  tile.store %t, %x[%zero] : tensor<64xf8E4M3FN>, memref<64xf8E4M3FN>
  tile.return
}

// -----

tile.kernel @dynamic(%c: f32, %n: i32) attributes {num_warps = 4 : i32} {
  %size = arith.index_cast %n : i32 to index
  // expected-error @below {{has a value of type 'tensor<?xf32>'; the CPU takes static, nonempty tiles of rank 1 or 2}}
  %t = tensor.splat %c[%size] : tensor<?xf32>
  tile.return
}

// -----

tile.kernel @select_memref(%x: memref<64xf32>, %y: memref<64xf32>, %c: i32) attributes {num_warps = 4 : i32} {
  %zero = arith.constant 0 : i32
  %first = arith.cmpi eq, %c, %zero : i32
  // expected-error @below {{uses a memref; only tile.load, tile.gather, tile.store, tile.store_element, memref.dim and memref.subview may, and of kernel arguments or subviews of them}}
  %m = arith.select %first, %x, %y : memref<64xf32>
  %t = tile.load %m[%zero] : memref<64xf32> -> tensor<64xf32>
  tile.store %t, %x[%zero] : tensor<64xf32>, memref<64xf32>
  tile.return
}
