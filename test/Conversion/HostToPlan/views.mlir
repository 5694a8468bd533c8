// RUN: attn-opt --convert-host-to-plan %s | FileCheck %s

// Views of an argument cost nothing: kernels get its address and other sizes,
// strides and offsets.

// CHECK: plan = [{args = [
// Heads next to each other in the last dimension, moved in front of the rows.
// CHECK-SAME: {buffer = "x", offset_bytes = 0 : i64, type = "ptr"}, {type = "i32", value = "x.dim0"}, {type = "i32", value = "x.dim1"}, {type = "i64", value = "x.stride0"}, {type = "i64", value = "x.stride1"},
// The last rows of every head of y: its offset is in bytes.
// CHECK-SAME: {buffer = "y", offset_bytes = ["mul", ["mul", "x.dim1", "y.stride2"], 2], type = "ptr"}, {type = "i32", value = "x.dim0"}, {type = "i32", value = "x.dim1"}, {type = "i64", value = "y.stride0"}, {type = "i64", value = "y.stride1"}, {type = "i64", value = "y.stride2"}]
#packed = strided<[?, ?, 1], offset: ?>
#expanded = strided<[?, ?, 32, 1], offset: ?>
#moved = strided<[?, 32, ?, 1], offset: ?>
#s = strided<[?, ?, ?, 1], offset: ?>
func.func @f(%x: memref<?x?x128xf16, #packed> {attn.name = "x"},
             %y: memref<?x4x?x32xf16, #s> {attn.name = "y", attn.output}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %b = memref.dim %x, %c0 : memref<?x?x128xf16, #packed>
  %n = memref.dim %x, %c1 : memref<?x?x128xf16, #packed>
  %heads = memref.expand_shape %x [[0], [1], [2, 3]] output_shape [%b, %n, 4, 32] : memref<?x?x128xf16, #packed> into memref<?x?x4x32xf16, #expanded>
  %moved = memref.transpose %heads (b, n, h, d) -> (b, h, n, d) : memref<?x?x4x32xf16, #expanded> to memref<?x4x?x32xf16, #moved>
  %last = memref.subview %y[0, 0, %n, 0] [%b, 4, %n, 32] [1, 1, 1, 1] : memref<?x4x?x32xf16, #s> to memref<?x4x?x32xf16, #s>
  tile.launch @k grid(%n) args(%moved, %last) : memref<?x4x?x32xf16, #moved>, memref<?x4x?x32xf16, #s>
  return
}
tile.kernel @k(%x: memref<?x4x?x32xf16, #moved>, %y: memref<?x4x?x32xf16, #s>) attributes {num_warps = 4 : i32} {
  tile.return
}
