// RUN: attn-opt --attn-lower-merge %s | FileCheck %s

// Empty parts, of lse -inf or +inf, have no weight, and what they hold is not
// read; rows of nothing but those are 0.
// CHECK-LABEL: func.func @merge(
// CHECK-SAME: %[[O0:[a-z0-9]+]]: tensor<2x4x8x64xbf16>, %[[O1:[a-z0-9]+]]: tensor<2x4x8x64xbf16>, %[[L0:[a-z0-9]+]]: tensor<2x4x8xf32>, %[[L1:[a-z0-9]+]]: tensor<2x4x8xf32>
// CHECK-NOT: cf.assert
// CHECK: %[[O:.*]] = linalg.generic
// CHECK-SAME: ins(%[[L0]], %[[L1]], %[[O0]], %[[O1]] :
// CHECK-SAME: attn.step = "merge_o"
// CHECK: ^bb0(%[[A:.*]]: f32, %{{.*}}: f32, %[[X:.*]]: bf16, %{{.*}}: bf16, %{{.*}}: bf16):
// CHECK: %[[INF:.*]] = arith.constant 0x7F800000 : f32
// CHECK: %[[IS_EMPTY:.*]] = arith.cmpf oeq, %[[A]], %[[INF]] : f32
// CHECK: arith.select %[[IS_EMPTY]]
// CHECK: arith.maximumf
// CHECK: math.exp
// CHECK: arith.extf %[[X]] : bf16 to f32
// CHECK: arith.truncf %{{.*}} : f32 to bf16
// CHECK: %[[L:.*]] = linalg.generic
// CHECK-SAME: ins(%[[L0]], %[[L1]] :
// CHECK-SAME: attn.step = "merge_lse"
// CHECK: math.log
// CHECK: return %[[O]], %[[L]]
func.func @merge(%o0: tensor<2x4x8x64xbf16>, %o1: tensor<2x4x8x64xbf16>, %l0: tensor<2x4x8xf32>, %l1: tensor<2x4x8xf32>) -> (tensor<2x4x8x64xbf16>, tensor<2x4x8xf32>) {
  %o, %l = attn.merge %o0, %o1 with %l0, %l1 : tensor<2x4x8x64xbf16>, tensor<2x4x8x64xbf16> with tensor<2x4x8xf32>, tensor<2x4x8xf32> -> tensor<2x4x8x64xbf16>, tensor<2x4x8xf32>
  return %o, %l : tensor<2x4x8x64xbf16>, tensor<2x4x8xf32>
}

// Sizes that the types leave open are compared with those of the first part.
// CHECK-LABEL: func.func @dynamic(
// CHECK-COUNT-3: cf.assert %{{.*}}, "partial results to merge have different sizes"
// CHECK-NOT: cf.assert
func.func @dynamic(%o0: tensor<4x?x64xf32>, %o1: tensor<4x?x64xf32>, %l0: tensor<4x?xf32>, %l1: tensor<4x?xf32>) -> (tensor<4x?x64xf32>, tensor<4x?xf32>) {
  %o, %l = attn.merge %o0, %o1 with %l0, %l1 : tensor<4x?x64xf32>, tensor<4x?x64xf32> with tensor<4x?xf32>, tensor<4x?xf32> -> tensor<4x?x64xf32>, tensor<4x?xf32>
  return %o, %l : tensor<4x?x64xf32>, tensor<4x?xf32>
}
