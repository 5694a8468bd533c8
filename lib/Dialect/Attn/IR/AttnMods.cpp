//===- AttnMods.cpp - Builders of score_mod and mask_mod regions ----------===//

#include "attn/Dialect/Attn/IR/AttnMods.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

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

/// capture[indices].
static Value load(ImplicitLocOpBuilder &builder, const ModIndices &indices,
                  unsigned capture, ValueRange position) {
  Value source = indices.captures[capture];
  Type element = cast<ShapedType>(source.getType()).getElementType();
  return CaptureLoadOp::create(builder, element, source, position);
}

static Value loadScore(ImplicitLocOpBuilder &builder, const ModIndices &indices,
                       unsigned capture) {
  return load(builder, indices, capture,
              {indices.batch, indices.head, indices.query, indices.key});
}

static Value toF32(ImplicitLocOpBuilder &builder, Value value) {
  if (value.getType().isF32())
    return value;
  return arith::ExtFOp::create(builder, builder.getF32Type(), value);
}

static Value toI32(ImplicitLocOpBuilder &builder, Value value) {
  Type i32 = builder.getI32Type();
  unsigned width = value.getType().getIntOrFloatBitWidth();
  if (width < 32)
    return arith::ExtSIOp::create(builder, i32, value);
  if (width > 32)
    return arith::TruncIOp::create(builder, i32, value);
  return value;
}

static Value conjoin(ImplicitLocOpBuilder &builder,
                     ArrayRef<Value> conditions) {
  Value all = conditions.front();
  for (Value condition : conditions.drop_front())
    all = arith::AndIOp::create(builder, all, condition);
  return all;
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

MaskMod attn::getDilatedWindowMask(int32_t radius, int32_t dilation) {
  return [=](ImplicitLocOpBuilder &builder, const ModIndices &indices) {
    using P = arith::CmpIPredicate;
    Value position = getPosition(builder, indices.query);
    Value distance = arith::SubIOp::create(builder, indices.key, position);
    int32_t reach = radius * dilation;
    Value rest =
        arith::RemSIOp::create(builder, distance, constant(builder, dilation));
    return conjoin(
        builder, {compare(builder, P::sge, distance, constant(builder, -reach)),
                  compare(builder, P::sle, distance, constant(builder, reach)),
                  compare(builder, P::eq, rest, constant(builder, 0))});
  };
}

MaskMod attn::getNeighborhoodMask(int32_t height, int32_t width, int32_t rows,
                                  int32_t columns) {
  return [=](ImplicitLocOpBuilder &builder, const ModIndices &indices) {
    using P = arith::CmpIPredicate;
    Value pixelsPerRow = constant(builder, width);
    // Whether the key's coordinate is within `size` around the query's, moved
    // inside of the image.
    auto isNear = [&](Value query, Value key, int32_t extent, int32_t size) {
      int32_t radius = size / 2;
      Value low = constant(builder, radius);
      Value high = constant(builder, extent - 1 - radius);
      Value center = arith::MinSIOp::create(
          builder, arith::MaxSIOp::create(builder, query, low), high);
      Value distance = arith::SubIOp::create(builder, key, center);
      return conjoin(
          builder,
          {compare(builder, P::sge, distance, constant(builder, -radius)),
           compare(builder, P::sle, distance, constant(builder, radius))});
    };
    auto row = [&](Value pixel) -> Value {
      return arith::DivSIOp::create(builder, pixel, pixelsPerRow);
    };
    auto column = [&](Value pixel) -> Value {
      return arith::RemSIOp::create(builder, pixel, pixelsPerRow);
    };
    // Follows from the others; bounds that are linear let tiles be skipped.
    int32_t band = rows * width;
    Value distance = arith::SubIOp::create(builder, indices.key, indices.query);
    return conjoin(
        builder,
        {compare(builder, P::sge, distance, constant(builder, -band)),
         compare(builder, P::sle, distance, constant(builder, band)),
         isNear(row(indices.query), row(indices.key), height, rows),
         isNear(column(indices.query), column(indices.key), width, columns)});
  };
}

MaskMod attn::getTensorMask(unsigned capture) {
  return [=](ImplicitLocOpBuilder &builder, const ModIndices &indices) {
    Value keep = loadScore(builder, indices, capture);
    if (keep.getType().isInteger(1))
      return keep;
    Value zero = arith::ConstantOp::create(
        builder, cast<TypedAttr>(builder.getZeroAttr(keep.getType())));
    return compare(builder, arith::CmpIPredicate::ne, keep, zero);
  };
}

MaskMod attn::getKeyPaddingMask(unsigned capture) {
  return [=](ImplicitLocOpBuilder &builder, const ModIndices &indices) {
    Value length = load(builder, indices, capture, indices.batch);
    return compare(builder, arith::CmpIPredicate::slt, indices.key,
                   toI32(builder, length));
  };
}

MaskMod attn::getDocumentMask(unsigned queryDocuments, unsigned keyDocuments) {
  return [=](ImplicitLocOpBuilder &builder, const ModIndices &indices) {
    Value query =
        load(builder, indices, queryDocuments, {indices.batch, indices.query});
    Value key =
        load(builder, indices, keyDocuments, {indices.batch, indices.key});
    return compare(builder, arith::CmpIPredicate::eq, query, key);
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

/// score + slope * (key - position), or minus slope * |key - position|.
static Value addALiBi(ImplicitLocOpBuilder &builder, ALiBiForm form,
                      Value score, Value slope, const ModIndices &indices) {
  Value position = getPosition(builder, indices.query);
  Value signedDistance = arith::SIToFPOp::create(
      builder, builder.getF32Type(),
      arith::SubIOp::create(builder, indices.key, position));
  if (form == ALiBiForm::Symmetric)
    signedDistance = arith::NegFOp::create(
        builder, math::AbsFOp::create(builder, signedDistance).getResult());
  Value bias = arith::MulFOp::create(builder, slope, signedDistance);
  return arith::AddFOp::create(builder, score, bias);
}

ScoreMod attn::getALiBi(ALiBiForm form, int64_t numHeads) {
  return [=](ImplicitLocOpBuilder &builder, Value score,
             const ModIndices &indices) {
    Value slope = getALiBiSlope(builder, indices.head, numHeads);
    return addALiBi(builder, form, score, slope, indices);
  };
}

ScoreMod attn::getALiBiFromSlopes(ALiBiForm form, unsigned capture) {
  return [=](ImplicitLocOpBuilder &builder, Value score,
             const ModIndices &indices) {
    Value slope = load(builder, indices, capture, indices.head);
    return addALiBi(builder, form, score, toF32(builder, slope), indices);
  };
}

ScoreMod attn::getBias(unsigned capture) {
  return [=](ImplicitLocOpBuilder &builder, Value score,
             const ModIndices &indices) -> Value {
    Value bias = toF32(builder, loadScore(builder, indices, capture));
    return arith::AddFOp::create(builder, score, bias);
  };
}

static Value squash(ImplicitLocOpBuilder &builder, Value score, Value cap,
                    Value inverse) {
  Value scaled = arith::MulFOp::create(builder, score, inverse);
  Value squashed = math::TanhOp::create(builder, scaled);
  return arith::MulFOp::create(builder, squashed, cap);
}

ScoreMod attn::getSoftcap(float cap) {
  return [=](ImplicitLocOpBuilder &builder, Value score, const ModIndices &) {
    Value inverse = constant(builder, 1.0f / cap);
    return squash(builder, score, constant(builder, cap), inverse);
  };
}

ScoreMod attn::getHeadSoftcap(unsigned capture) {
  return [=](ImplicitLocOpBuilder &builder, Value score,
             const ModIndices &indices) {
    Value cap = toF32(builder, load(builder, indices, capture, indices.head));
    Value inverse =
        arith::DivFOp::create(builder, constant(builder, 1.0f), cap);
    return squash(builder, score, cap, inverse);
  };
}

/// The least distance of T5's bucket `exact + step` of `numBuckets` in one
/// direction, of which the first half, `exact`, have one distance each.
static int32_t getT5Threshold(int32_t exact, int32_t numBuckets,
                              int32_t maxDistance, int32_t step) {
  double ratio = static_cast<double>(maxDistance) / exact;
  double least =
      exact * std::pow(ratio, static_cast<double>(step) / (numBuckets - exact));
  // A power that is an integer may be computed a little too large.
  return static_cast<int32_t>(std::ceil(least - 1e-6));
}

ScoreMod attn::getT5Bias(unsigned capture, int32_t numBuckets,
                         int32_t maxDistance, bool bidirectional) {
  return [=](ImplicitLocOpBuilder &builder, Value score,
             const ModIndices &indices) -> Value {
    using P = arith::CmpIPredicate;
    Value zero = constant(builder, 0);
    Value position = getPosition(builder, indices.query);
    Value distance = arith::SubIOp::create(builder, position, indices.key);
    int32_t count = bidirectional ? numBuckets / 2 : numBuckets;
    Value magnitude = distance;
    if (bidirectional)
      magnitude = arith::SubIOp::create(
          builder, arith::MaxSIOp::create(builder, position, indices.key),
          arith::MinSIOp::create(builder, position, indices.key));
    else
      magnitude = arith::MaxSIOp::create(builder, distance, zero);
    int32_t exact = count / 2;
    Value bucket =
        arith::MinSIOp::create(builder, magnitude, constant(builder, exact));
    for (int32_t step = 1; step < count - exact; ++step) {
      int32_t least = getT5Threshold(exact, count, maxDistance, step);
      Value isFurther =
          compare(builder, P::sge, magnitude, constant(builder, least));
      bucket = arith::AddIOp::create(
          builder, bucket,
          arith::ExtUIOp::create(builder, builder.getI32Type(), isFurther));
    }
    if (bidirectional) {
      Value isBehind = compare(builder, P::slt, distance, zero);
      Value first = arith::SelectOp::create(builder, isBehind,
                                            constant(builder, count), zero);
      bucket = arith::AddIOp::create(builder, bucket, first);
    }
    Value bias = load(builder, indices, capture, {bucket, indices.head});
    return arith::AddFOp::create(builder, score, toF32(builder, bias));
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
  return {args[0], args[1], args[2], args[3], args.drop_front(4)};
}

void attn::setMaskMod(AttentionOp op, const MaskMod &mod) {
  ImplicitLocOpBuilder builder(op.getLoc(), op.getContext());
  SmallVector<Type> types(4, builder.getI32Type());
  llvm::append_range(types, op.getCaptures().getTypes());
  Block *block = resetRegion(builder, op.getMaskMod(), types);
  YieldOp::create(builder, mod(builder, getIndices(block->getArguments())));
}

void attn::setScoreMod(AttentionOp op, const ScoreMod &mod) {
  ImplicitLocOpBuilder builder(op.getLoc(), op.getContext());
  SmallVector<Type> types(5, builder.getI32Type());
  types.front() = builder.getF32Type();
  llvm::append_range(types, op.getCaptures().getTypes());
  Block *block = resetRegion(builder, op.getScoreMod(), types);
  YieldOp::create(builder, mod(builder, block->getArgument(0),
                               getIndices(block->getArguments().drop_front())));
}
