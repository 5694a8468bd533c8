//===- KeyLimits.cpp - Where a condition ends the keys --------------------===//

#include "attn/Dialect/Attn/IR/KeyLimits.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::attn;

static void addLimits(SmallVectorImpl<KeyLimit> &limits, Value condition,
                      Value key) {
  using Predicate = arith::CmpIPredicate;
  if (auto both = condition.getDefiningOp<arith::AndIOp>()) {
    addLimits(limits, both.getLhs(), key);
    addLimits(limits, both.getRhs(), key);
    return;
  }
  auto compare = condition.getDefiningOp<arith::CmpIOp>();
  if (!compare)
    return;
  Predicate predicate = compare.getPredicate();
  if (compare.getLhs() == key &&
      (predicate == Predicate::slt || predicate == Predicate::sle))
    limits.push_back({compare.getRhs(), predicate == Predicate::sle});
  else if (compare.getRhs() == key &&
           (predicate == Predicate::sgt || predicate == Predicate::sge))
    limits.push_back({compare.getLhs(), predicate == Predicate::sge});
}

SmallVector<KeyLimit> attn::findKeyLimits(Value condition, Value key) {
  SmallVector<KeyLimit> limits;
  addLimits(limits, condition, key);
  return limits;
}

Value attn::countKeys(ImplicitLocOpBuilder &builder, ArrayRef<KeyLimit> limits,
                      Value numKeys) {
  auto constant = [&](int32_t value) -> Value {
    return arith::ConstantOp::create(builder, builder.getI32IntegerAttr(value));
  };
  Value count;
  for (const KeyLimit &limit : limits) {
    // Not more than there are, so that the following number can't overflow.
    Value end = builder.createOrFold<arith::MinSIOp>(limit.bound, numKeys);
    if (limit.isInclusive)
      end = builder.createOrFold<arith::MinSIOp>(
          builder.createOrFold<arith::AddIOp>(end, constant(1)), numKeys);
    count = count ? builder.createOrFold<arith::MinSIOp>(count, end) : end;
  }
  if (!count)
    return numKeys;
  return builder.createOrFold<arith::MaxSIOp>(count, constant(0));
}
