// Static sizes below a tile's, and a sum that no tile divides: each variant
// still cuts its products into pieces that the warps can share.

// RUN: attn-compile %s --entry=short_f16 --target=sm_80 --variant=naive --emit=ptx -o - | FileCheck %s --check-prefix=NAIVE
// RUN: attn-compile %s --entry=short_f16 --target=sm_80 --variant=math --emit=ptx -o - | FileCheck %s --check-prefix=MATH
// RUN: attn-compile %s --entry=short_f16 --target=sm_80 --variant=fused --emit=ptx -o - | FileCheck %s --check-prefix=FUSED
// RUN: attn-compile %s --entry=short_f32 --target=sm_80 --variant=naive --emit=ptx -o - | FileCheck %s --check-prefix=NAIVE32
// RUN: attn-compile %s --entry=short_f32 --target=sm_80 --variant=math --emit=ptx -o - | FileCheck %s --check-prefix=MATH
// RUN: attn-compile %s --entry=short_f32 --target=sm_80 --variant=fused --emit=ptx -o - | FileCheck %s --check-prefix=FUSED32

// NAIVE: .entry naive_qk_s16816_f16(
// NAIVE: .entry naive_pv_s16816_f16(
// NAIVE32: .entry naive_qk_s1688_tf32x3_f32(
// NAIVE32: .entry naive_pv_s1688_tf32x3_f32(
// MATH: .entry math_qk_ffma_f32(
// MATH: .entry math_pv_ffma_f32(
// FUSED: .entry fused_attn_s16816_f16_d32_decode(
// FUSED32: .entry fused_attn_s1688_tf32x3_f32_d32(
// FUSED32: mma.sync

func.func @short_f16(%q: tensor<2x2x1x32xf16>, %k: tensor<2x1x77x32xf16>,
                     %v: tensor<2x1x77x32xf16>, %o: tensor<2x2x1x32xf16>)
    -> tensor<2x2x1x32xf16> {
  %r = attn.attention
      ins(%q, %k, %v : tensor<2x2x1x32xf16>, tensor<2x1x77x32xf16>,
                       tensor<2x1x77x32xf16>)
      outs(%o : tensor<2x2x1x32xf16>) -> tensor<2x2x1x32xf16>
  return %r : tensor<2x2x1x32xf16>
}

func.func @short_f32(%q: tensor<2x2x77x32xf32>, %k: tensor<2x1x3x32xf32>,
                     %v: tensor<2x1x3x32xf32>, %o: tensor<2x2x77x32xf32>)
    -> tensor<2x2x77x32xf32> {
  %r = attn.attention
      ins(%q, %k, %v : tensor<2x2x77x32xf32>, tensor<2x1x3x32xf32>,
                       tensor<2x1x3x32xf32>)
      outs(%o : tensor<2x2x77x32xf32>) -> tensor<2x2x77x32xf32>
  return %r : tensor<2x2x77x32xf32>
}
