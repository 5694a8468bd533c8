// RUN: attn-opt --attn-insert-checks %s | FileCheck %s

// CHECK-LABEL: func.func @dynamic
// CHECK: cf.assert %{{.*}}, "q and k have different batch sizes"
// CHECK: cf.assert %{{.*}}, "k and v have different lengths"
// CHECK: cf.assert %{{.*}}, "q and o have different lengths"
// CHECK: attn.attention
func.func @dynamic(%q: tensor<?x2x?x64xf16>, %k: tensor<?x2x?x64xf16>,
                   %v: tensor<?x2x?x64xf16>, %o: tensor<?x2x?x64xf16>) -> tensor<?x2x?x64xf16> {
  %r = attn.attention
      ins(%q, %k, %v : tensor<?x2x?x64xf16>, tensor<?x2x?x64xf16>, tensor<?x2x?x64xf16>)
      outs(%o : tensor<?x2x?x64xf16>) -> tensor<?x2x?x64xf16>
  return %r : tensor<?x2x?x64xf16>
}

// The verifier has compared static sizes.
// CHECK-LABEL: func.func @static
// CHECK-NOT: cf.assert
func.func @static(%x: tensor<1x2x8x64xf16>) -> tensor<1x2x8x64xf16> {
  %r = attn.attention
      ins(%x, %x, %x : tensor<1x2x8x64xf16>, tensor<1x2x8x64xf16>, tensor<1x2x8x64xf16>)
      outs(%x : tensor<1x2x8x64xf16>) -> tensor<1x2x8x64xf16>
  return %r : tensor<1x2x8x64xf16>
}
