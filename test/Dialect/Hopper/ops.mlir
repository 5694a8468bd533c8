// RUN: attn-opt %s | attn-opt | FileCheck %s

!ring = !hopper.ring<2 x tensor<64x128xbf16>>

// CHECK-LABEL: tile.kernel @roles(
tile.kernel @roles(%k: memref<?x4x?x128xbf16, strided<[?, ?, ?, 1]>>) attributes {num_warps = 8 : i32} {
  // CHECK: %[[RING:.*]] = hopper.create_ring : <2 x tensor<64x128xbf16>>
  %ring = hopper.create_ring : !ring
  // CHECK: hopper.warp_specialize(%{{.*}}, %[[RING]] : memref
  // CHECK: producer registers(24) (%[[K:.*]]: memref<?x4x?x128xbf16, {{.*}}>, %[[R:.*]]: !hopper.ring<2 x tensor<64x128xbf16>>) {
  hopper.warp_specialize(%k, %ring : memref<?x4x?x128xbf16, strided<[?, ?, ?, 1]>>, !ring)
    producer registers(24) (%src: memref<?x4x?x128xbf16, strided<[?, ?, ?, 1]>>, %r: !ring) {
      %c0 = arith.constant 0 : i32
      // CHECK: %[[SLOT:.*]] = hopper.acquire %[[R]][%{{.*}}] : <2 x tensor<64x128xbf16>>
      %slot = hopper.acquire %r[%c0] : !ring
      // CHECK: hopper.tma_load %[[K]][%{{.*}}] to %[[SLOT]] :
      hopper.tma_load %src[%c0, %c0, %c0, %c0] to %slot
        : memref<?x4x?x128xbf16, strided<[?, ?, ?, 1]>>, <tensor<64x128xbf16>>
      // CHECK: hopper.commit %[[SLOT]]
      hopper.commit %slot : <tensor<64x128xbf16>>
    // CHECK: } consumer warpgroups(1) registers(240)
    } consumer warpgroups(1) registers(240) (%src: memref<?x4x?x128xbf16, strided<[?, ?, ?, 1]>>, %r: !ring) {
      %c0 = arith.constant 0 : i32
      %p = arith.constant dense<1.0> : tensor<64x64xbf16>
      %zero = arith.constant dense<0.0> : tensor<64x128xf32>
      // CHECK: %[[T:.*]] = hopper.wait %{{.*}}[%{{.*}}]
      %t = hopper.wait %r[%c0] : !ring
      // CHECK: %[[S:.*]] = hopper.wgmma %[[T]], %[[T]] {transpose_b} : !hopper.slot<tensor<64x128xbf16>>, <tensor<64x128xbf16>> -> <tensor<64x64xf32>>
      %s = hopper.wgmma %t, %t {transpose_b} : !hopper.slot<tensor<64x128xbf16>>, <tensor<64x128xbf16>> -> <tensor<64x64xf32>>
      %slope = arith.constant 0.5 : f32
      %start = arith.constant -3.0 : f32
      // CHECK: hopper.wgmma %[[T]], %[[T]] ramp(%{{.*}}, %{{.*}}) {transpose_b} : !hopper.slot<tensor<64x128xbf16>>, <tensor<64x128xbf16>> -> <tensor<64x64xf32>>
      %ramp = hopper.wgmma %t, %t ramp(%slope, %start) {transpose_b} : !hopper.slot<tensor<64x128xbf16>>, <tensor<64x128xbf16>> -> <tensor<64x64xf32>>
      // CHECK: %[[O:.*]] = hopper.wgmma %{{.*}}, %[[T]] acc %{{.*}} : tensor<64x128xf32> : tensor<64x64xbf16>, <tensor<64x128xbf16>> -> <tensor<64x128xf32>>
      %o = hopper.wgmma %p, %t acc %zero : tensor<64x128xf32> : tensor<64x64xbf16>, <tensor<64x128xbf16>> -> <tensor<64x128xf32>>
      // CHECK: hopper.wgmma %{{.*}}, %[[T]] acc %[[O]] : !hopper.pending<tensor<64x128xf32>>
      %o2 = hopper.wgmma %p, %t acc %o : !hopper.pending<tensor<64x128xf32>> : tensor<64x64xbf16>, <tensor<64x128xbf16>> -> <tensor<64x128xf32>>
      // CHECK: hopper.wgmma_wait 2, %[[S]] : <tensor<64x64xf32>> -> tensor<64x64xf32>
      %s1 = hopper.wgmma_wait 2, %s : <tensor<64x64xf32>> -> tensor<64x64xf32>
      %o3 = hopper.wgmma_wait 0, %o2 : <tensor<64x128xf32>> -> tensor<64x128xf32>
      // CHECK: hopper.read %[[T]] : <tensor<64x128xbf16>> -> tensor<64x128xbf16>
      %t1 = hopper.read %t : <tensor<64x128xbf16>> -> tensor<64x128xbf16>
      // CHECK: hopper.release %[[T]]
      hopper.release %t : <tensor<64x128xbf16>>
    }
  tile.return
}

!numbers = !hopper.ring<2 x tensor<2xi32>>

// CHECK-LABEL: tile.kernel @persistent(
tile.kernel @persistent(%o: memref<?x4x?x128xbf16>) attributes {num_warps = 8 : i32} {
  %ring = hopper.create_ring : !ring
  %numbers = hopper.create_ring : !numbers
  hopper.warp_specialize(%o, %ring, %numbers : memref<?x4x?x128xbf16>, !ring, !numbers)
    producer registers(24) (%out: memref<?x4x?x128xbf16>, %r: !ring, %n: !numbers) {
      %c0 = arith.constant 0 : i32
      // CHECK: hopper.num_tiles : i32
      %count = hopper.num_tiles : i32
      // CHECK: %[[TILE:.*]] = hopper.next_tile : i32
      %tile = hopper.next_tile : i32
      %slot = hopper.acquire %n[%c0] : !numbers
      // CHECK: hopper.put %[[TILE]], %{{.*}} to %{{.*}} : <tensor<2xi32>>
      hopper.put %tile, %count to %slot : <tensor<2xi32>>
      hopper.commit %slot : <tensor<2xi32>>
    } consumer warpgroups(1) registers(240) (%out: memref<?x4x?x128xbf16>, %r: !ring, %n: !numbers) {
      %c0 = arith.constant 0 : i32
      %result = arith.constant dense<1.0> : tensor<64x128xbf16>
      // CHECK: hopper.warpgroup_id : i32
      %w = hopper.warpgroup_id : i32
      %slot = hopper.wait %n[%c0] : !numbers
      // CHECK: hopper.get %{{.*}}[%{{.*}}] : <tensor<2xi32>> -> i32, i32
      %tile, %count = hopper.get %slot[%c0] : <tensor<2xi32>> -> i32, i32
      hopper.release %slot : <tensor<2xi32>>
      // CHECK: hopper.slot %{{.*}}[%{{.*}}] : <2 x tensor<64x128xbf16>>
      %t = hopper.slot %r[%c0] : !ring
      // CHECK: hopper.tma_store %{{.*}}, %{{.*}} to %{{.*}}[%{{.*}}] : tensor<64x128xbf16>, <tensor<64x128xbf16>>, memref<?x4x?x128xbf16>
      hopper.tma_store %result, %t to %out[%c0, %c0, %c0, %c0] : tensor<64x128xbf16>, <tensor<64x128xbf16>>, memref<?x4x?x128xbf16>
    }
  tile.return
}

!vmem = memref<?x64xf8E4M3FN, strided<[?, 1]>>
!staging = !hopper.ring<2 x tensor<96x64xf8E4M3FN>>
!vring = !hopper.ring<2 x tensor<64x96xf8E4M3FN>>

// CHECK-LABEL: tile.kernel @transposer(
tile.kernel @transposer(%v: !vmem) attributes {num_warps = 8 : i32} {
  %staging = hopper.create_ring : !staging
  %vring = hopper.create_ring : !vring
  hopper.warp_specialize(%v, %staging, %vring : !vmem, !staging, !vring)
    producer registers(40) (%a: !vmem, %in: !staging, %out: !vring) {
      %c0 = arith.constant 0 : i32
      %slot = hopper.acquire %in[%c0] : !staging
      hopper.tma_load %a[%c0, %c0] to %slot : !vmem, <tensor<96x64xf8E4M3FN>>
      hopper.commit %slot : <tensor<96x64xf8E4M3FN>>
    // CHECK: } transposer (%{{.*}}: memref<{{.*}}>, %[[IN:.*]]: !hopper.ring<2 x tensor<96x64xf8E4M3FN>>, %[[OUT:.*]]: !hopper.ring<2 x tensor<64x96xf8E4M3FN>>) {
    } transposer (%a: !vmem, %in: !staging, %out: !vring) {
      %c0 = arith.constant 0 : i32
      // CHECK: %[[SOURCE:.*]] = hopper.wait %[[IN]]
      %source = hopper.wait %in[%c0] : !staging
      // CHECK: %[[TARGET:.*]] = hopper.acquire %[[OUT]]
      %target = hopper.acquire %out[%c0] : !vring
      // CHECK: hopper.transpose %[[SOURCE]] to %[[TARGET]] : <tensor<96x64xf8E4M3FN>>, <tensor<64x96xf8E4M3FN>>
      hopper.transpose %source to %target : <tensor<96x64xf8E4M3FN>>, <tensor<64x96xf8E4M3FN>>
      hopper.commit %target : <tensor<64x96xf8E4M3FN>>
      hopper.release %source : <tensor<96x64xf8E4M3FN>>
    // CHECK: } consumer warpgroups(1) registers(232)
    } consumer warpgroups(1) registers(232) (%a: !vmem, %in: !staging, %out: !vring) {
      %c0 = arith.constant 0 : i32
      %t = hopper.wait %out[%c0] : !vring
      hopper.release %t : <tensor<64x96xf8E4M3FN>>
    }
  tile.return
}
