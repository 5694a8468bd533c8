// RUN: not attn-compile %s --entry=a --emit=mask-report --lengths=10 2>&1 | FileCheck %s --check-prefix=FORM
// RUN: not attn-compile %s --entry=a --emit=mask-report --lengths=-1x10 2>&1 | FileCheck %s --check-prefix=FORM
// RUN: not attn-compile %s --entry=a --emit=mask-report --lengths=1x10x2 2>&1 | FileCheck %s --check-prefix=FORM
// FORM: attn-compile: error: --lengths takes two lengths, e.g. 1024x4096, not '

// RUN: not attn-compile %s --entry=a --emit=mask-report --lengths=64x128 2>&1 | FileCheck %s --check-prefix=SHARED
// RUN: attn-compile %s --entry=a --emit=mask-report --lengths=128x128 | FileCheck %s --check-prefix=EQUAL
// SHARED: error: reads keys and queries from one tensor, which can't have lengths 64 and 128
// EQUAL: 4 tiles: 0 skipped (0.0%), 0 partial (0.0%), 4 full (100.0%)

// RUN: not attn-compile %s --entry=a --emit=mask-report --lengths=1048577x1048577 2>&1 | FileCheck %s --check-prefix=LARGE
// LARGE: mask-report-errors.mlir:[[# @LINE + 25]]:{{[0-9]+}}: error: a tile map needs lengths up to 1048576, not 1048577

// RUN: not attn-compile %s --entry=fixed --emit=mask-report --lengths=128x64 2>&1 | FileCheck %s --check-prefix=FIXED
// RUN: attn-compile %s --entry=fixed --emit=mask-report | FileCheck %s --check-prefix=DEFAULT
// FIXED: error: q has length 64, not 128; give lengths that agree with it, or none
// DEFAULT: 64 queries x 64 keys

// RUN: not attn-compile %s --entry=a --emit=mask-report --head=2 2>&1 | FileCheck %s --check-prefix=HEAD
// HEAD: error: has no head 2; q has size 2 in dimension 1

// RUN: not attn-compile %s --entry=a --lengths=1x1 2>&1 | FileCheck %s --check-prefix=ALONE
// RUN: not attn-compile %s --entry=a --inputs=x=x.npy 2>&1 | FileCheck %s --check-prefix=ALONE
// RUN: not attn-compile %s --entry=a --emit=mask-report,mlir -o %t 2>&1 | FileCheck %s --check-prefix=OTHERS
// RUN: not attn-compile %s --entry=a --emit=mask-report --variant=naive 2>&1 | FileCheck %s --check-prefix=VARIANT
// ALONE: attn-compile: error: --lengths, --batch, --head and --inputs are about --emit=mask-report
// OTHERS: attn-compile: error: --emit=mask-report goes with no other form
// VARIANT: attn-compile: error: --emit=mask-report is about the fused kernel

// Nothing is written where the ranges come from a captured value.

// RUN: rm -f %t.txt && not attn-compile %attnc_src_root/examples/key-padding.mlir --emit=mask-report -o %t.txt 2>&1 | FileCheck %s --check-prefix=CAPTURE
// RUN: not ls %t.txt
// CAPTURE: key-padding.mlir:21:17: error: key tiles are skipped by what 'tile.gather' reads when the kernel runs

func.func @a(%x: tensor<?x2x?x64xf16>) -> tensor<?x2x?x64xf16> {
  %r = attn.attention
      ins(%x, %x, %x : tensor<?x2x?x64xf16>, tensor<?x2x?x64xf16>, tensor<?x2x?x64xf16>)
      outs(%x : tensor<?x2x?x64xf16>) -> tensor<?x2x?x64xf16>
  return %r : tensor<?x2x?x64xf16>
}

func.func @fixed(%x: tensor<1x2x64x64xf16>) -> tensor<1x2x64x64xf16> {
  %r = attn.attention
      ins(%x, %x, %x : tensor<1x2x64x64xf16>, tensor<1x2x64x64xf16>, tensor<1x2x64x64xf16>)
      outs(%x : tensor<1x2x64x64xf16>) -> tensor<1x2x64x64xf16>
  return %r : tensor<1x2x64x64xf16>
}
