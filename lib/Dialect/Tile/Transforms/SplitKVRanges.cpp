//===- SplitKVRanges.cpp - Skipped, partial and full steps of a kv_loop ---===//

#include "attn/Analysis/MaskAnalysis.h"
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

/// Rounds key positions to steps of the loop.
class StepRounder {
public:
  StepRounder(ImplicitLocOpBuilder &builder, Value begin, int64_t step)
      : builder(builder), begin(begin), step(step) {}

  Value down(Value key) { return round(key, 0); }
  Value up(Value key) { return round(key, step - 1); }

private:
  Value constant(int64_t value) {
    return arith::ConstantOp::create(builder, builder.getI32IntegerAttr(value));
  }
  /// begin + (key - begin + bias) / step * step, where key >= begin.
  Value round(Value key, int64_t bias) {
    if (key == begin)
      return begin;
    Value distance = builder.createOrFold<arith::SubIOp>(key, begin);
    if (bias != 0)
      distance = builder.createOrFold<arith::AddIOp>(distance, constant(bias));
    Value steps =
        builder.createOrFold<arith::DivUIOp>(distance, constant(step));
    Value rounded = builder.createOrFold<arith::MulIOp>(steps, constant(step));
    return builder.createOrFold<arith::AddIOp>(begin, rounded);
  }

  ImplicitLocOpBuilder &builder;
  Value begin;
  int64_t step;
};

Value compare(ImplicitLocOpBuilder &builder, Value a, Value b) {
  return builder.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::slt, a, b);
}

/// Sets the ranges so that they hold the steps that `sets` asks for.
void setRanges(ImplicitLocOpBuilder &builder, KVLoopOp loop,
               const KeySets &sets) {
  StepRounder rounder(builder, loop.getBegin(), loop.getStep());
  Value begin = rounder.down(sets.visible.begin);
  Value end = sets.visible.end;
  // Nothing is visible: no step, although the rounded begin may lie before end.
  if (begin != sets.visible.begin)
    end = builder.createOrFold<arith::SelectOp>(
        compare(builder, sets.visible.begin, end), end, begin);

  Value fullBegin = rounder.up(sets.full.begin);
  Value fullEnd = rounder.down(sets.full.end);
  // No key lies before the loop's begin, so that there the order is right.
  if (fullBegin != loop.getBegin()) {
    Value hasFull = compare(builder, fullBegin, fullEnd);
    fullBegin =
        builder.createOrFold<arith::SelectOp>(hasFull, fullBegin, begin);
    fullEnd = builder.createOrFold<arith::SelectOp>(hasFull, fullEnd, begin);
  }

  loop.getBeginMutable().assign(begin);
  loop.getFullBeginMutable().assign(fullBegin);
  loop.getFullEndMutable().assign(fullEnd);
  loop.getEndMutable().assign(end);
}

void emitRemarks(KVLoopOp loop, ArrayRef<Operation *> opaque,
                 ArrayRef<MaskOp> masks, ArrayRef<MaskOp> skippable) {
  for (Operation *op : opaque)
    op->emitRemark("mask analysis can't see through this; key tiles that it "
                   "may concern are neither skipped nor free of the mask");
  for (MaskOp mask : masks)
    if (!llvm::is_contained(skippable, mask))
      mask.emitRemark("key tiles that this hides are not skipped: its scores "
                      "don't go straight into a plain online softmax");
}

void splitRanges(KVLoopOp loop) {
  SmallVector<MaskOp> masks;
  loop.walk([&](MaskOp mask) { masks.push_back(mask); });
  SmallVector<MaskOp> skippable = HiddenStepCheck(loop).getSkippableMasks();

  ImplicitLocOpBuilder builder(loop.getLoc(), loop);
  KeyInterval keys = {loop.getBegin(), loop.getEnd()};
  KeySets sets = {keys, keys};
  SmallVector<Operation *> opaque;
  for (MaskOp mask : masks) {
    KeySets hidden = analyzeMask(builder, loop, mask, keys, opaque);
    if (!llvm::is_contained(skippable, mask))
      hidden.visible = keys;
    sets = intersect(builder, sets, hidden, keys);
  }
  setRanges(builder, loop, sets);
  emitRemarks(loop, opaque, masks, skippable);
}

struct TileSplitKVRangesPass
    : tile::impl::TileSplitKVRangesBase<TileSplitKVRangesPass> {
  void runOnOperation() override {
    getOperation().walk([](KVLoopOp loop) { splitRanges(loop); });
  }
};
} // namespace
