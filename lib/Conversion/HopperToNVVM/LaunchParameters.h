//===- LaunchParameters.h - What launches pass beside the ABI ---*- C++ -*-===//

#ifndef ATTN_LIB_CONVERSION_HOPPERTONVVM_LAUNCHPARAMETERS_H
#define ATTN_LIB_CONVERSION_HOPPERTONVVM_LAUNCHPARAMETERS_H

#include "attn/Dialect/Tile/IR/TileOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace mlir::hopper {

/// A tensor map that a kernel takes: of one of its memref arguments, with a box
/// of `rows` x `columns` in the last two dimensions and 1 in the others.
///
/// A map for parts is one for rows that end anywhere, although the bounds of a
/// map are fixed. It has R, the number of rows, rows that begin R rows before
/// the memref, and one dimension more, which moves them on row by row: the one
/// that is moved by `end` ends with row `end`, and TMA takes what lies beyond
/// for out of bounds.
struct TensorMap {
  unsigned argument;
  int64_t rows, columns;
  bool isForParts;
};

/// What a kernel takes behind the parameters of its arguments.
struct LaunchParameters {
  /// The counter of tiles (ptr) and their number (i32): the kernel is launched
  /// with one program a multiprocessor, or fewer.
  bool isPersistent;
  SmallVector<TensorMap> maps;
};

/// Appends `parameters` to the arguments of the kernel's launches in the plan
/// of `module` (docs/Manifest.md), if there is one.
void addLaunchParameters(ModuleOp module, tile::KernelOp kernel,
                         const LaunchParameters &parameters);

} // namespace mlir::hopper

#endif // ATTN_LIB_CONVERSION_HOPPERTONVVM_LAUNCHPARAMETERS_H
