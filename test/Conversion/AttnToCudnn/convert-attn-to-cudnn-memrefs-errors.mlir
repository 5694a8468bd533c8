// RUN: attn-opt %s --split-input-file --verify-diagnostics --convert-attn-to-cudnn

!t = tensor<1x2x8x64xbf16>
func.func @tensors(%q: !t, %k: !t, %v: !t, %o: !t) -> !t {
  // expected-error @below {{is on tensors; run attn-bufferize first}}
  %r = attn.attention ins(%q, %k, %v : !t, !t, !t) outs(%o : !t) -> !t
  return %r : !t
}

// -----

!t = memref<1x2x8x64xbf16>
!s = memref<1x2x8x64xbf16, strided<[2048, 1024, 128, 2]>>
func.func @strides(%q: !s, %k: !t, %v: !t, %o: !t) {
  // expected-error @below {{takes memrefs with innermost stride 1, not 'memref<1x2x8x64xbf16, strided<[2048, 1024, 128, 2]>>'; copy it to a contiguous one first}}
  attn.attention ins(%q, %k, %v : !s, !t, !t) outs(%o : !t)
  return
}
