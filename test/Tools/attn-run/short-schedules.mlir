// One compiled program serves every length, each with the kernel that is for it.

// RUN: attn-run %s --target=cpu --repeat=1 --verify --shapes=1x2x8x64,1x2x50x64,1x2x50x64 | FileCheck %s --check-prefix=Q8
// RUN: attn-run %s --target=cpu --repeat=1 --verify --shapes=1x2x9x64,1x2x50x64,1x2x50x64 | FileCheck %s --check-prefix=Q40
// RUN: attn-run %s --target=cpu --repeat=1 --verify --shapes=1x2x40x64,1x2x50x64,1x2x50x64 | FileCheck %s --check-prefix=Q40
// RUN: attn-run %s --target=cpu --repeat=1 --verify --shapes=1x2x41x64,1x2x50x64,1x2x50x64 | FileCheck %s --check-prefix=LONG
// RUN: attn-run %s --target=cpu --repeat=1 --verify --shapes=1x2x0x64,1x2x50x64,1x2x50x64 | FileCheck %s --check-prefix=EMPTY

// Q8: fused (cpu): 1 kernel
// Q8-NEXT: fused_attn_cpu_f32_d64_q8 {{ *}}1
// Q40: fused (cpu): 1 kernel
// Q40-NEXT: fused_attn_cpu_f32_d64_q40 {{ *}}1
// LONG: fused (cpu): 1 kernel
// LONG-NEXT: fused_attn_cpu_f32_d64 {{ *}}1
// EMPTY: fused (cpu): nothing to run

!t = tensor<?x2x?x64xf32>

func.func @f(%q: !t {attn.name = "q"}, %k: !t {attn.name = "k"},
             %v: !t {attn.name = "v"}, %o: !t {attn.name = "o"}) -> !t {
  %r = attn.attention ins(%q, %k, %v : !t, !t, !t) outs(%o : !t)
    {schedule = #attn.schedule<block_m = 64, block_n = 64, num_stages = 1, num_warps = 1>,
     short_schedules = [#attn.short_schedule<max_q_len = 8, schedule = <block_m = 8, block_n = 32, num_stages = 1, num_warps = 1>>,
                        #attn.short_schedule<max_q_len = 40, schedule = <block_m = 16, block_n = 32, num_stages = 1, num_warps = 1>>]}
    -> !t
  return %r : !t
}
