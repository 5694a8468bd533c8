//===- AttnToLinalg.cpp - attn.attention to unfused linalg sequences ------===//
//
// docs/Variants.md maps every step to the framework's step that it mirrors.
//
//===----------------------------------------------------------------------===//

#include "SequenceBuilder.h"
#include "attn/Conversion/Passes.h"
#include "attn/Dialect/Attn/IR/AttnSupport.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::attn {
#define GEN_PASS_DEF_CONVERTATTNTOLINALG
#include "attn/Conversion/Passes.h.inc"
} // namespace mlir::attn

using namespace mlir;
using namespace mlir::attn;

static Value floatConstant(ImplicitLocOpBuilder &builder, Type type,
                           double value) {
  return arith::ConstantOp::create(builder, builder.getFloatAttr(type, value));
}

static Value minusInfinity(ImplicitLocOpBuilder &builder, Type type) {
  return floatConstant(builder, type, -std::numeric_limits<float>::infinity());
}

static Value isMinusInfinity(ImplicitLocOpBuilder &builder, Value value) {
  return arith::CmpFOp::create(builder, arith::CmpFPredicate::OEQ, value,
                               minusInfinity(builder, value.getType()));
}

namespace {
/// What both sequences share. `scale` is an operand only where the op has one.
class VariantBuilder {
public:
  VariantBuilder(AttentionOp op, StringRef variant)
      : op(op), seq(op, variant), builder(seq.getBuilder()),
        f32(builder.getF32Type()), i8(builder.getI8Type()) {}

protected:
  SmallVector<StepOperand> getScaleOperands() {
    if (Value scale = op.getScaleValue())
      return {{scale, seq.scalarMap()}};
    return {};
  }

  /// `operands` are the elements of getScaleOperands.
  Value getScale(ImplicitLocOpBuilder &body, ValueRange operands) {
    if (!operands.empty())
      return operands.front();
    return floatConstant(body, f32, *op.getConstantScale());
  }

  Value applyScoreMod(Value scores) {
    if (!op.hasScoreMod())
      return scores;
    Region &rule = op.getScoreMod();
    Type type = getElementTypeOrSelf(scores);
    SmallVector<StepOperand> inputs = {{scores, seq.scoreMap()}};
    llvm::append_range(inputs, seq.getRuleOperands(rule, seq.scalarMap()));
    StepOperand into = {seq.emptyLike(scores, type), seq.scoreMap()};
    return seq.elementwise("score_mod", inputs, into,
                           [&](ImplicitLocOpBuilder &body, ValueRange args) {
                             Value score = convertFloat(body, args[0], f32);
                             Value result = seq.inlineRule(
                                 body, rule, score,
                                 args.drop_front().drop_back(), 4);
                             return convertFloat(body, result, type);
                           });
  }

  Value rowMax(Value scores) {
    auto neutral = builder.getF32FloatAttr(-INFINITY);
    return seq.reduceRows("row_max", {{scores, seq.scoreMap()}}, neutral,
                          [&](ImplicitLocOpBuilder &body, ValueRange args) {
                            return arith::MaximumFOp::create(body, args[0],
                                                             args[1]);
                          });
  }

  /// The lse that the sequence computes: a step of the sink needs it, too.
  Value getLseInit() {
    if (op.getLse() || !op.getSink())
      return op.getLse();
    return seq.empty(seq.getRowShape(), f32);
  }

  /// Makes room in normalised rows, and in their lse, for the sink. In place.
  void addSink(Value &p, Value &lse) {
    if (!op.getSink())
      return;
    Type type = getElementTypeOrSelf(p);
    p = seq.elementwise("sink", {{lse, seq.rowMap()}}, {p, seq.scoreMap()},
                        [&](ImplicitLocOpBuilder &body, ValueRange args) {
                          Value weight = math::ExpOp::create(
                              body, subtract(body, loadSink(body), args[0]));
                          Value total = arith::AddFOp::create(
                              body, floatConstant(body, f32, 1.0), weight);
                          Value share = arith::DivFOp::create(
                              body, convertFloat(body, args[1], f32), total);
                          return convertFloat(body, share, type);
                        });
    if (op.getLse())
      lse = addSinkToLse(lse);
  }

  AttentionOp op;
  SequenceBuilder seq;
  ImplicitLocOpBuilder &builder;
  Type f32, i8;

private:
  /// The sink of the head, the second loop.
  Value loadSink(ImplicitLocOpBuilder &body) {
    Value head = arith::IndexCastOp::create(body, body.getI32Type(),
                                            linalg::IndexOp::create(body, 1));
    Value sink = CaptureLoadOp::create(body, getElementTypeOrSelf(op.getSink()),
                                       op.getSink(), head);
    return convertFloat(body, sink, f32);
  }

  /// log(exp(lse) + exp(sink)).
  Value addSinkToLse(Value lse) {
    return seq.elementwise(
        "sink_lse", {}, {lse, builder.getMultiDimIdentityMap(3)},
        [&](ImplicitLocOpBuilder &body, ValueRange args) {
          Value sink = loadSink(body);
          Value distance =
              math::AbsFOp::create(body, subtract(body, sink, args[0]));
          Value smaller = math::ExpOp::create(
              body, arith::NegFOp::create(body, distance).getResult());
          return arith::AddFOp::create(
                     body, arith::MaximumFOp::create(body, sink, args[0]),
                     math::Log1pOp::create(body, smaller))
              .getResult();
        });
  }

  /// a - b, and 0 for equal infinities, which have no difference.
  static Value subtract(ImplicitLocOpBuilder &body, Value a, Value b) {
    Value equal = arith::CmpFOp::create(body, arith::CmpFPredicate::OEQ, a, b);
    return arith::SelectOp::create(body, equal,
                                   floatConstant(body, a.getType(), 0.0),
                                   arith::SubFOp::create(body, a, b));
  }
};

/// As people write it: everything in the input type, the mask filled into a
/// copy of the scores.
class NaiveBuilder : VariantBuilder {
public:
  explicit NaiveBuilder(AttentionOp op)
      : VariantBuilder(op, "naive"), type(op.getElementType()),
        path(type.isF32() ? "tf32x3" : "mma") {}

  SmallVector<Value> build() {
    Value scores = seq.matmulQK(op.getQ(), op.getK(),
                                seq.empty(seq.getScoreShape(), type), path);
    scores = applyMask(applyScoreMod(scale(scores)));
    SmallVector<Value> outs = {seq.emptyLike(scores, type)};
    Value lse = getLseInit();
    if (lse)
      outs.push_back(lse);
    auto softmax = SoftmaxOp::create(builder, ValueRange(outs).getTypes(),
                                     scores, outs[0], lse);
    softmax->setDiscardableAttr("attn.step",
                                builder.getStringAttr("naive_softmax"));
    Value p = softmax->getResult(0);
    if (lse)
      lse = softmax->getResult(1);
    addSink(p, lse);
    SmallVector<Value> results = {seq.matmulPV(p, op.getV(), op.getO(), path)};
    if (op.getLse())
      results.push_back(lse);
    return results;
  }

private:
  Value scale(Value scores) {
    SmallVector<StepOperand> inputs = {{scores, seq.scoreMap()}};
    llvm::append_range(inputs, getScaleOperands());
    StepOperand into = {seq.emptyLike(scores, type), seq.scoreMap()};
    return seq.elementwise(
        "scale", inputs, into,
        [&](ImplicitLocOpBuilder &body, ValueRange args) {
          Value factor = getScale(body, args.drop_front().drop_back());
          Value product = arith::MulFOp::create(
              body, convertFloat(body, args[0], f32), factor);
          return convertFloat(body, product, type);
        });
  }

  /// Only an allocation that copies really costs the copy of an out-of-place
  /// fill: bufferization removes a plain select's or linalg.copy's.
  Value applyMask(Value scores) {
    if (!op.hasMaskMod())
      return scores;
    Region &rule = op.getMaskMod();
    auto copy = bufferization::AllocTensorOp::create(
        builder, cast<RankedTensorType>(scores.getType()), ValueRange(), scores,
        /*size_hint=*/Value(), /*memory_space=*/Attribute());
    return seq.elementwise(
        "mask", seq.getRuleOperands(rule, seq.scalarMap()),
        {copy, seq.scoreMap()},
        [&](ImplicitLocOpBuilder &body, ValueRange args) {
          Value keep = seq.inlineRule(body, rule, {}, args.drop_back(), 4);
          return arith::SelectOp::create(body, keep, args.back(),
                                         minusInfinity(body, type));
        });
  }

  Type type;
  StringRef path;
};

/// The field's reference path: everything in f32 and step by step.
class MathBuilder : VariantBuilder {
public:
  explicit MathBuilder(AttentionOp op) : VariantBuilder(op, "math") {}

  SmallVector<Value> build() {
    Value q = upcast("upcast_q", op.getQ());
    Value k = upcast("upcast_k", op.getK());
    Value v = upcast("upcast_v", op.getV());
    StepOperand bias = buildBias();
    q = scale("scale_q", q, /*signedRoot=*/true);
    k = scale("scale_k", k, /*signedRoot=*/false);
    Value scores =
        seq.matmulQK(q, k, seq.empty(seq.getScoreShape(), f32), "fma");
    scores = addBias(applyScoreMod(scores), bias);
    SmallVector<Value> results;
    Value p = buildSafeSoftmax(scores, results);
    bool isF32 = op.getElementType().isF32();
    Value o = isF32 ? op.getO() : seq.emptyLike(op.getO(), f32);
    o = seq.matmulPV(p, v, o, "fma");
    if (!isF32)
      o = seq.convert("downcast", o, op.getO());
    results.insert(results.begin(), o);
    return results;
  }

private:
  Value upcast(StringRef step, Value value) {
    if (op.getElementType().isF32())
      return value;
    return seq.convert(step, value, seq.emptyLike(value, f32));
  }

  /// Multiplies by sqrt(|scale|), with the scale's sign if `signedRoot`.
  Value scale(StringRef step, Value value, bool signedRoot) {
    SmallVector<StepOperand> inputs = {{value, seq.scoreMap()}};
    llvm::append_range(inputs, getScaleOperands());
    StepOperand into = {seq.emptyLike(value, f32), seq.scoreMap()};
    return seq.elementwise(
        step, inputs, into, [&](ImplicitLocOpBuilder &body, ValueRange args) {
          Value factor =
              getRoot(body, args.drop_front().drop_back(), signedRoot);
          return arith::MulFOp::create(body, args[0], factor);
        });
  }

  Value getRoot(ImplicitLocOpBuilder &body, ValueRange scaleOperands,
                bool signedRoot) {
    if (std::optional<float> scale = op.getConstantScale()) {
      double root = std::sqrt(std::abs(static_cast<double>(*scale)));
      return floatConstant(body, f32, signedRoot && *scale < 0 ? -root : root);
    }
    Value scale = scaleOperands.front();
    Value root = math::SqrtOp::create(body, math::AbsFOp::create(body, scale));
    if (!signedRoot)
      return root;
    Value isNegative = arith::CmpFOp::create(
        body, arith::CmpFPredicate::OLT, scale, floatConstant(body, f32, 0.0));
    return arith::SelectOp::create(body, isNegative,
                                   arith::NegFOp::create(body, root), root);
  }

  /// The mask as a matrix of 0 and -inf, of [Nq, Nk] where batch and head don't
  /// matter; null without a mask. Its map is from the scores' loops.
  StepOperand buildBias() {
    if (!op.hasMaskMod())
      return {};
    Region &rule = op.getMaskMod();
    SmallVector<OpFoldResult> shape = seq.getScoreShape();
    AffineMap map = seq.scoreMap();
    if (!SequenceBuilder::dependsOnBatchOrHead(rule)) {
      shape.erase(shape.begin(), shape.begin() + 2);
      map = seq.getMap(4, {2, 3});
    }
    unsigned rank = shape.size();
    AffineMap identity = builder.getMultiDimIdentityMap(rank);
    Value ones = seq.fill("mask_ones", builder.getI8IntegerAttr(1),
                          seq.empty(shape, i8));
    SmallVector<StepOperand> inputs = {{ones, identity}};
    llvm::append_range(inputs, seq.getRuleOperands(rule, seq.getMap(rank, {})));
    Value visible = seq.elementwise(
        "mask_rule", inputs, {seq.empty(shape, i8), identity},
        [&](ImplicitLocOpBuilder &body, ValueRange args) {
          Value keep = seq.inlineRule(body, rule, {},
                                      args.drop_front().drop_back(), rank);
          Value zero = arith::ConstantIntOp::create(body, 0, 8);
          return arith::SelectOp::create(body, keep, args[0], zero);
        });
    Value hidden = seq.elementwise(
        "mask_not", {{visible, identity}}, {seq.empty(shape, i8), identity},
        [&](ImplicitLocOpBuilder &body, ValueRange args) {
          Value one = arith::ConstantIntOp::create(body, 1, 8);
          return arith::XOrIOp::create(body, args[0], one);
        });
    Value bias = seq.elementwise(
        "mask_bias", {{hidden, identity}}, {seq.empty(shape, f32), identity},
        [&](ImplicitLocOpBuilder &body, ValueRange args) {
          return arith::SelectOp::create(body, isTrue(body, args[0]),
                                         minusInfinity(body, f32),
                                         floatConstant(body, f32, 0.0));
        });
    return {bias, map};
  }

  static Value isTrue(ImplicitLocOpBuilder &body, Value value) {
    Value zero = arith::ConstantIntOp::create(body, 0, 8);
    return arith::CmpIOp::create(body, arith::CmpIPredicate::ne, value, zero);
  }

  /// In place. Selects where the bias hides: NaN + -inf would be NaN, and a
  /// hidden key must not matter.
  Value addBias(Value scores, StepOperand bias) {
    if (!bias.value)
      return scores;
    return seq.elementwise(
        "add_mask", bias, {scores, seq.scoreMap()},
        [&](ImplicitLocOpBuilder &body, ValueRange args) {
          Value sum = arith::AddFOp::create(body, args[1], args[0]);
          return arith::SelectOp::create(body, isMinusInfinity(body, args[0]),
                                         args[0], sum);
        });
  }

  /// Appends the lse to `results` if the op has one.
  Value buildSafeSoftmax(Value scores, SmallVectorImpl<Value> &results) {
    AffineMap map = seq.scoreMap(), rows = seq.rowMap();
    Value max = rowMax(scores);
    Value exp = seq.elementwise(
        "exp", {{scores, map}, {max, rows}}, {seq.emptyLike(scores, f32), map},
        [&](ImplicitLocOpBuilder &body, ValueRange args) {
          Value difference = arith::SubFOp::create(body, args[0], args[1]);
          return math::ExpOp::create(body, difference);
        });
    Value sum =
        seq.reduceRows("row_sum", {{exp, map}}, builder.getF32FloatAttr(0.0f),
                       [&](ImplicitLocOpBuilder &body, ValueRange args) {
                         return arith::AddFOp::create(body, args[0], args[1]);
                       });
    Value lse = getLseInit();
    if (lse)
      lse = buildLse(max, sum, lse);
    Value p = seq.elementwise(
        "divide", {{exp, map}, {sum, rows}}, {seq.emptyLike(scores, f32), map},
        [&](ImplicitLocOpBuilder &body, ValueRange args) {
          return arith::DivFOp::create(body, args[0], args[1]);
        });
    p = zeroMaskedRows(p, scores);
    addSink(p, lse);
    if (op.getLse())
      results.push_back(lse);
    return p;
  }

  Value zeroMaskedRows(Value p, Value scores) {
    AffineMap map = seq.scoreMap(), rows = seq.rowMap();
    Value masked = seq.elementwise(
        "masked", {{scores, map}}, {seq.emptyLike(scores, i8), map},
        [&](ImplicitLocOpBuilder &body, ValueRange args) {
          return arith::ExtUIOp::create(body, i8,
                                        isMinusInfinity(body, args[0]));
        });
    Value maskedRows = seq.reduceRows(
        "masked_rows", {{masked, map}}, builder.getI8IntegerAttr(1),
        [&](ImplicitLocOpBuilder &body, ValueRange args) {
          return arith::MinUIOp::create(body, args[0], args[1]);
        });
    return seq.elementwise("where", {{p, map}, {maskedRows, rows}},
                           {seq.emptyLike(p, f32), map},
                           [&](ImplicitLocOpBuilder &body, ValueRange args) {
                             return arith::SelectOp::create(
                                 body, isTrue(body, args[1]),
                                 floatConstant(body, f32, 0.0), args[0]);
                           });
  }

  Value buildLse(Value max, Value sum, Value into) {
    AffineMap identity = builder.getMultiDimIdentityMap(3);
    return seq.elementwise(
        "lse", {{max, identity}, {sum, identity}}, {into, identity},
        [&](ImplicitLocOpBuilder &body, ValueRange args) {
          Value lse = arith::AddFOp::create(body, args[0],
                                            math::LogOp::create(body, args[1]));
          return arith::SelectOp::create(body, isMinusInfinity(body, args[0]),
                                         args[0], lse);
        });
  }
};

struct ConvertAttnToLinalgPass
    : attn::impl::ConvertAttnToLinalgBase<ConvertAttnToLinalgPass> {
  using ConvertAttnToLinalgBase::ConvertAttnToLinalgBase;

  void runOnOperation() override {
    bool isMath = variant == "math";
    if (!isMath && variant != "naive" && variant != "inplace") {
      getOperation().emitError("unknown variant '")
          << variant << "'; known are naive, inplace and math";
      return signalPassFailure();
    }
    WalkResult result = getOperation().walk([&](AttentionOp op) {
      return succeeded(convert(op, isMath)) ? WalkResult::advance()
                                            : WalkResult::interrupt();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }

  static LogicalResult convert(AttentionOp op, bool isMath) {
    if (failed(verifySupported(op)))
      return failure();
    if (op.hasDeviceLengths())
      return op.emitOpError("has lengths that only the device knows (cu_q, "
                            "cu_k, kv_len, block_table), which the unfused "
                            "sequences don't serve; use the fused variant");
    if (op.isQuantized())
      return op.emitOpError("on ")
             << op.getElementType()
             << " has no unfused sequence; use the fused variant on sm_90a, or "
                "convert q, k and v to bf16";
    if (op.hasBufferSemantics())
      return op.emitOpError("is on memrefs; unfused sequences are made from "
                            "tensors, before attn-bufferize");
    op->replaceAllUsesWith(isMath ? MathBuilder(op).build()
                                  : NaiveBuilder(op).build());
    op.erase();
    return success();
  }
};
} // namespace
