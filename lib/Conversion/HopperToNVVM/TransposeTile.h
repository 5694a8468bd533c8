//===- TransposeTile.h - 8-bit tiles, transposed in shared memory -*- C++ -*-=//

#ifndef ATTN_LIB_CONVERSION_HOPPERTONVVM_TRANSPOSETILE_H
#define ATTN_LIB_CONVERSION_HOPPERTONVVM_TRANSPOSETILE_H

#include "../TileToNVVM/ThreadEmitter.h"
#include "attn/Dialect/Hopper/IR/HopperOps.h"

namespace mlir::hopper {

/// A tile in a slot: how it lies there, and where that begins.
struct TileInSlot {
  RingType ring;
  Value address;
};

/// Writes one warp's part of the transposed `source` to `target`, as
/// hopper.transpose says; `warp` is its number in the transposer.
void transposeTile(tile::ThreadEmitter &emit, TileInSlot source,
                   TileInSlot target, Value warp, Value lane);

} // namespace mlir::hopper

#endif // ATTN_LIB_CONVERSION_HOPPERTONVVM_TRANSPOSETILE_H
