//===- MaskCondition.cpp - A mask as intervals of keys --------------------===//

#include "MaskCondition.h"
#include "attn/Analysis/IntegerRanges.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace mlir::tile;

/// More intervals take longer than a comparison of each element, which takes
/// registers for a number of each column.
static constexpr size_t kMaxIntervals = 8;

namespace {
/// Keys from `first` to `last`, i32 of rows, at least -kPositionBound; null
/// where there is no bound.
struct Interval {
  Value first, last;
};

/// The keys that are in one of some intervals.
using Intervals = SmallVector<Interval, 1>;

/// A sum of the rule that depends on the key by one term: that term, or less
/// it, and terms that don't, which are subtracted or added.
struct KeySum {
  Value term;
  bool isNegative = false;
  SmallVector<std::pair<Value, bool>> others;
  /// What the sum lies between.
  int64_t min, max;

  void negate() {
    isNegative = !isNegative;
    for (auto &[value, isSubtracted] : others)
      isSubtracted = !isSubtracted;
  }
};

class MaskCondition {
public:
  MaskCondition(OpBuilder &listener, MaskOp op, RegionInliner &inliner)
      : op(op), inliner(inliner), builder(op.getLoc(), listener),
        type(cast<RankedTensorType>(op.getSource().getType())),
        rowType(
            RankedTensorType::get(type.getDimSize(0), builder.getI32Type())),
        ranges(op.getBody().front()) {}

  Value emit() {
    SmallVector<Value> others;
    Intervals keys =
        read(op.getBody().front().getTerminator()->getOperand(0), others);
    Value visible = emitIntervals(keys);
    for (Value other : others) {
      Value condition = inliner.lift(other, Extent::Elements);
      visible = visible ? create<arith::AndIOp>(visible, condition) : condition;
    }
    return visible;
  }

private:
  // Reading.
  struct Conjunction {
    Interval keys;
    /// Of remainders of the key by a constant.
    llvm::MapVector<Value, Interval> remainders;
    /// Of disjunctions.
    SmallVector<Intervals> unions;
    SmallVector<Value> others;
  };
  Intervals read(Value condition, SmallVectorImpl<Value> &others);
  void add(Value condition, Conjunction &all);
  bool addUnion(arith::OrIOp either, Conjunction &all);
  bool addComparison(arith::CmpIOp compare, Conjunction &all);
  bool addBound(KeySum sum, arith::CmpIPredicate predicate, Value bound,
                Conjunction &all);

  // The rule's values.
  bool isInBody(Value value) {
    return value.getParentBlock() == &op.getBody().front();
  }
  Value key() { return op.getBody().getArgument(1); }
  bool dependsOnKey(Value value);
  KeySum getSum(Value value);
  std::optional<int64_t> getDivisor(Value quotient);

  // Emission.
  template <typename OpT>
  Value create(Value a, Value b) {
    return OpT::create(builder, a, b);
  }
  Value scalar(int64_t value) {
    return arith::ConstantIntOp::create(builder, value, /*width=*/32);
  }
  Value row(Value scalar) {
    return tensor::SplatOp::create(builder, rowType, scalar);
  }
  Value row(int64_t value) {
    return arith::ConstantOp::create(
        builder, DenseElementsAttr::get(rowType, static_cast<int32_t>(value)));
  }
  Value clamp(Value rows, int64_t least, int64_t most) {
    return create<arith::MinSIOp>(create<arith::MaxSIOp>(rows, row(least)),
                                  row(most));
  }
  using Terms = ArrayRef<std::pair<Value, bool>>;
  Value sumRows(Terms terms, int64_t offset);
  Value sumRowsIn64Bits(Terms terms, int64_t offset);
  Interval intersect(Interval a, Interval b);
  Intervals intersect(ArrayRef<Interval> a, ArrayRef<Interval> b);
  Intervals getPeriods(Value remainder, Interval bounds);
  Value getColumn(Value bound);
  Value emitIntervals(ArrayRef<Interval> keys);
  Value compareColumns(arith::CmpIPredicate predicate, Value bound);

  MaskOp op;
  RegionInliner &inliner;
  ImplicitLocOpBuilder builder;
  RankedTensorType type, rowType;
  IntegerRanges ranges;
  DenseMap<Value, bool> dependences;
};
} // namespace

//===----------------------------------------------------------------------===//
// The rule's values
//===----------------------------------------------------------------------===//

bool MaskCondition::dependsOnKey(Value value) {
  if (value == key())
    return true;
  Operation *def = value.getDefiningOp();
  if (!def || !isInBody(value))
    return false;
  if (auto it = dependences.find(value); it != dependences.end())
    return it->second;
  bool result = llvm::any_of(
      def->getOperands(), [&](Value operand) { return dependsOnKey(operand); });
  dependences[value] = result;
  return result;
}

/// `value`, an i32 that depends on the key. A sum that might wrap is one term.
KeySum MaskCondition::getSum(Value value) {
  auto getBounds = [&](Value other) {
    ConstantIntRanges range = ranges.get(other);
    return std::pair(range.smin().getSExtValue(), range.smax().getSExtValue());
  };
  KeySum sum;
  sum.term = value;
  std::tie(sum.min, sum.max) = getBounds(value);
  Operation *def = value.getDefiningOp();
  if (!isa_and_present<arith::AddIOp, arith::SubIOp>(def))
    return sum;
  const bool isDifference = isa<arith::SubIOp>(def);
  Value a = def->getOperand(0), b = def->getOperand(1);
  const bool isFirst = dependsOnKey(a);
  Value other = isFirst ? b : a;
  if (dependsOnKey(other))
    return sum;
  KeySum inner = getSum(isFirst ? a : b);
  if (isDifference && !isFirst) {
    inner.negate();
    std::tie(inner.min, inner.max) = std::pair(-inner.max, -inner.min);
  }
  auto [min, max] = getBounds(other);
  const bool isSubtracted = isDifference && isFirst;
  inner.others.push_back({other, isSubtracted});
  inner.min += isSubtracted ? -max : min;
  inner.max += isSubtracted ? -min : max;
  return llvm::isInt<32>(inner.min) && llvm::isInt<32>(inner.max) ? inner : sum;
}

/// The constant that the key, which isn't negative, is divided by.
std::optional<int64_t> MaskCondition::getDivisor(Value value) {
  Operation *def = value.getDefiningOp();
  APInt divisor;
  if (!isa_and_present<arith::DivSIOp, arith::DivUIOp, arith::FloorDivSIOp,
                       arith::RemSIOp, arith::RemUIOp>(def) ||
      def->getOperand(0) != key() ||
      !matchPattern(def->getOperand(1), m_ConstantInt(&divisor)) ||
      !divisor.isStrictlyPositive() || divisor.sge(kPositionBound))
    return std::nullopt;
  return divisor.getSExtValue();
}

static bool isRemainder(Value value) {
  return isa_and_present<arith::RemSIOp, arith::RemUIOp>(value.getDefiningOp());
}

/// How many periods a tile of `columns` keys touches at most.
static int64_t countPeriods(int64_t columns, int64_t period) {
  return llvm::divideCeil(columns - 1, period) + 1;
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

/// The keys that `condition` allows, as far as intervals say; adds what they
/// don't to `others`.
Intervals MaskCondition::read(Value condition, SmallVectorImpl<Value> &others) {
  Conjunction all;
  add(condition, all);
  Intervals keys = {all.keys};
  for (ArrayRef<Interval> either : all.unions)
    keys = intersect(keys, either);
  for (auto &[remainder, bounds] : all.remainders)
    keys = intersect(keys, getPeriods(remainder, bounds));
  llvm::append_range(others, all.others);
  return keys;
}

void MaskCondition::add(Value condition, Conjunction &all) {
  Operation *def = isInBody(condition) ? condition.getDefiningOp() : nullptr;
  if (auto both = dyn_cast_or_null<arith::AndIOp>(def)) {
    add(both.getLhs(), all);
    add(both.getRhs(), all);
    return;
  }
  auto compare = dyn_cast_or_null<arith::CmpIOp>(def);
  auto either = dyn_cast_or_null<arith::OrIOp>(def);
  bool isAdded = (compare && addComparison(compare, all)) ||
                 (either && addUnion(either, all));
  if (!isAdded)
    all.others.push_back(condition);
}

bool MaskCondition::addUnion(arith::OrIOp either, Conjunction &all) {
  SmallVector<Value> others;
  Intervals a = read(either.getLhs(), others);
  Intervals b = read(either.getRhs(), others);
  if (!others.empty())
    return false;
  // Two upper (lower) bounds are one.
  if (a.size() == 1 && b.size() == 1) {
    if (!a[0].first && !b[0].first && a[0].last && b[0].last) {
      all.unions.push_back(
          {{Value(), create<arith::MaxSIOp>(a[0].last, b[0].last)}});
      return true;
    }
    if (!a[0].last && !b[0].last && a[0].first && b[0].first) {
      all.unions.push_back(
          {{create<arith::MinSIOp>(a[0].first, b[0].first), Value()}});
      return true;
    }
  }
  llvm::append_range(a, b);
  size_t count = a.size();
  for (ArrayRef<Interval> other : all.unions)
    count *= other.size();
  if (count > kMaxIntervals)
    return false;
  all.unions.push_back(a);
  return true;
}

static arith::CmpIPredicate swapOperands(arith::CmpIPredicate predicate) {
  switch (predicate) {
  case arith::CmpIPredicate::slt:
    return arith::CmpIPredicate::sgt;
  case arith::CmpIPredicate::sle:
    return arith::CmpIPredicate::sge;
  case arith::CmpIPredicate::sgt:
    return arith::CmpIPredicate::slt;
  case arith::CmpIPredicate::sge:
    return arith::CmpIPredicate::sle;
  case arith::CmpIPredicate::ult:
    return arith::CmpIPredicate::ugt;
  case arith::CmpIPredicate::ule:
    return arith::CmpIPredicate::uge;
  case arith::CmpIPredicate::ugt:
    return arith::CmpIPredicate::ult;
  case arith::CmpIPredicate::uge:
    return arith::CmpIPredicate::ule;
  default:
    return predicate;
  }
}

bool MaskCondition::addComparison(arith::CmpIOp compare, Conjunction &all) {
  Value value = compare.getLhs(), bound = compare.getRhs();
  arith::CmpIPredicate predicate = compare.getPredicate();
  if (!value.getType().isInteger(32))
    return false;
  if (!dependsOnKey(value)) {
    std::swap(value, bound);
    predicate = swapOperands(predicate);
  }
  if (!dependsOnKey(value) || dependsOnKey(bound))
    return false;
  auto addBetween = [&](Value least, arith::CmpIPredicate upper) {
    return addBound(getSum(value), arith::CmpIPredicate::sge, least, all) &&
           addBound(getSum(value), upper, bound, all);
  };
  const bool isPositive = ranges.get(bound).smin().isNonNegative();
  switch (predicate) {
  case arith::CmpIPredicate::slt:
  case arith::CmpIPredicate::sle:
    if (auto magnitude = value.getDefiningOp<math::AbsIOp>()) {
      // -bound <= x <= bound
      KeySum sum = getSum(magnitude.getOperand()), opposite = sum;
      opposite.negate();
      return addBound(sum, predicate, bound, all) &&
             addBound(opposite, predicate, bound, all);
    }
    return addBound(getSum(value), predicate, bound, all);
  case arith::CmpIPredicate::sgt:
  case arith::CmpIPredicate::sge:
    return addBound(getSum(value), predicate, bound, all);
  case arith::CmpIPredicate::eq:
    return addBetween(bound, arith::CmpIPredicate::sle);
  case arith::CmpIPredicate::ult:
    return isPositive && addBetween(Value(), arith::CmpIPredicate::slt);
  case arith::CmpIPredicate::ule:
    return isPositive && addBetween(Value(), arith::CmpIPredicate::sle);
  default:
    return false;
  }
}

/// `sum` compared with `bound`, or 0.
bool MaskCondition::addBound(KeySum sum, arith::CmpIPredicate predicate,
                             Value bound, Conjunction &all) {
  std::optional<int64_t> divisor = getDivisor(sum.term);
  if (sum.term != key() && !divisor)
    return false;
  // What the term is compared with is the bound less the others.
  if (sum.isNegative)
    predicate = swapOperands(predicate);
  else
    for (auto &[value, isSubtracted] : sum.others)
      isSubtracted = !isSubtracted;
  if (bound)
    sum.others.insert(sum.others.begin(), {bound, sum.isNegative});
  const bool isUpper = predicate == arith::CmpIPredicate::sle ||
                       predicate == arith::CmpIPredicate::slt;
  int64_t offset = 0;
  if (predicate == arith::CmpIPredicate::slt)
    offset = -1;
  else if (predicate == arith::CmpIPredicate::sgt)
    offset = 1;

  if (divisor && isRemainder(sum.term)) {
    const bool isKnown = all.remainders.contains(sum.term);
    const int64_t periods = countPeriods(type.getDimSize(1), *divisor);
    if (periods > static_cast<int64_t>(kMaxIntervals) ||
        (!isKnown && !all.remainders.empty()))
      return false;
  }
  Value rows = sumRows(sum.others, offset);
  Interval interval;
  (isUpper ? interval.last : interval.first) = rows;
  if (divisor && isRemainder(sum.term)) {
    Interval &known = all.remainders[sum.term];
    known = intersect(known, interval);
    return true;
  }
  if (divisor) {
    // The first key of a quotient, or the last one.
    Value quotient = clamp(rows, isUpper ? -1 : 0,
                           kPositionBound / *divisor + (isUpper ? 0 : 1));
    Value edge = create<arith::MulIOp>(quotient, row(*divisor));
    if (isUpper)
      edge = create<arith::AddIOp>(edge, row(*divisor - 1));
    (isUpper ? interval.last : interval.first) = edge;
  }
  all.keys = intersect(all.keys, interval);
  return true;
}

//===----------------------------------------------------------------------===//
// Emission
//===----------------------------------------------------------------------===//

/// The sum of terms that don't depend on the key and an offset of at most 1,
/// for each row. What lies beyond the keys on either side may be next to them.
Value MaskCondition::sumRows(Terms terms, int64_t offset) {
  int64_t min = offset, max = offset;
  for (auto [value, isSubtracted] : terms) {
    ConstantIntRanges range = ranges.get(value);
    int64_t least = range.smin().getSExtValue();
    int64_t most = range.smax().getSExtValue();
    min += isSubtracted ? -most : least;
    max += isSubtracted ? -least : most;
  }
  const bool isOne = terms.size() == 1 && !terms.front().second;
  const bool fits = llvm::isInt<32>(min) && llvm::isInt<32>(max);
  if (!isOne && !fits)
    return sumRowsIn64Bits(terms, offset);
  Value sum;
  for (auto [value, isSubtracted] : terms) {
    Value rows = inliner.lift(value, Extent::Rows);
    if (isSubtracted)
      sum = create<arith::SubIOp>(sum ? sum : row(0), rows);
    else
      sum = sum ? create<arith::AddIOp>(sum, rows) : rows;
  }
  if (!sum)
    return row(offset);
  // One value may be anything.
  if (!fits && offset > 0)
    sum = create<arith::MinSIOp>(sum, row(kPositionBound));
  if (min < -kPositionBound)
    sum = create<arith::MaxSIOp>(sum, row(-1 - std::min<int64_t>(offset, 0)));
  return offset == 0 ? sum : create<arith::AddIOp>(sum, row(offset));
}

Value MaskCondition::sumRowsIn64Bits(Terms terms, int64_t offset) {
  auto wideType = rowType.clone(builder.getI64Type());
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(builder,
                                     DenseElementsAttr::get(wideType, value));
  };
  Value sum = constant(offset);
  for (auto [value, isSubtracted] : terms) {
    Value wide = arith::ExtSIOp::create(builder, wideType,
                                        inliner.lift(value, Extent::Rows));
    sum = isSubtracted ? create<arith::SubIOp>(sum, wide)
                       : create<arith::AddIOp>(sum, wide);
  }
  sum = create<arith::MaxSIOp>(sum, constant(-1));
  sum = create<arith::MinSIOp>(sum, constant(kPositionBound));
  return arith::TruncIOp::create(builder, rowType, sum);
}

Interval MaskCondition::intersect(Interval a, Interval b) {
  auto combine = [&](auto tag, Value x, Value y) -> Value {
    return x && y ? create<decltype(tag)>(x, y) : x ? x : y;
  };
  return {combine(arith::MaxSIOp(), a.first, b.first),
          combine(arith::MinSIOp(), a.last, b.last)};
}

Intervals MaskCondition::intersect(ArrayRef<Interval> a, ArrayRef<Interval> b) {
  Intervals result;
  for (Interval x : a)
    for (Interval y : b)
      result.push_back(intersect(x, y));
  return result;
}

/// The keys whose remainder is within `bounds`, in the periods that the tile
/// touches.
Intervals MaskCondition::getPeriods(Value remainder, Interval bounds) {
  const int64_t period = *getDivisor(remainder);
  Value start = create<arith::MulIOp>(
      create<arith::DivUIOp>(op.getKvStart(), scalar(period)), scalar(period));
  Intervals result;
  for (int64_t i = 0; i < countPeriods(type.getDimSize(1), period); ++i) {
    Value origin = row(create<arith::AddIOp>(start, scalar(i * period)));
    Value first = bounds.first ? clamp(bounds.first, 0, period) : row(0);
    Value last =
        bounds.last ? clamp(bounds.last, -1, period - 1) : row(period - 1);
    result.push_back({create<arith::AddIOp>(origin, first),
                      create<arith::AddIOp>(origin, last)});
  }
  return result;
}

/// The column of key `bound`, for each row. The difference can't overflow: a
/// bound is at least what is less than any key by itself.
Value MaskCondition::getColumn(Value bound) {
  return create<arith::SubIOp>(bound, row(op.getKvStart()));
}

/// Whether a key is in one of the intervals; null if none has a bound.
Value MaskCondition::emitIntervals(ArrayRef<Interval> keys) {
  Value visible;
  for (Interval interval : keys) {
    Value inside;
    if (interval.last)
      inside =
          compareColumns(arith::CmpIPredicate::sle, getColumn(interval.last));
    if (interval.first) {
      Value isBehind =
          compareColumns(arith::CmpIPredicate::sge, getColumn(interval.first));
      inside = inside ? create<arith::AndIOp>(inside, isBehind) : isBehind;
    }
    if (!inside)
      return {};
    visible = visible ? create<arith::OrIOp>(visible, inside) : inside;
  }
  return visible;
}

Value MaskCondition::compareColumns(arith::CmpIPredicate predicate,
                                    Value bound) {
  Type i32 = builder.getI32Type();
  auto tileType =
      RankedTensorType::get(type.getShape(), i32, type.getEncoding());
  auto columnType = RankedTensorType::get(type.getDimSize(1), i32);
  Value columns = IotaOp::create(builder, columnType);
  columns = BroadcastOp::create(builder, tileType, columns, /*dim=*/1);
  bound = BroadcastOp::create(builder, tileType, bound, /*dim=*/0);
  return arith::CmpIOp::create(builder, predicate, columns, bound);
}

Value tile::emitMaskCondition(OpBuilder &builder, MaskOp op,
                              RegionInliner &inliner) {
  return MaskCondition(builder, op, inliner).emit();
}
