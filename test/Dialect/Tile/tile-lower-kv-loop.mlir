// RUN: attn-opt --tile-lower-kv-loop %s | FileCheck %s

// Three loops; only the partial ones keep the mask.
// CHECK-LABEL: tile.kernel @three_ranges(
// CHECK-SAME: %[[BEGIN:[a-z0-9]+]]: i32, %[[FULL_BEGIN:[a-z0-9]+]]: i32, %[[FULL_END:[a-z0-9]+]]: i32, %[[END:[a-z0-9]+]]: i32
// CHECK: %[[STEP:.*]] = arith.constant 64 : i32
// CHECK: %[[LEFT:.*]] = scf.for %[[KV:.*]] = %[[BEGIN]] to %[[FULL_BEGIN]] step %[[STEP]] iter_args(%[[ACC:.*]] = %{{.*}}) -> (tensor<64x64xf32>) : i32
// CHECK:   %[[S:.*]] = arith.addf %[[ACC]]
// CHECK:   %[[MASKED:.*]] = tile.mask %[[S]] at{{ ?}}(%[[KV]], %[[KV]])
// CHECK:   %[[P:.*]] = arith.mulf %[[MASKED]], %[[MASKED]]
// CHECK:   %[[NEXT:.*]] = arith.subf %[[P]], %[[ACC]]
// CHECK:   scf.yield %[[NEXT]]
// CHECK: %[[FULL:.*]] = scf.for {{.*}} = %[[FULL_BEGIN]] to %[[FULL_END]] step %[[STEP]] iter_args(%[[ACC1:.*]] = %[[LEFT]])
// CHECK:   %[[S1:.*]] = arith.addf %[[ACC1]]
// CHECK-NOT: tile.mask
// CHECK:   arith.mulf %[[S1]], %[[S1]]
// CHECK: scf.for {{.*}} = %[[FULL_END]] to %[[END]] step %[[STEP]] iter_args({{.*}} = %[[FULL]])
// CHECK:   tile.mask
// CHECK-NOT: kv_loop
tile.kernel @three_ranges(%begin: i32, %fb: i32, %fe: i32, %end: i32, %out: memref<?x64xf32>) attributes {num_warps = 4 : i32} {
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %r = tile.kv_loop ranges(%begin, %fb, %fe, %end) step 64 iter_args(%zero) : tensor<64x64xf32>
    qk (%kv: i32, %acc: tensor<64x64xf32>) {
      %s = arith.addf %acc, %acc : tensor<64x64xf32>
      tile.yield %s : tensor<64x64xf32>
    } score (%kv: i32, %s: tensor<64x64xf32>, %acc: tensor<64x64xf32>) {
      %t = tile.mask %s at (%kv, %kv) (%qi: i32, %ki: i32) {
        %keep = arith.cmpi slt, %ki, %qi : i32
        tile.yield %keep : i1
      } : tensor<64x64xf32>
      tile.yield %t : tensor<64x64xf32>
    } softmax (%kv: i32, %t: tensor<64x64xf32>, %acc: tensor<64x64xf32>) {
      %p = arith.mulf %t, %t : tensor<64x64xf32>
      tile.yield %p : tensor<64x64xf32>
    } pv (%kv: i32, %p: tensor<64x64xf32>, %acc: tensor<64x64xf32>) {
      %next = arith.subf %p, %acc : tensor<64x64xf32>
      tile.yield %next : tensor<64x64xf32>
    }
  tile.store %r, %out[%begin, %begin] : tensor<64x64xf32>, memref<?x64xf32>
  tile.return
}

// Ranges that are empty by their bounds get no loop, and a loop that carries
// nothing is legal.
// CHECK-LABEL: tile.kernel @only_partial(
// CHECK-SAME: %[[N:[a-z0-9]+]]: i32
// CHECK: %[[C0:.*]] = arith.constant 0 : i32
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[N]] step
// CHECK-NOT: scf.for
// CHECK: tile.return
tile.kernel @only_partial(%n: i32, %out: memref<?x64xf32>) attributes {num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %also0 = arith.constant 0 : i32
  %one = arith.constant dense<1.0> : tensor<64x64xf32>
  tile.kv_loop ranges(%c0, %also0, %c0, %n) step 32
    qk (%kv: i32) {
      tile.yield
    } score (%kv: i32) {
      tile.yield
    } softmax (%kv: i32) {
      tile.yield
    } pv (%kv: i32) {
      tile.store %one, %out[%kv, %c0] : tensor<64x64xf32>, memref<?x64xf32>
      tile.yield
    }
  tile.return
}

// The ranges count in a list of tiles: a step's key is read there.
// CHECK-LABEL: tile.kernel @listed(
// CHECK-SAME: %[[TILES:[a-z0-9]+]]: memref<?x?x?x?xi32>, %[[ROW:[a-z0-9]+]]: i32
// CHECK: scf.for %[[POSITION:.*]] = %c0_i32 to %{{.*}} step
// CHECK: %[[NUMBER:.*]] = arith.divui %[[POSITION]], %c32_i32
// CHECK: %[[TILE:.*]] = tile.gather %[[TILES]][%c0_i32, %c0_i32, %[[ROW]], %[[NUMBER]]] in_bounds [0, 1, 2]
// CHECK: %[[KV:.*]] = arith.muli %[[TILE]], %c32_i32
// CHECK: tile.store %{{.*}}, %{{.*}}[%[[KV]], %c0_i32]
// CHECK: scf.for
// CHECK: tile.gather %[[TILES]]
tile.kernel @listed(%tiles: memref<?x?x?x?xi32>, %row: i32, %full: i32, %end: i32, %x: memref<?x64xf32>) attributes {num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %one = arith.constant dense<1.0> : tensor<32x64xf32>
  tile.kv_loop ranges(%c0, %c0, %full, %end) step 32 tiles(%tiles[%c0, %c0, %row] : memref<?x?x?x?xi32>)
    qk (%kv: i32) {
      tile.yield
    } score (%kv: i32) {
      tile.yield
    } softmax (%kv: i32) {
      tile.yield
    } pv (%kv: i32) {
      tile.store %one, %x[%kv, %c0] : tensor<32x64xf32>, memref<?x64xf32>
      tile.yield
    }
  tile.return
}
