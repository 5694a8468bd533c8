//===- BodyBuilder.cpp - Bodies of linalg.generic over tiles --------------===//

#include "Kernels.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace mlir::attn;
using tile::Extent;

std::optional<Extent> attn::getAccess(AffineMap map, unsigned rowLoop,
                                      unsigned columnLoop) {
  ArrayRef<AffineExpr> outer = map.getResults();
  unsigned extent = 0;
  auto takeLoop = [&](unsigned loop, Extent along) {
    if (outer.empty() || !isa<AffineDimExpr>(outer.back()) ||
        !outer.back().isFunctionOfDim(loop))
      return;
    outer = outer.drop_back();
    extent |= static_cast<unsigned>(along);
  };
  takeLoop(columnLoop, Extent::Columns);
  takeLoop(rowLoop, Extent::Rows);
  for (AffineExpr expr : outer)
    if (!KernelBuilder::isSupportedIndex(expr) ||
        expr.isFunctionOfDim(rowLoop) || expr.isFunctionOfDim(columnLoop))
      return std::nullopt;
  return static_cast<Extent>(extent);
}

FailureOr<SmallVector<GridLoop>> attn::getLoops(linalg::GenericOp op) {
  SmallVector<GridLoop> loops;
  for (unsigned loop = 0; loop < op.getNumLoops(); ++loop) {
    Value memref;
    unsigned dim;
    if (failed(op.mapIterationSpaceDimToOperandDim(loop, memref, dim)))
      return emitUnsupported(op, "has no operand with the size of loop ")
             << loop;
    loops.push_back({memref, dim, /*tile=*/1});
  }
  return loops;
}

LogicalResult BodyBuilder::verify(linalg::GenericOp op) {
  unsigned numLoops = op.getNumLoops();
  if (numLoops < 2)
    return emitUnsupported(op, "has fewer than two loops");
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<MemRefType>(operand.get().getType()))
      continue;
    AffineMap map = op.getMatchingIndexingMap(&operand);
    std::optional<Extent> access = getAccess(map, numLoops - 2, numLoops - 1);
    if (!access || *access == Extent::Scalar)
      return emitUnsupported(op, "accesses operand ")
             << operand.getOperandNumber() << " by " << AffineMapAttr::get(map)
             << ", which doesn't end in one or both of the last two loops";
  }
  return verifyCaptured(op);
}

LogicalResult BodyBuilder::verifyCaptured(linalg::GenericOp op) {
  SetVector<Value> captured;
  getUsedValuesDefinedAbove(op.getRegion(), captured);
  for (Value value : captured)
    if (!matchPattern(value, m_Constant()) && !isa<MemRefType>(value.getType()))
      return emitUnsupported(op, "uses a value from outside of its body; make "
                                 "it an input");
  return success();
}

SmallVector<Value> BodyBuilder::getKernelOperands(linalg::GenericOp op) {
  SetVector<Value> captured;
  getUsedValuesDefinedAbove(op.getRegion(), captured);
  SmallVector<Value> operands(op->getOperands());
  llvm::copy_if(captured, std::back_inserter(operands),
                [](Value value) { return isa<MemRefType>(value.getType()); });
  return operands;
}

void BodyBuilder::loadOperand(OpOperand &operand, ArrayRef<Value> starts) {
  BlockArgument element = op.getMatchingBlockArgument(&operand);
  if (element.use_empty())
    return;
  if (!isa<MemRefType>(operand.get().getType())) {
    inliner.map(element, builder.getArg(operand.get()), Extent::Scalar);
    return;
  }
  AffineMap map = op.getMatchingIndexingMap(&operand);
  Extent access = *getAccess(map, starts.size() - 2, starts.size() - 1);
  SmallVector<int64_t> shape;
  if (access != Extent::Columns)
    shape.push_back(tileType.getDimSize(0));
  if (access != Extent::Rows)
    shape.push_back(tileType.getDimSize(1));
  SmallVector<Value> indices =
      llvm::map_to_vector(map.getResults(), [&](AffineExpr expr) {
        return builder.getIndex(expr, starts);
      });
  inliner.map(element, builder.load(operand.get(), shape, indices), access);
}

void BodyBuilder::inlineIndex(linalg::IndexOp index, ArrayRef<Value> starts) {
  unsigned loop = index.getDim();
  Value start = starts[loop];
  if (loop + 2 < starts.size())
    return inliner.map(index, start, Extent::Scalar);
  inliner.mapIndex(index, start,
                   loop + 1 == starts.size() ? Extent::Columns : Extent::Rows);
}

/// True if `index` is a loop's, and not of one of the last two, whose tile may
/// reach past the end. A rule's batch and head are such (see
/// CaptureLoadOp::getBounds).
static bool isInBounds(Value index, unsigned numLoops) {
  if (auto cast = index.getDefiningOp<arith::IndexCastOp>())
    index = cast.getIn();
  auto loop = index.getDefiningOp<linalg::IndexOp>();
  return loop && loop.getDim() + 2 < numLoops;
}

void BodyBuilder::inlineCaptureLoad(CaptureLoadOp load) {
  auto type = cast<MemRefType>(load.getSource().getType());
  SmallVector<Value> indices;
  SmallVector<int64_t> inBounds;
  for (auto [dim, index] : llvm::enumerate(load.getIndices())) {
    bool isConstant =
        matchPattern(index, m_Constant()) && !type.isDynamicDim(dim);
    if (load.isBroadcast(dim) || isConstant ||
        isInBounds(index, op.getNumLoops()))
      inBounds.push_back(dim);
    indices.push_back(load.isBroadcast(dim) ? builder.getI32(0) : index);
  }
  inliner.mapGather(load, builder.getArg(load.getSource()), indices, inBounds);
}

/// Makes a constant from outside of the body known.
void BodyBuilder::mapOutside(Value value) {
  if (value.getParentRegion() != &op.getRegion() && builder.mapConstant(value))
    inliner.map(value, builder.getArg(value), Extent::Scalar);
}

LogicalResult BodyBuilder::inlineOp(Operation &inner, ArrayRef<Value> starts) {
  for (Value operand : inner.getOperands())
    mapOutside(operand);
  if (auto index = dyn_cast<linalg::IndexOp>(inner)) {
    inlineIndex(index, starts);
    return success();
  }
  if (auto load = dyn_cast<CaptureLoadOp>(inner)) {
    inlineCaptureLoad(load);
    return success();
  }
  if (isa<arith::ConstantOp>(inner)) {
    builder.mapConstant(inner.getResult(0));
    inliner.map(inner.getResult(0), builder.getArg(inner.getResult(0)),
                Extent::Scalar);
    return success();
  }
  return inliner.inlineOp(inner);
}

LogicalResult BodyBuilder::build(ArrayRef<Value> starts, Operation *skip) {
  for (OpOperand &operand : op->getOpOperands())
    if (!skip || op.isDpsInput(&operand))
      loadOperand(operand, starts);
  for (Operation &inner : op.getBody()->without_terminator())
    if (&inner != skip && failed(inlineOp(inner, starts)))
      return failure();
  // The yielded value may be a constant from outside.
  for (Value yielded : op.getBody()->getTerminator()->getOperands())
    mapOutside(yielded);
  return success();
}

SetVector<Operation *> BodyBuilder::getSlice(linalg::GenericOp op,
                                             Value value) {
  SetVector<Operation *> slice;
  BackwardSliceOptions options;
  options.omitBlockArguments = true;
  options.inclusive = true;
  options.filter = [&](Operation *inner) {
    return inner->getBlock() == op.getBody();
  };
  // Fails only on regions, which scalar ops don't have.
  if (value.getParentBlock() == op.getBody() && value.getDefiningOp())
    (void)getBackwardSlice(value, &slice, options);
  return slice;
}

FailureOr<Value> BodyBuilder::buildScalar(Value value, ArrayRef<Value> starts) {
  for (OpOperand &operand : op->getOpOperands())
    if (!isa<MemRefType>(operand.get().getType()))
      loadOperand(operand, starts);
  mapOutside(value);
  for (Operation *inner : getSlice(op, value))
    if (failed(inlineOp(*inner, starts)))
      return failure();
  return inliner.lift(value, Extent::Scalar);
}

int64_t BodyBuilder::countFlops(linalg::GenericOp op) {
  return llvm::count_if(op.getBody()->without_terminator(), [](Operation &op) {
    return isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::DivFOp,
               arith::MaximumFOp, arith::MinimumFOp, arith::MaxNumFOp,
               arith::MinNumFOp, arith::NegFOp>(op) ||
           isa<math::MathDialect>(op.getDialect());
  });
}
