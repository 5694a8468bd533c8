//===- PlanExpr.cpp - Integer expressions of the plan ---------------------===//

#include "PlanExpr.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::attn;

std::optional<int64_t> attn::getPlanConstant(Attribute expr) {
  if (auto integer = dyn_cast<IntegerAttr>(expr))
    return integer.getInt();
  return std::nullopt;
}

/// The value of `a op b`; none where it overflows or divides by zero, which is
/// left to the runtime's check.
static std::optional<int64_t> fold(StringRef op, int64_t a, int64_t b) {
  int64_t result;
  if (op == "add")
    return llvm::AddOverflow(a, b, result) ? std::nullopt
                                           : std::optional(result);
  if (op == "sub")
    return llvm::SubOverflow(a, b, result) ? std::nullopt
                                           : std::optional(result);
  if (op == "mul")
    return llvm::MulOverflow(a, b, result) ? std::nullopt
                                           : std::optional(result);
  if (op == "min")
    return std::min(a, b);
  if (op == "max")
    return std::max(a, b);
  if (op == "eq")
    return a == b;
  if (op == "le")
    return a <= b;
  if (op == "lt")
    return a < b;
  if (b <= 0)
    return std::nullopt;
  if (op == "floordiv")
    return llvm::divideFloorSigned(a, b);
  if (op == "ceildiv")
    return llvm::divideCeilSigned(a, b);
  if (op == "mod")
    return llvm::mod(a, b);
  return std::nullopt;
}

Attribute PlanExprBuilder::binary(StringRef op, Attribute a, Attribute b) {
  std::optional<int64_t> left = getPlanConstant(a), right = getPlanConstant(b);
  if (left && right)
    if (std::optional<int64_t> value = fold(op, *left, *right))
      return constant(*value);
  int64_t neutral = llvm::StringSwitch<int64_t>(op)
                        .Cases({"mul", "floordiv", "ceildiv"}, 1)
                        .Cases({"add", "sub"}, 0)
                        .Default(-1);
  if (neutral >= 0 && right == neutral)
    return a;
  if ((op == "mul" || op == "add") && left == neutral)
    return b;
  return builder.getArrayAttr({builder.getStringAttr(op), a, b});
}

Attribute PlanExprBuilder::product(ArrayRef<Attribute> factors) {
  Attribute result = constant(1);
  for (Attribute factor : factors)
    result = mul(result, factor);
  return result;
}
