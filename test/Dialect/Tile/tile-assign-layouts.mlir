// RUN: attn-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-assign-layouts))' | FileCheck %s

// CHECK-DAG: #blocked = #tile.blocked<vector = 8, threads_per_row = 8, warps = 4>

// B stays in shared memory, a left operand from ahead of the loop goes to
// registers, and what follows a product has its layout.

// CHECK-LABEL: tile.kernel @products
// CHECK: %[[Q:.*]] = tile.load %arg0{{.*}} -> tensor<64x64xbf16, #shared>
// CHECK: %[[A:.*]] = tile.convert_layout %[[Q]] : {{.*}} -> tensor<64x64xbf16, #operand>
// CHECK: scf.for
// CHECK: %[[B:.*]] = tile.load %arg1{{.*}} -> tensor<64x64xbf16, #shared>
// CHECK: %[[S:.*]] = tile.mma mma %[[A]], %[[B]], {{.*}}tensor<64x64xf32, #mma>
// CHECK: %[[M:.*]] = tile.reduce max %[[S]] : {{.*}} -> tensor<64xf32, #row{{[0-9]*}}>
// CHECK: %[[P:.*]] = arith.truncf %{{.*}} : tensor<64x64xf32, #mma> to tensor<64x64xbf16, #mma>
// CHECK: tile.convert_layout %[[P]] : {{.*}} -> tensor<64x64xbf16, #operand>
tile.kernel @products(%q: memref<?x64xbf16>, %k: memref<?x64xbf16>, %o: memref<?x64xf32>, %n: i32)
    attributes {num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %qt = tile.load %q[%c0, %c0] : memref<?x64xbf16> -> tensor<64x64xbf16>
  %r = scf.for %i = %c0 to %n step %c64 iter_args(%acc = %zero) -> tensor<64x64xf32> : i32 {
    %kt = tile.load %k[%i, %c0] : memref<?x64xbf16> -> tensor<64x64xbf16>
    %s = tile.mma mma %qt, %kt, %zero {transpose_b}
      : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
    %m = tile.reduce max %s : tensor<64x64xf32> -> tensor<64xf32>
    %b = tile.broadcast %m dim 0 : tensor<64xf32> -> tensor<64x64xf32>
    %d = arith.subf %s, %b : tensor<64x64xf32>
    %p = arith.truncf %d : tensor<64x64xf32> to tensor<64x64xbf16>
    %x = tile.mma mma %p, %kt, %acc
      : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
    scf.yield %x : tensor<64x64xf32>
  }
  tile.store %r, %o[%c0, %c0] : tensor<64x64xf32>, memref<?x64xf32>
  tile.return
}

// Without products: 16-byte vectors, as many threads a row as it has of them.
// One iota serves rows and columns.

// CHECK-LABEL: tile.kernel @elementwise
// CHECK: tile.load {{.*}} -> tensor<32x64xbf16, #blocked>
// CHECK-DAG: tile.broadcast %{{.*}} dim 0 : tensor<64xi32, #row{{[0-9]*}}> -> tensor<64x64xi32, #blocked>
// CHECK-DAG: tile.broadcast %{{.*}} dim 1 : tensor<64xi32, #col{{[0-9]*}}> -> tensor<64x64xi32, #blocked>
tile.kernel @elementwise(%a: memref<?x64xbf16>, %b: memref<?x64xi32>) attributes {num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %t = tile.load %a[%c0, %c0] : memref<?x64xbf16> -> tensor<32x64xbf16>
  tile.store %t, %a[%c0, %c0] : tensor<32x64xbf16>, memref<?x64xbf16>
  %iota = tile.iota : tensor<64xi32>
  %rows = tile.broadcast %iota dim 0 : tensor<64xi32> -> tensor<64x64xi32>
  %cols = tile.broadcast %iota dim 1 : tensor<64xi32> -> tensor<64x64xi32>
  %sum = arith.addi %rows, %cols : tensor<64x64xi32>
  tile.store %sum, %b[%c0, %c0] : tensor<64x64xi32>, memref<?x64xi32>
  tile.return
}

// The limits of any_exceeds are a value per row, and folded sums lie like the
// tile that they come from.

// CHECK-LABEL: tile.kernel @deferred_rescale
// CHECK: tile.load {{.*}} -> tensor<64xf32, #row{{[0-9]*}}>
// CHECK: tile.any_exceeds %{{.*}}, %{{.*}} : tensor<64x64xf32, #mma>, tensor<64xf32, #row{{[0-9]*}}>
// CHECK: tile.fold_sum %{{.*}} : tensor<64x64xf32, #mma> -> tensor<64x8xf32, #mma>
tile.kernel @deferred_rescale(%q: memref<?x64xbf16>, %limits: memref<?xf32>, %o: memref<?x8xf32>) attributes {num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %qt = tile.load %q[%c0, %c0] : memref<?x64xbf16> -> tensor<64x64xbf16>
  %s = tile.mma mma %qt, %qt, %zero {transpose_b}
    : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
  %l = tile.load %limits[%c0] : memref<?xf32> -> tensor<64xf32>
  %any = tile.any_exceeds %s, %l : tensor<64x64xf32>, tensor<64xf32>
  scf.if %any {
    %sums = tile.fold_sum %s : tensor<64x64xf32> -> tensor<64x8xf32>
    tile.store %sums, %o[%c0, %c0] : tensor<64x8xf32>, memref<?x8xf32>
  }
  tile.return
}

// Numbers that are the same in every row and column, a rule's divisor that must
// not trap, are computed for each layout that needs them.

// CHECK-LABEL: tile.kernel @divisor
// CHECK-DAG: arith.select {{.*}} : tensor<64xi1, #row{{[0-9]*}}>, tensor<64xi32, #row{{[0-9]*}}>
// CHECK-DAG: arith.select {{.*}} : tensor<64xi1, #col{{[a-z0-9]*}}>, tensor<64xi32, #col{{[a-z0-9]*}}>
tile.kernel @divisor(%q: memref<?x64xbf16>, %width: i32, %o: memref<?x64xi32>) attributes {num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %qt = tile.load %q[%c0, %c0] : memref<?x64xbf16> -> tensor<64x64xbf16>
  %s = tile.mma mma %qt, %qt, %zero {transpose_b}
    : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
  %widths = tensor.splat %width : tensor<64xi32>
  %zeros = arith.constant dense<0> : tensor<64xi32>
  %ones = arith.constant dense<1> : tensor<64xi32>
  %traps = arith.cmpi eq, %widths, %zeros : tensor<64xi32>
  %divisor = arith.select %traps, %ones, %widths : tensor<64xi1>, tensor<64xi32>
  %numbers = tile.iota : tensor<64xi32>
  %rows = arith.divsi %numbers, %divisor : tensor<64xi32>
  %cols = arith.divsi %numbers, %divisor : tensor<64xi32>
  %r = tile.broadcast %rows dim 0 : tensor<64xi32> -> tensor<64x64xi32>
  %c = tile.broadcast %cols dim 1 : tensor<64xi32> -> tensor<64x64xi32>
  %i = arith.fptosi %s : tensor<64x64xf32> to tensor<64x64xi32>
  %sum = arith.addi %r, %c : tensor<64x64xi32>
  %all = arith.addi %sum, %i : tensor<64x64xi32>
  tile.store %all, %o[%c0, %c0] : tensor<64x64xi32>, memref<?x64xi32>
  tile.return
}
