// RUN: attn-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-pipeline-loads))' | FileCheck %s

!src = memref<?x64xbf16, strided<[?, 1]>>

// K and V run one step ahead; Q starts before them and is waited for after.

// CHECK-LABEL: tile.kernel @kv_loop
// CHECK-DAG: %[[Q:.*]] = tile.alloc_buffer : <1, tensor<64x64xbf16>>
// CHECK-DAG: %[[K:.*]] = tile.alloc_buffer : <2, tensor<32x64xbf16>>
// CHECK: tile.async_load %arg1[%arg2, %{{.*}}] to %[[K]]
// CHECK: tile.async_commit
// CHECK: tile.async_wait 1
// CHECK: %[[QT:.*]] = tile.buffer_read %[[Q]]
// CHECK: tile.kv_loop ranges(%arg2, %arg2, %arg2, %arg3) step 32
// CHECK: qk (%[[KV:.*]]: i32, %{{.*}}: tensor<64x32xf32>, %[[SLOT:.*]]: i32)
// CHECK: tile.async_wait 0
// CHECK: %[[LATER:.*]] = arith.addi %[[KV]], %{{.*}} : i32
// CHECK: %[[MORE:.*]] = arith.cmpi slt, %[[LATER]], %arg3
// CHECK: tile.async_load %arg1[%[[LATER]], %{{.*}}] to %[[K]][%{{.*}}] if %[[MORE]]
// CHECK: tile.async_commit
// CHECK: %[[KT:.*]] = tile.buffer_read %[[K]][%[[SLOT]]]
// CHECK: tile.mma mma %[[QT]], %[[KT]]
tile.kernel @kv_loop(%q: !src, %k: !src, %begin: i32, %end: i32, %out: memref<?x32xf32>)
    attributes {num_warps = 4 : i32, num_stages = 2 : i32} {
  %c0 = arith.constant 0 : i32
  %zero = arith.constant dense<0.0> : tensor<64x32xf32>
  %qt = tile.load %q[%c0, %c0] : !src -> tensor<64x64xbf16>
  %r = tile.kv_loop ranges(%begin, %begin, %begin, %end) step 32 iter_args(%zero) : tensor<64x32xf32>
    qk (%kv: i32, %acc: tensor<64x32xf32>) {
      %kt = tile.load %k[%kv, %c0] : !src -> tensor<32x64xbf16>
      %s = tile.mma mma %qt, %kt, %acc {transpose_b}
        : tensor<64x64xbf16>, tensor<32x64xbf16>, tensor<64x32xf32>
      tile.yield %s : tensor<64x32xf32>
    } score (%kv: i32, %s: tensor<64x32xf32>, %acc: tensor<64x32xf32>) {
      tile.yield %s : tensor<64x32xf32>
    } softmax (%kv: i32, %s: tensor<64x32xf32>, %acc: tensor<64x32xf32>) {
      tile.yield %s : tensor<64x32xf32>
    } pv (%kv: i32, %s: tensor<64x32xf32>, %acc: tensor<64x32xf32>) {
      tile.yield %s : tensor<64x32xf32>
    }
  tile.store %r, %out[%c0, %c0] : tensor<64x32xf32>, memref<?x32xf32>
  tile.return
}

// The key of the loads that a step starts is read from the list a step before;
// behind the list's end it is 0, whatever memory holds there.
// CHECK-LABEL: tile.kernel @listed(
// CHECK: %[[NOW:.*]] = tile.gather %arg2[{{.*}}, %{{.*}}]
// CHECK: %[[READ:.*]] = arith.muli %[[NOW]]
// CHECK: %[[IS_LISTED:.*]] = arith.cmpi slt, %{{.*}}, %arg3
// CHECK: %[[KEY:.*]] = arith.select %[[IS_LISTED]], %[[READ]], %c0
// CHECK: tile.async_load %arg1[%[[KEY]], %{{.*}}]
// CHECK: %[[POSITION:.*]] = arith.addi
// CHECK: %[[NEXT:.*]] = tile.gather %arg2
// CHECK: %[[NEXT_READ:.*]] = arith.muli %[[NEXT]]
// CHECK: %[[IS_NEXT:.*]] = arith.cmpi slt, %[[POSITION]], %arg3
// CHECK: %[[NEXT_KEY:.*]] = arith.select %[[IS_NEXT]], %[[NEXT_READ]], %c0
// CHECK: tile.kv_loop {{.*}} step 32 tiles(%arg2[{{.*}}] : {{.*}}) iter_args(%{{.*}}, %{{.*}}, %[[POSITION]], %[[NEXT_KEY]])
// CHECK: qk (%{{.*}}: i32, %{{.*}}: tensor<64x32xf32>, %{{.*}}: i32, %[[LATER:.*]]: i32, %[[LATER_KEY:.*]]: i32)
// CHECK: %[[MORE:.*]] = arith.cmpi slt, %[[LATER]], %arg3
// CHECK: tile.async_load %arg1[%[[LATER_KEY]], %{{.*}}] to %{{.*}} if %[[MORE]]
// CHECK: pv (
// CHECK: %[[AHEAD:.*]] = tile.gather %arg2
// CHECK: %[[AHEAD_READ:.*]] = arith.muli %[[AHEAD]]
// CHECK: %[[AHEAD_KEY:.*]] = arith.select %{{.*}}, %[[AHEAD_READ]], %c0
// CHECK: tile.yield %{{.*}}, %{{.*}}, %{{.*}}, %[[AHEAD_KEY]]
tile.kernel @listed(%q: !src, %k: !src, %tiles: memref<?x?x?x?xi32>, %end: i32, %out: memref<?x32xf32>)
    attributes {num_warps = 4 : i32, num_stages = 2 : i32} {
  %c0 = arith.constant 0 : i32
  %zero = arith.constant dense<0.0> : tensor<64x32xf32>
  %qt = tile.load %q[%c0, %c0] : !src -> tensor<64x64xbf16>
  %r = tile.kv_loop ranges(%c0, %c0, %c0, %end) step 32 tiles(%tiles[%c0, %c0, %c0] : memref<?x?x?x?xi32>) iter_args(%zero) : tensor<64x32xf32>
    qk (%kv: i32, %acc: tensor<64x32xf32>) {
      %kt = tile.load %k[%kv, %c0] : !src -> tensor<32x64xbf16>
      %s = tile.mma mma %qt, %kt, %acc {transpose_b}
        : tensor<64x64xbf16>, tensor<32x64xbf16>, tensor<64x32xf32>
      tile.yield %s : tensor<64x32xf32>
    } score (%kv: i32, %s: tensor<64x32xf32>, %acc: tensor<64x32xf32>) {
      tile.yield %s : tensor<64x32xf32>
    } softmax (%kv: i32, %s: tensor<64x32xf32>, %acc: tensor<64x32xf32>) {
      tile.yield %s : tensor<64x32xf32>
    } pv (%kv: i32, %s: tensor<64x32xf32>, %acc: tensor<64x32xf32>) {
      tile.yield %s : tensor<64x32xf32>
    }
  tile.store %r, %out[%c0, %c0] : tensor<64x32xf32>, memref<?x32xf32>
  tile.return
}

// Three stages: two groups start ahead of the loop, one may be under way in it.

// CHECK-LABEL: tile.kernel @matmul
// CHECK-COUNT-2: tile.async_commit
// CHECK: scf.for
// CHECK: tile.async_wait 1
// CHECK-COUNT-2: tile.async_load
// CHECK: tile.async_commit
// CHECK-COUNT-2: tile.buffer_read
// CHECK: tile.mma
tile.kernel @matmul(%a: memref<?x?xbf16, strided<[?, 1]>>, %b: memref<?x?xbf16, strided<[?, 1]>>, %k: i32, %out: memref<?x64xf32>)
    attributes {num_warps = 4 : i32, num_stages = 3 : i32} {
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %r = scf.for %i = %c0 to %k step %c32 iter_args(%acc = %zero) -> tensor<64x64xf32> : i32 {
    %at = tile.load %a[%c0, %i] : memref<?x?xbf16, strided<[?, 1]>> -> tensor<64x32xbf16>
    %bt = tile.load %b[%c0, %i] : memref<?x?xbf16, strided<[?, 1]>> -> tensor<64x32xbf16>
    %s = tile.mma mma %at, %bt, %acc {transpose_b}
      : tensor<64x32xbf16>, tensor<64x32xbf16>, tensor<64x64xf32>
    scf.yield %s : tensor<64x64xf32>
  }
  tile.store %r, %out[%c0, %c0] : tensor<64x64xf32>, memref<?x64xf32>
  tile.return
}

// A load that something else reads too stays where it is.

// CHECK-LABEL: tile.kernel @other_use
// CHECK-NOT: tile.async_load
// CHECK: tile.return
tile.kernel @other_use(%a: memref<?x32xbf16>, %n: i32)
    attributes {num_warps = 4 : i32, num_stages = 2 : i32} {
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  scf.for %i = %c0 to %n step %c32 : i32 {
    %t = tile.load %a[%i, %c0] : memref<?x32xbf16> -> tensor<32x32xbf16>
    tile.store %t, %a[%i, %c0] : tensor<32x32xbf16>, memref<?x32xbf16>
  }
  tile.return
}
