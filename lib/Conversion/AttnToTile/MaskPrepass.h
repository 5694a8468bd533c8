//===- MaskPrepass.h - Kernels that bound a mask before it runs -*- C++ -*-===//
//
// A mask_mod that reads captured tensors by the position of the query or key,
// as document numbers or a mask tensor, says only when it runs which tiles it
// hides. Two small kernels find out before the attention: the first takes the
// least and largest value that each read gives in every tile, the second
// evaluates the rule on these bounds and writes the range of keys that each
// granule of queries sees.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_ATTNTOTILE_MASKPREPASS_H
#define ATTN_LIB_CONVERSION_ATTNTOTILE_MASKPREPASS_H

#include "attn/Dialect/Attn/IR/AttnOps.h"
#include "attn/Dialect/Tile/IR/TileOps.h"

namespace mlir::attn {

/// What the pre-pass leaves for the masks of the attention kernel: see the
/// operand `bounds` of tile.mask.
struct MaskBounds {
  /// Of the host function.
  Value ranges;
  int64_t rows;
  /// Whether the ranges differ between batches and heads.
  bool hasBatches, hasHeads;
};

/// The tiles of the attention kernel that a pre-pass is for. `getFactor` emits
/// a factor of 0 or 1 of its grids in host code, or returns null.
struct PrepassTiles {
  int64_t blockM, blockN;
  function_ref<Value()> getFactor;
};

/// Adds the pre-pass of `op`, kernels and launches in front of it, if its mask
/// has a use for one. Names of kernels start with `name`.
std::optional<MaskBounds> buildMaskPrepass(AttentionOp op, StringRef name,
                                           const PrepassTiles &tiles,
                                           SymbolTable &symbols);

} // namespace mlir::attn

#endif // ATTN_LIB_CONVERSION_ATTNTOTILE_MASKPREPASS_H
