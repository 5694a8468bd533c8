//===- KeyPadding.cpp - Keys that a mask hides from all queries -----------===//

#include "KeyPadding.h"
#include "attn/Dialect/Attn/IR/KeyLimits.h"

using namespace mlir;
using namespace mlir::attn;

Value attn::countVisibleKeys(ImplicitLocOpBuilder &builder, Region &rule,
                             const RuleContext &context) {
  RuleInputs inputs;
  RuleCloner cloner(rule, context, /*query=*/Value(), /*key=*/Value());
  // What all queries of the program's heads have in common.
  unsigned known = (context.batch ? kBatch : 0) | (context.head ? kHead : 0);
  SmallVector<KeyLimit> limits;
  for (KeyLimit limit :
       findKeyLimits(rule.front().getTerminator()->getOperand(0),
                     /*key=*/rule.getArgument(3)))
    if ((inputs.get(limit.bound) & ~known) == 0)
      limits.push_back({cloner.clone(builder, limit.bound), limit.isInclusive});
  return limits.empty() ? Value() : countKeys(builder, limits, context.kvLen);
}
