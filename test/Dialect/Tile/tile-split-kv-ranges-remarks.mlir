// RUN: attn-opt --tile-split-kv-ranges --split-input-file --verify-diagnostics %s
// RUN: attn-opt --tile-split-kv-ranges --split-input-file --canonicalize %s 2>/dev/null | FileCheck %s

// An op that the analysis doesn't know: all steps run and keep the mask.
// CHECK-LABEL: tile.kernel @opaque(
// CHECK-SAME: %[[N:[a-z0-9]+]]: i32
// CHECK: tile.kv_loop ranges(%c0_i32, %c0_i32, %c0_i32, %[[N]]) step 32
tile.kernel @opaque(%n: i32, %c: f32, %o: memref<?xf32>) attributes {num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %m0 = arith.constant dense<0xFF800000> : tensor<64xf32>
  %l0 = arith.constant dense<0.0> : tensor<64xf32>
  %s = arith.constant dense<1.0> : tensor<64x32xf32>
  %r:2 = tile.kv_loop ranges(%c0, %c0, %c0, %n) step 32 iter_args(%m0, %l0) : tensor<64xf32>, tensor<64xf32>
    qk (%kv: i32, %m: tensor<64xf32>, %l: tensor<64xf32>) {
      tile.yield %s : tensor<64x32xf32>
    } score (%kv: i32, %x: tensor<64x32xf32>, %m: tensor<64xf32>, %l: tensor<64xf32>) {
      %t = tile.mask %x at (%c0, %kv) (%qi: i32, %ki: i32) {
        %two = arith.constant 2 : i32
        // expected-remark@+1 {{mask analysis can't see through this}}
        %odd = arith.remsi %ki, %two : i32
        %keep = arith.cmpi eq, %odd, %c0 : i32
        tile.yield %keep : i1
      } : tensor<64x32xf32>
      tile.yield %t : tensor<64x32xf32>
    } softmax (%kv: i32, %t: tensor<64x32xf32>, %m: tensor<64xf32>, %l: tensor<64xf32>) {
      %p, %m1, %l1, %a = tile.online_softmax %t, %m, %l scale %c : tensor<64x32xf32>, tensor<64xf32>
      tile.yield %m1, %l1 : tensor<64xf32>, tensor<64xf32>
    } pv (%kv: i32, %m1: tensor<64xf32>, %l1: tensor<64xf32>, %m: tensor<64xf32>, %l: tensor<64xf32>) {
      tile.yield %m1, %l1 : tensor<64xf32>, tensor<64xf32>
    }
  tile.store %r#1, %o[%c0] : tensor<64xf32>, memref<?xf32>
  tile.return
}

// -----

// The sum of an i32 argument and a position may wrap.
// CHECK-LABEL: tile.kernel @wraps(
// CHECK-SAME: %[[N:[a-z0-9]+]]: i32
// CHECK: tile.kv_loop ranges(%c0_i32, %c0_i32, %c0_i32, %[[N]]) step 32
tile.kernel @wraps(%n: i32, %shift: i32, %c: f32, %o: memref<?xf32>) attributes {num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %m0 = arith.constant dense<0xFF800000> : tensor<64xf32>
  %l0 = arith.constant dense<0.0> : tensor<64xf32>
  %s = arith.constant dense<1.0> : tensor<64x32xf32>
  %r:2 = tile.kv_loop ranges(%c0, %c0, %c0, %n) step 32 iter_args(%m0, %l0) : tensor<64xf32>, tensor<64xf32>
    qk (%kv: i32, %m: tensor<64xf32>, %l: tensor<64xf32>) {
      tile.yield %s : tensor<64x32xf32>
    } score (%kv: i32, %x: tensor<64x32xf32>, %m: tensor<64xf32>, %l: tensor<64xf32>) {
      %t = tile.mask %x at (%c0, %kv) (%qi: i32, %ki: i32) {
        // expected-remark@+1 {{mask analysis can't see through this}}
        %last = arith.addi %qi, %shift : i32
        %keep = arith.cmpi sle, %ki, %last : i32
        tile.yield %keep : i1
      } : tensor<64x32xf32>
      tile.yield %t : tensor<64x32xf32>
    } softmax (%kv: i32, %t: tensor<64x32xf32>, %m: tensor<64xf32>, %l: tensor<64xf32>) {
      %p, %m1, %l1, %a = tile.online_softmax %t, %m, %l scale %c : tensor<64x32xf32>, tensor<64xf32>
      tile.yield %m1, %l1 : tensor<64xf32>, tensor<64xf32>
    } pv (%kv: i32, %m1: tensor<64xf32>, %l1: tensor<64xf32>, %m: tensor<64xf32>, %l: tensor<64xf32>) {
      tile.yield %m1, %l1 : tensor<64xf32>, tensor<64xf32>
    }
  tile.store %r#1, %o[%c0] : tensor<64xf32>, memref<?xf32>
  tile.return
}

// -----

// An op between mask and softmax could make a hidden score count: no step is
// skipped, but the full ones lose their mask.
// CHECK-LABEL: tile.kernel @edited(
// CHECK-SAME: %[[N:[a-z0-9]+]]: i32
// CHECK: tile.kv_loop ranges(%c0_i32, %c0_i32, %{{[0-9]+}}, %[[N]]) step 32
tile.kernel @edited(%n: i32, %c: f32, %o: memref<?xf32>) attributes {num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %m0 = arith.constant dense<0xFF800000> : tensor<64xf32>
  %l0 = arith.constant dense<0.0> : tensor<64xf32>
  %s = arith.constant dense<1.0> : tensor<64x32xf32>
  %r:2 = tile.kv_loop ranges(%c0, %c0, %c0, %n) step 32 iter_args(%m0, %l0) : tensor<64xf32>, tensor<64xf32>
    qk (%kv: i32, %m: tensor<64xf32>, %l: tensor<64xf32>) {
      tile.yield %s : tensor<64x32xf32>
    } score (%kv: i32, %x: tensor<64x32xf32>, %m: tensor<64xf32>, %l: tensor<64xf32>) {
      // expected-remark@+1 {{key tiles that this hides are not skipped}}
      %t = tile.mask %x at (%c0, %kv) (%qi: i32, %ki: i32) {
        %hundred = arith.constant 100 : i32
        %keep = arith.cmpi slt, %ki, %hundred : i32
        tile.yield %keep : i1
      } : tensor<64x32xf32>
      %u = arith.negf %t : tensor<64x32xf32>
      tile.yield %u : tensor<64x32xf32>
    } softmax (%kv: i32, %t: tensor<64x32xf32>, %m: tensor<64xf32>, %l: tensor<64xf32>) {
      %p, %m1, %l1, %a = tile.online_softmax %t, %m, %l scale %c : tensor<64x32xf32>, tensor<64xf32>
      tile.yield %m1, %l1 : tensor<64xf32>, tensor<64xf32>
    } pv (%kv: i32, %m1: tensor<64xf32>, %l1: tensor<64xf32>, %m: tensor<64xf32>, %l: tensor<64xf32>) {
      tile.yield %m1, %l1 : tensor<64xf32>, tensor<64xf32>
    }
  tile.store %r#1, %o[%c0] : tensor<64xf32>, memref<?xf32>
  tile.return
}

// -----

// A mask over the keys of an inner loop says nothing about the outer one, whose
// steps all keep it.
// CHECK-LABEL: tile.kernel @nested(
// CHECK-SAME: %[[N:[a-z0-9]+]]: i32
// CHECK: tile.kv_loop ranges(%c0_i32, %c0_i32, %c0_i32, %[[N]]) step 16
// CHECK: tile.kv_loop ranges(%c0_i32, %c0_i32, %{{[0-9]+}}, %[[N]]) step 32
tile.kernel @nested(%n: i32, %o: memref<?x32xf32>) attributes {num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %s = arith.constant dense<1.0> : tensor<64x32xf32>
  tile.kv_loop ranges(%c0, %c0, %c0, %n) step 16
    qk (%outer: i32) {
      tile.yield
    } score (%outer: i32) {
      tile.yield
    } softmax (%outer: i32) {
      tile.yield
    } pv (%outer: i32) {
      tile.kv_loop ranges(%c0, %c0, %c0, %n) step 32
        qk (%kv: i32) {
          tile.yield
        } score (%kv: i32) {
          // expected-remark@+2 {{mask analysis can't see through this}}
          // expected-remark@+1 {{key tiles that this hides are not skipped}}
          %t = tile.mask %s at (%c0, %kv) (%qi: i32, %ki: i32) {
            %keep = arith.cmpi slt, %ki, %n : i32
            tile.yield %keep : i1
          } : tensor<64x32xf32>
          tile.store %t, %o[%kv, %c0] : tensor<64x32xf32>, memref<?x32xf32>
          tile.yield
        } softmax (%kv: i32) {
          tile.yield
        } pv (%kv: i32) {
          tile.yield
        }
      tile.yield
    }
  tile.return
}

// -----

// A capture read by the key may say anything.
// CHECK-LABEL: tile.kernel @captured_mask(
// CHECK-SAME: %[[N:[a-z0-9]+]]: i32
// CHECK: tile.kv_loop ranges(%c0_i32, %c0_i32, %c0_i32, %[[N]]) step 32
tile.kernel @captured_mask(%n: i32, %c: f32, %docs: memref<?xi32>, %o: memref<?xf32>) attributes {num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %m0 = arith.constant dense<0xFF800000> : tensor<64xf32>
  %l0 = arith.constant dense<0.0> : tensor<64xf32>
  %s = arith.constant dense<1.0> : tensor<64x32xf32>
  %r:2 = tile.kv_loop ranges(%c0, %c0, %c0, %n) step 32 iter_args(%m0, %l0) : tensor<64xf32>, tensor<64xf32>
    qk (%kv: i32, %m: tensor<64xf32>, %l: tensor<64xf32>) {
      tile.yield %s : tensor<64x32xf32>
    } score (%kv: i32, %x: tensor<64x32xf32>, %m: tensor<64xf32>, %l: tensor<64xf32>) {
      %t = tile.mask %x at (%c0, %kv) (%qi: i32, %ki: i32) {
        // expected-remark@+1 {{mask analysis can't see through this}}
        %of_key = tile.gather %docs[%ki] : memref<?xi32>, (i32) -> i32
        %keep = arith.cmpi eq, %of_key, %c0 : i32
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
