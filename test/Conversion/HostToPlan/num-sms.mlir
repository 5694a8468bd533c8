// RUN: attn-opt --convert-host-to-plan %s | FileCheck %s

// CHECK: grid = ["mul", "num_sms", 2]
func.func @f(%q: memref<8xf32> {attn.name = "q"}) {
  %n = tile.num_sms : index
  %two = arith.constant 2 : index
  %grid = arith.muli %n, %two : index
  tile.launch @k grid(%grid) args(%q) : memref<8xf32>
  return
}
tile.kernel @k(%q: memref<8xf32>) attributes {num_warps = 1 : i32} {
  tile.return
}
