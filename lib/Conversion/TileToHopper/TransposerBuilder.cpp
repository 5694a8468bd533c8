//===- TransposerBuilder.cpp - The role that transposes V -----------------===//

#include "RoleBuilder.h"

using namespace mlir;
using namespace mlir::hopper;
using namespace mlir::tile;

/// The transposer goes through the tiles of queries as the consumers do, of
/// which it needs the number of steps only.
void TransposerBuilder::build() {
  if (!schedule.getPersistent()) {
    cloneScalarCode(builder, kernel.getBody().front(), mapping);
    transposeTiles(i32(0),
                   countSteps(lookup(loop.getBegin()), lookup(loop.getEnd())));
    return;
  }
  // Values are (number of tiles, KV tiles) up to here.
  Values last = emitWhile(
      {i32(0), i32(0)}, 2,
      [&](ValueRange values) {
        Value slot = WaitOp::create(builder, rings.tiles, values[0]);
        Value tile = get(slot, i32(0), 1).front();
        return std::pair(less(i32(kNoTile), tile), Values(values));
      },
      [&](ValueRange values) -> Values {
        Value slot = SlotOp::create(builder, rings.tiles, values[0]);
        // The first field of any warpgroup's steps.
        Value total = get(slot, i32(1 + scalars.shared.size()), 1).front();
        ReleaseOp::create(builder, slot);
        Value end = add(values[1], total);
        transposeTiles(values[1], end);
        return {add(values[0], i32(1)), end};
      });
  Value slot = SlotOp::create(builder, rings.tiles, last[0]);
  ReleaseOp::create(builder, slot);
}

/// Tiles [begin, end) of the rings.
void TransposerBuilder::transposeTiles(Value begin, Value end) {
  emitFor(begin, end, 1, {}, [&](Value number, ValueRange) {
    Value source = WaitOp::create(builder, rings.staging, number);
    Value target = AcquireOp::create(builder, rings.v, number);
    TransposeOp::create(builder, source, target);
    CommitOp::create(builder, target);
    ReleaseOp::create(builder, source);
    return Values();
  });
}
