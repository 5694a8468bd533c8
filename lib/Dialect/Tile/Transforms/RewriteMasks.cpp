//===- RewriteMasks.cpp - Mask and score regions to elementwise code ------===//
//
// The one place where score_mod and mask regions are inlined, for all targets.
//
//===----------------------------------------------------------------------===//

#include "MaskCondition.h"
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

LogicalResult rewrite(MaskOp op) {
  OpBuilder builder(op);
  auto type = cast<RankedTensorType>(op.getSource().getType());
  RegionInliner inliner(builder, op.getLoc(), type);
  if (failed(inlineRegion(inliner, op)))
    return failure();
  Value visible = emitMaskCondition(builder, op, inliner);
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
