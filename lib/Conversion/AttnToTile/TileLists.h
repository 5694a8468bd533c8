//===- TileLists.h - Which tiles a mask leaves to visit ---------*- C++ -*-===//

#ifndef ATTN_LIB_CONVERSION_ATTNTOTILE_TILELISTS_H
#define ATTN_LIB_CONVERSION_ATTNTOTILE_TILELISTS_H

#include "PrepassKernel.h"

namespace mlir::attn {

/// Adds `_tiles`, which reads what the kernel before wrote, `_classes`, and
/// writes the operands `tiles` and `bounds` of tile.mask to `lists` and
/// `ranges`.
void buildTilesKernel(Prepass &prepass, Value lists, Value ranges, Value grid);

} // namespace mlir::attn

#endif // ATTN_LIB_CONVERSION_ATTNTOTILE_TILELISTS_H
