// RUN: attn-opt %s --split-input-file --pass-pipeline='builtin.module(attn-bufferize,convert-attn-to-cudnn,canonicalize)' | FileCheck %s
// RUN: attn-opt %s --split-input-file --attn-cudnn | FileCheck %s --check-prefix=PLAN

// The order of the i32 arguments is that of include/attn/Runtime/CudnnKernel.h:
// types of q and bias, flags, left and right bound, bits of the scale.

// Causal from the last key: 8 (bottom right), all keys before, none after.
// CHECK-LABEL: func.func @causal
// CHECK-DAG: %[[BF16:.*]] = arith.constant 3 : i32
// CHECK-DAG: %[[FLAGS:.*]] = arith.constant 8 : i32
// CHECK-DAG: %[[LEFT:.*]] = arith.constant -1 : i32
// CHECK-DAG: %[[RIGHT:.*]] = arith.constant 0 : i32
// CHECK-DAG: %[[EIGHTH:.*]] = arith.constant 1040187392 : i32
// CHECK: cf.assert %{{.*}}, "cuDNN needs at least one key"
// CHECK: cf.assert %{{.*}}, "cuDNN needs at least as many keys as queries
// CHECK: tile.launch @cudnn_sdpa_fwd grid(%{{.*}}) args(%[[BF16]], %[[BF16]], %[[FLAGS]], %[[LEFT]], %[[RIGHT]], %[[EIGHTH]], %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) cost
// CHECK-SAME: memref<?x?x?x?xbf16, strided<[?, ?, ?, 1], offset: ?>>
// CHECK: tile.kernel @cudnn_sdpa_fwd
// CHECK-SAME: attn.library = "cudnn"
// CHECK-NEXT: tile.return
func.func @causal(%q: tensor<?x4x?x64xbf16>, %k: tensor<?x2x?x64xbf16>, %v: tensor<?x2x?x64xbf16>,
                  %o: tensor<?x4x?x64xbf16>) -> tensor<?x4x?x64xbf16> {
  %r = attn.attention ins(%q, %k, %v : tensor<?x4x?x64xbf16>, tensor<?x2x?x64xbf16>, tensor<?x2x?x64xbf16>)
                      outs(%o : tensor<?x4x?x64xbf16>)
    mask_mod (%b: i32, %h: i32, %q_idx: i32, %kv_idx: i32) {
      %ql = attn.q_len : i32
      %kl = attn.kv_len : i32
      %shift = arith.subi %kl, %ql : i32
      %distance = arith.subi %kv_idx, %q_idx : i32
      // shift >= kv - q: the other way round than usual.
      %keep = arith.cmpi sge, %shift, %distance : i32
      attn.yield %keep : i1
    } -> tensor<?x4x?x64xbf16>
  return %r : tensor<?x4x?x64xbf16>
}

// -----

// A window from the first key, a bias for all heads, and the log-sum-exp:
// 1 + 2 + 32. The tighter of two bounds counts, and strict ones are one less.
// CHECK-LABEL: func.func @window_bias_lse
// CHECK-DAG: %[[F16:.*]] = arith.constant 2 : i32
// CHECK-DAG: %[[F32:.*]] = arith.constant 4 : i32
// CHECK-DAG: %[[FLAGS:.*]] = arith.constant 35 : i32
// CHECK-DAG: %[[LEFT:.*]] = arith.constant 7 : i32
// CHECK: cf.assert %{{.*}}, "cuDNN needs at least as many keys as queries
// CHECK: tile.launch @cudnn_sdpa_fwd grid(%{{.*}}) args(%[[F16]], %[[F32]], %[[FLAGS]], %[[LEFT]], %[[F32]], %{{.*}})
func.func @window_bias_lse(%q: tensor<2x4x?x64xf16>, %k: tensor<2x4x?x64xf16>, %v: tensor<2x4x?x64xf16>,
                           %bias: tensor<2x1x?x?xf32>, %o: tensor<2x4x?x64xf16>, %lse: tensor<2x4x?xf32>)
    -> (tensor<2x4x?x64xf16>, tensor<2x4x?xf32>) {
  %r:2 = attn.attention ins(%q, %k, %v, %bias : tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16>, tensor<2x1x?x?xf32>)
                        outs(%o, %lse : tensor<2x4x?x64xf16>, tensor<2x4x?xf32>)
    score_mod (%s: f32, %b: i32, %h: i32, %q_idx: i32, %kv_idx: i32, %t: tensor<2x1x?x?xf32>) {
      %x = attn.capture_load %t[%b, %h, %q_idx, %kv_idx] : tensor<2x1x?x?xf32> -> f32
      %y = arith.addf %x, %s : f32
      attn.yield %y : f32
    }
    mask_mod (%b: i32, %h: i32, %q_idx: i32, %kv_idx: i32, %t: tensor<2x1x?x?xf32>) {
      %c7 = arith.constant 7 : i32
      %c4 = arith.constant 4 : i32
      %c9 = arith.constant 9 : i32
      %first = arith.subi %q_idx, %c7 : i32
      %last = arith.addi %q_idx, %c4 : i32
      %d = arith.subi %kv_idx, %q_idx : i32
      %after = arith.cmpi sge, %kv_idx, %first : i32
      %before = arith.cmpi sle, %kv_idx, %last : i32
      %wider = arith.cmpi slt, %d, %c9 : i32
      %a = arith.andi %after, %before : i1
      %both = arith.andi %a, %wider : i1
      attn.yield %both : i1
    } -> tensor<2x4x?x64xf16>, tensor<2x4x?xf32>
  return %r#0, %r#1 : tensor<2x4x?x64xf16>, tensor<2x4x?xf32>
}

// -----

// Of a plan, the only step.
// PLAN: {type = "i32", value = 12 : i64}
// PLAN-SAME: grid = ["min", {{.*}}, 1], kernel = "cudnn_sdpa_fwd", op = "launch"}], sequences = [{k_batches = "arg1.dim0"
// PLAN-NOT: func.func

// Lengths as an operand, with a mask from the last key: one query only.
// CHECK-LABEL: func.func @lengths
// CHECK-DAG: %[[FLAGS:.*]] = arith.constant 12 : i32
// CHECK: cf.assert %{{.*}}, "cuDNN needs one query for lengths beside this mask
// CHECK: tile.launch @cudnn_sdpa_fwd grid(%{{.*}}) args(%{{[^,]*}}, %{{[^,]*}}, %[[FLAGS]],
// CHECK-SAME: memref<?xi32
func.func @lengths(%q: tensor<?x4x?x64xbf16>, %k: tensor<?x4x?x64xbf16>, %v: tensor<?x4x?x64xbf16>,
                   %lens: tensor<?xi32>, %o: tensor<?x4x?x64xbf16>) -> tensor<?x4x?x64xbf16> {
  %r = attn.attention ins(%q, %k, %v : tensor<?x4x?x64xbf16>, tensor<?x4x?x64xbf16>, tensor<?x4x?x64xbf16>)
                      kv_len(%lens : tensor<?xi32>) outs(%o : tensor<?x4x?x64xbf16>)
    mask_mod (%b: i32, %h: i32, %q_idx: i32, %kv_idx: i32) {
      %ql = attn.q_len : i32
      %kl = attn.kv_len : i32
      %shift = arith.subi %kl, %ql : i32
      %last = arith.addi %q_idx, %shift : i32
      %keep = arith.cmpi sle, %kv_idx, %last : i32
      attn.yield %keep : i1
    } -> tensor<?x4x?x64xbf16>
  return %r : tensor<?x4x?x64xbf16>
}

// -----

// Key padding by a capture; no other mask needs no check of lengths.
// CHECK-LABEL: func.func @padding
// CHECK-DAG: %[[FLAGS:.*]] = arith.constant 4 : i32
// CHECK: cf.assert %{{.*}}, "cuDNN needs at least one key"
// CHECK-NOT: cf.assert
// CHECK: tile.launch @cudnn_sdpa_fwd grid(%{{.*}}) args(%{{[^,]*}}, %{{[^,]*}}, %[[FLAGS]],
func.func @padding(%q: tensor<?x4x?x64xbf16>, %k: tensor<?x4x?x64xbf16>, %v: tensor<?x4x?x64xbf16>,
                   %lens: tensor<?xi32>, %o: tensor<?x4x?x64xbf16>) -> tensor<?x4x?x64xbf16> {
  %r = attn.attention ins(%q, %k, %v, %lens : tensor<?x4x?x64xbf16>, tensor<?x4x?x64xbf16>, tensor<?x4x?x64xbf16>, tensor<?xi32>)
                      outs(%o : tensor<?x4x?x64xbf16>)
    mask_mod (%b: i32, %h: i32, %q_idx: i32, %kv_idx: i32, %l: tensor<?xi32>) {
      %n = attn.capture_load %l[%b] : tensor<?xi32> -> i32
      %keep = arith.cmpi slt, %kv_idx, %n : i32
      attn.yield %keep : i1
    } -> tensor<?x4x?x64xbf16>
  return %r : tensor<?x4x?x64xbf16>
}

// -----

// A bias beside a mask from the last key is one from the first where q and k
// are of one length, which is checked: 2 without 8.
// CHECK-LABEL: func.func @bias_causal
// CHECK-DAG: %[[FLAGS:.*]] = arith.constant 2 : i32
// CHECK: cf.assert %{{.*}}, "cuDNN masks from the last key beside a bias only where q and k are of one length"
// CHECK: tile.launch @cudnn_sdpa_fwd grid(%{{.*}}) args(%{{[^,]*}}, %{{[^,]*}}, %[[FLAGS]],
func.func @bias_causal(%q: tensor<?x4x?x64xbf16>, %k: tensor<?x4x?x64xbf16>, %v: tensor<?x4x?x64xbf16>,
                       %bias: tensor<?x4x?x?xbf16>, %o: tensor<?x4x?x64xbf16>) -> tensor<?x4x?x64xbf16> {
  %r = attn.attention ins(%q, %k, %v, %bias : tensor<?x4x?x64xbf16>, tensor<?x4x?x64xbf16>, tensor<?x4x?x64xbf16>, tensor<?x4x?x?xbf16>)
                      outs(%o : tensor<?x4x?x64xbf16>)
    score_mod (%s: f32, %b: i32, %h: i32, %q_idx: i32, %kv_idx: i32, %t: tensor<?x4x?x?xbf16>) {
      %x = attn.capture_load %t[%b, %h, %q_idx, %kv_idx] : tensor<?x4x?x?xbf16> -> bf16
      %w = arith.extf %x : bf16 to f32
      %y = arith.addf %s, %w : f32
      attn.yield %y : f32
    }
    mask_mod (%b: i32, %h: i32, %q_idx: i32, %kv_idx: i32, %t: tensor<?x4x?x?xbf16>) {
      %ql = attn.q_len : i32
      %kl = attn.kv_len : i32
      %shift = arith.subi %kl, %ql : i32
      %last = arith.addi %q_idx, %shift : i32
      %keep = arith.cmpi sle, %kv_idx, %last : i32
      attn.yield %keep : i1
    } -> tensor<?x4x?x64xbf16>
  return %r : tensor<?x4x?x64xbf16>
}
