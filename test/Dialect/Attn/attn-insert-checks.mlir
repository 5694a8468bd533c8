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

// Captures that a rule indexes by all queries or keys have enough elements, or
// are broadcast.
// CHECK-LABEL: func.func @captures
// CHECK-SAME: %[[Q:[a-z0-9]+]]: tensor<1x2x?x64xf16>, %[[C:[a-z0-9]+]]: tensor<1x?x?xf32>
// CHECK: %[[SIZE:.*]] = tensor.dim %[[C]], %c1
// CHECK: %[[KEYS:.*]] = tensor.dim %[[Q]], %c2
// CHECK: %[[ENOUGH:.*]] = arith.cmpi sge, %[[SIZE]], %[[KEYS]] : index
// CHECK: cf.assert %[[ENOUGH]], "capture 'arg1', indexed by kv_idx in dimension 1, is smaller than the key length"
// CHECK-NOT: cf.assert
func.func @captures(%q: tensor<1x2x?x64xf16>, %c: tensor<1x?x?xf32>) -> tensor<1x2x?x64xf16> {
  %r = attn.attention
      ins(%q, %q, %q, %c : tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16>, tensor<1x?x?xf32>)
      outs(%q : tensor<1x2x?x64xf16>)
    score_mod (%s: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<1x?x?xf32>) {
      %two = arith.constant 2 : i32
      %half = arith.divui %i, %two : i32
      %x = attn.capture_load %t[%b, %j, %half] : tensor<1x?x?xf32> -> f32
      attn.yield %x : f32
    } -> tensor<1x2x?x64xf16>
  return %r : tensor<1x2x?x64xf16>
}

// The same holds for constants.
// CHECK-LABEL: func.func @constant_index
// CHECK-SAME: %[[Q:[a-z0-9]+]]: tensor<1x2x?x64xf16>, %[[C:[a-z0-9]+]]: tensor<1x?xf32>
// CHECK: %[[SIZE:.*]] = tensor.dim %[[C]], %c1
// CHECK: %[[ENOUGH:.*]] = arith.cmpi sgt, %[[SIZE]], %c5{{.*}} : index
// CHECK: cf.assert %[[ENOUGH]], "capture 'table', indexed by 5 in dimension 1, has no such element there"
// CHECK-NOT: cf.assert
func.func @constant_index(%q: tensor<1x2x?x64xf16>, %c: tensor<1x?xf32> {attn.name = "table"}) -> tensor<1x2x?x64xf16> {
  %r = attn.attention
      ins(%q, %q, %q, %c : tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16>, tensor<1x?xf32>)
      outs(%q : tensor<1x2x?x64xf16>)
    score_mod (%s: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<1x?xf32>) {
      %five = arith.constant 5 : i32
      %x = attn.capture_load %t[%five, %five] : tensor<1x?xf32> -> f32
      attn.yield %x : f32
    } -> tensor<1x2x?x64xf16>
  return %r : tensor<1x2x?x64xf16>
}

// Everything that is for a number of sequences is for the same.
// CHECK-LABEL: func.func @sequences
// CHECK-NOT: q and k have different batch sizes
// CHECK: cf.assert %{{.*}}, "q and o have different lengths"
// CHECK: cf.assert %{{.*}}, "cu_q has no element, not even the 0 that it begins with"
// CHECK: %[[ENDS:.*]] = tensor.dim %{{.*}}, %c0
// CHECK: %[[COUNT:.*]] = arith.subi %[[ENDS]], %c1
// CHECK: arith.cmpi eq, %[[COUNT]], %
// CHECK: cf.assert %{{.*}}, "cu_q and k are for different numbers of sequences"
// CHECK: cf.assert %{{.*}}, "cu_q and kv_len are for different numbers of sequences"
// CHECK: attn.check_sequences queries(%{{.*}}) keys(%{{.*}}, %{{.*}}) cu_q(%{{.*}} : tensor<?xi32>) kv_len(%{{.*}} : tensor<?xi32>)
// CHECK: attn.attention
func.func @sequences(%q: tensor<1x2x?x64xf16>, %k: tensor<?x2x?x64xf16>, %ends: tensor<?xi32>,
                     %lens: tensor<?xi32>, %o: tensor<1x2x?x64xf16>) -> tensor<1x2x?x64xf16> {
  %r = attn.attention
      ins(%q, %k, %k : tensor<1x2x?x64xf16>, tensor<?x2x?x64xf16>, tensor<?x2x?x64xf16>)
      cu_q(%ends : tensor<?xi32>) kv_len(%lens : tensor<?xi32>)
      outs(%o : tensor<1x2x?x64xf16>) -> tensor<1x2x?x64xf16>
  return %r : tensor<1x2x?x64xf16>
}
