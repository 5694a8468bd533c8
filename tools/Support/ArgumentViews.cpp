//===- ArgumentViews.cpp - The arguments that an entry looks at -----------===//

#include "ArgumentViews.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace attn;

using Sizes = llvm::SmallVector<int64_t, 4>;

/// A dimension whose size is dynamic is one of the source's.
static Tensor expand(const Tensor &source, mlir::memref::ExpandShapeOp op) {
  Sizes shape(op.getStaticOutputShape()), strides(shape.size());
  for (auto [dim, group] : llvm::enumerate(op.getReassociationIndices())) {
    if (group.size() == 1)
      shape[group.front()] = source.getShape()[dim];
    int64_t stride = source.getStrides()[dim];
    for (int64_t part : llvm::reverse(group)) {
      strides[part] = stride;
      stride *= shape[part];
    }
  }
  return source.withView(shape, strides);
}

static Tensor transpose(const Tensor &source, mlir::memref::TransposeOp op) {
  Sizes shape, strides;
  for (mlir::AffineExpr expr : op.getPermutation().getResults()) {
    const unsigned dim = llvm::cast<mlir::AffineDimExpr>(expr).getPosition();
    shape.push_back(source.getShape()[dim]);
    strides.push_back(source.getStrides()[dim]);
  }
  return source.withView(shape, strides);
}

llvm::Expected<Tensor> attn::getArgumentView(mlir::Value value,
                                             llvm::ArrayRef<Tensor> arguments) {
  auto argument = llvm::dyn_cast<mlir::BlockArgument>(value);
  if (argument && argument.getOwner()->isEntryBlock())
    return arguments[argument.getArgNumber()];
  mlir::Operation *op = value.getDefiningOp();
  auto expansion = llvm::dyn_cast_or_null<mlir::memref::ExpandShapeOp>(op);
  auto transposition = llvm::dyn_cast_or_null<mlir::memref::TransposeOp>(op);
  const bool isSplit =
      expansion &&
      llvm::all_of(expansion.getReassociationIndices(),
                   [&](llvm::ArrayRef<int64_t> group) {
                     return group.size() == 1 ||
                            llvm::all_of(group, [&](int64_t dim) {
                              return !mlir::ShapedType::isDynamic(
                                  expansion.getStaticOutputShape()[dim]);
                            });
                   });
  if (!isSplit && !transposition &&
      !llvm::isa_and_present<mlir::bufferization::ToTensorOp>(op))
    return llvm::createStringError(
        "the float64 reference needs an attn.attention on the entry's own "
        "arguments; this one has computed operands");
  llvm::Expected<Tensor> source = getArgumentView(op->getOperand(0), arguments);
  if (!source)
    return source;
  if (isSplit)
    return expand(*source, expansion);
  if (transposition)
    return transpose(*source, transposition);
  return source;
}
