// RUN: attn-opt --attn-select-schedule=target=sm_90a %s --split-input-file --verify-diagnostics

func.func @f32(%x: tensor<1x2x?x64xf32>) -> tensor<1x2x?x64xf32> {
  // expected-error @below {{has no kernel for sm_90a, which doesn't serve 'f32'; use target sm_80, which the same GPU runs}}
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
  // expected-error @below {{schedule needs 296960 bytes of shared memory, but a program of sm_90a may use 232448: q tile 32768 + 4 stages * (k tile 32768 + v tile 32768) + 2048 for barriers; lower num_stages, block_n or block_m}}
  %r = attn.attention
      ins(%x, %x, %x : tensor<1x2x?x96xf16>, tensor<1x2x?x96xf16>, tensor<1x2x?x96xf16>)
      outs(%x : tensor<1x2x?x96xf16>)
      {schedule = #attn.schedule<block_m = 128, block_n = 128, num_stages = 4, num_warps = 12>}
      -> tensor<1x2x?x96xf16>
  return %r : tensor<1x2x?x96xf16>
}

// -----

func.func @ahead_of_one_stage(%x: tensor<1x2x?x64xf16>) -> tensor<1x2x?x64xf16> {
  // expected-error @below {{schedule: num_stages = 1 must be at least 2 with pipeline = ahead, whose consumers hold two K tiles at a time}}
  %r = attn.attention
      ins(%x, %x, %x : tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16>)
      outs(%x : tensor<1x2x?x64xf16>)
      {schedule = #attn.schedule<block_m = 128, block_n = 64, num_stages = 1, num_warps = 12, warp_roles = <pipeline = ahead>>}
      -> tensor<1x2x?x64xf16>
  return %r : tensor<1x2x?x64xf16>
}

// -----

// ptxas has no register for the output of 3 warpgroups.
func.func @registers(%x: tensor<1x2x?x256xf16>) -> tensor<1x2x?x256xf16> {
  // expected-error @below {{schedule needs about 180 registers a consumer thread, which has 160 with block_m = 192: output 128 + scores 16 + weights 8 + 28; lower block_n or block_m, or take pipeline = simple}}
  %r = attn.attention
      ins(%x, %x, %x : tensor<1x2x?x256xf16>, tensor<1x2x?x256xf16>, tensor<1x2x?x256xf16>)
      outs(%x : tensor<1x2x?x256xf16>)
      {schedule = #attn.schedule<block_m = 192, block_n = 32, num_stages = 2, num_warps = 16>}
      -> tensor<1x2x?x256xf16>
  return %r : tensor<1x2x?x256xf16>
}

// -----

// Nor for an output that setmaxnreg would have room for.
func.func @registers_at_launch(%x: tensor<1x2x?x208xf16>) -> tensor<1x2x?x208xf16> {
  // expected-error @below {{schedule needs about 132 registers for a product, and 512 threads begin with 128 each: output 104 + 28; lower block_m}}
  %r = attn.attention
      ins(%x, %x, %x : tensor<1x2x?x208xf16>, tensor<1x2x?x208xf16>, tensor<1x2x?x208xf16>)
      outs(%x : tensor<1x2x?x208xf16>)
      {schedule = #attn.schedule<block_m = 192, block_n = 16, num_stages = 2, num_warps = 16>}
      -> tensor<1x2x?x208xf16>
  return %r : tensor<1x2x?x208xf16>
}

// -----

func.func @registers_simple(%x: tensor<1x2x?x64xf16>) -> tensor<1x2x?x64xf16> {
  // expected-error @below {{schedule needs about 116 registers a consumer thread, which has 112 with block_m = 256: output 32 + scores 56 + 28; lower block_n or block_m}}
  %r = attn.attention
      ins(%x, %x, %x : tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16>)
      outs(%x : tensor<1x2x?x64xf16>)
      {schedule = #attn.schedule<block_m = 256, block_n = 112, num_stages = 2, num_warps = 20, warp_roles = <pipeline = simple>>}
      -> tensor<1x2x?x64xf16>
  return %r : tensor<1x2x?x64xf16>
}

// -----

func.func @registers_ahead(%x: tensor<1x2x?x192xf16>) -> tensor<1x2x?x192xf16> {
  // expected-error @below {{schedule needs about 236 registers a consumer thread, which has 232 with block_m = 128: output 96 + scores 2 * 56 + 28; lower block_n or block_m, or take pipeline = simple}}
  %r = attn.attention
      ins(%x, %x, %x : tensor<1x2x?x192xf16>, tensor<1x2x?x192xf16>, tensor<1x2x?x192xf16>)
      outs(%x : tensor<1x2x?x192xf16>)
      {schedule = #attn.schedule<block_m = 128, block_n = 112, num_stages = 2, num_warps = 12, warp_roles = <pipeline = ahead>>}
      -> tensor<1x2x?x192xf16>
  return %r : tensor<1x2x?x192xf16>
}

// -----

func.func @f8_block_n(%x: tensor<1x2x?x64xf8E4M3FN>, %o: tensor<1x2x?x64xf16>) -> tensor<1x2x?x64xf16> {
  // expected-error @below {{schedule: block_n = 48 must be a multiple of 32}}
  %r = attn.attention
      ins(%x, %x, %x : tensor<1x2x?x64xf8E4M3FN>, tensor<1x2x?x64xf8E4M3FN>, tensor<1x2x?x64xf8E4M3FN>)
      outs(%o : tensor<1x2x?x64xf16>)
      {schedule = #attn.schedule<block_m = 128, block_n = 48, num_stages = 2, num_warps = 12>}
      -> tensor<1x2x?x64xf16>
  return %r : tensor<1x2x?x64xf16>
}

// -----

func.func @f8_memory(%x: tensor<1x2x?x96xf8E4M3FN>, %o: tensor<1x2x?x96xf16>) -> tensor<1x2x?x96xf16> {
  // Nothing is wasted: 96 bytes a row, not 128.
  // expected-error @below {{schedule needs 235520 bytes of shared memory, but a program of sm_90a may use 232448: q tile 36864 + 8 stages * (k tile 12288 + v tile 12288) + 2048 for barriers}}
  %r = attn.attention
      ins(%x, %x, %x : tensor<1x2x?x96xf8E4M3FN>, tensor<1x2x?x96xf8E4M3FN>, tensor<1x2x?x96xf8E4M3FN>)
      outs(%o : tensor<1x2x?x96xf16>)
      {schedule = #attn.schedule<block_m = 192, block_n = 128, num_stages = 8, num_warps = 16, warp_roles = <pipeline = simple, q_stages = 2>>}
      -> tensor<1x2x?x96xf16>
  return %r : tensor<1x2x?x96xf16>
}

// -----

func.func @f8_staging(%x: tensor<1x2x?x256xf8E4M3FN>, %o: tensor<1x2x?x256xf16>) -> tensor<1x2x?x256xf16> {
  // expected-error @below {{schedule needs 264192 bytes of shared memory, but a program of sm_90a may use 232448: q tile 65536 + 3 stages * (k tile 24576 + v tile 24576) + 2 * v tile 24576 that v_transpose = producer transposes + 2048 for barriers}}
  %r = attn.attention
      ins(%x, %x, %x : tensor<1x2x?x256xf8E4M3FN>, tensor<1x2x?x256xf8E4M3FN>, tensor<1x2x?x256xf8E4M3FN>)
      outs(%o : tensor<1x2x?x256xf16>)
      {schedule = #attn.schedule<block_m = 128, block_n = 96, num_stages = 3, num_warps = 12, warp_roles = <q_stages = 2, v_transpose = producer>>}
      -> tensor<1x2x?x256xf16>
  return %r : tensor<1x2x?x256xf16>
}

// -----

func.func @transpose_16(%x: tensor<1x2x?x64xf16>) -> tensor<1x2x?x64xf16> {
  // expected-error @below {{schedule: v_transpose = producer is for 8-bit inputs; products of 'f16' take v as it lies, leave it out}}
  %r = attn.attention
      ins(%x, %x, %x : tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16>)
      outs(%x : tensor<1x2x?x64xf16>)
      {schedule = #attn.schedule<block_m = 128, block_n = 64, num_stages = 2, num_warps = 12, warp_roles = <v_transpose = producer>>}
      -> tensor<1x2x?x64xf16>
  return %r : tensor<1x2x?x64xf16>
}

// -----

func.func @f8_sequences(%x: tensor<1x2x?x64xf8E4M3FN>, %cu: tensor<3xi32>, %o: tensor<1x2x?x64xf16>) -> tensor<1x2x?x64xf16> {
  // expected-error @below {{has no kernel for sm_90a, which doesn't serve 8-bit floats with lengths that only the device knows; leave cu_q, cu_k, kv_len and block_table out, or convert q, k and v to bf16}}
  %r = attn.attention
      ins(%x, %x, %x : tensor<1x2x?x64xf8E4M3FN>, tensor<1x2x?x64xf8E4M3FN>, tensor<1x2x?x64xf8E4M3FN>)
      cu_q(%cu : tensor<3xi32>) cu_k(%cu : tensor<3xi32>)
      outs(%o : tensor<1x2x?x64xf16>) -> tensor<1x2x?x64xf16>
  return %r : tensor<1x2x?x64xf16>
}

// -----

// TMA fills whole blocks of columns.
func.func @columns(%q: tensor<1x2x?x64xf16>, %v: tensor<1x2x?x512xf16>) -> tensor<1x2x?x512xf16> {
  // expected-error @below {{schedule: v_columns = 176 must be a multiple of 64 on sm_90a}}
  %r = attn.attention
      ins(%q, %q, %v : tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16>, tensor<1x2x?x512xf16>)
      outs(%v : tensor<1x2x?x512xf16>)
      {schedule = #attn.schedule<block_m = 64, block_n = 32, num_stages = 2, num_warps = 8, v_columns = 176>}
      -> tensor<1x2x?x512xf16>
  return %r : tensor<1x2x?x512xf16>
}

// -----

func.func @columns_registers(%q: tensor<1x2x?x64xf16>, %v: tensor<1x2x?x512xf16>) -> tensor<1x2x?x512xf16> {
  // expected-error @below {{schedule needs about 308 registers a consumer thread, which has 232 with block_m = 64: output 256 + scores 16 + weights 8 + 28; lower block_n or block_m, or take pipeline = simple, or set v_columns to 256 or less}}
  %r = attn.attention
      ins(%q, %q, %v : tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16>, tensor<1x2x?x512xf16>)
      outs(%v : tensor<1x2x?x512xf16>)
      {schedule = #attn.schedule<block_m = 64, block_n = 32, num_stages = 2, num_warps = 8>}
      -> tensor<1x2x?x512xf16>
  return %r : tensor<1x2x?x512xf16>
}
