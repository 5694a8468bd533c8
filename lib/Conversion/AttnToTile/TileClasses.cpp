//===- TileClasses.cpp - What a mask does in each tile --------------------===//

#include "TileClasses.h"

using namespace mlir;
using namespace mlir::attn;

/// Rows of a tile that are evaluated before the next look at whether it is
/// mixed.
static constexpr int64_t kRowsAtOnce = 16;

//===----------------------------------------------------------------------===//
// Extremes
//===----------------------------------------------------------------------===//

namespace {
/// One program for the extremes of one read in one tile.
class ExtremesKernel : PrepassKernel {
public:
  ExtremesKernel(Prepass &prepass, ArrayRef<Value> results)
      : PrepassKernel(prepass, "_extremes", results) {}

  void build(ArrayRef<BoundedRead> reads, Value grid);

private:
  void buildRead(BoundedRead read, Value target, Value number);
};
} // namespace

void ExtremesKernel::build(ArrayRef<BoundedRead> reads, Value grid) {
  Value number = tile::ProgramIdOp::create(kernel, kernel.getI32Type());
  for (auto [read, target] : llvm::zip_equal(reads, written)) {
    Value count = kernel.getSizeI32(target, 0);
    for (int64_t dim : {1, 2, 3})
      count = kernel.mul(count, kernel.getSizeI32(target, dim));
    Value isOwn = kernel.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::ult,
                                                     number, count);
    auto branch = scf::IfOp::create(kernel, isOwn, /*withElseRegion=*/false);
    {
      OpBuilder::InsertionGuard guard(kernel);
      kernel.setInsertionPointToStart(branch.thenBlock());
      buildRead(read, target, number);
    }
    number = kernel.sub(number, count);
  }
  finish(grid);
}

/// The ends of i32 stand for whatever lies beyond them.
static Value saturate(Arithmetic &inner, Value value) {
  Type i32 = inner.getI32Type();
  unsigned width = value.getType().getIntOrFloatBitWidth();
  if (width == 1)
    return inner.createOrFold<arith::ExtUIOp>(i32, value);
  if (width < 32)
    return inner.createOrFold<arith::ExtSIOp>(i32, value);
  if (width == 32)
    return value;
  auto constant = [&](int64_t number) -> Value {
    return arith::ConstantOp::create(
        inner, inner.getIntegerAttr(value.getType(), number));
  };
  value = inner.max(value, constant(llvm::minIntN(32)));
  value = inner.min(value, constant(llvm::maxIntN(32)));
  return inner.createOrFold<arith::TruncIOp>(i32, value);
}

void ExtremesKernel::buildRead(BoundedRead read, Value target, Value number) {
  Value keyTile = takeOff(number, target, 3);
  Value granule = takeOff(number, target, 2);
  Value head = takeOff(number, target, 1), batch = number;
  context.head = head;
  Value first, size, length;
  if (read.dims & kQuery) {
    first = bindGranule(granule, batch);
    size = kernel.i32(prepass.granule);
    length = context.qLen;
  } else {
    bindSequence(batch);
    size = kernel.i32(prepass.tiles.blockN);
    first = kernel.mul(keyTile, size);
    length = context.kvLen;
  }
  Value count = kernel.min(size, kernel.sub(length, first));
  auto body = [&](OpBuilder &builder, Value i) {
    Arithmetic inner(op.getLoc(), builder);
    Value index = inner.add(first, i);
    RuleCloner cloner(rule, context, index, index);
    Value value =
        saturate(inner, cloner.clone(inner, CaptureLoadOp(read.load)));
    return SmallVector<Value>{value, value};
  };
  auto reduced = tile::ReduceRangeOp::create(kernel, kernel.i32(0), count,
                                             /*numMin=*/1, body);
  for (int64_t i : {0, 1}) {
    Value indices[] = {batch, head, granule, keyTile, kernel.i32(i)};
    tile::StoreElementOp::create(kernel, reduced.getResult(i), target, indices);
  }
}

//===----------------------------------------------------------------------===//
// Classes
//===----------------------------------------------------------------------===//

namespace {
/// One program for one granule of queries and some tiles of keys.
class ClassesKernel : PrepassKernel {
public:
  ClassesKernel(Prepass &prepass, ArrayRef<BoundedRead> reads, Value classes)
      : PrepassKernel(prepass, "_classes", classes), reads(reads) {}

  void build(Value grid);

private:
  /// Queries or keys of a tile.
  struct ElementRange {
    Value first, count;
  };

  Value classifyGroup(Value firstQuery, Value group);
  ElementRange getElements(Arithmetic &builder, Value first, int64_t size,
                           Value length);
  ElementRange getKeys(Arithmetic &builder, Value keyTile);
  Value getClass(Arithmetic &builder, RuleBounds isVisible, Value numKeys,
                 TileClass otherwise);
  std::optional<RuleBounds> readExtremes(OpBuilder &builder, CaptureLoadOp load,
                                         Value keyTile);
  Value classifyByBounds(const ElementRange &queries, Value firstTile,
                         Value lastTile);
  Value classifyByElements(const ElementRange &queries,
                           const ElementRange &keys);
  Value getYielded() { return rule.front().getTerminator()->getOperand(0); }

  ArrayRef<BoundedRead> reads;
  /// The number of the program's granule.
  Value granule;
  /// The tiles of keys that there are.
  Value numTiles;
};
} // namespace

void ClassesKernel::build(Value grid) {
  Value target = written.back();
  Value rest = tile::ProgramIdOp::create(kernel, kernel.getI32Type());
  Value programs = kernel.getSizeI32(target, 3);
  if (prepass.hasSequences())
    programs = kernel.min(programs, kernel.i32(kMaxGroupPrograms));
  Value group = kernel.rem(rest, programs);
  rest = kernel.div(rest, programs);
  granule = takeOff(rest, target, 2);
  context.head = takeOff(rest, target, 1);
  Value batch = rest;
  Value firstQuery = bindGranule(granule, batch);
  numTiles = divideRoundingUp(context.kvLen, prepass.tiles.blockN);
  auto classify = [&](Value group) {
    tile::StoreElementOp::create(
        kernel, classifyGroup(firstQuery, group), target,
        ValueRange{batch, context.head, granule, group});
  };
  if (prepass.hasSequences()) {
    Value exists = kernel.less(firstQuery, context.qLen);
    Value numGroups = kernel.select(
        exists, divideRoundingUp(numTiles, kTilesInGroup), kernel.i32(0));
    auto loop = scf::ForOp::create(kernel, group, numGroups, programs);
    OpBuilder::InsertionGuard guard(kernel);
    kernel.setInsertionPointToStart(loop.getBody());
    classify(loop.getInductionVar());
  } else {
    classify(group);
  }
  finish(grid);
}

Value ClassesKernel::classifyGroup(Value firstQuery, Value group) {
  Value one = kernel.i32(1), tilesInGroup = kernel.i32(kTilesInGroup);
  Value firstTile = kernel.mul(group, tilesInGroup);
  ElementRange queries =
      getElements(kernel, firstQuery, prepass.granule, context.qLen);
  Value known = classifyByBounds(queries, firstTile, kernel.sub(numTiles, one));

  // Behind the last tile a group has none.
  Value count = kernel.min(kernel.sub(numTiles, firstTile), tilesInGroup);
  Value none = kernel.i32(0);
  auto loop = scf::ForOp::create(kernel, kernel.i32(0), count, one, none);
  OpBuilder::InsertionGuard guard(kernel);
  kernel.setInsertionPointToStart(loop.getBody());
  Value i = loop.getInductionVar();
  Value shift = kernel.mul(i, kernel.i32(kClassBits));
  Value byBounds = getClassInGroup(kernel, known, shift);
  Value isOpen = kernel.equal(byBounds, kernel.number(TileClass::Open));
  auto branch = scf::IfOp::create(kernel, kernel.getI32Type(), isOpen,
                                  /*withElseRegion=*/true);
  Value shifted = kernel.binary<arith::ShLIOp>(branch.getResult(0), shift);
  scf::YieldOp::create(kernel, kernel.binary<arith::OrIOp>(
                                   loop.getRegionIterArgs()[0], shifted));
  kernel.setInsertionPointToStart(branch.thenBlock());
  ElementRange keys = getKeys(kernel, kernel.add(firstTile, i));
  scf::YieldOp::create(kernel, classifyByElements(queries, keys));
  kernel.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(kernel, byBounds);
  return loop.getResult(0);
}

Value attn::getClassInGroup(Arithmetic &builder, Value classes, Value shift) {
  return builder.binary<arith::AndIOp>(
      builder.binary<arith::ShRUIOp>(classes, shift),
      builder.i32((1 << kClassBits) - 1));
}

std::optional<RuleBounds> ClassesKernel::readExtremes(OpBuilder &builder,
                                                      CaptureLoadOp load,
                                                      Value keyTile) {
  const auto *read = llvm::find_if(
      reads, [&](const BoundedRead &read) { return read.load == load; });
  if (read == reads.end())
    return std::nullopt;
  Arithmetic inner(op.getLoc(), builder);
  Value zero = inner.i32(0);
  auto get = [&](int64_t i) -> Value {
    Value indices[] = {read->dims & kBatch ? context.batch : zero,
                       read->dims & kHead ? context.head : zero,
                       read->dims & kQuery ? granule : zero,
                       read->dims & kKey ? keyTile : zero, inner.i32(i)};
    // A granule may lie past the last query.
    return tile::GatherOp::create(inner, inner.getI32Type(),
                                  written[read - reads.begin()], indices,
                                  /*in_bounds=*/ArrayRef<int64_t>{0, 1, 3, 4});
  };
  Value min = get(0), max = get(1);
  if (load.getType().isInteger(1)) {
    auto isSet = [&](Value value) {
      return inner.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::ne, value,
                                               zero);
    };
    return RuleBounds{isSet(min), isSet(max)};
  }
  auto widen = [&](Value value, int64_t end, int64_t beyond) -> Value {
    Type i64 = inner.getI64Type();
    Value wide = inner.createOrFold<arith::ExtSIOp>(i64, value);
    if (load.getType().getIntOrFloatBitWidth() <= 32)
      return wide;
    Value isEnd = inner.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::eq,
                                                    value, inner.i32(end));
    Value limit =
        arith::ConstantOp::create(inner, inner.getI64IntegerAttr(beyond));
    return inner.select(isEnd, limit, wide);
  };
  return RuleBounds{widen(min, llvm::minIntN(32), llvm::minIntN(64)),
                    widen(max, llvm::maxIntN(32), llvm::maxIntN(64))};
}

ClassesKernel::ElementRange ClassesKernel::getElements(Arithmetic &builder,
                                                       Value first,
                                                       int64_t size,
                                                       Value length) {
  return {first, builder.min(builder.i32(size), builder.sub(length, first))};
}

ClassesKernel::ElementRange ClassesKernel::getKeys(Arithmetic &builder,
                                                   Value keyTile) {
  const int64_t blockN = prepass.tiles.blockN;
  return getElements(builder, builder.mul(keyTile, builder.i32(blockN)), blockN,
                     context.kvLen);
}

/// Of a tile with `numKeys` keys, which is `otherwise` if it is neither hidden
/// nor full.
Value ClassesKernel::getClass(Arithmetic &builder, RuleBounds isVisible,
                              Value numKeys, TileClass otherwise) {
  // A tile that reaches past the last key is never full.
  Value isWhole = builder.equal(numKeys, builder.i32(prepass.tiles.blockN));
  Value whole = builder.select(isWhole, builder.number(TileClass::Full),
                               builder.number(TileClass::Partial));
  Value seen = builder.select(isVisible.min, whole, builder.number(otherwise));
  return builder.select(isVisible.max, seen, builder.number(TileClass::Hidden));
}

/// The classes of some tiles as bit fields, the first in the lowest; a thread
/// takes a tile.
Value ClassesKernel::classifyByBounds(const ElementRange &queries,
                                      Value firstTile, Value lastTile) {
  auto getEnds = [](Arithmetic &builder, const ElementRange &range) {
    Value last =
        builder.sub(builder.add(range.first, range.count), builder.i32(1));
    return RuleBounds{range.first, last};
  };
  RuleBounds ofQueries = getEnds(kernel, queries);
  Arithmetic outer(op.getLoc(), kernel);
  // The elements decide what can't be bounded.
  SetVector<Operation *> opaque;
  auto body = [&](OpBuilder &builder, Value i) {
    Arithmetic inner(op.getLoc(), builder);
    Value keyTile = inner.min(inner.add(firstTile, i), lastTile);
    ElementRange keys = getKeys(inner, keyTile);
    auto read = [&](OpBuilder &builder, CaptureLoadOp load) {
      return readExtremes(builder, load, keyTile);
    };
    RuleBoundsBuilder bounds(rule, context, prepass.inputs, outer, inner,
                             ofQueries, getEnds(inner, keys), read, opaque);
    Value tileClass =
        getClass(inner, bounds.get(getYielded()), keys.count, TileClass::Open);
    SmallVector<Value> results;
    for (int64_t number = 0; number < kTilesInGroup; ++number)
      results.push_back(inner.select(inner.equal(i, inner.i32(number)),
                                     tileClass, inner.i32(0)));
    return results;
  };
  auto classes = tile::ReduceRangeOp::create(
      kernel, kernel.i32(0), kernel.i32(kTilesInGroup), /*numMin=*/0, body);
  Value packed = kernel.i32(0);
  for (auto [number, tileClass] : llvm::enumerate(classes.getResults()))
    packed = kernel.binary<arith::OrIOp>(
        packed, kernel.binary<arith::ShLIOp>(tileClass,
                                             kernel.i32(number * kClassBits)));
  return packed;
}

/// Some rows at a time, until it is known that only some elements are visible.
Value ClassesKernel::classifyByElements(const ElementRange &queries,
                                        const ElementRange &keys) {
  Value zero = kernel.i32(0), one = kernel.i32(1);
  Value columns = kernel.i32(prepass.tiles.blockN);
  Value lastColumn = kernel.sub(keys.count, one);
  auto body = [&](OpBuilder &builder, Value i) {
    Arithmetic inner(op.getLoc(), builder);
    Value row = inner.div(i, columns);
    // Behind the last key it comes again.
    Value column = inner.min(inner.rem(i, columns), lastColumn);
    RuleCloner cloner(rule, context, inner.add(queries.first, row),
                      inner.add(keys.first, column));
    Value isVisible = inner.toI32(cloner.clone(inner, getYielded()));
    return SmallVector<Value>{isVisible, isVisible};
  };
  auto loop =
      scf::ForOp::create(kernel, zero, queries.count, kernel.i32(kRowsAtOnce),
                         /*all, any*/ ValueRange{one, zero});
  {
    OpBuilder::InsertionGuard guard(kernel);
    kernel.setInsertionPointToStart(loop.getBody());
    Value row = loop.getInductionVar();
    ValueRange known = loop.getRegionIterArgs();
    Value isMixed = kernel.less(known[0], known[1]);
    auto branch =
        scf::IfOp::create(kernel, known.getTypes(), isMixed,
                          /*addThenBlock=*/true, /*addElseBlock=*/true);
    scf::YieldOp::create(kernel, branch.getResults());
    kernel.setInsertionPointToStart(branch.thenBlock());
    scf::YieldOp::create(kernel, known);
    kernel.setInsertionPointToStart(branch.elseBlock());
    Value endRow =
        kernel.min(kernel.add(row, kernel.i32(kRowsAtOnce)), queries.count);
    auto reduced = tile::ReduceRangeOp::create(kernel, kernel.mul(row, columns),
                                               kernel.mul(endRow, columns),
                                               /*numMin=*/1, body);
    scf::YieldOp::create(
        kernel, ValueRange{kernel.min(known[0], reduced.getResult(0)),
                           kernel.max(known[1], reduced.getResult(1))});
  }
  RuleBounds isVisible = {kernel.equal(loop.getResult(0), one),
                          kernel.equal(loop.getResult(1), one)};
  return getClass(kernel, isVisible, keys.count, TileClass::Partial);
}

//===----------------------------------------------------------------------===//
// Entry points
//===----------------------------------------------------------------------===//

void attn::buildExtremesKernel(Prepass &prepass, ArrayRef<BoundedRead> reads,
                               ArrayRef<Value> results, Value grid) {
  ExtremesKernel(prepass, results).build(reads, grid);
}

void attn::buildClassesKernel(Prepass &prepass, ArrayRef<BoundedRead> reads,
                              Value classes, Value grid) {
  ClassesKernel(prepass, reads, classes).build(grid);
}
