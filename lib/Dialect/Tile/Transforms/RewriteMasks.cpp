//===- RewriteMasks.cpp - Mask and score regions to elementwise code ------===//
//
// The one place where score_mod and mask regions are inlined, for all targets.
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mlir::tile {
#define GEN_PASS_DEF_TILEREWRITEMASKS
#include "attn/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace mlir::tile

using namespace mlir;
using namespace mlir::tile;

namespace {
/// The dimensions of the score tile that a value varies along, as a bit set.
enum Extent : unsigned { Scalar = 0, Rows = 1, Columns = 2, Elements = 3 };

/// A value of the region, computed at the least extent that it needs.
struct Lifted {
  Value value;
  Extent extent;
};

/// Inlines one scalar region over a tile.
class RegionInliner {
public:
  RegionInliner(OpBuilder &builder, Location loc, RankedTensorType tileType)
      : builder(builder), loc(loc), tileType(tileType) {}

  void map(Value from, Value to, Extent extent) { lifted[from] = {to, extent}; }

  /// start + iota along one dimension.
  void mapIndex(Value from, Value start, Extent extent) {
    Type type = getType(start.getType(), extent);
    Value iota = IotaOp::create(builder, loc, type);
    Value splat = tensor::SplatOp::create(builder, loc, type, start);
    map(from, arith::AddIOp::create(builder, loc, splat, iota), extent);
  }

  /// Inlines the block and returns what it yields, for every element.
  FailureOr<Value> inlineBlock(Block &block) {
    for (Operation &op : block.without_terminator())
      if (failed(inlineOp(op)))
        return failure();
    return lift(block.getTerminator()->getOperand(0), Elements);
  }

private:
  Type getType(Type element, Extent extent) const {
    switch (extent) {
    case Scalar:
      return element;
    case Rows:
      return RankedTensorType::get(tileType.getDimSize(0), element);
    case Columns:
      return RankedTensorType::get(tileType.getDimSize(1), element);
    case Elements:
      return RankedTensorType::get(tileType.getShape(), element,
                                   tileType.getEncoding());
    }
    llvm_unreachable("unknown extent");
  }

  Lifted lookup(Value value) const {
    auto it = lifted.find(value);
    return it == lifted.end() ? Lifted{value, Scalar} : it->second;
  }

  Value lift(Value original, Extent extent) {
    auto [value, from] = lookup(original);
    if (from == extent)
      return value;
    Type type = getType(original.getType(), extent);
    if (from == Scalar)
      return tensor::SplatOp::create(builder, loc, type, value);
    return BroadcastOp::create(builder, loc, type, value, from == Rows ? 0 : 1);
  }

  LogicalResult inlineOp(Operation &op) {
    unsigned extent = Scalar;
    for (Value operand : op.getOperands())
      extent |= lookup(operand).extent;
    if (extent != Scalar && !OpTrait::hasElementwiseMappableTraits(&op))
      return op.emitOpError("can't be applied to every element of a score "
                            "tile; use elementwise arith and math only");
    emit(op, static_cast<Extent>(extent));
    return success();
  }

  void emit(Operation &op, Extent extent) {
    SmallVector<Value> operands = llvm::map_to_vector(
        op.getOperands(), [&](Value value) { return lift(value, extent); });
    SmallVector<Type> types = llvm::map_to_vector(
        op.getResultTypes(), [&](Type type) { return getType(type, extent); });
    Operation *tileOp =
        builder.create(op.getLoc(), op.getName().getIdentifier(), operands,
                       types, op.getAttrs());
    for (auto [from, to] : llvm::zip(op.getResults(), tileOp->getResults()))
      map(from, to, extent);
  }

  OpBuilder &builder;
  Location loc;
  RankedTensorType tileType;
  DenseMap<Value, Lifted> lifted;
};

/// Inlines the region of `op`; its index arguments are the last two.
template <typename ScoreRegionOp>
FailureOr<Value> inlineRegion(OpBuilder &builder, ScoreRegionOp op) {
  auto type = cast<RankedTensorType>(op.getSource().getType());
  Block &block = op.getBody().front();
  RegionInliner inliner(builder, op.getLoc(), type);
  if (block.getNumArguments() == 3)
    inliner.map(block.getArgument(0), op.getSource(), Elements);
  ValueRange indices = block.getArguments().take_back(2);
  inliner.mapIndex(indices[0], op.getQStart(), Rows);
  inliner.mapIndex(indices[1], op.getKvStart(), Columns);
  return inliner.inlineBlock(block);
}

LogicalResult rewrite(ScoreModOp op) {
  OpBuilder builder(op);
  FailureOr<Value> scores = inlineRegion(builder, op);
  if (failed(scores))
    return failure();
  op.replaceAllUsesWith(*scores);
  op.erase();
  return success();
}

LogicalResult rewrite(MaskOp op) {
  OpBuilder builder(op);
  FailureOr<Value> visible = inlineRegion(builder, op);
  if (failed(visible))
    return failure();
  auto type = cast<RankedTensorType>(op.getSource().getType());
  auto minusInf = APFloat::getInf(APFloat::IEEEsingle(), /*Negative=*/true);
  Value hidden = arith::ConstantOp::create(
      builder, op.getLoc(), DenseElementsAttr::get(type, minusInf));
  Value scores = arith::SelectOp::create(builder, op.getLoc(), *visible,
                                         op.getSource(), hidden);
  op.replaceAllUsesWith(scores);
  op.erase();
  return success();
}

struct TileRewriteMasksPass
    : tile::impl::TileRewriteMasksBase<TileRewriteMasksPass> {
  void runOnOperation() override {
    WalkResult result = getOperation().walk([](Operation *op) {
      LogicalResult rewritten =
          llvm::TypeSwitch<Operation *, LogicalResult>(op)
              .Case<ScoreModOp, MaskOp>([](auto op) { return rewrite(op); })
              .Default([](Operation *) { return success(); });
      return succeeded(rewritten) ? WalkResult::advance()
                                  : WalkResult::interrupt();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
