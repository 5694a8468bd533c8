//===- RewriteMasks.cpp - Mask and score regions to elementwise code ------===//
//
// The one place where score_mod and mask regions are inlined, for all targets.
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "attn/Dialect/Tile/Transforms/RegionInliner.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/LoopInvariantCodeMotionUtils.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mlir::tile {
#define GEN_PASS_DEF_TILEREWRITEMASKS
#include "attn/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace mlir::tile

using namespace mlir;
using namespace mlir::tile;

namespace {
/// Inlines the code of the region of `op`; its index arguments are the last
/// two.
template <typename ScoreRegionOp>
LogicalResult inlineRegion(RegionInliner &inliner, ScoreRegionOp op) {
  Block &block = op.getBody().front();
  if (block.getNumArguments() == 3)
    inliner.map(block.getArgument(0), op.getSource(), Extent::Elements);
  ValueRange indices = block.getArguments().take_back(2);
  inliner.mapIndex(indices[0], op.getQStart(), Extent::Rows);
  inliner.mapIndex(indices[1], op.getKvStart(), Extent::Columns);
  for (Operation &inner : block.without_terminator())
    if (failed(inliner.inlineOp(inner)))
      return failure();
  return success();
}

/// The other operand of a sum, if one is a product that nothing else takes.
arith::MulFOp findProduct(arith::AddFOp sum, Value &other) {
  for (auto [a, b] : {std::pair(sum.getLhs(), sum.getRhs()),
                      std::pair(sum.getRhs(), sum.getLhs())}) {
    auto product = a.getDefiningOp<arith::MulFOp>();
    if (!product || !product->hasOneUse() ||
        product->getBlock() != sum->getBlock())
      continue;
    other = b;
    return product;
  }
  return {};
}

/// Rounds products and sums of a rule together, as compilers of other languages
/// do unless told otherwise.
void contract(Block::iterator first, Block::iterator last) {
  for (Operation &inner :
       llvm::make_early_inc_range(llvm::make_range(first, last))) {
    auto sum = dyn_cast<arith::AddFOp>(inner);
    if (!sum || !getElementTypeOrSelf(sum.getType()).isF32())
      continue;
    Value other;
    arith::MulFOp product = findProduct(sum, other);
    if (!product)
      continue;
    OpBuilder builder(sum);
    Value fused = math::FmaOp::create(builder, sum.getLoc(), product.getLhs(),
                                      product.getRhs(), other);
    sum.replaceAllUsesWith(fused);
    sum.erase();
    product.erase();
  }
}

LogicalResult rewrite(ScoreModOp op) {
  // What scales the scores in front of the rule is part of it.
  Operation *source = op.getSource().getDefiningOp();
  OpBuilder builder(op);
  auto type = cast<RankedTensorType>(op.getSource().getType());
  RegionInliner inliner(builder, op.getLoc(), type);
  if (failed(inlineRegion(inliner, op)))
    return failure();
  Value result = op.getBody().front().getTerminator()->getOperand(0);
  op.replaceAllUsesWith(inliner.lift(result, Extent::Elements));
  Block *block = op->getBlock();
  Block::iterator first = source && source->getBlock() == block
                              ? source->getIterator()
                              : block->begin();
  Block::iterator last = std::next(op->getIterator());
  op.erase();
  contract(first, last);
  return success();
}

//===----------------------------------------------------------------------===//
// Masks
//===----------------------------------------------------------------------===//

arith::CmpIPredicate swapOperands(arith::CmpIPredicate predicate) {
  switch (predicate) {
  case arith::CmpIPredicate::slt:
    return arith::CmpIPredicate::sgt;
  case arith::CmpIPredicate::sle:
    return arith::CmpIPredicate::sge;
  case arith::CmpIPredicate::sgt:
    return arith::CmpIPredicate::slt;
  case arith::CmpIPredicate::sge:
    return arith::CmpIPredicate::sle;
  default:
    return predicate;
  }
}

/// The condition of a mask, as bounds on the key and other conditions.
///
/// A comparison of the key with a value of the row becomes one of the column
/// number with a bound that is computed once a row, and all upper (and all
/// lower) bounds become one: a causal mask costs an element one comparison.
class MaskCondition {
public:
  MaskCondition(OpBuilder &builder, MaskOp op, RegionInliner &inliner)
      : builder(builder), op(op), inliner(inliner),
        type(cast<RankedTensorType>(op.getSource().getType())) {
    add(op.getBody().front().getTerminator()->getOperand(0));
  }

  /// Whether each element is visible.
  Value emit() {
    Value visible;
    auto conjoin = [&](Value condition) {
      visible = visible ? arith::AndIOp::create(builder, op.getLoc(), visible,
                                                condition)
                        : condition;
    };
    if (last)
      conjoin(compareColumns(arith::CmpIPredicate::sle, last));
    if (first)
      conjoin(compareColumns(arith::CmpIPredicate::sge, first));
    for (Value condition : others)
      conjoin(inliner.lift(condition, Extent::Elements));
    return visible;
  }

private:
  void add(Value condition) {
    if (auto both = condition.getDefiningOp<arith::AndIOp>();
        both && both->getBlock() == &op.getBody().front()) {
      add(both.getLhs());
      add(both.getRhs());
    } else if (!addBound(condition)) {
      others.push_back(condition);
    }
  }

  bool addBound(Value condition) {
    auto compare = condition.getDefiningOp<arith::CmpIOp>();
    Value key = op.getBody().getArgument(1);
    if (!compare || (compare.getLhs() != key && compare.getRhs() != key))
      return false;
    arith::CmpIPredicate predicate = compare.getPredicate();
    Value bound = compare.getRhs();
    if (bound == key) {
      bound = compare.getLhs();
      predicate = swapOperands(predicate);
    }
    if (dependsOn(bound, key))
      return false;
    switch (predicate) {
    case arith::CmpIPredicate::slt:
    case arith::CmpIPredicate::sle:
      addLast(
          getColumn(bound, predicate == arith::CmpIPredicate::slt ? -1 : 0));
      return true;
    case arith::CmpIPredicate::sgt:
    case arith::CmpIPredicate::sge:
      addFirst(
          getColumn(bound, predicate == arith::CmpIPredicate::sgt ? 1 : 0));
      return true;
    default:
      return false;
    }
  }

  static bool dependsOn(Value value, Value key) {
    if (value == key)
      return true;
    Operation *source = value.getDefiningOp();
    return source &&
           source->getBlock() == cast<BlockArgument>(key).getOwner() &&
           llvm::any_of(source->getOperands(),
                        [&](Value operand) { return dependsOn(operand, key); });
  }

  /// The column of key `bound`, plus `offset`, for each row. Bounds far from
  /// the tile are moved next to it, where the difference can't overflow.
  Value getColumn(Value bound, int64_t offset) {
    Location loc = op.getLoc();
    Value rows = inliner.lift(bound, Extent::Rows);
    auto rowType = cast<RankedTensorType>(rows.getType());
    auto splat = [&](Value scalar) {
      return tensor::SplatOp::create(builder, loc, rowType, scalar);
    };
    auto constant = [&](int64_t value) {
      return arith::ConstantIntOp::create(builder, loc, value, /*width=*/32);
    };
    Value start = op.getKvStart();
    Value before = arith::SubIOp::create(builder, loc, start, constant(1));
    Value behind = arith::AddIOp::create(builder, loc, start,
                                         constant(type.getDimSize(1)));
    rows = arith::MaxSIOp::create(builder, loc, rows, splat(before));
    rows = arith::MinSIOp::create(builder, loc, rows, splat(behind));
    Value origin = start;
    if (offset != 0)
      origin = arith::SubIOp::create(builder, loc, start, constant(offset));
    return arith::SubIOp::create(builder, loc, rows, splat(origin));
  }

  void addLast(Value column) {
    last = last ? arith::MinSIOp::create(builder, op.getLoc(), last, column)
                : column;
  }
  void addFirst(Value column) {
    first = first ? arith::MaxSIOp::create(builder, op.getLoc(), first, column)
                  : column;
  }

  Value compareColumns(arith::CmpIPredicate predicate, Value bound) {
    Location loc = op.getLoc();
    Type i32 = builder.getI32Type();
    auto tileType =
        RankedTensorType::get(type.getShape(), i32, type.getEncoding());
    auto columnType = RankedTensorType::get(type.getDimSize(1), i32);
    Value columns = IotaOp::create(builder, loc, columnType);
    columns = BroadcastOp::create(builder, loc, tileType, columns, /*dim=*/1);
    bound = BroadcastOp::create(builder, loc, tileType, bound, /*dim=*/0);
    return arith::CmpIOp::create(builder, loc, predicate, columns, bound);
  }

  OpBuilder &builder;
  MaskOp op;
  RegionInliner &inliner;
  RankedTensorType type;
  /// The first and last visible column of each row, as far as bounds say.
  Value first, last;
  SmallVector<Value> others;
};

LogicalResult rewrite(MaskOp op) {
  OpBuilder builder(op);
  auto type = cast<RankedTensorType>(op.getSource().getType());
  RegionInliner inliner(builder, op.getLoc(), type);
  if (failed(inlineRegion(inliner, op)))
    return failure();
  Value visible = MaskCondition(builder, op, inliner).emit();
  auto minusInf = APFloat::getInf(APFloat::IEEEsingle(), /*Negative=*/true);
  Value hidden = arith::ConstantOp::create(
      builder, op.getLoc(), DenseElementsAttr::get(type, minusInf));
  Value scores = arith::SelectOp::create(builder, op.getLoc(), visible,
                                         op.getSource(), hidden);
  op.replaceAllUsesWith(scores);
  op.erase();
  return success();
}

//===----------------------------------------------------------------------===//
// Reads of captures
//===----------------------------------------------------------------------===//

/// The gathers in `kernel` and what their indices are computed from.
llvm::SetVector<Operation *> findGathers(KernelOp kernel) {
  llvm::SetVector<Operation *> ops;
  kernel.walk([&](GatherOp op) { ops.insert(op); });
  for (size_t i = 0; i < ops.size(); ++i)
    for (Value operand : ops[i]->getOperands())
      if (Operation *def = operand.getDefiningOp())
        ops.insert(def);
  return ops;
}

/// Reads once in front of a loop what all of its steps read: the slope of a
/// head, the document of a row.
void hoistGathers(KernelOp kernel) {
  llvm::SetVector<Operation *> candidates = findGathers(kernel);
  kernel.walk([&](scf::ForOp loop) {
    moveLoopInvariantCode(
        loop.getLoopRegions(),
        [&](Value value, Region *) {
          return loop.isDefinedOutsideOfLoop(value);
        },
        [&](Operation *op, Region *) {
          return candidates.contains(op) && isPure(op);
        },
        [&](Operation *op, Region *) { loop.moveOutOfLoop(op); });
  });
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
      return signalPassFailure();
    hoistGathers(getOperation());
  }
};
} // namespace
