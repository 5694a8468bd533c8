// RUN: attn-opt %s --convert-attn-to-tile=target=sm_90a --convert-host-to-plan --tile-to-sm90a | FileCheck %s

!mem = memref<?x2x?x192xf8E4M3FN, strided<[?, ?, ?, 1], offset: ?>>
!o = memref<?x2x?x192xf16>

// Boxes are as wide as the swizzle: K and Q of 192 columns in blocks of 64, and
// 96 keys of the transposed V, which is in memory of the plan's own, of 32.
// CHECK: attn.plan = {
// CHECK-SAME: buffer = "[[VT:t0]]", bytes = {{.*}}, op = "alloc"
// CHECK-SAME: kernel = "fused_transpose_v_f8E4M3FN_d192", op = "launch"
// CHECK-SAME: {box = [64, 96, 1, 1], buffer = "k", dims = [192, "k.dim2", 2, "k.dim0"], dtype = "f8E4M3FN"
// CHECK-SAME: {box = [64, 128, 1, 1], buffer = "q", dims = [192, "q.dim2", 2, "q.dim0"], dtype = "f8E4M3FN"
// CHECK-SAME: {box = [32, 192, 1, 1], buffer = "[[VT]]", dims = {{\[\[}}"mul",
// CHECK-SAME: 192, 2, "v.dim0"], dtype = "f8E4M3FN"
// Both kernels are in one module; the transposition takes no maps.
// CHECK: gpu.module
// CHECK-DAG: llvm.func @fused_transpose_v_f8E4M3FN_d192(
// CHECK-DAG: llvm.func @fused_attn_wgmma_f8E4M3FN_d192(
// CHECK-NOT: gpu.module
func.func @attention(%q: !mem {attn.name = "q"}, %k: !mem {attn.name = "k"}, %v: !mem {attn.name = "v"},
                     %o: !o {attn.name = "o", attn.output}) {
  attn.attention ins(%q, %k, %v : !mem, !mem, !mem) outs(%o : !o)
    {schedule = #attn.schedule<block_m = 128, block_n = 96, num_stages = 2, num_warps = 12>}
  return
}
