//===- RegionInliner.cpp - Scalar regions over tiles ----------------------===//

#include "attn/Dialect/Tile/Transforms/RegionInliner.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

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
  if (auto it = lifted.find(original); it != lifted.end())
    return it->second;
  if (!original.getType().isIndex())
    return {original, Extent::Scalar};
  Value i32 =
      arith::IndexCastOp::create(builder, loc, builder.getI32Type(), original);
  return {i32, Extent::Scalar};
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
  starts[from] = start;
}

LogicalResult RegionInliner::inlineOp(Operation &op) {
  if (isa<arith::IndexCastOp, arith::IndexCastUIOp>(op)) {
    inlineIndexCast(op);
    return success();
  }
  if (inlineColumnSumToFloat(op))
    return success();
  if (auto constant = dyn_cast<arith::ConstantIndexOp>(op)) {
    map(constant,
        arith::ConstantIntOp::create(builder, op.getLoc(), constant.value(),
                                     /*width=*/32),
        Extent::Scalar);
    return success();
  }
  if (auto gather = dyn_cast<GatherOp>(op)) {
    mapGather(gather, gather.getSource(), gather.getIndices(),
              gather.getInBounds());
    return success();
  }
  if (auto element = dyn_cast<ElementOp>(op)) {
    map(element, element.getTile(), Extent::Elements);
    return success();
  }
  unsigned extent = 0;
  for (Value operand : op.getOperands())
    extent |= static_cast<unsigned>(lookup(operand).second);
  if (extent != 0 && !OpTrait::hasElementwiseMappableTraits(&op))
    return op.emitOpError("can't be applied to every element of a tile; use "
                          "elementwise arith and math only");
  emit(op, static_cast<Extent>(extent));
  return success();
}

void RegionInliner::inlineIndexCast(Operation &cast) {
  auto [value, extent] = lookup(cast.getOperand(0));
  Type type = getType(cast.getResult(0).getType(), extent);
  unsigned fromWidth =
      getElementTypeOrSelf(value.getType()).getIntOrFloatBitWidth();
  unsigned toWidth = getElementTypeOrSelf(type).getIntOrFloatBitWidth();
  if (toWidth < fromWidth)
    value = arith::TruncIOp::create(builder, cast.getLoc(), type, value);
  else if (toWidth > fromWidth && isa<arith::IndexCastUIOp>(cast))
    value = arith::ExtUIOp::create(builder, cast.getLoc(), type, value);
  else if (toWidth > fromWidth)
    value = arith::ExtSIOp::create(builder, cast.getLoc(), type, value);
  map(cast.getResult(0), value, extent);
  if (toWidth == fromWidth && starts.contains(cast.getOperand(0)))
    starts[cast.getResult(0)] = starts[cast.getOperand(0)];
}

/// `original` as the sum of something and the column's number.
std::optional<RegionInliner::ColumnSum>
RegionInliner::getColumnSum(Value original) {
  auto [value, extent] = lookup(original);
  if (auto it = starts.find(original); it != starts.end()) {
    if (extent != Extent::Columns)
      return std::nullopt;
    return ColumnSum{{it->second, Extent::Scalar}};
  }
  Operation *op = original.getDefiningOp();
  if (!isa_and_present<arith::AddIOp, arith::SubIOp>(op) ||
      !original.getType().isInteger(32))
    return std::nullopt;
  Value a = op->getOperand(0), b = op->getOperand(1);
  std::optional<ColumnSum> sum = getColumnSum(a);
  const bool isFirst = sum.has_value();
  if (!isFirst)
    sum = getColumnSum(b);
  auto [other, otherExtent] = lookup(isFirst ? b : a);
  if (!sum || otherExtent == Extent::Columns || otherExtent == Extent::Elements)
    return std::nullopt;
  const bool isDifference = isa<arith::SubIOp>(op);
  Value rest = sum->rest.first;
  Extent restExtent = std::max(sum->rest.second, otherExtent);
  Type type = getType(original.getType(), restExtent);
  auto spread = [&](Value value, Extent extent) -> Value {
    return extent == restExtent
               ? value
               : tensor::SplatOp::create(builder, loc, type, value);
  };
  rest = spread(rest, sum->rest.second);
  other = spread(other, otherExtent);
  if (!isFirst)
    std::swap(rest, other);
  rest = isDifference
             ? arith::SubIOp::create(builder, loc, rest, other).getResult()
             : arith::AddIOp::create(builder, loc, rest, other);
  return ColumnSum{{rest, restExtent},
                   sum->isNegative != (isDifference && !isFirst)};
}

/// Converts distances between positions, which processors do slower than they
/// add: one number a row, to which the columns' numbers are added as floats.
/// Sums of positions don't overflow, and below 2^24 nothing is rounded.
bool RegionInliner::inlineColumnSumToFloat(Operation &op) {
  auto cast = dyn_cast<arith::SIToFPOp>(op);
  if (!cast || !cast.getType().isF32())
    return false;
  std::optional<ColumnSum> sum = getColumnSum(cast.getIn());
  if (!sum)
    return false;
  auto [rest, restExtent] = sum->rest;
  auto toFloat = [&](Value value, Extent extent) -> Value {
    return arith::SIToFPOp::create(builder, loc,
                                   getType(cast.getType(), extent), value);
  };
  Value columns = IotaOp::create(
      builder, loc, getType(builder.getI32Type(), Extent::Columns));
  columns = toFloat(columns, Extent::Columns);
  rest = toFloat(rest, restExtent);
  const bool isScalar = restExtent == Extent::Scalar;
  Extent extent = isScalar ? Extent::Columns : Extent::Elements;
  Type type = getType(cast.getType(), extent);
  if (isScalar) {
    rest = tensor::SplatOp::create(builder, loc, type, rest);
  } else {
    rest = BroadcastOp::create(builder, loc, type, rest, /*dim=*/0);
    columns = BroadcastOp::create(builder, loc, type, columns, /*dim=*/1);
  }
  map(cast,
      sum->isNegative
          ? arith::SubFOp::create(builder, loc, rest, columns).getResult()
          : arith::AddFOp::create(builder, loc, rest, columns),
      extent);
  return true;
}

/// Moves `builder` up in its block, to where `values` are known: a load from
/// there is under way while what comes before its use runs.
static void moveBehind(OpBuilder &builder, ValueRange values) {
  Block *block = builder.getInsertionBlock();
  Operation *last = nullptr;
  for (Value value : values) {
    Operation *def = value.getDefiningOp();
    if (def && def->getBlock() == block &&
        (!last || last->isBeforeInBlock(def)))
      last = def;
  }
  if (last)
    builder.setInsertionPointAfter(last);
  else
    builder.setInsertionPointToStart(block);
}

/// The gather as a load of neighbouring elements, if it is one: columns along
/// the last dimension, rows (if they matter) along the one before, and in the
/// others the same element, which exists. Null otherwise.
Value RegionInliner::createLoad(Value from, Value source, ValueRange indices,
                                ArrayRef<int64_t> inBounds) {
  SmallVector<Value> position;
  int64_t rank = indices.size();
  int64_t tileRank = 0;
  for (auto [dim, index] : llvm::enumerate(indices)) {
    auto [value, extent] = lookup(index);
    int64_t fromEnd = rank - static_cast<int64_t>(dim);
    bool isRun = starts.contains(index) &&
                 ((extent == Extent::Columns && fromEnd == 1) ||
                  (extent == Extent::Rows && fromEnd == 2));
    bool isSame = extent == Extent::Scalar &&
                  llvm::is_contained(inBounds, static_cast<int64_t>(dim));
    if (!isRun && (!isSame || fromEnd == 1))
      return {};
    if (isRun)
      tileRank = std::max(tileRank, fromEnd);
    position.push_back(isRun ? starts.lookup(index) : value);
  }
  if (tileRank == 0)
    return {};
  OpBuilder::InsertionGuard guard(builder);
  moveBehind(builder, position);
  Type type = getType(from.getType(),
                      tileRank == 1 ? Extent::Columns : Extent::Elements);
  return LoadOp::create(builder, from.getLoc(), type, source, position);
}

void RegionInliner::mapGather(Value from, Value source, ValueRange indices,
                              ArrayRef<int64_t> inBounds) {
  if (Value load = createLoad(from, source, indices, inBounds)) {
    bool isVector = cast<RankedTensorType>(load.getType()).getRank() == 1;
    return map(from, load, isVector ? Extent::Columns : Extent::Elements);
  }
  unsigned bits = 0;
  for (Value index : indices)
    bits |= static_cast<unsigned>(lookup(index).second);
  auto extent = static_cast<Extent>(bits);
  SmallVector<Value> positions = llvm::map_to_vector(indices, [&](Value index) {
    auto [value, own] = lookup(index);
    return own == Extent::Scalar ? value : lift(index, extent);
  });
  Type type = getType(from.getType(), extent);
  map(from,
      GatherOp::create(builder, from.getLoc(), type, source, positions,
                       inBounds),
      extent);
}

static bool isSignedDivision(Operation &op) {
  return isa<arith::DivSIOp, arith::RemSIOp, arith::FloorDivSIOp,
             arith::CeilDivSIOp>(op);
}

static bool isUnsignedDivision(Operation &op) {
  return isa<arith::DivUIOp, arith::RemUIOp, arith::CeilDivUIOp>(op);
}

/// `value` in every element of `type`.
static Value createInt(OpBuilder &builder, Location loc, Type type,
                       const APInt &value) {
  TypedAttr attr = builder.getIntegerAttr(getElementTypeOrSelf(type), value);
  if (auto shaped = dyn_cast<ShapedType>(type))
    attr = DenseElementsAttr::get(shaped, Attribute(attr));
  return arith::ConstantOp::create(builder, loc, attr);
}

bool tile::isIntegerDivision(Operation &op) {
  return isSignedDivision(op) || isUnsignedDivision(op);
}

// A tile reaches past the last row and column, where any rule may divide by 0,
// or the least integer by -1.
Value tile::createSafeDivisor(OpBuilder &builder, Operation &op, Value dividend,
                              Value divisor) {
  APInt constant;
  if (matchPattern(op.getOperand(1), m_ConstantInt(&constant)) &&
      !constant.isZero() && !constant.isAllOnes())
    return divisor;
  Location loc = op.getLoc();
  Type type = divisor.getType();
  unsigned width = getElementTypeOrSelf(type).getIntOrFloatBitWidth();
  auto equals = [&](Value value, const APInt &other) -> Value {
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, value,
                                 createInt(builder, loc, type, other));
  };
  Value traps = equals(divisor, APInt::getZero(width));
  if (isSignedDivision(op)) {
    Value overflows = arith::AndIOp::create(
        builder, loc, equals(dividend, APInt::getSignedMinValue(width)),
        equals(divisor, APInt::getAllOnes(width)));
    traps = arith::OrIOp::create(builder, loc, traps, overflows);
  }
  return arith::SelectOp::create(builder, loc, traps,
                                 createInt(builder, loc, type, APInt(width, 1)),
                                 divisor);
}

void RegionInliner::emit(Operation &op, Extent extent) {
  SmallVector<Value> operands = llvm::map_to_vector(
      op.getOperands(), [&](Value value) { return lift(value, extent); });
  if (isIntegerDivision(op))
    operands[1] = createSafeDivisor(builder, op, operands[0], operands[1]);
  SmallVector<Type> types = llvm::map_to_vector(
      op.getResultTypes(), [&](Type type) { return getType(type, extent); });
  Operation *tileOp = builder.create(op.getLoc(), op.getName().getIdentifier(),
                                     operands, types, op.getAttrs());
  for (auto [from, to] : llvm::zip(op.getResults(), tileOp->getResults()))
    map(from, to, extent);
}
