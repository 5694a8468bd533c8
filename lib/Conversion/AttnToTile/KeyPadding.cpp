//===- KeyPadding.cpp - Keys that a mask hides from all queries -----------===//

#include "KeyPadding.h"
#include "attn/Dialect/Attn/IR/KeyLimits.h"

using namespace mlir;
using namespace mlir::attn;

/// The limits that all queries of some heads have in common: of a batch, and of
/// one head if `hasHead`.
static SmallVector<KeyLimit> getCommonLimits(Region &rule, bool hasHead) {
  RuleInputs inputs;
  SmallVector<KeyLimit> limits =
      findKeyLimits(rule.front().getTerminator()->getOperand(0),
                    /*key=*/rule.getArgument(3));
  unsigned known = kBatch | (hasHead ? kHead : 0);
  llvm::erase_if(limits, [&](const KeyLimit &limit) {
    return (inputs.get(limit.bound) & ~known) != 0;
  });
  return limits;
}

bool attn::hidesKeys(Region &rule, bool hasHead) {
  return !getCommonLimits(rule, hasHead).empty();
}

Value attn::countVisibleKeys(ImplicitLocOpBuilder &builder, Region &rule,
                             const RuleContext &context) {
  RuleCloner cloner(rule, context, /*query=*/Value(), /*key=*/Value());
  SmallVector<KeyLimit> limits = getCommonLimits(rule, context.head != nullptr);
  if (limits.empty())
    return {};
  for (KeyLimit &limit : limits)
    limit.bound = cloner.clone(builder, limit.bound);
  return countKeys(builder, limits, context.kvLen);
}
