// RUN: not attn-compile %s --target=sm_99 2>&1 | FileCheck %s --check-prefix=TARGET
// RUN: not attn-compile %s --target=sm_90 2>&1 | FileCheck %s --check-prefix=HOPPER
// RUN: not attn-compile %s --target=sm_100a 2>&1 | FileCheck %s --check-prefix=TCGEN05
// RUN: not attn-compile %s --target=sm_120 2>&1 | FileCheck %s --check-prefix=TCGEN05
// RUN: not attn-opt %s --attn-fused=target=sm_100 2>&1 | FileCheck %s --check-prefix=TCGEN05
// RUN: not attn-compile %s --target=tpu 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not attn-compile %s --emit=ptx 2>&1 | FileCheck %s --check-prefix=CPU-PTX
// RUN: not attn-compile %s --emit=mlir,manifest 2>&1 | FileCheck %s --check-prefix=STEM
// RUN: not attn-compile %t.missing.mlir 2>&1 | FileCheck %s --check-prefix=MISSING
// RUN: not attn-compile %s 2>&1 | FileCheck %s --check-prefix=SEVERAL
// RUN: not attn-compile %s --entry=nothing 2>&1 | FileCheck %s --check-prefix=ENTRY
// RUN: not attn-compile %s --entry=a -o %t.no/such/folder/out.mlir 2>&1 | FileCheck %s --check-prefix=FOLDER
// RUN: not attn-compile %s --entry=a -o /dev/full 2>&1 | FileCheck %s --check-prefix=FULL
// RUN: test -c /dev/full
// RUN: not attn-compile %s --entry=a 2>&1 > /dev/full | FileCheck %s --check-prefix=STDOUT
// RUN: rm -f %t.kept && not attn-compile %s --entry=bad -o %t.kept 2>&1 | FileCheck %s --check-prefix=BAD
// RUN: not ls %t.kept

// TARGET: attn-compile: error: unknown target 'sm_99'; use sm_80, whose PTX such a GPU runs
// HOPPER: attn-compile: error: unknown target 'sm_90'; use sm_90a
// TCGEN05: error: unknown target 'sm_1{{.*}}'; there are no kernels with its tcgen05 instructions yet; use sm_80, whose PTX such a GPU runs
// UNKNOWN: attn-compile: error: unknown target 'tpu'; known are native, cpu, sm_80, sm_90a
// CPU-PTX: attn-compile: error: target cpu has no ptx; choose a GPU target, e.g. --target=sm_80
// STEM: attn-compile: error: several emits need -o STEM
// MISSING: attn-compile: error: cannot open input file '{{.*}}.missing.mlir'
// SEVERAL: error: has several functions; choose one with --entry: a, bad
// ENTRY: error: no function named 'nothing' with a body; there are: a, bad
// FOLDER: error: {{.*}}out.mlir{{.*}}: No such file or directory
// FULL: attn-compile: error: '/dev/full': No space left on device
// STDOUT: attn-compile: error: 'standard output': No space left on device
// BAD: errors.mlir:[[# @LINE + 15]]:{{[0-9]+}}: error: {{.*}}head dimension 584 of q and k is not supported yet
// BAD: note: supported:
// BAD-NOT: error:

func.func @a(%x: tensor<1x2x?x64xf16>) -> tensor<1x2x?x64xf16> {
  %r = attn.attention
      ins(%x, %x, %x : tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16>)
      outs(%x : tensor<1x2x?x64xf16>) -> tensor<1x2x?x64xf16>
  return %r : tensor<1x2x?x64xf16>
}

func.func @bad(%q: tensor<1x2x?x584xf16>, %k: tensor<1x2x?x584xf16>,
               %v: tensor<1x2x?x584xf16>, %o: tensor<1x2x?x584xf16>)
    -> tensor<1x2x?x584xf16> {

  %r = attn.attention
      ins(%q, %k, %v : tensor<1x2x?x584xf16>, tensor<1x2x?x584xf16>, tensor<1x2x?x584xf16>)
      outs(%o : tensor<1x2x?x584xf16>) -> tensor<1x2x?x584xf16>
  return %r : tensor<1x2x?x584xf16>
}
