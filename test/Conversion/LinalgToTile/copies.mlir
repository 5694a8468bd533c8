// RUN: attn-opt --convert-linalg-to-tile=target=sm_80 --split-input-file %s | FileCheck %s

// A copy into a window is a kernel: the plan copies whole buffers only.

// CHECK-LABEL: func.func @window(
// CHECK-NOT: memref.copy
// CHECK: tile.launch @copy_f16
// CHECK: tile.kernel @copy_f16(
// CHECK: tile.load
// CHECK: tile.store
#s = strided<[?, ?, 1], offset: ?>
func.func @window(%x: memref<2x?x64xf16, #s>, %y: memref<2x?x64xf16, #s>) {
  memref.copy %x, %y : memref<2x?x64xf16, #s> to memref<2x?x64xf16, #s>
  return
}

// -----

// CHECK-LABEL: func.func @contiguous(
// CHECK: memref.copy
// CHECK-NOT: tile.launch
func.func @contiguous(%x: memref<2x?x64xf16>, %y: memref<2x?x64xf16>) {
  memref.copy %x, %y : memref<2x?x64xf16> to memref<2x?x64xf16>
  return
}
