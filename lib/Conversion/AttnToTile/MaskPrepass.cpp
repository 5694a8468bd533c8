//===- MaskPrepass.cpp - Kernels that look at a mask before it runs -------===//

#include "MaskPrepass.h"
#include "RuleReader.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/SymbolTable.h"

using namespace mlir;
using namespace mlir::attn;
using tile::MaskOp;

/// Queries that are classified together, at most: what a warpgroup of sm_90a
/// takes.
static constexpr int64_t kMaxGranule = 64;

/// Rows of a tile that are evaluated before the next look at whether it is
/// mixed.
static constexpr int64_t kRowsAtOnce = 16;

/// Tiles of keys whose classes are one number, which is what a program of
/// `_classes` writes.
static constexpr int64_t kTilesInGroup = 8;

namespace {
/// What the elements of a granule of queries and a tile of keys are: all
/// hidden, mixed, all visible, or what bounds don't decide.
enum class TileClass { Hidden, Partial, Full, Open };
constexpr int64_t kClassBits = 2;
static_assert(kTilesInGroup * kClassBits <= 32);

/// A read by query or key alone whose bounds in each tile are wanted.
struct BoundedRead {
  CaptureLoadOp load;
  unsigned inputs;
};

/// Integer arithmetic in a kernel or in host code.
class Arithmetic : public ImplicitLocOpBuilder {
public:
  using ImplicitLocOpBuilder::ImplicitLocOpBuilder;

  Value i32(int64_t value) {
    return arith::ConstantOp::create(*this, getI32IntegerAttr(value));
  }
  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(*this, value);
  }
  template <typename OpT>
  Value binary(Value a, Value b) {
    return createOrFold<OpT>(a, b);
  }
  Value add(Value a, Value b) { return binary<arith::AddIOp>(a, b); }
  Value sub(Value a, Value b) { return binary<arith::SubIOp>(a, b); }
  Value mul(Value a, Value b) { return binary<arith::MulIOp>(a, b); }
  Value div(Value a, Value b) { return binary<arith::DivUIOp>(a, b); }
  Value rem(Value a, Value b) { return binary<arith::RemUIOp>(a, b); }
  Value min(Value a, Value b) { return binary<arith::MinSIOp>(a, b); }
  Value max(Value a, Value b) { return binary<arith::MaxSIOp>(a, b); }
  Value less(Value a, Value b) {
    return createOrFold<arith::CmpIOp>(arith::CmpIPredicate::slt, a, b);
  }
  Value equal(Value a, Value b) {
    return createOrFold<arith::CmpIOp>(arith::CmpIPredicate::eq, a, b);
  }
  Value both(Value a, Value b) { return binary<arith::AndIOp>(a, b); }
  Value either(Value a, Value b) { return binary<arith::OrIOp>(a, b); }
  Value negate(Value a) {
    return binary<arith::XOrIOp>(
        a, arith::ConstantIntOp::create(*this, 1, /*width=*/1));
  }
  Value toI32(Value condition) {
    return createOrFold<arith::ExtUIOp>(getI32Type(), condition);
  }
  template <typename EnumT>
  Value number(EnumT value) {
    return i32(static_cast<int64_t>(value));
  }
  Value select(Value condition, Value a, Value b) {
    return createOrFold<arith::SelectOp>(condition, a, b);
  }
  Value getSize(Value memref, int64_t dim) {
    return createOrFold<memref::DimOp>(memref, dim);
  }
  Value getSizeI32(Value memref, int64_t dim) {
    return createOrFold<arith::IndexCastOp>(getI32Type(), getSize(memref, dim));
  }
};

class PrepassBuilder {
public:
  PrepassBuilder(AttentionOp op, StringRef name, const PrepassTiles &tiles,
                 SymbolTable &symbols)
      : op(op), rule(op.getMaskMod()), name(name), tiles(tiles),
        symbols(symbols),
        granule(tiles.blockM % kMaxGranule == 0 ? kMaxGranule : tiles.blockM),
        granulesInTile(tiles.blockM / granule), host(op.getLoc(), op),
        kernel(op.getLoc(), op.getContext()) {}

  MaskTiles build();

private:
  /// Queries or keys of a tile.
  struct ElementRange {
    Value first, count;
  };
  /// What `_tiles` works on: memory, the numbers of the tile of queries and of
  /// its granules, and whether these have queries.
  struct ListKernel {
    Value classes, tiles, ranges, row;
    SmallVector<Value> granules, exists;
  };
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

  Value getYielded() { return rule.front().getTerminator()->getOperand(0); }
  bool isUsed(BlockArgument capture) { return !capture.use_empty(); }

  void findReads();
  Value product(ArrayRef<Value> factors);
  Value allocate(ArrayRef<Value> sizes, ArrayRef<int64_t> fixed = {});
  tile::KernelOp createKernel(StringRef suffix, ArrayRef<Value> results);
  void launch(tile::KernelOp kernelOp, Value grid);

  void buildExtremesKernel(ArrayRef<Value> results, Value grid);
  void buildExtremes(BoundedRead read, Value target, Value number);
  Value saturate(OpBuilder &builder, Value value);
  std::optional<RuleBounds> readExtremes(OpBuilder &builder, CaptureLoadOp load,
                                         Value keyTile);

  void buildClassesKernel(Value classes, Value grid);
  ElementRange getElements(Arithmetic &builder, Value number, int64_t size,
                           Value length);
  Value getClass(Arithmetic &builder, RuleBounds isVisible, Value numKeys,
                 TileClass otherwise);
  Value getClassInGroup(Value classes, Value shift);
  Value classifyByBounds(const ElementRange &queries, Value firstTile,
                         Value lastTile);
  Value classifyByElements(const ElementRange &queries,
                           const ElementRange &keys);

  void buildTilesKernel(ArrayRef<Value> results, Value grid);
  scf::ForOp
  forEachKeyTile(const ListKernel &list, ValueRange inits,
                 function_ref<ListStep(ArrayRef<TileKind>, ValueRange)> body);
  SmallVector<Value> readClasses(const ListKernel &list, Value firstTile);
  SmallVector<TileKind> getKinds(const ListKernel &list,
                                 ArrayRef<Value> classes, int64_t i,
                                 Value isTile);
  Value isFullForAll(ArrayRef<TileKind> kinds);
  Value listFullTiles(const ListKernel &list);
  SmallVector<GranuleRange> listPartialTiles(const ListKernel &list,
                                             Value numFull);
  void storeRange(const ListKernel &list, const GranuleRange &range,
                  unsigned i);

  AttentionOp op;
  Region &rule;
  StringRef name;
  const PrepassTiles &tiles;
  SymbolTable &symbols;
  RuleInputs inputs;
  SmallVector<BoundedRead> reads;
  int64_t granule, granulesInTile;

  /// Host code, and what it passes to all kernels.
  Arithmetic host;
  SmallVector<Value> arguments;

  /// The kernel that is being built: its own results behind those of the
  /// kernels before it.
  Arithmetic kernel;
  RuleContext context;
  ValueRange written;
  /// Of the granule of queries that `_classes` is at.
  Value granuleNumber;
};
} // namespace

//===----------------------------------------------------------------------===//
// Host code
//===----------------------------------------------------------------------===//

/// Reads by query and key are of the size of the mask: their bounds would cost
/// as much as its elements.
void PrepassBuilder::findReads() {
  for (auto load : rule.front().getOps<CaptureLoadOp>()) {
    unsigned loadInputs = inputs.get(load);
    bool byQuery = (loadInputs & kQuery) != 0, byKey = (loadInputs & kKey) != 0;
    if (byQuery != byKey && isa<IntegerType>(load.getType()) &&
        !load->use_empty())
      reads.push_back({load, loadInputs});
  }
}

Value PrepassBuilder::product(ArrayRef<Value> factors) {
  Value result = factors.front();
  for (Value factor : factors.drop_front())
    result = arith::MulIOp::create(host, result, factor);
  return result;
}

/// i32, with `fixed` sizes behind those of the values.
Value PrepassBuilder::allocate(ArrayRef<Value> sizes, ArrayRef<int64_t> fixed) {
  SmallVector<int64_t> shape(sizes.size(), ShapedType::kDynamic);
  llvm::append_range(shape, fixed);
  auto type = MemRefType::get(shape, host.getI32Type());
  return memref::AllocOp::create(host, type, sizes);
}

MaskTiles PrepassBuilder::build() {
  findReads();
  Value batches = host.getSize(op.getQ(), 0);
  Value heads = host.index(op.getNumQueryHeads());
  Value qLen = host.getSize(op.getQ(), 2), kvLen = host.getSize(op.getK(), 2);
  Value one = host.index(1);
  auto countTiles = [&](Value length, int64_t size) -> Value {
    return arith::CeilDivSIOp::create(host, length, host.index(size));
  };
  Value keyTiles = countTiles(kvLen, tiles.blockN);
  Value granules = countTiles(qLen, granule);
  Value queryTiles = countTiles(qLen, tiles.blockM);
  auto toI32 = [&](Value size) -> Value {
    return arith::IndexCastOp::create(host, host.getI32Type(), size);
  };

  SmallVector<Value> extremes;
  Value numExtremes;
  for (const BoundedRead &read : reads) {
    Value sizes[] = {read.inputs & kBatch ? batches : one,
                     read.inputs & kHead ? heads : one,
                     read.inputs & kQuery ? granules : one,
                     read.inputs & kKey ? keyTiles : one};
    extremes.push_back(allocate(sizes, /*min and max*/ {2}));
    Value count = product(sizes);
    numExtremes =
        numExtremes ? arith::AddIOp::create(host, numExtremes, count) : count;
  }
  unsigned maskInputs = inputs.get(getYielded());
  Value maskBatches = maskInputs & kBatch ? batches : one;
  Value maskHeads = maskInputs & kHead ? heads : one;
  Value classSizes[] = {maskBatches, maskHeads, granules,
                        countTiles(keyTiles, kTilesInGroup)};
  Value classes = allocate(classSizes);
  Value lists = allocate({maskBatches, maskHeads, queryTiles, keyTiles});
  // The last tile of queries may reach past the last granule of queries.
  Value numRanges =
      arith::MulIOp::create(host, queryTiles, host.index(granulesInTile));
  Value ranges =
      allocate({maskBatches, maskHeads, numRanges}, {MaskOp::NumBoundsFields});

  for (auto [capture, operand] :
       llvm::zip_equal(rule.getArguments().take_back(op.getCaptures().size()),
                       op.getCaptures()))
    if (isUsed(capture))
      arguments.push_back(operand);
  llvm::append_range(arguments, ArrayRef<Value>{toI32(qLen), toI32(kvLen)});
  if (!reads.empty())
    buildExtremesKernel(extremes, numExtremes);
  buildClassesKernel(classes, product(classSizes));
  buildTilesKernel({lists, ranges},
                   product({maskBatches, maskHeads, queryTiles}));
  return {ranges, lists, granule, (maskInputs & kBatch) != 0,
          (maskInputs & kHead) != 0};
}

void PrepassBuilder::launch(tile::KernelOp kernelOp, Value grid) {
  // The table makes the name unique.
  symbols.insert(kernelOp);
  if (Value factor = tiles.getFactor())
    grid = product({grid, factor});
  tile::LaunchOp::create(host, kernelOp.getSymName(), grid, arguments,
                         /*bytes=*/Value(), /*flops=*/Value(),
                         /*prepass=*/true);
}

/// A kernel of one warp a program, with the values of the rule's inputs but
/// for batch and head. It writes `results`, which later ones read.
tile::KernelOp PrepassBuilder::createKernel(StringRef suffix,
                                            ArrayRef<Value> results) {
  llvm::append_range(arguments, results);
  kernel.clearInsertionPoint();
  auto kernelOp = tile::KernelOp::create(kernel, (name + suffix).str(),
                                         ValueRange(arguments).getTypes(),
                                         /*numWarps=*/1);
  kernel.setInsertionPointToStart(&kernelOp.getBody().front());
  ValueRange args = kernelOp.getBody().getArguments();
  context = RuleContext();
  for (BlockArgument capture :
       rule.getArguments().take_back(op.getCaptures().size())) {
    context.captures.push_back(isUsed(capture) ? args.front() : Value());
    args = args.drop_front(isUsed(capture) ? 1 : 0);
  }
  context.qLen = args[0];
  context.kvLen = args[1];
  written = args.drop_front(2);
  return kernelOp;
}

//===----------------------------------------------------------------------===//
// Extremes
//===----------------------------------------------------------------------===//

/// One program for the extremes of one read in one tile.
void PrepassBuilder::buildExtremesKernel(ArrayRef<Value> results, Value grid) {
  tile::KernelOp kernelOp = createKernel("_extremes", results);
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
      buildExtremes(read, target, number);
    }
    number = kernel.sub(number, count);
  }
  tile::ReturnOp::create(kernel);
  launch(kernelOp, grid);
}

void PrepassBuilder::buildExtremes(BoundedRead read, Value target,
                                   Value number) {
  Value position[4], rest = number;
  for (int64_t dim : {3, 2, 1}) {
    Value size = kernel.getSizeI32(target, dim);
    position[dim] = kernel.rem(rest, size);
    rest = kernel.div(rest, size);
  }
  position[0] = rest;
  context.batch = position[0];
  context.head = position[1];
  bool byQuery = (read.inputs & kQuery) != 0;
  Value size = kernel.i32(byQuery ? granule : tiles.blockN);
  Value first = kernel.mul(position[byQuery ? 2 : 3], size);
  Value length = byQuery ? context.qLen : context.kvLen;
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
    SmallVector<Value> indices(position, position + 4);
    indices.push_back(kernel.i32(i));
    tile::StoreElementOp::create(kernel, reduced.getResult(i), target, indices);
  }
}

/// The ends of i32 stand for whatever lies beyond them.
Value PrepassBuilder::saturate(OpBuilder &builder, Value value) {
  Arithmetic inner(op.getLoc(), builder);
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

std::optional<RuleBounds> PrepassBuilder::readExtremes(OpBuilder &builder,
                                                       CaptureLoadOp load,
                                                       Value keyTile) {
  const BoundedRead *read = llvm::find_if(
      reads, [&](const BoundedRead &read) { return read.load == load; });
  if (read == reads.end())
    return std::nullopt;
  Arithmetic inner(op.getLoc(), builder);
  Value zero = inner.i32(0);
  auto get = [&](int64_t i) -> Value {
    Value indices[] = {read->inputs & kBatch ? context.batch : zero,
                       read->inputs & kHead ? context.head : zero,
                       read->inputs & kQuery ? granuleNumber : zero,
                       read->inputs & kKey ? keyTile : zero, inner.i32(i)};
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

//===----------------------------------------------------------------------===//
// Classes
//===----------------------------------------------------------------------===//

/// One program for one granule of queries and some tiles of keys.
void PrepassBuilder::buildClassesKernel(Value classes, Value grid) {
  tile::KernelOp kernelOp = createKernel("_classes", classes);
  Value target = written.back();
  Value rest = tile::ProgramIdOp::create(kernel, kernel.getI32Type());
  auto takeOff = [&](int64_t dim) {
    Value size = kernel.getSizeI32(target, dim);
    Value number = kernel.rem(rest, size);
    rest = kernel.div(rest, size);
    return number;
  };
  Value tilesInGroup = kernel.i32(kTilesInGroup), one = kernel.i32(1);
  Value group = takeOff(3);
  Value firstTile = kernel.mul(group, tilesInGroup);
  granuleNumber = takeOff(2);
  context.head = takeOff(1);
  context.batch = rest;
  Value blockN = kernel.i32(tiles.blockN);
  Value numTiles =
      kernel.div(kernel.add(context.kvLen, kernel.sub(blockN, one)), blockN);
  ElementRange queries =
      getElements(kernel, granuleNumber, granule, context.qLen);
  Value known = classifyByBounds(queries, firstTile, kernel.sub(numTiles, one));

  // Behind the last tile a group has none.
  Value count = kernel.min(kernel.sub(numTiles, firstTile), tilesInGroup);
  Value none = kernel.i32(0);
  auto loop = scf::ForOp::create(kernel, kernel.i32(0), count, one, none);
  {
    OpBuilder::InsertionGuard guard(kernel);
    kernel.setInsertionPointToStart(loop.getBody());
    Value i = loop.getInductionVar();
    Value shift = kernel.mul(i, kernel.i32(kClassBits));
    Value byBounds = getClassInGroup(known, shift);
    Value isOpen = kernel.equal(byBounds, kernel.number(TileClass::Open));
    auto branch = scf::IfOp::create(kernel, kernel.getI32Type(), isOpen,
                                    /*withElseRegion=*/true);
    Value shifted = kernel.binary<arith::ShLIOp>(branch.getResult(0), shift);
    scf::YieldOp::create(kernel, kernel.binary<arith::OrIOp>(
                                     loop.getRegionIterArgs()[0], shifted));
    kernel.setInsertionPointToStart(branch.thenBlock());
    ElementRange keys = getElements(kernel, kernel.add(firstTile, i),
                                    tiles.blockN, context.kvLen);
    scf::YieldOp::create(kernel, classifyByElements(queries, keys));
    kernel.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(kernel, byBounds);
  }
  tile::StoreElementOp::create(
      kernel, loop.getResult(0), target,
      ValueRange{context.batch, context.head, granuleNumber, group});
  tile::ReturnOp::create(kernel);
  launch(kernelOp, grid);
}

/// The class at bit `shift` of a group's.
Value PrepassBuilder::getClassInGroup(Value classes, Value shift) {
  return kernel.binary<arith::AndIOp>(
      kernel.binary<arith::ShRUIOp>(classes, shift),
      kernel.i32((1 << kClassBits) - 1));
}

PrepassBuilder::ElementRange PrepassBuilder::getElements(Arithmetic &builder,
                                                         Value number,
                                                         int64_t size,
                                                         Value length) {
  Value first = builder.mul(number, builder.i32(size));
  return {first, builder.min(builder.i32(size), builder.sub(length, first))};
}

/// Of a tile with `numKeys` keys, which is `otherwise` if it is neither hidden
/// nor full.
Value PrepassBuilder::getClass(Arithmetic &builder, RuleBounds isVisible,
                               Value numKeys, TileClass otherwise) {
  // A tile that reaches past the last key is never full.
  Value isWhole = builder.equal(numKeys, builder.i32(tiles.blockN));
  Value whole = builder.select(isWhole, builder.number(TileClass::Full),
                               builder.number(TileClass::Partial));
  Value seen = builder.select(isVisible.min, whole, builder.number(otherwise));
  return builder.select(isVisible.max, seen, builder.number(TileClass::Hidden));
}

/// The classes of some tiles as bit fields, the first in the lowest; a thread
/// takes a tile.
Value PrepassBuilder::classifyByBounds(const ElementRange &queries,
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
    ElementRange keys =
        getElements(inner, keyTile, tiles.blockN, context.kvLen);
    auto read = [&](OpBuilder &builder, CaptureLoadOp load) {
      return readExtremes(builder, load, keyTile);
    };
    RuleBoundsBuilder bounds(rule, context, inputs, outer, inner, ofQueries,
                             getEnds(inner, keys), read, opaque);
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
Value PrepassBuilder::classifyByElements(const ElementRange &queries,
                                         const ElementRange &keys) {
  Value zero = kernel.i32(0), one = kernel.i32(1);
  Value columns = kernel.i32(tiles.blockN);
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
// Lists
//===----------------------------------------------------------------------===//

/// One program for the list of one tile of queries.
void PrepassBuilder::buildTilesKernel(ArrayRef<Value> results, Value grid) {
  tile::KernelOp kernelOp = createKernel("_tiles", results);
  ListKernel list;
  list.tiles = written[written.size() - 2];
  list.ranges = written.back();
  list.classes = written[written.size() - 3];
  Value rest = tile::ProgramIdOp::create(kernel, kernel.getI32Type());
  auto takeOff = [&](int64_t dim) {
    Value size = kernel.getSizeI32(list.tiles, dim);
    Value number = kernel.rem(rest, size);
    rest = kernel.div(rest, size);
    return number;
  };
  list.row = takeOff(2);
  context.head = takeOff(1);
  context.batch = rest;
  Value first = kernel.mul(list.row, kernel.i32(granulesInTile));
  for (int64_t i = 0; i < granulesInTile; ++i) {
    Value number = kernel.add(first, kernel.i32(i));
    list.granules.push_back(number);
    list.exists.push_back(
        kernel.less(kernel.mul(number, kernel.i32(granule)), context.qLen));
  }
  Value numFull = listFullTiles(list);
  for (auto [i, range] : llvm::enumerate(listPartialTiles(list, numFull)))
    storeRange(list, range, i);
  tile::ReturnOp::create(kernel);
  launch(kernelOp, grid);
}

/// Emits a loop over all tiles of keys that carries `inits` and adds those of
/// `list` for which `body` says so, at a position that it gives.
scf::ForOp PrepassBuilder::forEachKeyTile(
    const ListKernel &list, ValueRange inits,
    function_ref<ListStep(ArrayRef<TileKind>, ValueRange)> body) {
  Value numTiles = kernel.getSizeI32(list.tiles, 3);
  auto loop = scf::ForOp::create(kernel, kernel.i32(0), numTiles,
                                 kernel.i32(kTilesInGroup), inits);
  OpBuilder::InsertionGuard guard(kernel);
  kernel.setInsertionPointToStart(loop.getBody());
  Value firstTile = loop.getInductionVar();
  SmallVector<Value> classes = readClasses(list, firstTile);
  SmallVector<Value> carried(loop.getRegionIterArgs());
  for (int64_t i = 0; i < kTilesInGroup; ++i) {
    Value keyTile = kernel.add(firstTile, kernel.i32(i));
    SmallVector<TileKind> kindsOfTile =
        getKinds(list, classes, i, kernel.less(keyTile, numTiles));
    ListStep step = body(kindsOfTile, carried);
    // Nothing is stored outside of the list.
    Value position =
        kernel.select(step.isListed, step.position, kernel.i32(-1));
    tile::StoreElementOp::create(
        kernel, keyTile, list.tiles,
        ValueRange{context.batch, context.head, list.row, position});
    carried = std::move(step.next);
  }
  scf::YieldOp::create(kernel, carried);
  return loop;
}

/// The classes of a group of tiles for each granule. Past the last query 0 is
/// read, which is hidden.
SmallVector<Value> PrepassBuilder::readClasses(const ListKernel &list,
                                               Value firstTile) {
  Value group = kernel.div(firstTile, kernel.i32(kTilesInGroup));
  return llvm::map_to_vector(list.granules, [&](Value granule) -> Value {
    Value indices[] = {context.batch, context.head, granule, group};
    return tile::GatherOp::create(kernel, kernel.getI32Type(), list.classes,
                                  indices,
                                  /*in_bounds=*/ArrayRef<int64_t>{0, 1, 3});
  });
}

/// What tile `i` of a group, if it exists, is to each granule.
SmallVector<PrepassBuilder::TileKind>
PrepassBuilder::getKinds(const ListKernel &list, ArrayRef<Value> classes,
                         int64_t i, Value isTile) {
  SmallVector<TileKind> kinds;
  for (auto [group, exists] : llvm::zip_equal(classes, list.exists)) {
    Value tileClass = getClassInGroup(group, kernel.i32(i * kClassBits));
    Value isVisible = kernel.negate(
        kernel.equal(tileClass, kernel.number(TileClass::Hidden)));
    Value isFull = kernel.equal(tileClass, kernel.number(TileClass::Full));
    Value isEmpty = kernel.both(kernel.negate(exists), isTile);
    kinds.push_back({isVisible, isFull, kernel.either(isFull, isEmpty)});
  }
  return kinds;
}

/// Whether no granule hides anything of a tile.
Value PrepassBuilder::isFullForAll(ArrayRef<TileKind> kinds) {
  Value all = kinds.front().hidesNothing;
  for (const TileKind &kind : kinds.drop_front())
    all = kernel.both(all, kind.hidesNothing);
  return all;
}

/// Lists the tiles that are full for all granules; returns their number.
Value PrepassBuilder::listFullTiles(const ListKernel &list) {
  auto body = [&](ArrayRef<TileKind> kinds, ValueRange carried) {
    Value isListed = isFullForAll(kinds);
    Value next = kernel.add(carried[0], kernel.toI32(isListed));
    return ListStep{isListed, carried[0], {next}};
  };
  return forEachKeyTile(list, kernel.i32(0), body).getResult(0);
}

/// Lists the others of which a granule sees a key, behind the first `numFull`.
SmallVector<PrepassBuilder::GranuleRange>
PrepassBuilder::listPartialTiles(const ListKernel &list, Value numFull) {
  constexpr unsigned kNumFields = 4;
  Value zero = kernel.i32(0), one = kernel.i32(1);
  Value hasFull = kernel.less(zero, numFull);
  Value none = kernel.i32(llvm::maxIntN(32));
  SmallVector<Value> inits = {numFull};
  for (int64_t i = 0; i < granulesInTile; ++i)
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
  scf::ForOp loop = forEachKeyTile(list, inits, body);
  SmallVector<GranuleRange> ranges;
  for (int64_t i = 0; i < granulesInTile; ++i)
    ranges.push_back(getRange(loop.getResults(), i));
  return ranges;
}

void PrepassBuilder::storeRange(const ListKernel &list,
                                const GranuleRange &range, unsigned i) {
  Value zero = kernel.i32(0);
  auto store = [&](MaskOp::BoundsField field, Value position, Value otherwise) {
    Value key = kernel.min(kernel.mul(position, kernel.i32(tiles.blockN)),
                           context.kvLen);
    Value indices[] = {context.batch, context.head, list.granules[i],
                       kernel.i32(field)};
    tile::StoreElementOp::create(kernel,
                                 kernel.select(list.exists[i], key, otherwise),
                                 list.ranges, indices);
  };
  // Without queries nothing is visible, and nothing is hidden.
  store(MaskOp::Begin, kernel.min(range.begin, range.end), zero);
  store(MaskOp::FullBegin, range.fullBegin, zero);
  store(MaskOp::FullEnd, range.fullEnd, context.kvLen);
  store(MaskOp::End, range.end, zero);
}

//===----------------------------------------------------------------------===//
// Entry points
//===----------------------------------------------------------------------===//

bool attn::canHaveMaskPrepass(AttentionOp op) {
  // Lengths of single sequences, and positions by a table.
  return !op.getCuQ() && !op.getCuK() && !op.getKvLen() && !op.getBlockTable();
}

MaskTiles attn::buildMaskPrepass(AttentionOp op, StringRef name,
                                 const PrepassTiles &tiles,
                                 SymbolTable &symbols) {
  return PrepassBuilder(op, name, tiles, symbols).build();
}
