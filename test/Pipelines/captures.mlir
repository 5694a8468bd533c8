// How GPU kernels read captures, down to the instructions.

// RUN: attn-compile %s --entry=bias --target=sm_80 --emit=ptx -o - | FileCheck %s --check-prefix=BIAS
// RUN: attn-compile %s --entry=bias --target=sm_90a --emit=ptx -o - | FileCheck %s --check-prefix=BIAS
// RUN: attn-compile %s --entry=keep --target=sm_80 --emit=ptx -o - 2>/dev/null | FileCheck %s --check-prefix=KEEP
// RUN: attn-compile %s --entry=padding --target=sm_80 --emit=ptx -o - | FileCheck %s --check-prefix=PADDING
// RUN: attn-compile %s --entry=padding --target=sm_90a --emit=ptx -o - | FileCheck %s --check-prefix=ROLES
// RUN: attn-compile %s --entry=slopes --target=sm_80 --emit=ptx -o - | FileCheck %s --check-prefix=SLOPES
// RUN: attn-compile %s --entry=slopes --target=sm_90a --emit=ptx -o - | FileCheck %s --check-prefix=SLOPES

!q = tensor<?x4x?x64xbf16>

// Two neighbouring columns of a thread are one load, without a condition where
// the tile is whole.
// BIAS: .entry fused_attn
// BIAS: {{^[[:space:]]+}}ld.global.v2.b32
// BIAS: @%p{{[0-9]+}} ld.global.b32
func.func @bias(%q: !q, %bias: tensor<?x1x1x?xf32>, %o: !q) -> !q {
  %r = attn.attention ins(%q, %q, %q, %bias : !q, !q, !q, tensor<?x1x1x?xf32>) outs(%o : !q)
    score_mod (%s: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<?x1x1x?xf32>) {
      %x = attn.capture_load %t[%b, %h, %i, %j] : tensor<?x1x1x?xf32> -> f32
      %y = arith.addf %s, %x : f32
      attn.yield %y : f32
    } -> !q
  return %r : !q
}

// So are two booleans, where they are aligned.
// KEEP: .entry fused_attn
// KEEP: ld.global.b16
// KEEP: ld.global.u8
func.func @keep(%q: !q, %keep: tensor<?x4x?x?xi1>, %o: !q) -> !q {
  %r = attn.attention ins(%q, %q, %q, %keep : !q, !q, !q, tensor<?x4x?x?xi1>) outs(%o : !q)
    mask_mod (%b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<?x4x?x?xi1>) {
      %x = attn.capture_load %t[%b, %h, %i, %j] : tensor<?x4x?x?xi1> -> i1
      attn.yield %x : i1
    } -> !q
  return %r : !q
}

// The length of a batch is read once a tile of queries, and bounds the loop.
// With warp roles only the producer reads it, and tells the consumers.
// PADDING: .entry fused_attn_s16816_bf16_d64(
// PADDING: ld.global.b32
// PADDING-NOT: ld.global.b32
// ROLES: .entry fused_attn_wgmma
// ROLES-NOT: ld.global.b32
// ROLES: wgmma.mma_async
// ROLES: ld.global.b32
// ROLES-NOT: {{wgmma.mma_async|ld.global.b32}}
// ROLES: cp.async.bulk.tensor
// ROLES-NOT: {{wgmma.mma_async|ld.global.b32}}
func.func @padding(%q: !q, %lens: tensor<?xi32>, %o: !q) -> !q {
  %r = attn.attention ins(%q, %q, %q, %lens : !q, !q, !q, tensor<?xi32>) outs(%o : !q)
    mask_mod (%b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<?xi32>) {
      %n = attn.capture_load %t[%b] : tensor<?xi32> -> i32
      %x = arith.cmpi slt, %j, %n : i32
      attn.yield %x : i1
    } -> !q
  return %r : !q
}

// ALiBi is two FMAs an element, of which one takes the column as a constant.
// SLOPES: .entry fused_attn
// SLOPES: fma.rn.f32 %{{[^,]+}}, %{{[^,]+}}, 0f41000000, %{{[^,]+}};
func.func @slopes(%q: !q, %slopes: tensor<4xf32>, %o: !q) -> !q {
  %r = attn.attention ins(%q, %q, %q, %slopes : !q, !q, !q, tensor<4xf32>) outs(%o : !q)
    score_mod (%s: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<4xf32>) {
      %slope = attn.capture_load %t[%h] : tensor<4xf32> -> f32
      %d = arith.subi %j, %i : i32
      %f = arith.sitofp %d : i32 to f32
      %bias = arith.mulf %slope, %f : f32
      %y = arith.addf %s, %bias : f32
      attn.yield %y : f32
    } -> !q
  return %r : !q
}
