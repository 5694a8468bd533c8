// RUN: attn-opt %s --pass-pipeline='builtin.module(tile.kernel(hopper-verify-protocol))' | FileCheck %s
// RUN: sed 's/<pipeline = overlap>/<pipeline = simple>/' %S/../../Conversion/TileToHopper/convert-tile-to-hopper.mlir \
// RUN:   | attn-opt --pass-pipeline='builtin.module(tile.kernel(convert-tile-to-hopper,hopper-verify-protocol))'
// RUN: attn-opt %S/../../Conversion/TileToHopper/convert-tile-to-hopper.mlir \
// RUN:   --pass-pipeline='builtin.module(tile.kernel(convert-tile-to-hopper,hopper-verify-protocol))'
// RUN: sed 's/<pipeline = overlap>/<pipeline = ahead, persistent = true, q_stages = 2, tma_store = true>/' %S/../../Conversion/TileToHopper/convert-tile-to-hopper.mlir \
// RUN:   | attn-opt --pass-pipeline='builtin.module(tile.kernel(convert-tile-to-hopper,hopper-verify-protocol))'
// A branch on tiles that does nothing to rings doesn't matter.
// RUN: sed 's/<pipeline = overlap>/<pipeline = overlap, lazy_rescale = true>/' %S/../../Conversion/TileToHopper/convert-tile-to-hopper.mlir \
// RUN:   | attn-opt --pass-pipeline='builtin.module(tile.kernel(tile-defer-rescale,convert-tile-to-hopper,hopper-verify-protocol))' \
// RUN:   | FileCheck %s --check-prefix=DEFERRED
// DEFERRED: tile.any_exceeds

!mem = memref<?x64xbf16, strided<[?, 1]>>
!tile = tensor<64x64xbf16>
!ring = !hopper.ring<2 x !tile>
!slot = !hopper.slot<!tile>
!pending = !hopper.pending<tensor<64x64xf32>>
!numbers = !hopper.ring<2 x tensor<1xi32>>

!floats = memref<?xf32>

// Both roles decide by the same float whether there are tiles. Folders have no
// rsqrt, which is some number then.
// CHECK-LABEL: tile.kernel @floats
tile.kernel @floats(%k: !mem, %f: !floats) attributes {num_warps = 8 : i32} {
  %ring = hopper.create_ring : !ring
  hopper.warp_specialize(%k, %f, %ring : !mem, !floats, !ring)
    producer registers(24) (%b: !mem, %g: !floats, %r: !ring) {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %c8 = arith.constant 8 : i32
      %limit = arith.constant 3.0 : f32
      %x = tile.gather %g[%c1] : !floats, (i32) -> f32
      %y = math.rsqrt %x : f32
      %sum = arith.addf %x, %y : f32
      %any = arith.cmpf olt, %sum, %limit : f32
      %n = arith.select %any, %c8, %c0 : i32
      scf.for %i = %c0 to %n step %c1 : i32 {
        %slot = hopper.acquire %r[%i] : !ring
        hopper.tma_load %b[%i, %c0] to %slot : !mem, <!tile>
        hopper.commit %slot : <!tile>
      }
    } consumer warpgroups(1) registers(240) (%b: !mem, %g: !floats, %r: !ring) {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %c8 = arith.constant 8 : i32
      %limit = arith.constant 3.0 : f32
      %x = tile.gather %g[%c1] : !floats, (i32) -> f32
      %y = math.rsqrt %x : f32
      %sum = arith.addf %x, %y : f32
      %any = arith.cmpf olt, %sum, %limit : f32
      %n = arith.select %any, %c8, %c0 : i32
      scf.for %i = %c0 to %n step %c1 : i32 {
        %slot = hopper.wait %r[%i] : !ring
        hopper.release %slot : <!tile>
      }
    }
  tile.return
}

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
        hopper.tma_load %b[%i, %c0] to %slot : !mem, <!tile>
        hopper.commit %slot : <!tile>
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
      %wide = arith.extsi %up : i32 to i48
      // Folding this changes it before it yields a number.
      %wider = arith.extsi %wide : i48 to i64
      %rounded = arith.trunci %wider : i64 to i32
      %tiles = arith.divsi %rounded, %c64 : i32
      scf.for %i = %c0 to %tiles step %c1 : i32 {
        %slot = hopper.wait %r[%i] : !ring
        hopper.release %slot : <!tile>
      }
    }
  tile.return
}

// A product and its slot go from step to step.
// CHECK-LABEL: tile.kernel @carried
tile.kernel @carried(%q: !mem) attributes {num_warps = 8 : i32} {
  %ring = hopper.create_ring : !ring
  hopper.warp_specialize(%q, %ring : !mem, !ring)
    producer registers(24) (%a: !mem, %r: !ring) {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %c5 = arith.constant 5 : i32
      scf.for %i = %c0 to %c5 step %c1 : i32 {
        %s = hopper.acquire %r[%i] : !ring
        hopper.tma_load %a[%c0, %c0] to %s : !mem, <!tile>
        hopper.commit %s : <!tile>
      }
    } consumer warpgroups(1) registers(240) (%a: !mem, %r: !ring) {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %c5 = arith.constant 5 : i32
      %t0 = hopper.wait %r[%c0] : !ring
      %p0 = hopper.wgmma %t0, %t0 : !slot, <!tile> -> <tensor<64x64xf32>>
      %slot, %pending = scf.for %i = %c1 to %c5 step %c1 iter_args(%s = %t0, %p = %p0) -> (!slot, !pending) : i32 {
        %t = hopper.wait %r[%i] : !ring
        %next = hopper.wgmma %t, %t : !slot, <!tile> -> <tensor<64x64xf32>>
        %x = hopper.wgmma_wait 1, %p : <tensor<64x64xf32>> -> tensor<64x64xf32>
        hopper.release %s : <!tile>
        %same = hopper.slot %r[%i] : !ring
        scf.yield %same, %next : !slot, !pending
      }
      %x = hopper.wgmma_wait 0, %pending : <tensor<64x64xf32>> -> tensor<64x64xf32>
      hopper.release %slot : <!tile>
    }
  tile.return
}

// A program works on several tiles, and each warpgroup takes its own number of
// steps on each.
// CHECK-LABEL: tile.kernel @persistent
tile.kernel @persistent(%q: !mem) attributes {num_warps = 12 : i32} {
  %ring = hopper.create_ring : !ring
  %numbers = hopper.create_ring : !numbers
  hopper.warp_specialize(%q, %ring, %numbers : !mem, !ring, !numbers)
    producer registers(24) (%a: !mem, %r: !ring, %n: !numbers) {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %none = arith.constant -1 : i32
      %count = hopper.num_tiles : i32
      %first = tile.program_id : i32
      %end = scf.while (%tile = %first, %i = %c0) : (i32, i32) -> i32 {
        %more = arith.cmpi slt, %tile, %count : i32
        %posted = arith.select %more, %tile, %none : i32
        %s = hopper.acquire %n[%i] : !numbers
        hopper.put %posted to %s : <tensor<1xi32>>
        hopper.commit %s : <tensor<1xi32>>
        scf.condition(%more) %i : i32
      } do {
      ^bb0(%i: i32):
        %s = hopper.acquire %r[%i] : !ring
        hopper.tma_load %a[%c0, %c0] to %s : !mem, <!tile>
        hopper.commit %s : <!tile>
        %tile = hopper.next_tile : i32
        %next = arith.addi %i, %c1 : i32
        scf.yield %tile, %next : i32, i32
      }
    } consumer warpgroups(2) registers(240) (%a: !mem, %r: !ring, %n: !numbers) {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %result = arith.constant dense<1.0> : !tile
      %w = hopper.warpgroup_id : i32
      %end = scf.while (%i = %c0) : (i32) -> i32 {
        %s = hopper.wait %n[%i] : !numbers
        %tile = hopper.get %s[%c0] : <tensor<1xi32>> -> i32
        hopper.release %s : <tensor<1xi32>>
        %more = arith.cmpi sge, %tile, %c0 : i32
        scf.condition(%more) %i : i32
      } do {
      ^bb0(%i: i32):
        %t = hopper.wait %r[%i] : !ring
        scf.for %step = %c0 to %w step %c1 : i32 {
          %data = tile.iota : tensor<1xi32>
          %i0 = arith.constant 0 : index
          %e = tensor.extract %data[%i0] : tensor<1xi32>
          %vote = arith.cmpi slt, %e, %c0 : i32
          // Either way the same happens to the slot.
          scf.if %vote {
            %same = hopper.slot %r[%i] : !ring
          } else {
            %same = hopper.slot %r[%i] : !ring
          }
        }
        hopper.tma_store %result, %t to %a[%c0, %c0] : !tile, <!tile>, !mem
        hopper.release %t : <!tile>
        %next = arith.addi %i, %c1 : i32
        scf.yield %next : i32
      }
    }
  tile.return
}
