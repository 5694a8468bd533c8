// RUN: attn-opt %s --convert-hopper-to-nvvm | FileCheck %s

#mma = #tile.mma<warps = 4>
#row = #tile.row<#mma>

// CHECK-LABEL: llvm.func @exponentials
tile.kernel @exponentials(%m: memref<?x16xf32, strided<[?, 1]>>, %r: memref<?xf32>, %c: f32) attributes {num_warps = 8 : i32} {
  hopper.warp_specialize(%m, %r, %c : memref<?x16xf32, strided<[?, 1]>>, memref<?xf32>, f32)
    producer registers(24) (%a: memref<?x16xf32, strided<[?, 1]>>, %b: memref<?xf32>, %s: f32) {
      %c0 = arith.constant 0 : i32
    } consumer warpgroups(1) registers(240) (%a: memref<?x16xf32, strided<[?, 1]>>, %b: memref<?xf32>, %s: f32) {
      %c0 = arith.constant 0 : i32
      %x = tile.load %a[%c0, %c0] : memref<?x16xf32, strided<[?, 1]>> -> tensor<64x16xf32, #mma>
      %max = tile.load %b[%c0] : memref<?xf32> -> tensor<64xf32, #row>
      %old = tile.load %b[%c0] : memref<?xf32> -> tensor<64xf32, #row>
      // Two rows a thread: their maxima times the scale, or times its power of
      // two where that is huge.
      // CHECK: %[[SCALE:.*]] = llvm.fmul
      // CHECK: llvm.fcmp "oeq"
      // CHECK: %[[EXACT:.*]] = llvm.bitcast %{{.*}} : i32 to f32
      // CHECK: %[[ABS:.*]] = llvm.intr.fabs
      // CHECK: %[[HUGE:.*]] = llvm.fcmp "ogt" %[[ABS]]
      // CHECK: %[[C0:.*]] = {{.*}}select %[[HUGE]], %[[EXACT]], %[[SCALE]]
      // CHECK: %[[MC0:.*]] = llvm.fmul %{{.*}}, %[[C0]]
      // CHECK: %[[NEG0:.*]] = llvm.fneg %[[MC0]]
      // One FMA an element: no subtraction, no other product.
      // CHECK-NOT: llvm.fsub
      // CHECK: %[[E:.*]] = llvm.intr.fma(%{{.*}}, %[[C0]], %[[NEG0]])
      // CHECK: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz{{.*}}"(%[[E]])
      // CHECK-NOT: llvm.fmul
      // CHECK-COUNT-7: llvm.intr.fma
      %p = tile.exp_diff %x, %max scale %s : tensor<64x16xf32, #mma>, tensor<64xf32, #row>
      tile.store %p, %a[%c0, %c0] : tensor<64x16xf32, #mma>, memref<?x16xf32, strided<[?, 1]>>
      // A difference of rounded products, 0 where only one maximum is huge.
      // CHECK: %[[D:.*]] = llvm.fsub
      // CHECK: %[[ALPHA:.*]] = llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz{{.*}}"(%[[D]])
      // CHECK: %[[DIFFER:.*]] = {{.*}}xor
      // CHECK: select %[[DIFFER]], %{{.*}}, %[[ALPHA]]
      %alpha = tile.exp_diff %old, %max scale %s : tensor<64xf32, #row>, tensor<64xf32, #row>
      tile.store %alpha, %b[%c0] : tensor<64xf32, #row>, memref<?xf32>
    }
  tile.return
}
