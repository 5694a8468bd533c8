//===- MaskCondition.h - A mask as intervals of keys ------------*- C++ -*-===//

#ifndef ATTN_LIB_DIALECT_TILE_TRANSFORMS_MASKCONDITION_H
#define ATTN_LIB_DIALECT_TILE_TRANSFORMS_MASKCONDITION_H

#include "attn/Dialect/Tile/IR/TileOps.h"
#include "attn/Dialect/Tile/Transforms/RegionInliner.h"

namespace mlir::tile {

/// Whether each element of the tile of `op`, whose region `inliner` has
/// emitted, is visible.
///
/// What a condition asks of the key becomes bounds that are computed once a
/// row, and all upper (and all lower) bounds become one: an element compares
/// only the number of its column. Quotients and remainders of the key by a
/// constant are bounds too, in as many intervals as periods that a tile
/// touches.
Value emitMaskCondition(OpBuilder &builder, MaskOp op, RegionInliner &inliner);

} // namespace mlir::tile

#endif // ATTN_LIB_DIALECT_TILE_TRANSFORMS_MASKCONDITION_H
