// RUN: attn-opt --tile-defer-rescale --split-input-file --verify-diagnostics %s
// RUN: attn-opt --tile-defer-rescale --split-input-file %s 2>/dev/null | FileCheck %s

// Loops that aren't a plain online softmax stay as they are, and one without
// any needs no remark.

// CHECK-NOT: tile.any_exceeds

!s = tensor<64x32xf32>
!row = tensor<64xf32>
tile.kernel @no_softmax(%sm: memref<?x?xf32>, %lm: memref<?xf32>, %n: i32, %c: f32) attributes {num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %m0 = arith.constant dense<0xFF800000> : !row
  %l0 = arith.constant dense<0.0> : !row
  %r:2 = tile.kv_loop ranges(%c0, %c0, %c0, %n) step 32 iter_args(%m0, %l0) : !row, !row
    qk (%kv: i32, %m: !row, %l: !row) {
      %s = tile.load %sm[%c0, %kv] : memref<?x?xf32> -> !s
      tile.yield %s : !s
    } score (%kv: i32, %s: !s, %m: !row, %l: !row) {
      tile.yield %s : !s
    } softmax (%kv: i32, %x: !s, %m: !row, %l: !row) {
      %m1 = tile.reduce max %x : !s -> !row
      tile.yield %m1 : !row
    } pv (%kv: i32, %m1: !row, %m: !row, %l: !row) {
      tile.yield %m1, %l : !row, !row
    }
  tile.store %r#1, %lm[%c0] : !row, memref<?xf32>
  tile.return
}

// -----

!s = tensor<64x32xf32>
!row = tensor<64xf32>
tile.kernel @two_softmaxes(%sm: memref<?x?xf32>, %lm: memref<?xf32>, %n: i32, %c: f32) attributes {num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %m0 = arith.constant dense<0xFF800000> : !row
  %l0 = arith.constant dense<0.0> : !row
  // expected-remark@+1 {{rescales in every step: it has more than one online softmax}}
  %r:2 = tile.kv_loop ranges(%c0, %c0, %c0, %n) step 32 iter_args(%m0, %l0) : !row, !row
    qk (%kv: i32, %m: !row, %l: !row) {
      %s = tile.load %sm[%c0, %kv] : memref<?x?xf32> -> !s
      tile.yield %s : !s
    } score (%kv: i32, %s: !s, %m: !row, %l: !row) {
      tile.yield %s : !s
    } softmax (%kv: i32, %x: !s, %m: !row, %l: !row) {
      %p0, %m2, %l2, %a0 = tile.online_softmax %x, %m, %l scale %c : !s, !row
      %p, %m1, %l1, %a = tile.online_softmax %p0, %m2, %l2 scale %c : !s, !row
      tile.yield %p, %m1, %l1, %a : !s, !row, !row, !row
    } pv (%kv: i32, %p: !s, %m1: !row, %l1: !row, %a: !row, %m: !row, %l: !row) {
      tile.yield %m1, %l1 : !row, !row
    }
  tile.store %r#1, %lm[%c0] : !row, memref<?xf32>
  tile.return
}

// -----

!s = tensor<64x20xf32>
!row = tensor<64xf32>
tile.kernel @columns(%sm: memref<?x?xf32>, %lm: memref<?xf32>, %n: i32, %c: f32) attributes {num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %m0 = arith.constant dense<0xFF800000> : !row
  %l0 = arith.constant dense<0.0> : !row
  // expected-remark@+1 {{rescales in every step: the columns of the score tile aren't a multiple of 8}}
  %r:2 = tile.kv_loop ranges(%c0, %c0, %c0, %n) step 20 iter_args(%m0, %l0) : !row, !row
    qk (%kv: i32, %m: !row, %l: !row) {
      %s = tile.load %sm[%c0, %kv] : memref<?x?xf32> -> !s
      tile.yield %s : !s
    } score (%kv: i32, %s: !s, %m: !row, %l: !row) {
      tile.yield %s : !s
    } softmax (%kv: i32, %x: !s, %m: !row, %l: !row) {
      %p, %m1, %l1, %a = tile.online_softmax %x, %m, %l scale %c : !s, !row
      tile.yield %p, %m1, %l1, %a : !s, !row, !row, !row
    } pv (%kv: i32, %p: !s, %m1: !row, %l1: !row, %a: !row, %m: !row, %l: !row) {
      tile.yield %m1, %l1 : !row, !row
    }
  tile.store %r#1, %lm[%c0] : !row, memref<?xf32>
  tile.return
}

// -----

!s = tensor<64x32xf32>
!row = tensor<64xf32>
tile.kernel @scale(%sm: memref<?x?xf32>, %lm: memref<?xf32>, %n: i32, %c: f32) attributes {num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %m0 = arith.constant dense<0xFF800000> : !row
  %l0 = arith.constant dense<0.0> : !row
  // expected-remark@+1 {{rescales in every step: its scale is computed in the loop}}
  %r:2 = tile.kv_loop ranges(%c0, %c0, %c0, %n) step 32 iter_args(%m0, %l0) : !row, !row
    qk (%kv: i32, %m: !row, %l: !row) {
      %s = tile.load %sm[%c0, %kv] : memref<?x?xf32> -> !s
      tile.yield %s : !s
    } score (%kv: i32, %s: !s, %m: !row, %l: !row) {
      tile.yield %s : !s
    } softmax (%kv: i32, %x: !s, %m: !row, %l: !row) {
      %cs = arith.addf %c, %c : f32
      %p, %m1, %l1, %a = tile.online_softmax %x, %m, %l scale %cs : !s, !row
      tile.yield %p, %m1, %l1, %a : !s, !row, !row, !row
    } pv (%kv: i32, %p: !s, %m1: !row, %l1: !row, %a: !row, %m: !row, %l: !row) {
      tile.yield %m1, %l1 : !row, !row
    }
  tile.store %r#1, %lm[%c0] : !row, memref<?xf32>
  tile.return
}

// -----

!s = tensor<64x32xf32>
!row = tensor<64xf32>
tile.kernel @not_carried(%sm: memref<?x?xf32>, %lm: memref<?xf32>, %n: i32, %c: f32) attributes {num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %m0 = arith.constant dense<0xFF800000> : !row
  %l0 = arith.constant dense<0.0> : !row
  // expected-remark@+1 {{rescales in every step: the online softmax doesn't take its statistics from the loop-carried values}}
  %r:2 = tile.kv_loop ranges(%c0, %c0, %c0, %n) step 32 iter_args(%m0, %l0) : !row, !row
    qk (%kv: i32, %m: !row, %l: !row) {
      %s = tile.load %sm[%c0, %kv] : memref<?x?xf32> -> !s
      tile.yield %s : !s
    } score (%kv: i32, %s: !s, %m: !row, %l: !row) {
      tile.yield %s : !s
    } softmax (%kv: i32, %x: !s, %m: !row, %l: !row) {
      %p, %m1, %l1, %a = tile.online_softmax %x, %m0, %l scale %c : !s, !row
      tile.yield %p, %m1, %l1, %a : !s, !row, !row, !row
    } pv (%kv: i32, %p: !s, %m1: !row, %l1: !row, %a: !row, %m: !row, %l: !row) {
      tile.yield %m1, %l1 : !row, !row
    }
  tile.store %r#1, %lm[%c0] : !row, memref<?xf32>
  tile.return
}

// -----

!s = tensor<64x32xf32>
!row = tensor<64xf32>
tile.kernel @starts_at_zero(%sm: memref<?x?xf32>, %lm: memref<?xf32>, %n: i32, %c: f32) attributes {num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %m0 = arith.constant dense<0.0> : !row
  %l0 = arith.constant dense<0.0> : !row
  // expected-remark@+1 {{rescales in every step: the statistics don't start as the constants -inf and 0}}
  %r:2 = tile.kv_loop ranges(%c0, %c0, %c0, %n) step 32 iter_args(%m0, %l0) : !row, !row
    qk (%kv: i32, %m: !row, %l: !row) {
      %s = tile.load %sm[%c0, %kv] : memref<?x?xf32> -> !s
      tile.yield %s : !s
    } score (%kv: i32, %s: !s, %m: !row, %l: !row) {
      tile.yield %s : !s
    } softmax (%kv: i32, %x: !s, %m: !row, %l: !row) {
      %p, %m1, %l1, %a = tile.online_softmax %x, %m, %l scale %c : !s, !row
      tile.yield %p, %m1, %l1, %a : !s, !row, !row, !row
    } pv (%kv: i32, %p: !s, %m1: !row, %l1: !row, %a: !row, %m: !row, %l: !row) {
      tile.yield %m1, %l1 : !row, !row
    }
  tile.store %r#1, %lm[%c0] : !row, memref<?xf32>
  tile.return
}

// -----

!s = tensor<64x32xf32>
!row = tensor<64xf32>
tile.kernel @starts_at_one(%sm: memref<?x?xf32>, %lm: memref<?xf32>, %n: i32, %c: f32) attributes {num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %m0 = arith.constant dense<0xFF800000> : !row
  %l0 = arith.constant dense<1.0> : !row
  // expected-remark@+1 {{rescales in every step: the statistics don't start as the constants -inf and 0}}
  %r:2 = tile.kv_loop ranges(%c0, %c0, %c0, %n) step 32 iter_args(%m0, %l0) : !row, !row
    qk (%kv: i32, %m: !row, %l: !row) {
      %s = tile.load %sm[%c0, %kv] : memref<?x?xf32> -> !s
      tile.yield %s : !s
    } score (%kv: i32, %s: !s, %m: !row, %l: !row) {
      tile.yield %s : !s
    } softmax (%kv: i32, %x: !s, %m: !row, %l: !row) {
      %p, %m1, %l1, %a = tile.online_softmax %x, %m, %l scale %c : !s, !row
      tile.yield %p, %m1, %l1, %a : !s, !row, !row, !row
    } pv (%kv: i32, %p: !s, %m1: !row, %l1: !row, %a: !row, %m: !row, %l: !row) {
      tile.yield %m1, %l1 : !row, !row
    }
  tile.store %r#1, %lm[%c0] : !row, memref<?xf32>
  tile.return
}

// -----

!s = tensor<64x32xf32>
!row = tensor<64xf32>
tile.kernel @reads_max(%sm: memref<?x?xf32>, %lm: memref<?xf32>, %n: i32, %c: f32) attributes {num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %m0 = arith.constant dense<0xFF800000> : !row
  %l0 = arith.constant dense<0.0> : !row
  // expected-remark@+1 {{rescales in every step: its statistics are used by more than the online softmax of the next step}}
  %r:2 = tile.kv_loop ranges(%c0, %c0, %c0, %n) step 32 iter_args(%m0, %l0) : !row, !row
    qk (%kv: i32, %m: !row, %l: !row) {
      %s = tile.load %sm[%c0, %kv] : memref<?x?xf32> -> !s
      tile.yield %s : !s
    } score (%kv: i32, %s: !s, %m: !row, %l: !row) {
      tile.yield %s : !s
    } softmax (%kv: i32, %x: !s, %m: !row, %l: !row) {
      %y = tile.broadcast %m dim 0 : !row -> !s
      %z = arith.addf %x, %y : !s
      %p, %m1, %l1, %a = tile.online_softmax %z, %m, %l scale %c : !s, !row
      tile.yield %p, %m1, %l1, %a : !s, !row, !row, !row
    } pv (%kv: i32, %p: !s, %m1: !row, %l1: !row, %a: !row, %m: !row, %l: !row) {
      tile.yield %m1, %l1 : !row, !row
    }
  tile.store %r#1, %lm[%c0] : !row, memref<?xf32>
  tile.return
}

// -----

!s = tensor<64x32xf32>
!row = tensor<64xf32>
tile.kernel @reads_new_sum(%sm: memref<?x?xf32>, %lm: memref<?xf32>, %n: i32, %c: f32) attributes {num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %m0 = arith.constant dense<0xFF800000> : !row
  %l0 = arith.constant dense<0.0> : !row
  // expected-remark@+1 {{rescales in every step: its statistics are used by more than the online softmax of the next step}}
  %r:2 = tile.kv_loop ranges(%c0, %c0, %c0, %n) step 32 iter_args(%m0, %l0) : !row, !row
    qk (%kv: i32, %m: !row, %l: !row) {
      %s = tile.load %sm[%c0, %kv] : memref<?x?xf32> -> !s
      tile.yield %s : !s
    } score (%kv: i32, %s: !s, %m: !row, %l: !row) {
      tile.yield %s : !s
    } softmax (%kv: i32, %x: !s, %m: !row, %l: !row) {
      %p, %m1, %l1, %a = tile.online_softmax %x, %m, %l scale %c : !s, !row
      tile.yield %p, %m1, %l1, %a : !s, !row, !row, !row
    } pv (%kv: i32, %p: !s, %m1: !row, %l1: !row, %a: !row, %m: !row, %l: !row) {
      %l2 = arith.addf %l1, %l1 : !row
      tile.yield %m1, %l2 : !row, !row
    }
  tile.store %r#1, %lm[%c0] : !row, memref<?xf32>
  tile.return
}

// -----

!s = tensor<64x32xf32>
!row = tensor<64xf32>
tile.kernel @swaps(%sm: memref<?x?xf32>, %lm: memref<?xf32>, %n: i32, %c: f32) attributes {num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %m0 = arith.constant dense<0xFF800000> : !row
  %l0 = arith.constant dense<0.0> : !row
  // expected-remark@+1 {{rescales in every step: its statistics are used by more than the online softmax of the next step}}
  %r:2 = tile.kv_loop ranges(%c0, %c0, %c0, %n) step 32 iter_args(%m0, %l0) : !row, !row
    qk (%kv: i32, %m: !row, %l: !row) {
      %s = tile.load %sm[%c0, %kv] : memref<?x?xf32> -> !s
      tile.yield %s : !s
    } score (%kv: i32, %s: !s, %m: !row, %l: !row) {
      tile.yield %s : !s
    } softmax (%kv: i32, %x: !s, %m: !row, %l: !row) {
      %p, %m1, %l1, %a = tile.online_softmax %x, %m, %l scale %c : !s, !row
      tile.yield %p, %m1, %l1, %a : !s, !row, !row, !row
    } pv (%kv: i32, %p: !s, %m1: !row, %l1: !row, %a: !row, %m: !row, %l: !row) {
      tile.yield %l1, %m1 : !row, !row
    }
  tile.store %r#1, %lm[%c0] : !row, memref<?xf32>
  tile.return
}

// -----

!s = tensor<64x32xf32>
!row = tensor<64xf32>
tile.kernel @stores_max(%sm: memref<?x?xf32>, %lm: memref<?xf32>, %n: i32, %c: f32) attributes {num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %m0 = arith.constant dense<0xFF800000> : !row
  %l0 = arith.constant dense<0.0> : !row
  // expected-remark@+1 {{rescales in every step: its maximum is used for more than scale * max + log(sum)}}
  %r:2 = tile.kv_loop ranges(%c0, %c0, %c0, %n) step 32 iter_args(%m0, %l0) : !row, !row
    qk (%kv: i32, %m: !row, %l: !row) {
      %s = tile.load %sm[%c0, %kv] : memref<?x?xf32> -> !s
      tile.yield %s : !s
    } score (%kv: i32, %s: !s, %m: !row, %l: !row) {
      tile.yield %s : !s
    } softmax (%kv: i32, %x: !s, %m: !row, %l: !row) {
      %p, %m1, %l1, %a = tile.online_softmax %x, %m, %l scale %c : !s, !row
      tile.yield %p, %m1, %l1, %a : !s, !row, !row, !row
    } pv (%kv: i32, %p: !s, %m1: !row, %l1: !row, %a: !row, %m: !row, %l: !row) {
      tile.yield %m1, %l1 : !row, !row
    }
  tile.store %r#0, %lm[%c0] : !row, memref<?xf32>
  tile.store %r#1, %lm[%c0] : !row, memref<?xf32>
  tile.return
}

// -----

!s = tensor<64x32xf32>
!row = tensor<64xf32>
tile.kernel @other_factor(%sm: memref<?x?xf32>, %lm: memref<?xf32>, %n: i32, %c: f32) attributes {num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %m0 = arith.constant dense<0xFF800000> : !row
  %l0 = arith.constant dense<0.0> : !row
  // expected-remark@+1 {{rescales in every step: its maximum is used for more than scale * max + log(sum)}}
  %r:2 = tile.kv_loop ranges(%c0, %c0, %c0, %n) step 32 iter_args(%m0, %l0) : !row, !row
    qk (%kv: i32, %m: !row, %l: !row) {
      %s = tile.load %sm[%c0, %kv] : memref<?x?xf32> -> !s
      tile.yield %s : !s
    } score (%kv: i32, %s: !s, %m: !row, %l: !row) {
      tile.yield %s : !s
    } softmax (%kv: i32, %x: !s, %m: !row, %l: !row) {
      %p, %m1, %l1, %a = tile.online_softmax %x, %m, %l scale %c : !s, !row
      tile.yield %p, %m1, %l1, %a : !s, !row, !row, !row
    } pv (%kv: i32, %p: !s, %m1: !row, %l1: !row, %a: !row, %m: !row, %l: !row) {
      tile.yield %m1, %l1 : !row, !row
    }
  %two = arith.constant dense<2.0> : !row
  %ms = arith.mulf %r#0, %two : !row
  %log = math.log %r#1 : !row
  %lse = arith.addf %ms, %log : !row
  tile.store %lse, %lm[%c0] : !row, memref<?xf32>
  tile.store %r#1, %lm[%c0] : !row, memref<?xf32>
  tile.return
}
