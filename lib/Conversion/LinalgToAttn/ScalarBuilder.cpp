//===- ScalarBuilder.cpp - Elementwise tensor code as a scalar rule -------===//

#include "ScalarBuilder.h"
#include "attn/Dialect/Attn/IR/AttnOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace mlir::attn;

//===----------------------------------------------------------------------===//
// Queries
//===----------------------------------------------------------------------===//

bool attn::areEquivalent(Value a, Value b) {
  if (a == b)
    return true;
  Operation *opA = a.getDefiningOp(), *opB = b.getDefiningOp();
  if (!opA || !opB || opA->getName() != opB->getName() ||
      opA->getNumOperands() != opB->getNumOperands() ||
      opA->getAttrDictionary() != opB->getAttrDictionary() ||
      opA->getResultTypes() != opB->getResultTypes() ||
      cast<OpResult>(a).getResultNumber() !=
          cast<OpResult>(b).getResultNumber())
    return false;
  return llvm::all_of(
      llvm::zip(opA->getOperands(), opB->getOperands()), [](auto pair) {
        return areEquivalent(std::get<0>(pair), std::get<1>(pair));
      });
}

/// The ops that `value` is computed by, `value`'s own included.
static llvm::SmallPtrSet<Operation *, 16> getSlice(Value value) {
  llvm::SmallPtrSet<Operation *, 16> slice;
  SmallVector<Value> worklist = {value};
  while (!worklist.empty())
    if (Operation *op = worklist.pop_back_val().getDefiningOp())
      if (slice.insert(op).second)
        llvm::append_range(worklist, op->getOperands());
  return slice;
}

bool attn::dependsOn(Value value, Value source) {
  return value == source || llvm::any_of(getSlice(value), [&](Operation *op) {
           return llvm::is_contained(op->getOperands(), source);
         });
}

std::optional<APFloat> attn::getConstantFloat(Value value) {
  if (auto fill = value.getDefiningOp<linalg::FillOp>())
    return getConstantFloat(fill.getInputs()[0]);
  if (auto splat = value.getDefiningOp<tensor::SplatOp>())
    return getConstantFloat(splat.getInput());
  FloatAttr scalar;
  if (matchPattern(value, m_Constant(&scalar)))
    return scalar.getValue();
  SplatElementsAttr splat;
  if (matchPattern(value, m_Constant(&splat)) &&
      isa<FloatType>(splat.getElementType()))
    return splat.getSplatValue<APFloat>();
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

/// Exporters count in index or i64; positions and lengths fit in i32.
static bool isWideInteger(Type type) {
  return type.isIndex() || type.isInteger(64);
}

/// Scores are f32 whatever the tensors around them hold.
static Type convertType(Type type) {
  if (type.isF16() || type.isBF16())
    return Float32Type::get(type.getContext());
  return type.isIndex() ? IntegerType::get(type.getContext(), 64) : type;
}

/// Whether the op on positions and lengths is the same in i32. Products may
/// overflow, shifts and counts see the width.
static bool isNarrowable(Operation *op) {
  return isa<arith::AddIOp, arith::SubIOp, arith::CmpIOp, arith::SelectOp,
             arith::MinSIOp, arith::MaxSIOp, arith::DivSIOp, arith::RemSIOp,
             arith::FloorDivSIOp, arith::CeilDivSIOp, arith::AndIOp,
             arith::OrIOp, arith::XOrIOp, arith::SIToFPOp>(op);
}

//===----------------------------------------------------------------------===//
// Scalar ops
//===----------------------------------------------------------------------===//

ScalarBuilder::ScalarBuilder(MLIRContext *context, Location loc,
                             AxisSpace &space, MatchFailure &failure)
    : space(space), failure(failure), loc(loc), block(&region.emplaceBlock()),
      builder(context) {
  builder.setInsertionPointToEnd(block);
  score = block->addArgument(builder.getF32Type(), loc);
}

const Leaf *ScalarBuilder::getLeaf(Value value) const {
  for (const auto &[arg, leaf] : leaves)
    if (arg == value)
      return &leaf;
  return nullptr;
}

SmallVector<Value> ScalarBuilder::insertFolded(Operation *op) {
  builder.insert(op);
  SmallVector<Value> results;
  if (succeeded(builder.tryFold(op, results)) && !results.empty()) {
    op->erase();
    return results;
  }
  return SmallVector<Value>(op->getResults());
}

Value ScalarBuilder::buildConstant(TypedAttr attr) {
  if (auto number = dyn_cast<FloatAttr>(attr)) {
    auto type = cast<FloatType>(convertType(number.getType()));
    APFloat value = number.getValue();
    bool losesInfo;
    value.convert(type.getFloatSemantics(), APFloat::rmNearestTiesToEven,
                  &losesInfo);
    attr = FloatAttr::get(type, value);
  } else if (isWideInteger(attr.getType())) {
    APInt value = cast<IntegerAttr>(attr).getValue();
    unsigned width = value.isSignedIntN(32) ? 32 : 64;
    attr = IntegerAttr::get(builder.getIntegerType(width),
                            value.sextOrTrunc(width));
  }
  return arith::ConstantOp::create(builder, loc, attr);
}

/// Positions may be held in fewer bits than the source's type has, so a cast
/// goes by the width at hand.
Value ScalarBuilder::buildIntegerCast(Operation *op, Value operand,
                                      Type resultType) {
  unsigned from = operand.getType().getIntOrFloatBitWidth();
  bool isWide = isWideInteger(resultType);
  bool isUnsigned = isa<arith::ExtUIOp, arith::IndexCastUIOp>(op) &&
                    !isWideInteger(getElementTypeOrSelf(op->getOperand(0)));
  unsigned to = isWide ? 64 : resultType.getIntOrFloatBitWidth();
  // A sign-extended value fits where it came from, a zero-extended one doesn't.
  if (isWide && (!isUnsigned || from < 32))
    to = std::max(from, 32u);
  if (from == to)
    return operand;
  Type type = builder.getIntegerType(to);
  if (from > to)
    return builder.createOrFold<arith::TruncIOp>(loc, type, operand);
  if (isUnsigned)
    return builder.createOrFold<arith::ExtUIOp>(loc, type, operand);
  return builder.createOrFold<arith::ExtSIOp>(loc, type, operand);
}

FailureOr<Value> ScalarBuilder::buildScalarOp(Operation *op, unsigned result,
                                              ValueRange operandRange) {
  if (!isa_and_present<arith::ArithDialect, math::MathDialect>(
          op->getDialect()) ||
      !isMemoryEffectFree(op))
    return failure.fail(op->getLoc(), "can't take '" +
                                          op->getName().getStringRef() +
                                          "' into a score_mod or mask_mod");
  SmallVector<Value> operands(operandRange);
  Type type = getElementTypeOrSelf(op->getResult(result));
  if (isa<arith::IndexCastOp, arith::IndexCastUIOp, arith::ExtSIOp,
          arith::ExtUIOp, arith::TruncIOp>(op))
    return buildIntegerCast(op, operands[0], type);
  if (isa<arith::ExtFOp, arith::TruncFOp>(op) &&
      operands[0].getType() == convertType(type))
    return operands[0];

  bool canNarrow = isNarrowable(op);
  for (auto [operand, source] : llvm::zip(operands, op->getOperands()))
    if (isWideInteger(getElementTypeOrSelf(source)))
      canNarrow &= operand.getType().isInteger(32);
  Type i32 = builder.getI32Type(), i64 = builder.getI64Type();
  if (!canNarrow)
    for (auto [operand, source] : llvm::zip(operands, op->getOperands()))
      if (isWideInteger(getElementTypeOrSelf(source)) &&
          !operand.getType().isInteger(64))
        operand = builder.createOrFold<arith::ExtSIOp>(loc, i64, operand);
  Operation *clone = op->clone();
  clone->setLoc(op->getLoc());
  clone->setOperands(operands);
  for (Value value : clone->getResults()) {
    Type element = getElementTypeOrSelf(value);
    bool isNarrow = canNarrow && isWideInteger(element);
    value.setType(isNarrow ? i32 : convertType(element));
  }
  return insertFolded(clone)[result];
}

/// A scalar from outside the tensor ops.
FailureOr<Value> ScalarBuilder::buildScalar(Value scalar) {
  TypedAttr attr;
  if (matchPattern(scalar, m_Constant(&attr)) &&
      isa<FloatAttr, IntegerAttr>(attr))
    return buildConstant(attr);
  Operation *op = scalar.getDefiningOp();
  if (auto dim = dyn_cast_or_null<tensor::DimOp>(op))
    if (std::optional<int64_t> index = dim.getConstantIndex())
      return buildLength(dim.getSource(), *index);
  if (!op || !isa<arith::ArithDialect, math::MathDialect>(op->getDialect()))
    return failure.fail(scalar.getLoc(),
                        "depends on a scalar that is not a constant");
  SmallVector<Value> operands;
  for (Value operand : op->getOperands()) {
    FailureOr<Value> built = buildScalar(operand);
    if (failed(built))
      return mlir::failure();
    operands.push_back(*built);
  }
  return buildScalarOp(op, cast<OpResult>(scalar).getResultNumber(), operands);
}

Value ScalarBuilder::buildLength(Value tensor, int64_t dim) {
  int64_t size = cast<RankedTensorType>(tensor.getType()).getDimSize(dim);
  if (!ShapedType::isDynamic(size))
    return buildConstant(builder.getIndexAttr(size));
  for (const Length &length : lengthArgs)
    if (length.tensor == tensor && length.dim == dim)
      return length.arg;
  Value arg = block->addArgument(builder.getI32Type(), loc);
  lengthArgs.push_back({arg, tensor, dim});
  return arg;
}

Value ScalarBuilder::getIndex(const AxisTuple &tuple) {
  AxisTuple resolved = space.resolve(tuple);
  for (const auto &[arg, known] : indexArgs)
    if (space.resolve(known) == resolved)
      return arg;
  Value arg = block->addArgument(builder.getI32Type(), loc);
  indexArgs.emplace_back(arg, resolved);
  return arg;
}

//===----------------------------------------------------------------------===//
// Tensor ops
//===----------------------------------------------------------------------===//

FailureOr<Value> ScalarBuilder::build(Value tensor, const AxisLayout &layout) {
  AxisLayout resolved = space.resolve(layout);
  for (const Cached &entry : cache)
    if (entry.tensor == tensor && space.resolve(entry.layout) == resolved)
      return entry.scalar;
  FailureOr<Value> scalar = buildUncached(tensor, resolved);
  if (succeeded(scalar)) {
    cache.push_back({tensor, resolved, *scalar});
    addKnownLayout(tensor, resolved);
  }
  return scalar;
}

FailureOr<Value> ScalarBuilder::buildUncached(Value tensor,
                                              const AxisLayout &layout) {
  Operation *op = tensor.getDefiningOp();
  if (!op)
    return failure.fail(tensor.getLoc(),
                        "reads a tensor argument elementwise: only masks and "
                        "biases computed from positions are raised");
  SplatElementsAttr splat;
  if (matchPattern(tensor, m_Constant(&splat)) &&
      splat.getElementType().isIntOrIndexOrFloat())
    return buildConstant(cast<TypedAttr>(splat.getSplatValue<Attribute>()));
  visited.insert(op);
  if (isa<tensor::CollapseShapeOp, tensor::ExpandShapeOp, tensor::CastOp>(op)) {
    FailureOr<AxisLayout> source = space.getSourceLayout(op, layout);
    if (failed(source))
      return failure.fail(op->getLoc(), "reshapes across batch, heads, queries "
                                        "and keys");
    return build(op->getOperand(0), *source);
  }
  if (auto splatOp = dyn_cast<tensor::SplatOp>(op))
    return buildScalar(splatOp.getInput());
  auto result = cast<OpResult>(tensor);
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op))
    return buildLinalg(linalgOp, result, layout);
  if (op->hasTrait<OpTrait::Elementwise>())
    return buildElementwise(op, result, layout);
  if (isa<linalg::SoftmaxOp>(op)) {
    Value arg = block->addArgument(builder.getF32Type(), loc);
    leaves.emplace_back(arg, Leaf{result, layout});
    return arg;
  }
  return failure.fail(op->getLoc(),
                      "can't look through '" + op->getName().getStringRef() +
                          "'; only masks and biases computed from positions "
                          "are raised");
}

FailureOr<Value> ScalarBuilder::buildElementwise(Operation *op, OpResult result,
                                                 const AxisLayout &layout) {
  SmallVector<Value> operands;
  for (Value operand : op->getOperands()) {
    FailureOr<Value> built = isa<RankedTensorType>(operand.getType())
                                 ? build(operand, layout)
                                 : buildScalar(operand);
    if (failed(built))
      return mlir::failure();
    operands.push_back(*built);
  }
  return buildScalarOp(op, result.getResultNumber(), operands);
}

FailureOr<Value> ScalarBuilder::buildLinalg(linalg::LinalgOp op,
                                            OpResult result,
                                            const AxisLayout &layout) {
  if (!op.hasPureTensorSemantics())
    return failure.fail(op.getLoc(), "works on memory");
  if (op.getNumReductionLoops() != 0) {
    if (isMatrixProduct(op))
      return buildScore(op, layout);
    Value arg = block->addArgument(builder.getF32Type(), loc);
    leaves.emplace_back(arg, Leaf{result, layout});
    return arg;
  }
  OpOperand *init = op.getDpsInitOperand(result.getResultNumber());
  FailureOr<AxisLayout> loops = space.getLoops(op, init, layout, {});
  if (failed(loops))
    return failure.fail(op.getLoc(), "has an unusual indexing map");
  IRMapping mapping;
  Value yielded =
      op.getBlock()->getTerminator()->getOperand(result.getResultNumber());
  return buildBodyValue(op, yielded, *loops, mapping);
}

FailureOr<Value> ScalarBuilder::buildBodyValue(linalg::LinalgOp op, Value value,
                                               const AxisLayout &loops,
                                               IRMapping &mapping) {
  if (Value known = mapping.lookupOrNull(value))
    return known;
  FailureOr<Value> built;
  Operation *def = value.getDefiningOp();
  if (value.getParentBlock() != op.getBlock()) {
    built = buildScalar(value);
  } else if (auto arg = dyn_cast<BlockArgument>(value)) {
    OpOperand *operand = op.getMatchingOpOperand(arg);
    if (!isa<RankedTensorType>(operand->get().getType())) {
      built = buildScalar(operand->get());
    } else {
      FailureOr<AxisLayout> layout = space.getOperandLayout(op, operand, loops);
      if (failed(layout))
        return failure.fail(op.getLoc(), "has an unusual indexing map");
      built = build(operand->get(), *layout);
    }
  } else if (auto index = dyn_cast<linalg::IndexOp>(def)) {
    built = getIndex(loops[index.getDim()]);
  } else {
    SmallVector<Value> operands;
    for (Value operand : def->getOperands()) {
      FailureOr<Value> next = buildBodyValue(op, operand, loops, mapping);
      if (failed(next))
        return mlir::failure();
      operands.push_back(*next);
    }
    TypedAttr attr;
    if (matchPattern(value, m_Constant(&attr)) &&
        isa<FloatAttr, IntegerAttr>(attr))
      built = buildConstant(attr);
    else
      built =
          buildScalarOp(def, cast<OpResult>(value).getResultNumber(), operands);
  }
  if (succeeded(built))
    mapping.map(value, *built);
  return built;
}

FailureOr<Value>
ScalarBuilder::buildReduced(const Leaf &leaf, const AxisTuple &reduced,
                            function_ref<bool(Operation *)> isCombiner) {
  auto op = dyn_cast<linalg::LinalgOp>(leaf.tensor.getOwner());
  if (!op || op.getNumReductionLoops() != 1)
    return mlir::failure();
  unsigned number = leaf.tensor.getResultNumber();
  OpOperand *init = op.getDpsInitOperand(number);
  FailureOr<AxisLayout> loops = space.getLoops(op, init, leaf.layout, reduced);
  if (failed(loops))
    return mlir::failure();
  Operation *combiner =
      op.getBlock()->getTerminator()->getOperand(number).getDefiningOp();
  if (!combiner || !isCombiner(combiner) || combiner->getNumOperands() != 2)
    return mlir::failure();
  Value accumulator = op.getMatchingBlockArgument(init);
  bool isFirst = combiner->getOperand(0) == accumulator;
  if (!isFirst && combiner->getOperand(1) != accumulator)
    return mlir::failure();
  IRMapping mapping;
  return buildBodyValue(op, combiner->getOperand(isFirst ? 1 : 0), *loops,
                        mapping);
}

//===----------------------------------------------------------------------===//
// Scores
//===----------------------------------------------------------------------===//

bool attn::isMatrixProduct(linalg::LinalgOp op) {
  if (!linalg::isaContractionOpInterface(op) || !op.hasPureTensorSemantics() ||
      op.getNumReductionLoops() != 1)
    return false;
  return llvm::all_of(*op.getBlock(), [](Operation &inner) {
    return isa<arith::MulFOp, arith::AddFOp, arith::ExtFOp, linalg::YieldOp>(
        inner);
  });
}

FailureOr<Value> ScalarBuilder::buildScore(linalg::LinalgOp op,
                                           const AxisLayout &layout) {
  AxisTuple reduced = {scoreReduction};
  if (!scoreOp) {
    SmallVector<unsigned> reductionLoops;
    op.getReductionDims(reductionLoops);
    reduced = {space.create(op.getStaticLoopRanges()[reductionLoops.front()])};
  }
  FailureOr<AxisLayout> loops =
      space.getLoops(op, op.getDpsInitOperand(0), layout, reduced);
  if (failed(loops))
    return failure.fail(op.getLoc(), "has an unusual indexing map");
  if (!scoreOp) {
    scoreOp = op;
    scoreLoops = *loops;
    scoreReduction = reduced.front();
    return score;
  }
  if (scoreOp != op || space.resolve(scoreLoops) != space.resolve(*loops))
    return failure.fail(op.getLoc(),
                        "the scores come from more than one matrix product");
  return score;
}

//===----------------------------------------------------------------------===//
// Emission
//===----------------------------------------------------------------------===//

Value ScalarBuilder::emitIndex(OpBuilder &b, const AxisTuple &tuple,
                               const Indices &indices) {
  AxisTuple axes = space.resolve(tuple);
  if (axes == AxisTuple{indices.queryAxis})
    return indices.query;
  if (axes == AxisTuple{indices.keyAxis})
    return indices.key;
  if (!axes.empty() && axes == indices.batchAxes)
    return indices.batch;
  if (!axes.empty() && axes == indices.headAxes)
    return indices.head;
  // Parts of a group, or several groups: combine the single axes.
  Type i32 = b.getI32Type();
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(b, loc, b.getIntegerAttr(i32, value));
  };
  auto emitAxis = [&](Axis axis) -> Value {
    for (auto [group, index] : {std::pair(indices.batchAxes, indices.batch),
                                {indices.headAxes, indices.head}}) {
      auto it = llvm::find(group, axis);
      if (it == group.end())
        continue;
      if (group.size() == 1)
        return index;
      int64_t stride = 1;
      for (Axis inner : llvm::make_range(std::next(it), group.end()))
        stride *= space.getSize(inner);
      Value outer = arith::DivSIOp::create(b, loc, index, constant(stride));
      return arith::RemSIOp::create(b, loc, outer,
                                    constant(space.getSize(axis)));
    }
    return axis == indices.queryAxis ? indices.query : indices.key;
  };
  Value result;
  for (Axis axis : axes) {
    Value index = emitAxis(axis);
    if (!result) {
      result = index;
      continue;
    }
    Value scaled =
        arith::MulIOp::create(b, loc, result, constant(space.getSize(axis)));
    result = arith::AddIOp::create(b, loc, scaled, index);
  }
  return result ? result : constant(0);
}

FailureOr<Value> ScalarBuilder::emitLength(OpBuilder &b, const Length &length,
                                           const Indices &indices) {
  for (const auto &[tensor, layout] : knownLayouts) {
    if (tensor != length.tensor)
      continue;
    AxisTuple axes = space.resolve(layout[length.dim]);
    if (axes == AxisTuple{indices.queryAxis})
      return Value(QLenOp::create(b, loc, b.getI32Type()));
    if (axes == AxisTuple{indices.keyAxis})
      return Value(KVLenOp::create(b, loc, b.getI32Type()));
  }
  return failure.fail(length.tensor.getLoc(),
                      "depends on a size other than the query's or key's "
                      "length");
}

FailureOr<Value> ScalarBuilder::emitArgument(OpBuilder &b, Value arg,
                                             const Indices &indices) {
  if (arg == score) {
    if (!indices.score)
      return failure.fail(loc, "the mask depends on the scores");
    return indices.score;
  }
  for (const auto &[known, tuple] : indexArgs)
    if (known == arg)
      return emitIndex(b, tuple, indices);
  for (const Length &length : lengthArgs)
    if (length.arg == arg)
      return emitLength(b, length, indices);
  return failure.fail(getLeaf(arg)->tensor.getLoc(),
                      "the scores depend on a reduction");
}

FailureOr<Value> ScalarBuilder::emit(Value result, Block &into,
                                     const Indices &indices) {
  OpBuilder b(builder.getContext());
  b.setInsertionPointToEnd(&into);
  llvm::SmallPtrSet<Operation *, 16> slice = getSlice(result);
  IRMapping mapping;
  auto mapArgument = [&](Value value) -> LogicalResult {
    if (!isa<BlockArgument>(value) || mapping.contains(value))
      return success();
    FailureOr<Value> emitted = emitArgument(b, value, indices);
    if (succeeded(emitted))
      mapping.map(value, *emitted);
    return emitted;
  };
  for (Operation &op : *block) {
    if (!slice.contains(&op))
      continue;
    for (Value operand : op.getOperands())
      if (failed(mapArgument(operand)))
        return mlir::failure();
    b.clone(op, mapping);
  }
  if (failed(mapArgument(result)))
    return mlir::failure();
  return mapping.lookup(result);
}
