//===- KeyLimits.cpp - Where a condition ends the keys --------------------===//

#include "attn/Dialect/Attn/IR/KeyLimits.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::attn;

namespace {
class LimitFinder {
public:
  explicit LimitFinder(Value key) : key(key) {}

  /// Of what holds where `condition` does, or with `isNegated` doesn't.
  void add(Value condition, bool isNegated = false) {
    Operation *op = condition.getDefiningOp();
    if (isa_and_present<arith::XOrIOp>(op) &&
        matchPattern(op->getOperand(1), m_One()))
      return add(op->getOperand(0), !isNegated);
    // Not one of two is neither.
    if (isNegated ? isa_and_present<arith::OrIOp>(op)
                  : isa_and_present<arith::AndIOp>(op)) {
      add(op->getOperand(0), isNegated);
      return add(op->getOperand(1), isNegated);
    }
    if (auto compare = dyn_cast_if_present<arith::CmpIOp>(op)) {
      Predicate predicate = compare.getPredicate();
      addCompare(isNegated ? arith::invertPredicate(predicate) : predicate,
                 compare.getLhs(), compare.getRhs());
    }
  }

  SmallVector<KeyLimit> limits;

private:
  using Predicate = arith::CmpIPredicate;

  bool isKey(Value value) {
    if (auto extended = value.getDefiningOp<arith::ExtSIOp>())
      value = extended.getIn();
    return value == key;
  }

  void addCompare(Predicate predicate, Value left, Value right) {
    if (isKey(left) &&
        (predicate == Predicate::slt || predicate == Predicate::sle))
      limits.push_back({right, predicate == Predicate::sle});
    else if (isKey(right) &&
             (predicate == Predicate::sgt || predicate == Predicate::sge))
      limits.push_back({left, predicate == Predicate::sge});
  }

  Value key;
};
} // namespace

SmallVector<KeyLimit> attn::findKeyLimits(Value condition, Value key) {
  LimitFinder finder(key);
  finder.add(condition);
  return finder.limits;
}

/// The smaller of a bound of any width and an i32 that isn't negative; as i32,
/// in which a bound below all of them is still below 0.
static Value clampToI32(ImplicitLocOpBuilder &builder, Value bound,
                        Value limit) {
  Type type = bound.getType();
  if (type == limit.getType())
    return builder.createOrFold<arith::MinSIOp>(bound, limit);
  Value least =
      arith::ConstantOp::create(builder, builder.getIntegerAttr(type, -1));
  Value wide = builder.createOrFold<arith::ExtSIOp>(type, limit);
  bound = builder.createOrFold<arith::MinSIOp>(bound, wide);
  bound = builder.createOrFold<arith::MaxSIOp>(bound, least);
  return builder.createOrFold<arith::TruncIOp>(limit.getType(), bound);
}

Value attn::countKeys(ImplicitLocOpBuilder &builder, ArrayRef<KeyLimit> limits,
                      Value numKeys) {
  auto constant = [&](int32_t value) -> Value {
    return arith::ConstantOp::create(builder, builder.getI32IntegerAttr(value));
  };
  Value count;
  for (const KeyLimit &limit : limits) {
    // Not more than there are, so that the following number can't overflow.
    Value end = clampToI32(builder, limit.bound, numKeys);
    if (limit.isInclusive)
      end = builder.createOrFold<arith::MinSIOp>(
          builder.createOrFold<arith::AddIOp>(end, constant(1)), numKeys);
    count = count ? builder.createOrFold<arith::MinSIOp>(count, end) : end;
  }
  if (!count)
    return numKeys;
  return builder.createOrFold<arith::MaxSIOp>(count, constant(0));
}
