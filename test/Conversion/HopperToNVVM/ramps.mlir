// RUN: attn-opt %s --convert-hopper-to-nvvm | FileCheck %s

#mma = #tile.mma<warps = 4>
!ring = !hopper.ring<1 x tensor<64x64xf16>>

// A ramp is one more product, the last one: 16 bytes a column behind the slots.
// CHECK: llvm.func @ramp(
// CHECK-SAME: attn.dynamic_smem_bytes = 10256 : i64
// Each column has its number twice, and 1; the products see that.
// CHECK: %[[NUMBER:.*]] = llvm.sitofp %{{.*}} : i32 to f32
// CHECK-COUNT-4: st.shared.b32
// CHECK: fence.proxy.async.shared::cta
// CHECK: nvvm.barrier
tile.kernel @ramp(%k: memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>, %slope: f32, %start: f32) attributes {num_warps = 8 : i32} {
  %ring = hopper.create_ring : !ring
  hopper.warp_specialize(%ring, %slope, %start : !ring, f32, f32)
    producer registers(24) (%r: !ring, %a: f32, %b: f32) {
    } consumer warpgroups(1) registers(240) (%r: !ring, %a: f32, %b: f32) {
      %c0 = arith.constant 0 : i32
      // CHECK: mbarrier.try_wait.parity
      %t = hopper.wait %r[%c0] : !ring
      // Both numbers in three parts.
      // CHECK: %[[S1:.*]] = llvm.fsub %[[SLOPE:.*]], %{{.*}} : f32
      // CHECK: llvm.fsub %[[S1]], %{{.*}} : f32
      // CHECK: %[[PRODUCT:.*]] = llvm.fmul %[[SLOPE]], %{{.*}} : f32
      // CHECK: %[[P1:.*]] = llvm.fsub %[[PRODUCT]], %{{.*}} : f32
      // CHECK: llvm.fsub %[[P1]], %{{.*}} : f32
      // CHECK-COUNT-2: llvm.select
      // CHECK: %[[WORD:.*]] = llvm.select
      // CHECK: nvvm.wgmma.fence.aligned
      // CHECK: setp.ne.b32 accumulate, 0, 0;{{.*}}m64n64k16.f32.f16.f16
      // CHECK-COUNT-3: setp.ne.b32 accumulate, 1, 0;{{.*}}m64n64k16.f32.f16.f16
      // CHECK: setp.ne.b32 accumulate, 1, 0;{{.*}}m64n64k16.f32.bf16.bf16 {{.*}}, accumulate, 1, 1, 0;{{.*}} %[[WORD]], %[[WORD]], %[[ZERO:.*]], %[[ZERO]],
      // CHECK: nvvm.wgmma.commit.group.sync.aligned
      %s = hopper.wgmma %t, %t ramp(%a, %b) {transpose_b} : !hopper.slot<tensor<64x64xf16>>, <tensor<64x64xf16>> -> <tensor<64x64xf32, #mma>>
      %s0 = hopper.wgmma_wait 0, %s : <tensor<64x64xf32, #mma>> -> tensor<64x64xf32, #mma>
    }
  tile.return
}
