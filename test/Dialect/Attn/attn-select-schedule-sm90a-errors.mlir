// RUN: attn-opt --attn-select-schedule=target=sm_90a %s --split-input-file --verify-diagnostics

func.func @f32(%x: tensor<1x2x?x64xf32>) -> tensor<1x2x?x64xf32> {
  // expected-error @below {{on 'f32' has no kernel for sm_90a, which serves f16 and bf16; use target sm_80, which the same GPU runs}}
  %r = attn.attention
      ins(%x, %x, %x : tensor<1x2x?x64xf32>, tensor<1x2x?x64xf32>, tensor<1x2x?x64xf32>)
      outs(%x : tensor<1x2x?x64xf32>) -> tensor<1x2x?x64xf32>
  return %r : tensor<1x2x?x64xf32>
}

// -----

func.func @block_m(%x: tensor<1x2x?x64xf16>) -> tensor<1x2x?x64xf16> {
  // expected-error @below {{schedule: block_m = 96 must be 64, 128, 192 or 256: 64 rows a consumer warpgroup}}
  %r = attn.attention
      ins(%x, %x, %x : tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16>)
      outs(%x : tensor<1x2x?x64xf16>)
      {schedule = #attn.schedule<block_m = 96, block_n = 64, num_stages = 2, num_warps = 8>}
      -> tensor<1x2x?x64xf16>
  return %r : tensor<1x2x?x64xf16>
}

// -----

func.func @num_warps(%x: tensor<1x2x?x64xf16>) -> tensor<1x2x?x64xf16> {
  // expected-error @below {{schedule: num_warps = 8 must be 12: 4 for the producer and 4 for every 64 rows of block_m}}
  %r = attn.attention
      ins(%x, %x, %x : tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16>)
      outs(%x : tensor<1x2x?x64xf16>)
      {schedule = #attn.schedule<block_m = 128, block_n = 64, num_stages = 2, num_warps = 8>}
      -> tensor<1x2x?x64xf16>
  return %r : tensor<1x2x?x64xf16>
}

// -----

func.func @block_n(%x: tensor<1x2x?x64xf16>) -> tensor<1x2x?x64xf16> {
  // expected-error @below {{schedule: block_n = 272 must be at most 256}}
  %r = attn.attention
      ins(%x, %x, %x : tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16>)
      outs(%x : tensor<1x2x?x64xf16>)
      {schedule = #attn.schedule<block_m = 128, block_n = 272, num_stages = 2, num_warps = 12>}
      -> tensor<1x2x?x64xf16>
  return %r : tensor<1x2x?x64xf16>
}

// -----

// 96 columns take two blocks of 64: 32 KB for Q and for every K and V tile.
func.func @memory(%x: tensor<1x2x?x96xf16>) -> tensor<1x2x?x96xf16> {
  // expected-error @below {{schedule needs 294912 bytes of shared memory, but a program of sm_90a may use 232448: q tile 32768 + 4 stages * (k tile 32768 + v tile 32768)}}
  %r = attn.attention
      ins(%x, %x, %x : tensor<1x2x?x96xf16>, tensor<1x2x?x96xf16>, tensor<1x2x?x96xf16>)
      outs(%x : tensor<1x2x?x96xf16>)
      {schedule = #attn.schedule<block_m = 128, block_n = 128, num_stages = 4, num_warps = 12>}
      -> tensor<1x2x?x96xf16>
  return %r : tensor<1x2x?x96xf16>
}
