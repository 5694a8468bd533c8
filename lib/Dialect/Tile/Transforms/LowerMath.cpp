//===- LowerMath.cpp - math to the few functions that targets have --------===//

#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mlir::tile {
#define GEN_PASS_DEF_TILELOWERMATH
#include "attn/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace mlir::tile

using namespace mlir;
using namespace mlir::tile;

static constexpr StringLiteral kLowered =
    "absf, absi, ceil, ctlz, erf, exp, exp2, expm1, floor, fma, log, log10, "
    "log1p, "
    "log2, rsqrt, sqrt, tanh, trunc, and powf / fpowi with a constant exponent "
    "that is an integer in [-16, 16], 0.5 or -0.5, or with base 2";

namespace {
/// Emits arithmetic on f32 scalars or tiles of one type.
class FloatBuilder {
public:
  FloatBuilder(OpBuilder &builder, Location loc, Type type)
      : builder(builder), loc(loc), type(type) {}

  Value constant(double value) {
    auto element = builder.getF32FloatAttr(value);
    TypedAttr attr = element;
    if (auto shaped = dyn_cast<ShapedType>(type))
      attr = DenseElementsAttr::get(shaped, element.getValue());
    return arith::ConstantOp::create(builder, loc, attr);
  }
  template <typename OpTy, typename... Args>
  Value op(Args... args) {
    return OpTy::create(builder, loc, args...);
  }
  Value add(Value a, Value b) { return op<arith::AddFOp>(a, b); }
  Value sub(Value a, Value b) { return op<arith::SubFOp>(a, b); }
  Value mul(Value a, Value b) { return op<arith::MulFOp>(a, b); }
  Value div(Value a, Value b) { return op<arith::DivFOp>(a, b); }
  Value fma(Value a, Value b, Value c) { return op<math::FmaOp>(a, b, c); }
  Value abs(Value x) { return op<math::AbsFOp>(x); }
  Value floor(Value x) { return op<math::FloorOp>(x); }
  Value neg(Value x) { return op<arith::NegFOp>(x); }
  Value less(Value a, Value b) {
    return op<arith::CmpFOp>(arith::CmpFPredicate::OLT, a, b);
  }
  Value select(Value cond, Value a, Value b) {
    return op<arith::SelectOp>(cond, a, b);
  }
  /// Clamps to [-bound, bound]; NaN stays.
  Value clamp(Value x, double bound) {
    Value above = op<arith::MaximumFOp>(x, constant(-bound));
    return op<arith::MinimumFOp>(above, constant(bound));
  }
  /// c[0] + c[1] x + c[2] x^2 + ...
  Value polynomial(Value x, ArrayRef<double> coefficients) {
    Value sum = constant(coefficients.back());
    for (double c : llvm::reverse(coefficients.drop_back()))
      sum = fma(sum, x, constant(c));
    return sum;
  }

  /// Of x >= 1, which may be infinite.
  Value approximateInverse(Value x) {
    return arith::DivFOp::create(builder, loc, constant(1.0), x,
                                 arith::FastMathFlags::afn);
  }

private:
  OpBuilder &builder;
  Location loc;
  Type type;
};
} // namespace

static constexpr double kLog2E = 1.4426950408889634;
static constexpr double kLn2 = 0.6931471805599453;

/// exp(x) = 2^t (1 + r ln 2), where t + r is x log2(e) to twice f32's
/// precision: the rounding of t alone would cost |x| 2^-24.
static Value lowerExp(FloatBuilder &b, Value x) {
  constexpr float hi = static_cast<float>(kLog2E);
  // Beyond +-150 exp is 0 or infinite, and infinity would make the remainder
  // NaN.
  Value clamped = b.clamp(x, 150.0);
  Value t = b.mul(clamped, b.constant(hi));
  Value r = b.fma(clamped, b.constant(hi), b.neg(t));
  r = b.fma(clamped, b.constant(kLog2E - hi), r);
  Value factor = b.fma(r, b.constant(kLn2), b.constant(1.0));
  return b.mul(b.op<math::Exp2Op>(t), factor);
}

/// exp(x) - 1, by its Taylor series where the subtraction would cancel.
static Value lowerExpM1(FloatBuilder &b, Value x) {
  Value series = b.polynomial(x, {1.0, 1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120,
                                  1.0 / 720, 1.0 / 5040, 1.0 / 40320});
  Value away = b.sub(lowerExp(b, x), b.constant(1.0));
  return b.select(b.less(b.abs(x), b.constant(0.5)), b.mul(x, series), away);
}

/// log((1 + f) / (1 - f)) = 2 f (1 + f^2/3 + f^4/5 + ...) for |f| <= 1/5.
static Value logSeries(FloatBuilder &b, Value f) {
  Value square = b.mul(f, f);
  return b.mul(f, b.polynomial(square, {2.0, 2.0 / 3, 2.0 / 5, 2.0 / 7, 2.0 / 9,
                                        2.0 / 11}));
}

/// log2 of a target may have an absolute error, which shows near log's zero.
static Value lowerLog(FloatBuilder &b, Value x) {
  Value one = b.constant(1.0);
  Value distance = b.sub(x, one);
  Value near = logSeries(b, b.div(distance, b.add(x, one)));
  Value away = b.mul(b.op<math::Log2Op>(x), b.constant(kLn2));
  return b.select(b.less(b.abs(distance), b.constant(0.3)), near, away);
}

static Value lowerLog1p(FloatBuilder &b, Value x) {
  Value near = logSeries(b, b.div(x, b.add(x, b.constant(2.0))));
  Value shifted = b.add(x, b.constant(1.0));
  Value away = b.mul(b.op<math::Log2Op>(shifted), b.constant(kLn2));
  return b.select(b.less(b.abs(x), b.constant(0.3)), near, away);
}

static Value withSignOf(FloatBuilder &b, Value magnitude, Value x) {
  return b.select(b.less(x, b.constant(0.0)), b.neg(magnitude), magnitude);
}

/// tanh(x) = 1 - 2 / (exp(2x) + 1), right also where exp overflows or is 0.
/// Near 0 the difference cancels: a polynomial is there unless `isAbsolute`,
/// when an error relative to 1 will do.
static Value lowerTanh(FloatBuilder &b, Value x, bool isAbsolute) {
  Value power = b.op<math::Exp2Op>(b.mul(x, b.constant(2.0 * kLog2E)));
  Value inverse = b.approximateInverse(b.add(power, b.constant(1.0)));
  Value away = b.fma(inverse, b.constant(-2.0), b.constant(1.0));
  if (isAbsolute)
    return away;
  // tanh(x) / x in x^2, of least relative error for |x| < 0.6: 3e-9.
  Value square = b.mul(x, x);
  Value near = b.mul(
      x, b.polynomial(square, {0.999999998, -0.333332833, 0.13331689,
                               -0.0537687049, 0.0207536292, -0.0058521686}));
  return b.select(b.less(b.abs(x), b.constant(0.6)), near, away);
}

/// erf by its Taylor series near 0, elsewhere by formula 7.1.26 of Abramowitz
/// and Stegun (absolute error 1.5e-7, which is relative where erf is near 1).
static Value lowerErf(FloatBuilder &b, Value x) {
  constexpr double scale = 1.1283791670955126; // 2 / sqrt(pi)
  SmallVector<double> taylor;
  double factorial = 1.0;
  for (int n = 0; n <= 11; factorial *= ++n)
    taylor.push_back((n % 2 ? -scale : scale) / (factorial * (2 * n + 1)));
  Value square = b.mul(x, x);
  Value near = b.mul(x, b.polynomial(square, taylor));

  Value one = b.constant(1.0);
  Value t = b.div(one, b.fma(b.abs(x), b.constant(0.3275911), one));
  Value tail = b.mul(t, b.polynomial(t, {0.254829592, -0.284496736, 1.421413741,
                                         -1.453152027, 1.061405429}));
  Value decay = b.op<math::Exp2Op>(b.mul(square, b.constant(-kLog2E)));
  Value away = withSignOf(b, b.sub(one, b.mul(tail, decay)), x);
  return b.select(b.less(b.abs(x), one), near, away);
}

static Value lowerCeil(FloatBuilder &b, Value x) {
  return b.neg(b.floor(b.neg(x)));
}

static Value lowerTrunc(FloatBuilder &b, Value x) {
  return withSignOf(b, b.floor(b.abs(x)), x);
}

/// x^n by squaring.
static Value lowerIntegerPower(FloatBuilder &b, Value x, int64_t exponent) {
  Value result;
  uint64_t bits = std::abs(exponent);
  for (Value power = x; bits; bits >>= 1) {
    if (bits & 1)
      result = result ? b.mul(result, power) : power;
    if (bits > 1)
      power = b.mul(power, power);
  }
  if (!result)
    return b.constant(1.0);
  return exponent < 0 ? b.div(b.constant(1.0), result) : result;
}

static bool isConstant(Value value, double expected) {
  APFloat constant(0.0f);
  return matchPattern(value, m_ConstantFloat(&constant)) &&
         constant.convertToDouble() == expected;
}

/// Null if the exponent isn't one that is lowered.
static Value lowerPower(FloatBuilder &b, Value base, Value exponentValue) {
  if (isConstant(base, 2.0))
    return b.op<math::Exp2Op>(exponentValue);
  APFloat constant(0.0f);
  if (!matchPattern(exponentValue, m_ConstantFloat(&constant)))
    return nullptr;
  double exponent = constant.convertToDouble();
  if (exponent == 0.5)
    return b.op<math::SqrtOp>(base);
  if (exponent == -0.5)
    return b.op<math::RsqrtOp>(base);
  if (std::abs(exponent) > 16 || exponent != std::floor(exponent))
    return nullptr;
  return lowerIntegerPower(b, base, static_cast<int64_t>(exponent));
}

static Value lowerPower(FloatBuilder &b, math::FPowIOp op) {
  APInt exponent;
  if (!matchPattern(op.getRhs(), m_ConstantInt(&exponent)) ||
      exponent.abs().ugt(16))
    return nullptr;
  return lowerIntegerPower(b, op.getLhs(), exponent.getSExtValue());
}

/// True for the ops that may remain.
static bool isTargetOp(Operation *op) {
  return isa<math::Exp2Op, math::Log2Op, math::SqrtOp, math::RsqrtOp,
             math::AbsFOp, math::FloorOp, math::FmaOp>(op);
}

/// What `op` on f32 becomes; null if it is not in the set.
static Value lowerFloatOp(FloatBuilder &b, Operation *op) {
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case([&](math::ExpOp op) { return lowerExp(b, op.getOperand()); })
      .Case([&](math::ExpM1Op op) { return lowerExpM1(b, op.getOperand()); })
      .Case([&](math::LogOp op) { return lowerLog(b, op.getOperand()); })
      .Case([&](math::Log1pOp op) { return lowerLog1p(b, op.getOperand()); })
      .Case([&](math::Log10Op op) {
        constexpr double kLog10E = 0.4342944819032518;
        return b.mul(lowerLog(b, op.getOperand()), b.constant(kLog10E));
      })
      .Case([&](math::TanhOp op) {
        bool isAbsolute = arith::bitEnumContainsAll(op.getFastmath(),
                                                    arith::FastMathFlags::afn);
        return lowerTanh(b, op.getOperand(), isAbsolute);
      })
      .Case([&](math::ErfOp op) { return lowerErf(b, op.getOperand()); })
      .Case([&](math::CeilOp op) { return lowerCeil(b, op.getOperand()); })
      .Case([&](math::TruncOp op) { return lowerTrunc(b, op.getOperand()); })
      .Case([&](math::PowFOp op) {
        return lowerPower(b, op.getLhs(), op.getRhs());
      })
      .Case([&](math::FPowIOp op) { return lowerPower(b, op); })
      .Default(Value());
}

static LogicalResult refuse(Operation *op) {
  return op->emitOpError("on ")
         << getElementTypeOrSelf(op->getResult(0))
         << " is not lowered to any target; use f32 (or f16, bf16) and one of "
         << kLowered;
}

/// A narrower float op becomes the f32 op between conversions. Returns the f32
/// op.
static Operation *widen(OpBuilder &builder, Operation *op) {
  auto toF32 = [&](Type type) -> Type {
    if (auto shaped = dyn_cast<ShapedType>(type))
      return shaped.clone(builder.getF32Type());
    return builder.getF32Type();
  };
  SmallVector<Value> operands;
  for (Value operand : op->getOperands()) {
    bool isFloat = isa<FloatType>(getElementTypeOrSelf(operand));
    operands.push_back(isFloat ? arith::ExtFOp::create(builder, op->getLoc(),
                                                       toF32(operand.getType()),
                                                       operand)
                               : operand);
  }
  Type type = op->getResult(0).getType();
  Operation *wide = builder.create(op->getLoc(), op->getName().getIdentifier(),
                                   operands, {toF32(type)}, op->getAttrs());
  Value narrow =
      arith::TruncFOp::create(builder, op->getLoc(), type, wide->getResult(0));
  op->getResult(0).replaceAllUsesWith(narrow);
  op->erase();
  return wide;
}

static LogicalResult lower(Operation *op) {
  // LLVM makes a library call of frem.
  if (isa<arith::RemFOp>(op))
    return refuse(op);
  if (!isa_and_present<math::MathDialect>(op->getDialect()))
    return success();
  if (isa<math::CountLeadingZerosOp>(op))
    return success();
  OpBuilder builder(op);
  if (auto abs = dyn_cast<math::AbsIOp>(op)) {
    Value x = abs.getOperand();
    Value zero = arith::ConstantOp::create(builder, op->getLoc(),
                                           builder.getZeroAttr(x.getType()));
    Value negated = arith::SubIOp::create(builder, op->getLoc(), zero, x);
    abs.replaceAllUsesWith(
        arith::MaxSIOp::create(builder, op->getLoc(), x, negated).getResult());
    abs.erase();
    return success();
  }
  if (op->getNumResults() != 1)
    return refuse(op);
  Type element = getElementTypeOrSelf(op->getResult(0));
  if (element.isF16() || element.isBF16()) {
    op = widen(builder, op);
    builder.setInsertionPoint(op);
  } else if (!element.isF32()) {
    return refuse(op);
  }
  if (isTargetOp(op))
    return success();
  FloatBuilder floats(builder, op->getLoc(), op->getResult(0).getType());
  Value lowered = lowerFloatOp(floats, op);
  if (!lowered)
    return refuse(op);
  op->getResult(0).replaceAllUsesWith(lowered);
  op->erase();
  return success();
}

namespace {
struct TileLowerMathPass : tile::impl::TileLowerMathBase<TileLowerMathPass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    arith::populateCeilFloorDivExpandOpsPatterns(patterns);
    walkAndApplyPatterns(getOperation(), std::move(patterns));
    SmallVector<Operation *> ops;
    getOperation().walk([&](Operation *op) { ops.push_back(op); });
    for (Operation *op : ops)
      if (failed(lower(op)))
        return signalPassFailure();
  }
};
} // namespace
