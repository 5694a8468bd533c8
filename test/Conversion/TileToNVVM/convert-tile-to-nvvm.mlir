// RUN: attn-opt %s --convert-tile-to-nvvm | FileCheck %s

// A pointer, the dynamic size, the dynamic stride; then scalars.

// CHECK: llvm.mlir.global external @dynamic_smem() {addr_space = 3 : i32, alignment = 128 : i64}
// CHECK-LABEL: llvm.func @copy(%arg0: !llvm.ptr<1>, %arg1: i32, %arg2: i64, %arg3: f32)
// CHECK-SAME: attn.dynamic_smem_bytes = 0 : i64, attn.num_warps = 4 : i32, nvvm.kernel, nvvm.reqntid = array<i32: 128, 1, 1>
// A vector where base and stride are aligned, elements elsewhere.
// CHECK: llvm.cond_br
// CHECK: ld.global.v4.b32
// CHECK: llvm.br
// CHECK: ld.global.b16
// CHECK: llvm.cond_br
// CHECK: st.global.v4.b32
// CHECK: llvm.br
// CHECK: st.global.b16
#blocked = #tile.blocked<vector = 8, threads_per_row = 8, warps = 4>
tile.kernel @copy(%a: memref<?x64xbf16, strided<[?, 1]>>, %c: f32) attributes {num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %t = tile.load %a[%c0, %c0] : memref<?x64xbf16, strided<[?, 1]>> -> tensor<16x64xbf16, #blocked>
  tile.store %t, %a[%c0, %c0] : tensor<16x64xbf16, #blocked>, memref<?x64xbf16, strided<[?, 1]>>
  tile.return
}

// K^T takes ldmatrix, V ldmatrix.trans; P goes from accumulator to operand in
// place: nothing but conversions between the two products.

// CHECK-LABEL: llvm.func @products
// CHECK-SAME: attn.dynamic_smem_bytes = 8192 : i64
// CHECK: nvvm.cp.async.shared.global
// CHECK: nvvm.cp.async.wait.group 0
// CHECK: nvvm.barrier0
// CHECK: ldmatrix.sync.aligned.m8n8.x4.shared.b16
// CHECK: nvvm.mma.sync {{.*}} multiplicandAPtxType = #nvvm.mma_type<bf16>
// CHECK: llvm.nvvm.ff2bf16x2.rn
// CHECK-NOT: nvvm.shfl
// CHECK: ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16
#mma = #tile.mma<warps = 1>
#operand = #tile.operand<<warps = 1>>
#shared = #tile.shared
tile.kernel @products(%q: memref<?x64xbf16>, %k: memref<?x64xbf16>, %o: memref<?x64xf32>) attributes {num_warps = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %zero = arith.constant dense<0.0> : tensor<16x32xf32, #mma>
  %acc = arith.constant dense<0.0> : tensor<16x64xf32, #mma>
  %qt = tile.load %q[%c0, %c0] : memref<?x64xbf16> -> tensor<16x64xbf16, #operand>
  %kt = tile.load %k[%c0, %c0] : memref<?x64xbf16> -> tensor<32x64xbf16, #shared>
  %vt = tile.load %k[%c0, %c0] : memref<?x64xbf16> -> tensor<32x64xbf16, #shared>
  %s = tile.mma mma %qt, %kt, %zero {transpose_b}
    : tensor<16x64xbf16, #operand>, tensor<32x64xbf16, #shared>, tensor<16x32xf32, #mma>
  %p = arith.truncf %s : tensor<16x32xf32, #mma> to tensor<16x32xbf16, #mma>
  %a = tile.convert_layout %p : tensor<16x32xbf16, #mma> -> tensor<16x32xbf16, #operand>
  %r = tile.mma mma %a, %vt, %acc
    : tensor<16x32xbf16, #operand>, tensor<32x64xbf16, #shared>, tensor<16x64xf32, #mma>
  tile.store %r, %o[%c0, %c0] : tensor<16x64xf32, #mma>, memref<?x64xf32>
  tile.return
}

// Bytes go four at a time, or one by one.

// CHECK-LABEL: llvm.func @bytes
// CHECK: ld.global.b32
// CHECK: llvm.bitcast %{{.*}} : i32 to vector<4xi8>
// CHECK: ld.global.u8
// CHECK: llvm.xor %{{.*}} : i8
// CHECK: llvm.bitcast %{{.*}} : vector<4xi8> to i32
// CHECK: st.global.b32
// CHECK: st.global.u8
#bytes = #tile.blocked<vector = 4, threads_per_row = 16, warps = 4>
tile.kernel @bytes(%a: memref<?x64xi8, strided<[?, 1]>>) attributes {num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %one = arith.constant dense<1> : tensor<16x64xi8, #bytes>
  %t = tile.load %a[%c0, %c0] : memref<?x64xi8, strided<[?, 1]>> -> tensor<16x64xi8, #bytes>
  %n = arith.xori %t, %one : tensor<16x64xi8, #bytes>
  tile.store %n, %a[%c0, %c0] : tensor<16x64xi8, #bytes>, memref<?x64xi8, strided<[?, 1]>>
  tile.return
}

// Reads at computed positions: predicated, so that one out of range is 0, and
// once for elements with the same indices.

// CHECK-LABEL: llvm.func @gathers
// CHECK-SAME: %[[TABLE:[a-z0-9]+]]: !llvm.ptr<1>, %[[SIZE:[a-z0-9]+]]: i32, %[[STRIDE:[a-z0-9]+]]: i64, %[[H:[a-z0-9]+]]: i32
// CHECK: %[[ROW:.*]] = llvm.mul %{{.*}}, %[[STRIDE]] : i64
// CHECK: %[[INSIDE:.*]] = llvm.icmp "ult" %[[H]], %[[SIZE]] : i32
// CHECK: llvm.inline_asm {{.*}}ld.global.b16{{.*}} %[[INSIDE]]
// CHECK: llvm.bitcast %{{.*}} : i16 to bf16
// Two rows a thread.
// CHECK-COUNT-2: ld.global.b16
// CHECK-NOT: ld.global.b16
// CHECK: llvm.return
tile.kernel @gathers(%table: memref<16x?xbf16, strided<[?, 1]>>, %h: i32, %o: memref<?x8xf32>) attributes {num_warps = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %x = tile.gather %table[%h, %h] in_bounds [0] : memref<16x?xbf16, strided<[?, 1]>>, (i32, i32) -> bf16
  %xf = arith.extf %x : bf16 to f32
  %i = tile.iota : tensor<16xi32, #tile.row<#mma>>
  %b = tile.broadcast %i dim 0 : tensor<16xi32, #tile.row<#mma>> -> tensor<16x8xi32, #mma>
  %t = tile.gather %table[%h, %b] : memref<16x?xbf16, strided<[?, 1]>>, (i32, tensor<16x8xi32, #mma>) -> tensor<16x8xbf16, #mma>
  %tf = arith.extf %t : tensor<16x8xbf16, #mma> to tensor<16x8xf32, #mma>
  %xs = tensor.splat %xf : tensor<16x8xf32, #mma>
  %y = arith.addf %tf, %xs : tensor<16x8xf32, #mma>
  tile.store %y, %o[%c0, %c0] : tensor<16x8xf32, #mma>, memref<?x8xf32>
  tile.return
}

// Booleans are bytes, and 64-bit integers two words.

// CHECK-LABEL: llvm.func @captured_types
// CHECK: ld.global.u8
// CHECK: llvm.trunc %{{.*}} : i8 to i1
// CHECK: ld.global.v2.b32
// CHECK: llvm.bitcast %{{.*}} : vector<2xi32> to i64
tile.kernel @captured_types(%keep: memref<?xi1>, %lens: memref<?xi64>, %i: i32, %o: memref<?x8xf32>) attributes {num_warps = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %k = tile.gather %keep[%i] : memref<?xi1>, (i32) -> i1
  %n = tile.gather %lens[%i] : memref<?xi64>, (i32) -> i64
  %f = arith.sitofp %n : i64 to f32
  %zero = arith.constant 0.0 : f32
  %x = arith.select %k, %f, %zero : f32
  %t = tensor.splat %x : tensor<16x8xf32, #mma>
  tile.store %t, %o[%c0, %c0] : tensor<16x8xf32, #mma>, memref<?x8xf32>
  tile.return
}

// Loops hold their tiles in the same memory: 8192 bytes for each load of a loop
// and for that in front of them.
// CHECK-LABEL: llvm.func @loops
// CHECK-SAME: attn.dynamic_smem_bytes = 24576 : i64
tile.kernel @loops(%k: memref<?x64xbf16>, %n: i32) attributes {num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %t = tile.load %k[%c0, %c0] : memref<?x64xbf16> -> tensor<64x64xbf16, #shared>
  scf.for %i = %c0 to %n step %c64 : i32 {
    %a = tile.load %k[%i, %c0] : memref<?x64xbf16> -> tensor<64x64xbf16, #shared>
    %b = tile.load %k[%i, %c0] : memref<?x64xbf16> -> tensor<64x64xbf16, #shared>
  }
  scf.for %i = %c0 to %n step %c64 : i32 {
    %a = tile.load %k[%i, %c0] : memref<?x64xbf16> -> tensor<64x64xbf16, #shared>
  }
  tile.return
}

// Lanes take every 32nd number, four a step, of which those behind the end are
// the last one; then the warp combines.
// CHECK-LABEL: llvm.func @reduce_range(
// CHECK-SAME: %[[N:[a-z0-9]+]]: i32,
// CHECK: %[[LAST:.*]] = llvm.sub %[[N]], %{{.*}} : i32
// CHECK-COUNT-3: llvm.intr.smin(%{{.*}}, %[[LAST]])
// CHECK: nvvm.redux.sync min
// CHECK: nvvm.redux.sync max
// CHECK: llvm.inline_asm has_side_effects {{.*}}"@$0 st.global.b32
tile.kernel @reduce_range(%n: i32, %table: memref<?xi32>, %out: memref<?xi32>) attributes {num_warps = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %min, %max = tile.reduce_range %c0 to %n min 1 (%i: i32) {
    %x = tile.gather %table[%i] : memref<?xi32>, (i32) -> i32
    tile.yield %x, %x : i32, i32
  } -> i32, i32
  tile.store_element %max, %out[%min] : memref<?xi32>
  tile.return
}

// A lane of 8 takes one number.
// CHECK-LABEL: llvm.func @reduce_few(
// CHECK-NOT: llvm.intr.smin
// CHECK: nvvm.redux.sync max
tile.kernel @reduce_few(%table: memref<?xi32>, %out: memref<?xi32>) attributes {num_warps = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %c8 = arith.constant 8 : i32
  %max = tile.reduce_range %c0 to %c8 min 0 (%i: i32) {
    %x = tile.gather %table[%i] : memref<?xi32>, (i32) -> i32
    tile.yield %x : i32
  } -> i32
  tile.store_element %max, %out[%c0] : memref<?xi32>
  tile.return
}

// Every row of a tile asks the table for its page, whose number is moved into
// the pool; rows from the length on are filled with zeros.
// CHECK-LABEL: llvm.func @pages(
// CHECK: nvvm.cp.async.shared.global
// CHECK: llvm.inline_asm has_side_effects {{.*}}ld.global{{.*}}b32
// CHECK: %[[NUMBER:.*]] = llvm.intr.umin(
// CHECK: llvm.sext %[[NUMBER]] : i32 to i64
// CHECK: nvvm.cp.async.shared.global
tile.kernel @pages(%pool: memref<?x2x16x64xbf16>, %table: memref<?x?xi32>, %n: i32) attributes {num_warps = 4 : i32} {
  %zero = arith.constant 0 : i32
  %rows = tile.paged_rows %pool through %table[%zero] length %n : memref<?x2x16x64xbf16>, memref<?x?xi32> -> memref<1x2x?x64xbf16, #tile.pages>
  %t = tile.load %rows[%zero, %zero, %n, %zero] : memref<1x2x?x64xbf16, #tile.pages> -> tensor<64x64xbf16, #shared>
  tile.return
}

// A part of a memref has a pointer and sizes of its own.
// CHECK-LABEL: llvm.func @part(
// CHECK-SAME: %[[M:[a-z0-9]+]]: !llvm.ptr<1>, %{{[a-z0-9]+}}: i32, %[[START:[a-z0-9]+]]: i32
// CHECK: %[[LONG:.*]] = llvm.sext %[[START]] : i32 to i64
// CHECK: %[[OFFSET:.*]] = llvm.mul %[[LONG]], %
// CHECK: llvm.getelementptr %[[M]]
// CHECK: nvvm.cp.async.shared.global
tile.kernel @part(%m: memref<?x64xbf16>, %start: i32, %n: i32) attributes {num_warps = 4 : i32} {
  %zero = arith.constant 0 : i32
  %first = arith.index_cast %start : i32 to index
  %size = arith.index_cast %n : i32 to index
  %part = memref.subview %m[%first, 0] [%size, 64] [1, 1] : memref<?x64xbf16> to memref<?x64xbf16, strided<[64, 1], offset: ?>>
  %t = tile.load %part[%zero, %zero] : memref<?x64xbf16, strided<[64, 1], offset: ?>> -> tensor<64x64xbf16, #shared>
  tile.return
}
