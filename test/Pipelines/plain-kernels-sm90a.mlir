// RUN: attn-opt %s --tile-to-sm90a | FileCheck %s

// A kernel without a loop over keys needs no roles. It keeps its threads and
// takes no tensor maps, and lies in the same module as those with roles.

// CHECK: gpu.module @kernels
// CHECK-NOT: gpu.module
// CHECK: llvm.func @double(
// CHECK-NOT: llvm.byval
// CHECK-SAME: attn.num_warps = 4 : i32
// CHECK-NOT: {{ (tile|hopper)\.}}
// CHECK-NOT: nvvm.setmaxregister
// CHECK: llvm.fadd
tile.kernel @double(%x: memref<64x64xf32>) attributes {num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %t = tile.load %x[%c0, %c0] : memref<64x64xf32> -> tensor<64x64xf32>
  %y = arith.addf %t, %t : tensor<64x64xf32>
  tile.store %y, %x[%c0, %c0] : tensor<64x64xf32>, memref<64x64xf32>
  tile.return
}
