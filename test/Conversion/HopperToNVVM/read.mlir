// RUN: attn-opt %s --convert-hopper-to-nvvm | FileCheck %s

#mma = #tile.mma<warps = 4>

// Six columns of 8x8 blocks, two at a time, in two rows of blocks; all lanes
// have read before one gives the slot back.
// CHECK-LABEL: llvm.func @halves(
// CHECK-COUNT-2: cp.async.bulk.tensor.2d
// CHECK-NOT: cp.async.bulk.tensor
// CHECK-COUNT-6: ldmatrix.sync.aligned.m8n8.x4.shared.b16
// CHECK-NOT: ldmatrix
// CHECK: nvvm.bar.warp.sync
// CHECK: mbarrier.arrive.shared::cta.b64 _, [$1];
tile.kernel @halves(%m: memref<?x?xbf16, strided<[?, 1]>>) attributes {num_warps = 8 : i32} {
  %ring = hopper.create_ring : !hopper.ring<1 x tensor<64x96xbf16>>
  hopper.warp_specialize(%m, %ring : memref<?x?xbf16, strided<[?, 1]>>, !hopper.ring<1 x tensor<64x96xbf16>>)
    producer registers(24) (%a: memref<?x?xbf16, strided<[?, 1]>>, %r: !hopper.ring<1 x tensor<64x96xbf16>>) {
      %c0 = arith.constant 0 : i32
      %s = hopper.acquire %r[%c0] : !hopper.ring<1 x tensor<64x96xbf16>>
      hopper.tma_load %a[%c0, %c0] to %s : memref<?x?xbf16, strided<[?, 1]>>, <tensor<64x96xbf16>>
      hopper.commit %s : <tensor<64x96xbf16>>
    } consumer warpgroups(1) registers(240) (%a: memref<?x?xbf16, strided<[?, 1]>>, %r: !hopper.ring<1 x tensor<64x96xbf16>>) {
      %c0 = arith.constant 0 : i32
      %s = hopper.wait %r[%c0] : !hopper.ring<1 x tensor<64x96xbf16>>
      %t = hopper.read %s : <tensor<64x96xbf16>> -> tensor<64x96xbf16, #mma>
      hopper.release %s : <tensor<64x96xbf16>>
      tile.store %t, %a[%c0, %c0] : tensor<64x96xbf16, #mma>, memref<?x?xbf16, strided<[?, 1]>>
    }
  tile.return
}

// Blocks of 32 columns; a thread has two neighbours in each of two rows of every
// 8 columns.
// CHECK-LABEL: llvm.func @words(
// CHECK-COUNT-3: cp.async.bulk.tensor.2d
// CHECK-NOT: cp.async.bulk.tensor
// CHECK-COUNT-24: ld.shared.v2.b32
// CHECK-NOT: ld.shared
// CHECK: nvvm.bar.warp.sync
tile.kernel @words(%m: memref<?x?xf32, strided<[?, 1]>>) attributes {num_warps = 8 : i32} {
  %ring = hopper.create_ring : !hopper.ring<1 x tensor<64x96xf32>>
  hopper.warp_specialize(%m, %ring : memref<?x?xf32, strided<[?, 1]>>, !hopper.ring<1 x tensor<64x96xf32>>)
    producer registers(24) (%a: memref<?x?xf32, strided<[?, 1]>>, %r: !hopper.ring<1 x tensor<64x96xf32>>) {
      %c0 = arith.constant 0 : i32
      %s = hopper.acquire %r[%c0] : !hopper.ring<1 x tensor<64x96xf32>>
      hopper.tma_load %a[%c0, %c0] to %s : memref<?x?xf32, strided<[?, 1]>>, <tensor<64x96xf32>>
      hopper.commit %s : <tensor<64x96xf32>>
    } consumer warpgroups(1) registers(240) (%a: memref<?x?xf32, strided<[?, 1]>>, %r: !hopper.ring<1 x tensor<64x96xf32>>) {
      %c0 = arith.constant 0 : i32
      %s = hopper.wait %r[%c0] : !hopper.ring<1 x tensor<64x96xf32>>
      %t = hopper.read %s : <tensor<64x96xf32>> -> tensor<64x96xf32, #mma>
      hopper.release %s : <tensor<64x96xf32>>
      tile.store %t, %a[%c0, %c0] : tensor<64x96xf32, #mma>, memref<?x?xf32, strided<[?, 1]>>
    }
  tile.return
}

// Blocks of 32 bytes, as 96 is no multiple of more.
// CHECK-LABEL: llvm.func @bytes(
// CHECK-COUNT-3: cp.async.bulk.tensor.2d
// CHECK-NOT: cp.async.bulk.tensor
// CHECK-COUNT-24: ld.shared.b16
// CHECK-NOT: ld.shared
// CHECK: nvvm.bar.warp.sync
tile.kernel @bytes(%m: memref<?x?xi8, strided<[?, 1]>>) attributes {num_warps = 8 : i32} {
  %ring = hopper.create_ring : !hopper.ring<1 x tensor<64x96xi8>>
  hopper.warp_specialize(%m, %ring : memref<?x?xi8, strided<[?, 1]>>, !hopper.ring<1 x tensor<64x96xi8>>)
    producer registers(24) (%a: memref<?x?xi8, strided<[?, 1]>>, %r: !hopper.ring<1 x tensor<64x96xi8>>) {
      %c0 = arith.constant 0 : i32
      %s = hopper.acquire %r[%c0] : !hopper.ring<1 x tensor<64x96xi8>>
      hopper.tma_load %a[%c0, %c0] to %s : memref<?x?xi8, strided<[?, 1]>>, <tensor<64x96xi8>>
      hopper.commit %s : <tensor<64x96xi8>>
    } consumer warpgroups(1) registers(240) (%a: memref<?x?xi8, strided<[?, 1]>>, %r: !hopper.ring<1 x tensor<64x96xi8>>) {
      %c0 = arith.constant 0 : i32
      %s = hopper.wait %r[%c0] : !hopper.ring<1 x tensor<64x96xi8>>
      %t = hopper.read %s : <tensor<64x96xi8>> -> tensor<64x96xi8, #mma>
      hopper.release %s : <tensor<64x96xi8>>
      tile.store %t, %a[%c0, %c0] : tensor<64x96xi8, #mma>, memref<?x?xi8, strided<[?, 1]>>
    }
  tile.return
}
