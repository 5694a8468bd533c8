// RUN: attn-opt --convert-host-to-plan --split-input-file --verify-diagnostics %s

// expected-error @below {{needs exactly one host function, has 2; choose one with --entry}}
module {
  func.func @a() { return }
  func.func @b() { return }
}

// -----

func.func @unsupported(%x: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  // expected-error @below {{isn't supported in host code}}
  %v = memref.load %x[%c0] : memref<?xf32>
  return
}

// -----

// expected-error @below {{must write its results to arguments (run attn-bufferize)}}
func.func @result(%x: memref<?xf32>) -> memref<?xf32> {
  return %x : memref<?xf32>
}

// -----

// expected-error @below {{two arguments are named 'q'; give each its own attn.name}}
func.func @names(%x: memref<?xf32> {attn.name = "q"}, %y: memref<?xf32> {attn.name = "q"}) {
  return
}

// -----

// expected-error @below {{must be straight-line code}}
func.func @branches() {
  cf.br ^bb1
^bb1:
  return
}
