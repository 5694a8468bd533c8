//===- RangeReduction.cpp - tile.reduce_range by the threads of a warp ----===//

#include "KernelLowering.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::tile;

static constexpr int64_t kWarpSize = 32;

/// Numbers that a thread takes in a step of the loop, if there are as many: the
/// reads of all are under way together.
static constexpr int64_t kNumbersInStep = 4;

static int64_t getNumbersInStep(ReduceRangeOp op) {
  APInt begin, end;
  if (!matchPattern(op.getBegin(), m_ConstantInt(&begin)) ||
      !matchPattern(op.getEnd(), m_ConstantInt(&end)))
    return kNumbersInStep;
  int64_t count = end.getSExtValue() - begin.getSExtValue();
  return std::clamp<int64_t>(
      llvm::divideCeil(std::max<int64_t>(count, 0), kWarpSize), 1,
      kNumbersInStep);
}

Value KernelLowering::combine(ReduceRangeOp op, unsigned result, Value a,
                              Value b) {
  if (op.isMin(result))
    return emit.create<LLVM::SMinOp>(a, b);
  return emit.create<LLVM::SMaxOp>(a, b);
}

/// `carried` with what the body yields for `number`.
FailureOr<SmallVector<Value>>
KernelLowering::combineNumber(ReduceRangeOp op, Value number,
                              ArrayRef<Value> carried) {
  Block &body = op.getBody().front();
  scalars.map(body.getArgument(0), number);
  if (failed(lowerNested(body)))
    return failure();
  SmallVector<Value> next;
  for (auto [i, value] :
       llvm::enumerate(getLowered(body.getTerminator()->getOperands())))
    next.push_back(combine(op, i, carried[i], value));
  return next;
}

LogicalResult KernelLowering::lowerReduceRange(ReduceRangeOp op) {
  if (kernel.getNumWarps() != 1)
    return op.emitOpError("is shared by the threads of one warp, but the "
                          "kernel has ")
           << kernel.getNumWarps() << "; give it num_warps = 1";
  Value begin = getScalar(op.getBegin()), end = getScalar(op.getEnd());
  Value last = emit.sub(end, emit.i32(1));
  SmallVector<Value> neutral;
  for (unsigned i = 0; i < op.getNumResults(); ++i)
    neutral.push_back(emit.i32(op.getNeutral(i)));
  LogicalResult result = success();
  int64_t numbersInStep = getNumbersInStep(op);
  auto body = [&](Value first, ValueRange carried) {
    SmallVector<Value> values(carried);
    for (int64_t i = 0; i < numbersInStep && succeeded(result); ++i) {
      Value number = first;
      // Behind the end the last number comes again, which changes nothing.
      if (i > 0)
        number = emit.create<LLVM::SMinOp>(
            emit.add(first, emit.i32(i * kWarpSize)), last);
      FailureOr<SmallVector<Value>> next = combineNumber(op, number, values);
      result = failure(failed(next));
      if (succeeded(next))
        values = std::move(*next);
    }
    return values;
  };
  SmallVector<Value> values =
      emit.createFor(emit.add(begin, lane), end,
                     emit.i32(numbersInStep * kWarpSize), neutral, body);
  for (auto [i, value] : llvm::enumerate(values)) {
    auto kind = op.isMin(i) ? NVVM::ReduxKind::MIN : NVVM::ReduxKind::MAX;
    scalars.map(
        op.getResult(i),
        emit.create<NVVM::ReduxOp>(emit.getI32Type(), value, kind, emit.i32(-1))
            .getResult());
  }
  return result;
}
