// RUN: attn-opt %s --pass-pipeline='builtin.module(tile.kernel(hopper-verify-protocol))' | FileCheck %s
// RUN: attn-opt %S/../../Conversion/TileToHopper/convert-tile-to-hopper.mlir \
// RUN:   --pass-pipeline='builtin.module(tile.kernel(convert-tile-to-hopper{overlap=false},hopper-verify-protocol))'
// RUN: attn-opt %S/../../Conversion/TileToHopper/convert-tile-to-hopper.mlir \
// RUN:   --pass-pipeline='builtin.module(tile.kernel(convert-tile-to-hopper,hopper-verify-protocol))'

!mem = memref<?x64xbf16, strided<[?, 1]>>
!ring = !hopper.ring<2 x tensor<64x64xbf16>>

// As many tiles as the second memref has blocks of 64 rows.
// CHECK-LABEL: tile.kernel @count
tile.kernel @count(%q: !mem, %k: !mem) attributes {num_warps = 8 : i32} {
  %ring = hopper.create_ring : !ring
  hopper.warp_specialize(%q, %k, %ring : !mem, !mem, !ring)
    producer registers(24) (%a: !mem, %b: !mem, %r: !ring) {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %c64 = arith.constant 64 : i32
      %i0 = arith.constant 0 : index
      %rows = memref.dim %b, %i0 : !mem
      %n = arith.index_cast %rows : index to i32
      %end = scf.for %i = %c0 to %n step %c64 iter_args(%number = %c0) -> (i32) : i32 {
        %slot = hopper.acquire %r[%number] : !ring
        hopper.tma_load %b[%i, %c0] to %slot : !mem, <tensor<64x64xbf16>>
        hopper.commit %slot : <tensor<64x64xbf16>>
        %next = arith.addi %number, %c1 : i32
        scf.yield %next : i32
      }
    } consumer warpgroups(1) registers(240) (%a: !mem, %b: !mem, %r: !ring) {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %c63 = arith.constant 63 : i32
      %c64 = arith.constant 64 : i32
      %i0 = arith.constant 0 : index
      %rows = memref.dim %b, %i0 : !mem
      %n = arith.index_cast %rows : index to i32
      %up = arith.addi %n, %c63 : i32
      %tiles = arith.divsi %up, %c64 : i32
      scf.for %i = %c0 to %tiles step %c1 : i32 {
        %slot = hopper.wait %r[%i] : !ring
        hopper.release %slot : <tensor<64x64xbf16>>
      }
    }
  tile.return
}
