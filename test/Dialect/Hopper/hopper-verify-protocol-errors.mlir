// RUN: attn-opt %s --pass-pipeline='builtin.module(tile.kernel(hopper-verify-protocol))' --split-input-file --verify-diagnostics

!mem = memref<?x64xbf16, strided<[?, 1]>>

tile.kernel @registers(%q: !mem) attributes {num_warps = 12 : i32} {
  %ring = hopper.create_ring : !hopper.ring<2 x tensor<64x64xbf16>>
  // expected-error @+1 {{gives its threads 65536 registers, but a launch of 384 threads allocates 64512: setmaxnreg would wait forever}}
  hopper.warp_specialize(%q, %ring : !mem, !hopper.ring<2 x tensor<64x64xbf16>>)
    producer registers(32) (%a: !mem, %r: !hopper.ring<2 x tensor<64x64xbf16>>) {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %c2 = arith.constant 2 : i32
      %s0 = hopper.acquire %r[%c0] : !hopper.ring<2 x tensor<64x64xbf16>>
      hopper.commit %s0 : <tensor<64x64xbf16>>
    } consumer warpgroups(2) registers(240) (%a: !mem, %r: !hopper.ring<2 x tensor<64x64xbf16>>) {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %t0 = hopper.wait %r[%c0] : !hopper.ring<2 x tensor<64x64xbf16>>
      hopper.release %t0 : <tensor<64x64xbf16>>
    }
  tile.return
}

// -----

!mem = memref<?x64xbf16, strided<[?, 1]>>

tile.kernel @wrong_role(%q: !mem) attributes {num_warps = 8 : i32} {
  %ring = hopper.create_ring : !hopper.ring<2 x tensor<64x64xbf16>>
  hopper.warp_specialize(%q, %ring : !mem, !hopper.ring<2 x tensor<64x64xbf16>>)
    producer registers(24) (%a: !mem, %r: !hopper.ring<2 x tensor<64x64xbf16>>) {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %c2 = arith.constant 2 : i32
      %s0 = hopper.acquire %r[%c0] : !hopper.ring<2 x tensor<64x64xbf16>>
      hopper.commit %s0 : <tensor<64x64xbf16>>
      // expected-error @+1 {{has no place in the producer role}}
      %t = hopper.wait %r[%c0] : !hopper.ring<2 x tensor<64x64xbf16>>
    } consumer warpgroups(1) registers(240) (%a: !mem, %r: !hopper.ring<2 x tensor<64x64xbf16>>) {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %t0 = hopper.wait %r[%c0] : !hopper.ring<2 x tensor<64x64xbf16>>
      hopper.release %t0 : <tensor<64x64xbf16>>
    }
  tile.return
}

// -----

!mem = memref<?x64xbf16, strided<[?, 1]>>

tile.kernel @no_commit(%q: !mem) attributes {num_warps = 8 : i32} {
  %ring = hopper.create_ring : !hopper.ring<2 x tensor<64x64xbf16>>
  hopper.warp_specialize(%q, %ring : !mem, !hopper.ring<2 x tensor<64x64xbf16>>)
    producer registers(24) (%a: !mem, %r: !hopper.ring<2 x tensor<64x64xbf16>>) {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %c2 = arith.constant 2 : i32
      // expected-error @+1 {{takes a slot that hopper.commit doesn't give back in the same block}}
      %s0 = hopper.acquire %r[%c0] : !hopper.ring<2 x tensor<64x64xbf16>>
    } consumer warpgroups(1) registers(240) (%a: !mem, %r: !hopper.ring<2 x tensor<64x64xbf16>>) {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %t0 = hopper.wait %r[%c0] : !hopper.ring<2 x tensor<64x64xbf16>>
      hopper.release %t0 : <tensor<64x64xbf16>>
    }
  tile.return
}

// -----

!mem = memref<?x64xbf16, strided<[?, 1]>>

tile.kernel @no_release(%q: !mem) attributes {num_warps = 8 : i32} {
  %ring = hopper.create_ring : !hopper.ring<2 x tensor<64x64xbf16>>
  hopper.warp_specialize(%q, %ring : !mem, !hopper.ring<2 x tensor<64x64xbf16>>)
    producer registers(24) (%a: !mem, %r: !hopper.ring<2 x tensor<64x64xbf16>>) {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %c2 = arith.constant 2 : i32
      %s0 = hopper.acquire %r[%c0] : !hopper.ring<2 x tensor<64x64xbf16>>
      hopper.commit %s0 : <tensor<64x64xbf16>>
    } consumer warpgroups(1) registers(240) (%a: !mem, %r: !hopper.ring<2 x tensor<64x64xbf16>>) {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      // expected-error @+1 {{takes a slot that hopper.release doesn't give back in the same block}}
      %t0 = hopper.wait %r[%c0] : !hopper.ring<2 x tensor<64x64xbf16>>
    }
  tile.return
}

// -----

!mem = memref<?x64xbf16, strided<[?, 1]>>

tile.kernel @twice(%q: !mem) attributes {num_warps = 8 : i32} {
  %ring = hopper.create_ring : !hopper.ring<2 x tensor<64x64xbf16>>
  hopper.warp_specialize(%q, %ring : !mem, !hopper.ring<2 x tensor<64x64xbf16>>)
    producer registers(24) (%a: !mem, %r: !hopper.ring<2 x tensor<64x64xbf16>>) {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %c2 = arith.constant 2 : i32
      %s0 = hopper.acquire %r[%c0] : !hopper.ring<2 x tensor<64x64xbf16>>
      hopper.commit %s0 : <tensor<64x64xbf16>>
    } consumer warpgroups(1) registers(240) (%a: !mem, %r: !hopper.ring<2 x tensor<64x64xbf16>>) {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %t0 = hopper.wait %r[%c0] : !hopper.ring<2 x tensor<64x64xbf16>>
      // expected-error @+1 {{gives a slot back for the second time}}
      hopper.release %t0 : <tensor<64x64xbf16>>
      hopper.release %t0 : <tensor<64x64xbf16>>
    }
  tile.return
}

// -----

!mem = memref<?x64xbf16, strided<[?, 1]>>

tile.kernel @use_after_commit(%q: !mem) attributes {num_warps = 8 : i32} {
  %ring = hopper.create_ring : !hopper.ring<2 x tensor<64x64xbf16>>
  hopper.warp_specialize(%q, %ring : !mem, !hopper.ring<2 x tensor<64x64xbf16>>)
    producer registers(24) (%a: !mem, %r: !hopper.ring<2 x tensor<64x64xbf16>>) {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %c2 = arith.constant 2 : i32
      %s0 = hopper.acquire %r[%c0] : !hopper.ring<2 x tensor<64x64xbf16>>
      hopper.commit %s0 : <tensor<64x64xbf16>>
      // expected-error @+1 {{uses a slot that has been given back}}
      hopper.tma_load %a[%c0, %c0] to %s0 : !mem, <tensor<64x64xbf16>>
    } consumer warpgroups(1) registers(240) (%a: !mem, %r: !hopper.ring<2 x tensor<64x64xbf16>>) {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %t0 = hopper.wait %r[%c0] : !hopper.ring<2 x tensor<64x64xbf16>>
      hopper.release %t0 : <tensor<64x64xbf16>>
    }
  tile.return
}

// -----

!mem = memref<?x64xbf16, strided<[?, 1]>>

tile.kernel @still_read(%q: !mem) attributes {num_warps = 8 : i32} {
  %ring = hopper.create_ring : !hopper.ring<2 x tensor<64x64xbf16>>
  hopper.warp_specialize(%q, %ring : !mem, !hopper.ring<2 x tensor<64x64xbf16>>)
    producer registers(24) (%a: !mem, %r: !hopper.ring<2 x tensor<64x64xbf16>>) {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %c2 = arith.constant 2 : i32
      %s0 = hopper.acquire %r[%c0] : !hopper.ring<2 x tensor<64x64xbf16>>
      hopper.commit %s0 : <tensor<64x64xbf16>>
    } consumer warpgroups(1) registers(240) (%a: !mem, %r: !hopper.ring<2 x tensor<64x64xbf16>>) {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %t0 = hopper.wait %r[%c0] : !hopper.ring<2 x tensor<64x64xbf16>>
      // expected-note @+1 {{the product}}
      %s = hopper.wgmma %t0, %t0 : !hopper.slot<tensor<64x64xbf16>>, <tensor<64x64xbf16>> -> <tensor<64x64xf32>>
      // expected-error @+1 {{gives a slot back while a product may read it}}
      hopper.release %t0 : <tensor<64x64xbf16>>
      %x = hopper.wgmma_wait 0, %s : <tensor<64x64xf32>> -> tensor<64x64xf32>
    }
  tile.return
}

// -----

!mem = memref<?x64xbf16, strided<[?, 1]>>

tile.kernel @in_flight(%q: !mem) attributes {num_warps = 8 : i32} {
  %ring = hopper.create_ring : !hopper.ring<2 x tensor<64x64xbf16>>
  hopper.warp_specialize(%q, %ring : !mem, !hopper.ring<2 x tensor<64x64xbf16>>)
    producer registers(24) (%a: !mem, %r: !hopper.ring<2 x tensor<64x64xbf16>>) {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %c2 = arith.constant 2 : i32
      %s0 = hopper.acquire %r[%c0] : !hopper.ring<2 x tensor<64x64xbf16>>
      hopper.commit %s0 : <tensor<64x64xbf16>>
    } consumer warpgroups(1) registers(240) (%a: !mem, %r: !hopper.ring<2 x tensor<64x64xbf16>>) {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %t0 = hopper.wait %r[%c0] : !hopper.ring<2 x tensor<64x64xbf16>>
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

tile.kernel @never_waited(%q: !mem) attributes {num_warps = 8 : i32} {
  %ring = hopper.create_ring : !hopper.ring<2 x tensor<64x64xbf16>>
  hopper.warp_specialize(%q, %ring : !mem, !hopper.ring<2 x tensor<64x64xbf16>>)
    producer registers(24) (%a: !mem, %r: !hopper.ring<2 x tensor<64x64xbf16>>) {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %c2 = arith.constant 2 : i32
      %s0 = hopper.acquire %r[%c0] : !hopper.ring<2 x tensor<64x64xbf16>>
      hopper.commit %s0 : <tensor<64x64xbf16>>
    } consumer warpgroups(1) registers(240) (%a: !mem, %r: !hopper.ring<2 x tensor<64x64xbf16>>) {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %t0 = hopper.wait %r[%c0] : !hopper.ring<2 x tensor<64x64xbf16>>
      // expected-error @+1 {{must be waited for, or accumulated to, exactly once}}
      %s = hopper.wgmma %t0, %t0 : !hopper.slot<tensor<64x64xbf16>>, <tensor<64x64xbf16>> -> <tensor<64x64xf32>>
      hopper.release %t0 : <tensor<64x64xbf16>>
    }
  tile.return
}

// -----

!mem = memref<?x64xbf16, strided<[?, 1]>>

tile.kernel @left_over(%q: !mem) attributes {num_warps = 8 : i32} {
  %ring = hopper.create_ring : !hopper.ring<2 x tensor<64x64xbf16>>
  hopper.warp_specialize(%q, %ring : !mem, !hopper.ring<2 x tensor<64x64xbf16>>)
    producer registers(24) (%a: !mem, %r: !hopper.ring<2 x tensor<64x64xbf16>>) {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %c2 = arith.constant 2 : i32
      %s0 = hopper.acquire %r[%c0] : !hopper.ring<2 x tensor<64x64xbf16>>
      hopper.commit %s0 : <tensor<64x64xbf16>>
      // expected-error @+1 {{fills 2 tiles of ring 1, but the consumers take 1, in program 0}}
      %s1 = hopper.acquire %r[%c1] : !hopper.ring<2 x tensor<64x64xbf16>>
      hopper.commit %s1 : <tensor<64x64xbf16>>
    } consumer warpgroups(1) registers(240) (%a: !mem, %r: !hopper.ring<2 x tensor<64x64xbf16>>) {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %t0 = hopper.wait %r[%c0] : !hopper.ring<2 x tensor<64x64xbf16>>
      hopper.release %t0 : <tensor<64x64xbf16>>
    }
  tile.return
}

// -----

!mem = memref<?x64xbf16, strided<[?, 1]>>

tile.kernel @never_filled(%q: !mem) attributes {num_warps = 8 : i32} {
  %ring = hopper.create_ring : !hopper.ring<2 x tensor<64x64xbf16>>
  hopper.warp_specialize(%q, %ring : !mem, !hopper.ring<2 x tensor<64x64xbf16>>)
    producer registers(24) (%a: !mem, %r: !hopper.ring<2 x tensor<64x64xbf16>>) {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %c2 = arith.constant 2 : i32
      %s0 = hopper.acquire %r[%c0] : !hopper.ring<2 x tensor<64x64xbf16>>
      hopper.commit %s0 : <tensor<64x64xbf16>>
    } consumer warpgroups(1) registers(240) (%a: !mem, %r: !hopper.ring<2 x tensor<64x64xbf16>>) {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %t0 = hopper.wait %r[%c0] : !hopper.ring<2 x tensor<64x64xbf16>>
      hopper.release %t0 : <tensor<64x64xbf16>>
      // expected-error @+1 {{waits forever for tile 1 of ring 1}}
      %t1 = hopper.wait %r[%c1] : !hopper.ring<2 x tensor<64x64xbf16>>
      hopper.release %t1 : <tensor<64x64xbf16>>
    }
  tile.return
}

// -----

!mem = memref<?x64xbf16, strided<[?, 1]>>

tile.kernel @out_of_turn(%q: !mem) attributes {num_warps = 8 : i32} {
  %ring = hopper.create_ring : !hopper.ring<2 x tensor<64x64xbf16>>
  hopper.warp_specialize(%q, %ring : !mem, !hopper.ring<2 x tensor<64x64xbf16>>)
    producer registers(24) (%a: !mem, %r: !hopper.ring<2 x tensor<64x64xbf16>>) {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %c2 = arith.constant 2 : i32
      %s0 = hopper.acquire %r[%c0] : !hopper.ring<2 x tensor<64x64xbf16>>
      hopper.commit %s0 : <tensor<64x64xbf16>>
      // expected-error @+1 {{handles tile 2 of ring 1 where tile 1 is next}}
      %s2 = hopper.acquire %r[%c2] : !hopper.ring<2 x tensor<64x64xbf16>>
      hopper.commit %s2 : <tensor<64x64xbf16>>
    } consumer warpgroups(1) registers(240) (%a: !mem, %r: !hopper.ring<2 x tensor<64x64xbf16>>) {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %t0 = hopper.wait %r[%c0] : !hopper.ring<2 x tensor<64x64xbf16>>
      hopper.release %t0 : <tensor<64x64xbf16>>
      %t1 = hopper.wait %r[%c1] : !hopper.ring<2 x tensor<64x64xbf16>>
      hopper.release %t1 : <tensor<64x64xbf16>>
    }
  tile.return
}

// -----

!mem = memref<?x64xbf16, strided<[?, 1]>>

tile.kernel @deadlock(%q: !mem) attributes {num_warps = 8 : i32} {
  %ring = hopper.create_ring : !hopper.ring<1 x tensor<64x64xbf16>>
  hopper.warp_specialize(%q, %ring : !mem, !hopper.ring<1 x tensor<64x64xbf16>>)
    producer registers(24) (%a: !mem, %r: !hopper.ring<1 x tensor<64x64xbf16>>) {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %c2 = arith.constant 2 : i32
      %s0 = hopper.acquire %r[%c0] : !hopper.ring<1 x tensor<64x64xbf16>>
      // expected-note @+1 {{the producer waits here for an empty slot for tile 1 of ring 1}}
      %s1 = hopper.acquire %r[%c1] : !hopper.ring<1 x tensor<64x64xbf16>>
      hopper.commit %s0 : <tensor<64x64xbf16>>
      hopper.commit %s1 : <tensor<64x64xbf16>>
    } consumer warpgroups(1) registers(240) (%a: !mem, %r: !hopper.ring<1 x tensor<64x64xbf16>>) {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      // expected-error @+1 {{waits forever for tile 0 of ring 1}}
      %t0 = hopper.wait %r[%c0] : !hopper.ring<1 x tensor<64x64xbf16>>
      hopper.release %t0 : <tensor<64x64xbf16>>
      %t1 = hopper.wait %r[%c1] : !hopper.ring<1 x tensor<64x64xbf16>>
      hopper.release %t1 : <tensor<64x64xbf16>>
    }
  tile.return
}

// -----

!mem = memref<?x64xbf16, strided<[?, 1]>>

tile.kernel @escapes(%q: !mem) attributes {num_warps = 8 : i32} {
  %ring = hopper.create_ring : !hopper.ring<2 x tensor<64x64xbf16>>
  hopper.warp_specialize(%q, %ring : !mem, !hopper.ring<2 x tensor<64x64xbf16>>)
    producer registers(24) (%a: !mem, %r: !hopper.ring<2 x tensor<64x64xbf16>>) {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %c2 = arith.constant 2 : i32
      %s0 = hopper.acquire %r[%c0] : !hopper.ring<2 x tensor<64x64xbf16>>
      hopper.commit %s0 : <tensor<64x64xbf16>>
    } consumer warpgroups(1) registers(240) (%a: !mem, %r: !hopper.ring<2 x tensor<64x64xbf16>>) {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %t0 = hopper.wait %r[%c0] : !hopper.ring<2 x tensor<64x64xbf16>>
      %true = arith.constant true
      // expected-error @+1 {{leaves its block while it is pending}}
      %s = hopper.wgmma %t0, %t0 : !hopper.slot<tensor<64x64xbf16>>, <tensor<64x64xbf16>> -> <tensor<64x64xf32>>
      scf.if %true {
        %x = hopper.wgmma_wait 0, %s : <tensor<64x64xf32>> -> tensor<64x64xf32>
      }
      hopper.release %t0 : <tensor<64x64xbf16>>
    }
  tile.return
}

// -----

!mem = memref<?x64xbf16, strided<[?, 1]>>

tile.kernel @data(%q: !mem) attributes {num_warps = 8 : i32} {
  %ring = hopper.create_ring : !hopper.ring<2 x tensor<64x64xbf16>>
  hopper.warp_specialize(%q, %ring : !mem, !hopper.ring<2 x tensor<64x64xbf16>>)
    producer registers(24) (%a: !mem, %r: !hopper.ring<2 x tensor<64x64xbf16>>) {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %c2 = arith.constant 2 : i32
      %s0 = hopper.acquire %r[%c0] : !hopper.ring<2 x tensor<64x64xbf16>>
      hopper.commit %s0 : <tensor<64x64xbf16>>
    } consumer warpgroups(1) registers(240) (%a: !mem, %r: !hopper.ring<2 x tensor<64x64xbf16>>) {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %z = tile.iota : tensor<1xi32>
      %zero = arith.constant 0 : index
      %e = tensor.extract %z[%zero] : tensor<1xi32>
      // expected-error @+1 {{depends on more than sizes and the program's number}}
      %t0 = hopper.wait %r[%e] : !hopper.ring<2 x tensor<64x64xbf16>>
      hopper.release %t0 : <tensor<64x64xbf16>>
    }
  tile.return
}
