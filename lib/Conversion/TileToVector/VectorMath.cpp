//===- VectorMath.cpp - exp2, log2 and exp in vector code -----------------===//

#include "VectorMath.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"
#include <limits>

using namespace mlir;
using namespace mlir::tile;
using namespace mlir::tile::cpu;

bool cpu::isSupportedMath(Operation *op) {
  return isa<math::AbsFOp, math::AbsIOp, math::CeilOp, math::CopySignOp,
             math::CountLeadingZerosOp, math::Exp2Op, math::FloorOp,
             math::FmaOp, math::Log2Op, math::RoundEvenOp, math::RsqrtOp,
             math::SqrtOp, math::TruncOp>(op);
}

StringRef cpu::getSupportedMathNames() {
  return "absf, absi, ceil, copysign, ctlz, exp2, floor, fma, log2, roundeven, "
         "rsqrt, sqrt, trunc";
}

namespace {

/// f32 arithmetic on values of one type.
class F32Emitter {
public:
  F32Emitter(Emitter &e, Value like) : e(e) {
    auto vector = dyn_cast<VectorType>(like.getType());
    lanes = vector ? vector.getNumElements() : 0;
    floatType = like.getType();
    intType =
        vector ? Type(vector.clone(e.b.getI32Type())) : Type(e.b.getI32Type());
  }

  Value constant(float value) { return e.constantF32(value, lanes); }
  Value intConstant(int32_t value) {
    return e.splat(arith::ConstantIntOp::create(e.b, e.loc, value, 32), lanes);
  }
  Value fma(Value a, Value b, Value c) {
    return LLVM::FMulAddOp::create(e.b, e.loc, a, b, c);
  }
  Value add(Value a, Value b) {
    return arith::AddFOp::create(e.b, e.loc, a, b);
  }
  Value sub(Value a, Value b) {
    return arith::SubFOp::create(e.b, e.loc, a, b);
  }
  Value mul(Value a, Value b) {
    return arith::MulFOp::create(e.b, e.loc, a, b);
  }
  Value bits(Value a) {
    return arith::BitcastOp::create(e.b, e.loc, intType, a);
  }
  Value fromBits(Value a) {
    return arith::BitcastOp::create(e.b, e.loc, floatType, a);
  }
  Value less(Value a, Value b) {
    return arith::CmpFOp::create(e.b, e.loc, arith::CmpFPredicate::OLT, a, b);
  }
  Value select(Value condition, Value a, Value b) {
    return arith::SelectOp::create(e.b, e.loc, condition, a, b);
  }

  /// exp(r) for |r| <= ln(2) / 2. Coefficients: Cephes expf, 2e-7 of error at
  /// most.
  Value expReduced(Value r) {
    static constexpr float kCoefficients[] = {
        1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f, 1.6666665459e-1f,
        5.0000001201e-1f};
    Value p = constant(1.9875691500e-4f);
    for (float c : kCoefficients)
      p = fma(p, r, constant(c));
    return add(fma(p, mul(r, r), r), constant(1.0f));
  }

  /// 2^n for an integer n in [-126, 127].
  Value exp2OfInteger(Value n) {
    Value biased = arith::AddIOp::create(e.b, e.loc, n, intConstant(127));
    return fromBits(arith::ShLIOp::create(e.b, e.loc, biased, intConstant(23)));
  }

  Emitter &e;
  int64_t lanes;
  Type floatType, intType;
};

/// Adding 1.5 * 2^23 rounds to an integer, which the low bits then hold.
constexpr float kRoundingMagic = 12582912.0f;
constexpr int32_t kRoundingMagicBits = 0x4b400000;

/// exp2 over the whole range, overflow and denormal results included.
Value emitExp2(Emitter &e, Value x) {
  F32Emitter f(e, x);
  // A comparison with NaN is false: NaN passes.
  x = f.select(f.less(x, f.constant(-151.0f)), f.constant(-151.0f), x);
  x = f.select(f.less(f.constant(129.0f), x), f.constant(129.0f), x);
  Value shifted = f.add(x, f.constant(kRoundingMagic));
  Value rounded = f.sub(shifted, f.constant(kRoundingMagic));
  Value n = arith::SubIOp::create(e.b, e.loc, f.bits(shifted),
                                  f.intConstant(kRoundingMagicBits));
  Value r = f.mul(f.sub(x, rounded), f.constant(0.693147180559945f));
  // 2^n alone may overflow or be denormal; its two halves are not.
  Value n1 = arith::ShRSIOp::create(e.b, e.loc, n, f.intConstant(1));
  Value n2 = arith::SubIOp::create(e.b, e.loc, n, n1);
  return f.mul(f.mul(f.expReduced(r), f.exp2OfInteger(n1)),
               f.exp2OfInteger(n2));
}

struct Exp2ToArith : OpRewritePattern<math::Exp2Op> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(math::Exp2Op op,
                                PatternRewriter &rewriter) const override {
    if (!getElementTypeOrSelf(op.getType()).isF32())
      return failure();
    Emitter e(rewriter, op.getLoc());
    rewriter.replaceOp(op, emitExp2(e, op.getOperand()));
    return success();
  }
};

} // namespace

Value cpu::emitExpOfNonPositive(Emitter &e, Value x) {
  F32Emitter f(e, x);
  Value shifted =
      f.fma(x, f.constant(1.44269504088896341f), f.constant(kRoundingMagic));
  Value rounded = f.sub(shifted, f.constant(kRoundingMagic));
  // ln(2) in two parts (Cephes): rounded * 0.693359375 is exact.
  Value r = f.fma(rounded, f.constant(-0.693359375f), x);
  r = f.fma(rounded, f.constant(2.12194440e-4f), r);
  // 2^n from the low bits of `shifted`. A product, unlike adding n to the
  // exponent, keeps NaN.
  Value power =
      arith::ShLIOp::create(e.b, e.loc, f.bits(shifted), f.intConstant(23));
  power = arith::AddIOp::create(e.b, e.loc, power, f.bits(f.constant(1.0f)));
  Value result = f.mul(f.expReduced(r), f.fromBits(power));
  return f.select(f.less(x, f.constant(-87.3f)), f.constant(0.0f), result);
}

void cpu::expandMath(Operation *op, bool expandBF16) {
  RewritePatternSet patterns(op->getContext());
  patterns.add<Exp2ToArith>(op->getContext());
  populateMathPolynomialApproximationPatterns(patterns, [](StringRef name) {
    return name == math::Log2Op::getOperationName();
  });
  if (expandBF16)
    arith::populateExpandBFloat16Patterns(patterns);
  walkAndApplyPatterns(op, std::move(patterns));
}
