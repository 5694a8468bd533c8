// RUN: attn-opt %S/../Conversion/TileToHopper/convert-tile-to-hopper.mlir --tile-to-sm90a | FileCheck %s --check-prefixes=CHECK,OVERLAP
// RUN: attn-opt %S/../Conversion/TileToHopper/convert-tile-to-hopper.mlir --tile-to-sm90a=overlap=false | FileCheck %s --check-prefixes=CHECK,SIMPLE

// Q, K and V have a tensor map each: 128 rows of Q, 32 of K and V.
// CHECK: gpu.module @kernels
// CHECK: llvm.func @attention(
// CHECK-SAME: attn.num_warps = 12 : i32
// CHECK-SAME: attn.tensor_maps = [{argument = 0 : i64, columns = 64 : i64, rows = 128 : i64}, {argument = 1 : i64, columns = 64 : i64, rows = 32 : i64}, {argument = 2 : i64, columns = 64 : i64, rows = 32 : i64}]
// CHECK-NOT: {{ (tile|hopper)\.}}
// Q K^T is four steps of 16, P V two. Overlapped: the first QK, three ranges
// but for the empty one, the last PV.
// OVERLAP-COUNT-4: wgmma.mma_async.sync.aligned.m64n32k16
// SIMPLE-COUNT-4: wgmma.mma_async.sync.aligned.m64n32k16
// SIMPLE-COUNT-2: wgmma.mma_async.sync.aligned.m64n64k16
// OVERLAP-COUNT-4: wgmma.mma_async.sync.aligned.m64n32k16
// OVERLAP: wgmma.commit
// OVERLAP-COUNT-2: wgmma.mma_async.sync.aligned.m64n64k16
// OVERLAP: wgmma.wait_group.sync.aligned 1;
// OVERLAP: wgmma.wait_group.sync.aligned 0;
// CHECK-NOT: {{ (tile|hopper)\.}}
