//===- SM90a.h - From tile kernels to LLVM dialect on sm_90a ----*- C++ -*-===//

#ifndef ATTN_PIPELINES_SM90A_H
#define ATTN_PIPELINES_SM90A_H

namespace mlir {
class OpPassManager;
} // namespace mlir

namespace mlir::attn {

/// Lowers a module of `tile.kernel`s with a `tile.kv_loop` each to
/// `gpu.module @kernels` in LLVM and NVVM dialect.
void buildTileToSM90aPipeline(OpPassManager &pm);

} // namespace mlir::attn

#endif // ATTN_PIPELINES_SM90A_H
