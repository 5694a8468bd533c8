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
