// RUN: attn-opt %s --pass-pipeline='builtin.module(convert-attn-to-tile{target=sm_80},tile.kernel(tile-split-kv-ranges,tile-pipeline-loads))' | FileCheck %s

// Copies of packed heads' queries that start ahead of the loop keep their order.
// CHECK: tile.async_load {{.*}} interleave 4 to
// CHECK: tile.store {{.*}} interleave 4
func.func @decode(%q: memref<1x8x1x64xbf16>, %k: memref<1x2x?x64xbf16>, %o: memref<1x8x1x64xbf16>) {
  attn.attention ins(%q, %k, %k : memref<1x8x1x64xbf16>, memref<1x2x?x64xbf16>, memref<1x2x?x64xbf16>)
    outs(%o : memref<1x8x1x64xbf16>)
    {schedule = #attn.schedule<block_m = 16, block_n = 32, num_stages = 2, num_warps = 1, decode = <max_splits = 1, programs_per_sm = 1>>}
  return
}
