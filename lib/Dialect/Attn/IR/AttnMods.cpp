//===- AttnMods.cpp - Builders of score_mod and mask_mod regions ----------===//

#include "attn/Dialect/Attn/IR/AttnMods.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::attn;

static Value constant(ImplicitLocOpBuilder &builder, int32_t value) {
  return arith::ConstantOp::create(builder, builder.getI32IntegerAttr(value));
}

static Value constant(ImplicitLocOpBuilder &builder, float value) {
  return arith::ConstantOp::create(builder, builder.getF32FloatAttr(value));
}

static Value compare(ImplicitLocOpBuilder &builder,
                     arith::CmpIPredicate predicate, Value a, Value b) {
  return arith::CmpIOp::create(builder, predicate, a, b);
}

/// query + kv_len - q_len: the query's own position among the keys.
static Value getPosition(ImplicitLocOpBuilder &builder, Value query) {
  Value kvLen = KVLenOp::create(builder, builder.getI32Type());
  Value qLen = QLenOp::create(builder, builder.getI32Type());
  Value shift = arith::SubIOp::create(builder, kvLen, qLen);
  return arith::AddIOp::create(builder, query, shift);
}

//===----------------------------------------------------------------------===//
// Masks
//===----------------------------------------------------------------------===//

MaskMod attn::getCausalMask() { return getSlidingWindowMask(-1, 0); }

MaskMod attn::getCausalTopLeftMask() {
  return [](ImplicitLocOpBuilder &builder, const ModIndices &indices) {
    return compare(builder, arith::CmpIPredicate::sle, indices.key,
                   indices.query);
  };
}

MaskMod attn::getSlidingWindowMask(int32_t left, int32_t right) {
  return [=](ImplicitLocOpBuilder &builder, const ModIndices &indices) {
    if (left < 0 && right < 0)
      return arith::ConstantIntOp::create(builder, 1, /*width=*/1).getResult();
    Value position = getPosition(builder, indices.query);
    if (left < 0 && right == 0)
      return compare(builder, arith::CmpIPredicate::sle, indices.key, position);
    // The distance can't overflow, unlike position + right.
    Value distance = arith::SubIOp::create(builder, indices.key, position);
    Value visible;
    if (left >= 0)
      visible = compare(builder, arith::CmpIPredicate::sge, distance,
                        constant(builder, -left));
    if (right < 0)
      return visible;
    Value notAfter = compare(builder, arith::CmpIPredicate::sle, distance,
                             constant(builder, right));
    if (!visible)
      return notAfter;
    return arith::AndIOp::create(builder, visible, notAfter).getResult();
  };
}

MaskMod attn::getPrefixMask(int32_t length) {
  return [=](ImplicitLocOpBuilder &builder, const ModIndices &indices) {
    return compare(builder, arith::CmpIPredicate::slt, indices.key,
                   constant(builder, length));
  };
}

MaskMod attn::intersectMasks(MaskMod first, MaskMod second) {
  return [=](ImplicitLocOpBuilder &builder, const ModIndices &indices) {
    Value a = first(builder, indices), b = second(builder, indices);
    return arith::AndIOp::create(builder, a, b).getResult();
  };
}

MaskMod attn::uniteMasks(MaskMod first, MaskMod second) {
  return [=](ImplicitLocOpBuilder &builder, const ModIndices &indices) {
    Value a = first(builder, indices), b = second(builder, indices);
    return arith::OrIOp::create(builder, a, b).getResult();
  };
}

//===----------------------------------------------------------------------===//
// Scores
//===----------------------------------------------------------------------===//

/// log2 of the slope of `head`: start + step * head.
static Value getExponent(ImplicitLocOpBuilder &builder, Value head, float start,
                         float step) {
  Value index = arith::SIToFPOp::create(builder, builder.getF32Type(), head);
  Value scaled = arith::MulFOp::create(builder, index, constant(builder, step));
  return arith::AddFOp::create(builder, scaled, constant(builder, start));
}

static Value getALiBiSlope(ImplicitLocOpBuilder &builder, Value head,
                           int64_t numHeads) {
  int64_t n =
      llvm::bit_floor(static_cast<uint64_t>(std::max<int64_t>(numHeads, 1)));
  float step = 8.0f / n;
  Value exponent = getExponent(builder, head, -step, -step);
  if (n != numHeads) {
    // -4 (2 (h - n) + 1) / n = 8 - 4 / n - 8 h / n
    Value between = getExponent(builder, head, 8.0f - step / 2, -step);
    Value isRegular = compare(builder, arith::CmpIPredicate::slt, head,
                              constant(builder, static_cast<int32_t>(n)));
    exponent = arith::SelectOp::create(builder, isRegular, exponent, between);
  }
  return math::Exp2Op::create(builder, exponent);
}

ScoreMod attn::getALiBi(ALiBiForm form, int64_t numHeads) {
  return [=](ImplicitLocOpBuilder &builder, Value score,
             const ModIndices &indices) {
    Value slope = getALiBiSlope(builder, indices.head, numHeads);
    Value position = getPosition(builder, indices.query);
    Value distance =
        form == ALiBiForm::Causal
            ? arith::SubIOp::create(builder, indices.key, position).getResult()
            : arith::SubIOp::create(
                  builder,
                  arith::MinSIOp::create(builder, indices.key, position),
                  arith::MaxSIOp::create(builder, indices.key, position))
                  .getResult();
    Value signedDistance =
        arith::SIToFPOp::create(builder, builder.getF32Type(), distance);
    Value bias = arith::MulFOp::create(builder, slope, signedDistance);
    return arith::AddFOp::create(builder, score, bias).getResult();
  };
}

ScoreMod attn::getSoftcap(float cap) {
  return [=](ImplicitLocOpBuilder &builder, Value score, const ModIndices &) {
    Value scaled =
        arith::MulFOp::create(builder, score, constant(builder, 1.0f / cap));
    Value squashed = math::TanhOp::create(builder, scaled);
    return arith::MulFOp::create(builder, squashed, constant(builder, cap))
        .getResult();
  };
}

ScoreMod attn::chainScoreMods(ScoreMod first, ScoreMod second) {
  return [=](ImplicitLocOpBuilder &builder, Value score,
             const ModIndices &indices) {
    return second(builder, first(builder, score, indices), indices);
  };
}

//===----------------------------------------------------------------------===//
// Regions
//===----------------------------------------------------------------------===//

/// Empties the region and gives it one block with arguments of `types`.
static Block *resetRegion(ImplicitLocOpBuilder &builder, Region &region,
                          TypeRange types) {
  region.getBlocks().clear();
  SmallVector<Location> locs(types.size(), builder.getLoc());
  return builder.createBlock(&region, region.end(), types, locs);
}

static ModIndices getIndices(ValueRange args) {
  return {args[0], args[1], args[2], args[3]};
}

void attn::setMaskMod(AttentionOp op, const MaskMod &mod) {
  ImplicitLocOpBuilder builder(op.getLoc(), op.getContext());
  SmallVector<Type> types(4, builder.getI32Type());
  Block *block = resetRegion(builder, op.getMaskMod(), types);
  YieldOp::create(builder, mod(builder, getIndices(block->getArguments())));
}

void attn::setScoreMod(AttentionOp op, const ScoreMod &mod) {
  ImplicitLocOpBuilder builder(op.getLoc(), op.getContext());
  SmallVector<Type> types(5, builder.getI32Type());
  types.front() = builder.getF32Type();
  Block *block = resetRegion(builder, op.getScoreMod(), types);
  YieldOp::create(builder, mod(builder, block->getArgument(0),
                               getIndices(block->getArguments().drop_front())));
}
