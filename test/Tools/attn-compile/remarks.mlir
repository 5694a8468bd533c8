// Remarks of passes go to a file that LLVM's tools read, and are printed too.

// RUN: attn-compile %s --entry=squared --target=cpu --remarks=%t.yaml -o %t.mlir 2>&1 | FileCheck %s --check-prefix=PRINTED
// PRINTED: remarks.mlir:[[# @LINE + 38]]:{{[0-9]+}}: remark: mask analysis can't see through this
// RUN: FileCheck %s < %t.yaml
// CHECK: Pass: {{ *}}convert-attn-to-tile
// CHECK: Pass: {{ *}}tile-split-kv-ranges
// CHECK-NEXT: Name: {{ *}}Remark
// CHECK-NEXT: DebugLoc: {{ *}}{ File: '{{.*}}remarks.mlir',
// CHECK: Line: [[# @LINE + 32]],
// CHECK: Function: {{ *}}squared
// CHECK: String: {{.*}}mask analysis can
// RUN: llvm-remarkutil count --parser=yaml --count-by=remark-name %t.yaml | FileCheck %s --check-prefix=COUNT
// COUNT: remarks.mlir,2

// RUN: attn-run %s --entry=squared --target=cpu --repeat=0 --variant=all --remarks=%t.run.yaml --shapes=1x1x4x8,1x1x4x8,1x1x4x8 > %t.log 2>&1
// RUN: FileCheck %s < %t.run.yaml

// An empty file says that there is nothing to say.
// RUN: attn-compile %s --entry=plain --target=cpu --remarks=%t.empty.yaml -o %t.mlir
// RUN: count 0 < %t.empty.yaml
// RUN: not attn-compile %s --entry=plain --target=cpu --remarks=%t.none/r.yaml -o %t.mlir 2>&1 | FileCheck %s --check-prefix=FOLDER
// FOLDER: attn-compile: error: '{{.*}}r.yaml': No such file or directory

func.func @plain(%q: tensor<?x1x?x8xf32>, %k: tensor<?x1x?x8xf32>,
                 %v: tensor<?x1x?x8xf32>, %o: tensor<?x1x?x8xf32>)
    -> tensor<?x1x?x8xf32> {
  %r = attn.attention ins(%q, %k, %v : tensor<?x1x?x8xf32>,
                          tensor<?x1x?x8xf32>, tensor<?x1x?x8xf32>)
                      outs(%o : tensor<?x1x?x8xf32>) -> tensor<?x1x?x8xf32>
  return %r : tensor<?x1x?x8xf32>
}

func.func @squared(%q: tensor<?x1x?x8xf32>, %k: tensor<?x1x?x8xf32>,
                   %v: tensor<?x1x?x8xf32>, %o: tensor<?x1x?x8xf32>)
    -> tensor<?x1x?x8xf32> {
  %r = attn.attention ins(%q, %k, %v : tensor<?x1x?x8xf32>,
                          tensor<?x1x?x8xf32>, tensor<?x1x?x8xf32>)
                      outs(%o : tensor<?x1x?x8xf32>)
    mask_mod (%b: i32, %h: i32, %q_idx: i32, %kv_idx: i32) {
      %square = arith.muli %q_idx, %q_idx : i32
      %last = arith.xori %square, %kv_idx : i32
      %seen = arith.cmpi sle, %last, %q_idx : i32
      attn.yield %seen : i1
    } -> tensor<?x1x?x8xf32>
  return %r : tensor<?x1x?x8xf32>
}
