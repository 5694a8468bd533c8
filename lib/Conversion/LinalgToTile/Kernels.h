//===- Kernels.h - The kernels of unfused sequences -------------*- C++ -*-===//

#ifndef ATTN_LIB_CONVERSION_LINALGTOTILE_KERNELS_H
#define ATTN_LIB_CONVERSION_LINALGTOTILE_KERNELS_H

#include "KernelBuilder.h"
#include "attn/Dialect/Attn/IR/AttnOps.h"
#include "attn/Dialect/Tile/Transforms/RegionInliner.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir::attn {

/// The constant that a linalg.fill right before an op has put into the op's
/// output; null if the output's contents matter otherwise.
using FillValue = TypedAttr;

//===----------------------------------------------------------------------===//
// Each builds the kernel and the launch of one op, which stays in place.
//===----------------------------------------------------------------------===//

/// True for `out += a * b` over one reduction loop, with casts.
bool isContraction(linalg::GenericOp op);
LogicalResult buildContraction(KernelBuilder &builder, linalg::GenericOp op,
                               FillValue fill);
LogicalResult buildElementwise(KernelBuilder &builder, linalg::GenericOp op);
LogicalResult buildRowReduction(KernelBuilder &builder, linalg::GenericOp op,
                                FillValue fill);

struct RowSoftmax {
  Value scores, p;
  /// May be null.
  Value lse;
  /// Whether a row of nothing but -inf gives 0 instead of NaN.
  bool zeroMaskedRows;
};
LogicalResult buildRowSoftmax(KernelBuilder &builder,
                              const RowSoftmax &softmax);

//===----------------------------------------------------------------------===//
// Bodies of linalg.generic
//===----------------------------------------------------------------------===//

/// How an operand is accessed by a tile of two loops: along both, one or none.
/// None if it isn't a plain access with the loops as innermost indices.
std::optional<tile::Extent> getAccess(AffineMap map, unsigned rowLoop,
                                      unsigned columnLoop);

/// The sizes of the op's loops, in steps of 1. Diagnoses a loop whose size no
/// operand has.
FailureOr<SmallVector<GridLoop>> getLoops(linalg::GenericOp op);

/// Evaluates the body of an op over a tile of its last two loops.
class BodyBuilder {
public:
  BodyBuilder(KernelBuilder &builder, linalg::GenericOp op,
              ArrayRef<int64_t> tileShape)
      : builder(builder), op(op),
        tileType(RankedTensorType::get(tileShape, builder.kernel.getF32Type())),
        inliner(builder.kernel, op.getLoc(), tileType) {}

  /// Diagnoses accesses and captured values that a kernel can't have.
  static LogicalResult verify(linalg::GenericOp op);
  static LogicalResult verifyCaptured(linalg::GenericOp op);

  /// What the op's kernel takes: its operands and the captures that its body
  /// reads.
  static SmallVector<Value> getKernelOperands(linalg::GenericOp op);

  /// Loads the operands at the loops' positions, and emits the body's ops but
  /// `skip`.
  LogicalResult build(ArrayRef<Value> starts, Operation *skip = nullptr);

  /// The ops of the body that compute `value`, in order.
  static SetVector<Operation *> getSlice(linalg::GenericOp op, Value value);

  /// Emits what computes the body's `value`, which must not depend on elements
  /// or positions in the tile.
  FailureOr<Value> buildScalar(Value value, ArrayRef<Value> starts);

  /// What the body's `value` is for every element of the tile.
  Value getElements(Value value) {
    return inliner.lift(value, tile::Extent::Elements);
  }

  /// The number of float operations of the body.
  static int64_t countFlops(linalg::GenericOp op);

private:
  void mapOutside(Value value);
  void loadOperand(OpOperand &operand, ArrayRef<Value> starts);
  LogicalResult inlineOp(Operation &inner, ArrayRef<Value> starts);
  void inlineIndex(linalg::IndexOp index, ArrayRef<Value> starts);
  void inlineCaptureLoad(CaptureLoadOp load);

  KernelBuilder &builder;
  linalg::GenericOp op;
  RankedTensorType tileType;
  tile::RegionInliner inliner;
};

} // namespace mlir::attn

#endif // ATTN_LIB_CONVERSION_LINALGTOTILE_KERNELS_H
