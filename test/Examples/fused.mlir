// Every example parses and becomes one fused kernel, whose mask and score code is
// elementwise.
// RUN: attn-opt --attn-select-schedule=target=cpu --attn-bufferize --convert-attn-to-tile --tile-lower-kv-loop --tile-rewrite-masks --tile-expand-online-softmax --tile-lower-math %attnc_src_root/examples/additive-bias.mlir | FileCheck %s
// RUN: attn-opt --attn-select-schedule=target=cpu --attn-bufferize --convert-attn-to-tile --tile-lower-kv-loop --tile-rewrite-masks --tile-expand-online-softmax --tile-lower-math %attnc_src_root/examples/alibi-slopes.mlir | FileCheck %s
// RUN: attn-opt --attn-select-schedule=target=cpu --attn-bufferize --convert-attn-to-tile --tile-lower-kv-loop --tile-rewrite-masks --tile-expand-online-softmax --tile-lower-math %attnc_src_root/examples/alibi-symmetric.mlir | FileCheck %s
// RUN: attn-opt --attn-select-schedule=target=cpu --attn-bufferize --convert-attn-to-tile --tile-lower-kv-loop --tile-rewrite-masks --tile-expand-online-softmax --tile-lower-math %attnc_src_root/examples/alibi.mlir | FileCheck %s
// RUN: attn-opt --attn-select-schedule=target=cpu --attn-bufferize --convert-attn-to-tile --tile-lower-kv-loop --tile-rewrite-masks --tile-expand-online-softmax --tile-lower-math %attnc_src_root/examples/boolean-mask.mlir | FileCheck %s
// RUN: attn-opt --attn-select-schedule=target=cpu --attn-bufferize --convert-attn-to-tile --tile-lower-kv-loop --tile-rewrite-masks --tile-expand-online-softmax --tile-lower-math %attnc_src_root/examples/causal-top-left.mlir | FileCheck %s
// RUN: attn-opt --attn-select-schedule=target=cpu --attn-bufferize --convert-attn-to-tile --tile-lower-kv-loop --tile-rewrite-masks --tile-expand-online-softmax --tile-lower-math %attnc_src_root/examples/causal.mlir | FileCheck %s
// RUN: attn-opt --attn-select-schedule=target=cpu --attn-bufferize --convert-attn-to-tile --tile-lower-kv-loop --tile-rewrite-masks --tile-expand-online-softmax --tile-lower-math %attnc_src_root/examples/dilated-window.mlir | FileCheck %s
// RUN: attn-opt --attn-select-schedule=target=cpu --attn-bufferize --convert-attn-to-tile --tile-lower-kv-loop --tile-rewrite-masks --tile-expand-online-softmax --tile-lower-math %attnc_src_root/examples/documents.mlir | FileCheck %s
// RUN: attn-opt --attn-select-schedule=target=cpu --attn-bufferize --convert-attn-to-tile --tile-lower-kv-loop --tile-rewrite-masks --tile-expand-online-softmax --tile-lower-math %attnc_src_root/examples/head-softcap.mlir | FileCheck %s
// RUN: attn-opt --attn-select-schedule=target=cpu --attn-bufferize --convert-attn-to-tile --tile-lower-kv-loop --tile-rewrite-masks --tile-expand-online-softmax --tile-lower-math %attnc_src_root/examples/key-padding.mlir | FileCheck %s
// RUN: attn-opt --attn-select-schedule=target=cpu --attn-bufferize --convert-attn-to-tile --tile-lower-kv-loop --tile-rewrite-masks --tile-expand-online-softmax --tile-lower-math %attnc_src_root/examples/neighborhood.mlir | FileCheck %s
// RUN: attn-opt --attn-select-schedule=target=cpu --attn-bufferize --convert-attn-to-tile --tile-lower-kv-loop --tile-rewrite-masks --tile-expand-online-softmax --tile-lower-math %attnc_src_root/examples/packed.mlir | FileCheck %s
// RUN: attn-opt --attn-select-schedule=target=cpu --attn-bufferize --convert-attn-to-tile --tile-lower-kv-loop --tile-rewrite-masks --tile-expand-online-softmax --tile-lower-math %attnc_src_root/examples/paged-decode.mlir | FileCheck %s
// RUN: attn-opt --attn-select-schedule=target=cpu --attn-bufferize --convert-attn-to-tile --tile-lower-kv-loop --tile-rewrite-masks --tile-expand-online-softmax --tile-lower-math %attnc_src_root/examples/prefix-lm.mlir | FileCheck %s
// RUN: attn-opt --attn-select-schedule=target=cpu --attn-bufferize --convert-attn-to-tile --tile-lower-kv-loop --tile-rewrite-masks --tile-expand-online-softmax --tile-lower-math %attnc_src_root/examples/sink.mlir | FileCheck %s
// RUN: attn-opt --attn-select-schedule=target=cpu --attn-bufferize --convert-attn-to-tile --tile-lower-kv-loop --tile-rewrite-masks --tile-expand-online-softmax --tile-lower-math %attnc_src_root/examples/sliding-window.mlir | FileCheck %s
// RUN: attn-opt --attn-select-schedule=target=cpu --attn-bufferize --convert-attn-to-tile --tile-lower-kv-loop --tile-rewrite-masks --tile-expand-online-softmax --tile-lower-math %attnc_src_root/examples/softcap.mlir | FileCheck %s
// RUN: attn-opt --attn-select-schedule=target=cpu --attn-bufferize --convert-attn-to-tile --tile-lower-kv-loop --tile-rewrite-masks --tile-expand-online-softmax --tile-lower-math %attnc_src_root/examples/t5-relative-bias.mlir | FileCheck %s

// CHECK: tile.launch @fused_attn_cpu_bf16_d64
// CHECK: tile.kernel @fused_attn_cpu_bf16_d64
// CHECK: scf.for
// CHECK-NOT: tile.{{score_mod|mask|online_softmax}}
// CHECK: arith.select
// CHECK: tile.return
