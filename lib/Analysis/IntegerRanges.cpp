//===- IntegerRanges.cpp - What integers of a mask lie between ------------===//

#include "attn/Analysis/IntegerRanges.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::tile;

ConstantIntRanges IntegerRanges::get(Value value) {
  if (auto it = known.find(value); it != known.end())
    return it->second;
  ConstantIntRanges range = infer(value);
  known.try_emplace(value, range);
  return range;
}

ConstantIntRanges IntegerRanges::infer(Value value) {
  const unsigned width = ConstantIntRanges::getStorageBitwidth(value.getType());
  ConstantIntRanges range = ConstantIntRanges::maxRange(width);
  Operation *op = value.getDefiningOp();
  if (op ? isa<memref::DimOp>(op) : value.getParentBlock() == &rule)
    return ConstantIntRanges::fromSigned(APInt(width, 0),
                                         APInt(width, kPositionBound - 1));
  auto inferable = dyn_cast_if_present<InferIntRangeInterface>(op);
  if (!inferable || !llvm::all_of(op->getOperandTypes(), [](Type type) {
        return type.isIntOrIndex();
      }))
    return range;
  SmallVector<ConstantIntRanges> operands;
  for (Value operand : op->getOperands())
    operands.push_back(get(operand));
  inferable.inferResultRanges(
      operands, [&](Value result, const ConstantIntRanges &inferred) {
        if (result == value)
          range = inferred;
      });
  return range;
}
