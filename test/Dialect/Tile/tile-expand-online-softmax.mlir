// RUN: attn-opt --tile-expand-online-softmax %s | FileCheck %s
// RUN: sed 's/scale %c :/scale %c {exponent = 5 : i32} :/' %s \
// RUN:   | attn-opt --tile-expand-online-softmax | FileCheck %s --check-prefix=EXPONENT

// The sum is that of the larger exponentials; alpha isn't changed.
// EXPONENT: %[[P:.*]] = tile.exp_diff %{{.*}} : tensor<64x32xf32>
// EXPONENT: %[[C32:.*]] = arith.constant dense<3.200000e+01> : tensor<64x32xf32>
// EXPONENT: %[[LARGE:.*]] = arith.mulf %[[P]], %[[C32]]
// EXPONENT: %[[A:.*]] = tile.exp_diff %{{.*}} : tensor<64xf32>
// EXPONENT: tile.reduce add %[[LARGE]]
// EXPONENT: tile.store %[[LARGE]],
// EXPONENT: tile.store %[[A]],

// CHECK-LABEL: tile.kernel @softmax(
// CHECK-SAME: %[[C:[a-z0-9]+]]: f32
// CHECK: %[[S:.*]] = tile.load
// CHECK: %[[M0:.*]] = tile.load {{.*}} -> tensor<64xf32>
// CHECK: %[[TM:.*]] = tile.reduce max %[[S]] : tensor<64x32xf32> -> tensor<64xf32>
// CHECK: %[[M1:.*]] = arith.maximumf %[[M0]], %[[TM]]
// CHECK: %[[P:.*]] = tile.exp_diff %[[S]], %[[M1]] scale %[[C]] : tensor<64x32xf32>
// CHECK: %[[A:.*]] = tile.exp_diff %[[M0]], %[[M1]] scale %[[C]] : tensor<64xf32>
// CHECK: %[[TS:.*]] = tile.reduce add %[[P]]
// CHECK: %[[L:.*]] = arith.mulf %[[M0]], %[[A]]
// CHECK: %[[L1:.*]] = arith.addf %[[L]], %[[TS]]
// CHECK: tile.store %[[P]],
// CHECK: tile.store %[[M1]],
// CHECK: tile.store %[[L1]],
// CHECK: tile.store %[[A]],
tile.kernel @softmax(%c: f32, %x: memref<?x?xf32, strided<[?, 1]>>, %y: memref<?xf32>) attributes {num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %s = tile.load %x[%c0, %c0] : memref<?x?xf32, strided<[?, 1]>> -> tensor<64x32xf32>
  %m0 = tile.load %y[%c0] : memref<?xf32> -> tensor<64xf32>
  %p, %m1, %l1, %alpha = tile.online_softmax %s, %m0, %m0 scale %c : tensor<64x32xf32>, tensor<64xf32>
  tile.store %p, %x[%c0, %c0] : tensor<64x32xf32>, memref<?x?xf32, strided<[?, 1]>>
  tile.store %m1, %y[%c0] : tensor<64xf32>, memref<?xf32>
  tile.store %l1, %y[%c0] : tensor<64xf32>, memref<?xf32>
  tile.store %alpha, %y[%c0] : tensor<64xf32>, memref<?xf32>
  tile.return
}
