//===- Passes.h - Passes on the tile dialect --------------------*- C++ -*-===//

#ifndef ATTN_DIALECT_TILE_TRANSFORMS_PASSES_H
#define ATTN_DIALECT_TILE_TRANSFORMS_PASSES_H

#include "attn/Dialect/Tile/IR/TileOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Pass/Pass.h"

namespace mlir::tile {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "attn/Dialect/Tile/Transforms/Passes.h.inc"

/// What tile-assign-layouts does.
LogicalResult assignLayouts(KernelOp kernel);

/// Gives every tile of `kernel` that has no layout one in registers:
/// `tileLayout` to those of rank 2; those of rank 1 follow from their uses.
LogicalResult assignRegisterLayouts(KernelOp kernel, Attribute tileLayout);
} // namespace mlir::tile

#endif // ATTN_DIALECT_TILE_TRANSFORMS_PASSES_H
