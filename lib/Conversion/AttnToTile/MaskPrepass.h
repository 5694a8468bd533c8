//===- MaskPrepass.h - Kernels that look at a mask before it runs - C++ -*-===//
//
// Of a mask whose hidden tiles aren't the ends of the keys, or that reads
// captured tensors by the position of the query or key, one range of keys says
// too little. Small kernels in front of the attention find out what each tile
// of queries and keys is, and list the tiles to visit:
//
// - `_extremes` takes the least and largest integer that each read by query or
//   key alone gives in every tile;
// - `_classes` evaluates the mask for granules of queries and tiles of keys: on
//   bounds, and where these don't decide, on the elements;
// - `_tiles` lists for each tile of queries the tiles of keys of which it sees
//   a key, those without hidden elements first, and says for each granule what
//   part of the list it needs.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_ATTNTOTILE_MASKPREPASS_H
#define ATTN_LIB_CONVERSION_ATTNTOTILE_MASKPREPASS_H

#include "attn/Dialect/Attn/IR/AttnOps.h"
#include "attn/Dialect/Tile/IR/TileOps.h"

namespace mlir::attn {

/// What the pre-pass leaves for the mask of the attention kernel: see the
/// operands `bounds` and `tiles` of tile.mask.
struct MaskTiles {
  /// Of the host function.
  Value ranges, tiles;
  int64_t rows;
  /// Whether they differ between batches and heads. Those of packed queries lie
  /// one behind the other.
  bool hasBatches, hasHeads;
};

/// The tiles of the attention kernel that a pre-pass is for. `getFactor` emits
/// a factor of 0 or 1 of its grids in host code, or returns null.
struct PrepassTiles {
  int64_t blockM, blockN;
  function_ref<Value()> getFactor;
};

/// Adds the pre-pass of `op`, which has a mask, in front of it: kernels, whose
/// names start with `name`, and launches.
MaskTiles buildMaskPrepass(AttentionOp op, StringRef name,
                           const PrepassTiles &tiles, SymbolTable &symbols);

} // namespace mlir::attn

#endif // ATTN_LIB_CONVERSION_ATTNTOTILE_MASKPREPASS_H
