// RUN: attn-opt %s --convert-hopper-to-nvvm | FileCheck %s

#mma = #tile.mma<warps = 4>
#operand = #tile.operand<#mma>
!mem = memref<?x3x?x96xf16, strided<[?, ?, ?, 1]>>
!ring = !hopper.ring<3 x tensor<64x96xf16>>

// 64 x 96 takes two blocks of 64 columns: 16 KB a slot. 3 slots, 6 barriers,
// and 1 KB to align them.
// CHECK: gpu.module @kernels
// CHECK: llvm.func @kernel(
// The ABI of the memref, then one tensor map.
// CHECK-SAME: !llvm.ptr<1>, %{{[a-z0-9]+}}: i32, %{{[a-z0-9]+}}: i32, %{{[a-z0-9]+}}: i64, %{{[a-z0-9]+}}: i64, %{{[a-z0-9]+}}: i64,
// CHECK-SAME: %[[MAP:[a-z0-9]+]]: !llvm.ptr {llvm.align = 64 : i64, llvm.byval = !llvm.array<128 x i8>, nvvm.grid_constant}
// CHECK-SAME: attn.dynamic_smem_bytes = 50224 : i64
// CHECK-SAME: nvvm.minctasm = 1 : i32
// CHECK-SAME: nvvm.reqntid = array<i32: 256, 1, 1>
tile.kernel @kernel(%k: !mem) attributes {num_warps = 8 : i32} {
  // A full barrier counts the producer's arrival, an empty one the warps of the
  // consumers.
  // CHECK-DAG: %[[FOUR:.*]] = llvm.mlir.constant(4 : i32) : i32
  // CHECK-DAG: %[[ONE:.*]] = llvm.mlir.constant(1 : i32) : i32
  // CHECK: %[[WARPGROUP:.*]] = nvvm.shfl.sync idx
  // CHECK: llvm.cond_br
  // CHECK-COUNT-3: mbarrier.init.shared::cta.b64 {{.*}} %{{.*}}, %[[ONE]] :
  // CHECK-COUNT-3: mbarrier.init.shared::cta.b64 {{.*}} %{{.*}}, %[[FOUR]] :
  // CHECK-NOT: mbarrier.init
  // CHECK: fence.mbarrier_init.release.cluster
  // CHECK: fence.proxy.async
  // CHECK: nvvm.barrier
  %ring = hopper.create_ring : !ring
  // CHECK: %[[PRODUCER:.*]] = llvm.icmp "eq" %[[WARPGROUP]]
  // CHECK: llvm.cond_br %[[PRODUCER]], ^{{.*}}, ^[[CONSUMER:.*]]
  // CHECK: nvvm.setmaxregister decrease 24
  // CHECK: llvm.cond_br
  hopper.warp_specialize(%k, %ring : !mem, !ring)
    producer registers(24) (%src: !mem, %r: !ring) {
      %c0 = arith.constant 0 : i32
      %c3 = arith.constant 3 : i32
      // CHECK: mbarrier.try_wait.parity
      %slot = hopper.acquire %r[%c3] : !ring
      // CHECK: mbarrier.expect_tx
      // CHECK: cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [$0], [$1, {$3, $4, $5, $6}], [$2];{{.*}} %[[MAP]],
      // CHECK: cp.async.bulk.tensor.4d{{.*}} %[[MAP]],
      // CHECK-NOT: cp.async.bulk
      hopper.tma_load %src[%c0, %c0, %c0, %c0] to %slot : !mem, <tensor<64x96xf16>>
      // CHECK: mbarrier.arrive.shared::cta.b64 _, [$0];
      hopper.commit %slot : <tensor<64x96xf16>>
    // CHECK: {{^ *}}^[[CONSUMER]]:
    // CHECK: nvvm.setmaxregister increase 240
    } consumer warpgroups(1) registers(240) (%src: !mem, %r: !ring) {
      %c3 = arith.constant 3 : i32
      %p = arith.constant dense<1.0> : tensor<64x64xf16, #operand>
      %zero = arith.constant dense<0.0> : tensor<64x96xf32, #mma>
      // CHECK: mbarrier.try_wait.parity
      %t = hopper.wait %r[%c3] : !ring
      // Six steps of 16; the first starts from zero.
      // CHECK: nvvm.wgmma.fence.aligned
      // CHECK: setp.ne.b32 accumulate, 0, 0;{{.*}}m64n64k16.f32.f16.f16 {{.*}}, accumulate, 1, 1, 0, 0;{{.*}} : (i64, i64)
      // CHECK-COUNT-5: setp.ne.b32 accumulate, 1, 0;{{.*}}m64n64k16
      // CHECK: nvvm.wgmma.commit.group.sync.aligned
      %s = hopper.wgmma %t, %t {transpose_b} : !hopper.slot<tensor<64x96xf16>>, <tensor<64x96xf16>> -> <tensor<64x64xf32, #mma>>
      // Four steps, with A in registers and B transposed.
      // CHECK: nvvm.wgmma.fence.aligned
      // CHECK-COUNT-4: setp.ne.b32 accumulate, 1, 0;{{.*}}m64n96k16.f32.f16.f16 {{.*}}, accumulate, 1, 1, 1;
      // CHECK: nvvm.wgmma.commit.group.sync.aligned
      %o = hopper.wgmma %p, %t acc %zero : tensor<64x96xf32, #mma> : tensor<64x64xf16, #operand>, <tensor<64x96xf16>> -> <tensor<64x96xf32, #mma>>
      // The wait ties the accumulators it completes.
      // CHECK: wgmma.wait_group.sync.aligned 1;
      // CHECK-SAME: "=f,{{.*}},0,1,2,{{.*}},~{memory}"
      %s0 = hopper.wgmma_wait 1, %s : <tensor<64x64xf32, #mma>> -> tensor<64x64xf32, #mma>
      // CHECK: wgmma.wait_group.sync.aligned 0;
      %o0 = hopper.wgmma_wait 0, %o : <tensor<64x96xf32, #mma>> -> tensor<64x96xf32, #mma>
      // CHECK: @$0 mbarrier.arrive.shared::cta.b64 _, [$1];
      hopper.release %t : <tensor<64x96xf16>>
    }
  // CHECK: llvm.return
  tile.return
}
