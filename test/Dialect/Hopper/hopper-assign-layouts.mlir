// RUN: attn-opt %s --pass-pipeline='builtin.module(tile.kernel(hopper-assign-layouts))' --split-input-file | FileCheck %s

// Two consumer warpgroups: eight warps share the rows.
// CHECK-DAG: #mma = #tile.mma<warps = 8>
// CHECK-DAG: #operand = #tile.operand<#mma>
// CHECK-DAG: #row = #tile.row<#mma>
// CHECK-LABEL: tile.kernel @products
tile.kernel @products() attributes {num_warps = 12 : i32} {
  %ring = hopper.create_ring : !hopper.ring<1 x tensor<128x64xbf16>>
  hopper.warp_specialize(%ring : !hopper.ring<1 x tensor<128x64xbf16>>)
    producer registers(24) (%r: !hopper.ring<1 x tensor<128x64xbf16>>) {
      %c0 = arith.constant 0 : i32
    } consumer warpgroups(2) registers(240) (%r: !hopper.ring<1 x tensor<128x64xbf16>>) {
      %c0 = arith.constant 0 : i32
      %t = hopper.wait %r[%c0] : <1 x tensor<128x64xbf16>>
      // CHECK: %[[S:.*]] = hopper.wgmma %{{.*}}, %{{.*}} {transpose_b} : {{.*}} -> <tensor<128x128xf32, #mma>>
      %s = hopper.wgmma %t, %t {transpose_b} : !hopper.slot<tensor<128x64xbf16>>, <tensor<128x64xbf16>> -> <tensor<128x128xf32>>
      // CHECK: hopper.wgmma_wait 0, %[[S]] : <tensor<128x128xf32, #mma>> -> tensor<128x128xf32, #mma>
      %s0 = hopper.wgmma_wait 0, %s : <tensor<128x128xf32>> -> tensor<128x128xf32>
      // CHECK: tile.reduce max %{{.*}} : tensor<128x128xf32, #mma> -> tensor<128xf32, #row>
      %m = tile.reduce max %s0 : tensor<128x128xf32> -> tensor<128xf32>
      %mb = tile.broadcast %m dim 0 : tensor<128xf32> -> tensor<128x64xf32>
      // CHECK: %[[P:.*]] = arith.truncf %{{.*}} : tensor<128x128xf32, #mma> to tensor<128x128xbf16, #mma>
      %p = arith.truncf %s0 : tensor<128x128xf32> to tensor<128x128xbf16>
      // CHECK: %[[A:.*]] = tile.convert_layout %[[P]] : tensor<128x128xbf16, #mma> -> tensor<128x128xbf16, #operand>
      // CHECK: hopper.wgmma %[[A]], %{{.*}} acc %{{.*}} : tensor<128x64xf32, #mma>
      %o = hopper.wgmma %p, %t acc %mb : tensor<128x64xf32> : tensor<128x128xbf16>, <tensor<128x64xbf16>> -> <tensor<128x64xf32>>
      %o0 = hopper.wgmma_wait 0, %o : <tensor<128x64xf32>> -> tensor<128x64xf32>
    }
  tile.return
}

// -----

// A kernel without roles is one of mma.sync's.
// CHECK: #[[$BLOCKED:.*]] = #tile.blocked
// CHECK-LABEL: tile.kernel @no_roles
tile.kernel @no_roles(%x: memref<64x64xf32>) attributes {num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  // CHECK: tile.load {{.*}} -> tensor<64x64xf32, #[[$BLOCKED]]>
  %t = tile.load %x[%c0, %c0] : memref<64x64xf32> -> tensor<64x64xf32>
  tile.store %t, %x[%c0, %c0] : tensor<64x64xf32>, memref<64x64xf32>
  tile.return
}
