// RUN: attn-opt %s --convert-attn-to-tile=target=sm_90a --convert-host-to-plan --tile-to-sm90a | FileCheck %s

!q = memref<?x8x?x64xbf16, strided<[?, ?, ?, 1]>>

// The counter of a persistent kernel's tiles, a program a multiprocessor; the
// counter and the number of tiles come behind the ABI, and maps behind them, the
// last of the output with the 64 rows of a warpgroup.
// CHECK: plan = [{buffer = "[[COUNTER:fused[a-z0-9_]+\.tiles0]]", bytes = 4 : i64, op = "alloc", zeroed = true}, {args = [
// CHECK-SAME: {type = "i64", value = "o.stride2"},
// CHECK-SAME: {buffer = "[[COUNTER]]", offset_bytes = 0 : i64, type = "ptr"},
// CHECK-SAME: {type = "i32", value = [[TILES:\["mul", \["mul", \["ceildiv", "q.dim2", 128\], 8\], "q.dim0"\]]]},
// CHECK-SAME: buffer = "k",
// CHECK-SAME: {box = [64, 64, 1, 1], buffer = "o", dims = [64, "o.dim2", 8, "o.dim0"],
// CHECK-SAME: grid = ["min", [[TILES]], "num_sms"], kernel = "fused
// CHECK: llvm.func @fused_attn
func.func @attention(%q: !q {attn.name = "q"}, %k: !q {attn.name = "k"}, %v: !q {attn.name = "v"},
                     %o: !q {attn.name = "o", attn.output}) {
  attn.attention ins(%q, %k, %v : !q, !q, !q) outs(%o : !q)
    {schedule = #attn.schedule<block_m = 128, block_n = 64, num_stages = 2, num_warps = 12,
                               warp_roles = <persistent = true, tma_store = true>>}
  return
}
