//===- TileWork.h - What a fused kernel does with its tiles -----*- C++ -*-===//

#ifndef ATTN_COMPILER_TILEWORK_H
#define ATTN_COMPILER_TILEWORK_H

#include "attn/Compiler/Compiler.h"
#include "attn/Runtime/Manifest.h"
#include "attn/Runtime/TileWork.h"

namespace attn {

/// The tiles of batch 0 and head 0 of the fused kernel that `manifest` is of,
/// which was compiled from `module`. Nothing where they depend on data that
/// `options` lacks, or would take too long to tell.
std::optional<TileWork> getTileWork(mlir::ModuleOp module,
                                    const Manifest &manifest,
                                    const TileMapOptions &options);

/// Does so when it is asked, for the kernel that was compiled from MLIR text,
/// without data; of cuDNN's kernels it never knows. Null where the kernels skip
/// nothing.
TileMapper makeTileMapper(std::string text, const Manifest &manifest);

} // namespace attn

#endif // ATTN_COMPILER_TILEWORK_H
