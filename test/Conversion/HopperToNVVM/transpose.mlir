// RUN: attn-opt %s --convert-hopper-to-nvvm | FileCheck %s

// The transposer: three warps beside the one that loads. What it leaves in
// shared memory is tested in test/Pipelines/transpose-values.test.

!mem = memref<64x32xf8E4M3FN>
!staging = !hopper.ring<2 x tensor<64x32xf8E4M3FN>>
!ring = !hopper.ring<1 x tensor<32x64xf8E4M3FN>>

// CHECK-LABEL: llvm.func @kernel(
// Full barriers count the thread that loads, or the warps that transpose; empty
// ones the warps that transpose, or those of two warpgroups.
// CHECK-DAG: %[[ONE:.*]] = llvm.mlir.constant(1 : i32) : i32
// CHECK-DAG: %[[THREE:.*]] = llvm.mlir.constant(3 : i32) : i32
// CHECK-DAG: %[[EIGHT:.*]] = llvm.mlir.constant(8 : i32) : i32
// CHECK-COUNT-2: mbarrier.init{{.*}} %{{.*}}, %[[ONE]] :
// CHECK-COUNT-2: mbarrier.init{{.*}} %{{.*}}, %[[THREE]] :
// CHECK: mbarrier.init{{.*}} %{{.*}}, %[[THREE]] :
// CHECK: mbarrier.init{{.*}} %{{.*}}, %[[EIGHT]] :
tile.kernel @kernel(%v: !mem) attributes {num_warps = 12 : i32} {
  %staging = hopper.create_ring : !staging
  %ring = hopper.create_ring : !ring
  hopper.warp_specialize(%v, %staging, %ring : !mem, !staging, !ring)
    producer registers(40) (%a: !mem, %in: !staging, %out: !ring) {
      %c0 = arith.constant 0 : i32
      // CHECK: nvvm.setmaxregister decrease 40
      // CHECK: mbarrier.try_wait
      %slot = hopper.acquire %in[%c0] : !staging
      // CHECK: cp.async.bulk.tensor.2d
      hopper.tma_load %a[%c0, %c0] to %slot : !mem, <tensor<64x32xf8E4M3FN>>
      // CHECK: "mbarrier.arrive
      hopper.commit %slot : <tensor<64x32xf8E4M3FN>>
    } transposer (%a: !mem, %in: !staging, %out: !ring) {
      %c0 = arith.constant 0 : i32
      // CHECK-COUNT-2: mbarrier.try_wait
      %source = hopper.wait %in[%c0] : !staging
      %target = hopper.acquire %out[%c0] : !ring
      // Two warps have 32 keys each, which are two chunks of 16 columns.
      // CHECK: llvm.icmp "slt" %{{.*}}, %{{.*}} : i32
      // CHECK: ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {{.*}}[$4+0]
      // CHECK-COUNT-4: llvm.nvvm.prmt
      // CHECK: stmatrix.sync.aligned.m8n8.x4.shared.b16 [$0+0]
      // CHECK: ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {{.*}}[$4+0]
      // CHECK-COUNT-4: llvm.nvvm.prmt
      // CHECK: stmatrix.sync.aligned.m8n8.x4.shared.b16 [$0+1024]
      // CHECK-NOT: ldmatrix
      // CHECK: fence.proxy.async.shared::cta
      // CHECK: nvvm.bar.warp.sync
      hopper.transpose %source to %target : <tensor<64x32xf8E4M3FN>>, <tensor<32x64xf8E4M3FN>>
      // One lane of each warp.
      // CHECK: "@$0 mbarrier.arrive
      hopper.commit %target : <tensor<32x64xf8E4M3FN>>
      // CHECK: "@$0 mbarrier.arrive
      hopper.release %source : <tensor<64x32xf8E4M3FN>>
    } consumer warpgroups(2) registers(232) (%a: !mem, %in: !staging, %out: !ring) {
      // CHECK: nvvm.setmaxregister increase 232
      %c0 = arith.constant 0 : i32
      %t = hopper.wait %out[%c0] : !ring
      hopper.release %t : <tensor<32x64xf8E4M3FN>>
    }
  tile.return
}
