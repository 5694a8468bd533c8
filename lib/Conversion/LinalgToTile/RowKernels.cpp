//===- RowKernels.cpp - Softmax and reductions of rows --------------------===//

#include "Kernels.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::attn;

namespace {
/// A block of whole rows, read in tiles of some columns.
class RowBlock {
public:
  RowBlock(KernelBuilder &builder, GridLoop columns)
      : builder(builder), kernel(builder.kernel), columns(columns),
        numRows(builder.getSizes().rows),
        numColumns(builder.getSizes().rowColumns) {}

  SmallVector<int64_t> getTileShape() const { return {numRows, numColumns}; }

  RankedTensorType getRowType() {
    return RankedTensorType::get(numRows, kernel.getF32Type());
  }
  Value getRowSplat(double value) {
    return builder.getSplat(numRows, kernel.getF32Type(), value);
  }

  int64_t getStaticSize() const {
    return cast<MemRefType>(columns.memref.getType()).getDimSize(columns.dim);
  }

  /// `tile` with `neutral` in the columns that lie behind the row's end.
  Value fillTail(Value tile, Value columnStart, double neutral) {
    int64_t size = getStaticSize();
    if (size > 0 && size % numColumns == 0)
      return tile;
    auto indexType = RankedTensorType::get(numColumns, kernel.getI32Type());
    Value offsets = tile::IotaOp::create(kernel, indexType);
    Value starts = tensor::SplatOp::create(kernel, indexType, columnStart);
    Value end = tensor::SplatOp::create(
        kernel, indexType, builder.getSize(columns.memref, columns.dim));
    Value exists = arith::CmpIOp::create(
        kernel, arith::CmpIPredicate::slt,
        arith::AddIOp::create(kernel, offsets, starts), end);
    Value mask = tile::BroadcastOp::create(
        kernel, RankedTensorType::get(getTileShape(), kernel.getI1Type()),
        exists, /*dim=*/1);
    Value rest = builder.getSplat(getTileShape(), kernel.getF32Type(), neutral);
    return arith::SelectOp::create(kernel, mask, tile, rest);
  }

  /// for (columnStart = 0; ...; columnStart += numColumns). `body` returns the
  /// next values.
  ValueRange
  forEachTile(ValueRange inits,
              function_ref<SmallVector<Value>(Value, ValueRange)> body) {
    Value end = builder.getSize(columns.memref, columns.dim);
    auto loop = scf::ForOp::create(kernel, builder.getI32(0), end,
                                   builder.getI32(numColumns), inits);
    OpBuilder::InsertionGuard guard(kernel);
    kernel.setInsertionPointToStart(loop.getBody());
    SmallVector<Value> next =
        body(loop.getInductionVar(), loop.getRegionIterArgs());
    // Without values to carry the loop comes with its yield.
    if (!inits.empty())
      scf::YieldOp::create(kernel, next);
    return loop.getResults();
  }

  Value broadcast(Value rows) {
    return tile::BroadcastOp::create(
        kernel, RankedTensorType::get(getTileShape(), kernel.getF32Type()),
        rows, /*dim=*/0);
  }

private:
  KernelBuilder &builder;
  ImplicitLocOpBuilder &kernel;
  GridLoop columns;
  int64_t numRows, numColumns;
};

//===----------------------------------------------------------------------===//
// Softmax
//===----------------------------------------------------------------------===//

class SoftmaxBuilder {
public:
  SoftmaxBuilder(KernelBuilder &builder, const RowSoftmax &softmax,
                 GridLoop columns, ArrayRef<Value> rowStarts)
      : builder(builder), kernel(builder.kernel), softmax(softmax),
        rows(builder, columns), columns(columns), rowStarts(rowStarts) {}

  void build() {
    int64_t size = rows.getStaticSize(), tile = builder.getSizes().rowColumns;
    one = arith::ConstantOp::create(kernel, kernel.getF32FloatAttr(1.0f));
    if (!ShapedType::isDynamic(size))
      return size <= tile ? buildInRegisters() : buildTwoPasses();
    Value fits = arith::CmpIOp::create(
        kernel, arith::CmpIPredicate::sle,
        builder.getSize(columns.memref, columns.dim), builder.getI32(tile));
    auto branch = scf::IfOp::create(kernel, fits, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(kernel);
    kernel.setInsertionPointToStart(branch.thenBlock());
    buildInRegisters();
    kernel.setInsertionPointToStart(branch.elseBlock());
    buildTwoPasses();
  }

private:
  struct Statistics {
    Value max, sum;
  };

  void buildInRegisters() {
    Value start = builder.getI32(0);
    tile::OnlineSoftmaxOp step = buildStep(start, buildInits());
    Statistics stats = {step.getMaxOut(), step.getSumOut()};
    storeP(step.getP(), buildInverse(stats.sum), start);
    storeLse(stats);
  }

  /// Maxima and sums first; then the row is read again.
  void buildTwoPasses() {
    ValueRange results =
        rows.forEachTile(buildInits(), [&](Value start, ValueRange carried) {
          tile::OnlineSoftmaxOp step = buildStep(start, carried);
          return SmallVector<Value>{step.getMaxOut(), step.getSumOut()};
        });
    Statistics stats = {results[0], results[1]};
    Value inverse = buildInverse(stats.sum);
    rows.forEachTile({}, [&](Value start, ValueRange) {
      Value p =
          tile::ExpDiffOp::create(kernel, loadScores(start), stats.max, one);
      storeP(p, inverse, start);
      return SmallVector<Value>();
    });
    storeLse(stats);
  }

  SmallVector<Value> buildInits() {
    return {rows.getRowSplat(-std::numeric_limits<float>::infinity()),
            rows.getRowSplat(0.0)};
  }

  tile::OnlineSoftmaxOp buildStep(Value start, ValueRange carried) {
    Value scores = loadScores(start);
    Type rowType = rows.getRowType();
    return tile::OnlineSoftmaxOp::create(
        kernel, TypeRange{scores.getType(), rowType, rowType, rowType}, scores,
        carried[0], carried[1], one);
  }

  Value loadScores(Value start) {
    Value scores =
        builder.load(softmax.scores, rows.getTileShape(), getIndices(start));
    return rows.fillTail(builder.convertFloat(scores, kernel.getF32Type()),
                         start, -std::numeric_limits<float>::infinity());
  }

  SmallVector<Value> getIndices(Value columnStart) {
    SmallVector<Value> indices(rowStarts);
    indices.push_back(columnStart);
    return indices;
  }

  Value isZero(Value value) {
    return arith::CmpFOp::create(kernel, arith::CmpFPredicate::OEQ, value,
                                 rows.getRowSplat(0.0));
  }

  /// The sum is 0 only in a row of nothing but -inf: any other has a term of 1.
  Value buildInverse(Value sum) {
    Value inverse = arith::DivFOp::create(kernel, rows.getRowSplat(1.0), sum);
    if (!softmax.zeroMaskedRows)
      return inverse;
    return arith::SelectOp::create(kernel, isZero(sum), rows.getRowSplat(0.0),
                                   inverse);
  }

  void storeP(Value p, Value inverse, Value start) {
    Value normalised =
        arith::MulFOp::create(kernel, p, rows.broadcast(inverse));
    Type type = getElementTypeOrSelf(softmax.p);
    builder.store(builder.convertFloat(normalised, type), softmax.p,
                  getIndices(start));
  }

  void storeLse(Statistics stats) {
    if (!softmax.lse)
      return;
    Value lse = arith::AddFOp::create(kernel, stats.max,
                                      math::LogOp::create(kernel, stats.sum));
    Value empty = rows.getRowSplat(-std::numeric_limits<float>::infinity());
    lse = arith::SelectOp::create(kernel, isZero(stats.sum), empty, lse);
    builder.store(lse, softmax.lse, rowStarts);
  }

  KernelBuilder &builder;
  ImplicitLocOpBuilder &kernel;
  const RowSoftmax &softmax;
  RowBlock rows;
  GridLoop columns;
  ArrayRef<Value> rowStarts;
  Value one;
};
} // namespace

LogicalResult attn::buildRowSoftmax(KernelBuilder &builder,
                                    const RowSoftmax &softmax) {
  auto type = cast<MemRefType>(softmax.scores.getType());
  for (Value value : {softmax.scores, softmax.p}) {
    Type element = getElementTypeOrSelf(value);
    if (!element.isF16() && !element.isBF16() && !element.isF32())
      return emitUnsupported(builder.getOp(), "is a softmax of ")
             << element << "; it must be f16, bf16 or f32";
  }
  SmallVector<Value> operands = {softmax.scores, softmax.p};
  if (softmax.lse)
    operands.push_back(softmax.lse);
  std::string element;
  llvm::raw_string_ostream(element) << type.getElementType();
  if (failed(builder.begin(builder.getStep("softmax") + "_" + element, operands,
                           builder.getSizes().numWarps)))
    return failure();
  SmallVector<GridLoop> loops;
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    loops.push_back({softmax.scores, dim, /*tile=*/1});
  auto rowLoops = ArrayRef(loops).drop_back();
  loops[type.getRank() - 2].tile = builder.getSizes().rows;
  SmallVector<Value> starts = builder.splitPrograms(rowLoops);
  SoftmaxBuilder(builder, softmax, loops.back(), starts).build();
  // Compare, subtract, exponential, add, multiply.
  builder.finish(loops, /*flops=*/5);
  return success();
}

//===----------------------------------------------------------------------===//
// Reduction
//===----------------------------------------------------------------------===//

namespace {
/// A reduction in f32, of the negated values if `negate`.
struct RowReduction {
  Operation *combiner;
  /// The combined element.
  Value element;
  tile::ReduceKind kind;
  bool negate;

  double getNeutral() const {
    return kind == tile::ReduceKind::Add
               ? 0.0
               : -std::numeric_limits<double>::infinity();
  }
};
} // namespace

/// f32 holds integers of up to 16 bits exactly.
static bool isReducible(Type type, bool isInteger) {
  return isInteger ? type.isInteger(8) || type.isInteger(16)
                   : type.isF16() || type.isBF16() || type.isF32();
}

static FailureOr<RowReduction> matchReduction(linalg::GenericOp op) {
  Operation *combiner =
      op.getBody()->getTerminator()->getOperand(0).getDefiningOp();
  bool isInteger = isa_and_present<arith::MaxUIOp, arith::MinUIOp>(combiner);
  if (!isInteger &&
      !isa_and_present<arith::AddFOp, arith::MaximumFOp, arith::MinimumFOp>(
          combiner))
    return emitUnsupported(op, "is a reduction by something else than addf, "
                               "maximumf, minimumf, maxui or minui");
  BlockArgument out = op.getRegionOutputArgs().front();
  Value element = combiner->getOperand(0) == out ? combiner->getOperand(1)
                                                 : combiner->getOperand(0);
  if (!llvm::is_contained(combiner->getOperands(), out) || !out.hasOneUse() ||
      !isReducible(out.getType(), isInteger))
    return emitUnsupported(op,
                           "is a reduction whose body isn't one combination "
                           "of an f16, bf16, f32, i8 or i16 element with "
                           "the output");
  RowReduction reduction;
  reduction.combiner = combiner;
  reduction.element = element;
  reduction.kind = isa<arith::AddFOp>(combiner) ? tile::ReduceKind::Add
                                                : tile::ReduceKind::Max;
  reduction.negate = isa<arith::MinimumFOp, arith::MinUIOp>(combiner);
  return reduction;
}

/// True if the last loop is the reduction and the output has all others.
static bool reducesLastLoop(linalg::GenericOp op) {
  unsigned numLoops = op.getNumLoops();
  if (op.getNumReductionLoops() != 1 || op.getNumDpsInits() != 1 ||
      op.getIteratorTypesArray().back() != utils::IteratorType::reduction)
    return false;
  AffineMap out = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  return out == AffineMap::getMultiDimIdentityMap(numLoops, op.getContext())
                    .dropResult(numLoops - 1);
}

namespace {
class ReductionBuilder {
public:
  ReductionBuilder(KernelBuilder &builder, linalg::GenericOp op,
                   RowReduction reduction, FillValue fill, GridLoop columns,
                   ArrayRef<Value> rowStarts)
      : builder(builder), kernel(builder.kernel), op(op), reduction(reduction),
        fill(fill), rows(builder, columns), rowStarts(rowStarts) {}

  LogicalResult build() {
    LogicalResult result = success();
    Value acc =
        rows.forEachTile(getInit(), [&](Value start, ValueRange carried) {
          FailureOr<Value> next = buildStep(start, carried.front());
          if (failed(next)) {
            result = failure();
            return SmallVector<Value>{carried.front()};
          }
          return SmallVector<Value>{*next};
        })[0];
    if (failed(result))
      return failure();
    Type type = getElementTypeOrSelf(op.getOutputs()[0]);
    builder.store(fromF32(acc, type), op.getOutputs()[0], rowStarts);
    return success();
  }

private:
  /// An element or tile as an f32 tile to reduce.
  Value toF32(Value tile) {
    auto type = cast<RankedTensorType>(tile.getType());
    Type f32 = type.clone(kernel.getF32Type());
    if (type.getElementType().isInteger())
      tile = arith::UIToFPOp::create(kernel, f32, tile);
    else
      tile = builder.convertFloat(tile, kernel.getF32Type());
    return reduction.negate ? arith::NegFOp::create(kernel, tile).getResult()
                            : tile;
  }

  Value fromF32(Value tile, Type type) {
    if (reduction.negate)
      tile = arith::NegFOp::create(kernel, tile);
    if (!type.isInteger())
      return builder.convertFloat(tile, type);
    return arith::FPToUIOp::create(
        kernel, cast<RankedTensorType>(tile.getType()).clone(type), tile);
  }

  Value getInit() {
    if (!fill) {
      Value out = op.getOutputs()[0];
      return toF32(
          builder.load(out, rows.getTileShape()[0], ValueRange(rowStarts)));
    }
    double value = isa<FloatAttr>(fill)
                       ? cast<FloatAttr>(fill).getValueAsDouble()
                       : cast<IntegerAttr>(fill).getValue().getZExtValue();
    return rows.getRowSplat(reduction.negate ? -value : value);
  }

  FailureOr<Value> buildStep(Value columnStart, Value acc) {
    SmallVector<Value> starts(rowStarts);
    starts.push_back(columnStart);
    BodyBuilder body(builder, op, rows.getTileShape());
    if (failed(body.build(starts, reduction.combiner)))
      return failure();
    Value elements = toF32(body.getElements(reduction.element));
    elements = rows.fillTail(elements, columnStart, reduction.getNeutral());
    Value reduced = tile::ReduceOp::create(kernel, rows.getRowType(),
                                           reduction.kind, elements);
    if (reduction.kind == tile::ReduceKind::Add)
      return arith::AddFOp::create(kernel, acc, reduced).getResult();
    return arith::MaximumFOp::create(kernel, acc, reduced).getResult();
  }

  KernelBuilder &builder;
  ImplicitLocOpBuilder &kernel;
  linalg::GenericOp op;
  RowReduction reduction;
  FillValue fill;
  RowBlock rows;
  ArrayRef<Value> rowStarts;
};
} // namespace

LogicalResult attn::buildRowReduction(KernelBuilder &builder,
                                      linalg::GenericOp op, FillValue fill) {
  if (!reducesLastLoop(op))
    return emitUnsupported(op, "is a reduction of something else than the last "
                               "loop into the others, in order");
  FailureOr<RowReduction> reduction = matchReduction(op);
  FailureOr<SmallVector<GridLoop>> loops = getLoops(op);
  if (failed(reduction) || failed(loops) || failed(BodyBuilder::verify(op)))
    return failure();
  std::string type;
  llvm::raw_string_ostream(type) << reduction->element.getType();
  if (failed(builder.begin(builder.getStep("reduce") + "_" + type,
                           BodyBuilder::getKernelOperands(op),
                           builder.getSizes().numWarps)))
    return failure();
  std::prev(loops->end(), 2)->tile = builder.getSizes().rows;
  SmallVector<Value> starts =
      builder.splitPrograms(ArrayRef(*loops).drop_back());
  if (failed(
          ReductionBuilder(builder, op, *reduction, fill, loops->back(), starts)
              .build()))
    return failure();
  builder.finish(*loops, std::max<int64_t>(BodyBuilder::countFlops(op), 1));
  return success();
}
