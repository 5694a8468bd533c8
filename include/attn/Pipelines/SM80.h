//===- SM80.h - From tile kernels to LLVM dialect on sm_80 ------*- C++ -*-===//

#ifndef ATTN_PIPELINES_SM80_H
#define ATTN_PIPELINES_SM80_H

namespace mlir {
class OpPassManager;
} // namespace mlir

namespace mlir::attn {

/// Lowers a module of `tile.kernel`s, as tile-lower-math leaves them, to
/// `gpu.module @kernels` in LLVM and NVVM dialect.
void buildTileToSM80Pipeline(OpPassManager &pm);

} // namespace mlir::attn

#endif // ATTN_PIPELINES_SM80_H
