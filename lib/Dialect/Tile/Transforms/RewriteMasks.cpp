//===- RewriteMasks.cpp - Mask and score regions to elementwise code ------===//
//
// The one place where score_mod and mask regions are inlined, for all targets.
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "attn/Dialect/Tile/Transforms/RegionInliner.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mlir::tile {
#define GEN_PASS_DEF_TILEREWRITEMASKS
#include "attn/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace mlir::tile

using namespace mlir;
using namespace mlir::tile;

namespace {
/// Inlines the region of `op`; its index arguments are the last two.
template <typename ScoreRegionOp>
FailureOr<Value> inlineRegion(OpBuilder &builder, ScoreRegionOp op) {
  auto type = cast<RankedTensorType>(op.getSource().getType());
  Block &block = op.getBody().front();
  RegionInliner inliner(builder, op.getLoc(), type);
  if (block.getNumArguments() == 3)
    inliner.map(block.getArgument(0), op.getSource(), Extent::Elements);
  ValueRange indices = block.getArguments().take_back(2);
  inliner.mapIndex(indices[0], op.getQStart(), Extent::Rows);
  inliner.mapIndex(indices[1], op.getKvStart(), Extent::Columns);
  for (Operation &inner : block.without_terminator())
    if (failed(inliner.inlineOp(inner)))
      return failure();
  return inliner.lift(block.getTerminator()->getOperand(0), Extent::Elements);
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
