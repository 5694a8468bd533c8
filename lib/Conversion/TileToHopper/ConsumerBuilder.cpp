//===- ConsumerBuilder.cpp - The role that computes -----------------------===//

#include "RoleBuilder.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::hopper;
using namespace mlir::tile;

//===----------------------------------------------------------------------===//
// Tiles of queries
//===----------------------------------------------------------------------===//

void ConsumerBuilder::build() {
  Block &body = kernel.getBody().front();
  if (!schedule.getPersistent()) {
    cloneBody(body.begin(), Block::iterator(loop));
    buildTile(i32(0), i32(0), buildSteps(mapping));
    return;
  }
  // Values are (number of tiles, KV tiles) up to here, handed on behind the
  // tile's number.
  Values last = emitWhile(
      {i32(0), i32(0)}, 3,
      [&](ValueRange values) {
        numbersSlot = WaitOp::create(builder, rings.tiles, values[0]);
        Value tile = get(numbersSlot, i32(0), 1).front();
        Value goesOn = less(i32(kNoTile), tile);
        return std::pair(goesOn, Values{tile, values[0], values[1]});
      },
      [&](ValueRange values) -> Values {
        Value tile = values[0], count = values[1];
        numbersSlot = SlotOp::create(builder, rings.tiles, count);
        bindProgramId(tile);
        getShared();
        cloneBody(body.begin(), Block::iterator(loop));
        Value next = buildTile(count, values[2], getSteps());
        return {add(count, i32(1)), next};
      });
  Value slot = SlotOp::create(builder, rings.tiles, last[1]);
  ReleaseOp::create(builder, slot);
}

void ConsumerBuilder::getShared() {
  size_t count = scalars.shared.size();
  if (count != 0)
    mapping.map(scalars.shared, get(numbersSlot, i32(1), count));
}

Steps ConsumerBuilder::getSteps() {
  Value own = mul(WarpgroupIdOp::create(builder, builder.getI32Type()),
                  i32(Steps::kNumFields));
  Value first = add(own, i32(1 + scalars.shared.size()));
  Steps steps = Steps::fromFields(get(numbersSlot, first, Steps::kNumFields));
  // What is the same for certain should be the same value.
  if (!hasFull())
    steps.fullBegin = steps.count;
  if (!hasFull() || endsFull())
    steps.fullEnd = steps.count;
  return steps;
}

/// Computes tile `tileNumber` of this program, whose first KV tile is tile
/// `first` of the rings; returns the number of the one behind its last.
Value ConsumerBuilder::buildTile(Value tileNumber, Value first, Steps steps) {
  qSlot = WaitOp::create(builder, rings.q, tileNumber);
  skip(first, steps.skipped);
  base = add(first, steps.skipped);
  Values inits = llvm::map_to_vector(
      loop.getInits(), [&](Value value) { return lookup(value); });
  Values results;
  switch (parts.canOverlap() ? schedule.getPipeline()
                             : attn::RolePipeline::Simple) {
  case attn::RolePipeline::Simple:
    results = buildSimple(steps, inits);
    break;
  case attn::RolePipeline::Overlap:
    results = buildOverlapped(steps, inits);
    break;
  case attn::RolePipeline::Ahead:
    results = buildAhead(steps, inits);
    break;
  }
  mapping.map(loop.getResults(), results);
  // Once more, instead of in registers all along.
  if (schedule.getPersistent()) {
    getShared();
    steps = getSteps();
    ReleaseOp::create(builder, numbersSlot);
  }
  Value taken = add(steps.skipped, steps.count);
  skip(add(first, taken), sub(steps.total, taken));
  Block &body = kernel.getBody().front();
  cloneBody(std::next(Block::iterator(loop)), body.end());
  if (parts.tmaStore)
    ReleaseOp::create(builder, qSlot);
  return add(first, steps.total);
}

void ConsumerBuilder::cloneOp(Operation &op) {
  if (&op == parts.tmaStore) {
    Values indices =
        llvm::map_to_vector(parts.tmaStore.getIndices(),
                            [&](Value value) { return lookup(value); });
    TmaStoreOp::create(builder, lookup(parts.tmaStore.getValue()), qSlot,
                       lookup(parts.tmaStore.getDest()), indices);
    return;
  }
  // The number of the program, and what the producer posted.
  bool isBound = op.getNumResults() == 1 && mapping.contains(op.getResult(0));
  if (!isBound && !parts.isReplaced(&op) &&
      !isa<CreateRingOp, WarpSpecializeOp, ReturnOp>(op))
    builder.clone(op, mapping);
}

void ConsumerBuilder::cloneBody(Block::iterator first, Block::iterator last) {
  for (Operation &op : llvm::make_range(first, last))
    cloneOp(op);
}

/// Takes KV tiles that other warpgroups need and this one doesn't.
void ConsumerBuilder::skip(Value firstNumber, Value count) {
  if (isConstantIntValue(count, 0))
    return;
  emitFor(i32(0), count, 1, {}, [&](Value index, ValueRange) {
    // In the producer's order: with one stage the tile of a rule is given back
    // before it goes on to V.
    Values all = {rings.k};
    llvm::append_range(all, rings.captures);
    all.push_back(rings.v);
    for (Value ring : all) {
      Value slot = WaitOp::create(builder, ring, add(firstNumber, index));
      ReleaseOp::create(builder, slot);
    }
    return Values();
  });
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

Value ConsumerBuilder::getKV(const Steps &steps, Value index) {
  Value distance = mul(index, step());
  return getKey(loop.getUnordered() ? sub(steps.first, distance)
                                    : add(steps.first, distance));
}

/// S = Q K^T of K tile `number`.
ConsumerBuilder::Product ConsumerBuilder::startQK(const Steps &steps,
                                                  Value number) {
  return startQK(steps, WaitOp::create(builder, rings.k, number), number);
}

ConsumerBuilder::Product ConsumerBuilder::startQK(const Steps &steps,
                                                  Value slot, Value number) {
  auto type = PendingType::get(builder.getContext(), parts.qk.getType());
  auto [slope, start] = cloneRamp(steps, number);
  Value scores =
      WgmmaOp::create(builder, type, qSlot, slot, /*acc=*/Value(), slope, start,
                      /*transpose_b=*/true, /*permuted_k=*/false);
  return {scores, rings.k, number};
}

/// The ramp that the scores of K tile `number` start at, if any.
std::pair<Value, Value> ConsumerBuilder::cloneRamp(const Steps &steps,
                                                   Value number) {
  if (!parts.slope)
    return {};
  Block &block = loop.getQk().front();
  IRMapping local = mapping;
  local.map(block.getArgument(0), getKV(steps, sub(number, base)));
  llvm::SetVector<Operation *> slice;
  BackwardSliceOptions options;
  options.omitBlockArguments = true;
  options.inclusive = true;
  options.filter = [&](Operation *op) { return op->getBlock() == &block; };
  // It doesn't fail without block arguments.
  (void)getBackwardSlice(parts.slope, &slice, options);
  (void)getBackwardSlice(parts.start, &slice, options);
  for (Operation *op : slice)
    builder.clone(*op, local);
  return {local.lookupOrDefault(parts.slope),
          local.lookupOrDefault(parts.start)};
}

ConsumerBuilder::Product ConsumerBuilder::startPV(Value number, Value p,
                                                  Value acc) {
  return startPV(WaitOp::create(builder, rings.v, number), number, p, acc);
}

ConsumerBuilder::Product ConsumerBuilder::startPV(Value slot, Value number,
                                                  Value p, Value acc) {
  auto type = PendingType::get(builder.getContext(), parts.pv.getType());
  MmaOp pv = parts.pv;
  Value output =
      WgmmaOp::create(builder, type, p, slot, acc, /*slope=*/Value(),
                      /*start=*/Value(),
                      /*transpose_b=*/parts.transposesV || pv.getTransposeB(),
                      /*permuted_k=*/parts.transposesV || pv.getPermutedK());
  return {output, rings.v, number};
}

/// Waits for a product and gives the slot back that it read.
Value ConsumerBuilder::finish(const Product &product, int32_t inFlight) {
  auto type = cast<PendingType>(product.pending.getType());
  Value tile =
      WgmmaWaitOp::create(builder, type.getTile(), inFlight, product.pending);
  Value slot = SlotOp::create(builder, product.ring, product.number);
  ReleaseOp::create(builder, slot);
  return tile;
}

/// What rules read of K tile `number`. Behind the start of its product, so that
/// it comes under that.
Values ConsumerBuilder::readCaptures(Value number) {
  Values tiles;
  for (auto [load, ring] :
       llvm::zip_equal(parts.captureLoads, rings.captures)) {
    Value slot = WaitOp::create(builder, ring, number);
    tiles.push_back(ReadOp::create(builder, load.getType(), slot));
    ReleaseOp::create(builder, slot);
  }
  return tiles;
}

/// Clones a region of the loop without its load and product and returns what
/// it yields.
Values ConsumerBuilder::cloneRegion(Region &region, Value kv,
                                    ValueRange previous, ValueRange carried,
                                    IRMapping &local) {
  Block &block = region.front();
  Values args = {kv};
  llvm::append_range(args, previous);
  llvm::append_range(args, carried);
  local.map(block.getArguments(), args);
  for (Operation &op : block.without_terminator())
    if (!parts.isReplaced(&op))
      builder.clone(op, local);
  return llvm::map_to_vector(
      block.getTerminator()->getOperands(),
      [&](Value value) { return local.lookupOrDefault(value); });
}

static void dropMasks(Block::iterator first, Block::iterator last,
                      Values &values) {
  for (Operation &op :
       llvm::make_early_inc_range(llvm::make_range(first, last))) {
    auto mask = dyn_cast<MaskOp>(op);
    if (!mask)
      continue;
    llvm::replace(values, mask.getResult(), mask.getSource());
    mask.replaceAllUsesWith(mask.getSource());
    mask.erase();
  }
}

/// The regions qk (behind its product), score and softmax.
Values ConsumerBuilder::emitSoftmax(Value kv, Value scores, ValueRange captures,
                                    ValueRange carried, StepKind kind) {
  IRMapping local = mapping;
  for (auto [load, tile] : llvm::zip_equal(parts.captureLoads, captures))
    local.map(load.getResult(), tile);
  local.map(parts.qk.getResult(), scores);
  Values values;
  for (Region *region : {&loop.getQk(), &loop.getScore(), &loop.getSoftmax()}) {
    Block *block = builder.getInsertionBlock();
    Operation *last = block->empty() ? nullptr : &block->back();
    values = cloneRegion(*region, kv, values, carried, local);
    if (kind == StepKind::Full)
      dropMasks(last ? std::next(last->getIterator()) : block->begin(),
                block->end(), values);
  }
  return values;
}

/// The region pv up to its product.
ConsumerBuilder::SoftmaxResult
ConsumerBuilder::emitRescale(Value kv, ValueRange previous,
                             ValueRange carried) {
  IRMapping local = mapping;
  Values yielded = cloneRegion(loop.getPv(), kv, previous, carried, local);
  // What stands for the product is bound by the caller.
  yielded[parts.accIndex] = Value();
  return {local.lookupOrDefault(parts.pv.getA()),
          local.lookupOrDefault(parts.pv.getAcc()), std::move(yielded)};
}

/// Emits the steps from `skipped` on in order, one loop a range.
Values ConsumerBuilder::emitRanges(const Steps &steps, int64_t skipped,
                                   Values state, StepFn body) {
  auto emitRange = [&](Value lower, Value upper, StepKind kind) {
    if (isEqualConstantIntOrValue(lower, upper))
      return;
    if (skipped != 0)
      lower = max(lower, i32(skipped));
    state =
        emitFor(lower, upper, 1, state, [&](Value index, ValueRange carried) {
          return body(index, carried, kind);
        });
  };
  emitRange(i32(0), steps.fullBegin, StepKind::Partial);
  emitRange(steps.fullBegin, steps.fullEnd, StepKind::Full);
  emitRange(steps.fullEnd, steps.count, StepKind::Partial);
  return state;
}

//===----------------------------------------------------------------------===//
// Simple: one product after the other
//===----------------------------------------------------------------------===//

Values ConsumerBuilder::buildSimpleStep(const Steps &steps, Value index,
                                        ValueRange carried, StepKind kind) {
  Value number = add(base, index), kv = getKV(steps, index);
  Product qk = startQK(steps, number);
  Values captures = readCaptures(number);
  Value scores = finish(qk, 0);
  Values values = emitSoftmax(kv, scores, captures, carried, kind);
  SoftmaxResult result = emitRescale(kv, values, carried);
  result.carried[parts.accIndex] =
      finish(startPV(number, result.p, result.acc), 0);
  return result.carried;
}

Values ConsumerBuilder::buildSimple(const Steps &steps, ValueRange inits) {
  Values results =
      emitRanges(steps, /*skipped=*/0, Values(inits),
                 [&](Value index, ValueRange carried, StepKind kind) {
                   return buildSimpleStep(steps, index, carried, kind);
                 });
  releaseQ();
  return results;
}

/// Gives Q's slot back behind the last product that reads it, so that the next
/// Q arrives under the rest of this tile, unless the output goes through it.
void ConsumerBuilder::releaseQ() {
  if (!parts.tmaStore)
    ReleaseOp::create(builder, qSlot);
}

//===----------------------------------------------------------------------===//
// Overlap: PV of a step under the softmax of the next
//===----------------------------------------------------------------------===//

/// The state between steps is (carried, with the rescaled accumulator in its
/// place; P).
Values ConsumerBuilder::buildOverlapped(const Steps &steps, ValueRange inits) {
  auto pack = [&](SoftmaxResult result) {
    Values state = std::move(result.carried);
    state[parts.accIndex] = result.acc;
    state.push_back(result.p);
    return state;
  };
  auto buildSteps = [&]() -> Values {
    Product first = startQK(steps, base);
    Values captures = readCaptures(base);
    Value scores = finish(first, 0);
    // Masks do nothing in a full step: the first may be either.
    Value kv = getKV(steps, i32(0));
    Values softmax =
        emitSoftmax(kv, scores, captures, inits, StepKind::Partial);
    Values state = pack(emitRescale(kv, softmax, inits));
    auto body = [&](Value index, ValueRange state, StepKind kind) {
      Values carried(state.drop_back());
      Value number = add(base, index), kv = getKV(steps, index);
      Product qk = startQK(steps, number);
      Product pv =
          startPV(sub(number, i32(1)), state.back(), carried[parts.accIndex]);
      Values captures = readCaptures(number);
      Value scores = finish(qk, 1);
      Values softmax = emitSoftmax(kv, scores, captures, carried, kind);
      carried[parts.accIndex] = finish(pv, 0);
      return pack(emitRescale(kv, softmax, carried));
    };
    state = emitRanges(steps, /*skipped=*/1, state, body);
    releaseQ();
    Value last = sub(add(base, steps.count), i32(1));
    Values carried(ValueRange(state).drop_back());
    carried[parts.accIndex] =
        finish(startPV(last, state.back(), carried[parts.accIndex]), 0);
    return carried;
  };
  return emitIf(less(i32(0), steps.count), inits.getTypes(), buildSteps, [&] {
    releaseQ();
    return Values(inits);
  });
}

//===----------------------------------------------------------------------===//
// Ahead: QK of the step after next and PV under the softmax
//===----------------------------------------------------------------------===//

Values ConsumerBuilder::pack(const AheadState &state) {
  Values values = state.carried;
  values[parts.accIndex] = state.output;
  values.push_back(state.scores);
  values.push_back(state.nextScores);
  return values;
}

ConsumerBuilder::AheadState ConsumerBuilder::unpack(ValueRange values) {
  Values carried(values.drop_back(2));
  Value output = carried[parts.accIndex];
  return {std::move(carried), values[values.size() - 2], values.back(), output};
}

/// Step `index`. `isFirst`: no PV is under way. `hasQK`: two steps follow, and
/// the product QK of the second is started; if none follows, there are no next
/// scores to wait for.
ConsumerBuilder::AheadState
ConsumerBuilder::buildAheadStep(const Steps &steps, Value index,
                                AheadState state, StepKind kind, bool isFirst,
                                bool hasQK) {
  Value number = add(base, index), kv = getKV(steps, index);
  Values softmax =
      emitSoftmax(kv, state.scores, readCaptures(number), state.carried, kind);
  // Tiles that the next products need are waited for while the last ones run.
  Value numberAhead = add(number, i32(2)), slotAhead;
  Value slotV = WaitOp::create(builder, rings.v, number);
  if (hasQK)
    slotAhead = WaitOp::create(builder, rings.k, numberAhead);
  if (!isFirst)
    state.carried[parts.accIndex] =
        finish({state.output, rings.v, sub(number, i32(1))}, 0);
  Value scores;
  if (state.nextScores)
    scores = finish({state.nextScores, rings.k, add(number, i32(1))}, 0);
  SoftmaxResult result = emitRescale(kv, softmax, state.carried);
  Product pv = startPV(slotV, number, result.p, result.acc);
  Value nextScores;
  if (hasQK)
    nextScores = startQK(steps, slotAhead, numberAhead).pending;
  return {std::move(result.carried), scores, nextScores, pv.pending};
}

/// Three steps or more, of which at least the last two are of kind `last`.
Values ConsumerBuilder::buildAheadSteps(const Steps &steps, ValueRange inits,
                                        StepKind last) {
  auto buildStep = [&](Value index, AheadState state, StepKind kind,
                       bool isFirst = false) {
    return buildAheadStep(steps, index, std::move(state), kind, isFirst,
                          /*hasQK=*/true);
  };
  // An odd number of steps begins with one, an even number with two, so that
  // from there on they go in pairs and products keep their registers.
  auto begin = [&](bool isOdd) {
    Value scores = finish(startQK(steps, base), 0);
    Value nextScores = startQK(steps, add(base, i32(1))).pending;
    AheadState state = {Values(inits), scores, nextScores, Value()};
    state = buildStep(i32(0), state, StepKind::Partial, /*isFirst=*/true);
    return isOdd ? state : buildStep(i32(1), state, StepKind::Partial);
  };
  Value isOdd =
      builder.createOrFold<arith::TruncIOp>(builder.getI1Type(), steps.count);
  SmallVector<Type> types(inits.getTypes());
  auto outputType = PendingType::get(builder.getContext(), parts.pv.getType());
  types[parts.accIndex] = outputType;
  types.push_back(parts.qk.getType());
  types.push_back(PendingType::get(builder.getContext(), parts.qk.getType()));
  Values values = emitIf(
      isOdd, types, [&] { return pack(begin(true)); },
      [&] { return pack(begin(false)); });

  Value start =
      sub(i32(2),
          builder.createOrFold<arith::ExtUIOp>(builder.getI32Type(), isOdd));
  Value end = sub(steps.count, i32(2));
  auto emitPairs = [&](Value lower, Value upper, StepKind kind) {
    values =
        emitFor(lower, upper, 2, values, [&](Value index, ValueRange carried) {
          AheadState state = buildStep(index, unpack(carried), kind);
          return pack(buildStep(add(index, i32(1)), state, kind));
        });
  };
  // As many pairs from `start` on as end before `index`, or one more if it lies
  // within a pair.
  auto roundToPairs = [&](Value index, bool up) {
    Value distance = max(sub(index, start), i32(0));
    Value odd = builder.createOrFold<arith::AndIOp>(distance, i32(1));
    distance = up ? add(distance, odd) : sub(distance, odd);
    return min(add(start, distance), end);
  };
  if (!hasFull()) {
    emitPairs(start, end, StepKind::Partial);
  } else {
    Value fullBegin = roundToPairs(steps.fullBegin, /*up=*/true);
    Value fullEnd = end;
    if (!endsFull())
      fullEnd = max(roundToPairs(steps.fullEnd, /*up=*/false), fullBegin);
    emitPairs(start, fullBegin, StepKind::Partial);
    emitPairs(fullBegin, fullEnd, StepKind::Full);
    if (!endsFull())
      emitPairs(fullEnd, end, StepKind::Partial);
  }

  AheadState state = buildAheadStep(steps, end, unpack(values), last,
                                    /*isFirst=*/false, /*hasQK=*/false);
  releaseQ();
  Value lastIndex = sub(steps.count, i32(1));
  state = buildAheadStep(steps, lastIndex, std::move(state), last,
                         /*isFirst=*/false, /*hasQK=*/false);
  state.carried[parts.accIndex] =
      finish({state.output, rings.v, add(base, lastIndex)}, 0);
  return state.carried;
}

Values ConsumerBuilder::buildAhead(const Steps &steps, ValueRange inits) {
  StepKind last = endsFull() ? StepKind::Full : StepKind::Partial;
  Value least = i32(3);
  if (endsFull())
    least = max(least, add(steps.fullBegin, i32(2)));
  return emitIf(
      less(steps.count, least), inits.getTypes(),
      [&] {
        Values results = emitFor(i32(0), steps.count, 1, inits,
                                 [&](Value index, ValueRange carried) {
                                   return buildSimpleStep(steps, index, carried,
                                                          StepKind::Partial);
                                 });
        releaseQ();
        return results;
      },
      [&] { return buildAheadSteps(steps, inits, last); });
}
