//===- ScoreTerms.cpp - A score_mod as a sum ------------------------------===//

#include "ScoreTerms.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>

using namespace mlir;
using namespace mlir::attn;

namespace {
/// What a value of the body depends on, as a bit set.
enum Dependence : unsigned { kNone = 0, kScore = 1, kQuery = 2, kKey = 4 };

class ScoreSplitter {
public:
  ScoreSplitter(Block &body, Value qStart)
      : body(body), qStart(qStart),
        builder(body.getTerminator()->getLoc(), body.getTerminator()) {
    dependences[body.getArgument(0)] = kScore;
    dependences[body.getArgument(1)] = kQuery;
    dependences[body.getArgument(2)] = kKey;
  }

  std::optional<KeyRamp> matchRamp(Value value);

  ScoreTerms run() {
    for (auto cast : llvm::make_early_inc_range(body.getOps<arith::SIToFPOp>()))
      moveMagnitude(cast);
    return split(body.getTerminator()->getOperand(0));
  }

private:
  unsigned getDependence(Value value);

  // Distances, as integers.
  struct IndexTerms {
    Value key, query;
  };
  ScoreTerms splitDistance(arith::SIToFPOp cast);
  void moveMagnitude(arith::SIToFPOp cast);
  std::optional<IndexTerms> splitIndex(Value value);
  Value matchAbsoluteDistance(Value value, bool &isNegative);
  Value evaluateAtStart(Value value);
  /// key + offset, or less that; no offset is 0.
  struct IndexRamp {
    bool isNegative = false;
    Value offset;
  };
  std::optional<IndexRamp> matchIndexRamp(Value value);

  // Sums of floats.
  ScoreTerms split(Value value);
  ScoreTerms splitProduct(Value product, Value terms, Value factor);
  ScoreTerms keepWhole(Value value);
  Value getReciprocal(arith::DivFOp op);
  Value approximateCap(arith::MulFOp op);
  template <typename OpT>
  Value combine(Value a, Value b) {
    if (!a || !b)
      return a ? a : b;
    return builder.createOrFold<OpT>(a, b);
  }
  Value negate(Value value) {
    return value ? builder.createOrFold<arith::NegFOp>(value) : Value();
  }
  Value multiply(Value value, Value factor) {
    return value ? builder.createOrFold<arith::MulFOp>(value, factor) : Value();
  }
  Value constant(float value) {
    return arith::ConstantOp::create(builder, builder.getF32FloatAttr(value));
  }
  Value one() { return constant(1.0f); }

  Block &body;
  Value qStart;
  ImplicitLocOpBuilder builder;
  DenseMap<Value, unsigned> dependences;
};
} // namespace

unsigned ScoreSplitter::getDependence(Value value) {
  if (auto it = dependences.find(value); it != dependences.end())
    return it->second;
  Operation *def = value.getDefiningOp();
  unsigned result = kNone;
  if (def && def->getBlock() == &body)
    for (Value operand : def->getOperands())
      result |= getDependence(operand);
  dependences[value] = result;
  return result;
}

//===----------------------------------------------------------------------===//
// Distances of a query and a key
//===----------------------------------------------------------------------===//

/// `value` as key + query, which depend on only one of both.
std::optional<ScoreSplitter::IndexTerms>
ScoreSplitter::splitIndex(Value value) {
  unsigned dependence = getDependence(value);
  if (!(dependence & kQuery))
    return IndexTerms{value, {}};
  if (!(dependence & kKey))
    return IndexTerms{{}, value};
  auto combineParts = [&](Operation *op, auto tag,
                          bool isDifference) -> std::optional<IndexTerms> {
    auto lhs = splitIndex(op->getOperand(0));
    auto rhs = splitIndex(op->getOperand(1));
    if (!lhs || !rhs)
      return std::nullopt;
    auto combineTerm = [&](Value a, Value b) -> Value {
      if (!b)
        return a;
      if (!a && !isDifference)
        return b;
      if (!a)
        a = arith::ConstantOp::create(builder,
                                      builder.getZeroAttr(b.getType()));
      return builder.createOrFold<decltype(tag)>(a, b);
    };
    return IndexTerms{combineTerm(lhs->key, rhs->key),
                      combineTerm(lhs->query, rhs->query)};
  };
  Operation *def = value.getDefiningOp();
  if (isa_and_present<arith::AddIOp>(def))
    return combineParts(def, arith::AddIOp(), /*isDifference=*/false);
  if (isa_and_present<arith::SubIOp>(def))
    return combineParts(def, arith::SubIOp(), /*isDifference=*/true);
  return std::nullopt;
}

/// `value`, which depends on the query, for the tile's first query.
Value ScoreSplitter::evaluateAtStart(Value value) {
  IRMapping mapping;
  mapping.map(body.getArgument(1), qStart);
  std::function<Value(Value)> evaluate = [&](Value from) -> Value {
    if (Value known = mapping.lookupOrNull(from))
      return known;
    if (!(getDependence(from) & kQuery))
      return from;
    Operation *def = from.getDefiningOp();
    for (Value operand : def->getOperands())
      mapping.map(operand, evaluate(operand));
    builder.clone(*def, mapping);
    return mapping.lookup(from);
  };
  return evaluate(value);
}

/// The distance as a float, in two exact parts where it depends on both
/// indices.
ScoreTerms ScoreSplitter::splitDistance(arith::SIToFPOp cast) {
  if (!cast.getIn().getType().isInteger(32))
    return keepWhole(cast);
  std::optional<IndexTerms> terms = splitIndex(cast.getIn());
  if (!terms || !terms->key || !terms->query)
    return keepWhole(cast);
  Value start = evaluateAtStart(terms->query);
  Value key = builder.createOrFold<arith::AddIOp>(terms->key, start);
  Value query = builder.createOrFold<arith::SubIOp>(terms->query, start);
  auto convert = [&](Value value) -> Value {
    return arith::SIToFPOp::create(builder, cast.getType(), value);
  };
  return {{}, convert(key), convert(query)};
}

/// x if `value` is |x| or -|x|: also as the difference of the smaller and the
/// larger of two indices.
Value ScoreSplitter::matchAbsoluteDistance(Value value, bool &isNegative) {
  Operation *def = value.getDefiningOp();
  isNegative = false;
  if (auto abs = dyn_cast_or_null<math::AbsIOp>(def))
    return abs.getOperand();
  auto sub = dyn_cast_or_null<arith::SubIOp>(def);
  if (!sub)
    return {};
  Operation *lhs = sub.getLhs().getDefiningOp();
  Operation *rhs = sub.getRhs().getDefiningOp();
  if (isa_and_present<arith::MinSIOp>(lhs) &&
      isa_and_present<arith::MaxSIOp>(rhs))
    isNegative = true;
  else if (!isa_and_present<arith::MaxSIOp>(lhs) ||
           !isa_and_present<arith::MinSIOp>(rhs))
    return {};
  Value a = lhs->getOperand(0), b = lhs->getOperand(1);
  bool areSame = (rhs->getOperand(0) == a && rhs->getOperand(1) == b) ||
                 (rhs->getOperand(0) == b && rhs->getOperand(1) == a);
  return areSame ? builder.createOrFold<arith::SubIOp>(a, b) : Value();
}

/// Takes the magnitude of the float instead, which costs nothing.
void ScoreSplitter::moveMagnitude(arith::SIToFPOp cast) {
  bool isNegative = false;
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(cast);
  Value distance = matchAbsoluteDistance(cast.getIn(), isNegative);
  if (!distance)
    return;
  Value number = arith::SIToFPOp::create(builder, cast.getType(), distance);
  Value result = math::AbsFOp::create(builder, number);
  cast.replaceAllUsesWith(isNegative ? negate(result) : result);
  cast.erase();
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

ScoreTerms ScoreSplitter::keepWhole(Value value) {
  constexpr unsigned kByElement = kScore | kKey;
  if (getDependence(value) & kByElement)
    return {{}, value, {}};
  return {{}, {}, value};
}

/// All terms of `terms` times `factor`, if that is the same everywhere.
ScoreTerms ScoreSplitter::splitProduct(Value product, Value terms,
                                       Value factor) {
  if (!factor || getDependence(factor) != kNone)
    return keepWhole(product);
  ScoreTerms inner = split(terms);
  return {multiply(inner.factor, factor), multiply(inner.element, factor),
          multiply(inner.row, factor)};
}

/// Of a constant divisor of scores; null where it would lose more than a
/// rounding. What doesn't come from a score may be an integer, whose quotient
/// must stay exact.
Value ScoreSplitter::getReciprocal(arith::DivFOp op) {
  APFloat divisor(0.0f);
  if (!(getDependence(op.getLhs()) & kScore) ||
      !matchPattern(op.getRhs(), m_ConstantFloat(&divisor)))
    return {};
  APFloat reciprocal(1.0f);
  reciprocal.divide(divisor, APFloat::rmNearestTiesToEven);
  if (!reciprocal.isNormal())
    return {};
  return arith::ConstantOp::create(
      builder, builder.getF32FloatAttr(reciprocal.convertToFloat()));
}

/// cap * tanh(x), as a term of the score: an error of 1e-7 relative to the cap
/// is enough for its exponential, and needs less than one relative to tanh.
/// Null if `op` isn't that.
Value ScoreSplitter::approximateCap(arith::MulFOp op) {
  constexpr float kMaxCap = 256.0f;
  bool isLeft = op.getLhs().getDefiningOp<math::TanhOp>() != nullptr;
  auto tanh =
      (isLeft ? op.getLhs() : op.getRhs()).getDefiningOp<math::TanhOp>();
  APFloat cap(0.0f);
  if (!tanh || tanh->getBlock() != &body ||
      !matchPattern(isLeft ? op.getRhs() : op.getLhs(),
                    m_ConstantFloat(&cap)) ||
      !(std::fabs(cap.convertToFloat()) <= kMaxCap))
    return {};
  auto fast = math::TanhOp::create(builder, tanh.getOperand(),
                                   arith::FastMathFlags::afn);
  return arith::MulFOp::create(builder, fast,
                               isLeft ? op.getRhs() : op.getLhs());
}

ScoreTerms ScoreSplitter::split(Value value) {
  if (value == body.getArgument(0))
    return {one(), {}, {}};
  Operation *def = value.getDefiningOp();
  if (!def || def->getBlock() != &body || !value.getType().isF32() ||
      !(getDependence(value) & (kScore | kKey)))
    return keepWhole(value);
  return llvm::TypeSwitch<Operation *, ScoreTerms>(def)
      .Case([&](arith::AddFOp op) {
        ScoreTerms a = split(op.getLhs()), b = split(op.getRhs());
        return ScoreTerms{combine<arith::AddFOp>(a.factor, b.factor),
                          combine<arith::AddFOp>(a.element, b.element),
                          combine<arith::AddFOp>(a.row, b.row)};
      })
      .Case([&](arith::SubFOp op) {
        ScoreTerms a = split(op.getLhs()), b = split(op.getRhs());
        auto subtract = [&](Value x, Value y) {
          return x ? combine<arith::SubFOp>(x, y) : negate(y);
        };
        return ScoreTerms{subtract(a.factor, b.factor),
                          subtract(a.element, b.element),
                          subtract(a.row, b.row)};
      })
      .Case([&](arith::SIToFPOp op) { return splitDistance(op); })
      .Case([&](arith::NegFOp op) {
        ScoreTerms inner = split(op.getOperand());
        return ScoreTerms{negate(inner.factor), negate(inner.element),
                          negate(inner.row)};
      })
      .Case([&](arith::MulFOp op) {
        if (Value capped = approximateCap(op))
          return keepWhole(capped);
        bool isLeft = getDependence(op.getLhs()) == kNone;
        return splitProduct(op, isLeft ? op.getRhs() : op.getLhs(),
                            isLeft ? op.getLhs() : op.getRhs());
      })
      .Case([&](arith::DivFOp op) {
        return splitProduct(op, op.getLhs(), getReciprocal(op));
      })
      .Default([&](Operation *) { return keepWhole(value); });
}

//===----------------------------------------------------------------------===//
// Ramps
//===----------------------------------------------------------------------===//

std::optional<ScoreSplitter::IndexRamp>
ScoreSplitter::matchIndexRamp(Value value) {
  if (value == body.getArgument(2))
    return IndexRamp{};
  Operation *def = value.getDefiningOp();
  if (!isa_and_present<arith::AddIOp, arith::SubIOp>(def))
    return std::nullopt;
  Value a = def->getOperand(0), b = def->getOperand(1);
  const bool isFirst = getDependence(b) == kNone;
  if (!isFirst && getDependence(a) != kNone)
    return std::nullopt;
  std::optional<IndexRamp> ramp = matchIndexRamp(isFirst ? a : b);
  if (!ramp)
    return std::nullopt;
  Value other = isFirst ? b : a;
  const bool isDifference = isa<arith::SubIOp>(def);
  if (isDifference && !isFirst)
    ramp->isNegative = !ramp->isNegative;
  // In the brackets of -(key + offset) what is added is subtracted.
  const bool isSubtracted = (isDifference && isFirst) != ramp->isNegative;
  if (!ramp->offset)
    ramp->offset =
        arith::ConstantOp::create(builder, builder.getI32IntegerAttr(0));
  ramp->offset = isSubtracted
                     ? builder.createOrFold<arith::SubIOp>(ramp->offset, other)
                     : builder.createOrFold<arith::AddIOp>(ramp->offset, other);
  return ramp;
}

std::optional<KeyRamp> ScoreSplitter::matchRamp(Value value) {
  Operation *def = value.getDefiningOp();
  if (!def || def->getBlock() != &body)
    return std::nullopt;
  if (auto cast = dyn_cast<arith::SIToFPOp>(def)) {
    if (!cast.getType().isF32() || !cast.getIn().getType().isInteger(32))
      return std::nullopt;
    std::optional<IndexRamp> index = matchIndexRamp(cast.getIn());
    if (!index)
      return std::nullopt;
    if (!index->offset)
      index->offset =
          arith::ConstantOp::create(builder, builder.getI32IntegerAttr(0));
    return KeyRamp{constant(index->isNegative ? -1.0f : 1.0f), index->offset};
  }
  std::optional<KeyRamp> ramp;
  if (auto negation = dyn_cast<arith::NegFOp>(def)) {
    ramp = matchRamp(negation.getOperand());
    if (ramp)
      ramp->slope = negate(ramp->slope);
  } else if (auto product = dyn_cast<arith::MulFOp>(def)) {
    const bool isFirst = getDependence(product.getRhs()) == kNone;
    Value factor = isFirst ? product.getRhs() : product.getLhs();
    if (getDependence(factor) != kNone)
      return std::nullopt;
    ramp = matchRamp(isFirst ? product.getLhs() : product.getRhs());
    if (ramp)
      ramp->slope = multiply(ramp->slope, factor);
  }
  return ramp;
}

std::optional<KeyRamp> mlir::attn::matchKeyRamp(Block &body, Value element) {
  return ScoreSplitter(body, Value()).matchRamp(element);
}

ScoreTerms mlir::attn::splitScore(Block &body, Value qStart) {
  return ScoreSplitter(body, qStart).run();
}
