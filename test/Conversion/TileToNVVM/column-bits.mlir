// RUN: attn-opt %s --convert-tile-to-nvvm | FileCheck %s

#mma = #tile.mma<warps = 1>
#row = #tile.row<#mma>
#col = #tile.col<#mma>

// An interval of columns for each row: a thread's two rows have a word each for
// either bound, and the elements are selected by their bits, row by row.

// CHECK-LABEL: llvm.func @interval
// CHECK-COUNT-4: llvm.call_intrinsic "llvm.nvvm.bmsk.clamp"
// CHECK: %[[A:.*]] = llvm.and %{{.*}} : i32
// CHECK: %[[B:.*]] = llvm.and %{{.*}} : i32
// CHECK-NOT: llvm.icmp
// CHECK: asm {{.*}}and.b32 bit, $3, 1;{{.*}}selp.f32{{.*}} %{{.*}}, %{{.*}}, %[[A]] :
// CHECK: asm {{.*}}and.b32 bit, $3, 2147483648;{{.*}} %{{.*}}, %{{.*}}, %[[A]] :
// CHECK: asm {{.*}}and.b32 bit, $3, 1;{{.*}} %{{.*}}, %{{.*}}, %[[B]] :
// CHECK: asm {{.*}}and.b32 bit, $3, 2147483648;{{.*}} %{{.*}}, %{{.*}}, %[[B]] :
// CHECK: llvm.return
tile.kernel @interval(%m: memref<?x128xf32>, %first: i32, %last: i32) attributes {num_warps = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %hidden = arith.constant dense<0xFF800000> : tensor<16x128xf32, #mma>
  %x = tile.load %m[%c0, %c0] : memref<?x128xf32> -> tensor<16x128xf32, #mma>
  %columns = tile.iota : tensor<128xi32, #col>
  %spread = tile.broadcast %columns dim 1 : tensor<128xi32, #col> -> tensor<16x128xi32, #mma>
  %rows = tile.iota : tensor<16xi32, #row>
  %firsts = tensor.splat %first : tensor<16xi32, #row>
  %lasts = tensor.splat %last : tensor<16xi32, #row>
  %from = arith.addi %rows, %firsts : tensor<16xi32, #row>
  %to = arith.addi %rows, %lasts : tensor<16xi32, #row>
  %low = tile.broadcast %from dim 0 : tensor<16xi32, #row> -> tensor<16x128xi32, #mma>
  %high = tile.broadcast %to dim 0 : tensor<16xi32, #row> -> tensor<16x128xi32, #mma>
  %a = arith.cmpi sge, %spread, %low : tensor<16x128xi32, #mma>
  %b = arith.cmpi sle, %spread, %high : tensor<16x128xi32, #mma>
  %inside = arith.andi %a, %b : tensor<16x128xi1, #mma>
  %y = arith.select %inside, %x, %hidden : tensor<16x128xi1, #mma>, tensor<16x128xf32, #mma>
  tile.store %y, %m[%c0, %c0] : tensor<16x128xf32, #mma>, memref<?x128xf32>
  tile.return
}

// A tile of 256 columns has two words a row. Joined with what isn't such a set,
// each element has a predicate of its own.

// CHECK-LABEL: llvm.func @joined
// CHECK-COUNT-4: llvm.call_intrinsic "llvm.nvvm.bmsk.clamp"
// CHECK-COUNT-128: asm "{{.*}}and.b32 bit, $1,{{.*}}setp.ne.b32 $0, bit, 0;
// CHECK-COUNT-128: asm "and.pred $0, $1, $2;"
// CHECK: llvm.select
tile.kernel @joined(%m: memref<?x256xf32>, %table: memref<?xi32>, %last: i32) attributes {num_warps = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %hidden = arith.constant dense<0xFF800000> : tensor<16x256xf32, #mma>
  %x = tile.load %m[%c0, %c0] : memref<?x256xf32> -> tensor<16x256xf32, #mma>
  %columns = tile.iota : tensor<256xi32, #col>
  %spread = tile.broadcast %columns dim 1 : tensor<256xi32, #col> -> tensor<16x256xi32, #mma>
  %rows = tile.iota : tensor<16xi32, #row>
  %lasts = tensor.splat %last : tensor<16xi32, #row>
  %to = arith.addi %rows, %lasts : tensor<16xi32, #row>
  %high = tile.broadcast %to dim 0 : tensor<16xi32, #row> -> tensor<16x256xi32, #mma>
  %inside = arith.cmpi slt, %spread, %high : tensor<16x256xi32, #mma>
  %keys = tile.load %table[%c0] : memref<?xi32> -> tensor<256xi32, #col>
  %key = tile.broadcast %keys dim 1 : tensor<256xi32, #col> -> tensor<16x256xi32, #mma>
  %same = arith.cmpi eq, %key, %high : tensor<16x256xi32, #mma>
  %visible = arith.andi %inside, %same : tensor<16x256xi1, #mma>
  %y = arith.select %visible, %x, %hidden : tensor<16x256xi1, #mma>, tensor<16x256xf32, #mma>
  tile.store %y, %m[%c0, %c0] : tensor<16x256xf32, #mma>, memref<?x256xf32>
  tile.return
}

// With 16 columns of a row in a thread words wouldn't pay.

// CHECK-LABEL: llvm.func @few
// CHECK-NOT: bmsk
// CHECK-COUNT-32: llvm.icmp "sle"
// CHECK-NOT: bmsk
// CHECK: llvm.return
tile.kernel @few(%m: memref<?x64xf32>, %last: i32) attributes {num_warps = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %hidden = arith.constant dense<0xFF800000> : tensor<16x64xf32, #mma>
  %x = tile.load %m[%c0, %c0] : memref<?x64xf32> -> tensor<16x64xf32, #mma>
  %columns = tile.iota : tensor<64xi32, #col>
  %spread = tile.broadcast %columns dim 1 : tensor<64xi32, #col> -> tensor<16x64xi32, #mma>
  %lasts = tensor.splat %last : tensor<16xi32, #row>
  %high = tile.broadcast %lasts dim 0 : tensor<16xi32, #row> -> tensor<16x64xi32, #mma>
  %inside = arith.cmpi sle, %spread, %high : tensor<16x64xi32, #mma>
  %y = arith.select %inside, %x, %hidden : tensor<16x64xi1, #mma>, tensor<16x64xf32, #mma>
  tile.store %y, %m[%c0, %c0] : tensor<16x64xf32, #mma>, memref<?x64xf32>
  tile.return
}
