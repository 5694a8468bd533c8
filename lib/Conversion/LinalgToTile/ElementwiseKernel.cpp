//===- ElementwiseKernel.cpp - Elementwise ops and fills ------------------===//

#include "Kernels.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::attn;

/// The least power of two that covers a loop, at most `limit`. It is at least
/// 2: GPU paths hold 16-bit elements in pairs.
static int64_t getTileSize(const GridLoop &loop, int64_t limit) {
  int64_t size = cast<MemRefType>(loop.memref.getType()).getDimSize(loop.dim);
  if (ShapedType::isDynamic(size))
    return limit;
  return std::min<int64_t>(llvm::PowerOf2Ceil(std::max<int64_t>(size, 2)),
                           limit);
}

/// The type that the kernel is named after: what it reads first, or writes.
static Type getNamedType(linalg::GenericOp op) {
  for (Value operand : op->getOperands())
    if (auto memref = dyn_cast<MemRefType>(operand.getType()))
      return memref.getElementType();
  llvm_unreachable("linalg ops have an output");
}

static LogicalResult verifyOutputs(linalg::GenericOp op) {
  for (OpOperand &output : op.getDpsInitsMutable())
    if (!op.getMatchingIndexingMap(&output).isIdentity())
      return emitUnsupported(op, "writes an output that isn't indexed by all "
                                 "loops in order");
  return success();
}

LogicalResult attn::buildElementwise(KernelBuilder &builder,
                                     linalg::GenericOp op) {
  if (failed(BodyBuilder::verify(op)) || failed(verifyOutputs(op)))
    return failure();
  FailureOr<SmallVector<GridLoop>> loops = getLoops(op);
  if (failed(loops))
    return failure();
  const TileSizes &sizes = builder.getSizes();
  GridLoop &columns = loops->back(), &rows = *std::prev(loops->end(), 2);
  columns.tile = getTileSize(columns, sizes.elementColumns);
  rows.tile = getTileSize(rows, sizes.elements / columns.tile);

  std::string type;
  llvm::raw_string_ostream(type) << getNamedType(op);
  if (failed(builder.begin(builder.getStep("elementwise") + "_" + type,
                           BodyBuilder::getKernelOperands(op), sizes.numWarps)))
    return failure();
  SmallVector<Value> starts = builder.splitPrograms(*loops);
  BodyBuilder body(builder, op, {rows.tile, columns.tile});
  if (failed(body.build(starts)))
    return failure();
  for (auto [output, yielded] :
       llvm::zip(op.getOutputs(), op.getBody()->getTerminator()->getOperands()))
    builder.store(body.getElements(yielded), output, starts);
  builder.finish(*loops, BodyBuilder::countFlops(op));
  return success();
}
