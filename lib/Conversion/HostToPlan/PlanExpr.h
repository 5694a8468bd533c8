//===- PlanExpr.h - Integer expressions of the plan -------------*- C++ -*-===//
//
// Expressions as docs/Manifest.md has them, held as attributes: an integer, a
// symbol such as "q.dim2", or [operator, operand, operand].
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_HOSTTOPLAN_PLANEXPR_H
#define ATTN_LIB_CONVERSION_HOSTTOPLAN_PLANEXPR_H

#include "mlir/IR/Builders.h"

namespace mlir::attn {

class PlanExprBuilder {
public:
  explicit PlanExprBuilder(MLIRContext *context) : builder(context) {}

  Attribute constant(int64_t value) { return builder.getI64IntegerAttr(value); }
  Attribute symbol(const Twine &name) { return builder.getStringAttr(name); }
  /// The number of multiprocessors of the device that runs the plan.
  Attribute numSMs() { return symbol("num_sms"); }

  /// `op` of `a` and `b`, folded where both are constants or one is neutral.
  Attribute binary(StringRef op, Attribute a, Attribute b);
  Attribute mul(Attribute a, Attribute b) { return binary("mul", a, b); }
  Attribute add(Attribute a, Attribute b) { return binary("add", a, b); }
  Attribute product(ArrayRef<Attribute> factors);

private:
  Builder builder;
};

/// The value of a constant expression.
std::optional<int64_t> getPlanConstant(Attribute expr);

} // namespace mlir::attn

#endif // ATTN_LIB_CONVERSION_HOSTTOPLAN_PLANEXPR_H
