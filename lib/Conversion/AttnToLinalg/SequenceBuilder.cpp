//===- SequenceBuilder.cpp - The linalg ops of unfused attention ----------===//

#include "SequenceBuilder.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::attn;

/// Arguments of a mask_mod in front of its captures.
static constexpr unsigned kNumIndices = 4;

/// The ops of a rule that compute the bounds, in order.
static SmallVector<Operation *> getBoundOps(ArrayRef<KeyLimit> limits) {
  SetVector<Operation *> slice;
  BackwardSliceOptions options;
  options.omitBlockArguments = true;
  options.inclusive = true;
  for (const KeyLimit &limit : limits)
    // Fails only on regions, which scalar ops don't have.
    if (Operation *def = limit.bound.getDefiningOp())
      (void)getBackwardSlice(def, &slice, options);
  return slice.takeVector();
}

/// The position in a loop, as rules take it.
static Value getLoopIndex(ImplicitLocOpBuilder &body, unsigned loop) {
  Value position = linalg::IndexOp::create(body, loop);
  return arith::IndexCastOp::create(body, body.getI32Type(), position);
}

Value attn::convertFloat(ImplicitLocOpBuilder &builder, Value value,
                         Type type) {
  unsigned from = value.getType().getIntOrFloatBitWidth();
  unsigned to = type.getIntOrFloatBitWidth();
  if (value.getType() == type)
    return value;
  if (from < to)
    return arith::ExtFOp::create(builder, type, value);
  return arith::TruncFOp::create(builder, type, value);
}

//===----------------------------------------------------------------------===//
// Shapes and maps
//===----------------------------------------------------------------------===//

AffineMap SequenceBuilder::getMap(unsigned numLoops, ArrayRef<unsigned> loops) {
  SmallVector<AffineExpr> results = llvm::map_to_vector(
      loops, [&](unsigned loop) { return builder.getAffineDimExpr(loop); });
  return AffineMap::get(numLoops, 0, results, op.getContext());
}

/// The map of k or v: as `loops`, but the head is the one of the query's group.
AffineMap SequenceBuilder::getKVMap(ArrayRef<unsigned> loops) {
  AffineMap map = getMap(5, loops);
  int64_t numKVHeads = std::max<int64_t>(op.getNumKVHeads(), 1);
  int64_t groupSize = std::max<int64_t>(op.getNumQueryHeads() / numKVHeads, 1);
  SmallVector<AffineExpr> results(map.getResults());
  results[1] = results[1].floorDiv(groupSize);
  return AffineMap::get(5, 0, results, op.getContext());
}

SmallVector<OpFoldResult> SequenceBuilder::getRowShape() {
  auto shape = tensor::getMixedSizes(builder, builder.getLoc(), op.getQ());
  shape.pop_back();
  return shape;
}

SmallVector<OpFoldResult> SequenceBuilder::getScoreShape() {
  SmallVector<OpFoldResult> shape = getRowShape();
  shape.push_back(
      tensor::getMixedSize(builder, builder.getLoc(), op.getK(), 2));
  return shape;
}

Value SequenceBuilder::empty(ArrayRef<OpFoldResult> shape, Type elementType) {
  return tensor::EmptyOp::create(builder, shape, elementType);
}

Value SequenceBuilder::emptyLike(Value value, Type elementType) {
  return empty(tensor::getMixedSizes(builder, builder.getLoc(), value),
               elementType);
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

NamedAttribute SequenceBuilder::nameStep(StringRef step) {
  return builder.getNamedAttr("attn.step",
                              builder.getStringAttr(variant + "_" + step));
}

Value SequenceBuilder::fill(StringRef step, TypedAttr value, Value into) {
  Value scalar = arith::ConstantOp::create(builder, value);
  auto fill = linalg::FillOp::create(builder, scalar, into);
  fill->setDiscardableAttr("attn.step", nameStep(step).getValue());
  return fill.getResult(0);
}

linalg::GenericOp SequenceBuilder::generic(StringRef step,
                                           ArrayRef<StepOperand> inputs,
                                           StepOperand into,
                                           unsigned numReductions,
                                           BodyFn body) {
  SmallVector<Value> values;
  SmallVector<AffineMap> maps;
  for (const StepOperand &input : inputs) {
    values.push_back(input.value);
    maps.push_back(input.map);
  }
  maps.push_back(into.map);
  SmallVector<utils::IteratorType> iterators(into.map.getNumDims(),
                                             utils::IteratorType::parallel);
  std::fill_n(iterators.rbegin(), numReductions,
              utils::IteratorType::reduction);
  auto buildBody = [&](OpBuilder &nested, Location loc, ValueRange args) {
    ImplicitLocOpBuilder bodyBuilder(loc, nested);
    Value result = body(bodyBuilder, args);
    linalg::YieldOp::create(bodyBuilder, result);
  };
  return linalg::GenericOp::create(builder, into.value.getType(), values,
                                   into.value, maps, iterators, buildBody,
                                   nameStep(step));
}

Value SequenceBuilder::elementwise(StringRef step, ArrayRef<StepOperand> inputs,
                                   StepOperand into, BodyFn body) {
  return generic(step, inputs, into, /*numReductions=*/0, body).getResult(0);
}

Value SequenceBuilder::convert(StringRef step, Value value, Value into) {
  Type type = getElementTypeOrSelf(into);
  return elementwise(step, {{value, scoreMap()}}, {into, scoreMap()},
                     [&](ImplicitLocOpBuilder &body, ValueRange args) {
                       return convertFloat(body, args[0], type);
                     });
}

Value SequenceBuilder::reduceRows(StringRef step, ArrayRef<StepOperand> inputs,
                                  TypedAttr neutral, BodyFn body) {
  Value init = fill(step, neutral, empty(getRowShape(), neutral.getType()));
  return generic(step, inputs, {init, rowMap()}, /*numReductions=*/1, body)
      .getResult(0);
}

Value SequenceBuilder::matmul(StringRef step, StepOperand a, StepOperand b,
                              StepOperand into, StringRef path,
                              ArrayRef<StepOperand> scalars, BodyFn changeB) {
  Type type = getElementTypeOrSelf(into.value);
  Value init = fill(step, builder.getZeroAttr(type), into.value);
  Type f32 = builder.getF32Type();
  SmallVector<StepOperand> inputs = {a, b};
  llvm::append_range(inputs, scalars);
  auto product = generic(
      step, inputs, {init, into.map}, /*numReductions=*/1,
      [&](ImplicitLocOpBuilder &body, ValueRange args) {
        Value element =
            changeB ? changeB(body, args.drop_front().drop_back()) : args[1];
        Value product =
            arith::MulFOp::create(body, convertFloat(body, args[0], f32),
                                  convertFloat(body, element, f32));
        Value sum = arith::AddFOp::create(
            body, convertFloat(body, args.back(), f32), product);
        return convertFloat(body, sum, type);
      });
  product->setDiscardableAttr("attn.path", builder.getStringAttr(path));
  return product.getResult(0);
}

Value SequenceBuilder::matmulQK(Value q, Value k, Value into, StringRef path) {
  return matmul("qk", {q, getMap(5, {0, 1, 2, 4})}, {k, getKVMap({0, 1, 3, 4})},
                {into, getMap(5, {0, 1, 2, 3})}, path);
}

Value SequenceBuilder::matmulPV(Value p, Value v, Value into, StringRef path) {
  StepOperand a = {p, getMap(5, {0, 1, 2, 4})}, b = {v, getKVMap({0, 1, 4, 3})},
              out = {into, getMap(5, {0, 1, 2, 3})};
  SmallVector<KeyLimit> limits = getCommonLimits();
  if (limits.empty())
    return matmul("pv", a, b, out, path);

  SmallVector<Operation *> ruleOps = getBoundOps(limits);
  auto zeroPadding = [&](ImplicitLocOpBuilder &body, ValueRange args) {
    Region &rule = op.getMaskMod();
    IRMapping mapping;
    mapping.map(rule.getArguments().drop_front(kNumIndices), op.getCaptures());
    // The keys are the last loop; there is no one query.
    for (auto [index, loop] : {std::pair(0, 0), {1, 1}, {3, 4}})
      mapping.map(rule.getArgument(index), getLoopIndex(body, loop));
    cloneRule(body, ruleOps, mapping, args.drop_front());
    Value visible;
    for (KeyLimit limit : limits) {
      Value key = mapping.lookup(rule.getArgument(3));
      Value bound = mapping.lookup(limit.bound);
      if (key.getType() != bound.getType())
        key = arith::ExtSIOp::create(body, bound.getType(), key);
      Value isBefore =
          arith::CmpIOp::create(body,
                                limit.isInclusive ? arith::CmpIPredicate::sle
                                                  : arith::CmpIPredicate::slt,
                                key, bound);
      visible =
          visible ? arith::AndIOp::create(body, visible, isBefore) : isBefore;
    }
    Value zero = arith::ConstantOp::create(
        body, body.getFloatAttr(args.front().getType(), 0.0));
    return arith::SelectOp::create(body, visible, args.front(), zero)
        .getResult();
  };
  return matmul("pv", a, b, out, path,
                getLengthOperands(ruleOps, getMap(5, {})), zeroPadding);
}

//===----------------------------------------------------------------------===//
// Rules
//===----------------------------------------------------------------------===//

SmallVector<KeyLimit> SequenceBuilder::getCommonLimits() {
  if (!op.hasMaskMod())
    return {};
  Region &rule = op.getMaskMod();
  Value query = rule.getArgument(2), key = rule.getArgument(3);
  auto dependsOnPosition = [&](const KeyLimit &limit) {
    return limit.bound == query || limit.bound == key ||
           llvm::any_of(getBoundOps(limit), [&](Operation *inner) {
             return llvm::is_contained(inner->getOperands(), query) ||
                    llvm::is_contained(inner->getOperands(), key);
           });
  };
  SmallVector<KeyLimit> limits =
      findKeyLimits(rule.front().getTerminator()->getOperand(0), key);
  llvm::erase_if(limits, dependsOnPosition);
  return limits;
}

Value SequenceBuilder::getLengthSource(Operation *lengthOp) {
  return isa<QLenOp>(lengthOp) ? op.getQ() : op.getK();
}

SmallVector<StepOperand>
SequenceBuilder::getLengthOperands(ArrayRef<Operation *> ruleOps,
                                   AffineMap scalarMap) {
  SmallVector<StepOperand> operands;
  for (Operation *inner : ruleOps) {
    if (!isa<QLenOp, KVLenOp>(inner))
      continue;
    Value source = getLengthSource(inner);
    if (!cast<RankedTensorType>(source.getType()).isDynamicDim(2))
      continue;
    Value length = tensor::DimOp::create(builder, source, 2);
    Value cast =
        arith::IndexCastOp::create(builder, builder.getI32Type(), length);
    operands.push_back({cast, scalarMap});
  }
  return operands;
}

/// All ops of a rule but the terminator.
static SmallVector<Operation *> getRuleOps(Region &rule) {
  return llvm::map_to_vector(rule.front().without_terminator(),
                             [](Operation &inner) { return &inner; });
}

SmallVector<StepOperand> SequenceBuilder::getRuleOperands(Region &rule,
                                                          AffineMap scalarMap) {
  return getLengthOperands(getRuleOps(rule), scalarMap);
}

void SequenceBuilder::cloneRule(ImplicitLocOpBuilder &body,
                                ArrayRef<Operation *> ruleOps,
                                IRMapping &mapping, ValueRange lengths) {
  for (Operation *inner : ruleOps) {
    if (!isa<QLenOp, KVLenOp>(inner)) {
      body.clone(*inner, mapping);
      continue;
    }
    int64_t size =
        cast<RankedTensorType>(getLengthSource(inner).getType()).getDimSize(2);
    if (!ShapedType::isDynamic(size)) {
      mapping.map(inner->getResult(0),
                  arith::ConstantIntOp::create(body, size, 32));
      continue;
    }
    mapping.map(inner->getResult(0), lengths.front());
    lengths = lengths.drop_front();
  }
}

Value SequenceBuilder::inlineRule(ImplicitLocOpBuilder &body, Region &rule,
                                  ValueRange leading, ValueRange lengths,
                                  unsigned numLoops) {
  IRMapping mapping;
  Block &block = rule.front();
  mapping.map(block.getArguments().take_front(leading.size()), leading);
  size_t numCaptures = op.getCaptures().size();
  mapping.map(block.getArguments().take_back(numCaptures), op.getCaptures());
  auto indices =
      block.getArguments().drop_front(leading.size()).drop_back(numCaptures);
  // The indices are (b, h, m, n), or only (m, n) if the others don't matter.
  for (auto [loop, index] : llvm::enumerate(indices.take_back(numLoops)))
    mapping.map(index, getLoopIndex(body, loop));
  cloneRule(body, getRuleOps(rule), mapping, lengths);
  return mapping.lookupOrDefault(block.getTerminator()->getOperand(0));
}

bool SequenceBuilder::dependsOnBatchOrHead(Region &rule) {
  // mask_mod takes (b, h, q_idx, kv_idx).
  return !rule.getArgument(0).use_empty() || !rule.getArgument(1).use_empty();
}
