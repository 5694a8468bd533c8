// RUN: attn-opt --attn-select-schedule=target=sm_80 --split-input-file --verify-diagnostics %s

func.func @too_big(%x: tensor<1x2x?x128xf32>) -> tensor<1x2x?x128xf32> {
  // expected-error @below {{schedule needs 589824 bytes of shared memory, but a program of sm_80 may use 166912: q tile 65536 + 4 stages * (k tile 65536 + v tile 65536); lower num_stages, block_n or block_m}}
  %r = attn.attention
      ins(%x, %x, %x : tensor<1x2x?x128xf32>, tensor<1x2x?x128xf32>, tensor<1x2x?x128xf32>)
      outs(%x : tensor<1x2x?x128xf32>)
      {schedule = #attn.schedule<block_m = 128, block_n = 128, num_stages = 4, num_warps = 4>}
      -> tensor<1x2x?x128xf32>
  return %r : tensor<1x2x?x128xf32>
}

// -----

func.func @rows(%x: tensor<1x2x?x64xf32>) -> tensor<1x2x?x64xf32> {
  // expected-error @below {{schedule: block_m = 64 must be a multiple of 16 * num_warps = 128}}
  %r = attn.attention
      ins(%x, %x, %x : tensor<1x2x?x64xf32>, tensor<1x2x?x64xf32>, tensor<1x2x?x64xf32>)
      outs(%x : tensor<1x2x?x64xf32>)
      {schedule = #attn.schedule<block_m = 64, block_n = 64, num_stages = 2, num_warps = 8>}
      -> tensor<1x2x?x64xf32>
  return %r : tensor<1x2x?x64xf32>
}

// -----

func.func @head_dim(%x: tensor<1x2x?x577xf16>) -> tensor<1x2x?x577xf16> {
  // expected-error @below {{head dimension 577 of q and k is not supported yet}}
  // expected-note @below {{supported: q, k, v of f16, bf16 or f32, head dimensions up to 576 (q/k and v may differ)}}
  %r = attn.attention
      ins(%x, %x, %x : tensor<1x2x?x577xf16>, tensor<1x2x?x577xf16>, tensor<1x2x?x577xf16>)
      outs(%x : tensor<1x2x?x577xf16>) -> tensor<1x2x?x577xf16>
  return %r : tensor<1x2x?x577xf16>
}

// -----

func.func @v_head_dim(%q: tensor<1x2x?x64xf16>, %v: tensor<1x2x?x584xf16>) -> tensor<1x2x?x584xf16> {
  // expected-error @below {{head dimension 584 of v is not supported yet}}
  // expected-note @below {{supported:}}
  %r = attn.attention
      ins(%q, %q, %v : tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16>, tensor<1x2x?x584xf16>)
      outs(%v : tensor<1x2x?x584xf16>) -> tensor<1x2x?x584xf16>
  return %r : tensor<1x2x?x584xf16>
}

// -----

// 40 columns are padded to 48: 12288 bytes for 128 rows of Q.
func.func @padded_memory(%x: tensor<1x2x?x40xf16>) -> tensor<1x2x?x40xf16> {
  // expected-error @below {{schedule needs 184320 bytes of shared memory, but a program of sm_80 may use 166912: q tile 12288 + 7 stages * (k tile 12288 + v tile 12288)}}
  %r = attn.attention
      ins(%x, %x, %x : tensor<1x2x?x40xf16>, tensor<1x2x?x40xf16>, tensor<1x2x?x40xf16>)
      outs(%x : tensor<1x2x?x40xf16>)
      {schedule = #attn.schedule<block_m = 128, block_n = 128, num_stages = 7, num_warps = 4>}
      -> tensor<1x2x?x40xf16>
  return %r : tensor<1x2x?x40xf16>
}

// -----

func.func @warps(%x: tensor<1x2x?x64xf16>) -> tensor<1x2x?x64xf16> {
  // expected-error @below {{schedule: num_warps = 3 must be a power of two on sm_80}}
  %r = attn.attention
      ins(%x, %x, %x : tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16>)
      outs(%x : tensor<1x2x?x64xf16>)
      {schedule = #attn.schedule<block_m = 48, block_n = 64, num_stages = 2, num_warps = 3>}
      -> tensor<1x2x?x64xf16>
  return %r : tensor<1x2x?x64xf16>
}

// -----

func.func @size(%x: tensor<1x2x4294967297x64xf16>) -> tensor<1x2x4294967297x64xf16> {
  // expected-error @below {{has a size of 4294967297; kernels take sizes up to 1073741824}}
  %r = attn.attention
      ins(%x, %x, %x : tensor<1x2x4294967297x64xf16>, tensor<1x2x4294967297x64xf16>, tensor<1x2x4294967297x64xf16>)
      outs(%x : tensor<1x2x4294967297x64xf16>) -> tensor<1x2x4294967297x64xf16>
  return %r : tensor<1x2x4294967297x64xf16>
}

// -----

// The schedules for short sequences are checked as well.
func.func @short(%x: tensor<1x2x?x64xf16>) -> tensor<1x2x?x64xf16> {
  // expected-error @below {{schedule: block_m = 32 must be a multiple of 16 * num_warps = 64}}
  %r = attn.attention
      ins(%x, %x, %x : tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16>)
      outs(%x : tensor<1x2x?x64xf16>)
      {schedule = #attn.schedule<block_m = 64, block_n = 32, num_stages = 3, num_warps = 4>,
       short_schedules = [#attn.short_schedule<max_q_len = 64, schedule = <block_m = 32, block_n = 32, num_stages = 3, num_warps = 4>>]}
      -> tensor<1x2x?x64xf16>
  return %r : tensor<1x2x?x64xf16>
}

// -----

func.func @f8(%x: tensor<1x2x?x64xf8E4M3FN>, %o: tensor<1x2x?x64xf16>) -> tensor<1x2x?x64xf16> {
  // expected-error @below {{which doesn't serve 'f8E4M3FN'; 8-bit floats need the fused kernel of sm_90a}}
  %r = attn.attention
      ins(%x, %x, %x : tensor<1x2x?x64xf8E4M3FN>, tensor<1x2x?x64xf8E4M3FN>, tensor<1x2x?x64xf8E4M3FN>)
      outs(%o : tensor<1x2x?x64xf16>) -> tensor<1x2x?x64xf16>
  return %r : tensor<1x2x?x64xf16>
}

// -----

func.func @f8_head_dim(%x: tensor<1x2x?x72xf8E4M3FN>, %o: tensor<1x2x?x72xf16>) -> tensor<1x2x?x72xf16> {
  // expected-error @below {{head dimension 72 of q and k is not supported yet}}
  // expected-note @below {{on sm_90a also q, k, v of f8E4M3FN or f8E5M2, with head dimensions in multiples of 16 up to 256}}
  %r = attn.attention
      ins(%x, %x, %x : tensor<1x2x?x72xf8E4M3FN>, tensor<1x2x?x72xf8E4M3FN>, tensor<1x2x?x72xf8E4M3FN>)
      outs(%o : tensor<1x2x?x72xf16>) -> tensor<1x2x?x72xf16>
  return %r : tensor<1x2x?x72xf16>
}

// -----

func.func @parts_by_device(%x: tensor<1x2x?x64xf16>) -> tensor<1x2x?x64xf16> {
  // expected-error @below {{is batch_invariant, but its schedule chooses parts by the device and the batch; set split_keys, or max_splits = 1}}
  %r = attn.attention
      ins(%x, %x, %x : tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16>)
      outs(%x : tensor<1x2x?x64xf16>)
      {batch_invariant, schedule = #attn.schedule<block_m = 64, block_n = 32, num_stages = 3, num_warps = 4, decode = <>>}
      -> tensor<1x2x?x64xf16>
  return %r : tensor<1x2x?x64xf16>
}

// -----

func.func @schedule_by_mean_length(%x: tensor<1x2x?x64xf16>, %c: tensor<?xi32>) -> tensor<1x2x?x64xf16> {
  // expected-error @below {{is batch_invariant, but takes one of its schedules by the mean length of packed sequences; leave short_schedules out}}
  %r = attn.attention
      ins(%x, %x, %x : tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16>)
      cu_q(%c : tensor<?xi32>) cu_k(%c : tensor<?xi32>) outs(%x : tensor<1x2x?x64xf16>)
      {batch_invariant, schedule = #attn.schedule<block_m = 64, block_n = 32, num_stages = 3, num_warps = 4>,
       short_schedules = [#attn.short_schedule<max_q_len = 64, schedule = <block_m = 64, block_n = 64, num_stages = 2, num_warps = 4>>]}
      -> tensor<1x2x?x64xf16>
  return %r : tensor<1x2x?x64xf16>
}

// -----

// Of Dv = 512 a program computes 128 columns: 8192 bytes for 32 keys of V.
func.func @columns_memory(%q: tensor<1x2x?x576xf16>, %v: tensor<1x2x?x512xf16>) -> tensor<1x2x?x512xf16> {
  // expected-error @below {{schedule needs 208896 bytes of shared memory, but a program of sm_80 may use 166912: q tile 73728 + 3 stages * (k tile 36864 + v tile 8192)}}
  %r = attn.attention
      ins(%q, %q, %v : tensor<1x2x?x576xf16>, tensor<1x2x?x576xf16>, tensor<1x2x?x512xf16>)
      outs(%v : tensor<1x2x?x512xf16>)
      {schedule = #attn.schedule<block_m = 64, block_n = 32, num_stages = 3, num_warps = 4, v_columns = 128>}
      -> tensor<1x2x?x512xf16>
  return %r : tensor<1x2x?x512xf16>
}
