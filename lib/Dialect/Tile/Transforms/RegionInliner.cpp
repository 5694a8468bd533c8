//===- RegionInliner.cpp - Scalar regions over tiles ----------------------===//

#include "attn/Dialect/Tile/Transforms/RegionInliner.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::tile;

Type RegionInliner::getType(Type element, Extent extent) const {
  if (element.isIndex())
    element = IntegerType::get(element.getContext(), 32);
  switch (extent) {
  case Extent::Scalar:
    return element;
  case Extent::Rows:
    return RankedTensorType::get(tileType.getDimSize(0), element);
  case Extent::Columns:
    return RankedTensorType::get(tileType.getDimSize(1), element);
  case Extent::Elements:
    return RankedTensorType::get(tileType.getShape(), element,
                                 tileType.getEncoding());
  }
  llvm_unreachable("unknown extent");
}

std::pair<Value, Extent> RegionInliner::lookup(Value original) const {
  auto it = lifted.find(original);
  return it == lifted.end() ? std::pair(original, Extent::Scalar) : it->second;
}

Value RegionInliner::lift(Value original, Extent extent) {
  auto [value, from] = lookup(original);
  if (from == extent)
    return value;
  Type type = getType(original.getType(), extent);
  if (from == Extent::Scalar)
    return tensor::SplatOp::create(builder, loc, type, value);
  return BroadcastOp::create(builder, loc, type, value,
                             from == Extent::Rows ? 0 : 1);
}

void RegionInliner::mapIndex(Value from, Value start, Extent extent) {
  Type type = getType(start.getType(), extent);
  Value iota = IotaOp::create(builder, loc, type);
  Value splat = tensor::SplatOp::create(builder, loc, type, start);
  map(from, arith::AddIOp::create(builder, loc, splat, iota), extent);
}

LogicalResult RegionInliner::inlineOp(Operation &op) {
  unsigned extent = 0;
  for (Value operand : op.getOperands())
    extent |= static_cast<unsigned>(lookup(operand).second);
  if (extent != 0 && !OpTrait::hasElementwiseMappableTraits(&op))
    return op.emitOpError("can't be applied to every element of a tile; use "
                          "elementwise arith and math only");
  emit(op, static_cast<Extent>(extent));
  return success();
}

void RegionInliner::emit(Operation &op, Extent extent) {
  SmallVector<Value> operands = llvm::map_to_vector(
      op.getOperands(), [&](Value value) { return lift(value, extent); });
  SmallVector<Type> types = llvm::map_to_vector(
      op.getResultTypes(), [&](Type type) { return getType(type, extent); });
  Operation *tileOp =
      builder.create(op.getLoc(), op.getName().getIdentifier(), operands, types,
                     op.getAttrs());
  for (auto [from, to] : llvm::zip(op.getResults(), tileOp->getResults()))
    map(from, to, extent);
}
