// RUN: rm -rf %t && attn-compile %attnc_src_root/examples/causal.mlir --dump-stages=%t -o /dev/null
// RUN: ls %t | FileCheck %s

// One file a pass, numbered in order.
// CHECK: 00-attn-insert-checks.mlir
// CHECK-NEXT: 01-attn-lower-merge.mlir
// CHECK-NEXT: 02-attn-select-schedule.mlir
// CHECK-NEXT: 03-attn-bufferize.mlir
