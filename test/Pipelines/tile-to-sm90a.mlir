// RUN: attn-opt %S/../Conversion/TileToHopper/convert-tile-to-hopper.mlir --tile-to-sm90a | FileCheck %s --check-prefixes=CHECK,OVERLAP
// RUN: attn-opt %S/../Conversion/TileToHopper/convert-tile-to-hopper.mlir --tile-to-sm90a | FileCheck %s --check-prefix=EXACT
// RUN: sed 's/<pipeline = overlap>/<pipeline = simple>/' %S/../Conversion/TileToHopper/convert-tile-to-hopper.mlir \
// RUN:   | attn-opt --tile-to-sm90a | FileCheck %s --check-prefixes=CHECK,SIMPLE
// RUN: sed 's/<pipeline = overlap>/<pipeline = overlap, lazy_rescale = true>/' %S/../Conversion/TileToHopper/convert-tile-to-hopper.mlir \
// RUN:   | attn-opt --tile-to-sm90a | FileCheck %s --check-prefix=DEFER

// The first step has nothing to ask; the loops over partial, full and partial
// steps vote once each, and reduce no maximum but behind the vote.
// DEFER: wgmma.mma_async
// DEFER-NOT: nvvm.vote.sync
// DEFER: llvm.br
// DEFER: nvvm.vote.sync any
// DEFER-NEXT: llvm.cond_br
// DEFER: nvvm.vote.sync any
// DEFER-NEXT: llvm.cond_br
// DEFER: nvvm.vote.sync any
// DEFER-NEXT: llvm.cond_br
// DEFER-NOT: nvvm.vote.sync
// EXACT-NOT: nvvm.vote.sync

// CHECK: gpu.module @kernels
// CHECK: llvm.func @attention(
// One tensor map each for Q, K and V.
// CHECK-SAME: llvm.byval
// CHECK-SAME: llvm.byval
// CHECK-SAME: llvm.byval
// CHECK-SAME: attn.num_warps = 12 : i32
// CHECK-NOT: {{ (tile|hopper)\.}}
// Q K^T is four steps of 16, P V two. Overlapped: the first QK, three ranges,
// the last PV.
// OVERLAP-COUNT-4: wgmma.mma_async.sync.aligned.m64n32k16
// SIMPLE-COUNT-4: wgmma.mma_async.sync.aligned.m64n32k16
// SIMPLE-COUNT-2: wgmma.mma_async.sync.aligned.m64n64k16
// OVERLAP-COUNT-4: wgmma.mma_async.sync.aligned.m64n32k16
// OVERLAP: wgmma.commit
// OVERLAP-COUNT-2: wgmma.mma_async.sync.aligned.m64n64k16
// OVERLAP: wgmma.wait_group.sync.aligned 1;
// OVERLAP: wgmma.wait_group.sync.aligned 0;
// CHECK-NOT: {{ (tile|hopper)\.}}
