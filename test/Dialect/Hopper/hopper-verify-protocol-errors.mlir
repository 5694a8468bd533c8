// RUN: attn-opt %s --pass-pipeline='builtin.module(tile.kernel(hopper-verify-protocol))' --split-input-file --verify-diagnostics

!mem = memref<?x64xbf16, strided<[?, 1]>>
!ring = !hopper.ring<2 x tensor<64x64xbf16>>

tile.kernel @registers(%m: !mem) attributes {num_warps = 12 : i32} {
  %ring = hopper.create_ring : !ring
  // expected-error @+1 {{gives its threads 65536 registers, but a launch of 384 threads allocates 64512: setmaxnreg would wait forever}}
  hopper.warp_specialize(%m, %ring : !mem, !ring)
    producer registers(32) (%a: !mem, %r: !ring) {
      %c0 = arith.constant 0 : i32
      %s0 = hopper.acquire %r[%c0] : !ring
      hopper.tma_load %a[%c0, %c0] to %s0 : !mem, <tensor<64x64xbf16>>
      hopper.commit %s0 : <tensor<64x64xbf16>>
    } consumer warpgroups(2) registers(240) (%a: !mem, %r: !ring) {
      %c0 = arith.constant 0 : i32
      %t0 = hopper.wait %r[%c0] : !ring
      hopper.release %t0 : <tensor<64x64xbf16>>
    }
  tile.return
}

// -----

!mem = memref<?x64xbf16, strided<[?, 1]>>
!ring = !hopper.ring<2 x tensor<64x64xbf16>>

tile.kernel @consumer_op(%m: !mem) attributes {num_warps = 8 : i32} {
  %ring = hopper.create_ring : !ring
  hopper.warp_specialize(%m, %ring : !mem, !ring)
    producer registers(24) (%a: !mem, %r: !ring) {
      %c0 = arith.constant 0 : i32
      %s0 = hopper.acquire %r[%c0] : !ring
      hopper.tma_load %a[%c0, %c0] to %s0 : !mem, <tensor<64x64xbf16>>
      hopper.commit %s0 : <tensor<64x64xbf16>>
      // expected-error @+1 {{has no place in the producer role}}
      %t = hopper.wait %r[%c0] : !ring
    } consumer warpgroups(1) registers(240) (%a: !mem, %r: !ring) {
      %c0 = arith.constant 0 : i32
      %t0 = hopper.wait %r[%c0] : !ring
      hopper.release %t0 : <tensor<64x64xbf16>>
    }
  tile.return
}

// -----

!mem = memref<?x64xbf16, strided<[?, 1]>>
!ring = !hopper.ring<2 x tensor<64x64xbf16>>

tile.kernel @producer_op(%m: !mem) attributes {num_warps = 8 : i32} {
  %ring = hopper.create_ring : !ring
  hopper.warp_specialize(%m, %ring : !mem, !ring)
    producer registers(24) (%a: !mem, %r: !ring) {
      %c0 = arith.constant 0 : i32
      %s0 = hopper.acquire %r[%c0] : !ring
      hopper.tma_load %a[%c0, %c0] to %s0 : !mem, <tensor<64x64xbf16>>
      hopper.commit %s0 : <tensor<64x64xbf16>>
    } consumer warpgroups(1) registers(240) (%a: !mem, %r: !ring) {
      %c0 = arith.constant 0 : i32
      %t0 = hopper.wait %r[%c0] : !ring
      hopper.release %t0 : <tensor<64x64xbf16>>
      // expected-error @+1 {{has no place in the consumer role}}
      %t = hopper.next_tile : i32
    }
  tile.return
}

// -----

!mem = memref<?x64xbf16, strided<[?, 1]>>

tile.kernel @twice_split(%m: !mem) attributes {num_warps = 8 : i32} {
  hopper.warp_specialize(%m : !mem)
    producer registers(24) (%a: !mem) {
    } consumer warpgroups(1) registers(240) (%a: !mem) {
    }
  // expected-error @+1 {{is not the first of its kernel}}
  hopper.warp_specialize(%m : !mem)
    producer registers(24) (%a: !mem) {
    } consumer warpgroups(1) registers(240) (%a: !mem) {
    }
  tile.return
}

// -----

!mem = memref<?x64xbf16, strided<[?, 1]>>

tile.kernel @conditional(%m: !mem) attributes {num_warps = 8 : i32} {
  %true = arith.constant true
  scf.if %true {
    // expected-error @+1 {{must stand in the body of its kernel, not in control flow}}
    hopper.warp_specialize(%m : !mem)
      producer registers(24) (%a: !mem) {
      } consumer warpgroups(1) registers(240) (%a: !mem) {
      }
  }
  tile.return
}

// -----

!mem = memref<?x64xbf16, strided<[?, 1]>>
!ring = !hopper.ring<2 x tensor<64x64xbf16>>

tile.kernel @foreign_op(%m: !mem) attributes {num_warps = 8 : i32} {
  %ring = hopper.create_ring : !ring
  hopper.warp_specialize(%m, %ring : !mem, !ring)
    producer registers(24) (%a: !mem, %r: !ring) {
      %c0 = arith.constant 0 : i32
      %s0 = hopper.acquire %r[%c0] : !ring
      hopper.tma_load %a[%c0, %c0] to %s0 : !mem, <tensor<64x64xbf16>>
      hopper.commit %s0 : <tensor<64x64xbf16>>
    } consumer warpgroups(1) registers(240) (%a: !mem, %r: !ring) {
      %c0 = arith.constant 0 : i32
      %t0 = hopper.wait %r[%c0] : !ring
      // expected-error @+1 {{takes a slot or a pending product, which only operations of the hopper dialect and scf may take}}
      %x = builtin.unrealized_conversion_cast %t0 : !hopper.slot<tensor<64x64xbf16>> to i32
      hopper.release %t0 : <tensor<64x64xbf16>>
    }
  tile.return
}

// -----

tile.kernel @outside() attributes {num_warps = 8 : i32} {
  // expected-error @+1 {{must stand in a role of hopper.warp_specialize}}
  %w = hopper.warpgroup_id : i32
  tile.return
}

// -----

!mem = memref<?x64xbf16, strided<[?, 1]>>
!ring = !hopper.ring<2 x tensor<64x64xbf16>>

tile.kernel @no_commit(%m: !mem) attributes {num_warps = 8 : i32} {
  %ring = hopper.create_ring : !ring
  hopper.warp_specialize(%m, %ring : !mem, !ring)
    producer registers(24) (%a: !mem, %r: !ring) {
      %c0 = arith.constant 0 : i32
      // expected-error @+1 {{takes tile 0 of ring 1, which this role never gives back, in program 0}}
      %s0 = hopper.acquire %r[%c0] : !ring
    } consumer warpgroups(1) registers(240) (%a: !mem, %r: !ring) {
      %c0 = arith.constant 0 : i32
      %t0 = hopper.wait %r[%c0] : !ring
      hopper.release %t0 : <tensor<64x64xbf16>>
    }
  tile.return
}

// -----

!mem = memref<?x64xbf16, strided<[?, 1]>>
!ring = !hopper.ring<2 x tensor<64x64xbf16>>

tile.kernel @no_release(%m: !mem) attributes {num_warps = 8 : i32} {
  %ring = hopper.create_ring : !ring
  hopper.warp_specialize(%m, %ring : !mem, !ring)
    producer registers(24) (%a: !mem, %r: !ring) {
      %c0 = arith.constant 0 : i32
      %s0 = hopper.acquire %r[%c0] : !ring
      hopper.tma_load %a[%c0, %c0] to %s0 : !mem, <tensor<64x64xbf16>>
      hopper.commit %s0 : <tensor<64x64xbf16>>
    } consumer warpgroups(1) registers(240) (%a: !mem, %r: !ring) {
      %c0 = arith.constant 0 : i32
      // expected-error @+1 {{takes tile 0 of ring 1, which this role never gives back}}
      %t0 = hopper.wait %r[%c0] : !ring
    }
  tile.return
}

// -----

!mem = memref<?x64xbf16, strided<[?, 1]>>
!ring = !hopper.ring<2 x tensor<64x64xbf16>>

tile.kernel @released_twice(%m: !mem) attributes {num_warps = 8 : i32} {
  %ring = hopper.create_ring : !ring
  hopper.warp_specialize(%m, %ring : !mem, !ring)
    producer registers(24) (%a: !mem, %r: !ring) {
      %c0 = arith.constant 0 : i32
      %s0 = hopper.acquire %r[%c0] : !ring
      hopper.tma_load %a[%c0, %c0] to %s0 : !mem, <tensor<64x64xbf16>>
      hopper.commit %s0 : <tensor<64x64xbf16>>
    } consumer warpgroups(1) registers(240) (%a: !mem, %r: !ring) {
      %c0 = arith.constant 0 : i32
      %t0 = hopper.wait %r[%c0] : !ring
      hopper.release %t0 : <tensor<64x64xbf16>>
      // expected-error @+1 {{uses the slot of tile 0 of ring 1 after it has been given back}}
      hopper.release %t0 : <tensor<64x64xbf16>>
    }
  tile.return
}

// -----

!mem = memref<?x64xbf16, strided<[?, 1]>>
!ring = !hopper.ring<2 x tensor<64x64xbf16>>

tile.kernel @use_after_commit(%m: !mem) attributes {num_warps = 8 : i32} {
  %ring = hopper.create_ring : !ring
  hopper.warp_specialize(%m, %ring : !mem, !ring)
    producer registers(24) (%a: !mem, %r: !ring) {
      %c0 = arith.constant 0 : i32
      %s0 = hopper.acquire %r[%c0] : !ring
      hopper.tma_load %a[%c0, %c0] to %s0 : !mem, <tensor<64x64xbf16>>
      hopper.commit %s0 : <tensor<64x64xbf16>>
      // expected-error @+1 {{uses the slot of tile 0 of ring 1 after it has been given back}}
      hopper.tma_load %a[%c0, %c0] to %s0 : !mem, <tensor<64x64xbf16>>
    } consumer warpgroups(1) registers(240) (%a: !mem, %r: !ring) {
      %c0 = arith.constant 0 : i32
      %t0 = hopper.wait %r[%c0] : !ring
      hopper.release %t0 : <tensor<64x64xbf16>>
    }
  tile.return
}

// -----

!mem = memref<?x64xbf16, strided<[?, 1]>>
!ring = !hopper.ring<2 x tensor<64x64xbf16>>

tile.kernel @not_taken(%m: !mem) attributes {num_warps = 8 : i32} {
  %ring = hopper.create_ring : !ring
  hopper.warp_specialize(%m, %ring : !mem, !ring)
    producer registers(24) (%a: !mem, %r: !ring) {
      %c0 = arith.constant 0 : i32
      %s0 = hopper.acquire %r[%c0] : !ring
      hopper.tma_load %a[%c0, %c0] to %s0 : !mem, <tensor<64x64xbf16>>
      hopper.commit %s0 : <tensor<64x64xbf16>>
    } consumer warpgroups(1) registers(240) (%a: !mem, %r: !ring) {
      %c0 = arith.constant 0 : i32
      %t0 = hopper.wait %r[%c0] : !ring
      %c1 = arith.constant 1 : i32
      // expected-error @+1 {{uses the slot of tile 1 of ring 1, which this role has not taken}}
      %t1 = hopper.slot %r[%c1] : !ring
      hopper.release %t0 : <tensor<64x64xbf16>>
    }
  tile.return
}

// -----

!mem = memref<?x64xbf16, strided<[?, 1]>>
!ring = !hopper.ring<2 x tensor<64x64xbf16>>

tile.kernel @not_loaded(%m: !mem) attributes {num_warps = 8 : i32} {
  %ring = hopper.create_ring : !ring
  hopper.warp_specialize(%m, %ring : !mem, !ring)
    producer registers(24) (%a: !mem, %r: !ring) {
      %c0 = arith.constant 0 : i32
      %s0 = hopper.acquire %r[%c0] : !ring
      // expected-error @+1 {{hands over tile 0 of ring 1 with nothing in it}}
      hopper.commit %s0 : <tensor<64x64xbf16>>
    } consumer warpgroups(1) registers(240) (%a: !mem, %r: !ring) {
      %c0 = arith.constant 0 : i32
      %t0 = hopper.wait %r[%c0] : !ring
      hopper.release %t0 : <tensor<64x64xbf16>>
    }
  tile.return
}

// -----

!mem = memref<?x64xbf16, strided<[?, 1]>>
!ring = !hopper.ring<2 x tensor<64x64xbf16>>

tile.kernel @out_of_turn(%m: !mem) attributes {num_warps = 8 : i32} {
  %ring = hopper.create_ring : !ring
  hopper.warp_specialize(%m, %ring : !mem, !ring)
    producer registers(24) (%a: !mem, %r: !ring) {
      %c0 = arith.constant 0 : i32
      %s0 = hopper.acquire %r[%c0] : !ring
      hopper.tma_load %a[%c0, %c0] to %s0 : !mem, <tensor<64x64xbf16>>
      hopper.commit %s0 : <tensor<64x64xbf16>>
      %c2 = arith.constant 2 : i32
      // expected-error @+1 {{handles tile 2 of ring 1 where tile 1 is next}}
      %s2 = hopper.acquire %r[%c2] : !ring
    } consumer warpgroups(1) registers(240) (%a: !mem, %r: !ring) {
      %c0 = arith.constant 0 : i32
      %t0 = hopper.wait %r[%c0] : !ring
      hopper.release %t0 : <tensor<64x64xbf16>>
    }
  tile.return
}

// -----

!mem = memref<?x64xbf16, strided<[?, 1]>>
!ring = !hopper.ring<2 x tensor<64x64xbf16>>

tile.kernel @still_read(%m: !mem) attributes {num_warps = 8 : i32} {
  %ring = hopper.create_ring : !ring
  hopper.warp_specialize(%m, %ring : !mem, !ring)
    producer registers(24) (%a: !mem, %r: !ring) {
      %c0 = arith.constant 0 : i32
      %s0 = hopper.acquire %r[%c0] : !ring
      hopper.tma_load %a[%c0, %c0] to %s0 : !mem, <tensor<64x64xbf16>>
      hopper.commit %s0 : <tensor<64x64xbf16>>
    } consumer warpgroups(1) registers(240) (%a: !mem, %r: !ring) {
      %c0 = arith.constant 0 : i32
      %t0 = hopper.wait %r[%c0] : !ring
      // expected-note @+1 {{the product; wait for it before}}
      %s = hopper.wgmma %t0, %t0 : !hopper.slot<tensor<64x64xbf16>>, <tensor<64x64xbf16>> -> <tensor<64x64xf32>>
      // expected-error @+1 {{gives a slot back while a product may read it, in program 0}}
      hopper.release %t0 : <tensor<64x64xbf16>>
      %x = hopper.wgmma_wait 0, %s : <tensor<64x64xf32>> -> tensor<64x64xf32>
    }
  tile.return
}

// -----

!mem = memref<?x64xbf16, strided<[?, 1]>>
!ring = !hopper.ring<2 x tensor<64x64xbf16>>

// Slots and products that go from step to step.
tile.kernel @still_read_in_loop(%m: !mem) attributes {num_warps = 8 : i32} {
  %ring = hopper.create_ring : !ring
  hopper.warp_specialize(%m, %ring : !mem, !ring)
    producer registers(24) (%a: !mem, %r: !ring) {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %c3 = arith.constant 3 : i32
      scf.for %i = %c0 to %c3 step %c1 : i32 {
        %s = hopper.acquire %r[%i] : !ring
        hopper.tma_load %a[%c0, %c0] to %s : !mem, <tensor<64x64xbf16>>
        hopper.commit %s : <tensor<64x64xbf16>>
      }
    } consumer warpgroups(1) registers(240) (%a: !mem, %r: !ring) {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %c3 = arith.constant 3 : i32
      %t0 = hopper.wait %r[%c0] : !ring
      %first = hopper.wgmma %t0, %t0 : !hopper.slot<tensor<64x64xbf16>>, <tensor<64x64xbf16>> -> <tensor<64x64xf32>>
      %last = scf.for %i = %c1 to %c3 step %c1 iter_args(%pending = %first) -> (!hopper.pending<tensor<64x64xf32>>) : i32 {
        %t = hopper.wait %r[%i] : !ring
        // expected-note @+1 {{the product; wait for it before}}
        %next = hopper.wgmma %t, %t : !hopper.slot<tensor<64x64xbf16>>, <tensor<64x64xbf16>> -> <tensor<64x64xf32>>
        %x = hopper.wgmma_wait 1, %pending : <tensor<64x64xf32>> -> tensor<64x64xf32>
        %previous = arith.subi %i, %c1 : i32
        %old = hopper.slot %r[%previous] : !ring
        hopper.release %old : <tensor<64x64xbf16>>
        scf.yield %next : !hopper.pending<tensor<64x64xf32>>
      }
      %c2 = arith.constant 2 : i32
      %t2 = hopper.slot %r[%c2] : !ring
      // expected-error @+1 {{gives a slot back while a product may read it}}
      hopper.release %t2 : <tensor<64x64xbf16>>
      %x = hopper.wgmma_wait 0, %last : <tensor<64x64xf32>> -> tensor<64x64xf32>
    }
  tile.return
}

// -----

!mem = memref<?x64xbf16, strided<[?, 1]>>
!ring = !hopper.ring<2 x tensor<64x64xbf16>>

tile.kernel @in_flight(%m: !mem) attributes {num_warps = 8 : i32} {
  %ring = hopper.create_ring : !ring
  hopper.warp_specialize(%m, %ring : !mem, !ring)
    producer registers(24) (%a: !mem, %r: !ring) {
      %c0 = arith.constant 0 : i32
      %s0 = hopper.acquire %r[%c0] : !ring
      hopper.tma_load %a[%c0, %c0] to %s0 : !mem, <tensor<64x64xbf16>>
      hopper.commit %s0 : <tensor<64x64xbf16>>
    } consumer warpgroups(1) registers(240) (%a: !mem, %r: !ring) {
      %c0 = arith.constant 0 : i32
      %t0 = hopper.wait %r[%c0] : !ring
      // expected-note @+1 {{only 0 start after it}}
      %s = hopper.wgmma %t0, %t0 : !hopper.slot<tensor<64x64xbf16>>, <tensor<64x64xbf16>> -> <tensor<64x64xf32>>
      // expected-error @+1 {{leaves 1 products in flight, and its operand is one of them}}
      %x = hopper.wgmma_wait 1, %s : <tensor<64x64xf32>> -> tensor<64x64xf32>
      hopper.release %t0 : <tensor<64x64xbf16>>
    }
  tile.return
}

// -----

!mem = memref<?x64xbf16, strided<[?, 1]>>
!ring = !hopper.ring<2 x tensor<64x64xbf16>>

tile.kernel @unused(%m: !mem) attributes {num_warps = 8 : i32} {
  %ring = hopper.create_ring : !ring
  hopper.warp_specialize(%m, %ring : !mem, !ring)
    producer registers(24) (%a: !mem, %r: !ring) {
      %c0 = arith.constant 0 : i32
      %s0 = hopper.acquire %r[%c0] : !ring
      hopper.tma_load %a[%c0, %c0] to %s0 : !mem, <tensor<64x64xbf16>>
      hopper.commit %s0 : <tensor<64x64xbf16>>
    } consumer warpgroups(1) registers(240) (%a: !mem, %r: !ring) {
      %c0 = arith.constant 0 : i32
      %t0 = hopper.wait %r[%c0] : !ring
      // expected-error @+1 {{must be waited for, or accumulated to}}
      %s = hopper.wgmma %t0, %t0 : !hopper.slot<tensor<64x64xbf16>>, <tensor<64x64xbf16>> -> <tensor<64x64xf32>>
      hopper.release %t0 : <tensor<64x64xbf16>>
    }
  tile.return
}

// -----

!mem = memref<?x64xbf16, strided<[?, 1]>>
!ring = !hopper.ring<2 x tensor<64x64xbf16>>

tile.kernel @escapes(%m: !mem) attributes {num_warps = 8 : i32} {
  %ring = hopper.create_ring : !ring
  hopper.warp_specialize(%m, %ring : !mem, !ring)
    producer registers(24) (%a: !mem, %r: !ring) {
      %c0 = arith.constant 0 : i32
      %s0 = hopper.acquire %r[%c0] : !ring
      hopper.tma_load %a[%c0, %c0] to %s0 : !mem, <tensor<64x64xbf16>>
      hopper.commit %s0 : <tensor<64x64xbf16>>
    } consumer warpgroups(1) registers(240) (%a: !mem, %r: !ring) {
      %c0 = arith.constant 0 : i32
      %t0 = hopper.wait %r[%c0] : !ring
      %false = arith.constant false
      // expected-error @+1 {{is never waited for or accumulated to, in program 0}}
      %s = hopper.wgmma %t0, %t0 : !hopper.slot<tensor<64x64xbf16>>, <tensor<64x64xbf16>> -> <tensor<64x64xf32>>
      %p = hopper.wgmma %t0, %t0 : !hopper.slot<tensor<64x64xbf16>>, <tensor<64x64xbf16>> -> <tensor<64x64xf32>>
      scf.if %false {
        %y = hopper.wgmma_wait 0, %s : <tensor<64x64xf32>> -> tensor<64x64xf32>
      }
      %x = hopper.wgmma_wait 0, %p : <tensor<64x64xf32>> -> tensor<64x64xf32>
      hopper.release %t0 : <tensor<64x64xbf16>>
    }
  tile.return
}

// -----

!mem = memref<?x64xbf16, strided<[?, 1]>>
!ring = !hopper.ring<2 x tensor<64x64xbf16>>

tile.kernel @waited_twice(%m: !mem) attributes {num_warps = 8 : i32} {
  %ring = hopper.create_ring : !ring
  hopper.warp_specialize(%m, %ring : !mem, !ring)
    producer registers(24) (%a: !mem, %r: !ring) {
      %c0 = arith.constant 0 : i32
      %s0 = hopper.acquire %r[%c0] : !ring
      hopper.tma_load %a[%c0, %c0] to %s0 : !mem, <tensor<64x64xbf16>>
      hopper.commit %s0 : <tensor<64x64xbf16>>
    } consumer warpgroups(1) registers(240) (%a: !mem, %r: !ring) {
      %c0 = arith.constant 0 : i32
      %t0 = hopper.wait %r[%c0] : !ring
      %s = hopper.wgmma %t0, %t0 : !hopper.slot<tensor<64x64xbf16>>, <tensor<64x64xbf16>> -> <tensor<64x64xf32>>
      // expected-note @+1 {{here}}
      %x = hopper.wgmma_wait 0, %s : <tensor<64x64xf32>> -> tensor<64x64xf32>
      // expected-error @+1 {{takes a product that has been waited for, or accumulated to, before}}
      %y = hopper.wgmma_wait 0, %s : <tensor<64x64xf32>> -> tensor<64x64xf32>
      hopper.release %t0 : <tensor<64x64xbf16>>
    }
  tile.return
}

// -----

!mem = memref<?x64xbf16, strided<[?, 1]>>
!ring = !hopper.ring<2 x tensor<64x64xbf16>>

tile.kernel @accumulated_then_waited(%m: !mem) attributes {num_warps = 8 : i32} {
  %ring = hopper.create_ring : !ring
  hopper.warp_specialize(%m, %ring : !mem, !ring)
    producer registers(24) (%a: !mem, %r: !ring) {
      %c0 = arith.constant 0 : i32
      %s0 = hopper.acquire %r[%c0] : !ring
      hopper.tma_load %a[%c0, %c0] to %s0 : !mem, <tensor<64x64xbf16>>
      hopper.commit %s0 : <tensor<64x64xbf16>>
    } consumer warpgroups(1) registers(240) (%a: !mem, %r: !ring) {
      %c0 = arith.constant 0 : i32
      %t0 = hopper.wait %r[%c0] : !ring
      %s = hopper.wgmma %t0, %t0 : !hopper.slot<tensor<64x64xbf16>>, <tensor<64x64xbf16>> -> <tensor<64x64xf32>>
      // expected-note @+1 {{here}}
      %p = hopper.wgmma %t0, %t0 acc %s : !hopper.pending<tensor<64x64xf32>> : !hopper.slot<tensor<64x64xbf16>>, <tensor<64x64xbf16>> -> <tensor<64x64xf32>>
      // expected-error @+1 {{takes a product that has been waited for, or accumulated to, before}}
      %x = hopper.wgmma_wait 0, %s : <tensor<64x64xf32>> -> tensor<64x64xf32>
      %y = hopper.wgmma_wait 0, %p : <tensor<64x64xf32>> -> tensor<64x64xf32>
      hopper.release %t0 : <tensor<64x64xbf16>>
    }
  tile.return
}

// -----

!mem = memref<?x64xbf16, strided<[?, 1]>>
!ring = !hopper.ring<2 x tensor<64x64xbf16>>

tile.kernel @store_while_read(%m: !mem) attributes {num_warps = 8 : i32} {
  %ring = hopper.create_ring : !ring
  hopper.warp_specialize(%m, %ring : !mem, !ring)
    producer registers(24) (%a: !mem, %r: !ring) {
      %c0 = arith.constant 0 : i32
      %s0 = hopper.acquire %r[%c0] : !ring
      hopper.tma_load %a[%c0, %c0] to %s0 : !mem, <tensor<64x64xbf16>>
      hopper.commit %s0 : <tensor<64x64xbf16>>
    } consumer warpgroups(1) registers(240) (%a: !mem, %r: !ring) {
      %c0 = arith.constant 0 : i32
      %t0 = hopper.wait %r[%c0] : !ring
      %tile = arith.constant dense<1.0> : tensor<64x64xbf16>
      // expected-note @+1 {{the product; wait for it before}}
      %s = hopper.wgmma %t0, %t0 : !hopper.slot<tensor<64x64xbf16>>, <tensor<64x64xbf16>> -> <tensor<64x64xf32>>
      // expected-error @+1 {{overwrites a slot while a product may read it}}
      hopper.tma_store %tile, %t0 to %a[%c0, %c0] : tensor<64x64xbf16>, <tensor<64x64xbf16>>, !mem
      %x = hopper.wgmma_wait 0, %s : <tensor<64x64xf32>> -> tensor<64x64xf32>
      hopper.release %t0 : <tensor<64x64xbf16>>
    }
  tile.return
}

// -----

!mem = memref<?x64xbf16, strided<[?, 1]>>
!ring = !hopper.ring<2 x tensor<64x64xbf16>>

tile.kernel @store_to_shared(%m: !mem) attributes {num_warps = 8 : i32} {
  %ring = hopper.create_ring : !ring
  hopper.warp_specialize(%m, %ring : !mem, !ring)
    producer registers(24) (%a: !mem, %r: !ring) {
      %c0 = arith.constant 0 : i32
      %s0 = hopper.acquire %r[%c0] : !ring
      hopper.tma_load %a[%c0, %c0] to %s0 : !mem, <tensor<64x64xbf16>>
      hopper.commit %s0 : <tensor<64x64xbf16>>
    } consumer warpgroups(1) registers(240) (%a: !mem, %r: !ring) {
      %c0 = arith.constant 0 : i32
      %t0 = hopper.wait %r[%c0] : !ring
      %tile = arith.constant dense<1.0> : tensor<64x64xbf16>
      // expected-note @+1 {{the product}}
      %s = hopper.wgmma %t0, %t0 : !hopper.slot<tensor<64x64xbf16>>, <tensor<64x64xbf16>> -> <tensor<64x64xf32>>
      %x = hopper.wgmma_wait 0, %s : <tensor<64x64xf32>> -> tensor<64x64xf32>
      // expected-error @+1 {{overwrites the right operand of a product, which all warpgroups read}}
      hopper.tma_store %tile, %t0 to %a[%c0, %c0] : tensor<64x64xbf16>, <tensor<64x64xbf16>>, !mem
      hopper.release %t0 : <tensor<64x64xbf16>>
    }
  tile.return
}

// -----

!mem = memref<?x64xbf16, strided<[?, 1]>>
!ring = !hopper.ring<2 x tensor<64x64xbf16>>

// One warpgroup stores, another reads.
tile.kernel @store_to_other(%m: !mem) attributes {num_warps = 12 : i32} {
  %ring = hopper.create_ring : !ring
  hopper.warp_specialize(%m, %ring : !mem, !ring)
    producer registers(24) (%a: !mem, %r: !ring) {
      %c0 = arith.constant 0 : i32
      %s0 = hopper.acquire %r[%c0] : !ring
      hopper.tma_load %a[%c0, %c0] to %s0 : !mem, <tensor<64x64xbf16>>
      hopper.commit %s0 : <tensor<64x64xbf16>>
    } consumer warpgroups(2) registers(240) (%a: !mem, %r: !ring) {
      %c0 = arith.constant 0 : i32
      %t0 = hopper.wait %r[%c0] : !ring
      %tile = arith.constant dense<1.0> : tensor<64x64xbf16>
      %w = hopper.warpgroup_id : i32
      %first = arith.cmpi eq, %w, %c0 : i32
      scf.if %first {
        // expected-error @+1 {{overwrites the right operand of a product, which all warpgroups read}}
        hopper.tma_store %tile, %t0 to %a[%c0, %c0] : tensor<64x64xbf16>, <tensor<64x64xbf16>>, !mem
      } else {
        // expected-note @+1 {{the product}}
        %s = hopper.wgmma %t0, %t0 : !hopper.slot<tensor<64x64xbf16>>, <tensor<64x64xbf16>> -> <tensor<64x64xf32>>
        %x = hopper.wgmma_wait 0, %s : <tensor<64x64xf32>> -> tensor<64x64xf32>
      }
      hopper.release %t0 : <tensor<64x64xbf16>>
    }
  tile.return
}

// -----

!mem = memref<?x64xbf16, strided<[?, 1]>>
!ring = !hopper.ring<2 x tensor<64x64xbf16>>

tile.kernel @read_after_store(%m: !mem) attributes {num_warps = 8 : i32} {
  %ring = hopper.create_ring : !ring
  hopper.warp_specialize(%m, %ring : !mem, !ring)
    producer registers(24) (%a: !mem, %r: !ring) {
      %c0 = arith.constant 0 : i32
      %s0 = hopper.acquire %r[%c0] : !ring
      hopper.tma_load %a[%c0, %c0] to %s0 : !mem, <tensor<64x64xbf16>>
      hopper.commit %s0 : <tensor<64x64xbf16>>
    } consumer warpgroups(1) registers(240) (%a: !mem, %r: !ring) {
      %c0 = arith.constant 0 : i32
      %t0 = hopper.wait %r[%c0] : !ring
      %tile = arith.constant dense<1.0> : tensor<64x64xbf16>
      // expected-note @+1 {{the store through it}}
      hopper.tma_store %tile, %t0 to %a[%c0, %c0] : tensor<64x64xbf16>, <tensor<64x64xbf16>>, !mem
      // expected-error @+1 {{reads a slot that has been overwritten}}
      %s = hopper.wgmma %t0, %t0 : !hopper.slot<tensor<64x64xbf16>>, <tensor<64x64xbf16>> -> <tensor<64x64xf32>>
      %x = hopper.wgmma_wait 0, %s : <tensor<64x64xf32>> -> tensor<64x64xf32>
      hopper.release %t0 : <tensor<64x64xbf16>>
    }
  tile.return
}

// -----

!mem = memref<?x64xbf16, strided<[?, 1]>>
!ring = !hopper.ring<2 x tensor<64x64xbf16>>

tile.kernel @store_after_release(%m: !mem) attributes {num_warps = 8 : i32} {
  %ring = hopper.create_ring : !ring
  hopper.warp_specialize(%m, %ring : !mem, !ring)
    producer registers(24) (%a: !mem, %r: !ring) {
      %c0 = arith.constant 0 : i32
      %s0 = hopper.acquire %r[%c0] : !ring
      hopper.tma_load %a[%c0, %c0] to %s0 : !mem, <tensor<64x64xbf16>>
      hopper.commit %s0 : <tensor<64x64xbf16>>
    } consumer warpgroups(1) registers(240) (%a: !mem, %r: !ring) {
      %c0 = arith.constant 0 : i32
      %t0 = hopper.wait %r[%c0] : !ring
      %tile = arith.constant dense<1.0> : tensor<64x64xbf16>
      hopper.release %t0 : <tensor<64x64xbf16>>
      // expected-error @+1 {{uses the slot of tile 0 of ring 1 after it has been given back}}
      hopper.tma_store %tile, %t0 to %a[%c0, %c0] : tensor<64x64xbf16>, <tensor<64x64xbf16>>, !mem
    }
  tile.return
}

// -----

!mem = memref<?x64xbf16, strided<[?, 1]>>
!ring = !hopper.ring<2 x tensor<64x64xbf16>>

tile.kernel @left_over(%m: !mem) attributes {num_warps = 8 : i32} {
  %ring = hopper.create_ring : !ring
  hopper.warp_specialize(%m, %ring : !mem, !ring)
    producer registers(24) (%a: !mem, %r: !ring) {
      %c0 = arith.constant 0 : i32
      %s0 = hopper.acquire %r[%c0] : !ring
      hopper.tma_load %a[%c0, %c0] to %s0 : !mem, <tensor<64x64xbf16>>
      hopper.commit %s0 : <tensor<64x64xbf16>>
      %c1 = arith.constant 1 : i32
      // expected-error @+1 {{fills 2 tiles of ring 1, but warpgroup 0 takes 1, in program 0}}
      %s1 = hopper.acquire %r[%c1] : !ring
      hopper.tma_load %a[%c0, %c0] to %s1 : !mem, <tensor<64x64xbf16>>
      hopper.commit %s1 : <tensor<64x64xbf16>>
    } consumer warpgroups(1) registers(240) (%a: !mem, %r: !ring) {
      %c0 = arith.constant 0 : i32
      %t0 = hopper.wait %r[%c0] : !ring
      hopper.release %t0 : <tensor<64x64xbf16>>
    }
  tile.return
}

// -----

!mem = memref<?x64xbf16, strided<[?, 1]>>
!ring = !hopper.ring<2 x tensor<64x64xbf16>>

tile.kernel @never_filled(%m: !mem) attributes {num_warps = 8 : i32} {
  %ring = hopper.create_ring : !ring
  // expected-note @+1 {{the producer ends after 1 tiles of this ring}}
  hopper.warp_specialize(%m, %ring : !mem, !ring)
    producer registers(24) (%a: !mem, %r: !ring) {
      %c0 = arith.constant 0 : i32
      %s0 = hopper.acquire %r[%c0] : !ring
      hopper.tma_load %a[%c0, %c0] to %s0 : !mem, <tensor<64x64xbf16>>
      hopper.commit %s0 : <tensor<64x64xbf16>>
    } consumer warpgroups(1) registers(240) (%a: !mem, %r: !ring) {
      %c0 = arith.constant 0 : i32
      %t0 = hopper.wait %r[%c0] : !ring
      hopper.release %t0 : <tensor<64x64xbf16>>
      %c1 = arith.constant 1 : i32
      // expected-error @+1 {{waits forever for tile 1 of ring 1}}
      %t1 = hopper.wait %r[%c1] : !ring
      hopper.release %t1 : <tensor<64x64xbf16>>
    }
  tile.return
}

// -----

!mem = memref<?x64xbf16, strided<[?, 1]>>
!ring = !hopper.ring<1 x tensor<64x64xbf16>>

tile.kernel @deadlock(%m: !mem) attributes {num_warps = 8 : i32} {
  %ring = hopper.create_ring : !ring
  hopper.warp_specialize(%m, %ring : !mem, !ring)
    producer registers(24) (%a: !mem, %r: !ring) {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %s0 = hopper.acquire %r[%c0] : !ring
      hopper.tma_load %a[%c0, %c0] to %s0 : !mem, <tensor<64x64xbf16>>
      // expected-note @+1 {{the producer waits here for an empty slot for tile 1 of ring 1, which warpgroup 0 hasn't released}}
      %s1 = hopper.acquire %r[%c1] : !ring
      hopper.tma_load %a[%c0, %c0] to %s1 : !mem, <tensor<64x64xbf16>>
      hopper.commit %s0 : <tensor<64x64xbf16>>
      hopper.commit %s1 : <tensor<64x64xbf16>>
    } consumer warpgroups(1) registers(240) (%a: !mem, %r: !ring) {
      %c0 = arith.constant 0 : i32
      // expected-error @+1 {{waits forever for tile 0 of ring 1}}
      %t0 = hopper.wait %r[%c0] : !ring
      hopper.release %t0 : <tensor<64x64xbf16>>
      %c1 = arith.constant 1 : i32
      %t1 = hopper.wait %r[%c1] : !ring
      hopper.release %t1 : <tensor<64x64xbf16>>
    }
  tile.return
}

// -----

!mem = memref<?x64xbf16, strided<[?, 1]>>
!ring = !hopper.ring<1 x tensor<64x64xbf16>>

// A ring that is too short for what the consumers hold at the same time.
tile.kernel @holds_too_many(%m: !mem) attributes {num_warps = 8 : i32} {
  %ring = hopper.create_ring : !ring
  hopper.warp_specialize(%m, %ring : !mem, !ring)
    producer registers(24) (%a: !mem, %r: !ring) {
      %c0 = arith.constant 0 : i32
      %s0 = hopper.acquire %r[%c0] : !ring
      hopper.tma_load %a[%c0, %c0] to %s0 : !mem, <tensor<64x64xbf16>>
      hopper.commit %s0 : <tensor<64x64xbf16>>
      %c1 = arith.constant 1 : i32
      // expected-note @+1 {{the producer waits here for an empty slot for tile 1 of ring 1, which warpgroup 0 hasn't released}}
      %s1 = hopper.acquire %r[%c1] : !ring
      hopper.tma_load %a[%c0, %c0] to %s1 : !mem, <tensor<64x64xbf16>>
      hopper.commit %s1 : <tensor<64x64xbf16>>
    } consumer warpgroups(1) registers(240) (%a: !mem, %r: !ring) {
      %c0 = arith.constant 0 : i32
      %t0 = hopper.wait %r[%c0] : !ring
      %c1 = arith.constant 1 : i32
      // expected-error @+1 {{waits forever for tile 1 of ring 1}}
      %t1 = hopper.wait %r[%c1] : !ring
      hopper.release %t0 : <tensor<64x64xbf16>>
      hopper.release %t1 : <tensor<64x64xbf16>>
    }
  tile.return
}

// -----

!mem = memref<?x64xbf16, strided<[?, 1]>>
!ring = !hopper.ring<1 x tensor<64x64xbf16>>

// The second warpgroup takes one tile less.
tile.kernel @warpgroup_stops(%m: !mem) attributes {num_warps = 12 : i32} {
  %ring = hopper.create_ring : !ring
  hopper.warp_specialize(%m, %ring : !mem, !ring)
    producer registers(24) (%a: !mem, %r: !ring) {
      %c0 = arith.constant 0 : i32
      %s0 = hopper.acquire %r[%c0] : !ring
      hopper.tma_load %a[%c0, %c0] to %s0 : !mem, <tensor<64x64xbf16>>
      hopper.commit %s0 : <tensor<64x64xbf16>>
      %c1 = arith.constant 1 : i32
      %s1 = hopper.acquire %r[%c1] : !ring
      hopper.tma_load %a[%c0, %c0] to %s1 : !mem, <tensor<64x64xbf16>>
      hopper.commit %s1 : <tensor<64x64xbf16>>
      %c2 = arith.constant 2 : i32
      // expected-error @+2 {{waits forever for an empty slot for tile 2 of ring 1}}
      // expected-note @+1 {{the producer waits here for an empty slot for tile 2 of ring 1, which warpgroup 1 hasn't released}}
      %s2 = hopper.acquire %r[%c2] : !ring
      hopper.tma_load %a[%c0, %c0] to %s2 : !mem, <tensor<64x64xbf16>>
      hopper.commit %s2 : <tensor<64x64xbf16>>
    } consumer warpgroups(2) registers(240) (%a: !mem, %r: !ring) {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %c2 = arith.constant 2 : i32
      %w = hopper.warpgroup_id : i32
      %end = arith.subi %c2, %w : i32
      scf.for %i = %c0 to %end step %c1 : i32 {
        %t = hopper.wait %r[%i] : !ring
        hopper.release %t : <tensor<64x64xbf16>>
      }
    }
  tile.return
}

// -----

!mem = memref<?x64xbf16, strided<[?, 1]>>
!ring = !hopper.ring<2 x tensor<64x64xbf16>>

tile.kernel @data(%m: !mem) attributes {num_warps = 8 : i32} {
  %ring = hopper.create_ring : !ring
  hopper.warp_specialize(%m, %ring : !mem, !ring)
    producer registers(24) (%a: !mem, %r: !ring) {
      %c0 = arith.constant 0 : i32
      %s0 = hopper.acquire %r[%c0] : !ring
      hopper.tma_load %a[%c0, %c0] to %s0 : !mem, <tensor<64x64xbf16>>
      hopper.commit %s0 : <tensor<64x64xbf16>>
    } consumer warpgroups(1) registers(240) (%a: !mem, %r: !ring) {
      %c0 = arith.constant 0 : i32
      %data = tile.iota : tensor<1xi32>
      %i0 = arith.constant 0 : index
      %e = tensor.extract %data[%i0] : tensor<1xi32>
      // expected-error @+1 {{depends on more than sizes and the program's number}}
      %t0 = hopper.wait %r[%e] : !ring
      hopper.release %t0 : <tensor<64x64xbf16>>
    }
  tile.return
}

// -----

!mem = memref<?x64xbf16, strided<[?, 1]>>
!ring = !hopper.ring<2 x tensor<64x64xbf16>>

tile.kernel @branch_on_data(%m: !mem) attributes {num_warps = 8 : i32} {
  %ring = hopper.create_ring : !ring
  hopper.warp_specialize(%m, %ring : !mem, !ring)
    producer registers(24) (%a: !mem, %r: !ring) {
      %c0 = arith.constant 0 : i32
      %s0 = hopper.acquire %r[%c0] : !ring
      hopper.tma_load %a[%c0, %c0] to %s0 : !mem, <tensor<64x64xbf16>>
      hopper.commit %s0 : <tensor<64x64xbf16>>
    } consumer warpgroups(1) registers(240) (%a: !mem, %r: !ring) {
      %c0 = arith.constant 0 : i32
      %t0 = hopper.wait %r[%c0] : !ring
      %data = tile.iota : tensor<1xi32>
      %i0 = arith.constant 0 : index
      %e = tensor.extract %data[%i0] : tensor<1xi32>
      %vote = arith.cmpi slt, %e, %c0 : i32
      // expected-error @+1 {{depends on data, but its branches differ in what they do to rings or products}}
      scf.if %vote {
        hopper.release %t0 : <tensor<64x64xbf16>>
      }
    }
  tile.return
}

// -----

!mem = memref<?x64xbf16, strided<[?, 1]>>
!ring = !hopper.ring<2 x tensor<64x64xbf16>>

tile.kernel @slot_of_data(%m: !mem) attributes {num_warps = 8 : i32} {
  %ring = hopper.create_ring : !ring
  hopper.warp_specialize(%m, %ring : !mem, !ring)
    producer registers(24) (%a: !mem, %r: !ring) {
      %c0 = arith.constant 0 : i32
      %s0 = hopper.acquire %r[%c0] : !ring
      hopper.tma_load %a[%c0, %c0] to %s0 : !mem, <tensor<64x64xbf16>>
      hopper.commit %s0 : <tensor<64x64xbf16>>
      %c1 = arith.constant 1 : i32
      %s1 = hopper.acquire %r[%c1] : !ring
      hopper.tma_load %a[%c0, %c0] to %s1 : !mem, <tensor<64x64xbf16>>
      hopper.commit %s1 : <tensor<64x64xbf16>>
    } consumer warpgroups(1) registers(240) (%a: !mem, %r: !ring) {
      %c0 = arith.constant 0 : i32
      %t0 = hopper.wait %r[%c0] : !ring
      %c1 = arith.constant 1 : i32
      %t1 = hopper.wait %r[%c1] : !ring
      %data = tile.iota : tensor<1xi32>
      %i0 = arith.constant 0 : index
      %e = tensor.extract %data[%i0] : tensor<1xi32>
      %vote = arith.cmpi slt, %e, %c0 : i32
      %t = scf.if %vote -> !hopper.slot<tensor<64x64xbf16>> {
        scf.yield %t0 : !hopper.slot<tensor<64x64xbf16>>
      } else {
        scf.yield %t1 : !hopper.slot<tensor<64x64xbf16>>
      }
      // expected-error @+1 {{takes a slot or a product that depends on data}}
      hopper.release %t : <tensor<64x64xbf16>>
      hopper.release %t0 : <tensor<64x64xbf16>>
    }
  tile.return
}

// -----

!mem = memref<?x64xbf16, strided<[?, 1]>>
!ring = !hopper.ring<2 x tensor<64x64xbf16>>

tile.kernel @endless(%m: !mem) attributes {num_warps = 8 : i32} {
  %ring = hopper.create_ring : !ring
  hopper.warp_specialize(%m, %ring : !mem, !ring)
    producer registers(24) (%a: !mem, %r: !ring) {
      %c0 = arith.constant 0 : i32
      %s0 = hopper.acquire %r[%c0] : !ring
      hopper.tma_load %a[%c0, %c0] to %s0 : !mem, <tensor<64x64xbf16>>
      hopper.commit %s0 : <tensor<64x64xbf16>>
    } consumer warpgroups(1) registers(240) (%a: !mem, %r: !ring) {
      %c0 = arith.constant 0 : i32
      %t0 = hopper.wait %r[%c0] : !ring
      %true = arith.constant true
      // expected-error @+1 {{doesn't end in program 0}}
      scf.while : () -> () {
        scf.condition(%true)
      } do {
        %t = hopper.slot %r[%c0] : !ring
        scf.yield
      }
      hopper.release %t0 : <tensor<64x64xbf16>>
    }
  tile.return
}

// -----

!mem = memref<?x64xbf16, strided<[?, 1]>>
!ring = !hopper.ring<2 x tensor<64x64xbf16>>

tile.kernel @unsigned_loop(%m: !mem) attributes {num_warps = 8 : i32} {
  %ring = hopper.create_ring : !ring
  hopper.warp_specialize(%m, %ring : !mem, !ring)
    producer registers(24) (%a: !mem, %r: !ring) {
      %c0 = arith.constant 0 : i32
      %s0 = hopper.acquire %r[%c0] : !ring
      hopper.tma_load %a[%c0, %c0] to %s0 : !mem, <tensor<64x64xbf16>>
      hopper.commit %s0 : <tensor<64x64xbf16>>
    } consumer warpgroups(1) registers(240) (%a: !mem, %r: !ring) {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      // expected-error @+1 {{depends on more than sizes and the program's number}}
      scf.for unsigned %i = %c0 to %c1 step %c1 : i32 {
        %t0 = hopper.wait %r[%i] : !ring
        hopper.release %t0 : <tensor<64x64xbf16>>
      }
    }
  tile.return
}

// -----

!mem = memref<?x64xbf16, strided<[?, 1]>>
!ring = !hopper.ring<2 x tensor<64x64xbf16>>

tile.kernel @region(%m: !mem) attributes {num_warps = 8 : i32} {
  %ring = hopper.create_ring : !ring
  hopper.warp_specialize(%m, %ring : !mem, !ring)
    producer registers(24) (%a: !mem, %r: !ring) {
      %c0 = arith.constant 0 : i32
      %s0 = hopper.acquire %r[%c0] : !ring
      hopper.tma_load %a[%c0, %c0] to %s0 : !mem, <tensor<64x64xbf16>>
      hopper.commit %s0 : <tensor<64x64xbf16>>
    } consumer warpgroups(1) registers(240) (%a: !mem, %r: !ring) {
      %c0 = arith.constant 0 : i32
      %t0 = hopper.wait %r[%c0] : !ring
      // expected-error @+1 {{can't contain operations on rings or products; the control flow of a role is scf.for, scf.while and scf.if}}
      scf.execute_region {
        hopper.release %t0 : <tensor<64x64xbf16>>
        scf.yield
      }
    }
  tile.return
}

// -----

!mem = memref<?x64xbf16, strided<[?, 1]>>
!ring = !hopper.ring<2 x tensor<64x64xbf16>>

tile.kernel @asked_again(%m: !mem) attributes {num_warps = 8 : i32} {
  %ring = hopper.create_ring : !ring
  hopper.warp_specialize(%m, %ring : !mem, !ring)
    producer registers(24) (%a: !mem, %r: !ring) {
      %first = hopper.next_tile : i32
      // expected-error @+1 {{asks for a tile after there was none left}}
      %second = hopper.next_tile : i32
      %c0 = arith.constant 0 : i32
      %s0 = hopper.acquire %r[%c0] : !ring
      hopper.tma_load %a[%c0, %c0] to %s0 : !mem, <tensor<64x64xbf16>>
      hopper.commit %s0 : <tensor<64x64xbf16>>
    } consumer warpgroups(1) registers(240) (%a: !mem, %r: !ring) {
      %c0 = arith.constant 0 : i32
      %t0 = hopper.wait %r[%c0] : !ring
      hopper.release %t0 : <tensor<64x64xbf16>>
    }
  tile.return
}

// -----

!mem = memref<?x64xbf16, strided<[?, 1]>>
!ring = !hopper.ring<2 x tensor<64x64xbf16>>

tile.kernel @not_asked(%m: !mem) attributes {num_warps = 8 : i32} {
  %ring = hopper.create_ring : !ring
  // expected-error @+1 {{stands in a persistent kernel, but doesn't ask for tiles until there is none left}}
  hopper.warp_specialize(%m, %ring : !mem, !ring)
    producer registers(24) (%a: !mem, %r: !ring) {
      %count = hopper.num_tiles : i32
      %c0 = arith.constant 0 : i32
      %s0 = hopper.acquire %r[%c0] : !ring
      hopper.tma_load %a[%c0, %c0] to %s0 : !mem, <tensor<64x64xbf16>>
      hopper.commit %s0 : <tensor<64x64xbf16>>
    } consumer warpgroups(1) registers(240) (%a: !mem, %r: !ring) {
      %c0 = arith.constant 0 : i32
      %t0 = hopper.wait %r[%c0] : !ring
      hopper.release %t0 : <tensor<64x64xbf16>>
    }
  tile.return
}

// -----

!mem = memref<?x64xbf16, strided<[?, 1]>>
!ring = !hopper.ring<2 x tensor<64x64xbf16>>
!numbers = !hopper.ring<2 x tensor<1xi32>>

tile.kernel @number_missing(%m: !mem) attributes {num_warps = 8 : i32} {
  %ring = hopper.create_ring : !ring
  %numbers = hopper.create_ring : !numbers
  hopper.warp_specialize(%m, %ring, %numbers : !mem, !ring, !numbers)
    producer registers(24) (%a: !mem, %r: !ring, %n: !numbers) {
      %c0 = arith.constant 0 : i32
      %s0 = hopper.acquire %r[%c0] : !ring
      hopper.tma_load %a[%c0, %c0] to %s0 : !mem, <tensor<64x64xbf16>>
      hopper.commit %s0 : <tensor<64x64xbf16>>
      %x = hopper.acquire %n[%c0] : !numbers
      // expected-error @+1 {{hands over tile 0 of ring 2 with nothing in it}}
      hopper.commit %x : <tensor<1xi32>>
    } consumer warpgroups(1) registers(240) (%a: !mem, %r: !ring, %n: !numbers) {
      %c0 = arith.constant 0 : i32
      %t0 = hopper.wait %r[%c0] : !ring
      hopper.release %t0 : <tensor<64x64xbf16>>
      %y = hopper.wait %n[%c0] : !numbers
      hopper.release %y : <tensor<1xi32>>
    }
  tile.return
}

// -----

!mem = memref<?x64xbf16, strided<[?, 1]>>
!ring = !hopper.ring<2 x tensor<64x64xbf16>>
!numbers = !hopper.ring<2 x tensor<1xi32>>

// The producer must post an end.
tile.kernel @number_never_comes(%m: !mem) attributes {num_warps = 8 : i32} {
  %ring = hopper.create_ring : !ring
  %numbers = hopper.create_ring : !numbers
  // expected-note @+1 {{the producer ends after 1 tiles of this ring}}
  hopper.warp_specialize(%m, %ring, %numbers : !mem, !ring, !numbers)
    producer registers(24) (%a: !mem, %r: !ring, %n: !numbers) {
      %c0 = arith.constant 0 : i32
      %s0 = hopper.acquire %r[%c0] : !ring
      hopper.tma_load %a[%c0, %c0] to %s0 : !mem, <tensor<64x64xbf16>>
      hopper.commit %s0 : <tensor<64x64xbf16>>
      %x = hopper.acquire %n[%c0] : !numbers
      hopper.put %c0 to %x : <tensor<1xi32>>
      hopper.commit %x : <tensor<1xi32>>
    } consumer warpgroups(1) registers(240) (%a: !mem, %r: !ring, %n: !numbers) {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %t0 = hopper.wait %r[%c0] : !ring
      hopper.release %t0 : <tensor<64x64xbf16>>
      %last = scf.while (%i = %c0) : (i32) -> i32 {
        // expected-error @+1 {{waits forever for tile 1 of ring 2}}
        %s = hopper.wait %n[%i] : !numbers
        %tile = hopper.get %s[%c0] : <tensor<1xi32>> -> i32
        hopper.release %s : <tensor<1xi32>>
        %more = arith.cmpi sge, %tile, %c0 : i32
        scf.condition(%more) %i : i32
      } do {
      ^bb0(%i: i32):
        %next = arith.addi %i, %c1 : i32
        scf.yield %next : i32
      }
    }
  tile.return
}

// -----

!mem = memref<?x64xi32, strided<[?, 1]>>
!numbers = !hopper.ring<2 x tensor<1xi32>>

tile.kernel @loaded_number(%m: !mem) attributes {num_warps = 8 : i32} {
  %numbers = hopper.create_ring : !numbers
  hopper.warp_specialize(%m, %numbers : !mem, !numbers)
    producer registers(24) (%a: !mem, %n: !numbers) {
      %c0 = arith.constant 0 : i32
      %s = hopper.acquire %n[%c0] : !numbers
      hopper.tma_load %a[%c0, %c0] to %s : !mem, <tensor<1xi32>>
      hopper.commit %s : <tensor<1xi32>>
    } consumer warpgroups(1) registers(240) (%a: !mem, %n: !numbers) {
      %c0 = arith.constant 0 : i32
      %s = hopper.wait %n[%c0] : !numbers
      // expected-error @+1 {{takes a number that the producer doesn't put}}
      %x = hopper.get %s[%c0] : <tensor<1xi32>> -> i32
      hopper.release %s : <tensor<1xi32>>
    }
  tile.return
}

// -----

!mem = memref<?x64xf32, strided<[?, 1]>>
!ring = !hopper.ring<2 x tensor<64x64xf32>>

tile.kernel @read_behind_release(%m: !mem) attributes {num_warps = 8 : i32} {
  %ring = hopper.create_ring : !ring
  hopper.warp_specialize(%m, %ring : !mem, !ring)
    producer registers(24) (%a: !mem, %r: !ring) {
      %c0 = arith.constant 0 : i32
      %s = hopper.acquire %r[%c0] : !ring
      hopper.tma_load %a[%c0, %c0] to %s : !mem, <tensor<64x64xf32>>
      hopper.commit %s : <tensor<64x64xf32>>
    } consumer warpgroups(1) registers(240) (%a: !mem, %r: !ring) {
      %c0 = arith.constant 0 : i32
      %s = hopper.wait %r[%c0] : !ring
      hopper.release %s : <tensor<64x64xf32>>
      // expected-error @+1 {{uses the slot of tile 0 of ring 1 after it has been given back}}
      %t = hopper.read %s : <tensor<64x64xf32>> -> tensor<64x64xf32>
      tile.store %t, %a[%c0, %c0] : tensor<64x64xf32>, !mem
    }
  tile.return
}

// -----

!mem = memref<?x64xf8E4M3FN, strided<[?, 1]>>
!tile = tensor<32x64xf8E4M3FN>
!turned = tensor<64x32xf8E4M3FN>
!staging = !hopper.ring<2 x !tile>
!ring = !hopper.ring<1 x !turned>

tile.kernel @product_of_transposer(%v: !mem) attributes {num_warps = 8 : i32} {
  %staging = hopper.create_ring : !staging
  %ring = hopper.create_ring : !ring
  hopper.warp_specialize(%v, %staging, %ring : !mem, !staging, !ring)
    producer registers(40) (%a: !mem, %in: !staging, %out: !ring) {
      %c0 = arith.constant 0 : i32
      %s0 = hopper.acquire %in[%c0] : !staging
      hopper.tma_load %a[%c0, %c0] to %s0 : !mem, <!tile>
      hopper.commit %s0 : <!tile>
    } transposer (%a: !mem, %in: !staging, %out: !ring) {
      %c0 = arith.constant 0 : i32
      // expected-error @+1 {{has no place in the transposer role}}
      %w = hopper.warpgroup_id : i32
      %s = hopper.wait %in[%c0] : !staging
      %t = hopper.acquire %out[%c0] : !ring
      hopper.transpose %s to %t : <!tile>, <!turned>
      hopper.commit %t : <!turned>
      hopper.release %s : <!tile>
    } consumer warpgroups(1) registers(232) (%a: !mem, %in: !staging, %out: !ring) {
      %c0 = arith.constant 0 : i32
      %t = hopper.wait %out[%c0] : !ring
      hopper.release %t : <!turned>
    }
  tile.return
}

// -----

!mem = memref<?x64xf8E4M3FN, strided<[?, 1]>>
!tile = tensor<32x64xf8E4M3FN>
!turned = tensor<64x32xf8E4M3FN>
!staging = !hopper.ring<2 x !tile>
!ring = !hopper.ring<1 x !turned>

tile.kernel @transpose_of_consumer(%v: !mem) attributes {num_warps = 8 : i32} {
  %staging = hopper.create_ring : !staging
  %ring = hopper.create_ring : !ring
  hopper.warp_specialize(%v, %staging, %ring : !mem, !staging, !ring)
    producer registers(40) (%a: !mem, %in: !staging, %out: !ring) {
      %c0 = arith.constant 0 : i32
      %s0 = hopper.acquire %in[%c0] : !staging
      hopper.tma_load %a[%c0, %c0] to %s0 : !mem, <!tile>
      hopper.commit %s0 : <!tile>
    } transposer (%a: !mem, %in: !staging, %out: !ring) {
      %c0 = arith.constant 0 : i32
      %s = hopper.wait %in[%c0] : !staging
      %t = hopper.acquire %out[%c0] : !ring
      hopper.transpose %s to %t : <!tile>, <!turned>
      hopper.commit %t : <!turned>
      hopper.release %s : <!tile>
    } consumer warpgroups(1) registers(232) (%a: !mem, %in: !staging, %out: !ring) {
      %c0 = arith.constant 0 : i32
      %t = hopper.wait %out[%c0] : !ring
      %s = hopper.slot %in[%c0] : !staging
      // expected-error @+1 {{has no place in the consumer role}}
      hopper.transpose %s to %t : <!tile>, <!turned>
      hopper.release %t : <!turned>
    }
  tile.return
}

// -----

!mem = memref<?x64xf8E4M3FN, strided<[?, 1]>>
!tile = tensor<32x64xf8E4M3FN>
!turned = tensor<64x32xf8E4M3FN>
!staging = !hopper.ring<2 x !tile>
!ring = !hopper.ring<1 x !turned>

tile.kernel @not_transposed(%v: !mem) attributes {num_warps = 8 : i32} {
  %staging = hopper.create_ring : !staging
  %ring = hopper.create_ring : !ring
  hopper.warp_specialize(%v, %staging, %ring : !mem, !staging, !ring)
    producer registers(40) (%a: !mem, %in: !staging, %out: !ring) {
      %c0 = arith.constant 0 : i32
      %s0 = hopper.acquire %in[%c0] : !staging
      hopper.tma_load %a[%c0, %c0] to %s0 : !mem, <!tile>
      hopper.commit %s0 : <!tile>
    } transposer (%a: !mem, %in: !staging, %out: !ring) {
      %c0 = arith.constant 0 : i32
      %s = hopper.wait %in[%c0] : !staging
      %t = hopper.acquire %out[%c0] : !ring
      // expected-error @+1 {{hands over tile 0 of ring 2 with nothing in it}}
      hopper.commit %t : <!turned>
      hopper.release %s : <!tile>
    } consumer warpgroups(1) registers(232) (%a: !mem, %in: !staging, %out: !ring) {
      %c0 = arith.constant 0 : i32
      %t = hopper.wait %out[%c0] : !ring
      hopper.release %t : <!turned>
    }
  tile.return
}

// -----

!mem = memref<?x64xf8E4M3FN, strided<[?, 1]>>
!tile = tensor<32x64xf8E4M3FN>
!turned = tensor<64x32xf8E4M3FN>
!staging = !hopper.ring<2 x !tile>
!ring = !hopper.ring<1 x !turned>

tile.kernel @transposed_late(%v: !mem) attributes {num_warps = 8 : i32} {
  %staging = hopper.create_ring : !staging
  %ring = hopper.create_ring : !ring
  hopper.warp_specialize(%v, %staging, %ring : !mem, !staging, !ring)
    producer registers(40) (%a: !mem, %in: !staging, %out: !ring) {
      %c0 = arith.constant 0 : i32
      %s0 = hopper.acquire %in[%c0] : !staging
      hopper.tma_load %a[%c0, %c0] to %s0 : !mem, <!tile>
      hopper.commit %s0 : <!tile>
    } transposer (%a: !mem, %in: !staging, %out: !ring) {
      %c0 = arith.constant 0 : i32
      %s = hopper.wait %in[%c0] : !staging
      %t = hopper.acquire %out[%c0] : !ring
      hopper.transpose %s to %t : <!tile>, <!turned>
      hopper.release %s : <!tile>
      // expected-error @+1 {{uses the slot of tile 0 of ring 1 after it has been given back}}
      hopper.transpose %s to %t : <!tile>, <!turned>
      hopper.commit %t : <!turned>
    } consumer warpgroups(1) registers(232) (%a: !mem, %in: !staging, %out: !ring) {
      %c0 = arith.constant 0 : i32
      %t = hopper.wait %out[%c0] : !ring
      hopper.release %t : <!turned>
    }
  tile.return
}

// -----

!mem = memref<?x64xf8E4M3FN, strided<[?, 1]>>
!tile = tensor<32x64xf8E4M3FN>
!turned = tensor<64x32xf8E4M3FN>
!staging = !hopper.ring<2 x !tile>
!ring = !hopper.ring<1 x !turned>

tile.kernel @commits_the_source(%v: !mem) attributes {num_warps = 8 : i32} {
  %staging = hopper.create_ring : !staging
  %ring = hopper.create_ring : !ring
  hopper.warp_specialize(%v, %staging, %ring : !mem, !staging, !ring)
    producer registers(40) (%a: !mem, %in: !staging, %out: !ring) {
      %c0 = arith.constant 0 : i32
      %s0 = hopper.acquire %in[%c0] : !staging
      hopper.tma_load %a[%c0, %c0] to %s0 : !mem, <!tile>
      hopper.commit %s0 : <!tile>
    } transposer (%a: !mem, %in: !staging, %out: !ring) {
      %c0 = arith.constant 0 : i32
      // expected-note @+1 {{here}}
      %s = hopper.wait %in[%c0] : !staging
      %t = hopper.acquire %out[%c0] : !ring
      hopper.transpose %s to %t : <!tile>, <!turned>
      // expected-error @+1 {{fills or hands over the slot of tile 0 of ring 1, which this role took to read it}}
      hopper.commit %s : <!tile>
      hopper.commit %t : <!turned>
    } consumer warpgroups(1) registers(232) (%a: !mem, %in: !staging, %out: !ring) {
      %c0 = arith.constant 0 : i32
      %t = hopper.wait %out[%c0] : !ring
      hopper.release %t : <!turned>
    }
  tile.return
}

// -----

!mem = memref<?x64xf8E4M3FN, strided<[?, 1]>>
!tile = tensor<32x64xf8E4M3FN>
!turned = tensor<64x32xf8E4M3FN>
!staging = !hopper.ring<2 x !tile>
!ring = !hopper.ring<1 x !turned>

tile.kernel @releases_the_target(%v: !mem) attributes {num_warps = 8 : i32} {
  %staging = hopper.create_ring : !staging
  %ring = hopper.create_ring : !ring
  hopper.warp_specialize(%v, %staging, %ring : !mem, !staging, !ring)
    producer registers(40) (%a: !mem, %in: !staging, %out: !ring) {
      %c0 = arith.constant 0 : i32
      %s0 = hopper.acquire %in[%c0] : !staging
      hopper.tma_load %a[%c0, %c0] to %s0 : !mem, <!tile>
      hopper.commit %s0 : <!tile>
    } transposer (%a: !mem, %in: !staging, %out: !ring) {
      %c0 = arith.constant 0 : i32
      %s = hopper.wait %in[%c0] : !staging
      // expected-note @+1 {{here}}
      %t = hopper.acquire %out[%c0] : !ring
      hopper.transpose %s to %t : <!tile>, <!turned>
      // expected-error @+1 {{reads or gives back the slot of tile 0 of ring 2, which this role took to fill it}}
      hopper.release %t : <!turned>
      hopper.release %s : <!tile>
    } consumer warpgroups(1) registers(232) (%a: !mem, %in: !staging, %out: !ring) {
      %c0 = arith.constant 0 : i32
      %t = hopper.wait %out[%c0] : !ring
      hopper.release %t : <!turned>
    }
  tile.return
}

// -----

!mem = memref<?x64xf8E4M3FN, strided<[?, 1]>>
!tile = tensor<32x64xf8E4M3FN>
!turned = tensor<64x32xf8E4M3FN>
!staging = !hopper.ring<2 x !tile>
!ring = !hopper.ring<1 x !turned>

tile.kernel @two_fillers(%v: !mem) attributes {num_warps = 8 : i32} {
  %staging = hopper.create_ring : !staging
  %ring = hopper.create_ring : !ring
  hopper.warp_specialize(%v, %staging, %ring : !mem, !staging, !ring)
    producer registers(40) (%a: !mem, %in: !staging, %out: !ring) {
      %c0 = arith.constant 0 : i32
      %s0 = hopper.acquire %in[%c0] : !staging
      hopper.tma_load %a[%c0, %c0] to %s0 : !mem, <!tile>
      hopper.commit %s0 : <!tile>
      %s1 = hopper.acquire %out[%c0] : !ring
      hopper.commit %s1 : <!turned>
    } transposer (%a: !mem, %in: !staging, %out: !ring) {
      %c0 = arith.constant 0 : i32
      %s = hopper.wait %in[%c0] : !staging
      // expected-error @+1 {{fills a ring that the producer fills too; give the transposer one of its own}}
      %t = hopper.acquire %out[%c0] : !ring
      hopper.transpose %s to %t : <!tile>, <!turned>
      hopper.commit %t : <!turned>
      hopper.release %s : <!tile>
    } consumer warpgroups(1) registers(232) (%a: !mem, %in: !staging, %out: !ring) {
      %c0 = arith.constant 0 : i32
      %t = hopper.wait %out[%c0] : !ring
      hopper.release %t : <!turned>
    }
  tile.return
}

// -----

!mem = memref<?x64xf8E4M3FN, strided<[?, 1]>>
!tile = tensor<32x64xf8E4M3FN>
!turned = tensor<64x32xf8E4M3FN>
!staging = !hopper.ring<2 x !tile>
!ring = !hopper.ring<1 x !turned>

tile.kernel @leaves_a_tile(%v: !mem) attributes {num_warps = 8 : i32} {
  %staging = hopper.create_ring : !staging
  %ring = hopper.create_ring : !ring
  hopper.warp_specialize(%v, %staging, %ring : !mem, !staging, !ring)
    producer registers(40) (%a: !mem, %in: !staging, %out: !ring) {
      %c0 = arith.constant 0 : i32
      %s0 = hopper.acquire %in[%c0] : !staging
      hopper.tma_load %a[%c0, %c0] to %s0 : !mem, <!tile>
      hopper.commit %s0 : <!tile>
      %c1 = arith.constant 1 : i32
      // expected-error @+1 {{fills 2 tiles of ring 1, but the transposer takes 1}}
      %s1 = hopper.acquire %in[%c1] : !staging
      hopper.tma_load %a[%c0, %c0] to %s1 : !mem, <!tile>
      hopper.commit %s1 : <!tile>
    } transposer (%a: !mem, %in: !staging, %out: !ring) {
      %c0 = arith.constant 0 : i32
      %s = hopper.wait %in[%c0] : !staging
      %t = hopper.acquire %out[%c0] : !ring
      hopper.transpose %s to %t : <!tile>, <!turned>
      hopper.commit %t : <!turned>
      hopper.release %s : <!tile>
    } consumer warpgroups(1) registers(232) (%a: !mem, %in: !staging, %out: !ring) {
      %c0 = arith.constant 0 : i32
      %t = hopper.wait %out[%c0] : !ring
      hopper.release %t : <!turned>
    }
  tile.return
}

// -----

!mem = memref<?x64xf8E4M3FN, strided<[?, 1]>>
!tile = tensor<32x64xf8E4M3FN>
!turned = tensor<64x32xf8E4M3FN>
!staging = !hopper.ring<2 x !tile>
!ring = !hopper.ring<1 x !turned>

tile.kernel @never_loaded(%v: !mem) attributes {num_warps = 8 : i32} {
  %staging = hopper.create_ring : !staging
  %ring = hopper.create_ring : !ring
  // expected-note @+1 {{the producer ends after 1 tiles of this ring}}
  hopper.warp_specialize(%v, %staging, %ring : !mem, !staging, !ring)
    producer registers(40) (%a: !mem, %in: !staging, %out: !ring) {
      %c0 = arith.constant 0 : i32
      %s0 = hopper.acquire %in[%c0] : !staging
      hopper.tma_load %a[%c0, %c0] to %s0 : !mem, <!tile>
      hopper.commit %s0 : <!tile>
    } transposer (%a: !mem, %in: !staging, %out: !ring) {
      %c0 = arith.constant 0 : i32
      %s0 = hopper.wait %in[%c0] : !staging
      %t0 = hopper.acquire %out[%c0] : !ring
      hopper.transpose %s0 to %t0 : <!tile>, <!turned>
      hopper.commit %t0 : <!turned>
      hopper.release %s0 : <!tile>
      %c1 = arith.constant 1 : i32
      // expected-error @+1 {{waits forever for tile 1 of ring 1}}
      %s1 = hopper.wait %in[%c1] : !staging
      hopper.release %s1 : <!tile>
    } consumer warpgroups(1) registers(232) (%a: !mem, %in: !staging, %out: !ring) {
      %c0 = arith.constant 0 : i32
      %t = hopper.wait %out[%c0] : !ring
      hopper.release %t : <!turned>
    }
  tile.return
}

// -----

!mem = memref<?x64xf8E4M3FN, strided<[?, 1]>>
!tile = tensor<32x64xf8E4M3FN>
!turned = tensor<64x32xf8E4M3FN>
!staging = !hopper.ring<2 x !tile>
!ring = !hopper.ring<1 x !turned>

tile.kernel @never_released(%v: !mem) attributes {num_warps = 8 : i32} {
  %staging = hopper.create_ring : !staging
  %ring = hopper.create_ring : !ring
  hopper.warp_specialize(%v, %staging, %ring : !mem, !staging, !ring)
    producer registers(40) (%a: !mem, %in: !staging, %out: !ring) {
      %c0 = arith.constant 0 : i32
      %s0 = hopper.acquire %in[%c0] : !staging
      hopper.tma_load %a[%c0, %c0] to %s0 : !mem, <!tile>
      hopper.commit %s0 : <!tile>
    } transposer (%a: !mem, %in: !staging, %out: !ring) {
      %c0 = arith.constant 0 : i32
      %s0 = hopper.wait %in[%c0] : !staging
      %t0 = hopper.acquire %out[%c0] : !ring
      hopper.transpose %s0 to %t0 : <!tile>, <!turned>
      hopper.commit %t0 : <!turned>
      %c1 = arith.constant 1 : i32
      // expected-error @+2 {{waits forever for an empty slot for tile 1 of ring 2}}
      // expected-note @+1 {{the transposer waits here for an empty slot for tile 1 of ring 2, which warpgroup 0 hasn't released}}
      %t1 = hopper.acquire %out[%c1] : !ring
      hopper.transpose %s0 to %t1 : <!tile>, <!turned>
      hopper.commit %t1 : <!turned>
      hopper.release %s0 : <!tile>
    } consumer warpgroups(1) registers(232) (%a: !mem, %in: !staging, %out: !ring) {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %n = tile.program_id : i32
      %z = arith.muli %n, %c0 : i32
      scf.for %i = %c0 to %z step %c1 : i32 {
        %t = hopper.wait %out[%i] : !ring
        hopper.release %t : <!turned>
      }
    }
  tile.return
}

// -----

!mem = memref<?x64xf8E4M3FN, strided<[?, 1]>>
!tile = tensor<32x64xf8E4M3FN>
!turned = tensor<64x32xf8E4M3FN>
!staging = !hopper.ring<1 x !tile>
!ring = !hopper.ring<1 x !turned>

tile.kernel @chain(%v: !mem) attributes {num_warps = 8 : i32} {
  %staging = hopper.create_ring : !staging
  %ring = hopper.create_ring : !ring
  %keys = hopper.create_ring : !staging
  hopper.warp_specialize(%v, %staging, %ring, %keys : !mem, !staging, !ring, !staging)
    producer registers(40) (%a: !mem, %in: !staging, %out: !ring, %k: !staging) {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %k0 = hopper.acquire %k[%c0] : !staging
      hopper.tma_load %a[%c0, %c0] to %k0 : !mem, <!tile>
      hopper.commit %k0 : <!tile>
      // expected-note @+1 {{the producer waits here for an empty slot for tile 1 of ring 3, which warpgroup 0 hasn't released}}
      %k1 = hopper.acquire %k[%c1] : !staging
      hopper.tma_load %a[%c0, %c0] to %k1 : !mem, <!tile>
      hopper.commit %k1 : <!tile>
      %s0 = hopper.acquire %in[%c0] : !staging
      hopper.tma_load %a[%c0, %c0] to %s0 : !mem, <!tile>
      hopper.commit %s0 : <!tile>
    } transposer (%a: !mem, %in: !staging, %out: !ring, %k: !staging) {
      %c0 = arith.constant 0 : i32
      // expected-note @+1 {{the transposer waits here for tile 0 of ring 1}}
      %s = hopper.wait %in[%c0] : !staging
      %t = hopper.acquire %out[%c0] : !ring
      hopper.transpose %s to %t : <!tile>, <!turned>
      hopper.commit %t : <!turned>
      hopper.release %s : <!tile>
    } consumer warpgroups(1) registers(232) (%a: !mem, %in: !staging, %out: !ring, %k: !staging) {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %k0 = hopper.wait %k[%c0] : !staging
      // expected-error @+1 {{waits forever for tile 0 of ring 2}}
      %t = hopper.wait %out[%c0] : !ring
      hopper.release %t : <!turned>
      hopper.release %k0 : <!tile>
      %k1 = hopper.wait %k[%c1] : !staging
      hopper.release %k1 : <!tile>
    }
  tile.return
}
