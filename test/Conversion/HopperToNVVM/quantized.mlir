// RUN: attn-opt %s --convert-hopper-to-nvvm | FileCheck %s

#mma = #tile.mma<warps = 4>
#operand = #tile.operand<#mma>
!mem = memref<64x96xf8E4M3FN>
!vmem = memref<64x64xf8E5M2>
!ring = !hopper.ring<1 x tensor<64x96xf8E4M3FN>>
!vring = !hopper.ring<1 x tensor<64x64xf8E5M2>>

// 96 bytes are three blocks of 32, 64 are one. 1024 bytes align them.
// CHECK: llvm.func @kernel(
// CHECK-SAME: attn.dynamic_smem_bytes = 11296 : i64
// Descriptors: the swizzle of 64 bytes (2 << 62) with 8 rows of 64 (32 << 32),
// and that of 32 (3 << 62) with 8 rows of 32 (16 << 32).
// CHECK-DAG: %[[MODE64:.*]] = llvm.mlir.constant(-9223371899415822336 : i64) : i64
// CHECK-DAG: %[[MODE32:.*]] = llvm.mlir.constant(-4611685949707911168 : i64) : i64
tile.kernel @kernel(%k: !mem, %v: !vmem, %o: memref<64x64xf32>) attributes {num_warps = 8 : i32} {
  %ring = hopper.create_ring : !ring
  %vring = hopper.create_ring : !vring
  hopper.warp_specialize(%k, %v, %o, %ring, %vring : !mem, !vmem, memref<64x64xf32>, !ring, !vring)
    producer registers(24) (%src: !mem, %vsrc: !vmem, %oo: memref<64x64xf32>, %r: !ring, %vr: !vring) {
      %c0 = arith.constant 0 : i32
      %slot = hopper.acquire %r[%c0] : !ring
      // CHECK-COUNT-3: cp.async.bulk.tensor.2d
      // CHECK-NOT: cp.async.bulk.tensor
      hopper.tma_load %src[%c0, %c0] to %slot : !mem, <tensor<64x96xf8E4M3FN>>
      // CHECK: mbarrier.arrive
      hopper.commit %slot : <tensor<64x96xf8E4M3FN>>
      %vslot = hopper.acquire %vr[%c0] : !vring
      // CHECK: cp.async.bulk.tensor.2d
      // CHECK-NOT: cp.async.bulk.tensor
      hopper.tma_load %vsrc[%c0, %c0] to %vslot : !vmem, <tensor<64x64xf8E5M2>>
      // CHECK: mbarrier.arrive
      hopper.commit %vslot : <tensor<64x64xf8E5M2>>
    // CHECK: nvvm.setmaxregister increase 240
    } consumer warpgroups(1) registers(240) (%src: !mem, %vsrc: !vmem, %oo: memref<64x64xf32>, %r: !ring, %vr: !vring) {
      %c0 = arith.constant 0 : i32
      %zero = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
      %t = hopper.wait %r[%c0] : !ring
      // A step of 32 is a block of its own: 64 rows of 32 bytes further.
      // CHECK: llvm.or %{{.*}}, %[[MODE32]] : i64
      // CHECK: setp.ne.b32 accumulate, 0, 0;{{.*}}m64n64k32.f32.e4m3.e4m3 {{.*}}, accumulate, 1, 1;{{.*}} : (i64, i64)
      // CHECK-COUNT-2: setp.ne.b32 accumulate, 1, 0;{{.*}}m64n64k32.f32.e4m3.e4m3
      %s = hopper.wgmma %t, %t {transpose_b} : !hopper.slot<tensor<64x96xf8E4M3FN>>, <tensor<64x96xf8E4M3FN>> -> <tensor<64x64xf32, #mma>>
      // CHECK: wgmma.wait_group.sync.aligned 0;
      %s0 = hopper.wgmma_wait 0, %s : <tensor<64x64xf32, #mma>> -> tensor<64x64xf32, #mma>
      // Elements 0 and 1 of a row are in its block of 8 columns, 4 and 5 in the
      // next: the first register. Elements 2 and 3 are 8 rows below.
      // CHECK-DAG: %[[E0:.*]] = llvm.extractvalue %[[ALL:.*]][0]
      // CHECK-DAG: %[[E1:.*]] = llvm.extractvalue %[[ALL]][1]
      // CHECK-DAG: %[[E4:.*]] = llvm.extractvalue %[[ALL]][4]
      // CHECK-DAG: %[[E5:.*]] = llvm.extractvalue %[[ALL]][5]
      // CHECK: %[[LOW:.*]] = llvm.call_intrinsic "llvm.nvvm.ff.to.e4m3x2.rn"(%[[E1]], %[[E0]])
      // CHECK: %[[PAIR:.*]] = llvm.insertelement %[[LOW]], %{{.*}}[%{{.*}} : i32] : vector<2xi16>
      // CHECK: %[[HIGH:.*]] = llvm.call_intrinsic "llvm.nvvm.ff.to.e4m3x2.rn"(%[[E5]], %[[E4]])
      // CHECK: %[[BOTH:.*]] = llvm.insertelement %[[HIGH]], %[[PAIR]]
      // CHECK: %[[WORD:.*]] = llvm.bitcast %[[BOTH]] : vector<2xi16> to i32
      // CHECK-COUNT-14: ff.to.e4m3x2.rn
      // CHECK-NOT: ff.to.e4m3x2.rn
      %p = arith.truncf %s0 : tensor<64x64xf32, #mma> to tensor<64x64xf8E4M3FN, #mma>
      %a = tile.convert_layout %p : tensor<64x64xf8E4M3FN, #mma> -> tensor<64x64xf8E4M3FN, #operand>
      %u = hopper.wait %vr[%c0] : !vring
      // Operands of different types, and no word about transposition.
      // CHECK: llvm.or %{{.*}}, %[[MODE64]] : i64
      // CHECK: m64n64k32.f32.e4m3.e5m2 {{.*}}, accumulate, 1, 1;{{.*}} %[[WORD]],
      // CHECK: m64n64k32.f32.e4m3.e5m2
      // CHECK-NOT: wgmma.mma_async
      %x = hopper.wgmma %a, %u acc %zero : tensor<64x64xf32, #mma> {transpose_b, permuted_k} : tensor<64x64xf8E4M3FN, #operand>, <tensor<64x64xf8E5M2>> -> <tensor<64x64xf32, #mma>>
      %x0 = hopper.wgmma_wait 0, %x : <tensor<64x64xf32, #mma>> -> tensor<64x64xf32, #mma>
      hopper.release %t : <tensor<64x96xf8E4M3FN>>
      hopper.release %u : <tensor<64x64xf8E5M2>>
      tile.store %x0, %oo[%c0, %c0] : tensor<64x64xf32, #mma>, memref<64x64xf32>
    }
  tile.return
}
