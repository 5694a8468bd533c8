//===- MaskPrepass.cpp - Kernels that bound a mask before it runs ---------===//

#include "MaskPrepass.h"
#include "RuleReader.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/SymbolTable.h"

using namespace mlir;
using namespace mlir::attn;
using tile::MaskOp;

/// A read of queries and keys costs as much memory as a mask of the whole
/// problem. It pays if this many heads share it.
static constexpr int64_t kMinHeadsOfTable = 4;

/// Queries that the ranges of a granule are for, at most: what a warpgroup of
/// sm_90a takes.
static constexpr int64_t kMaxGranule = 64;

namespace {
/// A read whose bounds in each tile are wanted.
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
        host(op.getLoc(), op), kernel(op.getLoc(), op.getContext()) {}

  /// Finds the reads; false if there is nothing to find out.
  bool isWanted();
  MaskBounds build();

private:
  Value getYielded() { return rule.front().getTerminator()->getOperand(0); }

  tile::KernelOp createKernel(StringRef suffix, bool writesRanges);
  void launch(tile::KernelOp kernelOp, Value grid);
  Value product(ArrayRef<Value> factors);

  tile::KernelOp buildExtremesKernel();
  void buildExtremes(BoundedRead read, Value target, Value number);
  Value toI32(OpBuilder &builder, Value value);
  tile::KernelOp buildRangesKernel();
  void buildRanges(Value number);

  /// The bounds of the rule over the granule's queries and the keys of a tile.
  /// What doesn't depend on the tile goes to `outer`.
  RuleBounds evaluate(Arithmetic &outer, Arithmetic &inner, Value keyTile);
  std::optional<RuleBounds> readExtremes(OpBuilder &builder, CaptureLoadOp load,
                                         Value keyTile);
  void emitRemarks();

  AttentionOp op;
  Region &rule;
  StringRef name;
  const PrepassTiles &tiles;
  SymbolTable &symbols;
  RuleInputs inputs;
  SmallVector<BoundedRead> reads;
  int64_t granule;

  /// Host code, and what it passes to both kernels.
  Arithmetic host;
  SmallVector<Value> arguments, extremes;
  Value ranges;

  /// The kernel that is being built.
  Arithmetic kernel;
  RuleContext context;
  SmallVector<Value> kernelExtremes;
  Value kernelRanges, granuleNumber;
  RuleBounds queries;
  SetVector<Operation *> opaque;
};
} // namespace

//===----------------------------------------------------------------------===//
// Which reads
//===----------------------------------------------------------------------===//

bool PrepassBuilder::isWanted() {
  // Lengths of single sequences, and positions by a table.
  if (op.getCuQ() || op.getCuK() || op.getKvLen() || op.getBlockTable())
    return false;
  for (auto load : rule.front().getOps<CaptureLoadOp>()) {
    unsigned loadInputs = inputs.get(load);
    bool isTable = (loadInputs & kQuery) && (loadInputs & kKey);
    if (!inputs.dependsOnPosition(load) || !isa<IntegerType>(load.getType()) ||
        load->use_empty())
      continue;
    if (isTable &&
        ((loadInputs & kHead) || op.getNumQueryHeads() < kMinHeadsOfTable))
      continue;
    reads.push_back({load, loadInputs});
  }
  return !reads.empty();
}

//===----------------------------------------------------------------------===//
// Host code
//===----------------------------------------------------------------------===//

Value PrepassBuilder::product(ArrayRef<Value> factors) {
  Value result = factors.front();
  for (Value factor : factors.drop_front())
    result = arith::MulIOp::create(host, result, factor);
  return result;
}

MaskBounds PrepassBuilder::build() {
  Value batches = host.getSize(op.getQ(), 0);
  Value heads = host.index(op.getNumQueryHeads());
  Value qLen = host.getSize(op.getQ(), 2), kvLen = host.getSize(op.getK(), 2);
  Value one = host.index(1);
  auto countTiles = [&](Value length, int64_t size) -> Value {
    return arith::CeilDivSIOp::create(host, length, host.index(size));
  };
  Value keyTiles = countTiles(kvLen, tiles.blockN);
  Value granules = countTiles(qLen, granule);

  int64_t dynamic = ShapedType::kDynamic;
  auto allocate = [&](ArrayRef<int64_t> shape, ValueRange sizes) -> Value {
    auto type = MemRefType::get(shape, host.getI32Type());
    return memref::AllocOp::create(host, type, sizes);
  };
  Value numExtremes;
  for (const BoundedRead &read : reads) {
    Value sizes[] = {read.inputs & kBatch ? batches : one,
                     read.inputs & kHead ? heads : one,
                     read.inputs & kQuery ? granules : one,
                     read.inputs & kKey ? keyTiles : one};
    extremes.push_back(
        allocate({dynamic, dynamic, dynamic, dynamic, 2}, sizes));
    Value count = product(sizes);
    numExtremes =
        numExtremes ? arith::AddIOp::create(host, numExtremes, count) : count;
  }
  // The last tile of queries may reach past the last granule of queries.
  unsigned maskInputs = inputs.get(getYielded());
  Value numGranules = arith::MulIOp::create(
      host, countTiles(qLen, tiles.blockM), host.index(tiles.blockM / granule));
  Value sizes[] = {maskInputs & kBatch ? batches : one,
                   maskInputs & kHead ? heads : one, numGranules};
  ranges =
      allocate({dynamic, dynamic, dynamic, MaskOp::NumBoundsFields}, sizes);

  auto toI32 = [&](Value size) -> Value {
    return arith::IndexCastOp::create(host, host.getI32Type(), size);
  };
  llvm::append_range(arguments, op.getCaptures());
  llvm::append_range(arguments, extremes);
  llvm::append_range(arguments, ArrayRef<Value>{toI32(qLen), toI32(kvLen)});
  launch(buildExtremesKernel(), numExtremes);
  arguments.push_back(ranges);
  launch(buildRangesKernel(), product(sizes));
  emitRemarks();
  return {ranges, granule, (maskInputs & kBatch) != 0,
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

void PrepassBuilder::emitRemarks() {
  for (Operation *op : opaque)
    op->emitRemark("bounds of this aren't known before the attention runs; key "
                   "tiles that it may concern are neither skipped nor free of "
                   "the mask");
}

//===----------------------------------------------------------------------===//
// Extremes
//===----------------------------------------------------------------------===//

/// A kernel of one warp a program, with the values of the rule's inputs but
/// for batch and head.
tile::KernelOp PrepassBuilder::createKernel(StringRef suffix,
                                            bool writesRanges) {
  kernel.clearInsertionPoint();
  auto kernelOp = tile::KernelOp::create(kernel, (name + suffix).str(),
                                         ValueRange(arguments).getTypes(),
                                         /*numWarps=*/1);
  kernel.setInsertionPointToStart(&kernelOp.getBody().front());
  ValueRange args = kernelOp.getBody().getArguments();
  size_t numCaptures = op.getCaptures().size();
  context = RuleContext();
  context.captures.assign(args.begin(), args.begin() + numCaptures);
  args = args.drop_front(numCaptures);
  kernelExtremes.assign(args.begin(), args.begin() + reads.size());
  args = args.drop_front(reads.size());
  context.qLen = args[0];
  context.kvLen = args[1];
  kernelRanges = writesRanges ? args[2] : Value();
  return kernelOp;
}

/// One program for the extremes of one read in one tile.
tile::KernelOp PrepassBuilder::buildExtremesKernel() {
  tile::KernelOp kernelOp = createKernel("_extremes", /*writesRanges=*/false);
  Value number = tile::ProgramIdOp::create(kernel, kernel.getI32Type());
  for (auto [read, target] : llvm::zip_equal(reads, kernelExtremes)) {
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
  return kernelOp;
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
  Value firstQuery = kernel.mul(position[2], kernel.i32(granule));
  Value firstKey = kernel.mul(position[3], kernel.i32(tiles.blockN));
  Value numQueries =
      kernel.min(kernel.i32(granule), kernel.sub(context.qLen, firstQuery));
  Value numKeys =
      kernel.min(kernel.i32(tiles.blockN), kernel.sub(context.kvLen, firstKey));
  bool hasQueries = (read.inputs & kQuery) != 0;
  bool hasKeys = (read.inputs & kKey) != 0;
  Value count = hasQueries ? numQueries : numKeys;
  if (hasQueries && hasKeys)
    count = kernel.mul(count, kernel.i32(tiles.blockN));
  auto body = [&](OpBuilder &builder, Value i) {
    Arithmetic inner(op.getLoc(), builder);
    Value row = i, column = i;
    if (hasQueries && hasKeys) {
      row = inner.div(i, inner.i32(tiles.blockN));
      // Behind the last key it comes again.
      column = inner.min(inner.rem(i, inner.i32(tiles.blockN)),
                         inner.sub(numKeys, inner.i32(1)));
    }
    RuleCloner cloner(rule, context, inner.add(firstQuery, row),
                      inner.add(firstKey, column));
    Value value = toI32(inner, cloner.clone(inner, CaptureLoadOp(read.load)));
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
Value PrepassBuilder::toI32(OpBuilder &builder, Value value) {
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

//===----------------------------------------------------------------------===//
// Ranges
//===----------------------------------------------------------------------===//

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
                                  kernelExtremes[read - reads.begin()], indices,
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

RuleBounds PrepassBuilder::evaluate(Arithmetic &outer, Arithmetic &inner,
                                    Value keyTile) {
  Value size = inner.i32(tiles.blockN);
  Value first = inner.mul(keyTile, size);
  Value last =
      inner.sub(inner.min(inner.add(first, size), context.kvLen), inner.i32(1));
  auto read = [&](OpBuilder &builder, CaptureLoadOp load) {
    return readExtremes(builder, load, keyTile);
  };
  RuleBoundsBuilder bounds(rule, context, inputs, outer, inner, queries,
                           {first, last}, read, opaque);
  return bounds.get(getYielded());
}

/// One program for the range of one granule of queries.
tile::KernelOp PrepassBuilder::buildRangesKernel() {
  tile::KernelOp kernelOp = createKernel("_ranges", /*writesRanges=*/true);
  buildRanges(tile::ProgramIdOp::create(kernel, kernel.getI32Type()));
  tile::ReturnOp::create(kernel);
  return kernelOp;
}

void PrepassBuilder::buildRanges(Value number) {
  Value numGranules = kernel.getSizeI32(kernelRanges, 2);
  Value numHeads = kernel.getSizeI32(kernelRanges, 1);
  granuleNumber = kernel.rem(number, numGranules);
  number = kernel.div(number, numGranules);
  context.head = kernel.rem(number, numHeads);
  context.batch = kernel.div(number, numHeads);
  Value one = kernel.i32(1), zero = kernel.i32(0);
  Value step = kernel.i32(tiles.blockN);
  Value firstQuery = kernel.mul(granuleNumber, kernel.i32(granule));
  queries = {firstQuery,
             kernel.sub(kernel.min(kernel.add(firstQuery, kernel.i32(granule)),
                                   context.qLen),
                        one)};
  Value none = kernel.i32(llvm::maxIntN(32));
  Value numTiles =
      kernel.div(kernel.add(context.kvLen, kernel.i32(tiles.blockN - 1)), step);

  // A tile that reaches past the last key isn't full.
  auto isFull = [&](Arithmetic &inner, RuleBounds bounds, Value tile) {
    Value end = inner.mul(inner.add(tile, one), step);
    Value isWhole = inner.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::sle,
                                                      end, context.kvLen);
    return inner.binary<arith::AndIOp>(isWhole, bounds.min);
  };
  // In a body, `kernel` inserts into it.
  Arithmetic outer(op.getLoc(), kernel);
  auto visible = tile::ReduceRangeOp::create(
      kernel, zero, numTiles, /*numMin=*/2,
      [&](OpBuilder &builder, Value tile) {
        Arithmetic inner(op.getLoc(), builder);
        RuleBounds bounds = evaluate(outer, inner, tile);
        return SmallVector<Value>{
            inner.select(bounds.max, tile, none),
            inner.select(isFull(inner, bounds, tile), tile, none),
            inner.select(bounds.max, tile, inner.i32(-1))};
      });
  Value end = kernel.add(kernel.max(visible.getResult(2), kernel.i32(-1)), one);
  Value begin = kernel.min(visible.getResult(0), end);
  Value fullBegin = kernel.min(visible.getResult(1), end);
  auto partial = tile::ReduceRangeOp::create(
      kernel, fullBegin, end, /*numMin=*/1,
      [&](OpBuilder &builder, Value tile) {
        Arithmetic inner(op.getLoc(), builder);
        RuleBounds bounds = evaluate(outer, inner, tile);
        return SmallVector<Value>{
            inner.select(isFull(inner, bounds, tile), none, tile)};
      });
  Value fullEnd = kernel.min(partial.getResult(0), end);

  // Without queries nothing is visible, and nothing is hidden.
  Value exists = kernel.less(firstQuery, context.qLen);
  Value values[MaskOp::NumBoundsFields];
  auto setKey = [&](MaskOp::BoundsField field, Value tile, Value otherwise) {
    Value key = kernel.min(kernel.mul(tile, step), context.kvLen);
    values[field] = kernel.select(exists, key, otherwise);
  };
  setKey(MaskOp::Begin, begin, zero);
  setKey(MaskOp::FullBegin, fullBegin, zero);
  setKey(MaskOp::FullEnd, fullEnd, context.kvLen);
  setKey(MaskOp::End, end, zero);
  for (auto [field, value] : llvm::enumerate(values)) {
    Value indices[] = {context.batch, context.head, granuleNumber,
                       kernel.i32(field)};
    tile::StoreElementOp::create(kernel, value, kernelRanges, indices);
  }
}

std::optional<MaskBounds> attn::buildMaskPrepass(AttentionOp op, StringRef name,
                                                 const PrepassTiles &tiles,
                                                 SymbolTable &symbols) {
  if (!op.hasMaskMod())
    return std::nullopt;
  PrepassBuilder builder(op, name, tiles, symbols);
  if (!builder.isWanted())
    return std::nullopt;
  return builder.build();
}
