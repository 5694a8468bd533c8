// RUN: attn-opt %s --split-input-file --verify-diagnostics

// expected-error @+1 {{needs at least 1 stage, not 0}}
func.func private @stages() -> !hopper.ring<0 x tensor<64x64xbf16>>

// -----

// expected-error @+1 {{holds static rank-2 tiles of f16, bf16, f32, f8E4M3FN, f8E5M2, i1, i8 or i32, or numbers as tensor<Nxi32>, not 'tensor<64x64xf64>'}}
func.func private @element() -> !hopper.ring<2 x tensor<64x64xf64>>

// -----

// expected-error @+1 {{holds tiles of 8 to 256 rows, a multiple of 8, not 12}}
func.func private @rows() -> !hopper.ring<2 x tensor<12x64xbf16>>

// -----

tile.kernel @producer_registers() attributes {num_warps = 8 : i32} {
  // expected-error @+1 {{gives the producer 20 registers, but setmaxnreg takes multiples of 8 from 24 to 256}}
  hopper.warp_specialize producer registers(20) () {
    %c = arith.constant 0 : i32
  } consumer warpgroups(1) registers(240) () {
    %c = arith.constant 0 : i32
  }
  tile.return
}

// -----

tile.kernel @threads() attributes {num_warps = 8 : i32} {
  // expected-error @+1 {{uses 384 threads, but the kernel has num_warps = 8}}
  hopper.warp_specialize producer registers(24) () {
    %c = arith.constant 0 : i32
  } consumer warpgroups(2) registers(240) () {
    %c = arith.constant 0 : i32
  }
  tile.return
}

// -----

tile.kernel @arguments(%x: f32) attributes {num_warps = 8 : i32} {
  // expected-error @+1 {{has a consumer region whose arguments are not of the operands' types}}
  hopper.warp_specialize(%x : f32) producer registers(24) (%a: f32) {
    %c = arith.constant 0 : i32
  } consumer warpgroups(1) registers(240) () {
    %c = arith.constant 0 : i32
  }
  tile.return
}

// -----

tile.kernel @isolated(%x: f32) attributes {num_warps = 8 : i32} {
  hopper.warp_specialize producer registers(24) () {
    %c = arith.constant 0 : i32
  } consumer warpgroups(1) registers(240) () {
    // expected-error @+1 {{use of undeclared SSA value name}}
    %y = arith.addf %x, %x : f32
  }
  tile.return
}

// -----

func.func @indices(%m: memref<?x64xbf16>, %slot: !hopper.slot<tensor<64x64xbf16>>, %i: i32) {
  // expected-error @+1 {{needs 2 indices, not 1}}
  hopper.tma_load %m[%i] to %slot : memref<?x64xbf16>, <tensor<64x64xbf16>>
  return
}

// -----

func.func @rank(%m: memref<?xbf16>, %slot: !hopper.slot<tensor<64x64xbf16>>, %i: i32) {
  // expected-error @+1 {{takes memrefs of rank 2 to 5, not 1}}
  hopper.tma_load %m[%i] to %slot : memref<?xbf16>, <tensor<64x64xbf16>>
  return
}

// -----

func.func @load_type(%m: memref<?x64xf16>, %slot: !hopper.slot<tensor<64x64xbf16>>, %i: i32) {
  // expected-error @+1 {{copies 'f16' through a slot for 'bf16'}}
  hopper.tma_load %m[%i, %i] to %slot : memref<?x64xf16>, <tensor<64x64xbf16>>
  return
}

// -----

func.func @shapes(%a: !hopper.slot<tensor<64x64xbf16>>, %b: !hopper.slot<tensor<64x32xbf16>>) {
  // expected-error @+1 {{has shapes that don't multiply}}
  %0 = hopper.wgmma %a, %b {transpose_b} : !hopper.slot<tensor<64x64xbf16>>, <tensor<64x32xbf16>> -> <tensor<64x64xf32>>
  return
}

// -----

func.func @element_types(%a: !hopper.slot<tensor<64x64xf16>>, %b: !hopper.slot<tensor<64x64xbf16>>) {
  // expected-error @+1 {{multiplies f16, bf16 or 8-bit floats and accumulates in f32}}
  %0 = hopper.wgmma %a, %b : !hopper.slot<tensor<64x64xf16>>, <tensor<64x64xbf16>> -> <tensor<64x64xf32>>
  return
}

// -----

func.func @instruction(%a: !hopper.slot<tensor<32x64xbf16>>, %b: !hopper.slot<tensor<64x64xbf16>>) {
  // expected-error @+1 {{needs rows in multiples of 64}}
  %0 = hopper.wgmma %a, %b : !hopper.slot<tensor<32x64xbf16>>, <tensor<64x64xbf16>> -> <tensor<32x64xf32>>
  return
}

// -----

func.func @accumulator(%a: !hopper.slot<tensor<64x64xbf16>>, %acc: tensor<64x32xf32>) {
  // expected-error @+1 {{accumulates to 'tensor<64x32xf32>' but yields}}
  %0 = hopper.wgmma %a, %a acc %acc : tensor<64x32xf32> : !hopper.slot<tensor<64x64xbf16>>, <tensor<64x64xbf16>> -> <tensor<64x64xf32>>
  return
}

// -----

func.func @ramp(%a: !hopper.slot<tensor<64x64xbf16>>, %acc: tensor<64x64xf32>, %slope: f32) {
  // expected-error @+1 {{has a ramp, which takes a slope, a start, 16-bit operands and no acc}}
  %0 = hopper.wgmma %a, %a acc %acc : tensor<64x64xf32> ramp(%slope, %slope) : !hopper.slot<tensor<64x64xbf16>>, <tensor<64x64xbf16>> -> <tensor<64x64xf32>>
  return
}

// -----

func.func @wait(%p: !hopper.pending<tensor<64x64xf32>>) {
  // expected-error @+1 {{yields the tile of its operand}}
  %0 = hopper.wgmma_wait 0, %p : <tensor<64x64xf32>> -> tensor<64x32xf32>
  return
}

// -----

func.func @store_shape(%o: memref<?x64xbf16>, %tile: tensor<64x128xbf16>, %slot: !hopper.slot<tensor<64x64xbf16>>, %i: i32) {
  // expected-error @+1 {{must have the same rows and element type and as many columns}}
  hopper.tma_store %tile, %slot to %o[%i, %i] : tensor<64x128xbf16>, <tensor<64x64xbf16>>, memref<?x64xbf16>
  return
}

// -----

func.func @put_into_tile(%slot: !hopper.slot<tensor<64x64xbf16>>, %i: i32) {
  // expected-error @+1 {{must be slot for numbers}}
  hopper.put %i to %slot : <tensor<64x64xbf16>>
  return
}

// -----

tile.kernel @warpgroups() attributes {num_warps = 4 : i32} {
  // expected-error @+1 {{has 0 consumer warpgroups; it needs 1 to 7}}
  hopper.warp_specialize
    producer registers(24) () {
      %c0 = arith.constant 0 : i32
    } consumer warpgroups(0) registers(240) () {
      %c0 = arith.constant 0 : i32
    }
  tile.return
}

// -----

func.func @put_too_few(%slot: !hopper.slot<tensor<2xi32>>, %i: i32) {
  // expected-error @+1 {{puts 1 numbers into a slot for 2}}
  hopper.put %i to %slot : <tensor<2xi32>>
  return
}

// -----

// expected-error @+1 {{holds 8-bit tiles of columns in multiples of 32, not 48}}
func.func private @ring(!hopper.ring<1 x tensor<64x48xf8E4M3FN>>)

// -----

func.func @untransposed(%a: !hopper.slot<tensor<64x32xf8E4M3FN>>, %b: !hopper.slot<tensor<32x64xf8E4M3FN>>) {
  // expected-error @+1 {{takes an 8-bit b only with transpose_b: with K contiguous in memory}}
  %s = hopper.wgmma %a, %b : !hopper.slot<tensor<64x32xf8E4M3FN>>, <tensor<32x64xf8E4M3FN>> -> <tensor<64x64xf32>>
  return
}

// -----

func.func @order(%a: tensor<64x32xf8E4M3FN>, %b: !hopper.slot<tensor<64x32xf8E5M2>>) {
  // expected-error @+1 {{needs permuted_k if a is in registers: their order is that of #tile.operand}}
  %s = hopper.wgmma %a, %b {transpose_b} : tensor<64x32xf8E4M3FN>, <tensor<64x32xf8E5M2>> -> <tensor<64x64xf32>>
  return
}

// -----

func.func @order_in_memory(%a: !hopper.slot<tensor<64x32xf8E4M3FN>>) {
  // expected-error @+1 {{needs permuted_k only if a is in registers}}
  %s = hopper.wgmma %a, %a {transpose_b, permuted_k} : !hopper.slot<tensor<64x32xf8E4M3FN>>, <tensor<64x32xf8E4M3FN>> -> <tensor<64x64xf32>>
  return
}

// -----

func.func @depth(%a: !hopper.slot<tensor<64x48xf16>>, %b: tensor<64x48xf8E4M3FN>, %c: !hopper.slot<tensor<64x64xf8E4M3FN>>) {
  // expected-error @+1 {{has shapes that don't multiply}}
  %s = hopper.wgmma %b, %c {transpose_b, permuted_k} : tensor<64x48xf8E4M3FN>, <tensor<64x64xf8E4M3FN>> -> <tensor<64x64xf32>>
  return
}

// -----

func.func @permuted_16(%a: !hopper.slot<tensor<64x64xf16>>) {
  // expected-error @+1 {{has permuted_k, which is for 8-bit types}}
  %s = hopper.wgmma %a, %a {transpose_b, permuted_k} : !hopper.slot<tensor<64x64xf16>>, <tensor<64x64xf16>> -> <tensor<64x64xf32>>
  return
}

// -----

func.func @product_of_f32(%a: !hopper.slot<tensor<64x64xf32>>) {
  // expected-error @+1 {{multiplies f16, bf16 or 8-bit floats and accumulates in f32}}
  %0 = hopper.wgmma %a, %a : !hopper.slot<tensor<64x64xf32>>, <tensor<64x64xf32>> -> <tensor<64x64xf32>>
  return
}

// -----

func.func @read(%a: !hopper.slot<tensor<64x64xf32>>) {
  // expected-error @+1 {{reads 'tensor<64x64xbf16>' from a slot for 'tensor<64x64xf32>'}}
  %0 = hopper.read %a : !hopper.slot<tensor<64x64xf32>> -> tensor<64x64xbf16>
  return
}

// -----

func.func @read_f8(%a: !hopper.slot<tensor<64x64xf8E5M2>>) {
  // expected-error @+1 {{doesn't read 'f8E5M2', which only products take}}
  %0 = hopper.read %a : !hopper.slot<tensor<64x64xf8E5M2>> -> tensor<64x64xf8E5M2>
  return
}

// -----

func.func @stages(%m: memref<?x64xbf16>, %i: i32) {
  // expected-error @+1 {{takes no hopper.stages = 0 : i32; it is an i32 of at least 1 on a tile.load}}
  %0 = tile.load %m[%i, %i] {hopper.stages = 0 : i32} : memref<?x64xbf16> -> tensor<64x64xbf16>
  return
}

// -----

// expected-error @+1 {{has an attribute that the hopper dialect doesn't know: "hopper.stage"}}
func.func private @attribute() attributes {hopper.stage = 1 : i32}

// -----

func.func @transpose_16(%a: !hopper.slot<tensor<64x32xbf16>>, %b: !hopper.slot<tensor<32x64xbf16>>) {
  // expected-error @+1 {{transposes 8-bit floats, from slot to slot of one type, not 'tensor<64x32xbf16>' to 'tensor<32x64xbf16>'}}
  hopper.transpose %a to %b : <tensor<64x32xbf16>>, <tensor<32x64xbf16>>
  return
}

// -----

func.func @transpose_types(%a: !hopper.slot<tensor<64x32xf8E4M3FN>>, %b: !hopper.slot<tensor<32x64xf8E5M2>>) {
  // expected-error @+1 {{transposes 8-bit floats, from slot to slot of one type}}
  hopper.transpose %a to %b : <tensor<64x32xf8E4M3FN>>, <tensor<32x64xf8E5M2>>
  return
}

// -----

func.func @transpose_shape(%a: !hopper.slot<tensor<64x32xf8E4M3FN>>) {
  // expected-error @+1 {{to a slot of as many rows as it has columns and as many columns as it has rows, not to 'tensor<64x32xf8E4M3FN>'}}
  hopper.transpose %a to %a : <tensor<64x32xf8E4M3FN>>, <tensor<64x32xf8E4M3FN>>
  return
}

// -----

func.func @transpose_granule(%a: !hopper.slot<tensor<48x32xf8E4M3FN>>, %b: !hopper.slot<tensor<32x48xf8E4M3FN>>) {
  // expected-error @+1 {{needs rows and columns in multiples of 32, not 'tensor<48x32xf8E4M3FN>'}}
  hopper.transpose %a to %b : <tensor<48x32xf8E4M3FN>>, <tensor<32x48xf8E4M3FN>>
  return
}

// -----

tile.kernel @transposer_arguments(%v: memref<?x64xbf16>) attributes {num_warps = 8 : i32} {
  // expected-error @+1 {{has a transposer region whose arguments are not of the operands' types}}
  hopper.warp_specialize(%v : memref<?x64xbf16>) producer registers(24) (%a: memref<?x64xbf16>) {
    %c = arith.constant 0 : i32
  } transposer (%a: memref<?x32xbf16>) {
    %c = arith.constant 0 : i32
  } consumer warpgroups(1) registers(240) (%a: memref<?x64xbf16>) {
    %c = arith.constant 0 : i32
  }
  tile.return
}
