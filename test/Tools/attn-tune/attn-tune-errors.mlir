// RUN: not attn-tune %s --target=cpu 2>&1 | FileCheck %s --check-prefix=SEVERAL
// SEVERAL: attn-tune: error: needs a function with one attn.attention, there are 3; choose a function with --entry

// RUN: not attn-tune %s --entry=f --target=sm_10 --dry-run 2>&1 | FileCheck %s --check-prefix=TARGET
// TARGET: attn-tune: error: unknown target 'sm_10'; known are native, cpu, sm_80

// RUN: not env CUDA_VISIBLE_DEVICES= attn-tune %s --entry=f --target=sm_80 2>&1 | FileCheck %s --check-prefix=NO-GPU
// NO-GPU: attn-tune: error: {{no CUDA driver on this machine|the CUDA driver finds no GPU}}

// RUN: not attn-tune %s --entry=f --target=cpu 2>&1 | FileCheck %s --check-prefix=NO-SIZE
// NO-SIZE: attn-tune: error: argument 'q' is ?x2x?x64xf32: give its values with --inputs, or its size with --shapes

// RUN: not attn-tune %s --entry=f --target=cpu --rounds=0 2>&1 | FileCheck %s --check-prefix=ROUNDS
// ROUNDS: attn-tune: error: --finalists, --rounds and --repeat need positive numbers

// RUN: not attn-tune %s --entry=large --target=sm_80 --dry-run 2>&1 | FileCheck %s --check-prefix=LARGE
// LARGE: attn-tune-errors.mlir:{{[0-9]+}}:8: error: {{.*}}schedule needs {{[0-9]+}} bytes of shared memory
// LARGE-NOT: attn-tune: error

// RUN: not attn-tune %s --entry=computed --target=cpu --shapes=1x2x8x64,1x2x8x64,1x2x8x64 2>&1 | FileCheck %s --check-prefix=COMPUTED
// COMPUTED: attn-tune: error: the float64 reference needs an attn.attention on the entry's own arguments

!t = tensor<?x2x?x64xf32>
!s = tensor<1x2x8x64xf32>

func.func @f(%q: !t {attn.name = "q"}, %k: !t {attn.name = "k"},
             %v: !t {attn.name = "v"}, %o: !t {attn.name = "o"}) -> !t {
  %r = attn.attention ins(%q, %k, %v : !t, !t, !t) outs(%o : !t) -> !t
  return %r : !t
}

func.func @large(%q: !t, %k: !t, %v: !t, %o: !t) -> !t {
  %r = attn.attention ins(%q, %k, %v : !t, !t, !t) outs(%o : !t)
    {schedule = #attn.schedule<block_m = 128, block_n = 256, num_stages = 4, num_warps = 4>} -> !t
  return %r : !t
}

func.func @computed(%q: !s, %k: !s, %v: !s) -> !s {
  %o = tensor.empty() : !s
  %r = attn.attention ins(%q, %k, %v : !s, !s, !s) outs(%o : !s) -> !s
  return %r : !s
}
