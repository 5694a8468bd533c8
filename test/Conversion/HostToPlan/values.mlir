// RUN: attn-opt --convert-host-to-plan --split-input-file --verify-diagnostics %s | FileCheck %s

// The value of an argument is its bytes in base64: 1.0 and 2.0; a byte for each
// i1; and every element of a splat.

// CHECK: name = "a", role = "input", shape = [2], value = "AACAPwAAAEA="}
// CHECK-SAME: name = "b", role = "input", shape = [3], value = "AQAB"}
// CHECK-SAME: name = "c", role = "input", shape = [4], value = "BwcHBw=="}
func.func @f(%a: memref<2xf32> {attn.name = "a", attn.value = dense<[1.0, 2.0]> : tensor<2xf32>},
             %b: memref<3xi1> {attn.name = "b", attn.value = dense<[true, false, true]> : tensor<3xi1>},
             %c: memref<4xi8> {attn.name = "c", attn.value = dense<7> : tensor<4xi8>}) {
  return
}

// -----

// expected-error @below {{attn.value of argument 0 must be a dense attribute of the argument's shape and element type}}
func.func @shape(%a: memref<2xf32> {attn.value = dense<0.0> : tensor<3xf32>}) {
  return
}

// -----

// expected-error @below {{attn.value of argument 0 must be a dense attribute of the argument's shape and element type}}
func.func @dynamic(%a: memref<?xf32> {attn.value = dense<0.0> : tensor<3xf32>}) {
  return
}

// -----

// expected-error @below {{attn.value of argument 0 must be a dense attribute of the argument's shape and element type}}
func.func @text(%a: memref<2xf32> {attn.value = "zero"}) {
  return
}

// -----

// A temporary takes no argument's name.

// CHECK: buffer = "t1"
// CHECK-SAME: buffer = "t2"
func.func @names(%a: memref<2xf32> {attn.name = "t0"}) {
  %t = memref.alloc() : memref<2xf32>
  %u = memref.alloc() : memref<2xf32>
  memref.copy %t, %u : memref<2xf32> to memref<2xf32>
  return
}
