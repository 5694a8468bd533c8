// RUN: attn-opt %s -canonicalize | FileCheck %s

// Computation on tiles that no one uses goes; loads go too, stores stay.

// CHECK-LABEL: tile.kernel @dead
// CHECK-NOT: tile.load
// CHECK-NOT: tile.reduce
// CHECK-NOT: tile.kv_loop
// CHECK: tile.store
tile.kernel @dead(%x: memref<?x?xf32>) attributes {num_warps = 4 : i32} {
  %zero = arith.constant 0 : i32
  %t = tile.load %x[%zero, %zero] : memref<?x?xf32> -> tensor<8x8xf32>
  %m = tile.reduce max %t : tensor<8x8xf32> -> tensor<8xf32>
  %r = tile.kv_loop ranges(%zero, %zero, %zero, %zero) step 8 iter_args(%m) : tensor<8xf32>
    qk (%kv: i32, %c: tensor<8xf32>) {
      tile.yield
    } score (%kv: i32, %c: tensor<8xf32>) {
      tile.yield
    } softmax (%kv: i32, %c: tensor<8xf32>) {
      tile.yield
    } pv (%kv: i32, %c: tensor<8xf32>) {
      tile.yield %c : tensor<8xf32>
    }
  %one = arith.constant dense<1.0> : tensor<8x8xf32>
  tile.store %one, %x[%zero, %zero] : tensor<8x8xf32>, memref<?x?xf32>
  tile.return
}

// A loop that stores is no dead code.

// CHECK-LABEL: tile.kernel @storing_loop
// CHECK: tile.kv_loop
// CHECK: tile.store
tile.kernel @storing_loop(%x: memref<?x?xf32>, %n: i32) attributes {num_warps = 4 : i32} {
  %zero = arith.constant 0 : i32
  %one = arith.constant dense<1.0> : tensor<8x8xf32>
  tile.kv_loop ranges(%zero, %n, %n, %n) step 8
    qk (%kv: i32) {
      tile.yield
    } score (%kv: i32) {
      tile.yield
    } softmax (%kv: i32) {
      tile.yield
    } pv (%kv: i32) {
      tile.store %one, %x[%kv, %zero] : tensor<8x8xf32>, memref<?x?xf32>
      tile.yield
    }
  tile.return
}

// Folding keeps a tile's layout.

// CHECK-LABEL: func @layout_survives_folding
// CHECK: arith.constant dense<3.000000e+00> : tensor<64x64xf32, #mma>
func.func @layout_survives_folding() -> tensor<64x64xf32, #tile.mma<warps = 4>> {
  %one = arith.constant dense<1.0> : tensor<64x64xf32, #tile.mma<warps = 4>>
  %two = arith.constant dense<2.0> : tensor<64x64xf32, #tile.mma<warps = 4>>
  %r = arith.addf %one, %two : tensor<64x64xf32, #tile.mma<warps = 4>>
  return %r : tensor<64x64xf32, #tile.mma<warps = 4>>
}

// Before the first step of a loop the limits are -inf, plus a distance that may
// not be constant.

// CHECK-LABEL: tile.kernel @first_step
// CHECK: tile.store
// CHECK-NOT: tile.any_exceeds
// CHECK: tile.return
tile.kernel @first_step(%x: memref<?x8xf32>, %distance: f32) attributes {num_warps = 4 : i32} {
  %zero = arith.constant 0 : i32
  %minf = arith.constant dense<0xFF800000> : tensor<8xf32>
  %distances = tensor.splat %distance : tensor<8xf32>
  %limits = arith.addf %minf, %distances : tensor<8xf32>
  %t = tile.load %x[%zero, %zero] : memref<?x8xf32> -> tensor<8x8xf32>
  %any = tile.any_exceeds %t, %limits : tensor<8x8xf32>, tensor<8xf32>
  scf.if %any {
    tile.store %t, %x[%zero, %zero] : tensor<8x8xf32>, memref<?x8xf32>
  }
  tile.return
}

// CHECK-LABEL: tile.kernel @negative
// CHECK-NOT: tile.any_exceeds
// CHECK: tile.return
tile.kernel @negative(%x: memref<?x8xf32>) attributes {num_warps = 4 : i32} {
  %zero = arith.constant 0 : i32
  %limits = arith.constant dense<-1.0> : tensor<8xf32>
  %t = tile.load %x[%zero, %zero] : memref<?x8xf32> -> tensor<8x8xf32>
  %any = tile.any_exceeds %t, %limits : tensor<8x8xf32>, tensor<8xf32>
  scf.if %any {
    tile.store %t, %x[%zero, %zero] : tensor<8x8xf32>, memref<?x8xf32>
  }
  tile.return
}

// CHECK-LABEL: tile.kernel @later_step
// CHECK: tile.any_exceeds
tile.kernel @later_step(%x: memref<?x8xf32>) attributes {num_warps = 4 : i32} {
  %zero = arith.constant 0 : i32
  %limits = arith.constant dense<1.0> : tensor<8xf32>
  %t = tile.load %x[%zero, %zero] : memref<?x8xf32> -> tensor<8x8xf32>
  %any = tile.any_exceeds %t, %limits : tensor<8x8xf32>, tensor<8xf32>
  scf.if %any {
    tile.store %t, %x[%zero, %zero] : tensor<8x8xf32>, memref<?x8xf32>
  }
  tile.return
}
