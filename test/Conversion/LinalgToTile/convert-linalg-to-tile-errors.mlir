// RUN: attn-opt --convert-linalg-to-tile=target=sm_80 --split-input-file --verify-diagnostics %s
// RUN: not attn-opt --convert-linalg-to-tile=target=tpu %s 2>&1 | FileCheck %s --check-prefix=TARGET

// TARGET: unknown target 'tpu'

func.func @tensors(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // expected-error @below {{is on tensors; run attn-bufferize first}}
  // expected-note @below {{convert-linalg-to-tile takes}}
  %y = linalg.exp ins(%x : tensor<8x8xf32>) outs(%x : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}

// -----

func.func @transpose(%x: memref<8x16xf32>, %y: memref<16x8xf32>) {
  // expected-error @below {{accesses operand 0 by affine_map<(d0, d1) -> (d1, d0)>, which doesn't end in one or both of the last two loops}}
  // expected-note @below {{convert-linalg-to-tile takes}}
  linalg.transpose ins(%x : memref<8x16xf32>) outs(%y : memref<16x8xf32>) permutation = [1, 0]
  return
}

// -----

func.func @rank_1(%x: memref<8xf32>) {
  // expected-error @below {{has fewer than two loops}}
  // expected-note @below {{convert-linalg-to-tile takes}}
  linalg.exp ins(%x : memref<8xf32>) outs(%x : memref<8xf32>)
  return
}

// -----

func.func @stride(%x: memref<8x8xf32, strided<[16, 2]>>, %y: memref<8x8xf32>) {
  // expected-error @below {{has an operand of type 'memref<8x8xf32, strided<[16, 2]>>', which a kernel can't access}}
  // expected-note @below {{innermost stride 1}}
  linalg.exp ins(%x : memref<8x8xf32, strided<[16, 2]>>) outs(%y : memref<8x8xf32>)
  return
}

// -----

func.func @product_of_f64(%a: memref<8x8xf64>, %c: memref<8x8xf64>) {
  // expected-error @below {{multiplies 'f64' by 'f64'; both must be f16, bf16 or f32}}
  // expected-note @below {{convert-linalg-to-tile takes}}
  linalg.matmul ins(%a, %a : memref<8x8xf64>, memref<8x8xf64>) outs(%c : memref<8x8xf64>)
  return
}

// -----

func.func @path(%a: memref<8x8xf32>, %c: memref<8x8xf32>) {
  // expected-error @below {{has attn.path "mma", but products of 'f32' take tf32x3 or fma}}
  // expected-note @below {{convert-linalg-to-tile takes}}
  linalg.matmul {attn.path = "mma"} ins(%a, %a : memref<8x8xf32>, memref<8x8xf32>) outs(%c : memref<8x8xf32>)
  return
}

// -----

#a = affine_map<(m, n, k) -> (k, m)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
func.func @transposed_a(%a: memref<8x8xf32>, %c: memref<8x8xf32>) {
  // expected-error @below {{they must be A[..., m, k] and B[..., n, k] or B[..., k, n]}}
  // expected-note @below {{convert-linalg-to-tile takes}}
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %a : memref<8x8xf32>, memref<8x8xf32>) outs(%c : memref<8x8xf32>) {
  ^bb0(%x: f32, %y: f32, %acc: f32):
    %p = arith.mulf %x, %y : f32
    %r = arith.addf %acc, %p : f32
    linalg.yield %r : f32
  }
  return
}

// -----

func.func @product_reduction(%x: memref<8x8xf32>, %y: memref<8xf32>) {
  // expected-error @below {{is a reduction by something else than addf, maximumf, minimumf, maxui or minui}}
  // expected-note @below {{convert-linalg-to-tile takes}}
  linalg.reduce {arith.mulf} ins(%x : memref<8x8xf32>) outs(%y : memref<8xf32>) dimensions = [1]
  return
}

// -----

func.func @first_dimension(%x: memref<8x8xf32>, %y: memref<8xf32>) {
  // expected-error @below {{is a reduction of something else than the last loop}}
  // expected-note @below {{convert-linalg-to-tile takes}}
  linalg.reduce {arith.addf} ins(%x : memref<8x8xf32>) outs(%y : memref<8xf32>) dimensions = [0]
  return
}

// -----

func.func @softmax_dimension(%x: memref<8x8xf32>, %y: memref<8x8xf32>) {
  // expected-error @below {{is a softmax of dimension 0}}
  // expected-note @below {{convert-linalg-to-tile takes}}
  linalg.softmax dimension(0) ins(%x : memref<8x8xf32>) outs(%y : memref<8x8xf32>)
  return
}

// -----

#id = affine_map<(m, n) -> (m, n)>
func.func @captured(%x: memref<8x8xf32>, %c: f32) {
  // expected-error @below {{uses a value from outside of its body; make it an input}}
  // expected-note @below {{convert-linalg-to-tile takes}}
  linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]} outs(%x : memref<8x8xf32>) {
  ^bb0(%e: f32):
    %r = arith.mulf %e, %c : f32
    linalg.yield %r : f32
  }
  return
}

// -----

#row_a = affine_map<(m, n, k) -> (m, k)>
#row_b = affine_map<(m, n, k) -> (k, n)>
#row_c = affine_map<(m, n, k) -> (m, n)>
func.func @zeroed_by_row(%a: memref<8x8xf32>, %b: memref<8x8xf32>, %c: memref<8x8xf32>) {
  // expected-error @below {{makes an operand of a product 0 by another condition than an index of the sum that is less than a number of the whole matrix}}
  // expected-note @below {{convert-linalg-to-tile takes}}
  linalg.generic {indexing_maps = [#row_a, #row_b, #row_c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<8x8xf32>, memref<8x8xf32>) outs(%c : memref<8x8xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %zero = arith.constant 0.0 : f32
    %m = linalg.index 0 : index
    %row = arith.index_cast %m : index to i32
    %k = linalg.index 2 : index
    %key = arith.index_cast %k : index to i32
    %visible = arith.cmpi sle, %key, %row : i32
    %kept = arith.select %visible, %y, %zero : f32
    %p = arith.mulf %x, %kept : f32
    %r = arith.addf %z, %p : f32
    linalg.yield %r : f32
  }
  return
}

// -----

#value_a = affine_map<(m, n, k) -> (m, k)>
#value_b = affine_map<(m, n, k) -> (k, n)>
#value_c = affine_map<(m, n, k) -> (m, n)>
func.func @zeroed_by_value(%a: memref<8x8xf32>, %b: memref<8x8xf32>, %c: memref<8x8xf32>) {
  // expected-error @below {{makes an operand of a product 0 by another condition}}
  // expected-note @below {{convert-linalg-to-tile takes}}
  linalg.generic {indexing_maps = [#value_a, #value_b, #value_c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<8x8xf32>, memref<8x8xf32>) outs(%c : memref<8x8xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %zero = arith.constant 0.0 : f32
    %is_positive = arith.cmpf ogt, %y, %zero : f32
    %kept = arith.select %is_positive, %y, %zero : f32
    %p = arith.mulf %x, %kept : f32
    %r = arith.addf %z, %p : f32
    linalg.yield %r : f32
  }
  return
}
