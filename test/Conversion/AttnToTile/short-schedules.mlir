// RUN: attn-opt --convert-attn-to-tile=target=sm_80 %s | FileCheck %s
// RUN: attn-opt --convert-attn-to-tile=target=sm_80 --canonicalize --convert-host-to-plan %s | FileCheck %s --check-prefix=PLAN

// A kernel for each schedule; for every length, one of the launches has programs.

#small = #attn.schedule<block_m = 64, block_n = 64, num_stages = 2, num_warps = 4>
#large = #attn.schedule<block_m = 128, block_n = 64, num_stages = 2, num_warps = 4>

// CHECK-LABEL: func.func @f(
// CHECK: %[[ONE:.*]] = arith.cmpi sle, %[[NQ:.*]], %c512
// CHECK: %[[SHORT:.*]] = arith.index_castui %[[ONE]] : i1 to index
// CHECK: %[[GRID:.*]] = arith.muli %{{.*}}, %[[SHORT]]
// CHECK: tile.launch @fused_attn_s16816_f16_d64_q512 grid(%[[GRID]])
// CHECK: tile.launch @fused_attn_s16816_f16_d64_q2048
// CHECK: tile.launch @fused_attn_s16816_f16_d64 grid(
// CHECK: tile.kernel @fused_attn_s16816_f16_d64_q512(
// CHECK-SAME: attn.schedule = #attn.schedule<block_m = 64,
// CHECK: tile.kernel @fused_attn_s16816_f16_d64_q2048(
// CHECK-SAME: attn.schedule = #attn.schedule<block_m = 128,
// CHECK: tile.kernel @fused_attn_s16816_f16_d64(

// PLAN: grid = ["mul", ["mul", ["mul", ["ceildiv", "q.dim2", 64], 8], "q.dim0"], ["le", "q.dim2", 512]], kernel = "fused_attn_s16816_f16_d64_q512"
// PLAN-SAME: grid = ["mul", ["mul", ["mul", ["ceildiv", "q.dim2", 128], 8], "q.dim0"], ["mul", ["le", 513, "q.dim2"], ["le", "q.dim2", 2048]]], kernel = "fused_attn_s16816_f16_d64_q2048"
// PLAN-SAME: grid = ["mul", ["mul", ["mul", ["ceildiv", "q.dim2", 64], 8], "q.dim0"], ["le", 2049, "q.dim2"]], kernel = "fused_attn_s16816_f16_d64"
func.func @f(%q: memref<?x8x?x64xf16> {attn.name = "q"}, %k: memref<?x8x?x64xf16>,
             %v: memref<?x8x?x64xf16>, %o: memref<?x8x?x64xf16>) {
  attn.attention ins(%q, %k, %v : memref<?x8x?x64xf16>, memref<?x8x?x64xf16>, memref<?x8x?x64xf16>)
                 outs(%o : memref<?x8x?x64xf16>)
    {schedule = #small,
     short_schedules = [#attn.short_schedule<max_q_len = 512, schedule = #small>,
                        #attn.short_schedule<max_q_len = 2048, schedule = #large>]}
  return
}
