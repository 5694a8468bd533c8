// Every variant is recorded, saved, and shown again as it was.
// RUN: attn-run %s --target=cpu --variant=all --repeat=2 --shapes=1x2x70x16,1x2x70x16,1x2x70x16 --profile=%t.json --trace=%t.trace.json --layers=4 > %t.out
// RUN: FileCheck %s < %t.out
// RUN: sed '1,/^$/d' %t.out > %t.shown
// RUN: attn-prof %t.json --layers=4 | diff %t.shown -
// RUN: %python %S/Inputs/check_profile.py %t.json %t.trace.json

// CHECK-LABEL: naive (cpu): times by host clock
// CHECK-DAG: naive_mask_bf16{{ +}}2
// CHECK-DAG: memcpy DtoD{{ +}}2
// CHECK: wall {{[0-9.]+}} us = kernel {{[0-9.]+}} + copy {{[0-9.]+}} + idle {{[0-9.]+}}; 2 calls of
// CHECK: host: before that compile {{.*}}, before that plan {{.*}}, first call {{.*}}, code compiled
// CHECK: [hidden-copy] Hidden copy: 'memcpy DtoD' runs 1.0 times a call {{.*}} made for 'naive_mask_bf16'{{.*}} In 4 layers:
// CHECK: [score-matrix]
// CHECK: [first-call]
// CHECK-LABEL: inplace (cpu)
// CHECK-NOT: [hidden-copy]
// CHECK: [score-matrix]
// CHECK-LABEL: math (cpu)
// CHECK: [mask-rebuilt]
// CHECK-LABEL: fused (cpu)
// CHECK-NOT: [score-matrix]
// CHECK-LABEL: region
// CHECK: naive{{ +}}[[#]].[[#]]{{ +}}1.00 x{{ +}}5{{ +}}1
// CHECK: inplace{{ +}}[[#]].[[#]]{{ +}}[[#]].[[#]] x{{ +}}5{{ +}}0
// CHECK: math{{ +}}[[#]].[[#]]{{ +}}[[#]].[[#]] x{{ +}}20{{ +}}0
// CHECK: fused{{ +}}[[#]].[[#]]{{ +}}[[#]].[[#]] x{{ +}}1{{ +}}0

// Guesses: right, wrong (3), malformed (2, before anything runs).
// RUN: attn-run %s --target=cpu --repeat=1 --shapes=1x2x70x16,1x2x70x16,1x2x70x16 --profile --expect='kernels=1,copies=0,time<60s' | FileCheck %s --check-prefix=RIGHT
// RIGHT: kernels=1{{ +}}1{{ +}}right
// RIGHT: copies=0{{ +}}0{{ +}}right
// RIGHT: time<60s{{ +}}{{.*}}right
// RUN: attn-run %s --target=cpu --repeat=1 --shapes=1x2x70x16,1x2x70x16,1x2x70x16 --profile --expect='path=HMMA' > %t.wrong; test $? -eq 3
// RUN: FileCheck %s --check-prefix=WRONG < %t.wrong
// WRONG: path=HMMA{{ +}}unknown on cpu{{ +}}wrong
// RUN: attn-run %s --target=cpu --profile --expect='kernels' > %t.out 2> %t.err; test $? -eq 2
// RUN: test ! -s %t.out

// RUN: not attn-run %s --target=cpu --layers=3 2>&1 | FileCheck %s --check-prefix=ALONE
// ALONE: attn-run: error: --expect, --layers, --baseline, --trace and --report need --profile
// RUN: not attn-run %s --target=cpu --profile --repeat=0 2>&1 | FileCheck %s --check-prefix=NOTIME
// NOTIME: attn-run: error: --profile needs a --repeat above 0
// RUN: not attn-run %s --target=cpu --repeat=1 --shapes=1x2x70x16,1x2x70x16,1x2x70x16 --profile=%t.none/p.json 2>&1 | FileCheck %s --check-prefix=FOLDER
// FOLDER: attn-run: error: '{{.*}}p.json': No such file or directory

func.func @causal(%q: tensor<?x2x?x16xbf16> {attn.name = "q"},
                  %k: tensor<?x2x?x16xbf16> {attn.name = "k"},
                  %v: tensor<?x2x?x16xbf16> {attn.name = "v"},
                  %o: tensor<?x2x?x16xbf16> {attn.name = "o"})
    -> tensor<?x2x?x16xbf16> {
  %r = attn.attention
    ins(%q, %k, %v : tensor<?x2x?x16xbf16>, tensor<?x2x?x16xbf16>, tensor<?x2x?x16xbf16>)
    outs(%o : tensor<?x2x?x16xbf16>)
    mask_mod (%b: i32, %h: i32, %q_idx: i32, %kv_idx: i32) {
      %visible = arith.cmpi sle, %kv_idx, %q_idx : i32
      attn.yield %visible : i1
    } -> tensor<?x2x?x16xbf16>
  return %r : tensor<?x2x?x16xbf16>
}
