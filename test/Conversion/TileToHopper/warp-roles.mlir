// RUN: attn-opt %s --convert-tile-to-hopper --canonicalize --cse | FileCheck %s --check-prefixes=ONCE,OVERLAP
// RUN: sed 's/<pipeline = overlap>/<pipeline = ahead>/' %s \
// RUN:   | attn-opt --convert-tile-to-hopper --canonicalize --cse | FileCheck %s --check-prefixes=ONCE,AHEAD
// RUN: sed 's/<pipeline = overlap>/<pipeline = simple, persistent = true, q_stages = 2, tma_store = true>/' %s \
// RUN:   | attn-opt --convert-tile-to-hopper --canonicalize --cse | FileCheck %s --check-prefix=PERSISTENT
// RUN: sed -e 's/<pipeline = overlap>/<tma_store = true>/' -e 's/tensor<128x64xbf16>, !mem$/tensor<128x64xbf16>, memref<?x?x?x?x?x64xbf16>/' \
// RUN:     -e 's/%%o: !mem/%%o: memref<?x?x?x?x?x64xbf16>/' -e 's/%%o\[%%c0, /%%o[%%c0, %%c0, %%c0, %%c0, /' %s \
// RUN:   | attn-opt --convert-tile-to-hopper | FileCheck %s --check-prefix=NO-MAP
// RUN: sed 's/ {unordered}//' %s | attn-opt --convert-tile-to-hopper --canonicalize --cse | FileCheck %s --check-prefix=ORDERED

// What the attribute attn.warp_roles chooses, with a causal mask.

!mem = memref<?x?x64xbf16, strided<[?, ?, 1]>>

// Steps may run in any order: the last KV tile comes first.
// ONCE-LABEL: tile.kernel @attention(
// ONCE: hopper.create_ring : <1 x tensor<128x64xbf16>>
// ONCE: producer
// ONCE: %[[COUNT:.*]] = arith.divui
// ONCE: scf.if
// ONCE: %[[LAST:.*]] = arith.subi %[[COUNT]], %c1_i32
// ONCE: %[[KV:.*]] = arith.muli %[[LAST]], %c32_i32
// ONCE: hopper.tma_load %{{.*}}[%c0_i32, %[[KV]], %c0_i32] to %{{.*}}<tensor<32x64xbf16>>
// The last tile of its own rows is where a warpgroup ends; where it has no row
// that exists, it takes no step.
// ONCE: consumer
// ONCE: %[[ID:.*]] = hopper.warpgroup_id
// ONCE: %[[OFFSET:.*]] = arith.muli %[[ID]], %c64_i32
// ONCE: %[[FIRST:.*]] = arith.addi %{{.*}}, %[[OFFSET]]
// ONCE: arith.extsi %[[FIRST]]
// ONCE: %[[WANTED:.*]] = arith.cmpi slt, %[[OFFSET]], %{{.*}}
// ONCE: arith.select %[[WANTED]], %{{.*}}, %c0_i32
// Q, then the KV tiles that only other warpgroups need.
// ONCE: hopper.wait
// ONCE: scf.for %{{.*}} = %c0_i32 to %[[SKIPPED:.*]] step
// ONCE-NEXT: hopper.wait
// ONCE-NEXT: hopper.release
// ONCE-NEXT: hopper.wait
// ONCE-NEXT: hopper.release
// ONCE-NEXT: }

// OVERLAP: scf.if
// OVERLAP: hopper.wait %[[K:.*]][%[[SKIPPED]]]
// OVERLAP: tile.mask
// Masked steps, then full ones: none comes behind those.
// OVERLAP: scf.for %[[STEP:.*]] = %c1_i32 to %[[FULL:.*]] step
// OVERLAP: %[[DISTANCE:.*]] = arith.muli %[[STEP]], %c32_i32
// OVERLAP: %[[KEY:.*]] = arith.subi %{{.*}}, %[[DISTANCE]]
// OVERLAP: tile.mask %{{.*}} at(%{{.*}}, %[[KEY]])
// OVERLAP: scf.for
// OVERLAP-NOT: tile.mask
// OVERLAP-NOT: scf.for
// OVERLAP: } else {

// Two products are under way between steps: PV of the step before, and QK of
// the one after the next. Too few steps for that run one by one.
// AHEAD: %[[FEW:.*]] = arith.cmpi slt
// AHEAD: scf.if %[[FEW]]
// AHEAD: hopper.wgmma_wait 0
// AHEAD: } else {
// AHEAD: %[[IS_ODD:.*]] = arith.trunci
// AHEAD: scf.if %[[IS_ODD]] -> (!hopper.pending<tensor<128x64xf32>>, tensor<128xf32>, tensor<128xf32>, tensor<128x32xf32>, !hopper.pending<tensor<128x32xf32>>)
// AHEAD: scf.for {{.*}} step %c2_i32 iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}, %{{.*}} = %{{.*}})
// AHEAD-COUNT-2: tile.mask
// AHEAD: scf.for {{.*}} step %c2_i32 iter_args(%[[PV:[a-z0-9]+]] = %{{.*}}, %{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}, %[[SCORES:[a-z0-9]+]] = %{{.*}}, %[[QK:[a-z0-9]+]] = %{{.*}})
// AHEAD-NOT: tile.mask
// AHEAD: tile.online_softmax %[[SCORES]]
// AHEAD: hopper.wgmma_wait 0, %[[PV]]
// AHEAD: %[[NEXT:.*]] = hopper.wgmma_wait 0, %[[QK]]
// AHEAD: %[[PV1:.*]] = hopper.wgmma %{{.*}} acc
// AHEAD: %[[QK1:.*]] = hopper.wgmma %{{.*}} {transpose_b}
// AHEAD: tile.online_softmax %[[NEXT]]
// AHEAD: hopper.wgmma_wait 0, %[[PV1]]
// AHEAD: hopper.wgmma_wait 0, %[[QK1]]
// AHEAD: scf.yield

// Both Q slots, and the numbers: the tile's, one shared scalar and six a
// warpgroup.
// PERSISTENT: hopper.create_ring : <2 x tensor<128x64xbf16>>
// PERSISTENT: %[[NUMBERS:.*]] = hopper.create_ring : <2 x tensor<14xi32>>
// PERSISTENT: producer
// PERSISTENT: %[[PROGRAM:.*]] = tile.program_id
// PERSISTENT: %[[TILES:.*]] = hopper.num_tiles
// PERSISTENT: %[[END:.*]]:3 = scf.while (%[[T:.*]] = %[[PROGRAM]], %{{.*}} = %c0_i32, %{{.*}} = %c0_i32)
// PERSISTENT: %[[MORE:.*]] = arith.cmpi slt, %[[T]], %[[TILES]]
// PERSISTENT: scf.condition(%[[MORE]])
// PERSISTENT: ^bb0(%[[TILE:.*]]: i32, %[[N:.*]]: i32, %[[BASE:.*]]: i32):
// PERSISTENT: %[[NEXT:.*]] = hopper.next_tile
// PERSISTENT: %[[ROW:.*]] = arith.muli %[[TILE]], %c128_i32
// PERSISTENT: %[[SLOT:.*]] = hopper.acquire %{{.*}}[%[[N]]] : <2 x tensor<14xi32>>
// PERSISTENT: hopper.put %[[TILE]], %[[ROW]], {{.*}} to %[[SLOT]]
// PERSISTENT: hopper.commit %[[SLOT]]
// PERSISTENT: hopper.acquire %{{.*}}[%[[BASE]]] : <2 x tensor<32x64xbf16>>
// PERSISTENT: %[[Q:.*]] = hopper.acquire %{{.*}}[%[[N]]] : <2 x tensor<128x64xbf16>>
// PERSISTENT: hopper.tma_load %{{.*}}[%c0_i32, %[[ROW]], %c0_i32] to %[[Q]]
// PERSISTENT: scf.yield %[[NEXT]]
// There is no tile left.
// PERSISTENT: hopper.acquire %{{.*}}[%[[END]]#1] : <2 x tensor<14xi32>>
// PERSISTENT: hopper.put %c-1_i32,
// PERSISTENT: consumer
// PERSISTENT: scf.while
// PERSISTENT: %[[GOT:.*]] = hopper.wait
// PERSISTENT: %[[T:.*]] = hopper.get %[[GOT]][%c0_i32]
// PERSISTENT: %[[MORE:.*]] = arith.cmpi sgt, %[[T]], %c-1_i32
// PERSISTENT: scf.condition(%[[MORE]])
// PERSISTENT: %[[SLOT:.*]] = hopper.slot %{{.*}} : <2 x tensor<14xi32>>
// PERSISTENT: hopper.get %[[SLOT]][%c1_i32] : <tensor<14xi32>> -> i32
// PERSISTENT: %[[ID:.*]] = hopper.warpgroup_id
// PERSISTENT: %[[SIX:.*]] = arith.muli %[[ID]], %c6_i32
// PERSISTENT: %[[OWN:.*]] = arith.addi %[[SIX]], %c2_i32
// PERSISTENT: hopper.get %[[SLOT]][%[[OWN]]] : <tensor<14xi32>> -> i32, i32, i32, i32, i32, i32
// PERSISTENT: %[[Q:.*]] = hopper.wait %{{.*}} : <2 x tensor<128x64xbf16>>
// The result goes through Q's slot, which therefore is given back behind it.
// PERSISTENT-NOT: hopper.release %[[Q]]
// PERSISTENT: %[[ROW:.*]] = hopper.get %[[SLOT]][%c1_i32] : <tensor<14xi32>> -> i32
// PERSISTENT: hopper.release %[[SLOT]]
// PERSISTENT-NOT: hopper.release %[[Q]]
// PERSISTENT: hopper.tma_store %{{.*}}, %[[Q]] to %{{.*}}[%c0_i32, %[[ROW]], %c0_i32]
// PERSISTENT-NEXT: hopper.release %[[Q]]
// PERSISTENT-NOT: tile.store

// No tensor map has six dimensions.
// NO-MAP-NOT: hopper.tma_store
// NO-MAP: tile.store

// The first KV tile comes first, and the tiles that only other warpgroups need
// behind the loop.
// ORDERED: producer
// ORDERED: scf.if
// ORDERED-NEXT: hopper.acquire
// ORDERED-NEXT: hopper.tma_load %{{.*}}[%c0_i32, %c0_i32, %c0_i32] to
// ORDERED: consumer
// ORDERED: hopper.wait
// ORDERED-NOT: scf.for
// ORDERED: scf.if
// ORDERED: hopper.wgmma
// ORDERED: } else {
// ORDERED: scf.for
// ORDERED-NEXT: arith.addi
// ORDERED-NEXT: hopper.wait
// ORDERED-NEXT: hopper.release
// ORDERED: tile.store
tile.kernel @attention(%q: !mem, %k: !mem, %v: !mem, %o: !mem, %n: i32)
    attributes {num_warps = 4 : i32, attn.warp_roles = #attn.warp_roles<pipeline = overlap>} {
  %c0 = arith.constant 0 : i32
  %c128 = arith.constant 128 : i32
  %b = tile.program_id : i32
  %first = arith.muli %b, %c128 : i32
  %rows = arith.subi %n, %first : i32
  %qt = tile.load %q[%c0, %first, %c0] : !mem -> tensor<128x64xbf16>
  %acc0 = arith.constant dense<0.0> : tensor<128x64xf32>
  %m0 = arith.constant dense<0xFF800000> : tensor<128xf32>
  %l0 = arith.constant dense<0.0> : tensor<128xf32>
  %r:3 = tile.kv_loop ranges(%c0, %c0, %c0, %n) step 32 rows %rows
      iter_args(%acc0, %m0, %l0) : tensor<128x64xf32>, tensor<128xf32>, tensor<128xf32> {unordered}
    qk (%kv: i32, %acc: tensor<128x64xf32>, %m: tensor<128xf32>, %l: tensor<128xf32>) {
      %kt = tile.load %k[%c0, %kv, %c0] : !mem -> tensor<32x64xbf16>
      %zero = arith.constant dense<0.0> : tensor<128x32xf32>
      %s = tile.mma mma %qt, %kt, %zero {transpose_b} : tensor<128x64xbf16>, tensor<32x64xbf16>, tensor<128x32xf32>
      tile.yield %s : tensor<128x32xf32>
    } score (%kv: i32, %s: tensor<128x32xf32>, %acc: tensor<128x64xf32>, %m: tensor<128xf32>, %l: tensor<128xf32>) {
      %u = tile.mask %s at (%first, %kv) (%i: i32, %j: i32) {
        %keep = arith.cmpi sle, %j, %i : i32
        tile.yield %keep : i1
      } {skippable} : tensor<128x32xf32>
      tile.yield %u : tensor<128x32xf32>
    } softmax (%kv: i32, %s: tensor<128x32xf32>, %acc: tensor<128x64xf32>, %m: tensor<128xf32>, %l: tensor<128xf32>) {
      %one = arith.constant 1.0 : f32
      %p, %m1, %l1, %a = tile.online_softmax %s, %m, %l scale %one : tensor<128x32xf32>, tensor<128xf32>
      tile.yield %p, %m1, %l1, %a : tensor<128x32xf32>, tensor<128xf32>, tensor<128xf32>, tensor<128xf32>
    } pv (%kv: i32, %p: tensor<128x32xf32>, %m1: tensor<128xf32>, %l1: tensor<128xf32>, %a: tensor<128xf32>,
          %acc: tensor<128x64xf32>, %m: tensor<128xf32>, %l: tensor<128xf32>) {
      %vt = tile.load %v[%c0, %kv, %c0] : !mem -> tensor<32x64xbf16>
      %ab = tile.broadcast %a dim 0 : tensor<128xf32> -> tensor<128x64xf32>
      %scaled = arith.mulf %acc, %ab : tensor<128x64xf32>
      %ph = arith.truncf %p : tensor<128x32xf32> to tensor<128x32xbf16>
      %next = tile.mma mma %ph, %vt, %scaled : tensor<128x32xbf16>, tensor<32x64xbf16>, tensor<128x64xf32>
      tile.yield %next, %m1, %l1 : tensor<128x64xf32>, tensor<128xf32>, tensor<128xf32>
    }
  %out = arith.truncf %r#0 : tensor<128x64xf32> to tensor<128x64xbf16>
  tile.store %out, %o[%c0, %first, %c0] : tensor<128x64xbf16>, !mem
  tile.return
}
