//===- ProducerBuilder.cpp - The role that loads --------------------------===//

#include "RoleBuilder.h"

using namespace mlir;
using namespace mlir::hopper;
using namespace mlir::tile;

void ProducerBuilder::cloneScalars() {
  cloneScalarCode(builder, kernel.getBody().front(), mapping);
}

LogicalResult ProducerBuilder::build() {
  if (!schedule.getPersistent()) {
    cloneScalars();
    buildTile(i32(0), i32(0));
    return success(!invalid);
  }
  Value first = ProgramIdOp::create(builder, builder.getI32Type());
  Value numTiles = NumTilesOp::create(builder, builder.getI32Type());
  // Values are (tile, number of tiles before it, KV tiles before it).
  Values last = emitWhile(
      {first, i32(0), i32(0)}, 3,
      [&](ValueRange values) {
        return std::pair(less(values[0], numTiles), Values(values));
      },
      [&](ValueRange values) -> Values {
        // Early: the answer is needed at the end of the tile only.
        Value next = NextTileOp::create(builder, builder.getI32Type());
        bindProgramId(values[0]);
        cloneScalars();
        post(computePosted(values[0]), values[1]);
        Value base = buildTile(values[1], values[2]);
        return {next, add(values[1], i32(1)), base};
      });
  Values end(scalars.countPosted(), i32(0));
  end.front() = i32(kNoTile);
  post(end, last[1]);
  return success(!invalid);
}

/// Hands numbers to the consumers, those of tile `count` of this program.
void ProducerBuilder::post(ValueRange values, Value count) {
  Value slot = AcquireOp::create(builder, rings.tiles, count);
  PutOp::create(builder, values, slot);
  CommitOp::create(builder, slot);
}

/// The tile's number, the shared scalars and the steps of every warpgroup.
Values ProducerBuilder::computePosted(Value tile) {
  Values posted = {tile};
  for (Value value : scalars.shared)
    posted.push_back(lookup(value));
  for (int64_t warpgroup = 0; warpgroup < scalars.warpgroups; ++warpgroup) {
    IRMapping local = mapping;
    for (auto id : kernel.getBody().getOps<WarpgroupIdOp>())
      local.map(id.getResult(), i32(warpgroup));
    cloneScalarCode(builder, kernel.getBody().front(), local);
    llvm::append_range(posted, buildSteps(local).getFields());
  }
  return posted;
}

/// The loads of tile `tileNumber` of this program, in the order in which the
/// consumers take them: K0, Q, K1, V0, K2, V1, ... where products overlap, and
/// K0, Q, V0, K1, V1, ... otherwise, each K with what rules read of the same
/// step. Q comes behind K0 because the consumers may still use the slot.
/// Returns the number of KV tiles up to here, of which `base` are from before.
Value ProducerBuilder::buildTile(Value tileNumber, Value base) {
  for (Value bound : {loop.getBegin(), loop.getEnd()}) {
    if (mapping.contains(bound))
      continue;
    loop.emitOpError("has a range that isn't scalar code; the producer can't "
                     "compute it");
    invalid = true;
    return base;
  }
  for (Value operand : loop.getTilesIndices())
    if (!mapping.contains(operand)) {
      loop.emitOpError("has a list of tiles at a position that isn't scalar "
                       "code; the producer can't compute it");
      invalid = true;
      return base;
    }
  Value begin = lookup(loop.getBegin());
  Value count = countSteps(begin, lookup(loop.getEnd()));
  auto getKV = [&](Value index) {
    if (loop.getUnordered())
      index = sub(sub(count, i32(1)), index);
    return getKey(add(begin, mul(index, step())));
  };
  auto loadK = [&](Value index, Value kv) {
    loadStep(parts.kLoad, rings.k, add(base, index), kv);
    for (auto [load, ring] :
         llvm::zip_equal(parts.captureLoads, rings.captures))
      loadStep(load, ring, add(base, index), kv);
  };
  auto loadV = [&](Value index, Value kv) {
    loadStep(parts.vLoad, parts.transposesV ? rings.staging : rings.v,
             add(base, index), kv);
  };
  auto none = [] { return Values(); };
  Value hasSteps = less(i32(0), count);
  // The keys of a list are read a step ahead.
  bool isListed = bool(loop.getTiles());
  Value firstListed = isListed ? getKV(i32(0)) : Value();
  auto getFirst = [&] { return isListed ? firstListed : getKV(i32(0)); };
  emitIf(
      hasSteps, {}, [&] { return loadK(i32(0), getFirst()), Values(); }, none);
  load(parts.qLoad, rings.q, tileNumber, mapping);
  bool isSimple = schedule.getPipeline() == attn::RolePipeline::Simple;
  emitIf(
      hasSteps, {},
      [&] {
        if (isSimple)
          loadV(i32(0), getFirst());
        // Carried are the keys of the step before and of this one.
        Values inits;
        if (isListed)
          inits = {firstListed, getKV(i32(1))};
        Values last = emitFor(
            i32(1), count, 1, inits, [&](Value index, ValueRange carried) {
              Values next;
              if (isListed)
                next = {carried[1], getKV(add(index, i32(1)))};
              Value kv = isListed ? carried[1] : getKV(index);
              loadK(index, kv);
              if (isSimple) {
                loadV(index, kv);
                return next;
              }
              Value before = sub(index, i32(1));
              loadV(before, isListed ? carried[0] : getKV(before));
              return next;
            });
        if (!isSimple) {
          Value index = sub(count, i32(1));
          loadV(index, isListed ? last[0] : getKV(index));
        }
        return Values();
      },
      none);
  return add(base, count);
}

/// Copies the tile of `source` into slot `number` of `ring`.
void ProducerBuilder::load(LoadOp source, Value ring, Value number,
                           IRMapping &values) {
  Values operands;
  for (Value operand : source->getOperands())
    operands.push_back(values.lookupOrNull(operand));
  if (llvm::is_contained(operands, Value())) {
    if (!invalid)
      source.emitOpError("has a position that isn't scalar code of the key "
                         "position; the producer can't compute it");
    invalid = true;
    return;
  }
  Value slot = AcquireOp::create(builder, ring, number);
  TmaLoadOp::create(builder, operands.front(),
                    ValueRange(operands).drop_front(), slot);
  CommitOp::create(builder, slot);
}

/// The same for a load in the loop, at `kv`.
void ProducerBuilder::loadStep(LoadOp source, Value ring, Value number,
                               Value kv) {
  IRMapping local = mapping;
  Block &block = *source->getBlock();
  local.map(block.getArgument(0), kv);
  cloneScalarCode(builder, block, local);
  load(source, ring, number, local);
}
