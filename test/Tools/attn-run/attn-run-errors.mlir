// RUN: rm -rf %t && mkdir %t && %python %S/Inputs/make_inputs.py %t

// RUN: not attn-run %t/none.mlir 2>&1 | FileCheck %s --check-prefix=NO-FILE
// NO-FILE: error: cannot open input file '{{.*}}none.mlir': No such file or directory

// RUN: not attn-run %s --target=sm_10 2>&1 | FileCheck %s --check-prefix=TARGET
// TARGET: attn-run: error: unknown target 'sm_10'; known are native, cpu, sm_80

// RUN: not attn-run %s --variant=quick --target=cpu 2>&1 | FileCheck %s --check-prefix=VARIANT
// VARIANT: attn-run: error: unknown variant 'quick'; known are naive, inplace, math, fused and all

// RUN: not env CUDA_VISIBLE_DEVICES= attn-run %s --target=sm_80 2>&1 | FileCheck %s --check-prefix=NO-GPU
// NO-GPU: attn-run: error: {{no CUDA driver on this machine|the CUDA driver finds no GPU}}

// RUN: not attn-run %s --entry=other --target=cpu 2>&1 | FileCheck %s --check-prefix=ENTRY
// ENTRY: attn-run-errors.mlir:{{.*}}: error: no function named 'other'
// ENTRY: fused (cpu): error

// RUN: not attn-run %s --target=cpu 2>&1 | FileCheck %s --check-prefix=NO-SIZE
// NO-SIZE: attn-run: error: argument 'q' is ?x1x?x32xf32: give its values with --inputs, or its size with --shapes

// RUN: not attn-run %s --target=cpu --inputs=%t/q.npy,%t/k.npy,%t/v.npy 2>&1 | FileCheck %s --check-prefix=COUNT
// COUNT: attn-run: error: --inputs: the entry takes 4 inputs (q, k, v, scale), 3 files are given; --scalar scale=VALUE gives a scalar

// RUN: not attn-run %s --target=cpu --scalar=scale=1 --inputs=%t/none.npy,%t/k.npy,%t/v.npy 2>&1 | FileCheck %s --check-prefix=MISSING
// MISSING: attn-run: error: '{{.*}}none.npy': No such file or directory

// RUN: not attn-run %s --target=cpu --scalar=scale=1 --inputs=%t/short.npy,%t/k.npy,%t/v.npy 2>&1 | FileCheck %s --check-prefix=SHORT
// SHORT: attn-run: error: '{{.*}}short.npy': truncated: the header promises 128 bytes of data, the file holds 127

// RUN: not attn-run %s --target=cpu --scalar=scale=1 --inputs=%t/flat.npy,%t/k.npy,%t/v.npy 2>&1 | FileCheck %s --check-prefix=RANK
// RANK: attn-run: error: '{{.*}}flat.npy': argument 'q' needs ?x1x?x32xf32, the file holds 32xf32

// RUN: not attn-run %s --target=cpu --inputs=%t/qkv.safetensors 2>&1 | FileCheck %s --check-prefix=NAME
// NAME: attn-run: error: '{{.*}}qkv.safetensors': holds no tensor 'scale'

// RUN: not attn-run %s --target=cpu --scalar=scale=x 2>&1 | FileCheck %s --check-prefix=SCALAR
// SCALAR: attn-run: error: --scalar scale=x: needs name=value with a finite number

// RUN: not attn-run %s --target=cpu --scalar=q=1 2>&1 | FileCheck %s --check-prefix=NOT-SCALAR
// NOT-SCALAR: attn-run: error: --scalar q=1: there is no scalar argument 'q'

// RUN: not attn-run %s --target=cpu --scalar=scale=1 --shapes=1x1x4x31,1x1x4x32,1x1x4x32 2>&1 | FileCheck %s --check-prefix=SHAPE
// SHAPE: attn-run: error: --shapes: argument 'q' needs ?x1x?x32xf32, got 1x1x4x31

// RUN: not attn-run %s --target=cpu --scalar=scale=1 --shapes=1x1x4x32,1x1xAx32,1x1x4x32 2>&1 | FileCheck %s --check-prefix=SYNTAX
// SYNTAX: attn-run: error: --shapes: '1x1xAx32' is not a shape such as 2x16x1024x64

// Lengths that contradict each other are a matter of the launch.
// RUN: not attn-run %s --target=cpu --scalar=scale=1 --shapes=1x1x4x32,1x1x5x32,1x1x6x32 2>&1 | FileCheck %s --check-prefix=CHECK
// CHECK: attn-run: error: fused: 'scaled': k and v have different lengths (q: 1x1x4x32xf32, k: 1x1x5x32xf32, v: 1x1x6x32xf32, {{.*}})

// RUN: not attn-run %s --target=cpu --variant=all --outputs=%t/o.npy 2>&1 | FileCheck %s --check-prefix=OUTPUTS
// OUTPUTS: attn-run: error: --outputs needs one --variant, not all of them

// Nothing is written if there are more files than outputs.
// RUN: not attn-run %s --target=cpu --scalar=scale=1 --repeat=0 --shapes=1x1x4x32,1x1x4x32,1x1x4x32 \
// RUN:   --outputs=%t/o.npy,%t/lse.npy 2>&1 | FileCheck %s --check-prefix=SURPLUS
// RUN: not ls %t/o.npy
// SURPLUS: attn-run: error: --outputs: no output is left for '{{.*}}lse.npy'

// A folder that isn't there stands for one that can't be written: root may
// write anywhere.
// RUN: not attn-run %s --target=cpu --scalar=scale=1 --repeat=0 --shapes=1x1x4x32,1x1x4x32,1x1x4x32 \
// RUN:   --outputs=%t/none/o.npy 2>&1 | FileCheck %s --check-prefix=FOLDER
// FOLDER: attn-run: error: '{{[^']*}}none/o.npy': No such file or directory
// RUN: not attn-run %s --target=cpu --scalar=scale=1 --repeat=0 --shapes=1x1x4x32,1x1x4x32,1x1x4x32 \
// RUN:   --outputs=/dev/full 2>&1 | FileCheck %s --check-prefix=FULL
// FULL: attn-run: error: '/dev/full': No space left on device
// RUN: test -c /dev/full
// RUN: not attn-run %s --target=cpu --scalar=scale=1 --repeat=0 --shapes=1x1x4x32,1x1x4x32,1x1x4x32 \
// RUN:   --json=%t/none/r.json 2>&1 | FileCheck %s --check-prefix=JSON
// JSON: attn-run: error: '{{[^']*}}none/r.json': No such file or directory

func.func @scaled(%q: tensor<?x1x?x32xf32> {attn.name = "q"},
                  %k: tensor<?x1x?x32xf32> {attn.name = "k"},
                  %v: tensor<?x1x?x32xf32> {attn.name = "v"},
                  %scale: f32 {attn.name = "scale"},
                  %o: tensor<?x1x?x32xf32> {attn.name = "o"})
    -> tensor<?x1x?x32xf32> {
  %r = attn.attention
      ins(%q, %k, %v : tensor<?x1x?x32xf32>, tensor<?x1x?x32xf32>,
                       tensor<?x1x?x32xf32>)
      scale(%scale : f32)
      outs(%o : tensor<?x1x?x32xf32>) -> tensor<?x1x?x32xf32>
  return %r : tensor<?x1x?x32xf32>
}
