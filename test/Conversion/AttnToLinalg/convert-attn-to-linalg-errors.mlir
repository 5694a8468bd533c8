// RUN: attn-opt --convert-attn-to-linalg --split-input-file --verify-diagnostics %s
// RUN: not attn-opt --convert-attn-to-linalg=variant=fast %s 2>&1 | FileCheck %s --check-prefix=VARIANT

// VARIANT: unknown variant 'fast'; known are naive, inplace and math

func.func @head_dim(%q: tensor<1x2x8x584xf32>) -> tensor<1x2x8x584xf32> {
  %e = tensor.empty() : tensor<1x2x8x584xf32>
  // expected-error @below {{head dimension 584 of q and k is not supported yet}}
  // expected-note @below {{supported:}}
  %r = attn.attention ins(%q, %q, %q : tensor<1x2x8x584xf32>, tensor<1x2x8x584xf32>, tensor<1x2x8x584xf32>)
                      outs(%e : tensor<1x2x8x584xf32>) -> tensor<1x2x8x584xf32>
  return %r : tensor<1x2x8x584xf32>
}

// -----

func.func @captures(%q: tensor<1x2x8x64xf32>, %c: tensor<2xf64>) -> tensor<1x2x8x64xf32> {
  %e = tensor.empty() : tensor<1x2x8x64xf32>
  // expected-error @below {{captures of f64 are not supported yet}}
  // expected-note @below {{supported:}}
  %r = attn.attention ins(%q, %q, %q, %c : tensor<1x2x8x64xf32>, tensor<1x2x8x64xf32>, tensor<1x2x8x64xf32>, tensor<2xf64>)
                      outs(%e : tensor<1x2x8x64xf32>) -> tensor<1x2x8x64xf32>
  return %r : tensor<1x2x8x64xf32>
}

// -----

func.func @memrefs(%q: memref<1x2x8x64xf32>, %o: memref<1x2x8x64xf32>) {
  // expected-error @below {{is on memrefs; unfused sequences are made from tensors, before attn-bufferize}}
  attn.attention ins(%q, %q, %q : memref<1x2x8x64xf32>, memref<1x2x8x64xf32>, memref<1x2x8x64xf32>)
                 outs(%o : memref<1x2x8x64xf32>)
  return
}

// -----

func.func @packed(%q: tensor<1x2x8x64xf32>, %ends: tensor<3xi32>) -> tensor<1x2x8x64xf32> {
  %e = tensor.empty() : tensor<1x2x8x64xf32>
  // expected-error @below {{has lengths that only the device knows (cu_q, cu_k, kv_len, block_table), which the unfused sequences don't serve; use the fused variant}}
  %r = attn.attention ins(%q, %q, %q : tensor<1x2x8x64xf32>, tensor<1x2x8x64xf32>, tensor<1x2x8x64xf32>)
                      cu_q(%ends : tensor<3xi32>) cu_k(%ends : tensor<3xi32>)
                      outs(%e : tensor<1x2x8x64xf32>) -> tensor<1x2x8x64xf32>
  return %r : tensor<1x2x8x64xf32>
}

// -----

func.func @quantized(%x: tensor<1x2x?x64xf8E4M3FN>, %o: tensor<1x2x?x64xf16>) -> tensor<1x2x?x64xf16> {
  // expected-error @below {{on 'f8E4M3FN' has no unfused sequence; use the fused variant on sm_90a, or convert q, k and v to bf16}}
  %r = attn.attention
      ins(%x, %x, %x : tensor<1x2x?x64xf8E4M3FN>, tensor<1x2x?x64xf8E4M3FN>, tensor<1x2x?x64xf8E4M3FN>)
      outs(%o : tensor<1x2x?x64xf16>) -> tensor<1x2x?x64xf16>
  return %r : tensor<1x2x?x64xf16>
}
