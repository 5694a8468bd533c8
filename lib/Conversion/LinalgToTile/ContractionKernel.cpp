//===- ContractionKernel.cpp - Matrix products ----------------------------===//

#include "Kernels.h"
#include "attn/Dialect/Attn/IR/KeyLimits.h"
#include "attn/Dialect/Tile/Transforms/MemrefParts.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::attn;

static Value skipFloatCasts(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<arith::ExtFOp, arith::TruncFOp>(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

/// The select that keeps `value` or takes 0; null if there is none.
static arith::SelectOp getZeroing(Value value) {
  auto select = skipFloatCasts(value).getDefiningOp<arith::SelectOp>();
  return select && matchPattern(select.getFalseValue(), m_AnyZeroFloat())
             ? select
             : nullptr;
}

/// What an operand of the product is before some of it is made 0.
static Value getFactor(Value value) {
  arith::SelectOp zeroing = getZeroing(value);
  return skipFloatCasts(zeroing ? zeroing.getTrueValue() : value);
}

/// True if the operands of `op` are, but for casts and order, `a` and `b`.
static bool combines(Operation *op, Value a, Value b) {
  Value left = skipFloatCasts(op->getOperand(0));
  Value right = skipFloatCasts(op->getOperand(1));
  return (left == a && right == b) || (left == b && right == a);
}

/// The product of the first two inputs that the op adds to its output; null if
/// it does something else.
static arith::MulFOp findProduct(linalg::GenericOp op) {
  Block *body = op.getBody();
  Value a = body->getArgument(0), b = body->getArgument(1);
  Value result = skipFloatCasts(body->getTerminator()->getOperand(0));
  auto add = result.getDefiningOp<arith::AddFOp>();
  if (!add)
    return nullptr;
  for (Value term : add->getOperands()) {
    auto product = skipFloatCasts(term).getDefiningOp<arith::MulFOp>();
    if (!product || !combines(add, body->getArguments().back(), product))
      continue;
    Value left = getFactor(product.getLhs()),
          right = getFactor(product.getRhs());
    if ((left == a && right == b) || (left == b && right == a))
      return product;
  }
  return nullptr;
}

bool attn::isContraction(linalg::GenericOp op) {
  if (op.getNumReductionLoops() != 1 || op.getNumDpsInputs() < 2 ||
      op.getNumDpsInits() != 1)
    return false;
  auto areScalars = llvm::none_of(op.getInputs().drop_front(2), [](Value v) {
    return isa<MemRefType>(v.getType());
  });
  return areScalars && findProduct(op);
}

namespace {
/// Which loops of the op are rows, columns and the sum of the product.
struct ProductLoops {
  unsigned m, n, k;
};

/// A of [..., m, k] and B of [..., n, k] (transposed) or [..., k, n].
struct ProductOperands {
  OpOperand *a, *b;
  bool transposeB;
};

/// What the index that is summed over must meet where `operand` isn't 0.
struct SumEnd {
  OpOperand *operand;
  SmallVector<KeyLimit> limits;
};
} // namespace

static FailureOr<ProductLoops> getProductLoops(linalg::GenericOp op) {
  AffineMap out = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  if (out.getNumResults() < 2 || !out.isProjectedPermutation())
    return emitUnsupported(op, "is a product whose result is indexed by ")
           << AffineMapAttr::get(out)
           << "; the last two indices must be its rows and columns";
  ProductLoops loops;
  loops.m = out.getDimPosition(out.getNumResults() - 2);
  loops.n = out.getDimPosition(out.getNumResults() - 1);
  SmallVector<unsigned> reductions;
  op.getReductionDims(reductions);
  loops.k = reductions.front();
  return loops;
}

/// True if the operand's last indices are (row, column) and the others depend
/// on neither, nor on `other`.
static bool isMatrixOf(linalg::GenericOp op, OpOperand *operand, unsigned row,
                       unsigned column, unsigned other) {
  AffineMap map = op.getMatchingIndexingMap(operand);
  return getAccess(map, row, column) == tile::Extent::Elements &&
         !map.isFunctionOfDim(other);
}

static FailureOr<ProductOperands> getProductOperands(linalg::GenericOp op,
                                                     ProductLoops loops) {
  OpOperand *first = op.getDpsInputOperand(0),
            *second = op.getDpsInputOperand(1);
  for (auto [a, b] : {std::pair(first, second), std::pair(second, first)}) {
    if (!isMatrixOf(op, a, loops.m, loops.k, loops.n))
      continue;
    if (isMatrixOf(op, b, loops.n, loops.k, loops.m))
      return ProductOperands{a, b, /*transposeB=*/true};
    if (isMatrixOf(op, b, loops.k, loops.n, loops.m))
      return ProductOperands{a, b, /*transposeB=*/false};
  }
  return emitUnsupported(op, "is a product of operands indexed by ")
         << AffineMapAttr::get(op.getMatchingIndexingMap(first)) << " and "
         << AffineMapAttr::get(op.getMatchingIndexingMap(second))
         << "; they must be A[..., m, k] and B[..., n, k] or B[..., k, n]";
}

/// True if `value` of the op's body is the same in all of a tile.
static bool isSameInTile(linalg::GenericOp op, Value value,
                         ProductLoops loops) {
  auto isOfTile = [&](Value input) {
    auto argument = dyn_cast<BlockArgument>(input);
    if (argument && argument.getOwner() == op.getBody())
      return isa<MemRefType>(
          op.getMatchingOpOperand(argument)->get().getType());
    auto index = input.getDefiningOp<linalg::IndexOp>();
    return index && llvm::is_contained({loops.m, loops.n, loops.k},
                                       static_cast<unsigned>(index.getDim()));
  };
  return !isOfTile(value) &&
         llvm::none_of(BodyBuilder::getSlice(op, value), [&](Operation *inner) {
           return llvm::any_of(inner->getOperands(), isOfTile);
         });
}

/// The number of terms of a conjunction.
static size_t countTerms(Value condition) {
  auto both = condition.getDefiningOp<arith::AndIOp>();
  return both ? countTerms(both.getLhs()) + countTerms(both.getRhs()) : 1;
}

/// Where `condition` ends the sum.
static FailureOr<SmallVector<KeyLimit>>
getSumLimits(linalg::GenericOp op, Value condition, ProductLoops loops) {
  SmallVector<KeyLimit> limits;
  for (auto cast : op.getBody()->getOps<arith::IndexCastOp>()) {
    auto index = cast.getIn().getDefiningOp<linalg::IndexOp>();
    if (index && index.getDim() == loops.k && cast.getType().isInteger(32))
      llvm::append_range(limits, findKeyLimits(condition, cast));
  }
  bool areInner = std::min(loops.n, loops.k) + 2 == op.getNumLoops();
  if (areInner && limits.size() == countTerms(condition) &&
      llvm::all_of(limits, [&](const KeyLimit &limit) {
        return isSameInTile(op, limit.bound, loops);
      }))
    return limits;
  return emitUnsupported(
      op, "makes an operand of a product 0 by another condition than an index "
          "of the sum that is less than a number of the whole matrix");
}

/// The operands that conditions make 0 behind some index of the sum.
static FailureOr<SmallVector<SumEnd>> getSumEnds(linalg::GenericOp op,
                                                 ProductLoops loops) {
  SmallVector<SumEnd> ends;
  for (Value factor : findProduct(op)->getOperands()) {
    arith::SelectOp zeroing = getZeroing(factor);
    if (!zeroing)
      continue;
    FailureOr<SmallVector<KeyLimit>> limits =
        getSumLimits(op, zeroing.getCondition(), loops);
    if (failed(limits))
      return failure();
    auto element = cast<BlockArgument>(getFactor(factor));
    ends.push_back({op.getMatchingOpOperand(element), *limits});
  }
  return ends;
}

/// The path that `attn.path` names, or the element type's own.
static FailureOr<tile::MatmulPath> getPath(linalg::GenericOp op, Type a,
                                           Type b) {
  bool is16Bit = a.isF16() || a.isBF16();
  if (a != b || !(is16Bit || a.isF32()))
    return emitUnsupported(op, "multiplies ")
           << a << " by " << b << "; both must be f16, bf16 or f32";
  auto attr = op->getAttrOfType<StringAttr>("attn.path");
  if (!attr)
    return is16Bit ? tile::MatmulPath::MMA : tile::MatmulPath::TF32x3;
  std::optional<tile::MatmulPath> path =
      tile::symbolizeMatmulPath(attr.getValue());
  if (!path || (*path == tile::MatmulPath::MMA) != is16Bit)
    return emitUnsupported(op, "has attn.path ")
           << attr << ", but products of " << a << " take "
           << (is16Bit ? "mma" : "tf32x3 or fma");
  return *path;
}

static StringRef getPathName(tile::MatmulPath path, const TargetInfo &target) {
  if (!target.isGPU)
    return "cpu";
  switch (path) {
  case tile::MatmulPath::MMA:
    return "s16816";
  case tile::MatmulPath::TF32x3:
    return "s1688_tf32x3";
  case tile::MatmulPath::FMA:
    return "ffma";
  }
  llvm_unreachable("unknown path");
}

/// The matrix units' rows, and a multiple of their columns and sums.
static constexpr int64_t kMatrixUnitSize = 16;

namespace {
class ContractionBuilder {
public:
  ContractionBuilder(KernelBuilder &builder, linalg::GenericOp op,
                     FillValue fill, ProductLoops loops,
                     ProductOperands operands, ArrayRef<SumEnd> ends,
                     tile::MatmulPath path)
      : builder(builder), kernel(builder.kernel), op(op), fill(fill),
        loops(loops), operands(operands), ends(ends), path(path) {}

  LogicalResult build(SmallVector<GridLoop> gridLoops);

private:
  int64_t getStaticSize(const GridLoop &loop) {
    return cast<MemRefType>(loop.memref.getType()).getDimSize(loop.dim);
  }
  /// A multiple of `granule`, at most `limit`.
  int64_t getTileSize(const GridLoop &loop, int64_t limit,
                      int64_t granule = kMatrixUnitSize) {
    int64_t size = getStaticSize(loop);
    if (ShapedType::isDynamic(size))
      return limit;
    return std::clamp<int64_t>(llvm::alignTo(size, granule), granule, limit);
  }
  std::string getName();
  Value getInit();
  Value loadA();
  Value multiply(Value a, Value acc);
  void storeResult(Value acc);
  scf::ForOp createLoop(Value begin, Value end, int64_t step, ValueRange inits);
  Value buildSumLoop(const GridLoop &sumLoop);
  void buildColumnLoop(const GridLoop &columnLoop);
  LogicalResult endOperands();
  Value load(OpOperand *operand, ArrayRef<int64_t> shape);
  SmallVector<Value> getOutputIndices();

  KernelBuilder &builder;
  ImplicitLocOpBuilder &kernel;
  linalg::GenericOp op;
  FillValue fill;
  ProductLoops loops;
  ProductOperands operands;
  ArrayRef<SumEnd> ends;
  tile::MatmulPath path;
  /// Where operands that end early are read.
  DenseMap<OpOperand *, Value> parts;
  int64_t m = 0, n = 0, k = 0;
  /// Positions in the op's loops, where code is built.
  SmallVector<Value> starts;
};
} // namespace

std::string ContractionBuilder::getName() {
  std::string name;
  llvm::raw_string_ostream(name)
      << builder.getStep("matmul") << '_'
      << getPathName(path, builder.getTarget()) << '_'
      << getElementTypeOrSelf(operands.a->get());
  return name;
}

SmallVector<Value> ContractionBuilder::getOutputIndices() {
  AffineMap map = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  return llvm::map_to_vector(map.getResults(), [&](AffineExpr expr) {
    return builder.getIndex(expr, starts);
  });
}

/// Reads beyond the end of a memref give 0.
LogicalResult ContractionBuilder::endOperands() {
  for (const SumEnd &end : ends) {
    BodyBuilder body(builder, op, {m, n});
    SmallVector<KeyLimit> limits;
    for (const KeyLimit &limit : end.limits) {
      FailureOr<Value> bound = body.buildScalar(limit.bound, starts);
      if (failed(bound))
        return failure();
      limits.push_back({*bound, limit.isInclusive});
    }
    Value memref = end.operand->get();
    AffineMap map = op.getMatchingIndexingMap(end.operand);
    unsigned dim = *map.getResultPosition(kernel.getAffineDimExpr(loops.k));
    Value count = countKeys(kernel, limits, builder.getSize(memref, dim));
    parts[end.operand] = tile::createPart(kernel, builder.getArg(memref), dim,
                                          /*start=*/Value(), count);
  }
  return success();
}

Value ContractionBuilder::load(OpOperand *operand, ArrayRef<int64_t> shape) {
  AffineMap map = op.getMatchingIndexingMap(operand);
  SmallVector<Value> indices =
      llvm::map_to_vector(map.getResults(), [&](AffineExpr expr) {
        return builder.getIndex(expr, starts);
      });
  Value part = parts.lookup(operand);
  if (!part)
    part = builder.getArg(operand->get());
  Type element = getElementTypeOrSelf(part);
  return tile::LoadOp::create(kernel, RankedTensorType::get(shape, element),
                              part, indices);
}

Value ContractionBuilder::getInit() {
  Type f32 = kernel.getF32Type();
  if (fill)
    return builder.getSplat({m, n}, f32,
                            cast<FloatAttr>(fill).getValueAsDouble());
  Value out = builder.load(op.getOutputs()[0], {m, n}, getOutputIndices());
  return builder.convertFloat(out, f32);
}

Value ContractionBuilder::loadA() { return load(operands.a, {m, k}); }

Value ContractionBuilder::multiply(Value a, Value acc) {
  Value b =
      operands.transposeB ? load(operands.b, {n, k}) : load(operands.b, {k, n});
  return tile::MmaOp::create(kernel, acc.getType(), path, a, b, acc,
                             operands.transposeB);
}

void ContractionBuilder::storeResult(Value acc) {
  Type type = getElementTypeOrSelf(op.getOutputs()[0]);
  builder.store(builder.convertFloat(acc, type), op.getOutputs()[0],
                getOutputIndices());
}

scf::ForOp ContractionBuilder::createLoop(Value begin, Value end, int64_t step,
                                          ValueRange inits) {
  builder.getKernel()->setAttr(
      "num_stages", kernel.getI32IntegerAttr(builder.getSizes().numStages));
  return scf::ForOp::create(kernel, begin, end, builder.getI32(step), inits);
}

/// One output tile, whose sum takes several steps.
Value ContractionBuilder::buildSumLoop(const GridLoop &sumLoop) {
  Value init = getInit();
  Value end = builder.getSize(sumLoop.memref, sumLoop.dim);
  scf::ForOp loop = createLoop(builder.getI32(0), end, k, init);
  OpBuilder::InsertionGuard guard(kernel);
  kernel.setInsertionPointToStart(loop.getBody());
  starts[loops.k] = loop.getInductionVar();
  Value acc = multiply(loadA(), loop.getRegionIterArg(0));
  scf::YieldOp::create(kernel, acc);
  return loop.getResult(0);
}

/// The output tiles of several columns, whose sums take one step each.
void ContractionBuilder::buildColumnLoop(const GridLoop &columnLoop) {
  starts[loops.k] = builder.getI32(0);
  Value a = loadA();
  Value begin = starts[loops.n];
  Value end = arith::MinSIOp::create(
      kernel, builder.getSize(columnLoop.memref, columnLoop.dim),
      arith::AddIOp::create(kernel, begin, builder.getI32(columnLoop.tile)));
  scf::ForOp loop = createLoop(begin, end, n, {});
  OpBuilder::InsertionGuard guard(kernel);
  kernel.setInsertionPointToStart(loop.getBody());
  starts[loops.n] = loop.getInductionVar();
  storeResult(multiply(a, getInit()));
}

LogicalResult ContractionBuilder::build(SmallVector<GridLoop> gridLoops) {
  const TileSizes &sizes = builder.getSizes();
  bool isF32 = getElementTypeOrSelf(operands.a->get()).isF32();
  // A step of f32 would take twice the memory.
  int64_t maxK = sizes.matmulK / (isF32 ? 2 : 1);
  // A short sum leaves little to do per output tile: a program keeps A and
  // computes several, so that it stores one while it loads for the next.
  int64_t sum = getStaticSize(gridLoops[loops.k]);
  bool isShort = !ShapedType::isDynamic(sum) && sum <= 2 * maxK;
  k = getTileSize(gridLoops[loops.k], isShort ? 2 * maxK : maxK);
  n = getTileSize(gridLoops[loops.n],
                  isShort ? sizes.shortSumN : sizes.matmulN);
  gridLoops[loops.n].tile = isShort ? n * sizes.shortSumTiles : n;
  // Wide tiles of f32, and operands split into two TF32 parts, need the
  // registers of more warps.
  bool needsRegisters =
      path == tile::MatmulPath::TF32x3 || (isF32 && n > sizes.shortSumN);
  int32_t warps = sizes.matmulWarps * (needsRegisters ? 2 : 1);
  // On the GPU every warp takes rows of its own.
  m = getTileSize(gridLoops[loops.m], sizes.matmulM,
                  kMatrixUnitSize * (builder.getTarget().isGPU ? warps : 1));
  gridLoops[loops.m].tile = m;
  if (failed(
          builder.begin(getName(), BodyBuilder::getKernelOperands(op), warps)))
    return failure();

  // Programs go over the output's loops, in the output's order.
  AffineMap out = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  SmallVector<GridLoop> outputLoops;
  for (unsigned result = 0; result < out.getNumResults(); ++result)
    outputLoops.push_back(gridLoops[out.getDimPosition(result)]);
  starts.resize(gridLoops.size());
  for (auto [result, start] :
       llvm::enumerate(builder.splitPrograms(outputLoops)))
    starts[out.getDimPosition(result)] = start;

  if (failed(endOperands()))
    return failure();
  if (isShort)
    buildColumnLoop(gridLoops[loops.n]);
  else
    storeResult(buildSumLoop(gridLoops[loops.k]));
  builder.finish(gridLoops, /*flops=*/2);
  return success();
}

LogicalResult attn::buildContraction(KernelBuilder &builder,
                                     linalg::GenericOp op, FillValue fill) {
  FailureOr<ProductLoops> loops = getProductLoops(op);
  if (failed(loops))
    return failure();
  FailureOr<ProductOperands> operands = getProductOperands(op, *loops);
  if (failed(operands))
    return failure();
  FailureOr<SmallVector<SumEnd>> ends = getSumEnds(op, *loops);
  if (failed(ends) || failed(BodyBuilder::verifyCaptured(op)))
    return failure();
  FailureOr<tile::MatmulPath> path =
      getPath(op, getElementTypeOrSelf(operands->a->get()),
              getElementTypeOrSelf(operands->b->get()));
  if (failed(path))
    return failure();
  Type out = getElementTypeOrSelf(op.getOutputs()[0]);
  if (!out.isF16() && !out.isBF16() && !out.isF32())
    return emitUnsupported(op, "yields ")
           << out << "; it must be f16, bf16 or f32";
  FailureOr<SmallVector<GridLoop>> gridLoops = getLoops(op);
  if (failed(gridLoops))
    return failure();
  return ContractionBuilder(builder, op, fill, *loops, *operands, *ends, *path)
      .build(*gridLoops);
}
