// RUN: attn-opt --attn-bufferize %s | FileCheck %s

// The result is written into the argument that `outs` names.
// CHECK-LABEL: func.func @into_argument(
// CHECK-SAME: memref<?x16x?x64xbf16, strided<[?, ?, ?, 1], offset: ?>>
// CHECK-SAME: %[[O:[a-z0-9]+]]: memref<?x16x?x64xbf16, strided<[?, ?, ?, 1], offset: ?>> {attn.output}) {
// CHECK: attn.attention {{.*}} outs(%[[O]] : memref
// CHECK-NEXT: return
func.func @into_argument(%q: tensor<?x16x?x64xbf16>, %k: tensor<?x16x?x64xbf16>,
                         %v: tensor<?x16x?x64xbf16>, %o: tensor<?x16x?x64xbf16>)
    -> tensor<?x16x?x64xbf16> {
  %r = attn.attention
      ins(%q, %k, %v : tensor<?x16x?x64xbf16>, tensor<?x16x?x64xbf16>, tensor<?x16x?x64xbf16>)
      outs(%o : tensor<?x16x?x64xbf16>) -> tensor<?x16x?x64xbf16>
  return %r : tensor<?x16x?x64xbf16>
}

// A fresh result becomes an output argument, without a copy.
// CHECK-LABEL: func.func @fresh(
// CHECK-SAME: %[[O:[a-z0-9]+]]: memref<1x2x8x64xf32> {attn.output}) {
// CHECK-NOT: memref.alloc
// CHECK: attn.attention {{.*}} outs(%[[O]] : memref<1x2x8x64xf32>)
// CHECK-NOT: memref.copy
// CHECK: return
func.func @fresh(%q: tensor<1x2x8x64xf32>, %k: tensor<1x2x8x64xf32>,
                 %v: tensor<1x2x8x64xf32>) -> tensor<1x2x8x64xf32> {
  %o = tensor.empty() : tensor<1x2x8x64xf32>
  %r = attn.attention
      ins(%q, %k, %v : tensor<1x2x8x64xf32>, tensor<1x2x8x64xf32>, tensor<1x2x8x64xf32>)
      outs(%o : tensor<1x2x8x64xf32>) -> tensor<1x2x8x64xf32>
  return %r : tensor<1x2x8x64xf32>
}
