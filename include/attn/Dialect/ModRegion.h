//===- ModRegion.h - Shared syntax and checks of scalar regions -*- C++ -*-===//
//
// score_mod and mask_mod are written `(%x: f32, %i: i32) { ... }` in both the
// attn and the tile dialect.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_MODREGION_H
#define ATTN_DIALECT_MODREGION_H

#include "mlir/IR/OpImplementation.h"

namespace mlir::attn {

/// Parses `(%arg: type, ...) { ... }` into `region`. The names of an isolated
/// region are its own.
ParseResult parseModRegion(OpAsmParser &parser, Region &region,
                           bool isIsolated = false);

/// Prints what parseModRegion parses.
void printModRegion(OpAsmPrinter &printer, Operation *op, Region &region);

/// Checks that the region has one block with arguments of `argTypes`, whose
/// terminator is the yield of the parent op's dialect with values of
/// `yieldTypes`, and that everything in it is pure scalar arith or math, or
/// passes `isAllowed`. `name` is used in diagnostics.
LogicalResult
verifyModRegion(Region &region, StringRef name, TypeRange argTypes,
                TypeRange yieldTypes,
                function_ref<bool(Operation *)> isAllowed = nullptr);

} // namespace mlir::attn

#endif // ATTN_DIALECT_MODREGION_H
