//===- CPU.h - From tile kernels to LLVM dialect on the CPU -----*- C++ -*-===//

#ifndef ATTN_PIPELINES_CPU_H
#define ATTN_PIPELINES_CPU_H

#include <cstdint>

namespace mlir {
class OpPassManager;
} // namespace mlir

namespace mlir::attn {

/// The width of this machine's vector registers: 128, 256 or 512.
int64_t getHostVectorBits();

/// Lowers a module of `tile.kernel`s, as tile-lower-math leaves them, to
/// functions of LLVM dialect.
void buildTileToCPUPipeline(OpPassManager &pm,
                            int64_t vectorBits = getHostVectorBits());

} // namespace mlir::attn

#endif // ATTN_PIPELINES_CPU_H
