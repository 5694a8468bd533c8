// RUN: attn-opt --attn-inplace-mask --verify-diagnostics %s | FileCheck %s
// RUN: attn-opt --convert-attn-to-linalg=variant=inplace --attn-inplace-mask --attn-bufferize %attnc_src_root/examples/causal.mlir | FileCheck %s --check-prefix=ATTENTION

// ATTENTION: attn.step = "naive_mask"
// ATTENTION-NOT: memref.copy

#id = affine_map<(d0, d1) -> (d0, d1)>

// Nobody reads the scores after the fill: it may overwrite them. Reads before
// it, and their size, don't matter.
// CHECK-LABEL: func.func @dead(
// CHECK: %[[S:.*]] = linalg.exp
// CHECK: linalg.negf ins(%[[S]]
// CHECK-NOT: alloc_tensor
// CHECK: linalg.generic {{.*}} outs(%[[S]] : tensor<8x8xf32>)
func.func @dead(%x: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>, index) {
  %e = tensor.empty() : tensor<8x8xf32>
  %s = linalg.exp ins(%x : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %n = linalg.negf ins(%s : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %copy = bufferization.alloc_tensor() copy(%s) : tensor<8x8xf32>
  %m = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]} outs(%copy : tensor<8x8xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %keep = arith.cmpi ule, %j, %i : index
    %inf = arith.constant 0xFF800000 : f32
    %y = arith.select %keep, %out, %inf : f32
    linalg.yield %y : f32
  } -> tensor<8x8xf32>
  %c0 = arith.constant 0 : index
  %d = tensor.dim %s, %c0 : tensor<8x8xf32>
  return %m, %n, %d : tensor<8x8xf32>, tensor<8x8xf32>, index
}

// CHECK-LABEL: func.func @returned(
// CHECK: alloc_tensor() copy(
func.func @returned(%x: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %e = tensor.empty() : tensor<8x8xf32>
  %s = linalg.exp ins(%x : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %copy = bufferization.alloc_tensor() copy(%s) : tensor<8x8xf32>
  // expected-remark @below {{masked fill keeps its copy of the scores}}
  %m = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]} outs(%copy : tensor<8x8xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %keep = arith.cmpi ule, %j, %i : index
    %inf = arith.constant 0xFF800000 : f32
    %y = arith.select %keep, %out, %inf : f32
    linalg.yield %y : f32
  } -> tensor<8x8xf32>
  // expected-note @below {{they are returned here}}
  return %m, %s : tensor<8x8xf32>, tensor<8x8xf32>
}

// CHECK-LABEL: func.func @read_again(
// CHECK: alloc_tensor() copy(
func.func @read_again(%x: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %e = tensor.empty() : tensor<8x8xf32>
  %s = linalg.exp ins(%x : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %copy = bufferization.alloc_tensor() copy(%s) : tensor<8x8xf32>
  // expected-remark @below {{masked fill keeps its copy of the scores}}
  %m = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]} outs(%copy : tensor<8x8xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %hide = arith.cmpi ugt, %j, %i : index
    %inf = arith.constant 0xFF800000 : f32
    %y = arith.select %hide, %inf, %out : f32
    linalg.yield %y : f32
  } -> tensor<8x8xf32>
  // expected-note @below {{they are read again here}}
  %n = linalg.negf ins(%s : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %m, %n : tensor<8x8xf32>, tensor<8x8xf32>
}

// CHECK-LABEL: func.func @argument(
// CHECK: alloc_tensor() copy(
// expected-note @below {{they are an argument, which the caller may read}}
func.func @argument(%s: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %copy = bufferization.alloc_tensor() copy(%s) : tensor<8x8xf32>
  // expected-remark @below {{masked fill keeps its copy of the scores}}
  %m = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]} outs(%copy : tensor<8x8xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %keep = arith.cmpi ule, %j, %i : index
    %inf = arith.constant 0xFF800000 : f32
    %y = arith.select %keep, %out, %inf : f32
    linalg.yield %y : f32
  } -> tensor<8x8xf32>
  return %m : tensor<8x8xf32>
}

// A finite fill is not a mask.
// CHECK-LABEL: func.func @finite(
// CHECK: alloc_tensor() copy(
func.func @finite(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %e = tensor.empty() : tensor<8x8xf32>
  %s = linalg.exp ins(%x : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %copy = bufferization.alloc_tensor() copy(%s) : tensor<8x8xf32>
  %m = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]} outs(%copy : tensor<8x8xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %keep = arith.cmpi ule, %j, %i : index
    %zero = arith.constant 0.0 : f32
    %y = arith.select %keep, %out, %zero : f32
    linalg.yield %y : f32
  } -> tensor<8x8xf32>
  return %m : tensor<8x8xf32>
}
