// RUN: attn-opt --tile-lower-math --split-input-file %s | FileCheck %s

// Values are tested end to end; here, that
// only target ops remain.
// CHECK-LABEL: tile.kernel @all(
// CHECK-NOT: math.{{(exp |expm1|log |log1p|log10|tanh|erf|ceil|trunc|powf|fpowi|absi)}}
// CHECK: tile.return
tile.kernel @all(%x: f32, %i: i32, %m: memref<?xf32>) attributes {num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %t = tile.load %m[%c0] : memref<?xf32> -> tensor<64xf32>
  %a = math.exp %t : tensor<64xf32>
  %b = math.expm1 %a : tensor<64xf32>
  %c = math.log %b : tensor<64xf32>
  %d = math.log1p %c : tensor<64xf32>
  %e = math.log10 %d : tensor<64xf32>
  %f = math.tanh %e : tensor<64xf32>
  %g = math.erf %f : tensor<64xf32>
  %h = math.ceil %g : tensor<64xf32>
  %j = math.trunc %h : tensor<64xf32>
  %s0 = math.exp %x : f32
  %abs = math.absi %i : i32
  %af = arith.sitofp %abs : i32 to f32
  %s1 = arith.addf %s0, %af : f32
  %sp = tensor.splat %s1 : tensor<64xf32>
  %k = arith.addf %j, %sp : tensor<64xf32>
  tile.store %k, %m[%c0] : tensor<64xf32>, memref<?xf32>
  tile.return
}

// -----

// CHECK-LABEL: tile.kernel @powers(
// CHECK: %[[T:.*]] = tile.load
// CHECK: %[[T2:.*]] = arith.mulf %[[T]], %[[T]]
// CHECK: %[[T3:.*]] = arith.mulf %[[T]], %[[T2]]
// CHECK: math.sqrt %[[T3]]
// CHECK: math.rsqrt
// CHECK: math.exp2
// CHECK-NOT: powf
tile.kernel @powers(%m: memref<?xf32>) attributes {num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %t = tile.load %m[%c0] : memref<?xf32> -> tensor<64xf32>
  %three = arith.constant dense<3.0> : tensor<64xf32>
  %half = arith.constant dense<0.5> : tensor<64xf32>
  %mhalf = arith.constant dense<-0.5> : tensor<64xf32>
  %two = arith.constant dense<2.0> : tensor<64xf32>
  %a = math.powf %t, %three : tensor<64xf32>
  %b = math.powf %a, %half : tensor<64xf32>
  %c = math.powf %b, %mhalf : tensor<64xf32>
  %d = math.powf %two, %c : tensor<64xf32>
  tile.store %d, %m[%c0] : tensor<64xf32>, memref<?xf32>
  tile.return
}

// -----

// 16-bit floats are computed in f32.
// CHECK-LABEL: tile.kernel @bf16(
// CHECK: %[[T:.*]] = tile.load
// CHECK: %[[W:.*]] = arith.extf %[[T]] : tensor<64xbf16> to tensor<64xf32>
// CHECK: %[[E:.*]] = math.exp2 %[[W]] : tensor<64xf32>
// CHECK: arith.truncf %[[E]] : tensor<64xf32> to tensor<64xbf16>
tile.kernel @bf16(%m: memref<?xbf16>) attributes {num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %t = tile.load %m[%c0] : memref<?xbf16> -> tensor<64xbf16>
  %a = math.exp2 %t : tensor<64xbf16>
  tile.store %a, %m[%c0] : tensor<64xbf16>, memref<?xbf16>
  tile.return
}

// -----

// Divisions that round to a side are those that round towards 0, corrected.
// CHECK-LABEL: tile.kernel @divisions(
// CHECK-NOT: {{floordivsi|ceildiv}}
// CHECK: arith.divsi {{.*}} : tensor<64xi32>
// CHECK-NOT: {{floordivsi|ceildiv}}
// CHECK: arith.divsi {{.*}} : i32
// CHECK-NOT: {{floordivsi|ceildiv}}
// CHECK: arith.divui {{.*}} : tensor<64xi32>
// CHECK-NOT: {{floordivsi|ceildiv}}
// CHECK: tile.return
tile.kernel @divisions(%i: i32, %m: memref<?xi32>) attributes {num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c7 = arith.constant dense<7> : tensor<64xi32>
  %t = tile.load %m[%c0] : memref<?xi32> -> tensor<64xi32>
  %a = arith.floordivsi %t, %c7 : tensor<64xi32>
  %b = arith.ceildivsi %i, %c0 : i32
  %s = tensor.splat %b : tensor<64xi32>
  %c = arith.ceildivui %a, %s : tensor<64xi32>
  tile.store %c, %m[%c0] : tensor<64xi32>, memref<?xi32>
  tile.return
}

// -----

// An error relative to 1 needs no polynomial near 0.
// CHECK-LABEL: tile.kernel @tanh(
// CHECK: math.exp2
// CHECK: arith.divf {{.*}} fastmath<afn>
// CHECK-NEXT: arith.constant
// CHECK-NEXT: arith.constant
// CHECK-NEXT: math.fma
// CHECK-NOT: arith.select
// CHECK: tile.store
tile.kernel @tanh(%m: memref<?xf32>) attributes {num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %t = tile.load %m[%c0] : memref<?xf32> -> tensor<64xf32>
  %r = math.tanh %t fastmath<afn> : tensor<64xf32>
  tile.store %r, %m[%c0] : tensor<64xf32>, memref<?xf32>
  tile.return
}
