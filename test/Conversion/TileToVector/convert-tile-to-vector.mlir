// RUN: attn-opt %s --convert-tile-to-vector=vector-bits=256 | FileCheck %s
// RUN: attn-opt %s --convert-tile-to-vector=vector-bits=512 | FileCheck %s --check-prefix=WIDE

// Every argument is loaded through params: the address, the dynamic sizes as
// i32, the dynamic strides as i64; an identity layout passes no strides.
// CHECK-LABEL: llvm.func @abi(
// CHECK-SAME:    %[[PARAMS:.*]]: !llvm.ptr, %[[PID:.*]]: i32)
// CHECK:         %[[SLOT0:.*]] = llvm.getelementptr %[[PARAMS]][0]
// CHECK:         %[[P0:.*]] = llvm.load %[[SLOT0]]
// CHECK:         llvm.load %[[P0]] : !llvm.ptr -> !llvm.ptr
// CHECK:         llvm.getelementptr %[[PARAMS]][1]
// CHECK:         llvm.load %{{.*}} : !llvm.ptr -> i32
// CHECK:         llvm.getelementptr %[[PARAMS]][2]
// CHECK:         llvm.load %{{.*}} : !llvm.ptr -> i64
// CHECK:         llvm.getelementptr %[[PARAMS]][3]
// CHECK:         llvm.load %{{.*}} : !llvm.ptr -> !llvm.ptr
// CHECK:         llvm.getelementptr %[[PARAMS]][4]
// CHECK:         llvm.load %{{.*}} : !llvm.ptr -> i32
// CHECK:         llvm.getelementptr %[[PARAMS]][5]
// CHECK:         llvm.load %{{.*}} : !llvm.ptr -> f32
// CHECK-NOT:     tile.
// CHECK:         llvm.return
tile.kernel @abi(%a: memref<?x64xf32, strided<[?, 1], offset: ?>>, %b: memref<?x64xf32>, %c: f32) attributes {num_warps = 4 : i32} {
  %row = tile.program_id : i32
  %zero = arith.constant 0 : i32
  %t = tile.load %a[%row, %zero] : memref<?x64xf32, strided<[?, 1], offset: ?>> -> tensor<16x64xf32>
  %s = tensor.splat %c : tensor<16x64xf32>
  %m = arith.mulf %t, %s : tensor<16x64xf32>
  tile.store %m, %b[%row, %zero] : tensor<16x64xf32>, memref<?x64xf32>
  tile.return
}

// Rows are lanes: one read of B serves two vector registers of rows, for 4
// columns (8 with 32 registers) of C at a time. Here B is f32 and is read in
// place unless it is ragged.
// CHECK-LABEL: llvm.func @mma(
// CHECK:         %[[B:.*]]:2 = scf.if %{{.*}} -> (!llvm.ptr, i64)
// CHECK:         scf.for {{.*}} -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>)
// CHECK:           llvm.load %{{.*}} : !llvm.ptr -> vector<16xf32>
// CHECK:           %[[ELEMENT:.*]] = llvm.load %{{.*}} : !llvm.ptr -> f32
// CHECK:           vector.broadcast %[[ELEMENT]] : f32 to vector<16xf32>
// CHECK:           llvm.intr.fmuladd
// WIDE-LABEL: llvm.func @mma(
// WIDE:         llvm.intr.fmuladd{{.*}} -> vector<32xf32>
tile.kernel @mma(%a: memref<64x64xf32>, %b: memref<64x64xf32>, %c: memref<64x64xf32>) attributes {num_warps = 4 : i32} {
  %zero = arith.constant 0 : i32
  %acc = arith.constant dense<0.0> : tensor<64x64xf32>
  %at = tile.load %a[%zero, %zero] : memref<64x64xf32> -> tensor<64x64xf32>
  %bt = tile.load %b[%zero, %zero] : memref<64x64xf32> -> tensor<64x64xf32>
  %r = tile.mma fma %at, %bt, %acc : tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>
  tile.store %r, %c[%zero, %zero] : tensor<64x64xf32>, memref<64x64xf32>
  tile.return
}

// Elementwise operations and the reduction share one loop over the columns;
// only what is used later is stored, in place of the tile that dies.
// CHECK-LABEL: llvm.func @one_loop(
// CHECK:         %[[MAX:.*]] = scf.for {{.*}} iter_args(%[[ACC:.*]] = %{{.*}}) -> (vector<16xf32>)
// CHECK:           arith.mulf {{.*}} : vector<16xf32>
// CHECK-NOT:       llvm.store
// CHECK:           math.absf {{.*}} : vector<16xf32>
// CHECK:           arith.cmpf ogt
// CHECK:           llvm.store {{.*}} : vector<16xf32>, !llvm.ptr
// CHECK-NEXT:      scf.yield
// CHECK:         vector.reduction <maxnumf>, %[[MAX]]
tile.kernel @one_loop(%x: memref<8x64xf32>, %y: memref<8xf32>, %c: f32) attributes {num_warps = 4 : i32} {
  %zero = arith.constant 0 : i32
  %t = tile.load %x[%zero, %zero] : memref<8x64xf32> -> tensor<8x64xf32>
  %s = tensor.splat %c : tensor<8x64xf32>
  %u = arith.mulf %t, %s : tensor<8x64xf32>
  %v = math.absf %u : tensor<8x64xf32>
  %m = tile.reduce max %v : tensor<8x64xf32> -> tensor<8xf32>
  tile.store %v, %x[%zero, %zero] : tensor<8x64xf32>, memref<8x64xf32>
  tile.store %m, %y[%zero] : tensor<8xf32>, memref<8xf32>
  tile.return
}

// A loop-carried tile stays in its buffer.
// CHECK-LABEL: llvm.func @carried(
// CHECK-COUNT-2: llvm.alloca
// CHECK-NOT:     llvm.alloca
// CHECK:         scf.for %{{.*}} = %{{.*}} to %{{.*}} step %{{.*}} : i32
// CHECK:           %[[NEXT:.*]] = arith.addf
// CHECK:           llvm.store %[[NEXT]]
tile.kernel @carried(%x: memref<?x64xf32>, %y: memref<64xf32>, %n: i32) attributes {num_warps = 4 : i32} {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %init = arith.constant dense<0.0> : tensor<64xf32>
  %sum = scf.for %i = %zero to %n step %one iter_args(%acc = %init) -> (tensor<64xf32>) : i32 {
    %t = tile.load %x[%i, %zero] : memref<?x64xf32> -> tensor<64xf32>
    %next = arith.addf %acc, %t : tensor<64xf32>
    scf.yield %next : tensor<64xf32>
  }
  tile.store %sum, %y[%zero] : tensor<64xf32>, memref<64xf32>
  tile.return
}

// exp2 and log2 become arithmetic.
// CHECK-LABEL: llvm.func @math(
// CHECK-NOT:     math.exp2
// CHECK-NOT:     math.log2
// CHECK:         llvm.return
tile.kernel @math(%x: memref<64xf32>, %c: f32) attributes {num_warps = 4 : i32} {
  %zero = arith.constant 0 : i32
  %e = math.exp2 %c : f32
  %t = tile.load %x[%zero] : memref<64xf32> -> tensor<64xf32>
  %l = math.log2 %t : tensor<64xf32>
  %s = tensor.splat %e : tensor<64xf32>
  %r = arith.addf %l, %s : tensor<64xf32>
  tile.store %r, %x[%zero] : tensor<64xf32>, memref<64xf32>
  tile.return
}

// Reads at computed positions are masked; a scalar one is a branch.
// CHECK-LABEL: llvm.func @gathers(
// CHECK:         %[[INSIDE:.*]] = arith.cmpi ult
// CHECK:         scf.if %[[INSIDE]] -> (f32)
// CHECK:           llvm.load
// CHECK:         } else {
// CHECK:         %[[SIGNED:.*]] = arith.extsi %{{.*}} : vector<16xi32> to vector<16xi64>
// CHECK:         %[[EXISTS:.*]] = arith.cmpi ult, %[[SIGNED]], %{{.*}} : vector<16xi64>
// CHECK:         llvm.intr.masked.gather %{{.*}}, %[[EXISTS]], %{{.*}} {alignment = 4 : i32}
tile.kernel @gathers(%table: memref<?xf32>, %i: i32, %o: memref<64xf32>) attributes {num_warps = 4 : i32} {
  %zero = arith.constant 0 : i32
  %x = tile.gather %table[%i] : memref<?xf32>, (i32) -> f32
  %p = tile.load %o[%zero] : memref<64xf32> -> tensor<64xf32>
  %q = arith.fptosi %p : tensor<64xf32> to tensor<64xi32>
  %t = tile.gather %table[%q] : memref<?xf32>, (tensor<64xi32>) -> tensor<64xf32>
  %s = tensor.splat %x : tensor<64xf32>
  %y = arith.addf %t, %s : tensor<64xf32>
  tile.store %y, %o[%zero] : tensor<64xf32>, memref<64xf32>
  tile.return
}

// A loop that carries the values, and a store where the memref has the element.
// CHECK-LABEL: llvm.func @reduce_range(
// CHECK-DAG: %[[HIGH:.*]] = arith.constant 2147483647 : i32
// CHECK-DAG: %[[LOW:.*]] = arith.constant -2147483648 : i32
// CHECK: %[[R:.*]]:2 = scf.for {{.*}} iter_args(%[[A:.*]] = %[[HIGH]], %[[B:.*]] = %[[LOW]]) -> (i32, i32)
// CHECK: %[[X:.*]] = scf.if
// CHECK: %[[MIN:.*]] = arith.minsi %[[A]], %[[X]]
// CHECK: %[[MAX:.*]] = arith.maxsi %[[B]], %[[X]]
// CHECK: scf.yield %[[MIN]], %[[MAX]]
// CHECK: scf.if
// CHECK: llvm.store %[[R]]#1
tile.kernel @reduce_range(%table: memref<?xi32>, %n: i32, %out: memref<?xi32>) attributes {num_warps = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %min, %max = tile.reduce_range %c0 to %n min 1 (%i: i32) {
    %x = tile.gather %table[%i] : memref<?xi32>, (i32) -> i32
    tile.yield %x, %x : i32, i32
  } -> i32, i32
  tile.store_element %max, %out[%min] : memref<?xi32>
  tile.return
}

// Every row asks the table for its page, whose number is moved into the pool.
// CHECK-LABEL: llvm.func @pages(
// CHECK: scf.for
// CHECK: %[[PAGE:[0-9]+]] = arith.divui %{{.*}}, %{{c16_i64.*}}
// CHECK: %[[SLOT:.*]] = llvm.getelementptr %{{.*}}[%[[PAGE]]] : (!llvm.ptr, i64) -> !llvm.ptr, i32
// CHECK: %[[NUMBER:[0-9]+]] = llvm.load %[[SLOT]] {{.*}} -> i32
// CHECK: %[[LONG:[0-9]+]] = arith.extsi %[[NUMBER]] : i32 to i64
// CHECK: arith.minui %[[LONG]], %
tile.kernel @pages(%pool: memref<?x2x16x64xf32>, %table: memref<?x?xi32>, %n: i32, %o: memref<64x64xf32>) attributes {num_warps = 4 : i32} {
  %zero = arith.constant 0 : i32
  %rows = tile.paged_rows %pool through %table[%zero] length %n : memref<?x2x16x64xf32>, memref<?x?xi32> -> memref<1x2x?x64xf32, #tile.pages>
  %t = tile.load %rows[%zero, %zero, %n, %zero] : memref<1x2x?x64xf32, #tile.pages> -> tensor<64x64xf32>
  tile.store %t, %o[%zero, %zero] : tensor<64x64xf32>, memref<64x64xf32>
  tile.return
}
