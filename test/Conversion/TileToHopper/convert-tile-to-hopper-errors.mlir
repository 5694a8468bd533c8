// RUN: attn-opt %s --convert-tile-to-hopper --split-input-file --verify-diagnostics

!mem = memref<?x?x64xbf16, strided<[?, ?, 1]>>

tile.kernel @rows(%q: !mem, %k: !mem, %v: !mem, %o: !mem, %n: i32) attributes {num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c128 = arith.constant 128 : i32
  %b = tile.program_id : i32
  %full = arith.divsi %n, %c128 : i32
  %full_end = arith.muli %full, %c128 : i32
  // expected-error @+1 {{has 96 rows; 64 rows a consumer warpgroup}}
  %qt = tile.load %q[%b, %c0, %c0] : !mem -> tensor<96x64xbf16>
  %acc0 = arith.constant dense<0.0> : tensor<96x64xf32>
  %m0 = arith.constant dense<0xFF800000> : tensor<96xf32>
  %l0 = arith.constant dense<0.0> : tensor<96xf32>
  %r:3 = tile.kv_loop ranges(%c0, %c0, %full_end, %n) step 32
      iter_args(%acc0, %m0, %l0) : tensor<96x64xf32>, tensor<96xf32>, tensor<96xf32>
    qk (%kv: i32, %acc: tensor<96x64xf32>, %m: tensor<96xf32>, %l: tensor<96xf32>) {
      %kt = tile.load %k[%b, %kv, %c0] : !mem -> tensor<32x64xbf16>
      %zero = arith.constant dense<0.0> : tensor<96x32xf32>
      %s = tile.mma mma %qt, %kt, %zero {transpose_b} : tensor<96x64xbf16>, tensor<32x64xbf16>, tensor<96x32xf32>
      tile.yield %s : tensor<96x32xf32>
    } score (%kv: i32, %s: tensor<96x32xf32>, %acc: tensor<96x64xf32>, %m: tensor<96xf32>, %l: tensor<96xf32>) {
      tile.yield %s : tensor<96x32xf32>
    } softmax (%kv: i32, %s: tensor<96x32xf32>, %acc: tensor<96x64xf32>, %m: tensor<96xf32>, %l: tensor<96xf32>) {
      %one = arith.constant 1.0 : f32
      %p, %m1, %l1, %a = tile.online_softmax %s, %m, %l scale %one : tensor<96x32xf32>, tensor<96xf32>
      tile.yield %p, %m1, %l1, %a : tensor<96x32xf32>, tensor<96xf32>, tensor<96xf32>, tensor<96xf32>
    } pv (%kv: i32, %p: tensor<96x32xf32>, %m1: tensor<96xf32>, %l1: tensor<96xf32>, %a: tensor<96xf32>,
          %acc: tensor<96x64xf32>, %m: tensor<96xf32>, %l: tensor<96xf32>) {
      %vt = tile.load %v[%b, %kv, %c0] : !mem -> tensor<32x64xbf16>
      %ab = tile.broadcast %a dim 0 : tensor<96xf32> -> tensor<96x64xf32>
      %scaled = arith.mulf %acc, %ab : tensor<96x64xf32>
      %ph = arith.truncf %p : tensor<96x32xf32> to tensor<96x32xbf16>
      %next = tile.mma mma %ph, %vt, %scaled : tensor<96x32xbf16>, tensor<32x64xbf16>, tensor<96x64xf32>
      tile.yield %next, %m1, %l1 : tensor<96x64xf32>, tensor<96xf32>, tensor<96xf32>
    }
  %out = arith.truncf %r#0 : tensor<96x64xf32> to tensor<96x64xbf16>
  tile.store %out, %o[%b, %c0, %c0] : tensor<96x64xbf16>, !mem
  tile.return
}

// -----

!mem = memref<?x?x64xbf16, strided<[?, ?, 1]>>

tile.kernel @shared_tile(%q: !mem, %k: !mem, %v: !mem, %o: !mem, %n: i32) attributes {num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c128 = arith.constant 128 : i32
  %b = tile.program_id : i32
  %full = arith.divsi %n, %c128 : i32
  %full_end = arith.muli %full, %c128 : i32
  // expected-note @+1 {{the tile}}
  %qt = tile.load %q[%b, %c0, %c0] : !mem -> tensor<128x64xbf16>
  tile.store %qt, %o[%b, %c0, %c0] : tensor<128x64xbf16>, !mem
  %acc0 = arith.constant dense<0.0> : tensor<128x64xf32>
  %m0 = arith.constant dense<0xFF800000> : tensor<128xf32>
  %l0 = arith.constant dense<0.0> : tensor<128xf32>
  %r:3 = tile.kv_loop ranges(%c0, %c0, %full_end, %n) step 32
      iter_args(%acc0, %m0, %l0) : tensor<128x64xf32>, tensor<128xf32>, tensor<128xf32>
    qk (%kv: i32, %acc: tensor<128x64xf32>, %m: tensor<128xf32>, %l: tensor<128xf32>) {
      %kt = tile.load %k[%b, %kv, %c0] : !mem -> tensor<32x64xbf16>
      %zero = arith.constant dense<0.0> : tensor<128x32xf32>
      // expected-error @+1 {{takes a tile that others use too; give them a tile.load of their own}}
      %s = tile.mma mma %qt, %kt, %zero {transpose_b} : tensor<128x64xbf16>, tensor<32x64xbf16>, tensor<128x32xf32>
      tile.yield %s : tensor<128x32xf32>
    } score (%kv: i32, %s: tensor<128x32xf32>, %acc: tensor<128x64xf32>, %m: tensor<128xf32>, %l: tensor<128xf32>) {
      tile.yield %s : tensor<128x32xf32>
    } softmax (%kv: i32, %s: tensor<128x32xf32>, %acc: tensor<128x64xf32>, %m: tensor<128xf32>, %l: tensor<128xf32>) {
      %one = arith.constant 1.0 : f32
      %p, %m1, %l1, %a = tile.online_softmax %s, %m, %l scale %one : tensor<128x32xf32>, tensor<128xf32>
      tile.yield %p, %m1, %l1, %a : tensor<128x32xf32>, tensor<128xf32>, tensor<128xf32>, tensor<128xf32>
    } pv (%kv: i32, %p: tensor<128x32xf32>, %m1: tensor<128xf32>, %l1: tensor<128xf32>, %a: tensor<128xf32>,
          %acc: tensor<128x64xf32>, %m: tensor<128xf32>, %l: tensor<128xf32>) {
      %vt = tile.load %v[%b, %kv, %c0] : !mem -> tensor<32x64xbf16>
      %ab = tile.broadcast %a dim 0 : tensor<128xf32> -> tensor<128x64xf32>
      %scaled = arith.mulf %acc, %ab : tensor<128x64xf32>
      %ph = arith.truncf %p : tensor<128x32xf32> to tensor<128x32xbf16>
      %next = tile.mma mma %ph, %vt, %scaled : tensor<128x32xbf16>, tensor<32x64xbf16>, tensor<128x64xf32>
      tile.yield %next, %m1, %l1 : tensor<128x64xf32>, tensor<128xf32>, tensor<128xf32>
    }
  %out = arith.truncf %r#0 : tensor<128x64xf32> to tensor<128x64xbf16>
  tile.store %out, %o[%b, %c0, %c0] : tensor<128x64xbf16>, !mem
  tile.return
}

// -----

!mem = memref<?x?x64xbf16, strided<[?, ?, 1]>>

tile.kernel @computed_operand(%q: !mem, %k: !mem, %v: !mem, %o: !mem, %n: i32) attributes {num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c128 = arith.constant 128 : i32
  %b = tile.program_id : i32
  %full = arith.divsi %n, %c128 : i32
  %full_end = arith.muli %full, %c128 : i32
  %qt = tile.load %q[%b, %c0, %c0] : !mem -> tensor<128x64xbf16>
  %acc0 = arith.constant dense<0.0> : tensor<128x64xf32>
  %m0 = arith.constant dense<0xFF800000> : tensor<128xf32>
  %l0 = arith.constant dense<0.0> : tensor<128xf32>
  %r:3 = tile.kv_loop ranges(%c0, %c0, %full_end, %n) step 32
      iter_args(%acc0, %m0, %l0) : tensor<128x64xf32>, tensor<128xf32>, tensor<128xf32>
    qk (%kv: i32, %acc: tensor<128x64xf32>, %m: tensor<128xf32>, %l: tensor<128xf32>) {
      %kt = tile.load %k[%b, %kv, %c0] : !mem -> tensor<32x64xbf16>
      %zero = arith.constant dense<0.0> : tensor<128x32xf32>
      %q2 = arith.addf %qt, %qt : tensor<128x64xbf16>
      // expected-error @+1 {{takes an operand that is no tile.load before the loop, which the producer could copy to shared memory}}
      %s = tile.mma mma %q2, %kt, %zero {transpose_b} : tensor<128x64xbf16>, tensor<32x64xbf16>, tensor<128x32xf32>
      tile.yield %s : tensor<128x32xf32>
    } score (%kv: i32, %s: tensor<128x32xf32>, %acc: tensor<128x64xf32>, %m: tensor<128xf32>, %l: tensor<128xf32>) {
      tile.yield %s : tensor<128x32xf32>
    } softmax (%kv: i32, %s: tensor<128x32xf32>, %acc: tensor<128x64xf32>, %m: tensor<128xf32>, %l: tensor<128xf32>) {
      %one = arith.constant 1.0 : f32
      %p, %m1, %l1, %a = tile.online_softmax %s, %m, %l scale %one : tensor<128x32xf32>, tensor<128xf32>
      tile.yield %p, %m1, %l1, %a : tensor<128x32xf32>, tensor<128xf32>, tensor<128xf32>, tensor<128xf32>
    } pv (%kv: i32, %p: tensor<128x32xf32>, %m1: tensor<128xf32>, %l1: tensor<128xf32>, %a: tensor<128xf32>,
          %acc: tensor<128x64xf32>, %m: tensor<128xf32>, %l: tensor<128xf32>) {
      %vt = tile.load %v[%b, %kv, %c0] : !mem -> tensor<32x64xbf16>
      %ab = tile.broadcast %a dim 0 : tensor<128xf32> -> tensor<128x64xf32>
      %scaled = arith.mulf %acc, %ab : tensor<128x64xf32>
      %ph = arith.truncf %p : tensor<128x32xf32> to tensor<128x32xbf16>
      %next = tile.mma mma %ph, %vt, %scaled : tensor<128x32xbf16>, tensor<32x64xbf16>, tensor<128x64xf32>
      tile.yield %next, %m1, %l1 : tensor<128x64xf32>, tensor<128xf32>, tensor<128xf32>
    }
  %out = arith.truncf %r#0 : tensor<128x64xf32> to tensor<128x64xbf16>
  tile.store %out, %o[%b, %c0, %c0] : tensor<128x64xbf16>, !mem
  tile.return
}

// -----

!mem = memref<?x?x64xbf16, strided<[?, ?, 1]>>

tile.kernel @accumulates(%q: !mem, %k: !mem, %v: !mem, %o: !mem, %n: i32) attributes {num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c128 = arith.constant 128 : i32
  %b = tile.program_id : i32
  %full = arith.divsi %n, %c128 : i32
  %full_end = arith.muli %full, %c128 : i32
  %qt = tile.load %q[%b, %c0, %c0] : !mem -> tensor<128x64xbf16>
  %acc0 = arith.constant dense<0.0> : tensor<128x64xf32>
  %m0 = arith.constant dense<0xFF800000> : tensor<128xf32>
  %l0 = arith.constant dense<0.0> : tensor<128xf32>
  %r:3 = tile.kv_loop ranges(%c0, %c0, %full_end, %n) step 32
      iter_args(%acc0, %m0, %l0) : tensor<128x64xf32>, tensor<128xf32>, tensor<128xf32>
    qk (%kv: i32, %acc: tensor<128x64xf32>, %m: tensor<128xf32>, %l: tensor<128xf32>) {
      %kt = tile.load %k[%b, %kv, %c0] : !mem -> tensor<32x64xbf16>
      %zero = arith.constant dense<1.0> : tensor<128x32xf32>
      // expected-error @+1 {{must accumulate to zero to run as wgmma}}
      %s = tile.mma mma %qt, %kt, %zero {transpose_b} : tensor<128x64xbf16>, tensor<32x64xbf16>, tensor<128x32xf32>
      tile.yield %s : tensor<128x32xf32>
    } score (%kv: i32, %s: tensor<128x32xf32>, %acc: tensor<128x64xf32>, %m: tensor<128xf32>, %l: tensor<128xf32>) {
      tile.yield %s : tensor<128x32xf32>
    } softmax (%kv: i32, %s: tensor<128x32xf32>, %acc: tensor<128x64xf32>, %m: tensor<128xf32>, %l: tensor<128xf32>) {
      %one = arith.constant 1.0 : f32
      %p, %m1, %l1, %a = tile.online_softmax %s, %m, %l scale %one : tensor<128x32xf32>, tensor<128xf32>
      tile.yield %p, %m1, %l1, %a : tensor<128x32xf32>, tensor<128xf32>, tensor<128xf32>, tensor<128xf32>
    } pv (%kv: i32, %p: tensor<128x32xf32>, %m1: tensor<128xf32>, %l1: tensor<128xf32>, %a: tensor<128xf32>,
          %acc: tensor<128x64xf32>, %m: tensor<128xf32>, %l: tensor<128xf32>) {
      %vt = tile.load %v[%b, %kv, %c0] : !mem -> tensor<32x64xbf16>
      %ab = tile.broadcast %a dim 0 : tensor<128xf32> -> tensor<128x64xf32>
      %scaled = arith.mulf %acc, %ab : tensor<128x64xf32>
      %ph = arith.truncf %p : tensor<128x32xf32> to tensor<128x32xbf16>
      %next = tile.mma mma %ph, %vt, %scaled : tensor<128x32xbf16>, tensor<32x64xbf16>, tensor<128x64xf32>
      tile.yield %next, %m1, %l1 : tensor<128x64xf32>, tensor<128xf32>, tensor<128xf32>
    }
  %out = arith.truncf %r#0 : tensor<128x64xf32> to tensor<128x64xbf16>
  tile.store %out, %o[%b, %c0, %c0] : tensor<128x64xbf16>, !mem
  tile.return
}

// -----

!mem = memref<?x?x64xbf16, strided<[?, ?, 1]>>

tile.kernel @uses_result(%q: !mem, %k: !mem, %v: !mem, %o: !mem, %n: i32) attributes {num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c128 = arith.constant 128 : i32
  %b = tile.program_id : i32
  %full = arith.divsi %n, %c128 : i32
  %full_end = arith.muli %full, %c128 : i32
  %qt = tile.load %q[%b, %c0, %c0] : !mem -> tensor<128x64xbf16>
  %acc0 = arith.constant dense<0.0> : tensor<128x64xf32>
  %m0 = arith.constant dense<0xFF800000> : tensor<128xf32>
  %l0 = arith.constant dense<0.0> : tensor<128xf32>
  %r:3 = tile.kv_loop ranges(%c0, %c0, %full_end, %n) step 32
      iter_args(%acc0, %m0, %l0) : tensor<128x64xf32>, tensor<128xf32>, tensor<128xf32>
    qk (%kv: i32, %acc: tensor<128x64xf32>, %m: tensor<128xf32>, %l: tensor<128xf32>) {
      %kt = tile.load %k[%b, %kv, %c0] : !mem -> tensor<32x64xbf16>
      %zero = arith.constant dense<0.0> : tensor<128x32xf32>
      %s = tile.mma mma %qt, %kt, %zero {transpose_b} : tensor<128x64xbf16>, tensor<32x64xbf16>, tensor<128x32xf32>
      tile.yield %s : tensor<128x32xf32>
    } score (%kv: i32, %s: tensor<128x32xf32>, %acc: tensor<128x64xf32>, %m: tensor<128xf32>, %l: tensor<128xf32>) {
      tile.yield %s : tensor<128x32xf32>
    } softmax (%kv: i32, %s: tensor<128x32xf32>, %acc: tensor<128x64xf32>, %m: tensor<128xf32>, %l: tensor<128xf32>) {
      %one = arith.constant 1.0 : f32
      %p, %m1, %l1, %a = tile.online_softmax %s, %m, %l scale %one : tensor<128x32xf32>, tensor<128xf32>
      tile.yield %p, %m1, %l1, %a : tensor<128x32xf32>, tensor<128xf32>, tensor<128xf32>, tensor<128xf32>
    } pv (%kv: i32, %p: tensor<128x32xf32>, %m1: tensor<128xf32>, %l1: tensor<128xf32>, %a: tensor<128xf32>,
          %acc: tensor<128x64xf32>, %m: tensor<128xf32>, %l: tensor<128xf32>) {
      %vt = tile.load %v[%b, %kv, %c0] : !mem -> tensor<32x64xbf16>
      %ab = tile.broadcast %a dim 0 : tensor<128xf32> -> tensor<128x64xf32>
      %scaled = arith.mulf %acc, %ab : tensor<128x64xf32>
      %ph = arith.truncf %p : tensor<128x32xf32> to tensor<128x32xbf16>
      // expected-error @+1 {{must be yielded as it is}}
      %next = tile.mma mma %ph, %vt, %scaled : tensor<128x32xbf16>, tensor<32x64xbf16>, tensor<128x64xf32>
      %twice = arith.addf %next, %next : tensor<128x64xf32>
      tile.yield %twice, %m1, %l1 : tensor<128x64xf32>, tensor<128xf32>, tensor<128xf32>
    }
  %out = arith.truncf %r#0 : tensor<128x64xf32> to tensor<128x64xbf16>
  tile.store %out, %o[%b, %c0, %c0] : tensor<128x64xbf16>, !mem
  tile.return
}

// -----

!mem = memref<?x?x64xbf16, strided<[?, ?, 1]>>

tile.kernel @position(%q: !mem, %k: !mem, %v: !mem, %o: !mem, %n: i32) attributes {num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c128 = arith.constant 128 : i32
  %b = tile.program_id : i32
  %full = arith.divsi %n, %c128 : i32
  %full_end = arith.muli %full, %c128 : i32
  %id = tensor.generate {
  ^bb0(%i: index):
    tensor.yield %b : i32
  } : tensor<1xi32>
  %ci = arith.constant 0 : index
  %bb = tensor.extract %id[%ci] : tensor<1xi32>
  %qt = tile.load %q[%b, %c0, %c0] : !mem -> tensor<128x64xbf16>
  %acc0 = arith.constant dense<0.0> : tensor<128x64xf32>
  %m0 = arith.constant dense<0xFF800000> : tensor<128xf32>
  %l0 = arith.constant dense<0.0> : tensor<128xf32>
  %r:3 = tile.kv_loop ranges(%c0, %c0, %full_end, %n) step 32
      iter_args(%acc0, %m0, %l0) : tensor<128x64xf32>, tensor<128xf32>, tensor<128xf32>
    qk (%kv: i32, %acc: tensor<128x64xf32>, %m: tensor<128xf32>, %l: tensor<128xf32>) {
      // expected-error @+1 {{has a position that isn't scalar code of the key position; the producer can't compute it}}
      %kt = tile.load %k[%bb, %kv, %c0] : !mem -> tensor<32x64xbf16>
      %zero = arith.constant dense<0.0> : tensor<128x32xf32>
      %s = tile.mma mma %qt, %kt, %zero {transpose_b} : tensor<128x64xbf16>, tensor<32x64xbf16>, tensor<128x32xf32>
      tile.yield %s : tensor<128x32xf32>
    } score (%kv: i32, %s: tensor<128x32xf32>, %acc: tensor<128x64xf32>, %m: tensor<128xf32>, %l: tensor<128xf32>) {
      tile.yield %s : tensor<128x32xf32>
    } softmax (%kv: i32, %s: tensor<128x32xf32>, %acc: tensor<128x64xf32>, %m: tensor<128xf32>, %l: tensor<128xf32>) {
      %one = arith.constant 1.0 : f32
      %p, %m1, %l1, %a = tile.online_softmax %s, %m, %l scale %one : tensor<128x32xf32>, tensor<128xf32>
      tile.yield %p, %m1, %l1, %a : tensor<128x32xf32>, tensor<128xf32>, tensor<128xf32>, tensor<128xf32>
    } pv (%kv: i32, %p: tensor<128x32xf32>, %m1: tensor<128xf32>, %l1: tensor<128xf32>, %a: tensor<128xf32>,
          %acc: tensor<128x64xf32>, %m: tensor<128xf32>, %l: tensor<128xf32>) {
      %vt = tile.load %v[%b, %kv, %c0] : !mem -> tensor<32x64xbf16>
      %ab = tile.broadcast %a dim 0 : tensor<128xf32> -> tensor<128x64xf32>
      %scaled = arith.mulf %acc, %ab : tensor<128x64xf32>
      %ph = arith.truncf %p : tensor<128x32xf32> to tensor<128x32xbf16>
      %next = tile.mma mma %ph, %vt, %scaled : tensor<128x32xbf16>, tensor<32x64xbf16>, tensor<128x64xf32>
      tile.yield %next, %m1, %l1 : tensor<128x64xf32>, tensor<128xf32>, tensor<128xf32>
    }
  %out = arith.truncf %r#0 : tensor<128x64xf32> to tensor<128x64xbf16>
  tile.store %out, %o[%b, %c0, %c0] : tensor<128x64xbf16>, !mem
  tile.return
}

// -----

!mem = memref<?x?x64xbf16, strided<[?, ?, 1]>>

tile.kernel @second_product(%q: !mem, %k: !mem, %v: !mem, %o: !mem, %n: i32) attributes {num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c128 = arith.constant 128 : i32
  %b = tile.program_id : i32
  %full = arith.divsi %n, %c128 : i32
  %full_end = arith.muli %full, %c128 : i32
  %qt = tile.load %q[%b, %c0, %c0] : !mem -> tensor<128x64xbf16>
  %acc0 = arith.constant dense<0.0> : tensor<128x64xf32>
  %m0 = arith.constant dense<0xFF800000> : tensor<128xf32>
  %l0 = arith.constant dense<0.0> : tensor<128xf32>
  %r:3 = tile.kv_loop ranges(%c0, %c0, %full_end, %n) step 32
      iter_args(%acc0, %m0, %l0) : tensor<128x64xf32>, tensor<128xf32>, tensor<128xf32>
    qk (%kv: i32, %acc: tensor<128x64xf32>, %m: tensor<128xf32>, %l: tensor<128xf32>) {
      %kt = tile.load %k[%b, %kv, %c0] : !mem -> tensor<32x64xbf16>
      %zero = arith.constant dense<0.0> : tensor<128x32xf32>
      %s = tile.mma mma %qt, %kt, %zero {transpose_b} : tensor<128x64xbf16>, tensor<32x64xbf16>, tensor<128x32xf32>
      tile.yield %s : tensor<128x32xf32>
    } score (%kv: i32, %s: tensor<128x32xf32>, %acc: tensor<128x64xf32>, %m: tensor<128xf32>, %l: tensor<128xf32>) {
      tile.yield %s : tensor<128x32xf32>
    } softmax (%kv: i32, %s: tensor<128x32xf32>, %acc: tensor<128x64xf32>, %m: tensor<128xf32>, %l: tensor<128xf32>) {
      %one = arith.constant 1.0 : f32
      %p, %m1, %l1, %a = tile.online_softmax %s, %m, %l scale %one : tensor<128x32xf32>, tensor<128xf32>
      tile.yield %p, %m1, %l1, %a : tensor<128x32xf32>, tensor<128xf32>, tensor<128xf32>, tensor<128xf32>
    } pv (%kv: i32, %p: tensor<128x32xf32>, %m1: tensor<128xf32>, %l1: tensor<128xf32>, %a: tensor<128xf32>,
          %acc: tensor<128x64xf32>, %m: tensor<128xf32>, %l: tensor<128xf32>) {
      %vt = tile.load %v[%b, %kv, %c0] : !mem -> tensor<32x64xbf16>
      %ab = tile.broadcast %a dim 0 : tensor<128xf32> -> tensor<128x64xf32>
      %scaled = arith.mulf %acc, %ab : tensor<128x64xf32>
      %ph = arith.truncf %p : tensor<128x32xf32> to tensor<128x32xbf16>
      %next = tile.mma mma %ph, %vt, %scaled : tensor<128x32xbf16>, tensor<32x64xbf16>, tensor<128x64xf32>
      tile.yield %next, %m1, %l1 : tensor<128x64xf32>, tensor<128xf32>, tensor<128xf32>
    }
  %more = arith.constant dense<0.0> : tensor<128x128xf32>
  %q3 = tile.load %q[%b, %c0, %c0] : !mem -> tensor<128x64xbf16>
  // expected-error @+1 {{is outside of the qk and pv regions of tile.kv_loop}}
  %x = tile.mma mma %q3, %q3, %more {transpose_b} : tensor<128x64xbf16>, tensor<128x64xbf16>, tensor<128x128xf32>
  %out = arith.truncf %r#0 : tensor<128x64xf32> to tensor<128x64xbf16>
  tile.store %out, %o[%b, %c0, %c0] : tensor<128x64xbf16>, !mem
  tile.return
}

// -----

!mem = memref<?x?x64xbf16, strided<[?, ?, 1]>>
!bias = memref<?x?xbf16, strided<[?, 1]>>

tile.kernel @capture_shape(%q: !mem, %k: !mem, %v: !mem, %o: !mem, %n: i32, %bias: !bias)
    attributes {num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c128 = arith.constant 128 : i32
  %b = tile.program_id : i32
  %full = arith.divsi %n, %c128 : i32
  %full_end = arith.muli %full, %c128 : i32
  %qt = tile.load %q[%b, %c0, %c0] : !mem -> tensor<128x64xbf16>
  %acc0 = arith.constant dense<0.0> : tensor<128x64xf32>
  %m0 = arith.constant dense<0xFF800000> : tensor<128xf32>
  %l0 = arith.constant dense<0.0> : tensor<128xf32>
  %r:3 = tile.kv_loop ranges(%c0, %c0, %full_end, %n) step 32
      iter_args(%acc0, %m0, %l0) : tensor<128x64xf32>, tensor<128xf32>, tensor<128xf32>
    qk (%kv: i32, %acc: tensor<128x64xf32>, %m: tensor<128xf32>, %l: tensor<128xf32>) {
      %kt = tile.load %k[%b, %kv, %c0] : !mem -> tensor<32x64xbf16>
      %zero = arith.constant dense<0.0> : tensor<128x32xf32>
      %s = tile.mma mma %qt, %kt, %zero {transpose_b} : tensor<128x64xbf16>, tensor<32x64xbf16>, tensor<128x32xf32>
      tile.yield %s : tensor<128x32xf32>
    } score (%kv: i32, %s: tensor<128x32xf32>, %acc: tensor<128x64xf32>, %m: tensor<128xf32>, %l: tensor<128xf32>) {
      // expected-error @+1 {{has hopper.stages, so that its tile must have the shape of the scores, 'tensor<128x32xf32>'}}
      %t = tile.load %bias[%c0, %kv] {hopper.stages = 2 : i32} : !bias -> tensor<128x64xbf16>
      %some = arith.constant dense<1.0> : tensor<128x32xf32>
      %u = arith.addf %s, %some : tensor<128x32xf32>
      tile.yield %u : tensor<128x32xf32>
    } softmax (%kv: i32, %s: tensor<128x32xf32>, %acc: tensor<128x64xf32>, %m: tensor<128xf32>, %l: tensor<128xf32>) {
      %one = arith.constant 1.0 : f32
      %p, %m1, %l1, %a = tile.online_softmax %s, %m, %l scale %one : tensor<128x32xf32>, tensor<128xf32>
      tile.yield %p, %m1, %l1, %a : tensor<128x32xf32>, tensor<128xf32>, tensor<128xf32>, tensor<128xf32>
    } pv (%kv: i32, %p: tensor<128x32xf32>, %m1: tensor<128xf32>, %l1: tensor<128xf32>, %a: tensor<128xf32>,
          %acc: tensor<128x64xf32>, %m: tensor<128xf32>, %l: tensor<128xf32>) {
      %vt = tile.load %v[%b, %kv, %c0] : !mem -> tensor<32x64xbf16>
      %ab = tile.broadcast %a dim 0 : tensor<128xf32> -> tensor<128x64xf32>
      %scaled = arith.mulf %acc, %ab : tensor<128x64xf32>
      %ph = arith.truncf %p : tensor<128x32xf32> to tensor<128x32xbf16>
      %next = tile.mma mma %ph, %vt, %scaled : tensor<128x32xbf16>, tensor<32x64xbf16>, tensor<128x64xf32>
      tile.yield %next, %m1, %l1 : tensor<128x64xf32>, tensor<128xf32>, tensor<128xf32>
    }
  %out = arith.truncf %r#0 : tensor<128x64xf32> to tensor<128x64xbf16>
  tile.store %out, %o[%b, %c0, %c0] : tensor<128x64xbf16>, !mem
  tile.return
}

// -----

!mem = memref<?x?x64xbf16, strided<[?, ?, 1]>>

tile.kernel @staged_operand(%q: !mem, %k: !mem, %v: !mem, %o: !mem, %n: i32)
    attributes {num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c128 = arith.constant 128 : i32
  %b = tile.program_id : i32
  %full = arith.divsi %n, %c128 : i32
  %full_end = arith.muli %full, %c128 : i32
  %qt = tile.load %q[%b, %c0, %c0] : !mem -> tensor<128x64xbf16>
  %acc0 = arith.constant dense<0.0> : tensor<128x64xf32>
  %m0 = arith.constant dense<0xFF800000> : tensor<128xf32>
  %l0 = arith.constant dense<0.0> : tensor<128xf32>
  %r:3 = tile.kv_loop ranges(%c0, %c0, %full_end, %n) step 32
      iter_args(%acc0, %m0, %l0) : tensor<128x64xf32>, tensor<128xf32>, tensor<128xf32>
    qk (%kv: i32, %acc: tensor<128x64xf32>, %m: tensor<128xf32>, %l: tensor<128xf32>) {
      // expected-error @+1 {{has hopper.stages, which is for loads that the qk, score or softmax region reads in registers; num_stages of the kernel is for operands of products}}
      %kt = tile.load %k[%b, %kv, %c0] {hopper.stages = 2 : i32} : !mem -> tensor<32x64xbf16>
      %zero = arith.constant dense<0.0> : tensor<128x32xf32>
      %s = tile.mma mma %qt, %kt, %zero {transpose_b} : tensor<128x64xbf16>, tensor<32x64xbf16>, tensor<128x32xf32>
      tile.yield %s : tensor<128x32xf32>
    } score (%kv: i32, %s: tensor<128x32xf32>, %acc: tensor<128x64xf32>, %m: tensor<128xf32>, %l: tensor<128xf32>) {
      %some = arith.constant dense<1.0> : tensor<128x32xf32>
      %u = arith.addf %s, %some : tensor<128x32xf32>
      tile.yield %u : tensor<128x32xf32>
    } softmax (%kv: i32, %s: tensor<128x32xf32>, %acc: tensor<128x64xf32>, %m: tensor<128xf32>, %l: tensor<128xf32>) {
      %one = arith.constant 1.0 : f32
      %p, %m1, %l1, %a = tile.online_softmax %s, %m, %l scale %one : tensor<128x32xf32>, tensor<128xf32>
      tile.yield %p, %m1, %l1, %a : tensor<128x32xf32>, tensor<128xf32>, tensor<128xf32>, tensor<128xf32>
    } pv (%kv: i32, %p: tensor<128x32xf32>, %m1: tensor<128xf32>, %l1: tensor<128xf32>, %a: tensor<128xf32>,
          %acc: tensor<128x64xf32>, %m: tensor<128xf32>, %l: tensor<128xf32>) {
      %vt = tile.load %v[%b, %kv, %c0] : !mem -> tensor<32x64xbf16>
      %ab = tile.broadcast %a dim 0 : tensor<128xf32> -> tensor<128x64xf32>
      %scaled = arith.mulf %acc, %ab : tensor<128x64xf32>
      %ph = arith.truncf %p : tensor<128x32xf32> to tensor<128x32xbf16>
      %next = tile.mma mma %ph, %vt, %scaled : tensor<128x32xbf16>, tensor<32x64xbf16>, tensor<128x64xf32>
      tile.yield %next, %m1, %l1 : tensor<128x64xf32>, tensor<128xf32>, tensor<128xf32>
    }
  %out = arith.truncf %r#0 : tensor<128x64xf32> to tensor<128x64xbf16>
  tile.store %out, %o[%b, %c0, %c0] : tensor<128x64xbf16>, !mem
  tile.return
}
