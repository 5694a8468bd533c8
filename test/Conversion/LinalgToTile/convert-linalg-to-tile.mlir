// RUN: attn-opt --convert-linalg-to-tile=target=sm_80 --canonicalize --split-input-file %s | FileCheck %s
// RUN: attn-opt --convert-linalg-to-tile=target=cpu --split-input-file %s | FileCheck %s --check-prefix=CPU

// The fill is the accumulator's start. The sum is one step: a program keeps A
// and computes four output tiles of the row. The group of a query head is its
// number divided by 4.
// CHECK-LABEL: func.func @qk(
// CHECK-SAME: %[[Q:[a-z0-9]+]]: memref<?x8x?x64xbf16>, %[[K:[a-z0-9]+]]: memref<?x2x?x64xbf16>, %[[S:[a-z0-9]+]]: memref
// CHECK-NOT: linalg
// CHECK: tile.launch @naive_qk_s16816_bf16 grid(%{{.*}}) args(%[[Q]], %[[K]], %[[S]]) cost(
// CHECK-NOT: tile.launch
// CHECK: return
// CHECK: tile.kernel @naive_qk_s16816_bf16(
// CHECK: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : tensor<128x64xf32>
// CHECK: %[[FIRST:.*]] = arith.muli %{{.*}}, %c256_i32
// CHECK: %[[HEAD:.*]] = arith.remui %{{.*}}, %c8_i32
// CHECK: %[[A:.*]] = tile.load %{{.*}}[%[[B:.*]], %[[HEAD]], %[[M:.*]], %c0_i32] : {{.*}} -> tensor<128x64xbf16>
// CHECK: %[[BEHIND:.*]] = arith.addi %[[FIRST]], %c256_i32
// CHECK: %[[END:.*]] = arith.minsi %{{.*}}, %[[BEHIND]]
// CHECK: scf.for %[[N:.*]] = %[[FIRST]] to %[[END]] step %c64_i32
// CHECK: %[[GROUP:.*]] = arith.divui %[[HEAD]], %c4_i32
// CHECK: %[[BT:.*]] = tile.load %{{.*}}[%[[B]], %[[GROUP]], %[[N]], %c0_i32] : {{.*}} -> tensor<64x64xbf16>
// CHECK: %[[R:.*]] = tile.mma mma %[[A]], %[[BT]], %[[ZERO]] {transpose_b}
// CHECK: %[[C:.*]] = arith.truncf %[[R]]
// CHECK: tile.store %[[C]], %{{.*}}[%[[B]], %[[HEAD]], %[[M]], %[[N]]]

// CPU: tile.kernel @naive_qk_cpu_bf16(
#q = affine_map<(b, h, m, n, d) -> (b, h, m, d)>
#k = affine_map<(b, h, m, n, d) -> (b, h floordiv 4, n, d)>
#s = affine_map<(b, h, m, n, d) -> (b, h, m, n)>
func.func @qk(%q: memref<?x8x?x64xbf16>, %k: memref<?x2x?x64xbf16>, %s: memref<?x8x?x?xbf16>) {
  %zero = arith.constant 0.0 : bf16
  linalg.fill ins(%zero : bf16) outs(%s : memref<?x8x?x?xbf16>)
  linalg.generic {indexing_maps = [#q, #k, #s],
                  iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%q, %k : memref<?x8x?x64xbf16>, memref<?x2x?x64xbf16>) outs(%s : memref<?x8x?x?xbf16>)
      attrs = {attn.step = "naive_qk"} {
  ^bb0(%a: bf16, %b: bf16, %c: bf16):
    %p = arith.mulf %a, %b : bf16
    %r = arith.addf %c, %p : bf16
    linalg.yield %r : bf16
  }
  return
}

// -----

// A named product, of which nobody has filled the output. K is dynamic: a loop.
// CHECK-LABEL: func.func @named(
// CHECK: tile.launch @matmul_s1688_tf32x3_f32
// CHECK: tile.kernel @matmul_s1688_tf32x3_f32({{.*}}) attributes {num_stages = 3 : i32
// CHECK: %[[INIT:.*]] = tile.load {{.*}} -> tensor<128x128xf32>
// CHECK: scf.for {{.*}} iter_args(%[[ACC:.*]] = %[[INIT]])
// CHECK: tile.mma tf32x3 %{{.*}}, %{{.*}}, %[[ACC]] : tensor<128x32xf32>, tensor<32x128xf32>, tensor<128x128xf32>
func.func @named(%a: memref<?x?xf32>, %b: memref<?x?xf32>, %c: memref<?x?xf32>) {
  linalg.matmul ins(%a, %b : memref<?x?xf32>, memref<?x?xf32>) outs(%c : memref<?x?xf32>)
  return
}

// -----

// CHECK-LABEL: func.func @path(
// CHECK: tile.kernel @matmul_ffma_f32(
// CHECK: tile.mma fma
func.func @path(%a: memref<4x16x32xf32>, %b: memref<4x32x16xf32>, %c: memref<4x16x16xf32>) {
  linalg.batch_matmul {attn.path = "fma"} ins(%a, %b : memref<4x16x32xf32>, memref<4x32x16xf32>) outs(%c : memref<4x16x16xf32>)
  return
}

// -----

// Row and column vectors, a scalar, positions, and a constant from outside.
// CHECK-LABEL: func.func @elementwise(
// CHECK: tile.launch @step_f32 grid({{.*}}) args(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) cost(
// CHECK: tile.kernel @step_f32(
// CHECK-SAME: %[[X:[a-z0-9]+]]: memref<?x?x?xf32>, %[[ROW:[a-z0-9]+]]: memref<?x?xf32>, %[[COL:[a-z0-9]+]]: memref<?xf32>, %[[C:[a-z0-9]+]]: f32, %[[Y:[a-z0-9]+]]: memref<?x?x?xf16>
// CHECK: %[[XT:.*]] = tile.load %[[X]][%[[B:.*]], %[[M:.*]], %[[N:.*]]] : {{.*}} -> tensor<16x256xf32>
// CHECK: %[[RT:.*]] = tile.load %[[ROW]][%[[B]], %[[M]]] : {{.*}} -> tensor<16xf32>
// CHECK: %[[CT:.*]] = tile.load %[[COL]][%[[N]]] : {{.*}} -> tensor<256xf32>
// CHECK: tile.iota : tensor<256xi32>
// CHECK: arith.cmpi slt, %{{.*}} : tensor<256xi32>
// CHECK: tile.broadcast %[[RT]] dim 0
// CHECK: tile.broadcast %[[CT]] dim 1
// CHECK: tile.store %{{.*}}, %[[Y]][%[[B]], %[[M]], %[[N]]] : tensor<16x256xf16>
#id = affine_map<(b, m, n) -> (b, m, n)>
func.func @elementwise(%x: memref<?x?x?xf32>, %row: memref<?x?xf32>, %col: memref<?xf32>, %c: f32, %y: memref<?x?x?xf16>) {
  %limit = arith.constant 5 : i32
  linalg.generic {indexing_maps = [#id, affine_map<(b, m, n) -> (b, m)>, affine_map<(b, m, n) -> (n)>,
                                   affine_map<(b, m, n) -> ()>, #id],
                  iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %row, %col, %c : memref<?x?x?xf32>, memref<?x?xf32>, memref<?xf32>, f32)
      outs(%y : memref<?x?x?xf16>) attrs = {attn.step = "step"} {
  ^bb0(%xe: f32, %re: f32, %ce: f32, %s: f32, %out: f16):
    %n = linalg.index 2 : index
    %ni = arith.index_cast %n : index to i32
    %early = arith.cmpi slt, %ni, %limit : i32
    %a = arith.subf %xe, %re : f32
    %d = arith.divf %a, %ce : f32
    %e = arith.mulf %d, %s : f32
    %f = arith.select %early, %e, %xe : f32
    %h = arith.truncf %f : f32 to f16
    linalg.yield %h : f16
  }
  return
}

// -----

// A fill that no accumulator takes, and a fill whose buffer is read in between.
// CHECK-LABEL: func.func @fills(
// CHECK: tile.launch @ones_i8
// CHECK: tile.launch @elementwise_f32
// CHECK: tile.launch @elementwise_f32_0
// CHECK: tile.launch @matmul_s1688_tf32x3_f32
// CHECK: tile.kernel @ones_i8
// CHECK: arith.constant dense<1> : tensor<16x256xi8>
func.func @fills(%m: memref<?x?xi8>, %a: memref<16x16xf32>, %c: memref<16x16xf32>, %d: memref<16x16xf32>) {
  %one = arith.constant 1 : i8
  linalg.fill {attn.step = "ones"} ins(%one : i8) outs(%m : memref<?x?xi8>)
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%c : memref<16x16xf32>)
  linalg.exp ins(%c : memref<16x16xf32>) outs(%d : memref<16x16xf32>)
  linalg.matmul ins(%a, %a : memref<16x16xf32>, memref<16x16xf32>) outs(%c : memref<16x16xf32>)
  return
}

// -----

// A row of up to 1024 columns stays in registers; a longer one is read twice.
// CHECK-LABEL: func.func @softmax(
// CHECK: tile.kernel @softmax_bf16(
// CHECK: %[[FITS:.*]] = arith.cmpi sle, %{{.*}}, %c1024_i32
// CHECK: scf.if %[[FITS]] {
// CHECK: tile.online_softmax
// CHECK: tile.store {{.*}} tensor<4x1024xbf16>
// CHECK: tile.store {{.*}} tensor<4xf32>
// CHECK: } else {
// CHECK: scf.for
// CHECK: tile.online_softmax
// CHECK: scf.for
// CHECK: tile.exp_diff
// CHECK: tile.store {{.*}} tensor<4x1024xbf16>
func.func @softmax(%s: memref<?x8x?x?xbf16>, %p: memref<?x8x?x?xbf16>, %l: memref<?x8x?xf32>) {
  attn.softmax ins(%s : memref<?x8x?x?xbf16>) outs(%p, %l : memref<?x8x?x?xbf16>, memref<?x8x?xf32>)
  return
}

// -----

// linalg's own softmax keeps NaN in a row of -inf: no select.
// CHECK-LABEL: func.func @linalg_softmax(
// CHECK: tile.kernel @softmax_f32(
// CHECK-NOT: scf.if
// CHECK: %[[SUM:.*]] = arith.divf
// CHECK-NOT: select
// CHECK: tile.broadcast %[[SUM]] dim 0
func.func @linalg_softmax(%s: memref<4x1024xf32>, %p: memref<4x1024xf32>) {
  linalg.softmax dimension(1) ins(%s : memref<4x1024xf32>) outs(%p : memref<4x1024xf32>)
  return
}

// -----

// Columns behind the row's end don't count. `minui` is a negated maximum.
// CHECK-LABEL: func.func @reduce(
// CHECK: tile.launch @row_max_f32
// CHECK: tile.launch @all_i8
// CHECK: tile.kernel @row_max_f32(
// CHECK: %[[MINF:.*]] = arith.constant dense<0xFF800000> : tensor<4xf32>
// CHECK: scf.for {{.*}} iter_args(%[[ACC:.*]] = %[[MINF]])
// CHECK: %[[X:.*]] = arith.select
// CHECK: %[[R:.*]] = tile.reduce max %[[X]]
// CHECK: arith.maximumf %[[ACC]], %[[R]]
// CHECK: tile.kernel @all_i8(
// CHECK: arith.constant dense<-1.000000e+00> : tensor<4xf32>
// CHECK: arith.negf
// CHECK: tile.reduce max
// CHECK: arith.negf
// CHECK: arith.fptoui {{.*}} to tensor<4xi8>
#in = affine_map<(m, n) -> (m, n)>
#out = affine_map<(m, n) -> (m)>
func.func @reduce(%x: memref<?x?xf32>, %y: memref<?xf32>, %b: memref<?x?xi8>, %all: memref<?xi8>) {
  %minf = arith.constant 0xFF800000 : f32
  linalg.fill ins(%minf : f32) outs(%y : memref<?xf32>)
  linalg.generic {indexing_maps = [#in, #out], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<?x?xf32>) outs(%y : memref<?xf32>) attrs = {attn.step = "row_max"} {
  ^bb0(%a: f32, %acc: f32):
    %r = arith.maximumf %a, %acc : f32
    linalg.yield %r : f32
  }
  %one = arith.constant 1 : i8
  linalg.fill ins(%one : i8) outs(%all : memref<?xi8>)
  linalg.generic {indexing_maps = [#in, #out], iterator_types = ["parallel", "reduction"]}
      ins(%b : memref<?x?xi8>) outs(%all : memref<?xi8>) attrs = {attn.step = "all"} {
  ^bb0(%a: i8, %acc: i8):
    %r = arith.minui %acc, %a : i8
    linalg.yield %r : i8
  }
  return
}

// -----

// A tile has two columns or more: 16-bit elements come in pairs on a GPU.

// CHECK-LABEL: func.func @one_column
// CHECK: tile.kernel @halve_bf16(
// CHECK: tile.load {{.*}} -> tensor<{{[0-9]+}}x2xbf16>
#in = affine_map<(m, n) -> (m, n)>
func.func @one_column(%x: memref<8x1xbf16>, %y: memref<8x1xbf16>) {
  linalg.generic {indexing_maps = [#in, #in], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<8x1xbf16>) outs(%y : memref<8x1xbf16>) attrs = {attn.step = "halve"} {
  ^bb0(%a: bf16, %out: bf16):
    %half = arith.constant 0.5 : bf16
    %r = arith.mulf %a, %half : bf16
    linalg.yield %r : bf16
  }
  return
}

// -----

// An operand that is 0 behind an index of the sum ends there: loads give 0.
// CHECK-LABEL: func.func @ends(
// CHECK-SAME: %[[V:[a-z0-9]+]]: memref<?x2x?x64xbf16>,
// CHECK: tile.kernel @naive_pv_s16816_bf16(
// CHECK-SAME: %[[P:[a-z0-9]+]]: memref<?x2x?x?xbf16>, %[[V:[a-z0-9]+]]: memref<?x2x?x64xbf16>,
// CHECK-SAME: %[[LENS:[a-z0-9]+]]: memref<?xi32>
// CHECK: %[[N:.*]] = tile.gather %[[LENS]][%{{.*}}] in_bounds
// CHECK: %[[LESS:.*]] = arith.minsi %[[N]], %[[KEYS:.*]] : i32
// CHECK: %[[NEXT:.*]] = arith.addi %[[LESS]], %c1_i32 : i32
// CHECK: %[[END:.*]] = arith.minsi %[[NEXT]], %[[KEYS]] : i32
// CHECK: %[[COUNT:.*]] = arith.maxsi %[[END]], %c0_i32 : i32
// CHECK: %[[SIZE:.*]] = arith.index_cast %[[COUNT]] : i32 to index
// CHECK: %[[PART:.*]] = memref.subview %[[V]][0, 0, 0, 0] [%{{.*}}, 2, %[[SIZE]], 64]
// CHECK: tile.load %[[P]]
// CHECK: tile.load %[[PART]]
#p = affine_map<(b, h, m, n, k) -> (b, h, m, k)>
#v = affine_map<(b, h, m, n, k) -> (b, h, k, n)>
#o = affine_map<(b, h, m, n, k) -> (b, h, m, n)>
func.func @ends(%p: memref<?x2x?x?xbf16>, %v: memref<?x2x?x64xbf16>, %o: memref<?x2x?x64xbf16>, %lens: memref<?xi32>) {
  %zero = arith.constant 0.0 : bf16
  linalg.generic {indexing_maps = [#p, #v, #o],
                  iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%p, %v : memref<?x2x?x?xbf16>, memref<?x2x?x64xbf16>) outs(%o : memref<?x2x?x64xbf16>)
      attrs = {attn.step = "naive_pv"} {
  ^bb0(%a: bf16, %b: bf16, %c: bf16):
    %batch = linalg.index 0 : index
    %batch32 = arith.index_cast %batch : index to i32
    %n = attn.capture_load %lens[%batch32] : memref<?xi32> -> i32
    %key = linalg.index 4 : index
    %key32 = arith.index_cast %key : index to i32
    %visible = arith.cmpi sle, %key32, %n : i32
    %kept = arith.select %visible, %b, %zero : bf16
    %p0 = arith.mulf %a, %kept : bf16
    %r = arith.addf %c, %p0 : bf16
    linalg.yield %r : bf16
  }
  return
}
