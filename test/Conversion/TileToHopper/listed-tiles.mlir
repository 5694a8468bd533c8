// RUN: attn-opt %s --convert-tile-to-hopper --canonicalize --cse | FileCheck %s --check-prefixes=CHECK,ONCE
// RUN: sed 's/<pipeline = overlap>/<pipeline = ahead>/' %s \
// RUN:   | attn-opt --convert-tile-to-hopper --canonicalize --cse | FileCheck %s --check-prefixes=CHECK,ONCE
// RUN: sed 's/<pipeline = overlap>/<pipeline = simple>/' %s \
// RUN:   | attn-opt --convert-tile-to-hopper --canonicalize --cse | FileCheck %s --check-prefix=SIMPLE
// RUN: sed 's/<pipeline = overlap>/<pipeline = overlap, persistent = true>/' %s \
// RUN:   | attn-opt --convert-tile-to-hopper --canonicalize --cse | FileCheck %s --check-prefixes=CHECK,PERSISTENT

// Steps come from a list of tiles, of which both roles read the keys.

!mem = memref<?x?x64xbf16, strided<[?, ?, 1]>>

// The producer reads a key two steps before V is loaded there.
// CHECK-LABEL: tile.kernel @attention(
// CHECK-SAME: %[[TILES:[a-z0-9]+]]: memref<?x?x?x?xi32>)
// CHECK: producer
// CHECK: %[[ROW:.*]] = arith.divui %{{.*}}, %c128_i32
// PERSISTENT: hopper.put %{{.*}}, %{{.*}}, %[[ROW]],
// CHECK: %[[FIRST:.*]] = tile.gather %{{.*}}[%c0_i32, %c0_i32, %[[ROW]], %{{.*}}] in_bounds [0, 1, 2]
// CHECK: %[[FIRST_KEY:.*]] = arith.muli %[[FIRST]], %c32_i32
// CHECK: scf.if
// CHECK: hopper.tma_load %{{.*}}[%c0_i32, %[[FIRST_KEY]], %c0_i32]
// CHECK: scf.if
// CHECK: %[[SECOND:.*]] = tile.gather
// CHECK: %[[SECOND_KEY:.*]] = arith.muli %[[SECOND]], %c32_i32
// CHECK: scf.for {{.*}} iter_args(%[[BEFORE:.*]] = %[[FIRST_KEY]], %[[KEY:.*]] = %[[SECOND_KEY]])
// CHECK: %[[NEXT:.*]] = tile.gather
// CHECK: %[[NEXT_KEY:.*]] = arith.muli %[[NEXT]], %c32_i32
// CHECK: hopper.tma_load %{{.*}}[%c0_i32, %[[KEY]], %c0_i32]
// CHECK: hopper.tma_load %{{.*}}[%c0_i32, %[[BEFORE]], %c0_i32]
// CHECK: scf.yield %[[KEY]], %[[NEXT_KEY]]

// The consumer needs keys for the mask alone.
// CHECK: consumer
// ONCE: %[[OWN_ROW:.*]] = arith.divui %{{.*}}, %c128_i32
// ONCE: tile.gather %{{.*}}[%c0_i32, %c0_i32, %[[OWN_ROW]], %{{.*}}] in_bounds [0, 1, 2] :
// PERSISTENT: %[[SHARED:.*]]:2 = hopper.get %{{.*}}[%c1_i32]
// PERSISTENT: %[[LISTED:.*]] = tile.gather %{{.*}}[%c0_i32, %c0_i32, %[[SHARED]]#1, %{{.*}}] in_bounds [0, 1, 2] :
// PERSISTENT: %[[KV:.*]] = arith.muli %[[LISTED]], %c32_i32
// PERSISTENT: tile.mask %{{.*}} at(%{{.*}}, %[[KV]])

// SIMPLE: producer
// SIMPLE: %[[FIRST:.*]] = tile.gather
// SIMPLE: %[[FIRST_KEY:.*]] = arith.muli %[[FIRST]], %c32_i32
// SIMPLE: hopper.tma_load %{{.*}}[%c0_i32, %[[FIRST_KEY]], %c0_i32]
// SIMPLE: hopper.tma_load %{{.*}}[%c0_i32, %[[FIRST_KEY]], %c0_i32]
// SIMPLE: scf.for {{.*}} iter_args(%[[KEY:[a-z0-9]+]] = %{{[a-z0-9]+}}) -> (i32)
// SIMPLE-COUNT-2: hopper.tma_load %{{.*}}[%c0_i32, %[[KEY]], %c0_i32]
tile.kernel @attention(%q: !mem, %k: !mem, %v: !mem, %o: !mem, %n: i32, %bounds: memref<?x?x?x4xi32>, %tiles: memref<?x?x?x?xi32>)
    attributes {num_warps = 4 : i32, attn.warp_roles = #attn.warp_roles<pipeline = overlap>} {
  %c0 = arith.constant 0 : i32
  %c128 = arith.constant 128 : i32
  %b = tile.program_id : i32
  %first = arith.muli %b, %c128 : i32
  %row = arith.divui %first, %c128 : i32
  %rows = arith.subi %n, %first : i32
  %qt = tile.load %q[%c0, %first, %c0] : !mem -> tensor<128x64xbf16>
  %acc0 = arith.constant dense<0.0> : tensor<128x64xf32>
  %m0 = arith.constant dense<0xFF800000> : tensor<128xf32>
  %l0 = arith.constant dense<0.0> : tensor<128xf32>
  %r:3 = tile.kv_loop ranges(%c0, %c0, %c0, %n) step 32 rows %rows tiles(%tiles[%c0, %c0, %row] : memref<?x?x?x?xi32>)
      iter_args(%acc0, %m0, %l0) : tensor<128x64xf32>, tensor<128xf32>, tensor<128xf32> {unordered}
    qk (%kv: i32, %acc: tensor<128x64xf32>, %m: tensor<128xf32>, %l: tensor<128xf32>) {
      %kt = tile.load %k[%c0, %kv, %c0] : !mem -> tensor<32x64xbf16>
      %zero = arith.constant dense<0.0> : tensor<128x32xf32>
      %s = tile.mma mma %qt, %kt, %zero {transpose_b} : tensor<128x64xbf16>, tensor<32x64xbf16>, tensor<128x32xf32>
      tile.yield %s : tensor<128x32xf32>
    } score (%kv: i32, %s: tensor<128x32xf32>, %acc: tensor<128x64xf32>, %m: tensor<128xf32>, %l: tensor<128xf32>) {
      %u = tile.mask %s at (%first, %kv) bounds(%bounds[%c0, %c0, %c0] : memref<?x?x?x4xi32>) rows 64 tiles(%tiles : memref<?x?x?x?xi32>) (%i: i32, %j: i32) {
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
