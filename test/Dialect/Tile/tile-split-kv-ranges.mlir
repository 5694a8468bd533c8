// RUN: attn-opt --tile-split-kv-ranges --canonicalize --cse %s | FileCheck %s

// unittests/Analysis tests the ranges by value, for every mask of the library.

// Causal: everything before the diagonal of the first row is full, nothing
// after that of the last row runs.
// CHECK-LABEL: tile.kernel @causal(
// CHECK-SAME: %[[Q0:[a-z0-9]+]]: i32
// CHECK: %[[N:.*]] = arith.index_cast %{{.*}} : index to i32
// CHECK: %[[Q:.*]] = arith.extsi %[[Q0]] : i32 to i64
// CHECK: %[[LAST:.*]] = arith.addi %[[Q]], %c64_i64 : i64
// CHECK: %[[LOW:.*]] = arith.maxsi %[[LAST]], %c0_i64
// CHECK: %[[N64:.*]] = arith.extsi %[[N]] : i32 to i64
// CHECK: %[[IN:.*]] = arith.minsi %[[LOW]], %[[N64]]
// CHECK: %[[END:.*]] = arith.trunci %[[IN]] : i64 to i32
// CHECK: %[[FIRST:.*]] = arith.addi %[[Q]], %c1_i64 : i64
// CHECK: %[[FULL:.*]] = arith.trunci
// CHECK: %[[STEPS:.*]] = arith.divui %[[FULL]], %c32_i32
// CHECK: %[[FULL_END:.*]] = arith.muli %[[STEPS]], %c32_i32
// CHECK: tile.kv_loop ranges(%c0_i32, %c0_i32, %[[FULL_END]], %[[END]]) step 32
tile.kernel @causal(%q0: i32, %c: f32, %k: memref<?x64xbf16>, %v: memref<?x64xbf16>, %o: memref<?x64xf32>) attributes {num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %i0 = arith.constant 0 : index
  %dim = memref.dim %k, %i0 : memref<?x64xbf16>
  %n = arith.index_cast %dim : index to i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %m0 = arith.constant dense<0xFF800000> : tensor<64xf32>
  %l0 = arith.constant dense<0.0> : tensor<64xf32>
  %q = tile.load %k[%q0, %c0] : memref<?x64xbf16> -> tensor<64x64xbf16>
  %r:3 = tile.kv_loop ranges(%c0, %c0, %c0, %n) step 32 iter_args(%zero, %m0, %l0) : tensor<64x64xf32>, tensor<64xf32>, tensor<64xf32>
    qk (%kv: i32, %acc: tensor<64x64xf32>, %m: tensor<64xf32>, %l: tensor<64xf32>) {
      %kt = tile.load %k[%kv, %c0] : memref<?x64xbf16> -> tensor<32x64xbf16>
      %z = arith.constant dense<0.0> : tensor<64x32xf32>
      %s = tile.mma mma %q, %kt, %z {transpose_b} : tensor<64x64xbf16>, tensor<32x64xbf16>, tensor<64x32xf32>
      tile.yield %s : tensor<64x32xf32>
    } score (%kv: i32, %s: tensor<64x32xf32>, %acc: tensor<64x64xf32>, %m: tensor<64xf32>, %l: tensor<64xf32>) {
      %t = tile.mask %s at (%q0, %kv) (%qi: i32, %ki: i32) {
        %in = arith.cmpi slt, %ki, %n : i32
        %before = arith.cmpi sle, %ki, %qi : i32
        %keep = arith.andi %in, %before : i1
        tile.yield %keep : i1
      } : tensor<64x32xf32>
      tile.yield %t : tensor<64x32xf32>
    } softmax (%kv: i32, %t: tensor<64x32xf32>, %acc: tensor<64x64xf32>, %m: tensor<64xf32>, %l: tensor<64xf32>) {
      %p, %m1, %l1, %a = tile.online_softmax %t, %m, %l scale %c : tensor<64x32xf32>, tensor<64xf32>
      tile.yield %p, %m1, %l1, %a : tensor<64x32xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>
    } pv (%kv: i32, %p: tensor<64x32xf32>, %m1: tensor<64xf32>, %l1: tensor<64xf32>, %a: tensor<64xf32>, %acc: tensor<64x64xf32>, %m: tensor<64xf32>, %l: tensor<64xf32>) {
      %vt = tile.load %v[%kv, %c0] : memref<?x64xbf16> -> tensor<32x64xbf16>
      %ab = tile.broadcast %a dim 0 : tensor<64xf32> -> tensor<64x64xf32>
      %scaled = arith.mulf %acc, %ab : tensor<64x64xf32>
      %pt = arith.truncf %p : tensor<64x32xf32> to tensor<64x32xbf16>
      %next = tile.mma mma %pt, %vt, %scaled : tensor<64x32xbf16>, tensor<32x64xbf16>, tensor<64x64xf32>
      tile.yield %next, %m1, %l1 : tensor<64x64xf32>, tensor<64xf32>, tensor<64xf32>
    }
  tile.store %r#0, %o[%q0, %c0] : tensor<64x64xf32>, memref<?x64xf32>
  tile.return
}

// The last row that counts decides where the visible keys end.
// CHECK-LABEL: tile.kernel @causal_rows(
// CHECK-SAME: %[[Q0:[a-z0-9]+]]: i32, %[[ROWS:[a-z0-9]+]]: i32
// CHECK: %[[LAST:.*]] = arith.addi %[[Q0]], %c63_i32
// CHECK: %[[SUM:.*]] = arith.addi %[[Q0]], %[[ROWS]]
// CHECK: %[[LAST_OF_ALL:.*]] = arith.subi %[[SUM]], %c1_i32
// CHECK: %[[OWN:.*]] = arith.minsi %[[LAST]], %[[LAST_OF_ALL]]
// CHECK: %[[WIDE:.*]] = arith.extsi %[[OWN]] : i32 to i64
// CHECK: arith.addi %[[WIDE]], %c1_i64
// CHECK: tile.kv_loop ranges({{.*}}) step 32 rows %[[ROWS]]
tile.kernel @causal_rows(%q0: i32, %rows: i32, %c: f32, %k: memref<?x64xbf16>, %v: memref<?x64xbf16>, %o: memref<?x64xf32>) attributes {num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %i0 = arith.constant 0 : index
  %dim = memref.dim %k, %i0 : memref<?x64xbf16>
  %n = arith.index_cast %dim : index to i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %m0 = arith.constant dense<0xFF800000> : tensor<64xf32>
  %l0 = arith.constant dense<0.0> : tensor<64xf32>
  %q = tile.load %k[%q0, %c0] : memref<?x64xbf16> -> tensor<64x64xbf16>
  %r:3 = tile.kv_loop ranges(%c0, %c0, %c0, %n) step 32 rows %rows iter_args(%zero, %m0, %l0) : tensor<64x64xf32>, tensor<64xf32>, tensor<64xf32>
    qk (%kv: i32, %acc: tensor<64x64xf32>, %m: tensor<64xf32>, %l: tensor<64xf32>) {
      %kt = tile.load %k[%kv, %c0] : memref<?x64xbf16> -> tensor<32x64xbf16>
      %z = arith.constant dense<0.0> : tensor<64x32xf32>
      %s = tile.mma mma %q, %kt, %z {transpose_b} : tensor<64x64xbf16>, tensor<32x64xbf16>, tensor<64x32xf32>
      tile.yield %s : tensor<64x32xf32>
    } score (%kv: i32, %s: tensor<64x32xf32>, %acc: tensor<64x64xf32>, %m: tensor<64xf32>, %l: tensor<64xf32>) {
      %t = tile.mask %s at (%q0, %kv) (%qi: i32, %ki: i32) {
        %in = arith.cmpi slt, %ki, %n : i32
        %before = arith.cmpi sle, %ki, %qi : i32
        %keep = arith.andi %in, %before : i1
        tile.yield %keep : i1
      } : tensor<64x32xf32>
      tile.yield %t : tensor<64x32xf32>
    } softmax (%kv: i32, %t: tensor<64x32xf32>, %acc: tensor<64x64xf32>, %m: tensor<64xf32>, %l: tensor<64xf32>) {
      %p, %m1, %l1, %a = tile.online_softmax %t, %m, %l scale %c : tensor<64x32xf32>, tensor<64xf32>
      tile.yield %p, %m1, %l1, %a : tensor<64x32xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>
    } pv (%kv: i32, %p: tensor<64x32xf32>, %m1: tensor<64xf32>, %l1: tensor<64xf32>, %a: tensor<64xf32>, %acc: tensor<64x64xf32>, %m: tensor<64xf32>, %l: tensor<64xf32>) {
      %vt = tile.load %v[%kv, %c0] : memref<?x64xbf16> -> tensor<32x64xbf16>
      %ab = tile.broadcast %a dim 0 : tensor<64xf32> -> tensor<64x64xf32>
      %scaled = arith.mulf %acc, %ab : tensor<64x64xf32>
      %pt = arith.truncf %p : tensor<64x32xf32> to tensor<64x32xbf16>
      %next = tile.mma mma %pt, %vt, %scaled : tensor<64x32xbf16>, tensor<32x64xbf16>, tensor<64x64xf32>
      tile.yield %next, %m1, %l1 : tensor<64x64xf32>, tensor<64xf32>, tensor<64xf32>
    }
  tile.store %r#0, %o[%q0, %c0] : tensor<64x64xf32>, memref<?x64xf32>
  tile.return
}

// A loop without a mask is full up to its last whole step.
// CHECK-LABEL: tile.kernel @no_mask(
// CHECK-SAME: %[[N:[a-z0-9]+]]: i32
// CHECK: %[[STEPS:.*]] = arith.divui %[[N]], %c32_i32
// CHECK: %[[FULL_END:.*]] = arith.muli %[[STEPS]], %c32_i32
// CHECK: tile.kv_loop ranges(%c0_i32, %c0_i32, %[[FULL_END]], %[[N]]) step 32
tile.kernel @no_mask(%n: i32, %o: memref<?x64xf32>) attributes {num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %one = arith.constant dense<1.0> : tensor<32x64xf32>
  tile.kv_loop ranges(%c0, %c0, %c0, %n) step 32
    qk (%kv: i32) {
      tile.yield
    } score (%kv: i32) {
      tile.yield
    } softmax (%kv: i32) {
      tile.yield
    } pv (%kv: i32) {
      tile.store %one, %o[%kv, %c0] : tensor<32x64xf32>, memref<?x64xf32>
      tile.yield
    }
  tile.return
}

// A captured length bounds the loop: it is read in front of it.
// CHECK-LABEL: tile.kernel @captured_length(
// CHECK-SAME: %[[N:[a-z0-9]+]]: i32, %[[B:[a-z0-9]+]]: i32, %{{.*}}: f32, %[[LENS:[a-z0-9]+]]: memref<?xi32>
// CHECK: %[[LEN:.*]] = tile.gather %[[LENS]][%[[B]]]
// CHECK: %[[LEN64:.*]] = arith.extsi %[[LEN]] : i32 to i64
// CHECK: %[[LOW:.*]] = arith.maxsi %[[LEN64]], %c0_i64
// CHECK: %[[N64:.*]] = arith.extsi %[[N]] : i32 to i64
// CHECK: %[[IN:.*]] = arith.minsi %[[LOW]], %[[N64]]
// CHECK: %[[END:.*]] = arith.trunci %[[IN]] : i64 to i32
// CHECK: tile.kv_loop ranges(%c0_i32, %c0_i32, %{{.*}}, %[[END]]) step 32
tile.kernel @captured_length(%n: i32, %b: i32, %c: f32, %lens: memref<?xi32>, %o: memref<?xf32>) attributes {num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %m0 = arith.constant dense<0xFF800000> : tensor<64xf32>
  %l0 = arith.constant dense<0.0> : tensor<64xf32>
  %s = arith.constant dense<1.0> : tensor<64x32xf32>
  %r:2 = tile.kv_loop ranges(%c0, %c0, %c0, %n) step 32 iter_args(%m0, %l0) : tensor<64xf32>, tensor<64xf32>
    qk (%kv: i32, %m: tensor<64xf32>, %l: tensor<64xf32>) {
      tile.yield %s : tensor<64x32xf32>
    } score (%kv: i32, %x: tensor<64x32xf32>, %m: tensor<64xf32>, %l: tensor<64xf32>) {
      %t = tile.mask %x at (%c0, %kv) (%qi: i32, %ki: i32) {
        %len = tile.gather %lens[%b] : memref<?xi32>, (i32) -> i32
        %keep = arith.cmpi slt, %ki, %len : i32
        tile.yield %keep : i1
      } : tensor<64x32xf32>
      tile.yield %t : tensor<64x32xf32>
    } softmax (%kv: i32, %t: tensor<64x32xf32>, %m: tensor<64xf32>, %l: tensor<64xf32>) {
      %p, %m1, %l1, %a = tile.online_softmax %t, %m, %l scale %c : tensor<64x32xf32>, tensor<64xf32>
      tile.yield %m1, %l1 : tensor<64xf32>, tensor<64xf32>
    } pv (%kv: i32, %m1: tensor<64xf32>, %l1: tensor<64xf32>, %m: tensor<64xf32>, %l: tensor<64xf32>) {
      tile.yield %m1, %l1 : tensor<64xf32>, tensor<64xf32>
    }
  tile.store %r#0, %o[%c0] : tensor<64xf32>, memref<?xf32>
  tile.return
}

// Two granules: the hull of what they see, and what both see whole.
// CHECK-LABEL: tile.kernel @bounds(
// CHECK-SAME: %[[M:[a-z0-9]+]]: memref<?x?x?x4xi32>, %[[B:[a-z0-9]+]]: i32, %[[Q0:[a-z0-9]+]]: i32
// CHECK: %[[TILE:.*]] = arith.divui %[[Q0]], %c64_i32
// CHECK: %[[G0:.*]] = arith.muli %[[TILE]], %c2_i32
// CHECK: tile.gather %[[M]][%[[B]], %c0_i32, %[[G0]], %c0_i32] in_bounds [0, 1, 2, 3]
// CHECK-COUNT-3: tile.gather %[[M]][%[[B]], %c0_i32, %[[G0]],
// CHECK: %[[G1:.*]] = arith.addi %[[G0]], %c1_i32
// CHECK-COUNT-4: tile.gather %[[M]][%[[B]], %c0_i32, %[[G1]],
// CHECK-NOT: arith.extsi
// CHECK: tile.kv_loop ranges(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) step 32
// CHECK: tile.mask %{{.*}} bounds(%[[M]][%[[B]], %c0_i32, %c0_i32] : memref<?x?x?x4xi32>) rows 32 ({{.*}}) {
// CHECK: skippable
tile.kernel @bounds(%bounds: memref<?x?x?x4xi32>, %b: i32, %q0: i32, %c: f32, %k: memref<?x64xbf16>, %v: memref<?x64xbf16>, %o: memref<?x64xf32>) attributes {num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %i0 = arith.constant 0 : index
  %dim = memref.dim %k, %i0 : memref<?x64xbf16>
  %n = arith.index_cast %dim : index to i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %m0 = arith.constant dense<0xFF800000> : tensor<64xf32>
  %l0 = arith.constant dense<0.0> : tensor<64xf32>
  %q = tile.load %k[%q0, %c0] : memref<?x64xbf16> -> tensor<64x64xbf16>
  %r:3 = tile.kv_loop ranges(%c0, %c0, %c0, %n) step 32 iter_args(%zero, %m0, %l0) : tensor<64x64xf32>, tensor<64xf32>, tensor<64xf32>
    qk (%kv: i32, %acc: tensor<64x64xf32>, %m: tensor<64xf32>, %l: tensor<64xf32>) {
      %kt = tile.load %k[%kv, %c0] : memref<?x64xbf16> -> tensor<32x64xbf16>
      %z = arith.constant dense<0.0> : tensor<64x32xf32>
      %s = tile.mma mma %q, %kt, %z {transpose_b} : tensor<64x64xbf16>, tensor<32x64xbf16>, tensor<64x32xf32>
      tile.yield %s : tensor<64x32xf32>
    } score (%kv: i32, %s: tensor<64x32xf32>, %acc: tensor<64x64xf32>, %m: tensor<64xf32>, %l: tensor<64xf32>) {
      %t = tile.mask %s at (%q0, %kv) bounds(%bounds[%b, %c0, %c0] : memref<?x?x?x4xi32>) rows 32 (%qi: i32, %ki: i32) {
        %in = arith.cmpi slt, %ki, %n : i32
        %before = arith.cmpi sle, %ki, %qi : i32
        %keep = arith.andi %in, %before : i1
        tile.yield %keep : i1
      } : tensor<64x32xf32>
      tile.yield %t : tensor<64x32xf32>
    } softmax (%kv: i32, %t: tensor<64x32xf32>, %acc: tensor<64x64xf32>, %m: tensor<64xf32>, %l: tensor<64xf32>) {
      %p, %m1, %l1, %a = tile.online_softmax %t, %m, %l scale %c : tensor<64x32xf32>, tensor<64xf32>
      tile.yield %p, %m1, %l1, %a : tensor<64x32xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>
    } pv (%kv: i32, %p: tensor<64x32xf32>, %m1: tensor<64xf32>, %l1: tensor<64xf32>, %a: tensor<64xf32>, %acc: tensor<64x64xf32>, %m: tensor<64xf32>, %l: tensor<64xf32>) {
      %vt = tile.load %v[%kv, %c0] : memref<?x64xbf16> -> tensor<32x64xbf16>
      %ab = tile.broadcast %a dim 0 : tensor<64xf32> -> tensor<64x64xf32>
      %scaled = arith.mulf %acc, %ab : tensor<64x64xf32>
      %pt = arith.truncf %p : tensor<64x32xf32> to tensor<64x32xbf16>
      %next = tile.mma mma %pt, %vt, %scaled : tensor<64x32xbf16>, tensor<32x64xbf16>, tensor<64x64xf32>
      tile.yield %next, %m1, %l1 : tensor<64x64xf32>, tensor<64xf32>, tensor<64xf32>
    }
  tile.store %r#0, %o[%q0, %c0] : tensor<64x64xf32>, memref<?x64xf32>
  tile.return
}

// The loop takes the list of the query tile, and the ranges count in it.
// CHECK-LABEL: tile.kernel @tiles(
// CHECK-SAME: %[[M:[a-z0-9]+]]: memref<?x?x?x4xi32>, %[[T:[a-z0-9]+]]: memref<?x?x?x?xi32>, %[[B:[a-z0-9]+]]: i32, %[[Q0:[a-z0-9]+]]: i32
// CHECK: %[[ROW:.*]] = arith.divui %[[Q0]], %c64_i32
// CHECK-COUNT-8: tile.gather %[[M]]
// CHECK: tile.kv_loop ranges(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) step 32 tiles(%[[T]][%[[B]], %c0_i32, %[[ROW]]] :
tile.kernel @tiles(%bounds: memref<?x?x?x4xi32>, %tiles: memref<?x?x?x?xi32>, %b: i32, %q0: i32, %c: f32, %k: memref<?x64xbf16>, %v: memref<?x64xbf16>, %o: memref<?x64xf32>) attributes {num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %i0 = arith.constant 0 : index
  %dim = memref.dim %k, %i0 : memref<?x64xbf16>
  %n = arith.index_cast %dim : index to i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %m0 = arith.constant dense<0xFF800000> : tensor<64xf32>
  %l0 = arith.constant dense<0.0> : tensor<64xf32>
  %q = tile.load %k[%q0, %c0] : memref<?x64xbf16> -> tensor<64x64xbf16>
  %r:3 = tile.kv_loop ranges(%c0, %c0, %c0, %n) step 32 iter_args(%zero, %m0, %l0) : tensor<64x64xf32>, tensor<64xf32>, tensor<64xf32>
    qk (%kv: i32, %acc: tensor<64x64xf32>, %m: tensor<64xf32>, %l: tensor<64xf32>) {
      %kt = tile.load %k[%kv, %c0] : memref<?x64xbf16> -> tensor<32x64xbf16>
      %z = arith.constant dense<0.0> : tensor<64x32xf32>
      %s = tile.mma mma %q, %kt, %z {transpose_b} : tensor<64x64xbf16>, tensor<32x64xbf16>, tensor<64x32xf32>
      tile.yield %s : tensor<64x32xf32>
    } score (%kv: i32, %s: tensor<64x32xf32>, %acc: tensor<64x64xf32>, %m: tensor<64xf32>, %l: tensor<64xf32>) {
      %t = tile.mask %s at (%q0, %kv) bounds(%bounds[%b, %c0, %c0] : memref<?x?x?x4xi32>) rows 32 tiles(%tiles : memref<?x?x?x?xi32>) (%qi: i32, %ki: i32) {
        %in = arith.cmpi slt, %ki, %n : i32
        %before = arith.cmpi sle, %ki, %qi : i32
        %keep = arith.andi %in, %before : i1
        tile.yield %keep : i1
      } : tensor<64x32xf32>
      tile.yield %t : tensor<64x32xf32>
    } softmax (%kv: i32, %t: tensor<64x32xf32>, %acc: tensor<64x64xf32>, %m: tensor<64xf32>, %l: tensor<64xf32>) {
      %p, %m1, %l1, %a = tile.online_softmax %t, %m, %l scale %c : tensor<64x32xf32>, tensor<64xf32>
      tile.yield %p, %m1, %l1, %a : tensor<64x32xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>
    } pv (%kv: i32, %p: tensor<64x32xf32>, %m1: tensor<64xf32>, %l1: tensor<64xf32>, %a: tensor<64xf32>, %acc: tensor<64x64xf32>, %m: tensor<64xf32>, %l: tensor<64xf32>) {
      %vt = tile.load %v[%kv, %c0] : memref<?x64xbf16> -> tensor<32x64xbf16>
      %ab = tile.broadcast %a dim 0 : tensor<64xf32> -> tensor<64x64xf32>
      %scaled = arith.mulf %acc, %ab : tensor<64x64xf32>
      %pt = arith.truncf %p : tensor<64x32xf32> to tensor<64x32xbf16>
      %next = tile.mma mma %pt, %vt, %scaled : tensor<64x32xbf16>, tensor<32x64xbf16>, tensor<64x64xf32>
      tile.yield %next, %m1, %l1 : tensor<64x64xf32>, tensor<64xf32>, tensor<64xf32>
    }
  tile.store %r#0, %o[%q0, %c0] : tensor<64x64xf32>, memref<?x64xf32>
  tile.return
}

// Scores of hidden keys aren't -inf in the softmax, so that every step counts:
// the list is of no use, and the mask itself says which steps are full.
// CHECK-LABEL: tile.kernel @tiles_of_all_steps(
// CHECK-NOT: tile.gather
// CHECK: tile.kv_loop ranges(%c0_i32, %{{.*}}, %{{.*}}, %{{.*}}) step 32 iter_args
tile.kernel @tiles_of_all_steps(%bounds: memref<?x?x?x4xi32>, %tiles: memref<?x?x?x?xi32>, %b: i32, %q0: i32, %c: f32, %k: memref<?x64xbf16>, %v: memref<?x64xbf16>, %o: memref<?x64xf32>) attributes {num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %floor = arith.constant dense<-1.0e3> : tensor<64x32xf32>
  %i0 = arith.constant 0 : index
  %dim = memref.dim %k, %i0 : memref<?x64xbf16>
  %n = arith.index_cast %dim : index to i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %m0 = arith.constant dense<0xFF800000> : tensor<64xf32>
  %l0 = arith.constant dense<0.0> : tensor<64xf32>
  %q = tile.load %k[%q0, %c0] : memref<?x64xbf16> -> tensor<64x64xbf16>
  %r:3 = tile.kv_loop ranges(%c0, %c0, %c0, %n) step 32 iter_args(%zero, %m0, %l0) : tensor<64x64xf32>, tensor<64xf32>, tensor<64xf32>
    qk (%kv: i32, %acc: tensor<64x64xf32>, %m: tensor<64xf32>, %l: tensor<64xf32>) {
      %kt = tile.load %k[%kv, %c0] : memref<?x64xbf16> -> tensor<32x64xbf16>
      %z = arith.constant dense<0.0> : tensor<64x32xf32>
      %s = tile.mma mma %q, %kt, %z {transpose_b} : tensor<64x64xbf16>, tensor<32x64xbf16>, tensor<64x32xf32>
      tile.yield %s : tensor<64x32xf32>
    } score (%kv: i32, %s: tensor<64x32xf32>, %acc: tensor<64x64xf32>, %m: tensor<64xf32>, %l: tensor<64xf32>) {
      %t = tile.mask %s at (%q0, %kv) bounds(%bounds[%b, %c0, %c0] : memref<?x?x?x4xi32>) rows 32 tiles(%tiles : memref<?x?x?x?xi32>) (%qi: i32, %ki: i32) {
        %in = arith.cmpi slt, %ki, %n : i32
        %before = arith.cmpi sle, %ki, %qi : i32
        %keep = arith.andi %in, %before : i1
        tile.yield %keep : i1
      } : tensor<64x32xf32>
      tile.yield %t : tensor<64x32xf32>
    } softmax (%kv: i32, %t: tensor<64x32xf32>, %acc: tensor<64x64xf32>, %m: tensor<64xf32>, %l: tensor<64xf32>) {
      %tt = arith.maximumf %t, %floor : tensor<64x32xf32>
      %p, %m1, %l1, %a = tile.online_softmax %tt, %m, %l scale %c : tensor<64x32xf32>, tensor<64xf32>
      tile.yield %p, %m1, %l1, %a : tensor<64x32xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>
    } pv (%kv: i32, %p: tensor<64x32xf32>, %m1: tensor<64xf32>, %l1: tensor<64xf32>, %a: tensor<64xf32>, %acc: tensor<64x64xf32>, %m: tensor<64xf32>, %l: tensor<64xf32>) {
      %vt = tile.load %v[%kv, %c0] : memref<?x64xbf16> -> tensor<32x64xbf16>
      %ab = tile.broadcast %a dim 0 : tensor<64xf32> -> tensor<64x64xf32>
      %scaled = arith.mulf %acc, %ab : tensor<64x64xf32>
      %pt = arith.truncf %p : tensor<64x32xf32> to tensor<64x32xbf16>
      %next = tile.mma mma %pt, %vt, %scaled : tensor<64x32xbf16>, tensor<32x64xbf16>, tensor<64x64xf32>
      tile.yield %next, %m1, %l1 : tensor<64x64xf32>, tensor<64xf32>, tensor<64xf32>
    }
  tile.store %r#0, %o[%q0, %c0] : tensor<64x64xf32>, memref<?x64xf32>
  tile.return
}
