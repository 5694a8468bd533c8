// RUN: attn-opt %s --convert-hopper-to-nvvm | FileCheck %s

#mma = #tile.mma<warps = 8>
!mem = memref<?x3x?x128xf16, strided<[?, ?, ?, 1]>>
!ring = !hopper.ring<2 x tensor<128x128xf16>>
!numbers = !hopper.ring<2 x tensor<3xi32>>

// CHECK: llvm.func @persistent(
// The ABI of the memref, the tile counter, the number of tiles, a tensor map.
// CHECK-SAME: i64, %[[COUNTER:[a-z0-9]+]]: !llvm.ptr<1>, %[[NUM_TILES:[a-z0-9]+]]: i32, %[[MAP:[a-z0-9]+]]: !llvm.ptr {llvm.align = 64 : i64, llvm.byval = !llvm.array<128 x i8>, nvvm.grid_constant}
// Two tiles of 32 KB, two slots of 3 numbers on 8 bytes, 8 barriers, and 1 KB.
// CHECK-SAME: attn.dynamic_smem_bytes = 66648 : i64
tile.kernel @persistent(%o: !mem) attributes {num_warps = 12 : i32} {
  // CHECK-DAG: %[[FOUR:.*]] = llvm.mlir.constant(4 : i32) : i32
  // CHECK-DAG: %[[EIGHT:.*]] = llvm.mlir.constant(8 : i32) : i32
  // CHECK-DAG: %[[ONE:.*]] = llvm.mlir.constant(1 : i32) : i32
  // CHECK-DAG: %[[TWO:.*]] = llvm.mlir.constant(2 : i32) : i32
  // CHECK-DAG: %[[ROWS:.*]] = llvm.mlir.constant(64 : i32) : i32
  // CHECK: %[[WARPGROUP:.*]] = nvvm.shfl.sync idx
  %ring = hopper.create_ring : !ring
  %numbers = hopper.create_ring : !numbers
  hopper.warp_specialize(%o, %ring, %numbers : !mem, !ring, !numbers)
    producer registers(40) (%dst: !mem, %r: !ring, %n: !numbers) {
      %c0 = arith.constant 0 : i32
      %count = hopper.num_tiles : i32
      // Wraps to 0 when all tiles are taken, for the next launch.
      // CHECK: nvvm.setmaxregister decrease 40
      // CHECK: %[[LAST:.*]] = llvm.sub %[[NUM_TILES]], %[[ONE]]
      // CHECK: %[[TAKEN:.*]] = llvm.atomicrmw uinc_wrap %[[COUNTER]], %[[LAST]] syncscope("device") monotonic
      // CHECK: %[[PROGRAMS:.*]] = nvvm.read.ptx.sreg.nctaid.x
      // CHECK: %[[TILE:.*]] = llvm.add %[[TAKEN]], %[[PROGRAMS]]
      %tile = hopper.next_tile : i32
      %slot = hopper.acquire %n[%c0] : !numbers
      // CHECK: mbarrier.try_wait.parity
      // CHECK: st.shared.b32 [$0], $1;{{.*}} %[[ADDRESS:[0-9]+]], %[[TILE]] :
      // CHECK: %[[SECOND:.*]] = llvm.add %[[ADDRESS]], %[[FOUR]]
      // CHECK: st.shared.b32 [$0], $1;{{.*}} %[[SECOND]], %[[NUM_TILES]] :
      // CHECK: %[[THIRD:.*]] = llvm.add %[[ADDRESS]], %[[EIGHT]]
      // CHECK: st.shared.b32 [$0], $1;{{.*}} %[[THIRD]],
      // CHECK: mbarrier.arrive.shared::cta.b64
      hopper.put %tile, %count, %c0 to %slot : <tensor<3xi32>>
      hopper.commit %slot : <tensor<3xi32>>
    } consumer warpgroups(2) registers(232) (%dst: !mem, %r: !ring, %n: !numbers) {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %value = arith.constant dense<1.0> : tensor<128x128xf16, #mma>
      // Consumers follow the producer's warpgroup.
      // CHECK: nvvm.setmaxregister increase 232
      // CHECK: %[[ID:.*]] = llvm.sub %[[WARPGROUP]], %[[ONE]]
      %w = hopper.warpgroup_id : i32
      %slot = hopper.wait %n[%c0] : !numbers
      // CHECK: mbarrier.try_wait.parity
      // The same for the whole warp, and known to be.
      // CHECK: %[[WORD:.*]] = llvm.inline_asm {{.*}} "ld.shared.b32 $0, [$1];", "=r,r,~{memory}"
      // CHECK: %[[ROW:.*]] = nvvm.shfl.sync idx %{{.*}}, %[[WORD]],
      // CHECK: %[[WORD:.*]] = llvm.inline_asm {{.*}} "ld.shared.b32
      // CHECK: %[[HEAD:.*]] = nvvm.shfl.sync idx %{{.*}}, %[[WORD]],
      // CHECK: @$0 mbarrier.arrive.shared::cta.b64
      %row, %head = hopper.get %slot[%c1] : <tensor<3xi32>> -> i32, i32
      hopper.release %slot : <tensor<3xi32>>
      // No wait: the slot is held.
      // CHECK-NOT: mbarrier.try_wait
      // CHECK: %[[INDEX:.*]] = llvm.urem %[[ID]], %[[TWO]]
      %t = hopper.slot %r[%w] : !ring
      // 128 columns are 8 steps of 16, in two blocks of 64. What the threads of a
      // warpgroup wrote is visible to TMA when its first thread stores 64 rows.
      // CHECK-COUNT-8: stmatrix.sync.aligned.m8n8.x4.shared.b16
      // CHECK-NOT: stmatrix
      // CHECK: fence.proxy.async.shared::cta;
      // CHECK: %[[BARRIER:.*]] = llvm.add %[[ID]], %[[ONE]]
      // CHECK: bar.sync $0, 128;{{.*}} %[[BARRIER]] :
      // CHECK: %[[FIRST:.*]] = llvm.mul %[[ID]], %[[ROWS]]
      // CHECK: %[[START:.*]] = llvm.add %[[ROW]], %[[FIRST]]
      // CHECK: llvm.cond_br
      // CHECK: cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group [$0, {$2, $3, $4, $5}], [$1];{{.*}} %[[MAP]], %{{.*}}, %{{.*}}, %[[START]], %[[HEAD]],
      // CHECK: cp.async.bulk.tensor.4d.global{{.*}} %[[MAP]], %{{.*}}, %[[ROWS]], %[[START]], %[[HEAD]],
      // CHECK-NOT: cp.async.bulk.tensor
      // CHECK: cp.async.bulk.commit_group;
      // CHECK: cp.async.bulk.wait_group.read 0;
      // CHECK: nvvm.bar.warp.sync
      // CHECK: @$0 mbarrier.arrive.shared::cta.b64
      hopper.tma_store %value, %t to %dst[%c0, %head, %row, %c0] : tensor<128x128xf16, #mma>, <tensor<128x128xf16>>, !mem
      hopper.release %t : <tensor<128x128xf16>>
    }
  tile.return
}
