//===- KeyPadding.cpp - Keys that a mask hides from all queries -----------===//

#include "KeyPadding.h"

using namespace mlir;
using namespace mlir::attn;

namespace {
class PaddingFinder {
public:
  PaddingFinder(ImplicitLocOpBuilder &builder, Region &rule,
                const RuleContext &context)
      : builder(builder), key(rule.getArgument(3)), context(context),
        cloner(rule, context, /*query=*/Value(), /*key=*/Value()) {}

  /// Lowers the count by what `condition` says.
  void add(Value condition) {
    if (auto both = condition.getDefiningOp<arith::AndIOp>()) {
      add(both.getLhs());
      add(both.getRhs());
    } else if (auto compare = condition.getDefiningOp<arith::CmpIOp>()) {
      addCompare(compare);
    }
  }

  Value count;

private:
  template <typename OpT>
  Value binary(Value a, Value b) {
    return builder.createOrFold<OpT>(a, b);
  }
  Value i32(int32_t value) {
    return arith::ConstantOp::create(builder, builder.getI32IntegerAttr(value));
  }

  /// Whether all queries of the program's head have this value.
  bool isKnown(Value value) {
    unsigned known = (context.batch ? kBatch : 0) | (context.head ? kHead : 0);
    return (inputs.get(value) & ~known) == 0;
  }

  void addCompare(arith::CmpIOp compare) {
    using Predicate = arith::CmpIPredicate;
    Predicate predicate = compare.getPredicate();
    Value bound = compare.getRhs();
    if (compare.getRhs() == key) {
      bound = compare.getLhs();
      // n > kv_idx
      if (predicate != Predicate::sgt && predicate != Predicate::sge)
        return;
      predicate = predicate == Predicate::sgt ? Predicate::slt : Predicate::sle;
    } else if (compare.getLhs() != key) {
      return;
    }
    bool isStrict = predicate == Predicate::slt;
    if ((!isStrict && predicate != Predicate::sle) || !isKnown(bound))
      return;
    // Not more than there are, so that the following number can't overflow.
    Value limit =
        binary<arith::MinSIOp>(cloner.clone(builder, bound), context.kvLen);
    if (!isStrict)
      limit = binary<arith::MinSIOp>(binary<arith::AddIOp>(limit, i32(1)),
                                     context.kvLen);
    limit = binary<arith::MaxSIOp>(limit, i32(0));
    count = count ? binary<arith::MinSIOp>(count, limit) : limit;
  }

  ImplicitLocOpBuilder &builder;
  Value key;
  const RuleContext &context;
  RuleCloner cloner;
  RuleInputs inputs;
};
} // namespace

Value attn::countVisibleKeys(ImplicitLocOpBuilder &builder, Region &rule,
                             const RuleContext &context) {
  PaddingFinder finder(builder, rule, context);
  finder.add(rule.front().getTerminator()->getOperand(0));
  return finder.count;
}
