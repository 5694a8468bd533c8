// The table's schedule comes first, then what differs from it in one parameter.

// RUN: attn-tune %s --entry=short --target=cpu --dry-run | FileCheck %s --check-prefix=CPU
// CPU: #attn.schedule<block_m = [[M:[0-9]+]], block_n = [[N:[0-9]+]], num_stages = 1, num_warps = 1>
// CPU-DAG: #attn.schedule<block_m = 16, block_n = [[N]], num_stages = 1, num_warps = 1>
// CPU-DAG: #attn.schedule<block_m = [[M]], block_n = 32, num_stages = 1, num_warps = 1>
// CPU-NOT: block_m = 16, block_n = 32

// RUN: attn-tune %s --entry=short --target=cpu --dry-run --distance=2 | FileCheck %s --check-prefix=TWO
// TWO: #attn.schedule<block_m = 16, block_n = 32, num_stages = 1, num_warps = 1>

// The operator's own schedule takes the place of the table's. What the target
// can't hold isn't listed, and the warps follow from the rows.
// RUN: attn-tune %s --entry=given --target=sm_90a --dry-run | FileCheck %s --check-prefix=GPU
// GPU: #attn.schedule<block_m = 128, block_n = 128, num_stages = 2, num_warps = 12, warp_roles = <pipeline = simple>>
// GPU-NOT: num_stages = 4
// GPU-DAG: #attn.schedule<block_m = 64, block_n = 128, num_stages = 2, num_warps = 8, warp_roles = <pipeline = simple>>
// GPU-DAG: #attn.schedule<block_m = 128, block_n = 80, num_stages = 2, num_warps = 12, warp_roles = <pipeline = simple>>
// GPU-DAG: #attn.schedule<block_m = 128, block_n = 128, num_stages = 1, num_warps = 12, warp_roles = <pipeline = simple>>
// GPU-DAG: warp_roles = <pipeline = ahead>>
// GPU-DAG: warp_roles = <pipeline = simple, persistent = true>>

// RUN: attn-tune %s --entry=short --target=cpu --shapes=1x2x20x64,1x2x30x64,1x2x30x64 \
// RUN:   --finalists=2 --rounds=2 --repeat=2 --json=%t.json | FileCheck %s --check-prefix=TABLE
// RUN: %python %S/Inputs/check_report.py %t.json
// TABLE: Finalists, in turns; median (quartiles):
// TABLE-COUNT-2: x {{[0-9]+}}, 1 stage, 1 warp{{.*}}: {{[0-9.]+}} us ({{[0-9.]+}}-{{[0-9.]+}})
// TABLE: Screened only:
// TABLE: {{The present schedule is the fastest|{"cpu", 16, 64, [0-9]+, [0-9]+, [0-9]+, 1, 1, [0-9]+},}}

!f16 = tensor<?x2x?x64xf16>
!bf16 = tensor<?x2x?x128xbf16>

func.func @short(%q: !f16 {attn.name = "q"}, %k: !f16 {attn.name = "k"},
                 %v: !f16 {attn.name = "v"}, %o: !f16 {attn.name = "o"}) -> !f16 {
  %r = attn.attention ins(%q, %k, %v : !f16, !f16, !f16) outs(%o : !f16) -> !f16
  return %r : !f16
}

func.func @given(%q: !bf16, %k: !bf16, %v: !bf16, %o: !bf16) -> !bf16 {
  %r = attn.attention ins(%q, %k, %v : !bf16, !bf16, !bf16) outs(%o : !bf16)
    {schedule = #attn.schedule<block_m = 128, block_n = 128, num_stages = 2, num_warps = 12,
                               warp_roles = <pipeline = simple>>} -> !bf16
  return %r : !bf16
}
