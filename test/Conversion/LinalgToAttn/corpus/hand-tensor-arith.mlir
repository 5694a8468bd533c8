// Origin: written by hand, arith on whole tensors between the matmuls; a batch
// of sequences [B, N, D] with a scale from a splat constant; bf16 in, f32
// scores, rounded weights and output.
// RUN: attn-opt %s -raise-linalg-to-attn -canonicalize | FileCheck %s

// CHECK-LABEL: func @attention
// CHECK-SAME: (%[[Q:[^:]*]]: tensor<8x128x64xbf16>,
// CHECK: tensor.expand_shape %[[Q]] {{\[\[}}0, 1], [2], [3]] {{.*}} into tensor<8x1x128x64xbf16>
// CHECK: attn.attention
// CHECK-SAME: outs(%{{.*}} : tensor<8x1x128x64xbf16>)
// CHECK-SAME: {scale = 1.250000e-01 : f32}
// CHECK-NOT: _mod
// CHECK: tensor.collapse_shape {{.*}} into tensor<8x128x64xbf16>
// CHECK-NOT: truncf
// CHECK: return
!t = tensor<8x128x64xbf16>
!s = tensor<8x128x128xf32>
func.func @attention(%q: !t, %k: !t, %v: !t) -> !t {
  %zero = arith.constant 0.0 : f32
  %scale = arith.constant dense<0.125> : !s
  %se = tensor.empty() : !s
  %sz = linalg.fill ins(%zero : f32) outs(%se : !s) -> !s
  %s = linalg.batch_matmul
      indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>,
                       affine_map<(b, m, n, k) -> (b, n, k)>,
                       affine_map<(b, m, n, k) -> (b, m, n)>]
      ins(%q, %k : !t, !t) outs(%sz : !s) -> !s
  %x = arith.mulf %s, %scale : !s
  %p = linalg.softmax dimension(2) ins(%x : !s) outs(%se : !s) -> !s
  %pb = arith.truncf %p : !s to tensor<8x128x128xbf16>
  %oe = tensor.empty() : tensor<8x128x64xf32>
  %oz = linalg.fill ins(%zero : f32) outs(%oe : tensor<8x128x64xf32>) -> tensor<8x128x64xf32>
  %o = linalg.batch_matmul ins(%pb, %v : tensor<8x128x128xbf16>, !t)
      outs(%oz : tensor<8x128x64xf32>) -> tensor<8x128x64xf32>
  %r = arith.truncf %o : tensor<8x128x64xf32> to !t
  return %r : !t
}
