//===- Expr.cpp - Integer expressions over dimensions ---------------------===//

#include "attn/Runtime/Manifest.h"
#include "llvm/Support/MathExtras.h"
#include <limits>

using namespace attn;

Expr Expr::constant(int64_t value) {
  Expr expr;
  expr.value = value;
  return expr;
}

Expr Expr::symbol(Symbol symbol) {
  Expr expr;
  expr.op = Op::Symbol;
  expr.symbolRef = symbol;
  return expr;
}

Expr Expr::apply(Op op, std::vector<Expr> operands) {
  assert(operands.size() >= 2 && "operators take two operands or more");
  Expr expr;
  expr.op = op;
  expr.operands = std::move(operands);
  return expr;
}

std::optional<Symbol> Expr::getSymbol() const {
  return op == Op::Symbol ? std::optional(symbolRef) : std::nullopt;
}

static llvm::Error overflow() {
  return llvm::createStringError("the sizes overflow 64-bit arithmetic");
}

static llvm::Expected<int64_t> divide(Expr::Op op, int64_t lhs, int64_t rhs) {
  if (rhs == 0)
    return llvm::createStringError("division by zero");
  if (lhs == std::numeric_limits<int64_t>::min() && rhs == -1)
    return overflow();
  const int64_t floor = llvm::divideFloorSigned(lhs, rhs);
  switch (op) {
  case Expr::Op::FloorDiv:
    return floor;
  case Expr::Op::CeilDiv:
    return llvm::divideCeilSigned(lhs, rhs);
  default:
    return lhs - floor * rhs;
  }
}

/// One step of an operator that takes any number of operands.
static llvm::Expected<int64_t> combine(Expr::Op op, int64_t lhs, int64_t rhs) {
  int64_t result;
  switch (op) {
  case Expr::Op::Add:
    if (llvm::AddOverflow(lhs, rhs, result))
      return overflow();
    return result;
  case Expr::Op::Sub:
    if (llvm::SubOverflow(lhs, rhs, result))
      return overflow();
    return result;
  case Expr::Op::Mul:
    if (llvm::MulOverflow(lhs, rhs, result))
      return overflow();
    return result;
  case Expr::Op::FloorDiv:
  case Expr::Op::CeilDiv:
  case Expr::Op::Mod:
    return divide(op, lhs, rhs);
  case Expr::Op::Min:
    return std::min(lhs, rhs);
  case Expr::Op::Max:
    return std::max(lhs, rhs);
  case Expr::Op::Eq:
    return lhs == rhs;
  case Expr::Op::Le:
    return lhs <= rhs;
  case Expr::Op::Lt:
    return lhs < rhs;
  case Expr::Op::And:
    return lhs != 0 && rhs != 0;
  case Expr::Op::Constant:
  case Expr::Op::Symbol:
    break;
  }
  llvm_unreachable("not an operator");
}

llvm::Expected<int64_t> Expr::evaluate(SymbolValues symbols) const {
  if (op == Op::Constant)
    return value;
  if (op == Op::Symbol)
    return symbols(symbolRef);
  llvm::Expected<int64_t> result = operands.front().evaluate(symbols);
  for (const Expr &operand : llvm::ArrayRef(operands).drop_front()) {
    if (!result)
      break;
    llvm::Expected<int64_t> rhs = operand.evaluate(symbols);
    if (!rhs)
      return rhs;
    result = combine(op, *result, *rhs);
  }
  return result;
}
