//===- MaskAnalysis.cpp - Which keys a mask hides from a tile -------------===//

#include "attn/Analysis/MaskAnalysis.h"
#include "attn/Analysis/IntegerRanges.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::tile;

//===----------------------------------------------------------------------===//
// Linear forms
//===----------------------------------------------------------------------===//

namespace {
/// Keeps bounds of a form far from overflowing 64 bits.
constexpr int64_t kMaxCoefficient = int64_t(1) << 20;
constexpr int64_t kMaxConstant = int64_t(1) << 40;

/// query * q_idx + key * kv_idx + sum of coefficient * scalar + constant.
struct LinearForm {
  int64_t query = 0, key = 0, constant = 0;
  llvm::SmallMapVector<Value, int64_t, 4> scalars;

  /// this + factor * other; none if a coefficient gets too large.
  std::optional<LinearForm> plus(const LinearForm &other,
                                 int64_t factor) const {
    if (std::abs(factor) > kMaxCoefficient)
      return std::nullopt;
    LinearForm sum = *this;
    sum.query += factor * other.query;
    sum.key += factor * other.key;
    sum.constant += factor * other.constant;
    bool small = std::abs(sum.query) <= kMaxCoefficient &&
                 std::abs(sum.key) <= kMaxCoefficient &&
                 std::abs(sum.constant) <= kMaxConstant;
    for (auto [scalar, coefficient] : other.scalars) {
      int64_t &entry = sum.scalars[scalar];
      entry += factor * coefficient;
      small &= std::abs(entry) <= kMaxCoefficient;
    }
    sum.scalars.remove_if([](auto &entry) { return entry.second == 0; });
    return small ? std::optional(sum) : std::nullopt;
  }

  LinearForm negated() const { return *LinearForm().plus(*this, -1); }
};

/// Inclusive bounds.
struct Bounds {
  int64_t min, max;

  void add(int64_t coefficient, Bounds value) {
    min += coefficient * (coefficient > 0 ? value.min : value.max);
    max += coefficient * (coefficient > 0 ? value.max : value.min);
  }
};

constexpr Bounds kPositions = {0, kPositionBound - 1};

//===----------------------------------------------------------------------===//
// Sets of keys
//===----------------------------------------------------------------------===//

/// Arithmetic on intervals within `keys`. Its ends are recognised, so that an
/// unbounded side costs nothing and stays the same value.
class IntervalBuilder {
public:
  IntervalBuilder(ImplicitLocOpBuilder &builder, KeyInterval keys)
      : builder(builder), keys(keys) {}

  KeyInterval all() const { return keys; }
  KeyInterval none() const { return {keys.begin, keys.begin}; }

  Value max(Value a, Value b) {
    if (a == keys.begin || b == keys.end)
      return b;
    if (b == keys.begin || a == keys.end)
      return a;
    return builder.createOrFold<arith::MaxSIOp>(a, b);
  }
  Value min(Value a, Value b) {
    if (a == keys.end || b == keys.begin)
      return b;
    if (b == keys.end || a == keys.begin)
      return a;
    return builder.createOrFold<arith::MinSIOp>(a, b);
  }
  Value select(Value condition, Value a, Value b) {
    return builder.createOrFold<arith::SelectOp>(condition, a, b);
  }
  KeyInterval select(Value condition, KeyInterval a, KeyInterval b) {
    return {select(condition, a.begin, b.begin),
            select(condition, a.end, b.end)};
  }
  Value compare(arith::CmpIPredicate predicate, Value a, Value b) {
    return builder.createOrFold<arith::CmpIOp>(predicate, a, b);
  }

  KeyInterval intersect(KeyInterval a, KeyInterval b) {
    return {max(a.begin, b.begin), min(a.end, b.end)};
  }

  /// Whether both reach to the same end of the keys.
  bool shareEnd(KeyInterval a, KeyInterval b) const {
    return (a.begin == keys.begin && b.begin == keys.begin) ||
           (a.end == keys.end && b.end == keys.end);
  }

  /// The smallest interval that holds both.
  KeyInterval hull(KeyInterval a, KeyInterval b) {
    KeyInterval both = {min(a.begin, b.begin), max(a.end, b.end)};
    // With a common end, an empty interval does not widen the other.
    if (a.begin == b.begin || a.end == b.end)
      return both;
    return select(isEmpty(a), b, select(isEmpty(b), a, both));
  }

  /// The union where it is an interval, else the longer of the two.
  KeyInterval uniteOrLonger(KeyInterval a, KeyInterval b) {
    if (a.begin == b.begin || a.end == b.end)
      return hull(a, b);
    Value touch = compare(arith::CmpIPredicate::sle, max(a.begin, b.begin),
                          min(a.end, b.end));
    Value aIsLonger = compare(arith::CmpIPredicate::sge, length(a), length(b));
    return select(touch, {min(a.begin, b.begin), max(a.end, b.end)},
                  select(aIsLonger, a, b));
  }

private:
  Value length(KeyInterval a) {
    return builder.createOrFold<arith::SubIOp>(a.end, a.begin);
  }
  Value isEmpty(KeyInterval a) {
    return compare(arith::CmpIPredicate::sge, a.begin, a.end);
  }

  ImplicitLocOpBuilder &builder;
  KeyInterval keys;
};

/// Of the intersection of two sets, and of their union if it is an interval.
/// What one row sees of both is then given by the first or last of some ends,
/// which moves over the rows as they do.
static Precision combinePrecisions(const KeySets &a, const KeySets &b) {
  auto [less, more] = std::minmax(a.precision, b.precision);
  bool isCombinable =
      less == Precision::SameForRows || more <= Precision::Stepwise;
  return isCombinable ? more : Precision::Sound;
}

//===----------------------------------------------------------------------===//
// Analysis
//===----------------------------------------------------------------------===//

class MaskAnalyzer {
public:
  MaskAnalyzer(ImplicitLocOpBuilder &builder, KVLoopOp loop, MaskOp mask,
               KeyInterval keys, std::optional<RowWindow> rows,
               SmallVectorImpl<Operation *> &opaque)
      : builder(builder), intervals(builder, keys), mask(mask), loop(loop),
        keys(keys), rows(rows), opaque(opaque), ranges(mask.getBody().front()) {
  }

  KeySets run() {
    if (!coversKeyTile())
      return unknown(mask);
    firstRow = mask.getQStart();
    numRows = cast<ShapedType>(mask.getSource().getType()).getDimSize(0);
    if (rows) {
      firstRow = builder.createOrFold<arith::AddIOp>(firstRow, rows->offset);
      numRows = rows->count;
    }
    // Both in keys, or both in positions of a list.
    if (mask.getBounds() && bool(mask.getTiles()) == bool(loop.getTiles()))
      return readBounds();
    if (loop.getTiles())
      return unknown(mask);
    interleave = getInterleave();
    setQueries();
    return visit(mask.getBody().front().getTerminator()->getOperand(0),
                 /*negate=*/false);
  }

private:
  //===--------------------------------------------------------------------===//
  // Bounds that an earlier kernel computed
  //===--------------------------------------------------------------------===//

  KeySets readBounds() {
    int64_t rowsInGranule = *mask.getBoundsRows();
    int64_t rowsInTile = cast<ShapedType>(mask.getType()).getDimSize(0);
    Value first = builder.createOrFold<arith::MulIOp>(
        mask.getTileNumber(builder), i32Constant(rowsInTile / rowsInGranule));
    if (rows)
      first = builder.createOrFold<arith::AddIOp>(
          first, builder.createOrFold<arith::DivUIOp>(
                     rows->offset, i32Constant(rowsInGranule)));
    KeySets sets = readGranule(first);
    for (int64_t i = 1; i < numRows / rowsInGranule; ++i) {
      KeySets next = readGranule(
          builder.createOrFold<arith::AddIOp>(first, i32Constant(i)));
      sets = {intervals.hull(sets.visible, next.visible),
              intervals.intersect(sets.full, next.full)};
    }
    // Granules without rows see nothing, but hide nothing either.
    sets.full = intervals.intersect(sets.full, sets.visible);
    return sets;
  }

  KeySets readGranule(Value granule) {
    auto read = [&](MaskOp::BoundsField field) -> Value {
      Value indices[] = {mask.getBoundsIndices()[0], mask.getBoundsIndices()[1],
                         granule, i32Constant(field)};
      Value key = GatherOp::create(builder, builder.getI32Type(),
                                   mask.getBounds(), indices,
                                   /*in_bounds=*/ArrayRef<int64_t>{0, 1, 2, 3});
      // Positions are not negative.
      if (!matchPattern(keys.begin, m_Zero()))
        key = intervals.max(key, keys.begin);
      return intervals.min(key, keys.end);
    };
    return {{read(MaskOp::Begin), read(MaskOp::End)},
            {read(MaskOp::FullBegin), read(MaskOp::FullEnd)}};
  }

  //===--------------------------------------------------------------------===//
  // Conditions
  //===--------------------------------------------------------------------===//

  /// The mask's tile is the loop's key tile, at a query position that the loop
  /// doesn't change.
  bool coversKeyTile() {
    auto kvArg = dyn_cast<BlockArgument>(mask.getKvStart());
    auto type = cast<RankedTensorType>(mask.getSource().getType());
    return kvArg && kvArg.getArgNumber() == 0 &&
           kvArg.getOwner()->getParentOp() == loop &&
           type.getDimSize(1) == static_cast<int64_t>(loop.getStep()) &&
           isOutsideLoop(mask.getQStart());
  }

  /// With several heads' rows in turn, the mask reads a row's quotient by their
  /// number, which is the query, and the remainder: returns the number, else 1.
  int64_t getInterleave() {
    Value row = mask.getBody().getArgument(0);
    int64_t number = 1;
    for (Operation *user : row.getUsers()) {
      APInt divisor;
      if (!isa<arith::DivUIOp, arith::RemUIOp>(user) ||
          user->getOperand(0) != row ||
          !matchPattern(user->getOperand(1), m_ConstantInt(&divisor)) ||
          !divisor.isStrictlyPositive() ||
          (number != 1 && number != divisor.getSExtValue()))
        return 1;
      number = divisor.getSExtValue();
    }
    return number;
  }

  void setQueries() {
    firstQuery = getQueryOf(firstRow);
    if (interleave > 1 || loop.getRows())
      lastQuery = getQueryOf(getLastRow());
  }

  Value getQueryOf(Value row) {
    if (interleave == 1)
      return row;
    return builder.createOrFold<arith::DivUIOp>(row, i32Constant(interleave));
  }

  /// The last row that something behind the loop depends on: what others see
  /// doesn't matter. Where there is none, the first row.
  Value getLastRow() {
    Value last =
        builder.createOrFold<arith::AddIOp>(firstRow, i32Constant(numRows - 1));
    if (!loop.getRows())
      return last;
    Value end =
        builder.createOrFold<arith::AddIOp>(mask.getQStart(), loop.getRows());
    Value lastOfAll = builder.createOrFold<arith::SubIOp>(end, i32Constant(1));
    last = builder.createOrFold<arith::MinSIOp>(last, lastOfAll);
    // A tile has rows, a window may lie behind them.
    return rows ? builder.createOrFold<arith::MaxSIOp>(last, firstRow) : last;
  }

  bool isQuery(Value value) {
    Value row = mask.getBody().getArgument(0);
    if (interleave == 1)
      return value == row;
    auto quotient = value.getDefiningOp<arith::DivUIOp>();
    return quotient && quotient.getLhs() == row;
  }

  KeySets unknown(Operation *op) {
    if (op && !llvm::is_contained(opaque, op))
      opaque.push_back(op);
    return {intervals.all(), intervals.none()};
  }

  KeySets both(const KeySets &a, const KeySets &b) {
    return intersect(builder, a, b, keys);
  }
  KeySets either(const KeySets &a, const KeySets &b) {
    Precision precision = intervals.shareEnd(a.visible, b.visible) &&
                                  intervals.shareEnd(a.full, b.full)
                              ? combinePrecisions(a, b)
                              : Precision::Sound;
    return {intervals.hull(a.visible, b.visible),
            intervals.uniteOrLonger(a.full, b.full), precision};
  }
  /// `both`, or by De Morgan `either`, of two conditions under one negation.
  KeySets combine(bool conjunction, const KeySets &a, const KeySets &b) {
    return conjunction ? both(a, b) : either(a, b);
  }

  /// The same for every query and key.
  KeySets uniform(Value condition, bool negate) {
    KeyInterval whenTrue = intervals.all(), whenFalse = intervals.none();
    if (negate)
      std::swap(whenTrue, whenFalse);
    KeyInterval set = intervals.select(hoist(condition), whenTrue, whenFalse);
    return {set, set, Precision::SameForRows};
  }

  /// The sets of keys for which `condition` (or its negation) holds.
  KeySets visit(Value condition, bool negate) {
    Operation *op = condition.getDefiningOp();
    // Exclusive or and select double the work at each level.
    if (++numVisited > kMaxVisited)
      return unknown(mask);
    if (isUniform(condition))
      return uniform(condition, negate);
    // A value that a region of the loop received.
    if (!op)
      return unknown(mask);
    return llvm::TypeSwitch<Operation *, KeySets>(op)
        .Case([&](arith::AndIOp op) {
          KeySets a = visit(op.getLhs(), negate);
          KeySets b = visit(op.getRhs(), negate);
          return combine(!negate, a, b);
        })
        .Case([&](arith::OrIOp op) {
          KeySets a = visit(op.getLhs(), negate);
          KeySets b = visit(op.getRhs(), negate);
          return combine(negate, a, b);
        })
        .Case([&](arith::XOrIOp op) {
          return visitXOr(op.getLhs(), op.getRhs(), negate);
        })
        .Case([&](arith::SelectOp op) {
          return choose(
              op.getCondition(),
              [&] { return visit(op.getTrueValue(), negate); },
              [&] { return visit(op.getFalseValue(), negate); });
        })
        .Case([&](arith::CmpIOp op) { return visitCompare(op, negate); })
        .Default([&](Operation *op) { return unknown(op); });
  }

  /// (condition and a) or (not condition and b)
  KeySets choose(Value condition, function_ref<KeySets()> a,
                 function_ref<KeySets()> b) {
    KeySets isTrue = visit(condition, /*negate=*/false);
    KeySets whenTrue = both(isTrue, a());
    KeySets isFalse = visit(condition, /*negate=*/true);
    KeySets whenFalse = both(isFalse, b());
    KeySets chosen = either(whenTrue, whenFalse);
    // One of them is empty.
    if (isUniform(condition))
      chosen.precision = std::max(whenTrue.precision, whenFalse.precision);
    return chosen;
  }

  KeySets visitXOr(Value a, Value b, bool negate) {
    if (matchPattern(b, m_One()))
      return visit(a, !negate);
    return choose(
        a, [&] { return visit(b, !negate); }, [&] { return visit(b, negate); });
  }

  //===--------------------------------------------------------------------===//
  // Comparisons
  //===--------------------------------------------------------------------===//

  KeySets visitCompare(arith::CmpIOp op, bool negate) {
    using P = arith::CmpIPredicate;
    Value a = op.getLhs(), b = op.getRhs();
    if (a.getType().isInteger(1))
      return visitBooleanCompare(op, negate);
    compared = op;
    switch (op.getPredicate()) {
    case P::slt:
      return less(a, b, /*orEqual=*/false, negate);
    case P::sle:
      return less(a, b, /*orEqual=*/true, negate);
    case P::sgt:
      return less(b, a, /*orEqual=*/false, negate);
    case P::sge:
      return less(b, a, /*orEqual=*/true, negate);
    case P::eq:
      return equal(a, b, negate);
    case P::ne:
      return equal(a, b, !negate);
    case P::ult:
      return unsignedLess(a, b, /*orEqual=*/false, negate);
    case P::ule:
      return unsignedLess(a, b, /*orEqual=*/true, negate);
    case P::ugt:
      return unsignedLess(b, a, /*orEqual=*/false, negate);
    case P::uge:
      return unsignedLess(b, a, /*orEqual=*/true, negate);
    }
    llvm_unreachable("unknown predicate");
  }

  KeySets visitBooleanCompare(arith::CmpIOp op, bool negate) {
    switch (op.getPredicate()) {
    case arith::CmpIPredicate::ne:
      return visitXOr(op.getLhs(), op.getRhs(), negate);
    case arith::CmpIPredicate::eq:
      return visitXOr(op.getLhs(), op.getRhs(), !negate);
    default:
      return unknown(op);
    }
  }

  KeySets equal(Value a, Value b, bool negate) {
    KeySets atMost = less(a, b, /*orEqual=*/true, negate);
    KeySets atLeast = less(b, a, /*orEqual=*/true, negate);
    return combine(!negate, atMost, atLeast);
  }

  /// With b >= 0, a <u b is 0 <= a and a < b.
  KeySets unsignedLess(Value a, Value b, bool orEqual, bool negate) {
    std::optional<LinearForm> aForm = linearize(a), bForm = linearize(b);
    if (!aForm || !bForm || getBounds(*bForm).min < 0)
      return unknown(compared);
    KeySets inOrder = less(a, b, orEqual, negate);
    // 0 <= a is -a <= 0; its negation is a + 1 <= 0.
    LinearForm sign = negate ? *aForm : aForm->negated();
    sign.constant += negate;
    return combine(!negate, nonPositive(sign), inOrder);
  }

  /// a < b, or a <= b with `orEqual`.
  KeySets less(Value a, Value b, bool orEqual, bool negate) {
    if (negate)
      return less(b, a, !orEqual, /*negate=*/false);
    if (++numVisited > kMaxVisited)
      return unknown(compared);
    std::optional<LinearForm> aForm = linearize(a), bForm = linearize(b);
    if (aForm && bForm) {
      std::optional<LinearForm> difference = aForm->plus(*bForm, -1);
      if (!difference)
        return unknown(compared);
      difference->constant += !orEqual;
      return nonPositive(*difference);
    }
    return aForm ? lessPiecewise(b, a, /*isLeft=*/false, orEqual)
                 : lessPiecewise(a, b, /*isLeft=*/true, orEqual);
  }

  /// A comparison with one side, left or right, that is min, max, a magnitude
  /// or a select: min(x, y) < b if either is, a < min(x, y) if both are, and so
  /// on.
  KeySets lessPiecewise(Value side, Value other, bool isLeft, bool orEqual) {
    auto compareWith = [&](Value part) {
      return isLeft ? less(part, other, orEqual, /*negate=*/false)
                    : less(other, part, orEqual, /*negate=*/false);
    };
    Operation *op = side.getDefiningOp();
    // A value that a region of the loop received.
    if (!op)
      return unknown(compared);
    return llvm::TypeSwitch<Operation *, KeySets>(op)
        .Case<arith::MinSIOp, arith::MaxSIOp>([&](auto op) {
          KeySets x = compareWith(op.getLhs());
          KeySets y = compareWith(op.getRhs());
          bool isMax = isa<arith::MaxSIOp>(op);
          return combine(isLeft == isMax, x, y);
        })
        .Case([&](arith::SelectOp op) {
          return choose(
              op.getCondition(), [&] { return compareWith(op.getTrueValue()); },
              [&] { return compareWith(op.getFalseValue()); });
        })
        .Case([&](math::AbsIOp op) {
          return lessMagnitude(op, other, isLeft, orEqual);
        })
        .Default([&](Operation *op) { return unknown(op); });
  }

  /// |x| is max(x, -x).
  KeySets lessMagnitude(math::AbsIOp op, Value other, bool isLeft,
                        bool orEqual) {
    std::optional<LinearForm> form = linearize(op.getOperand());
    std::optional<LinearForm> otherForm = linearize(other);
    if (!form || !otherForm)
      return unknown(op);
    int64_t sideFactor = isLeft ? 1 : -1;
    std::optional<LinearForm> rest = LinearForm().plus(*otherForm, -sideFactor);
    std::optional<LinearForm> asIs = rest->plus(*form, sideFactor);
    std::optional<LinearForm> negated = rest->plus(*form, -sideFactor);
    if (!asIs || !negated)
      return unknown(op);
    asIs->constant += !orEqual;
    negated->constant += !orEqual;
    KeySets x = nonPositive(*asIs);
    KeySets y = nonPositive(*negated);
    return combine(isLeft, x, y);
  }

  //===--------------------------------------------------------------------===//
  // Linear forms
  //===--------------------------------------------------------------------===//

  bool isOutsideLoop(Value value) {
    return !loop->isAncestor(value.getParentRegion()->getParentOp());
  }

  /// True if the value is the same for every query and key and can be computed
  /// in front of the loop.
  bool isUniform(Value value) {
    if (isOutsideLoop(value))
      return true;
    if (auto it = uniformity.find(value); it != uniformity.end())
      return it->second;
    Operation *op = value.getDefiningOp();
    bool result =
        op && op->getParentRegion() == &mask.getBody() && isSpeculatable(op) &&
        llvm::all_of(op->getOperands(), [&](Value v) { return isUniform(v); });
    uniformity[value] = result;
    return result;
  }

  /// Clones what a uniform value needs to the front of the loop.
  Value hoist(Value value) {
    if (isOutsideLoop(value))
      return value;
    if (Value hoisted = hoistedValues.lookupOrNull(value))
      return hoisted;
    Operation *op = value.getDefiningOp();
    for (Value operand : op->getOperands())
      if (!hoistedValues.contains(operand))
        hoistedValues.map(operand, hoist(operand));
    builder.clone(*op, hoistedValues);
    return hoistedValues.lookup(value);
  }

  Bounds getBounds(Value scalar) {
    ConstantIntRanges range = ranges.get(scalar);
    return {range.smin().getSExtValue(), range.smax().getSExtValue()};
  }

  Bounds getBounds(const LinearForm &form) {
    Bounds bounds = {form.constant, form.constant};
    bounds.add(form.query, kPositions);
    bounds.add(form.key, kPositions);
    for (auto [scalar, coefficient] : form.scalars)
      bounds.add(coefficient, getBounds(scalar));
    return bounds;
  }

  /// True if the form's value, which is that of an integer of `type` unless the
  /// integer wraps, never does.
  bool fits(const LinearForm &form, Type type) {
    unsigned width = ConstantIntRanges::getStorageBitwidth(type);
    if (width >= 64)
      return true;
    Bounds bounds = getBounds(form);
    return llvm::isIntN(width, bounds.min) && llvm::isIntN(width, bounds.max);
  }

  /// `value` as a linear form; none if it is not one, or might wrap.
  std::optional<LinearForm> linearize(Value value) {
    if (auto it = forms.find(value); it != forms.end())
      return it->second;
    std::optional<LinearForm> form = computeForm(value);
    forms[value] = form;
    return form;
  }

  std::optional<LinearForm> computeForm(Value value) {
    LinearForm form;
    Block &body = mask.getBody().front();
    if (isQuery(value)) {
      form.query = 1;
      return form;
    }
    if (value == body.getArgument(1)) {
      form.key = 1;
      return form;
    }
    APInt constant;
    if (matchPattern(value, m_ConstantInt(&constant)) &&
        constant.isSignedIntN(40)) {
      form.constant = constant.getSExtValue();
      return form;
    }
    std::optional<LinearForm> sum = linearizeOp(value.getDefiningOp());
    if (sum && fits(*sum, value.getType()))
      return sum;
    return linearizeScalar(value);
  }

  std::optional<LinearForm> linearizeOp(Operation *op) {
    if (!op)
      return std::nullopt;
    return llvm::TypeSwitch<Operation *, std::optional<LinearForm>>(op)
        .Case([&](arith::AddIOp op) {
          return linearizeSum(op.getLhs(), op.getRhs(), 1);
        })
        .Case([&](arith::SubIOp op) {
          return linearizeSum(op.getLhs(), op.getRhs(), -1);
        })
        .Case([&](arith::MulIOp op) {
          return linearizeProduct(op.getLhs(), op.getRhs());
        })
        .Case<arith::ExtSIOp, arith::IndexCastOp>([&](auto op) {
          // A length is one scalar, not a cast of another.
          return isOutsideLoop(op) ? std::optional<LinearForm>()
                                   : linearize(op.getIn());
        })
        .Default(std::optional<LinearForm>());
  }

  std::optional<LinearForm> linearizeSum(Value a, Value b, int64_t factor) {
    std::optional<LinearForm> aForm = linearize(a), bForm = linearize(b);
    if (!aForm || !bForm)
      return std::nullopt;
    return aForm->plus(*bForm, factor);
  }

  std::optional<LinearForm> linearizeProduct(Value a, Value b) {
    APInt factor;
    if (!matchPattern(b, m_ConstantInt(&factor)))
      std::swap(a, b);
    if (!matchPattern(b, m_ConstantInt(&factor)) || !factor.isSignedIntN(32))
      return std::nullopt;
    std::optional<LinearForm> form = linearize(a);
    if (!form)
      return std::nullopt;
    return LinearForm().plus(*form, factor.getSExtValue());
  }

  /// A uniform value is a form of its own.
  std::optional<LinearForm> linearizeScalar(Value value) {
    if (!isUniform(value))
      return std::nullopt;
    // 64-bit scalars without a known range would overflow the bounds.
    Bounds bounds = getBounds(value);
    if (!llvm::isIntN(40, bounds.min) || !llvm::isIntN(40, bounds.max))
      return std::nullopt;
    LinearForm form;
    form.scalars[value] = 1;
    return form;
  }

  //===--------------------------------------------------------------------===//
  // From a linear inequality to keys
  //===--------------------------------------------------------------------===//

  Value i32Constant(int64_t value) {
    return arith::ConstantOp::create(builder, builder.getI32IntegerAttr(value));
  }

  Value i64Constant(int64_t value) {
    return arith::ConstantOp::create(builder, builder.getI64IntegerAttr(value));
  }

  Value toI64(Value value) {
    Type i64 = builder.getI64Type();
    if (value.getType().isIndex())
      return builder.createOrFold<arith::IndexCastOp>(i64, value);
    if (value.getType() == i64)
      return value;
    return builder.createOrFold<arith::ExtSIOp>(i64, value);
  }

  /// The largest or smallest value of a form without key over the queries, in
  /// 64 bits, where it can't overflow.
  Value emitExtreme(const LinearForm &form, bool largest) {
    bool fromLastRow = (form.query > 0) == largest;
    int64_t constant = form.constant;
    if (fromLastRow && !lastQuery)
      constant += form.query * (numRows - 1);
    Value sum = i64Constant(constant);
    sum = emitTerm(sum, fromLastRow && lastQuery ? lastQuery : firstQuery,
                   form.query);
    for (auto [scalar, coefficient] : form.scalars)
      sum = emitTerm(sum, hoist(scalar), coefficient);
    return sum;
  }

  /// sum + coefficient * value
  Value emitTerm(Value sum, Value value, int64_t coefficient) {
    if (coefficient == 0)
      return sum;
    Value term = toI64(value);
    if (std::abs(coefficient) != 1)
      term = builder.createOrFold<arith::MulIOp>(
          term, i64Constant(std::abs(coefficient)));
    if (coefficient < 0)
      return builder.createOrFold<arith::SubIOp>(sum, term);
    return builder.createOrFold<arith::AddIOp>(sum, term);
  }

  /// floor(max(dividend, 0) / divisor), limited to the loop's keys.
  Value emitKey(Value dividend, int64_t divisor) {
    Value key = dividend;
    if (divisor != 1) {
      // Keys are not negative, so that truncating division will do.
      Value positive =
          builder.createOrFold<arith::MaxSIOp>(dividend, i64Constant(0));
      key =
          builder.createOrFold<arith::DivSIOp>(positive, i64Constant(divisor));
    }
    key = builder.createOrFold<arith::MaxSIOp>(key, toI64(keys.begin));
    key = builder.createOrFold<arith::MinSIOp>(key, toI64(keys.end));
    return builder.createOrFold<arith::TruncIOp>(builder.getI32Type(), key);
  }

  /// form <= 0
  KeySets nonPositive(const LinearForm &form) {
    LinearForm rest = form;
    rest.key = 0;
    if (form.key == 0)
      return nonPositiveRows(rest);
    Precision precision = getPrecision(form);
    if (form.key > 0) {
      // key <= floor(-rest / form.key); the end is one more.
      LinearForm bound = rest.negated();
      bound.constant += form.key;
      if (form.key == 1 && isLoopEnd(bound))
        return {intervals.all(), intervals.all(), Precision::SameForRows};
      Value someRow = emitKey(emitExtreme(bound, /*largest=*/true), form.key);
      Value everyRow = emitKey(emitExtreme(bound, /*largest=*/false), form.key);
      return {{keys.begin, someRow}, {keys.begin, everyRow}, precision};
    }
    // key >= ceil(rest / -form.key)
    LinearForm bound = rest;
    bound.constant += -form.key - 1;
    Value someRow = emitKey(emitExtreme(bound, /*largest=*/false), -form.key);
    Value everyRow = emitKey(emitExtreme(bound, /*largest=*/true), -form.key);
    return {{someRow, keys.end}, {everyRow, keys.end}, precision};
  }

  static Precision getPrecision(const LinearForm &form) {
    if (form.query == 0)
      return Precision::SameForRows;
    return form.query == -form.key ? Precision::Stepwise : Precision::Exact;
  }

  bool isLoopEnd(const LinearForm &form) {
    return form.query == 0 && form.constant == 0 && form.scalars.size() == 1 &&
           *form.scalars.begin() == std::pair(keys.end, int64_t(1));
  }

  /// A condition on the row alone.
  KeySets nonPositiveRows(const LinearForm &form) {
    auto allIf = [&](bool largest) {
      Value holds =
          intervals.compare(arith::CmpIPredicate::sle,
                            emitExtreme(form, largest), i64Constant(0));
      return intervals.select(holds, intervals.all(), intervals.none());
    };
    return {allIf(/*largest=*/false), allIf(/*largest=*/true),
            getPrecision(form)};
  }

  static constexpr unsigned kMaxVisited = 256;

  ImplicitLocOpBuilder &builder;
  IntervalBuilder intervals;
  MaskOp mask;
  KVLoopOp loop;
  KeyInterval keys;
  std::optional<RowWindow> rows;
  SmallVectorImpl<Operation *> &opaque;
  Value firstRow;
  /// The last one is null if it is `numRows` - 1 behind the first.
  Value firstQuery, lastQuery;
  int64_t numRows = 0, interleave = 1;
  IntegerRanges ranges;
  DenseMap<Value, bool> uniformity;
  DenseMap<Value, std::optional<LinearForm>> forms;
  IRMapping hoistedValues;
  /// The comparison being analysed, for remarks.
  Operation *compared = nullptr;
  unsigned numVisited = 0;
};
} // namespace

KeySets tile::analyzeMask(ImplicitLocOpBuilder &builder, KVLoopOp loop,
                          MaskOp mask, KeyInterval keys,
                          std::optional<RowWindow> rows,
                          SmallVectorImpl<Operation *> &opaque) {
  return MaskAnalyzer(builder, loop, mask, keys, rows, opaque).run();
}

KeySets tile::intersect(ImplicitLocOpBuilder &builder, const KeySets &a,
                        const KeySets &b, KeyInterval keys) {
  IntervalBuilder intervals(builder, keys);
  return {intervals.intersect(a.visible, b.visible),
          intervals.intersect(a.full, b.full), combinePrecisions(a, b)};
}
