//===- TensorMapArguments.h - Tensor maps in the plan -----------*- C++ -*-===//

#ifndef ATTN_LIB_CONVERSION_HOPPERTONVVM_TENSORMAPARGUMENTS_H
#define ATTN_LIB_CONVERSION_HOPPERTONVVM_TENSORMAPARGUMENTS_H

#include "attn/Dialect/Tile/IR/TileOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace mlir::hopper {

/// A tensor map that a kernel takes: of one of its memref arguments, with a box
/// of `rows` x `columns` in the last two dimensions and 1 in the others.
struct TensorMap {
  unsigned argument;
  int64_t rows, columns;
};

/// Appends the kernel's tensor maps to the arguments of its launches in the
/// plan of `module` (docs/Manifest.md), if there is one.
void addTensorMapArguments(ModuleOp module, tile::KernelOp kernel,
                           ArrayRef<TensorMap> maps);

} // namespace mlir::hopper

#endif // ATTN_LIB_CONVERSION_HOPPERTONVVM_TENSORMAPARGUMENTS_H
