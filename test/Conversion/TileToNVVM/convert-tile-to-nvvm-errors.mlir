// RUN: attn-opt %s --convert-tile-to-nvvm -split-input-file -verify-diagnostics

// expected-error @below {{needs 1048576 bytes of shared memory, but a program may use 166912; use smaller tiles or fewer num_stages}}
tile.kernel @budget(%a: memref<?x64xf32>) attributes {num_warps = 4 : i32} {
  // expected-note @below {{1048576 bytes for 16 of 'tensor<256x64xf32>'}}
  %b = tile.alloc_buffer : !tile.buffer<16, tensor<256x64xf32>>
  tile.return
}

// -----

tile.kernel @no_layout(%a: memref<?x64xf32>) attributes {num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  // expected-error @below {{has no layout in registers; run tile-assign-layouts first}}
  %t = tile.load %a[%c0, %c0] : memref<?x64xf32> -> tensor<32x64xf32>
  tile.store %t, %a[%c0, %c0] : tensor<32x64xf32>, memref<?x64xf32>
  tile.return
}

// -----

// expected-error @below {{num_warps must be a power of two, not 3}}
tile.kernel @warps() attributes {num_warps = 3 : i32} {
  tile.return
}

// -----

#mma = #tile.mma<warps = 4>
tile.kernel @shape(%a: memref<?x64xf32>) attributes {num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  // expected-error @below {{rows must be a multiple of 64 and columns of 8}}
  %t = tile.load %a[%c0, %c0] : memref<?x64xf32> -> tensor<32x64xf32, #mma>
  tile.return
}

// -----

#blocked = #tile.blocked<vector = 4, threads_per_row = 16, warps = 4>
tile.kernel @math(%a: memref<?x64xf32>) attributes {num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %t = tile.load %a[%c0, %c0] : memref<?x64xf32> -> tensor<32x64xf32, #blocked>
  // expected-error @below {{has no GPU instruction; tile-lower-math turns it into those that have, on f32}}
  %u = math.tanh %t : tensor<32x64xf32, #blocked>
  tile.return
}

// -----

tile.kernel @memref(%a: memref<?x64xf32>) attributes {num_warps = 4 : i32} {
  // expected-error @below {{makes a memref inside a kernel; pass it as an argument}}
  %b = memref.alloc() : memref<64x64xf32>
  tile.return
}

// -----

tile.kernel @narrow(%a: memref<?x64xf32>) attributes {num_warps = 4 : i32} {
  // expected-error @below {{where rows must be a multiple of 16 bytes}}
  %b = tile.alloc_buffer : !tile.buffer<1, tensor<64x4xbf16>>
  tile.return
}

// -----

tile.kernel @dim(%a: memref<?x64xf32>, %i: i32) attributes {num_warps = 4 : i32} {
  %x = arith.index_cast %i : i32 to index
  // expected-error @below {{needs a constant dimension of its memref}}
  %d = memref.dim %a, %x : memref<?x64xf32>
  tile.return
}

// -----

tile.kernel @gather_bits(%a: memref<?xi4>, %i: i32) attributes {num_warps = 4 : i32} {
  // expected-error @below {{reads elements of 1, 8, 16, 32 or 64 bits on the GPU, not 'i4'}}
  %x = tile.gather %a[%i] : memref<?xi4>, (i32) -> i4
  tile.return
}

// -----

tile.kernel @reduce_range(%n: i32, %out: memref<?xi32>) attributes {num_warps = 4 : i32} {
  // expected-error@+1 {{is shared by the threads of one warp, but the kernel has 4; give it num_warps = 1}}
  %max = tile.reduce_range %n to %n min 0 (%i: i32) {
    tile.yield %i : i32
  } -> i32
  tile.store_element %max, %out[%n] : memref<?xi32>
  tile.return
}

// -----

#blocked = #tile.blocked<vector = 4, threads_per_row = 16, warps = 4>
tile.kernel @f8_arithmetic(%a: memref<?x64xf8E4M3FN>) attributes {num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %t = tile.load %a[%c0, %c0] : memref<?x64xf8E4M3FN> -> tensor<32x64xf8E4M3FN, #blocked>
  // expected-error @below {{computes on 8-bit floats, which only products on sm_90a take}}
  %u = arith.addf %t, %t : tensor<32x64xf8E4M3FN, #blocked>
  tile.return
}

// -----

#blocked = #tile.blocked<vector = 4, threads_per_row = 16, warps = 4>
tile.kernel @f8_constant() attributes {num_warps = 4 : i32} {
  // expected-error @below {{is of 8-bit floats, which come from memory only}}
  %t = arith.constant dense<1.0> : tensor<32x64xf8E4M3FN, #blocked>
  tile.return
}

// -----

#mma = #tile.mma<warps = 4>
tile.kernel @f8_accumulator(%a: memref<?x64xf8E4M3FN>) attributes {num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  // expected-error @below {{8-bit floats in this layout come from arith.truncf only, as the left operand of a product}}
  %t = tile.load %a[%c0, %c0] : memref<?x64xf8E4M3FN> -> tensor<64x64xf8E4M3FN, #mma>
  tile.return
}

// -----

#mma = #tile.mma<warps = 4>
tile.kernel @f8_columns() attributes {num_warps = 4 : i32} {
  %t = arith.constant dense<1.0> : tensor<64x24xf32, #mma>
  // expected-error @below {{columns of 8-bit floats must be a multiple of 16}}
  %u = arith.truncf %t : tensor<64x24xf32, #mma> to tensor<64x24xf8E4M3FN, #mma>
  tile.return
}

// -----

#mma = #tile.mma<warps = 4>
#shared = #tile.shared
tile.kernel @f8_product(%a: memref<?x32xf8E4M3FN>) attributes {num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %z = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
  %t = tile.load %a[%c0, %c0] : memref<?x32xf8E4M3FN> -> tensor<64x32xf8E4M3FN, #shared>
  // expected-error @below {{multiplies 8-bit floats, which only the kernels of sm_90a with warp roles do}}
  %u = tile.mma mma %t, %t, %z {transpose_b} : tensor<64x32xf8E4M3FN, #shared>, tensor<64x32xf8E4M3FN, #shared>, tensor<64x64xf32, #mma>
  tile.return
}
