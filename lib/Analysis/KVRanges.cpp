//===- KVRanges.cpp - Skipped, partial and full steps of a kv_loop --------===//

#include "attn/Analysis/KVRanges.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::tile;

namespace {
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

} // namespace

static Value compare(ImplicitLocOpBuilder &builder, Value a, Value b) {
  return builder.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::slt, a, b);
}

/// The steps of `loop` that `sets` asks for.
static KVRanges roundToSteps(ImplicitLocOpBuilder &builder, KVLoopOp loop,
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
  if (fullBegin != loop.getBegin() || begin != loop.getBegin()) {
    Value hasFull = compare(builder, fullBegin, fullEnd);
    fullBegin =
        builder.createOrFold<arith::SelectOp>(hasFull, fullBegin, begin);
    fullEnd = builder.createOrFold<arith::SelectOp>(hasFull, fullEnd, begin);
  }
  return {begin, fullBegin, fullEnd, end, sets.precision != Precision::Sound};
}

KVRanges tile::computeKVRanges(ImplicitLocOpBuilder &builder, KVLoopOp loop,
                               std::optional<RowWindow> rows,
                               SmallVectorImpl<Operation *> &opaque) {
  KeyInterval keys = {loop.getBegin(), loop.getEnd()};
  KeySets sets = {keys, keys, Precision::SameForRows};
  loop.walk([&](MaskOp mask) {
    KeySets hidden = analyzeMask(builder, loop, mask, keys, rows, opaque);
    if (!mask.getSkippable())
      hidden.visible = keys;
    sets = intersect(builder, sets, hidden, keys);
  });
  KVRanges ranges = roundToSteps(builder, loop, sets);
  // Rows that nobody wants take no step.
  if (rows && loop.getRows())
    ranges.end = builder.createOrFold<arith::SelectOp>(
        compare(builder, rows->offset, loop.getRows()), ranges.end,
        ranges.begin);
  return ranges;
}
