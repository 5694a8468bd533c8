// RUN: attn-opt %s --convert-hopper-to-nvvm --split-input-file --verify-diagnostics

// expected-error @+1 {{needs 263296 bytes of shared memory, but a program may use 232448; use smaller tiles or fewer num_stages}}
tile.kernel @memory() attributes {num_warps = 8 : i32} {
  // expected-note @+1 {{262144 bytes for}}
  %ring = hopper.create_ring : !hopper.ring<8 x tensor<128x128xbf16>>
  hopper.warp_specialize producer registers(24) () {
    %c = arith.constant 0 : i32
  } consumer warpgroups(1) registers(240) () {
    %c = arith.constant 0 : i32
  }
  tile.return
}

// -----

tile.kernel @outside() attributes {num_warps = 8 : i32} {
  // expected-error @+1 {{stands outside of the roles of a kernel with warp roles}}
  %id = tile.program_id : i32
  hopper.warp_specialize producer registers(24) () {
    %c = arith.constant 0 : i32
  } consumer warpgroups(1) registers(240) () {
    %c = arith.constant 0 : i32
  }
  tile.return
}

// -----

tile.kernel @no_lowering(%x: memref<?x64xbf16>) attributes {num_warps = 8 : i32} {
  hopper.warp_specialize(%x : memref<?x64xbf16>) producer registers(24) (%a: memref<?x64xbf16>) {
    %c = arith.constant 0 : i32
  } consumer warpgroups(1) registers(240) (%a: memref<?x64xbf16>) {
    %c0 = arith.constant 0 : index
    // expected-error @+1 {{'memref.load' op can't be lowered to a GPU kernel}}
    %y = memref.load %a[%c0, %c0] : memref<?x64xbf16>
  }
  tile.return
}

// -----

!ring = !hopper.ring<1 x tensor<64x64xbf16>>

tile.kernel @wrong_role(%x: memref<?x64xbf16>) attributes {num_warps = 8 : i32} {
  %ring = hopper.create_ring : !ring
  hopper.warp_specialize(%x, %ring : memref<?x64xbf16>, !ring) producer registers(24) (%a: memref<?x64xbf16>, %r: !ring) {
    %c0 = arith.constant 0 : i32
  } consumer warpgroups(1) registers(240) (%a: memref<?x64xbf16>, %r: !ring) {
    %c0 = arith.constant 0 : i32
    // expected-error @+1 {{has no place in the consumer role}}
    %slot = hopper.acquire %r[%c0] : !ring
    hopper.tma_load %a[%c0, %c0] to %slot : memref<?x64xbf16>, <tensor<64x64xbf16>>
  }
  tile.return
}

// -----

!ring = !hopper.ring<1 x tensor<64x64xbf16>>

tile.kernel @slot_through_if() attributes {num_warps = 8 : i32} {
  %ring = hopper.create_ring : !ring
  hopper.warp_specialize(%ring : !ring) producer registers(24) (%r: !ring) {
    %c0 = arith.constant 0 : i32
  } consumer warpgroups(1) registers(240) (%r: !ring) {
    %c0 = arith.constant 0 : i32
    %true = arith.constant true
    %s = scf.if %true -> !hopper.slot<tensor<64x64xbf16>> {
      %t = hopper.wait %r[%c0] : !ring
      // expected-error @+1 {{takes a '!hopper.slot<tensor<64x64xbf16>>' on a way that has no lowering}}
      scf.yield %t : !hopper.slot<tensor<64x64xbf16>>
    } else {
      %u = hopper.wait %r[%c0] : !ring
      scf.yield %u : !hopper.slot<tensor<64x64xbf16>>
    }
    hopper.release %s : <tensor<64x64xbf16>>
  }
  tile.return
}

// -----

!ring = !hopper.ring<1 x tensor<64x64xbf16>>

tile.kernel @no_layout() attributes {num_warps = 8 : i32} {
  %ring = hopper.create_ring : !ring
  hopper.warp_specialize(%ring : !ring) producer registers(24) (%r: !ring) {
    %c0 = arith.constant 0 : i32
  } consumer warpgroups(1) registers(240) (%r: !ring) {
    %c0 = arith.constant 0 : i32
    %t = hopper.wait %r[%c0] : !ring
    // expected-error @+1 {{needs tiles with the layout #tile.mma<warps = 4>; run hopper-assign-layouts first}}
    %s = hopper.wgmma %t, %t {transpose_b} : !hopper.slot<tensor<64x64xbf16>>, <tensor<64x64xbf16>> -> <tensor<64x64xf32>>
  }
  tile.return
}

// -----

!ring = !hopper.ring<1 x tensor<64x64xbf16>>

tile.kernel @rows() attributes {num_warps = 12 : i32} {
  %ring = hopper.create_ring : !ring
  hopper.warp_specialize(%ring : !ring) producer registers(24) (%r: !ring) {
    %c0 = arith.constant 0 : i32
  } consumer warpgroups(2) registers(240) (%r: !ring) {
    %c0 = arith.constant 0 : i32
    %t = hopper.wait %r[%c0] : !ring
    // expected-error @+1 {{has 64 rows, but the 2 consumer warpgroups hold 128}}
    %s = hopper.wgmma %t, %t {transpose_b} : !hopper.slot<tensor<64x64xbf16>>, <tensor<64x64xbf16>> -> <tensor<64x64xf32>>
  }
  tile.return
}

// -----

#mma = #tile.mma<warps = 4>

tile.kernel @read_rows(%m: memref<?x?xf32, strided<[?, 1]>>) attributes {num_warps = 8 : i32} {
  %ring = hopper.create_ring : !hopper.ring<1 x tensor<128x64xf32>>
  hopper.warp_specialize(%m, %ring : memref<?x?xf32, strided<[?, 1]>>, !hopper.ring<1 x tensor<128x64xf32>>)
    producer registers(24) (%a: memref<?x?xf32, strided<[?, 1]>>, %r: !hopper.ring<1 x tensor<128x64xf32>>) {
      %c0 = arith.constant 0 : i32
      %s = hopper.acquire %r[%c0] : !hopper.ring<1 x tensor<128x64xf32>>
      hopper.tma_load %a[%c0, %c0] to %s : memref<?x?xf32, strided<[?, 1]>>, <tensor<128x64xf32>>
      hopper.commit %s : <tensor<128x64xf32>>
    } consumer warpgroups(1) registers(240) (%a: memref<?x?xf32, strided<[?, 1]>>, %r: !hopper.ring<1 x tensor<128x64xf32>>) {
      %c0 = arith.constant 0 : i32
      %s = hopper.wait %r[%c0] : !hopper.ring<1 x tensor<128x64xf32>>
      // expected-error @+1 {{has 128 rows, but the 1 consumer warpgroups hold 64}}
      %t = hopper.read %s : <tensor<128x64xf32>> -> tensor<128x64xf32, #mma>
      hopper.release %s : <tensor<128x64xf32>>
    }
  tile.return
}

// -----

#other = #tile.mma<warps = 2>

tile.kernel @read_layout(%m: memref<?x?xf32, strided<[?, 1]>>) attributes {num_warps = 8 : i32} {
  %ring = hopper.create_ring : !hopper.ring<1 x tensor<64x64xf32>>
  hopper.warp_specialize(%m, %ring : memref<?x?xf32, strided<[?, 1]>>, !hopper.ring<1 x tensor<64x64xf32>>)
    producer registers(24) (%a: memref<?x?xf32, strided<[?, 1]>>, %r: !hopper.ring<1 x tensor<64x64xf32>>) {
      %c0 = arith.constant 0 : i32
      %s = hopper.acquire %r[%c0] : !hopper.ring<1 x tensor<64x64xf32>>
      hopper.tma_load %a[%c0, %c0] to %s : memref<?x?xf32, strided<[?, 1]>>, <tensor<64x64xf32>>
      hopper.commit %s : <tensor<64x64xf32>>
    } consumer warpgroups(1) registers(240) (%a: memref<?x?xf32, strided<[?, 1]>>, %r: !hopper.ring<1 x tensor<64x64xf32>>) {
      %c0 = arith.constant 0 : i32
      %s = hopper.wait %r[%c0] : !hopper.ring<1 x tensor<64x64xf32>>
      // expected-error @+1 {{needs a tile with the layout #tile.mma<warps = 4>; run hopper-assign-layouts first}}
      %t = hopper.read %s : <tensor<64x64xf32>> -> tensor<64x64xf32, #other>
      hopper.release %s : <tensor<64x64xf32>>
    }
  tile.return
}

// -----

#mma = #tile.mma<warps = 4>

tile.kernel @read_columns(%m: memref<?x?xf32, strided<[?, 1]>>) attributes {num_warps = 8 : i32} {
  %ring = hopper.create_ring : !hopper.ring<1 x tensor<64x24xf32>>
  hopper.warp_specialize(%m, %ring : memref<?x?xf32, strided<[?, 1]>>, !hopper.ring<1 x tensor<64x24xf32>>)
    producer registers(24) (%a: memref<?x?xf32, strided<[?, 1]>>, %r: !hopper.ring<1 x tensor<64x24xf32>>) {
      %c0 = arith.constant 0 : i32
      %s = hopper.acquire %r[%c0] : !hopper.ring<1 x tensor<64x24xf32>>
      hopper.tma_load %a[%c0, %c0] to %s : memref<?x?xf32, strided<[?, 1]>>, <tensor<64x24xf32>>
      hopper.commit %s : <tensor<64x24xf32>>
    } consumer warpgroups(1) registers(240) (%a: memref<?x?xf32, strided<[?, 1]>>, %r: !hopper.ring<1 x tensor<64x24xf32>>) {
      %c0 = arith.constant 0 : i32
      %s = hopper.wait %r[%c0] : !hopper.ring<1 x tensor<64x24xf32>>
      // expected-error @+1 {{reads 24 columns, which must be a multiple of 16}}
      %t = hopper.read %s : <tensor<64x24xf32>> -> tensor<64x24xf32, #mma>
      hopper.release %s : <tensor<64x24xf32>>
    }
  tile.return
}

// -----

tile.kernel @wrong_transposer() attributes {num_warps = 8 : i32} {
  hopper.warp_specialize producer registers(24) () {
    %c = arith.constant 0 : i32
  } transposer () {
    // expected-error @+1 {{has no place in the transposer role}}
    %tile = hopper.next_tile : i32
  } consumer warpgroups(1) registers(240) () {
    %c = arith.constant 0 : i32
  }
  tile.return
}
