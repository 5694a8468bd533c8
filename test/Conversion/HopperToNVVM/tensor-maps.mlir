// RUN: attn-opt %s --split-input-file --convert-attn-to-tile=target=sm_90a --convert-host-to-plan --tile-to-sm90a | FileCheck %s

!q = memref<?x8x?x64xbf16, strided<[?, ?, ?, 1], offset: ?>>
!kv = memref<2x2x?x64xbf16, strided<[?, ?, 64, 1]>>

// Maps in the order of the loads, innermost dimension first; 64 rows of K and
// 128 of Q.
// CHECK: attn.plan = {
// CHECK-SAME: {box = [64, 64, 1, 1], buffer = "k", dims = [64, "k.dim2", 2, 2], dtype = "bf16", offset_bytes = 0 : i64, strides = [64, "k.stride1", "k.stride0"], type = "tensor_map"}
// CHECK-SAME: {box = [64, 128, 1, 1], buffer = "q", dims = [64, "q.dim2", 8, "q.dim0"], dtype = "bf16", offset_bytes = 0 : i64, strides = ["q.stride2", "q.stride1", "q.stride0"], type = "tensor_map"}
// CHECK-SAME: {box = [64, 64, 1, 1], buffer = "v"
// CHECK: llvm.func @fused_attn
func.func @attention(%q: !q {attn.name = "q"}, %k: !kv {attn.name = "k"}, %v: !kv {attn.name = "v"},
                     %o: !q {attn.name = "o", attn.output}) {
  attn.attention ins(%q, %k, %v : !q, !kv, !kv) outs(%o : !q)
    {schedule = #attn.schedule<block_m = 128, block_n = 64, num_stages = 2, num_warps = 12>}
  return
}

// -----

!q = memref<1x8x?x64xbf16, strided<[?, ?, ?, 1], offset: ?>>
!kv = memref<3x2x?x64xbf16, strided<[?, ?, 64, 1]>>

// Parts that end with a sequence: rows begin as many early as the memref has,
// and one dimension more moves them.
// CHECK: attn.plan = {
// CHECK-SAME: {box = [64, 64, 1, 1, 1], buffer = "k", dims = [64, "k.dim2", 2, 3, ["add", "k.dim2", 1]], dtype = "bf16", lead = ["mul", "k.dim2", 64], offset_bytes = 0 : i64, strides = [64, "k.stride1", "k.stride0", 64], type = "tensor_map"}
// CHECK-SAME: {box = [64, 128, 1, 1, 1], buffer = "q", dims = [64, "q.dim2", 8, 1, ["add", "q.dim2", 1]], {{.*}}lead = ["mul", "q.dim2", "q.stride2"]
// CHECK: llvm.func @fused_attn
// CHECK-COUNT-5: cp.async.bulk.tensor.5d.shared::cluster.global
// CHECK: cp.async.bulk.tensor.5d.global.shared::cta
func.func @sequences(%q: !q {attn.name = "q"}, %k: !kv {attn.name = "k"}, %v: !kv {attn.name = "v"},
                     %ends: memref<4xi32> {attn.name = "ends"}, %lengths: memref<3xi32> {attn.name = "lengths"},
                     %o: !q {attn.name = "o", attn.output}) {
  attn.attention ins(%q, %k, %v : !q, !kv, !kv) cu_q(%ends : memref<4xi32>) kv_len(%lengths : memref<3xi32>) outs(%o : !q)
    {schedule = #attn.schedule<block_m = 128, block_n = 64, num_stages = 2, num_warps = 12, warp_roles = #attn.warp_roles<tma_store = true>>}
  return
}
