// RUN: attn-opt --convert-attn-to-tile=target=sm_80 --split-input-file --verify-diagnostics %s

func.func @tensors(%q: tensor<1x2x8x64xf16>, %o: tensor<1x2x8x64xf16>) -> tensor<1x2x8x64xf16> {
  // expected-error@+1 {{is on tensors; run attn-bufferize first}}
  %r = attn.attention ins(%q, %q, %q : tensor<1x2x8x64xf16>, tensor<1x2x8x64xf16>, tensor<1x2x8x64xf16>)
    outs(%o : tensor<1x2x8x64xf16>) -> tensor<1x2x8x64xf16>
  return %r : tensor<1x2x8x64xf16>
}

// -----

func.func @no_schedule(%q: memref<1x2x8x64xf16>, %o: memref<1x2x8x64xf16>) {
  // expected-error@+1 {{has no schedule; run attn-select-schedule first}}
  attn.attention ins(%q, %q, %q : memref<1x2x8x64xf16>, memref<1x2x8x64xf16>, memref<1x2x8x64xf16>)
    outs(%o : memref<1x2x8x64xf16>)
  return
}

// -----

func.func @schedule_for_another_target(%q: memref<1x2x8x64xf16>, %o: memref<1x2x8x64xf16>) {
  // expected-error@+1 {{block_m = 32 must be a multiple of 16 * num_warps = 64}}
  attn.attention ins(%q, %q, %q : memref<1x2x8x64xf16>, memref<1x2x8x64xf16>, memref<1x2x8x64xf16>)
    outs(%o : memref<1x2x8x64xf16>)
    {schedule = #attn.schedule<block_m = 32, block_n = 64, num_stages = 2, num_warps = 4>}
  return
}

// -----

func.func @innermost_stride(%q: memref<1x2x8x64xf16, strided<[?, ?, ?, 2]>>, %o: memref<1x2x8x64xf16>) {
  // expected-error@+1 {{takes memrefs with innermost stride 1}}
  attn.attention ins(%q, %q, %q : memref<1x2x8x64xf16, strided<[?, ?, ?, 2]>>, memref<1x2x8x64xf16, strided<[?, ?, ?, 2]>>, memref<1x2x8x64xf16, strided<[?, ?, ?, 2]>>)
    outs(%o : memref<1x2x8x64xf16>)
    {schedule = #attn.schedule<block_m = 64, block_n = 64, num_stages = 2, num_warps = 4>}
  return
}

// -----

func.func @head_dim(%q: memref<1x2x8x584xf16>, %o: memref<1x2x8x584xf16>) {
  // expected-error@+2 {{head dimension 584 of q and k is not supported yet}}
  // expected-note@+1 {{supported: }}
  attn.attention ins(%q, %q, %q : memref<1x2x8x584xf16>, memref<1x2x8x584xf16>, memref<1x2x8x584xf16>)
    outs(%o : memref<1x2x8x584xf16>)
  return
}

// -----

func.func @captures(%q: memref<1x2x8x64xf16>, %s: memref<2xf64>, %o: memref<1x2x8x64xf16>) {
  // expected-error@+2 {{captures of f64 are not supported yet}}
  // expected-note@+1 {{captures of f16, bf16, f32, i1, i8, i32 and i64}}
  attn.attention ins(%q, %q, %q, %s : memref<1x2x8x64xf16>, memref<1x2x8x64xf16>, memref<1x2x8x64xf16>, memref<2xf64>)
    outs(%o : memref<1x2x8x64xf16>)
  return
}
