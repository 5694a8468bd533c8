//===- SplitKVRanges.cpp - Skipped, partial and full steps of a kv_loop ---===//

#include "attn/Analysis/KVRanges.h"
#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

namespace mlir::tile {
#define GEN_PASS_DEF_TILESPLITKVRANGES
#include "attn/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace mlir::tile

using namespace mlir;
using namespace mlir::tile;

//===----------------------------------------------------------------------===//
// May hidden steps be skipped?
//===----------------------------------------------------------------------===//

namespace {
/// Follows values through the loop's regions, and decides whether a step whose
/// scores are all -inf leaves the carried values as they are.
class HiddenStepCheck {
public:
  explicit HiddenStepCheck(KVLoopOp loop) : loop(loop) {}

  /// The masks whose hidden steps may be skipped: those on the way into the
  /// online softmax.
  SmallVector<MaskOp> getSkippableMasks() {
    SmallVector<MaskOp> masks;
    if (!findSoftmax() || !isReadOnly() || !keepsCarriedValues())
      return masks;
    Value scores = resolve(softmax.getScores());
    while (auto mask = scores.getDefiningOp<MaskOp>()) {
      masks.push_back(mask);
      scores = resolve(mask.getSource());
    }
    return masks;
  }

private:
  bool findSoftmax() {
    unsigned count = 0;
    loop.walk([&](OnlineSoftmaxOp op) {
      softmax = op;
      ++count;
    });
    return count == 1 && softmax->getParentOp() == loop;
  }

  bool isReadOnly() {
    WalkResult result = loop.walk([&](Operation *op) {
      if (op == loop || isMemoryEffectFree(op) || isa<LoadOp>(op))
        return WalkResult::advance();
      return WalkResult::interrupt();
    });
    return !result.wasInterrupted();
  }

  /// What a region argument stands for: a value that the region before yielded,
  /// or, for a carried one, its argument in the first region.
  Value resolve(Value value) {
    while (auto arg = dyn_cast<BlockArgument>(value)) {
      if (arg.getOwner()->getParentOp() != loop)
        return value;
      Region *region = arg.getParentRegion();
      unsigned index = arg.getArgNumber();
      unsigned numCarried = loop.getNumResults();
      unsigned numYielded = region->getNumArguments() - 1 - numCarried;
      if (index == 0)
        return loop.getQk().getArgument(0);
      if (index > numYielded)
        return loop.getQk().getArgument(index - numYielded);
      Region &previous = loop->getRegion(region->getRegionNumber() - 1);
      value = previous.front().getTerminator()->getOperand(index - 1);
    }
    return value;
  }

  /// The product of p; 0 if p is, so that it may be rounded and scaled.
  bool isProductOfP(Value value) {
    value = resolve(value);
    if (value == softmax.getP())
      return true;
    Operation *op = value.getDefiningOp();
    if (isa_and_present<arith::TruncFOp, arith::ExtFOp>(op))
      return isProductOfP(op->getOperand(0));
    return false;
  }

  /// `carried`, or `carried` * alpha: in a hidden step alpha is 1, or 0 while
  /// the row has seen nothing and `carried` still is 0.
  bool isRescaled(Value value, Value carried) {
    value = resolve(value);
    if (value == carried)
      return true;
    auto mul = value.getDefiningOp<arith::MulFOp>();
    return mul &&
           ((resolve(mul.getLhs()) == carried && isAlpha(mul.getRhs())) ||
            (resolve(mul.getRhs()) == carried && isAlpha(mul.getLhs())));
  }

  bool isAlpha(Value value) {
    value = resolve(value);
    if (auto broadcast = value.getDefiningOp<BroadcastOp>())
      return isAlpha(broadcast.getSource());
    return value == softmax.getAlpha();
  }

  bool keepsCarriedValues() {
    Operation *yield = loop.getPv().front().getTerminator();
    for (auto [index, next] : llvm::enumerate(yield->getOperands()))
      if (!keepsCarriedValue(index, resolve(next)))
        return false;
    return true;
  }

  bool keepsCarriedValue(unsigned index, Value next) {
    Value carried = loop.getQk().getArgument(1 + index);
    if (next == carried)
      return true;
    if (next == softmax.getMaxOut())
      return resolve(softmax.getMaxIn()) == carried;
    if (!matchPattern(loop.getInits()[index], m_AnyZeroFloat()))
      return false;
    if (next == softmax.getSumOut())
      return resolve(softmax.getSumIn()) == carried;
    auto mma = next.getDefiningOp<MmaOp>();
    return mma && isProductOfP(mma.getA()) && isRescaled(mma.getAcc(), carried);
  }

  KVLoopOp loop;
  OnlineSoftmaxOp softmax;
};

//===----------------------------------------------------------------------===//
// Ranges
//===----------------------------------------------------------------------===//

void emitRemarks(KVLoopOp loop, ArrayRef<Operation *> opaque) {
  for (Operation *op : opaque)
    op->emitRemark("mask analysis can't see through this; key tiles that it "
                   "may concern are neither skipped nor free of the mask");
  loop.walk([](MaskOp mask) {
    if (!mask.getSkippable())
      mask.emitRemark("key tiles that this hides are not skipped: its scores "
                      "don't go straight into a plain online softmax");
  });
}

/// Whether `mask`, the only one of `loop`, may leave out steps by the list of
/// tiles that it comes with.
bool canTakeTiles(KVLoopOp loop, MaskOp mask) {
  auto isOutside = [&](Value value) {
    return !loop->isAncestor(value.getParentRegion()->getParentOp());
  };
  auto kv = dyn_cast<BlockArgument>(mask.getKvStart());
  auto type = cast<ShapedType>(mask.getType());
  // All operands but the scores and the key position.
  return mask.getTiles() && mask.getSkippable() &&
         matchPattern(loop.getBegin(), m_Zero()) && kv &&
         kv.getArgNumber() == 0 && kv.getOwner()->getParentOp() == loop &&
         type.getDimSize(1) == static_cast<int64_t>(loop.getStep()) &&
         llvm::all_of(mask->getOperands().drop_front(3), isOutside) &&
         isOutside(mask.getQStart());
}

void adoptTiles(KVLoopOp loop) {
  SmallVector<MaskOp> masks;
  loop.walk([&](MaskOp mask) { masks.push_back(mask); });
  if (loop.getTiles() || masks.size() != 1 || !canTakeTiles(loop, masks[0]))
    return;
  MaskOp mask = masks[0];
  ImplicitLocOpBuilder builder(loop.getLoc(), loop);
  Value indices[] = {mask.getBoundsIndices()[0], mask.getBoundsIndices()[1],
                     mask.getTileNumber(builder)};
  loop.getTilesMutable().assign(mask.getTiles());
  loop.getTilesIndicesMutable().assign(indices);
}

void splitRanges(KVLoopOp loop) {
  for (MaskOp mask : HiddenStepCheck(loop).getSkippableMasks())
    mask.setSkippable(true);
  adoptTiles(loop);
  ImplicitLocOpBuilder builder(loop.getLoc(), loop);
  SmallVector<Operation *> opaque;
  KVRanges ranges = computeKVRanges(builder, loop, std::nullopt, opaque);
  loop.getBeginMutable().assign(ranges.begin);
  loop.getFullBeginMutable().assign(ranges.fullBegin);
  loop.getFullEndMutable().assign(ranges.fullEnd);
  loop.getEndMutable().assign(ranges.end);
  emitRemarks(loop, opaque);
}

struct TileSplitKVRangesPass
    : tile::impl::TileSplitKVRangesBase<TileSplitKVRangesPass> {
  void runOnOperation() override {
    getOperation().walk([](KVLoopOp loop) { splitRanges(loop); });
  }
};
} // namespace
