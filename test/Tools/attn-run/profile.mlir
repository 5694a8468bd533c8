// Every variant is recorded, saved, and shown again as it was.
// RUN: attn-run %s --target=cpu --variant=all --repeat=2 --shapes=1x2x70x16,1x2x70x16,1x2x70x16 --profile=%t.json --trace=%t.trace.json --layers=4 > %t.out
// RUN: FileCheck %s < %t.out
// RUN: FileCheck %s --check-prefix=COMMAND --implicit-check-not='copy t1' < %t.out
// COMMAND: naive (cpu): 5 kernels + 1 copy
// COMMAND-NEXT: inplace (cpu): 5 kernels
// COMMAND: made by: {{.*}}attn-run {{.*}}profile.mlir --target=cpu --variant=all
// What made a profile can be typed again.
// RUN: attn-run %s --target=cpu --repeat=1 --shapes=1x2x70x16,1x2x70x16,1x2x70x16 --profile --expect='time<100s' > %t.first
// RUN: sed -n 's/^  made by: //p' %t.first > %t.sh
// RUN: sh %t.sh | FileCheck %s --check-prefix=AGAIN
// AGAIN: made by: {{.*}} '--expect=time<100s'
// AGAIN: guesses: all right
// RUN: sed '1,/^$/d' %t.out > %t.shown
// RUN: attn-prof %t.json --layers=4 | diff %t.shown -
// RUN: %python %S/Inputs/check_profile.py %t.json %t.trace.json

// CHECK-LABEL: naive (cpu): times by host clock
// CHECK-DAG: naive_mask_bf16{{ +}}2
// CHECK-DAG: memcpy DtoD{{ +}}2
// CHECK: wall {{[0-9.]+}} us = kernel {{[0-9.]+}} + copy {{[0-9.]+}} + idle {{[0-9.]+}}; 2 calls of
// CHECK: before that: compile {{.*}}, plan {{.*}}, first call {{.*}}, code compiled
// CHECK: [hidden-copy] Hidden copy: 'memcpy DtoD' runs once a call {{.*}} made for 'naive_mask_bf16'{{.*}} In 4 layers:
// CHECK: [score-matrix] {{.*}} In 4 layers: {{[0-9.]+}} kB.
// CHECK: [first-call] {{.*}} In 4 layers of one shape: {{[0-9.]+ m?s}}, once.
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
// What can't come true is said before anything runs.
// RUN: attn-run %s --target=cpu --profile --expect='naive:kernels=1' > %t.out 2> %t.err; test $? -eq 2
// RUN: FileCheck %s --check-prefix=REGION < %t.err
// RUN: test ! -s %t.out
// REGION: attn-run: error: --expect: 'naive:kernels=1': there is no region 'naive'; there are: fused
// RUN: attn-run %s --target=cpu --variant=all --profile --baseline=cudnn > %t.out 2> %t.err; test $? -eq 2
// RUN: FileCheck %s --check-prefix=BASELINE < %t.err
// BASELINE: attn-run: error: --baseline: there is no region 'cudnn'; there are: naive, inplace, math, fused
// RUN: not attn-run %s --target=cpu --explain --profile 2>&1 | FileCheck %s --check-prefix=EXPLAIN
// EXPLAIN: attn-run: error: --explain runs nothing; --profile, --verify, --outputs and --remarks are for another command without it
// RUN: not attn-run %s --target=sm_99 --explain 2> %t.err
// RUN: FileCheck %s --check-prefix=TARGET --implicit-check-not=sm_99 < %t.err
// TARGET: attn-run: error: {{.*}}sm_99

// RUN: not attn-run %s --target=cpu --repeat=1 --shapes=1x2x70x16,1x2x70x16,1x2x70x16 --profile=%t.none/p.json 2>&1 | FileCheck %s --check-prefix=FOLDER
// FOLDER: attn-run: error: '{{.*}}p.json': No such file or directory

// A limit of file sizes is an error, and leaves nothing behind.
// RUN: rm -rf %t.dir && mkdir %t.dir
// RUN: sh -c 'ulimit -f 1; attn-run %s --target=cpu --repeat=1 --shapes=1x2x70x16,1x2x70x16,1x2x70x16 --profile=%t.dir/p.json' > /dev/null 2> %t.err; test $? -eq 1
// RUN: FileCheck %s --check-prefix=LIMIT < %t.err
// RUN: ls -A %t.dir | count 0
// LIMIT: attn-run: error: '{{.*}}p.json': File too large

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
