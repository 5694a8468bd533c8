//===- LowerKVLoop.cpp - tile.kv_loop to scf.for --------------------------===//

#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"

namespace mlir::tile {
#define GEN_PASS_DEF_TILELOWERKVLOOP
#include "attn/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace mlir::tile

using namespace mlir;
using namespace mlir::tile;

namespace {
enum class StepKind { Partial, Full };

/// Clones the body of `loop` for one step at `kv` and returns the next values
/// of the loop-carried ones.
SmallVector<Value> cloneStep(OpBuilder &builder, KVLoopOp loop, Value kv,
                             ValueRange carried) {
  IRMapping mapping;
  SmallVector<Value> yielded;
  for (Region *region : loop.getRegions()) {
    SmallVector<Value> args = {kv};
    llvm::append_range(args, yielded);
    llvm::append_range(args, carried);
    Block &block = region->front();
    mapping.map(block.getArguments(), args);
    for (Operation &op : block.without_terminator())
      builder.clone(op, mapping);
    yielded = llvm::map_to_vector(
        block.getTerminator()->getOperands(),
        [&](Value value) { return mapping.lookupOrDefault(value); });
  }
  return yielded;
}

void dropMasks(Region &region) {
  region.walk([](MaskOp mask) {
    mask.replaceAllUsesWith(mask.getSource());
    mask.erase();
  });
}

/// Emits the steps in [lower, upper) and returns the carried values after them.
SmallVector<Value> emitRange(OpBuilder &builder, KVLoopOp loop, StepKind kind,
                             Value lower, Value upper, Value step,
                             SmallVector<Value> carried) {
  if (isEqualConstantIntOrValue(lower, upper))
    return carried;
  auto body = [&](OpBuilder &nested, Location loc, Value position,
                  ValueRange args) {
    Value kv = loop.getKey(nested, position, IRMapping());
    scf::YieldOp::create(nested, loc, cloneStep(nested, loop, kv, args));
  };
  auto loopOp = scf::ForOp::create(builder, loop.getLoc(), lower, upper, step,
                                   carried, body);
  if (kind == StepKind::Full)
    dropMasks(loopOp.getRegion());
  return loopOp.getResults();
}

void lowerKVLoop(KVLoopOp loop) {
  OpBuilder builder(loop);
  Value step = arith::ConstantOp::create(
      builder, loop.getLoc(), builder.getI32IntegerAttr(loop.getStep()));
  SmallVector<Value> values = loop.getInits();
  values = emitRange(builder, loop, StepKind::Partial, loop.getBegin(),
                     loop.getFullBegin(), step, values);
  values = emitRange(builder, loop, StepKind::Full, loop.getFullBegin(),
                     loop.getFullEnd(), step, values);
  values = emitRange(builder, loop, StepKind::Partial, loop.getFullEnd(),
                     loop.getEnd(), step, values);
  loop.replaceAllUsesWith(values);
  loop.erase();
}

struct TileLowerKVLoopPass
    : tile::impl::TileLowerKVLoopBase<TileLowerKVLoopPass> {
  void runOnOperation() override {
    // Post-order: a loop inside a loop's region is lowered before it is cloned.
    getOperation().walk([](KVLoopOp loop) { lowerKVLoop(loop); });
  }
};
} // namespace
