// Captures that are too small are found before anything runs, in every variant.

// RUN: rm -rf %t && mkdir %t
// RUN: not attn-run %s --target=cpu --variant=all --shapes=1x2x8x16,1x2x8x16,1x2x8x16,5,8 2>&1 | FileCheck %s --check-prefix=CONSTANT
// CONSTANT-DAG: attn-run: error: naive: 'f': capture 'table', indexed by 5 in dimension 0, has no such element there
// CONSTANT-DAG: attn-run: error: inplace: 'f': capture 'table', indexed by 5
// CONSTANT-DAG: attn-run: error: math: 'f': capture 'table', indexed by 5
// CONSTANT-DAG: attn-run: error: fused: 'f': capture 'table', indexed by 5

// RUN: not attn-run %s --target=cpu --shapes=1x2x8x16,1x2x9x16,1x2x9x16,6,8 --outputs=%t/o.npy 2>&1 | FileCheck %s --check-prefix=KEYS
// RUN: not ls %t/o.npy
// KEYS: attn-run: error: fused: 'f': capture 'bias', indexed by kv_idx in dimension 0, is smaller than the key length

// RUN: attn-run %s --target=cpu --variant=all --verify --shapes=1x2x8x16,1x2x8x16,1x2x8x16,6,8

!q = tensor<1x2x?x16xf32>
func.func @f(%q: !q, %k: !q, %v: !q, %table: tensor<?xf32> {attn.name = "table"},
             %bias: tensor<?xf32> {attn.name = "bias"}, %o: !q) -> !q {
  %r = attn.attention ins(%q, %k, %v, %table, %bias : !q, !q, !q, tensor<?xf32>, tensor<?xf32>) outs(%o : !q)
   score_mod (%s: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<?xf32>, %u: tensor<?xf32>) {
     %five = arith.constant 5 : i32
     %x = attn.capture_load %t[%five] : tensor<?xf32> -> f32
     %y = attn.capture_load %u[%j] : tensor<?xf32> -> f32
     %z = arith.addf %x, %y : f32
     %w = arith.addf %s, %z : f32
     attn.yield %w : f32
   } -> !q
  return %r : !q
}
