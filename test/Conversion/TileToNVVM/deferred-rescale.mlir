// RUN: attn-opt %s --convert-tile-to-nvvm -split-input-file -verify-diagnostics | FileCheck %s

// A thread has 2 rows of 4 values each. Its maxima are those of integers, and
// the warp votes without a shuffle.
// CHECK-LABEL: llvm.func @any_exceeds
// CHECK-NOT: llvm.intr.maximum
// CHECK-NOT: shfl
// CHECK: %[[B0:.*]] = llvm.bitcast %{{.*}} : f32 to i32
// CHECK-COUNT-3: llvm.intr.smax
// CHECK: %[[LIMIT0:.*]] = llvm.bitcast %{{.*}} : f32 to i32
// CHECK: %[[NEGATIVE0:.*]] = llvm.icmp "slt" %[[LIMIT0]], %{{.*}} : i32
// CHECK: %[[EXCEEDS0:.*]] = llvm.icmp "slt" %[[LIMIT0]], %{{.*}} : i32
// CHECK: llvm.or %[[NEGATIVE0]], %[[EXCEEDS0]]
// CHECK-COUNT-3: llvm.intr.smax
// CHECK: %[[ROW1:.*]] = llvm.or
// CHECK: %[[ANY:.*]] = llvm.or %{{.*}}, %[[ROW1]]
// CHECK: %[[VOTE:.*]] = nvvm.vote.sync any %{{.*}}, %[[ANY]] -> i1
// CHECK: llvm.cond_br %[[VOTE]]
#mma = #tile.mma<warps = 4>
#row = #tile.row<#mma>
tile.kernel @any_exceeds(%a: memref<?x16xf32>, %b: memref<?xf32>) attributes {num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %x = tile.load %a[%c0, %c0] : memref<?x16xf32> -> tensor<64x16xf32, #mma>
  %limits = tile.load %b[%c0] : memref<?xf32> -> tensor<64xf32, #row>
  %any = tile.any_exceeds %x, %limits : tensor<64x16xf32, #mma>, tensor<64xf32, #row>
  scf.if %any {
    tile.store %limits, %b[%c0] : tensor<64xf32, #row>, memref<?xf32>
  }
  tile.return
}

// -----

// 2 rows of 6 values: two columns of each, three values each.
// CHECK-LABEL: llvm.func @fold_sum
// CHECK-COUNT-8: llvm.fadd
// CHECK-NOT: llvm.fadd
// CHECK-NOT: shfl
#mma = #tile.mma<warps = 4>
tile.kernel @fold_sum(%a: memref<?x24xf32>, %b: memref<?x8xf32>) attributes {num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %x = tile.load %a[%c0, %c0] : memref<?x24xf32> -> tensor<64x24xf32, #mma>
  %sums = tile.fold_sum %x : tensor<64x24xf32, #mma> -> tensor<64x8xf32, #mma>
  tile.store %sums, %b[%c0, %c0] : tensor<64x8xf32, #mma>, memref<?x8xf32>
  tile.return
}

// -----

#blocked = #tile.blocked<vector = 4, threads_per_row = 2, warps = 4>
tile.kernel @fold_blocked(%a: memref<?x24xf32>, %b: memref<?x8xf32>) attributes {num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %x = tile.load %a[%c0, %c0] : memref<?x24xf32> -> tensor<64x24xf32, #blocked>
  // expected-error @below {{adds up what one thread holds, which takes a tile with the layout #tile.mma}}
  %sums = tile.fold_sum %x : tensor<64x24xf32, #blocked> -> tensor<64x8xf32, #blocked>
  tile.store %sums, %b[%c0, %c0] : tensor<64x8xf32, #blocked>, memref<?x8xf32>
  tile.return
}
