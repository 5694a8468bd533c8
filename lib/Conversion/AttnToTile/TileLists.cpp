//===- TileLists.cpp - Which tiles a mask leaves to visit -----------------===//

#include "TileLists.h"
#include "TileClasses.h"

using namespace mlir;
using namespace mlir::attn;
using tile::MaskOp;

namespace {
/// One program for the list of one tile of queries.
class TilesKernel : PrepassKernel {
public:
  TilesKernel(Prepass &prepass, Value listsMemory, Value rangesMemory)
      : PrepassKernel(prepass, "_tiles", {listsMemory, rangesMemory}),
        ofGranules(written[written.size() - 3]),
        lists(written[written.size() - 2]), ranges(written.back()) {}

  void build(Value grid);

private:
  /// What a tile of keys is to a granule; one without queries hides nothing.
  struct TileKind {
    Value isVisible, isFull, hidesNothing;
  };
  /// Whether a tile is listed and where, and the next carried values.
  struct ListStep {
    Value isListed, position;
    SmallVector<Value> next;
  };
  /// Of the list, what a granule sees and the first run that it sees whole.
  struct GranuleRange {
    Value begin, fullBegin, fullEnd, end;
  };

  void bindProgram();
  Value countKeyTiles();
  scf::ForOp
  forEachKeyTile(ValueRange inits,
                 function_ref<ListStep(ArrayRef<TileKind>, ValueRange)> body);
  SmallVector<Value> readClasses(Value firstTile);
  SmallVector<TileKind> getKinds(ArrayRef<Value> groups, int64_t i,
                                 Value isTile);
  Value isFullForAll(ArrayRef<TileKind> kinds);
  Value listFullTiles();
  SmallVector<GranuleRange> listPartialTiles(Value numFull);
  void storeRange(const GranuleRange &range, unsigned i);

  /// Memory: the classes of granules, and what the kernel writes.
  Value ofGranules, lists, ranges;
  /// Where the program's are in it: batch, tile of queries, and its granules.
  Value batch, row;
  SmallVector<Value> granules;
  /// Whether granules have queries.
  SmallVector<Value> exists;
  Value numTiles;
};
} // namespace

void TilesKernel::build(Value grid) {
  bindProgram();
  numTiles = countKeyTiles();
  Value numFull = listFullTiles();
  for (auto [i, range] : llvm::enumerate(listPartialTiles(numFull)))
    storeRange(range, i);
  finish(grid);
}

void TilesKernel::bindProgram() {
  Value rest = tile::ProgramIdOp::create(kernel, kernel.getI32Type());
  row = takeOff(rest, lists, 2);
  context.head = takeOff(rest, lists, 1);
  batch = rest;
  Value firstQuery = bindTile(row, batch);
  Value first = kernel.mul(row, kernel.i32(prepass.granulesInTile));
  for (int64_t i = 0; i < prepass.granulesInTile; ++i) {
    granules.push_back(kernel.add(first, kernel.i32(i)));
    Value query = kernel.add(firstQuery, kernel.i32(i * prepass.granule));
    exists.push_back(kernel.less(query, context.qLen));
  }
}

/// Those of the sequence; none for a number that no tile has.
Value TilesKernel::countKeyTiles() {
  if (!prepass.hasSequences())
    return kernel.getSizeI32(lists, 3);
  return kernel.select(exists.front(),
                       divideRoundingUp(context.kvLen, prepass.tiles.blockN),
                       kernel.i32(0));
}

/// Emits a loop over all tiles of keys that carries `inits` and lists those for
/// which `body` says so, at a position that it gives.
scf::ForOp TilesKernel::forEachKeyTile(
    ValueRange inits,
    function_ref<ListStep(ArrayRef<TileKind>, ValueRange)> body) {
  auto loop = scf::ForOp::create(kernel, kernel.i32(0), numTiles,
                                 kernel.i32(kTilesInGroup), inits);
  OpBuilder::InsertionGuard guard(kernel);
  kernel.setInsertionPointToStart(loop.getBody());
  Value firstTile = loop.getInductionVar();
  SmallVector<Value> classes = readClasses(firstTile);
  SmallVector<Value> carried(loop.getRegionIterArgs());
  for (int64_t i = 0; i < kTilesInGroup; ++i) {
    Value keyTile = kernel.add(firstTile, kernel.i32(i));
    SmallVector<TileKind> kindsOfTile =
        getKinds(classes, i, kernel.less(keyTile, numTiles));
    ListStep step = body(kindsOfTile, carried);
    // Nothing is stored outside of the list.
    Value position =
        kernel.select(step.isListed, step.position, kernel.i32(-1));
    tile::StoreElementOp::create(
        kernel, keyTile, lists, ValueRange{batch, context.head, row, position});
    carried = std::move(step.next);
  }
  scf::YieldOp::create(kernel, carried);
  return loop;
}

/// The classes of a group of tiles for each granule. Of one without queries 0
/// is read, outside of the memory, which is hidden.
SmallVector<Value> TilesKernel::readClasses(Value firstTile) {
  Value group = kernel.div(firstTile, kernel.i32(kTilesInGroup));
  SmallVector<Value> groups;
  for (auto [granule, hasQueries] : llvm::zip_equal(granules, exists)) {
    // Those of one sequence alone lie behind the last that has.
    Value number = prepass.isPacked()
                       ? kernel.select(hasQueries, granule, kernel.i32(-1))
                       : granule;
    Value indices[] = {batch, context.head, number, group};
    groups.push_back(
        tile::GatherOp::create(kernel, kernel.getI32Type(), ofGranules, indices,
                               /*in_bounds=*/ArrayRef<int64_t>{0, 1, 3}));
  }
  return groups;
}

/// What tile `i` of a group, if it exists, is to each granule.
SmallVector<TilesKernel::TileKind>
TilesKernel::getKinds(ArrayRef<Value> groups, int64_t i, Value isTile) {
  SmallVector<TileKind> kinds;
  for (auto [group, hasQueries] : llvm::zip_equal(groups, exists)) {
    Value tileClass =
        getClassInGroup(kernel, group, kernel.i32(i * kClassBits));
    Value isVisible = kernel.negate(
        kernel.equal(tileClass, kernel.number(TileClass::Hidden)));
    Value isFull = kernel.equal(tileClass, kernel.number(TileClass::Full));
    Value isEmpty = kernel.both(kernel.negate(hasQueries), isTile);
    kinds.push_back({isVisible, isFull, kernel.either(isFull, isEmpty)});
  }
  return kinds;
}

/// Whether no granule hides anything of a tile.
Value TilesKernel::isFullForAll(ArrayRef<TileKind> kinds) {
  Value all = kinds.front().hidesNothing;
  for (const TileKind &kind : kinds.drop_front())
    all = kernel.both(all, kind.hidesNothing);
  return all;
}

/// Lists the tiles that are full for all granules; returns their number.
Value TilesKernel::listFullTiles() {
  auto body = [&](ArrayRef<TileKind> kinds, ValueRange carried) {
    Value isListed = isFullForAll(kinds);
    Value next = kernel.add(carried[0], kernel.toI32(isListed));
    return ListStep{isListed, carried[0], {next}};
  };
  return forEachKeyTile(kernel.i32(0), body).getResult(0);
}

/// Lists the others of which a granule sees a key, behind the first `numFull`.
SmallVector<TilesKernel::GranuleRange>
TilesKernel::listPartialTiles(Value numFull) {
  constexpr unsigned kNumFields = 4;
  Value zero = kernel.i32(0), one = kernel.i32(1);
  Value hasFull = kernel.less(zero, numFull);
  Value none = kernel.i32(llvm::maxIntN(32));
  SmallVector<Value> inits = {numFull};
  for (int64_t i = 0; i < prepass.granulesInTile; ++i)
    inits.append({kernel.select(hasFull, zero, none), zero, numFull, numFull});
  auto getRange = [&](ValueRange carried, unsigned i) {
    ValueRange own = carried.slice(1 + kNumFields * i, kNumFields);
    return GranuleRange{own[0], own[1], own[2], own[3]};
  };
  auto body = [&](ArrayRef<TileKind> kinds, ValueRange carried) {
    Value position = carried[0], behind = kernel.add(position, one);
    Value isVisible = kinds.front().isVisible;
    for (const TileKind &kind : kinds.drop_front())
      isVisible = kernel.either(isVisible, kind.isVisible);
    Value isListed = kernel.both(isVisible, kernel.negate(isFullForAll(kinds)));
    ListStep step = {isListed, position, {}};
    step.next.push_back(kernel.add(position, kernel.toI32(isListed)));
    for (auto [i, kind] : llvm::enumerate(kinds)) {
      GranuleRange range = getRange(carried, i);
      Value sees = kernel.both(isListed, kind.isVisible);
      Value isFull = kernel.both(isListed, kind.isFull);
      Value isFirst = kernel.equal(range.fullBegin, range.fullEnd);
      Value goesOn =
          kernel.either(isFirst, kernel.equal(range.fullEnd, position));
      step.next.append(
          {kernel.select(sees, kernel.min(range.begin, position), range.begin),
           kernel.select(kernel.both(isFull, isFirst), position,
                         range.fullBegin),
           kernel.select(kernel.both(isFull, goesOn), behind, range.fullEnd),
           kernel.select(sees, behind, range.end)});
    }
    return step;
  };
  scf::ForOp loop = forEachKeyTile(inits, body);
  SmallVector<GranuleRange> result;
  for (int64_t i = 0; i < prepass.granulesInTile; ++i)
    result.push_back(getRange(loop.getResults(), i));
  return result;
}

void TilesKernel::storeRange(const GranuleRange &range, unsigned i) {
  Value zero = kernel.i32(0);
  auto store = [&](MaskOp::BoundsField field, Value position, Value otherwise) {
    Value key = kernel.min(
        kernel.mul(position, kernel.i32(prepass.tiles.blockN)), context.kvLen);
    Value indices[] = {batch, context.head, granules[i], kernel.i32(field)};
    tile::StoreElementOp::create(
        kernel, kernel.select(exists[i], key, otherwise), ranges, indices);
  };
  // Without queries nothing is visible, and nothing is hidden.
  store(MaskOp::Begin, kernel.min(range.begin, range.end), zero);
  store(MaskOp::FullBegin, range.fullBegin, zero);
  store(MaskOp::FullEnd, range.fullEnd, context.kvLen);
  store(MaskOp::End, range.end, zero);
}

void attn::buildTilesKernel(Prepass &prepass, Value lists, Value ranges,
                            Value grid) {
  TilesKernel(prepass, lists, ranges).build(grid);
}
