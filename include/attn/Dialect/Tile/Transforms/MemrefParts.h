//===- MemrefParts.h - Memrefs that end early -------------------*- C++ -*-===//

#ifndef ATTN_DIALECT_TILE_TRANSFORMS_MEMREFPARTS_H
#define ATTN_DIALECT_TILE_TRANSFORMS_MEMREFPARTS_H

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::tile {

/// The part of `memref` from `start` (null: 0) up to `start + length`, both
/// i32, along dimension `dim`, in the form that kernels take.
Value createPart(ImplicitLocOpBuilder &builder, Value memref, unsigned dim,
                 Value start, Value length);

} // namespace mlir::tile

#endif // ATTN_DIALECT_TILE_TRANSFORMS_MEMREFPARTS_H
