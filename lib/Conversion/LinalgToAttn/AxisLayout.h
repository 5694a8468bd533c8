//===- AxisLayout.h - What the dimensions of a tensor stand for -*- C++ -*-===//
//
// Exporters reshape and transpose freely between the primitives of attention:
// [B, H, N, D] here is [B*H, N, D] there. To compare tensors across such ops,
// each dimension is described by the axes (batch, head, query, ...) that it
// enumerates in row-major order. A layout is carried backwards from a result to
// the operands; where that takes a dimension apart, its axis is split for good.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_LINALGTOATTN_AXISLAYOUT_H
#define ATTN_LIB_CONVERSION_LINALGTOATTN_AXISLAYOUT_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::attn {

using Axis = unsigned;
/// The axes of one dimension, outermost first; none for a dimension of size 1.
using AxisTuple = SmallVector<Axis, 2>;
/// One tuple a dimension.
using AxisLayout = SmallVector<AxisTuple, 4>;

class AxisSpace {
public:
  Axis create(int64_t size) {
    axes.push_back({size, {}});
    return axes.size() - 1;
  }
  int64_t getSize(Axis axis) const { return axes[axis].size; }

  /// Replaces axes that were split since by their parts.
  AxisTuple resolve(ArrayRef<Axis> tuple) const;
  AxisLayout resolve(const AxisLayout &layout) const;

  /// The layout of the operand of a reshape or tensor.cast, given its result's.
  FailureOr<AxisLayout> getSourceLayout(Operation *op,
                                        const AxisLayout &result);

  /// The tuples of the loops of `op`, given the layout of the result that
  /// `init` initialises. Loops that are not dimensions of the result get
  /// `reduced`.
  FailureOr<AxisLayout> getLoops(linalg::LinalgOp op, OpOperand *init,
                                 const AxisLayout &result,
                                 const AxisTuple &reduced);

  /// The layout of an operand, given the loops' tuples.
  FailureOr<AxisLayout> getOperandLayout(linalg::LinalgOp op,
                                         OpOperand *operand,
                                         const AxisLayout &loops);

private:
  /// Takes one dimension apart into dimensions of the given sizes.
  FailureOr<AxisLayout> split(ArrayRef<Axis> tuple, ArrayRef<int64_t> sizes);

  struct Info {
    int64_t size;
    AxisTuple parts;
  };
  std::vector<Info> axes;
};

/// Reshapes and transposes `value` from one layout to another of the same axes.
/// A dimension may hold at most one dynamic axis.
Value relayout(OpBuilder &builder, Location loc, Value value,
               const AxisLayout &from, const AxisLayout &to,
               const AxisSpace &space);

} // namespace mlir::attn

#endif // ATTN_LIB_CONVERSION_LINALGTOATTN_AXISLAYOUT_H
