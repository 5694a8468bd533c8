// RUN: attn-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-split-kv-ranges,tile-pipeline-loads,tile-lower-kv-loop,tile-rewrite-masks,tile-expand-online-softmax,tile-lower-math,canonicalize,cse),tile-to-sm80)' 2>/dev/null | FileCheck %s
// RUN: attn-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-split-kv-ranges,tile-lower-kv-loop,tile-rewrite-masks,tile-expand-online-softmax,tile-lower-math,canonicalize,cse),convert-tile-to-vector)' 2>/dev/null | FileCheck %s --check-prefix=CPU

// RUN: attn-opt %s --tile-to-sm90a 2>/dev/null | FileCheck %s --check-prefix=SM90A

// A tile kernel edited by hand, ReLU instead of softmax and no scale, lowers on
// every target: the products stay on the matrix units, nothing exponentiates.
// The two HandEditedTest.cpp compare such kernels with float64.

// CHECK-LABEL: llvm.func @edited
// CHECK: nvvm.cp.async.shared.global
// CHECK: nvvm.mma.sync
// CHECK-NOT: ex2
// SM90A-LABEL: llvm.func @edited
// SM90A: wgmma.mma_async
// SM90A-NOT: ex2
// CPU-LABEL: llvm.func @edited
// CPU: llvm.intr.fmuladd
// CPU-NOT: math.exp

!mem = memref<?x64xbf16>
!s = tensor<64x32xf32>
!o = tensor<64x64xf32>
!ob = tensor<64x64xbf16>
!row = tensor<64xf32>
tile.kernel @edited(%qm: !mem, %km: !mem, %vm: !mem, %om: !mem) attributes {num_warps = 4 : i32, num_stages = 2 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %scale = arith.constant 1.0 : f32
  %d0 = arith.constant 0 : index
  %dim = memref.dim %km, %d0 : !mem
  %n = arith.index_cast %dim : index to i32
  %pid = tile.program_id : i32
  %q0 = arith.muli %pid, %c64 : i32
  %q = tile.load %qm[%q0, %c0] : !mem -> !ob
  %zs = arith.constant dense<0.0> : !s
  %zo = arith.constant dense<0.0> : !o
  %minf = arith.constant dense<0xFF800000> : !row
  %zrow = arith.constant dense<0.0> : !row
  %one = arith.constant dense<1.0> : !row
  %r:3 = tile.kv_loop ranges(%c0, %c0, %c0, %n) step 32 iter_args(%zo, %minf, %zrow) : !o, !row, !row
    qk (%kv: i32, %acc: !o, %m: !row, %l: !row) {
      %k = tile.load %km[%kv, %c0] : !mem -> tensor<32x64xbf16>
      %s = tile.mma mma %q, %k, %zs {transpose_b} : !ob, tensor<32x64xbf16>, !s
      tile.yield %s : !s
    } score (%kv: i32, %s: !s, %acc: !o, %m: !row, %l: !row) {
      %x = tile.mask %s at (%q0, %kv) (%qi: i32, %ki: i32) {
        %exists = arith.cmpi slt, %ki, %n : i32
        %before = arith.cmpi sle, %ki, %qi : i32
        %keep = arith.andi %exists, %before : i1
        tile.yield %keep : i1
      } : !s
      %t = arith.addf %x, %zs : !s
      tile.yield %t : !s
    } softmax (%kv: i32, %t: !s, %acc: !o, %m: !row, %l: !row) {
      %p = arith.maximumf %t, %zs : !s
      %m1 = arith.addf %m, %zrow : !row
      %l1 = arith.addf %l, %zrow : !row
      %a = arith.addf %zrow, %one : !row
      tile.yield %p, %m1, %l1, %a : !s, !row, !row, !row
    } pv (%kv: i32, %p: !s, %m1: !row, %l1: !row, %a: !row, %acc: !o, %m: !row, %l: !row) {
      %v = tile.load %vm[%kv, %c0] : !mem -> tensor<32x64xbf16>
      %ab = tile.broadcast %a dim 0 : !row -> !o
      %scaled = arith.mulf %acc, %ab : !o
      %pb = arith.truncf %p : !s to tensor<64x32xbf16>
      %next = tile.mma mma %pb, %v, %scaled : tensor<64x32xbf16>, tensor<32x64xbf16>, !o
      tile.yield %next, %m1, %l1 : !o, !row, !row
    }
  %y = arith.addf %r#0, %zo : !o
  %yb = arith.truncf %y : !o to !ob
  tile.store %yb, %om[%q0, %c0] : !ob, !mem
  tile.return
}
