// RUN: attn-opt --attn-lower-merge --verify-diagnostics %s

func.func @element_type(%o0: tensor<4x8x64xf64>, %l0: tensor<4x8xf32>) -> (tensor<4x8x64xf64>, tensor<4x8xf32>) {
  // expected-error@+1 {{merges outputs of f16, bf16 or f32, not 'f64'}}
  %o, %l = attn.merge %o0 with %l0 : tensor<4x8x64xf64> with tensor<4x8xf32> -> tensor<4x8x64xf64>, tensor<4x8xf32>
  return %o, %l : tensor<4x8x64xf64>, tensor<4x8xf32>
}
