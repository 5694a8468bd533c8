//===- KVLoopKernel.h - The parts of a kernel with a kv_loop ----*- C++ -*-===//

#ifndef ATTN_LIB_CONVERSION_TILETOHOPPER_KVLOOPKERNEL_H
#define ATTN_LIB_CONVERSION_TILETOHOPPER_KVLOOPKERNEL_H

#include "attn/Dialect/Tile/IR/TileOps.h"

namespace mlir::tile {

/// A kernel that computes its product operands from three loads: Q before the
/// loop, K and V in it; and loads in it that rules for scores read.
struct KVLoopKernel {
  /// Finds the parts, or says at the place why the kernel can't be split into
  /// warp roles.
  static FailureOr<KVLoopKernel> match(KernelOp kernel);

  /// True for the ops that the split replaces: the loads and the products.
  bool isReplaced(Operation *op) const {
    return op == qLoad || op == kLoad || op == vLoad || op == qk || op == pv ||
           llvm::is_contained(captureLoads, op);
  }

  /// True if qk, score and softmax of a step don't need the accumulator, so
  /// that they may run before the product of the step before is complete.
  bool canOverlap();

  /// The store behind the loop whose tile fits into Q's; null if there is none.
  StoreOp findTmaStore();

  KVLoopOp loop;
  LoadOp qLoad, kLoad, vLoad;
  /// Loads in the loop whose tiles the consumers read: those with the attribute
  /// `hopper.stages`.
  SmallVector<LoadOp> captureLoads;
  MmaOp qk, pv;
  /// f32 scalars of the qk region if that product starts at slope * (start +
  /// column), else null.
  Value slope, start;
  /// The loop-carried value that `pv` computes.
  unsigned accIndex = 0;
  /// Whether the rows of V are keys although its products take only what has
  /// keys contiguous: 8-bit floats.
  bool transposesV = false;
  /// The store behind the loop that may go through Q's slot, if that is wanted.
  StoreOp tmaStore;
};

} // namespace mlir::tile

#endif // ATTN_LIB_CONVERSION_TILETOHOPPER_KVLOOPKERNEL_H
