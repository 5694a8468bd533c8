//===- AttnOps.cpp - Operations of the attn dialect -----------------------===//

#include "attn/Dialect/Attn/IR/AttnOps.h"
#include "attn/Dialect/ModRegion.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"
#include <cmath>

using namespace mlir;
using namespace mlir::attn;

static ParseResult parseIsolatedModRegion(OpAsmParser &parser, Region &region) {
  return parseModRegion(parser, region, /*isIsolated=*/true);
}

static void printIsolatedModRegion(OpAsmPrinter &printer, Operation *op,
                                   Region &region) {
  printModRegion(printer, op, region);
}

#define GET_OP_CLASSES
#include "attn/Dialect/Attn/IR/AttnOps.cpp.inc"

//===----------------------------------------------------------------------===//
// AttentionOp
//===----------------------------------------------------------------------===//

MutableOperandRange AttentionOp::getDpsInitsMutable() {
  // The inits, o and lse, are the last operand segments.
  unsigned numInits = getLse() ? 2 : 1;
  return MutableOperandRange(*this, getNumOperands() - numInits, numInits);
}

static int64_t getDim(Value value, unsigned dim) {
  return cast<ShapedType>(value.getType()).getDimSize(dim);
}

int64_t AttentionOp::getNumQueryHeads() { return getDim(getQ(), 1); }
int64_t AttentionOp::getNumKVHeads() { return getDim(getK(), 1); }
int64_t AttentionOp::getQKHeadDim() { return getDim(getQ(), 3); }
int64_t AttentionOp::getVHeadDim() { return getDim(getV(), 3); }
Type AttentionOp::getElementType() {
  return cast<ShapedType>(getQ().getType()).getElementType();
}

Type AttentionOp::getOutputElementType() {
  return cast<ShapedType>(getO().getType()).getElementType();
}

std::optional<float> AttentionOp::getConstantScale() {
  if (getScaleValue())
    return std::nullopt;
  if (std::optional<APFloat> scale = getScale())
    return scale->convertToFloat();
  int64_t dim = getQKHeadDim();
  // With no head dimension every score is 0, whatever the scale.
  return dim == 0 ? 1.0f : static_cast<float>(1.0 / std::sqrt((double)dim));
}

bool AttentionOp::readsCapturesByPosition() {
  for (Region *region : {&getScoreMod(), &getMaskMod()}) {
    if (region->empty())
      continue;
    // A score_mod takes the score first; batch and head follow.
    unsigned first = region == &getScoreMod() ? 1 : 0;
    llvm::SmallPtrSet<Value, 16> varying;
    varying.insert(region->getArgument(first + 2));
    varying.insert(region->getArgument(first + 3));
    if (first == 1)
      varying.insert(region->getArgument(0));
    for (Operation &op : region->front()) {
      if (llvm::none_of(op.getOperands(),
                        [&](Value value) { return varying.contains(value); }))
        continue;
      if (isa<CaptureLoadOp>(op))
        return true;
      for (Value result : op.getResults())
        varying.insert(result);
    }
  }
  return false;
}

SmallVector<SequenceCount> AttentionOp::getSequenceCounts() {
  SmallVector<SequenceCount> counts;
  if (getCuQ())
    counts.push_back({getCuQ(), 0, 1, "cu_q"});
  else
    counts.push_back({getQ(), 0, 0, "q"});
  if (getCuK())
    counts.push_back({getCuK(), 0, 1, "cu_k"});
  else if (getBlockTable())
    counts.push_back({getBlockTable(), 0, 0, "block_table"});
  else
    counts.push_back({getK(), 0, 0, "k"});
  if (getKvLen())
    counts.push_back({getKvLen(), 0, 0, "kv_len"});
  return counts;
}

bool AttentionOp::hasBufferSemantics() {
  return isa<MemRefType>(getO().getType());
}

/// On memrefs a destination-style op reads its inputs and writes its inits.
template <typename OpTy>
static void addBufferEffects(
    OpTy op, SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
                 &effects) {
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<MemRefType>(operand.get().getType()))
      continue;
    if (op.isDpsInit(&operand))
      effects.emplace_back(MemoryEffects::Write::get(), &operand);
    else
      effects.emplace_back(MemoryEffects::Read::get(), &operand);
  }
}

void AttentionOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  addBufferEffects(*this, effects);
}

/// Sizes agree if they are equal or either is dynamic.
static bool compatible(int64_t a, int64_t b) {
  return ShapedType::isDynamic(a) || ShapedType::isDynamic(b) || a == b;
}

static LogicalResult verifySameDim(AttentionOp op, StringRef what, Value a,
                                   unsigned aDim, StringRef aName, Value b,
                                   unsigned bDim, StringRef bName) {
  if (compatible(getDim(a, aDim), getDim(b, bDim)))
    return success();
  return op.emitOpError() << what << " differ: " << aName << " has "
                          << getDim(a, aDim) << ", " << bName << " has "
                          << getDim(b, bDim);
}

static LogicalResult verifySameSequenceCounts(AttentionOp op) {
  SmallVector<SequenceCount> counts = op.getSequenceCounts();
  auto getCount = [](const SequenceCount &count) {
    int64_t size = getDim(count.operand, count.dim);
    return ShapedType::isDynamic(size) ? size : size - count.excess;
  };
  for (const SequenceCount &first : counts)
    for (const SequenceCount &second : counts)
      if (!compatible(getCount(first), getCount(second)))
        return op.emitOpError("numbers of sequences differ: ")
               << first.name << " is for " << getCount(first) << ", "
               << second.name << " for " << getCount(second);
  return success();
}

/// Checks an optional operand that holds i32 numbers.
static LogicalResult verifyNumbers(AttentionOp op, Value operand,
                                   StringRef name, StringRef shape,
                                   int64_t rank) {
  if (!operand)
    return success();
  auto type = cast<ShapedType>(operand.getType());
  if (type.getRank() == rank && type.getElementType().isSignlessInteger(32))
    return success();
  return op.emitOpError() << name << " must hold i32 numbers of shape " << shape
                          << ", not be " << type;
}

/// The tensors that offsets divide hold all sequences in one batch.
static LogicalResult verifyPacked(AttentionOp op, Value offsets,
                                  StringRef offsetsName, Value packed,
                                  StringRef name) {
  if (!offsets || getDim(packed, 0) == 1)
    return success();
  return op.emitOpError() << name << " must have a batch size of 1 in its type "
                          << "with " << offsetsName
                          << ", which divides its rows into sequences, not be "
                          << packed.getType();
}

static LogicalResult verifyPages(AttentionOp op) {
  if (!op.getBlockTable())
    return success();
  if (!op.getKvLen())
    return op.emitOpError("block_table needs kv_len: the pages don't say how "
                          "many of their rows are keys");
  if (op.getCuK())
    return op.emitOpError("has block_table and cu_k, but keys lie either in "
                          "pages or in one packed tensor");
  constexpr int64_t kMaxPage = 256;
  int64_t page = getDim(op.getK(), 2);
  if (page > 0 && page <= kMaxPage && llvm::isPowerOf2_64(page))
    return success();
  InFlightDiagnostic diag = op.emitOpError(
      "with block_table, k and v are pages, whose number of rows must be a "
      "power of two from 1 to ");
  diag << kMaxPage << " in the type, not ";
  if (ShapedType::isDynamic(page))
    return diag << "dynamic";
  return diag << page;
}

static LogicalResult verifySequences(AttentionOp op) {
  if (failed(verifyNumbers(op, op.getCuQ(), "cu_q", "[S + 1]", 1)) ||
      failed(verifyNumbers(op, op.getCuK(), "cu_k", "[S + 1]", 1)) ||
      failed(verifyNumbers(op, op.getKvLen(), "kv_len", "[S]", 1)) ||
      failed(verifyNumbers(op, op.getBlockTable(), "block_table", "[S, P]", 2)))
    return failure();
  for (auto [offsets, name] :
       {std::pair(op.getCuQ(), "cu_q"), {op.getCuK(), "cu_k"}})
    if (offsets && getDim(offsets, 0) == 0)
      return op.emitOpError()
             << name << " must hold at least the 0 that it begins with";
  if (failed(verifyPacked(op, op.getCuQ(), "cu_q", op.getQ(), "q")) ||
      failed(verifyPacked(op, op.getCuK(), "cu_k", op.getK(), "k")) ||
      failed(verifyPages(op)))
    return failure();
  return verifySameSequenceCounts(op);
}

static LogicalResult verifyShapes(AttentionOp op) {
  Value q = op.getQ(), k = op.getK(), v = op.getV(), o = op.getO();
  if (!op.hasDeviceLengths() &&
      failed(verifySameDim(op, "batch sizes", q, 0, "q", k, 0, "k")))
    return failure();
  if (failed(verifySameDim(op, "batch sizes", k, 0, "k", v, 0, "v")) ||
      failed(verifySameDim(op, "batch sizes", q, 0, "q", o, 0, "o")) ||
      failed(verifySameDim(op, "head counts", k, 1, "k", v, 1, "v")) ||
      failed(verifySameDim(op, "head counts", q, 1, "q", o, 1, "o")) ||
      failed(verifySameDim(op, "query lengths", q, 2, "q", o, 2, "o")) ||
      failed(verifySameDim(op, "key lengths", k, 2, "k", v, 2, "v")) ||
      failed(verifySameDim(op, "head dimensions", q, 3, "q", k, 3, "k")) ||
      failed(verifySameDim(op, "head dimensions", v, 3, "v", o, 3, "o")))
    return failure();
  for (auto [value, name] : {std::pair(q, "q"), {k, "k"}, {v, "v"}, {o, "o"}}) {
    if (ShapedType::isDynamic(getDim(value, 1)))
      return op.emitOpError() << name << " must have a static number of heads";
    if (ShapedType::isDynamic(getDim(value, 3)))
      return op.emitOpError() << name << " must have a static head dimension";
  }
  int64_t hq = op.getNumQueryHeads(), hkv = op.getNumKVHeads();
  if (hkv == 0 ? hq != 0 : hq % hkv != 0)
    return op.emitOpError()
           << "the number of query heads (" << hq
           << ") must be a multiple of the number of key/value heads (" << hkv
           << ")";
  if (Value lse = op.getLse()) {
    auto type = cast<ShapedType>(lse.getType());
    if (type.getRank() != 3 || !type.getElementType().isF32())
      return op.emitOpError("lse must be a rank-3 f32 value [B, Hq, Nq], not ")
             << type;
    for (unsigned dim : {0, 1, 2})
      if (failed(verifySameDim(op, "sizes", q, dim, "q", lse, dim, "lse")))
        return failure();
  }
  return success();
}

static LogicalResult verifySink(AttentionOp op) {
  if (!op.getSink())
    return success();
  auto type = cast<ShapedType>(op.getSink().getType());
  Type element = type.getElementType();
  if (type.getRank() == 1 && type.getDimSize(0) == op.getNumQueryHeads() &&
      (element.isF16() || element.isBF16() || element.isF32()))
    return success();
  return op.emitOpError("sink must hold one f16, bf16 or f32 logit for each of "
                        "the ")
         << op.getNumQueryHeads() << " query heads, not be " << type;
}

static bool isFloat8(Type type) {
  return isa<Float8E4M3FNType, Float8E5M2Type>(type);
}

/// 8-bit inputs, whose types may differ, and an output of a wider type.
static LogicalResult verifyQuantizedTypes(AttentionOp op) {
  for (auto [value, name] : {std::pair(op.getK(), "k"), {op.getV(), "v"}}) {
    Type type = cast<ShapedType>(value.getType()).getElementType();
    if (!isFloat8(type))
      return op.emitOpError("with q of ")
             << op.getElementType() << ", " << name
             << " must be of f8E4M3FN or f8E5M2 too, not of " << type;
  }
  Type output = op.getOutputElementType();
  if (output.isF16() || output.isBF16() || output.isF32())
    return success();
  return op.emitOpError("with q of ")
         << op.getElementType() << ", o must be of f16, bf16 or f32, not of "
         << output;
}

/// `scale` is null or holds one f32, one for each head, or one for each batch
/// and head of `value`.
static LogicalResult verifyInputScale(AttentionOp op, Value scale,
                                      StringRef name, Value value) {
  if (!scale)
    return success();
  if (!isFloat8(op.getElementType()))
    return op.emitOpError() << name << " is for q, k and v of f8E4M3FN or "
                            << "f8E5M2, not of " << op.getElementType()
                            << "; use scale, or scale the tensor";
  auto type = cast<ShapedType>(scale.getType());
  int64_t heads = getDim(value, 1);
  bool isForTensorOrHeads =
      type.getRank() == 1 &&
      (type.getDimSize(0) == 1 || type.getDimSize(0) == heads);
  bool isForBatches = type.getRank() == 2 && type.getDimSize(1) == heads &&
                      compatible(type.getDimSize(0), getDim(value, 0));
  if (type.getElementType().isF32() && (isForTensorOrHeads || isForBatches))
    return success();
  return op.emitOpError() << name << " must hold f32 of shape [1], [" << heads
                          << "] (heads) or [B, " << heads << "], not be "
                          << type;
}

static LogicalResult verifyInputScales(AttentionOp op) {
  return success(
      succeeded(verifyInputScale(op, op.getQScale(), "q_scale", op.getQ())) &&
      succeeded(verifyInputScale(op, op.getKScale(), "k_scale", op.getK())) &&
      succeeded(verifyInputScale(op, op.getVScale(), "v_scale", op.getV())));
}

static LogicalResult verifyElementTypes(AttentionOp op) {
  Type type = op.getElementType();
  if (!isa<FloatType>(type))
    return op.emitOpError("q must have a floating-point element type, not ")
           << type;
  if (isFloat8(type))
    return verifyQuantizedTypes(op);
  for (auto [value, name] :
       {std::pair(op.getK(), "k"), {op.getV(), "v"}, {op.getO(), "o"}}) {
    Type other = cast<ShapedType>(value.getType()).getElementType();
    if (other != type)
      return op.emitOpError() << "element types differ: q has " << type << ", "
                              << name << " has " << other;
  }
  return success();
}

static LogicalResult verifyForm(AttentionOp op) {
  bool isMemory = op.hasBufferSemantics();
  for (Value operand : op->getOperands())
    if (isa<ShapedType>(operand.getType()) &&
        isa<MemRefType>(operand.getType()) != isMemory)
      return op.emitOpError("mixes tensors and memrefs");
  SmallVector<Type> expected;
  if (!isMemory)
    for (Value init : op.getDpsInits())
      expected.push_back(init.getType());
  if (TypeRange(op.getResultTypes()) != TypeRange(expected))
    return op.emitOpError("must have the types of its outs as results (none "
                          "for memrefs), but has (")
           << op.getResultTypes() << ")";
  return success();
}

/// The generic form can give a required operand any number of values, which
/// the generated verifier doesn't check.
static LogicalResult verifyRequiredOperands(AttentionOp op) {
  static constexpr std::pair<unsigned, StringLiteral> kRequired[] = {
      {AttentionOp::odsIndex_q, "q"},
      {AttentionOp::odsIndex_k, "k"},
      {AttentionOp::odsIndex_v, "v"},
      {AttentionOp::odsIndex_o, "o"}};
  for (auto [index, name] : kRequired)
    if (op.getODSOperandIndexAndLength(index).second != 1)
      return op.emitOpError("must have one ")
             << name << " operand: see operandSegmentSizes";
  return success();
}

static LogicalResult verifyShortSchedules(AttentionOp op) {
  if (!op.getShortSchedulesAttr())
    return success();
  if (!op.getScheduleAttr())
    return op.emitOpError("has short_schedules but no schedule for longer "
                          "sequences");
  int64_t previous = 0;
  for (auto entry :
       op.getShortSchedulesAttr().getAsRange<ShortScheduleAttr>()) {
    if (entry.getMaxQLen() <= previous)
      return op.emitOpError("short_schedules: max_q_len must increase, but ")
             << entry.getMaxQLen() << " follows " << previous;
    previous = entry.getMaxQLen();
  }
  return success();
}

LogicalResult AttentionOp::verify() {
  if (failed(verifyRequiredOperands(*this)) || failed(verifyForm(*this)) ||
      failed(verifyShapes(*this)) || failed(verifyElementTypes(*this)) ||
      failed(verifySink(*this)) || failed(verifyInputScales(*this)) ||
      failed(verifySequences(*this)))
    return failure();
  if (getScaleValue() && getScaleAttr())
    return emitOpError("has both a scale attribute and a scale operand");
  if (std::optional<APFloat> scale = getScale(); scale && !scale->isFinite())
    return emitOpError("scale must be finite");
  return verifyShortSchedules(*this);
}

/// Ops besides arith and math that a mod region may hold.
static bool isAttnModOp(Operation *op) {
  return isa<QLenOp, KVLenOp, CaptureLoadOp>(op);
}

static LogicalResult verifyCaptureSize(CaptureLoadOp load,
                                       const CaptureBound &bound) {
  int64_t size = getDim(load.getSource(), bound.dim);
  int64_t needed = getDim(bound.sized, bound.sizedDim);
  if (ShapedType::isDynamic(size) || ShapedType::isDynamic(needed))
    return success();
  needed -= bound.excess;
  if (size >= needed)
    return success();
  return load.emitOpError("indexes dimension ")
         << bound.dim << ", which has " << size << " elements, by "
         << bound.index << "; it needs the " << bound.size << ", " << needed
         << ", or 1 to be broadcast";
}

static LogicalResult verifyCaptureSizes(AttentionOp op) {
  WalkResult result = op.walk([&](CaptureLoadOp load) {
    for (const CaptureBound &bound : load.getBounds())
      if (failed(verifyCaptureSize(load, bound)))
        return WalkResult::interrupt();
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

static LogicalResult verifyDivisor(Operation *op) {
  if (!isa<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp,
           arith::FloorDivSIOp, arith::CeilDivSIOp, arith::CeilDivUIOp>(op) ||
      !matchPattern(op->getOperand(1), m_Zero()))
    return success();
  return op->emitOpError("divides by the constant 0");
}

static LogicalResult verifyShift(Operation *op) {
  APInt amount;
  if (!isa<arith::ShLIOp, arith::ShRSIOp, arith::ShRUIOp>(op) ||
      !matchPattern(op->getOperand(1), m_ConstantInt(&amount)))
    return success();
  Type type = op->getOperand(0).getType();
  unsigned width = type.isIndex() ? IndexType::kInternalStorageBitWidth
                                  : type.getIntOrFloatBitWidth();
  if (amount.ult(width))
    return success();
  return op->emitOpError("shifts ")
         << type << " by the constant " << amount.getSExtValue()
         << "; it must be from 0 to " << width - 1;
}

/// Refuses arithmetic that never has a value.
static LogicalResult verifyConstantOperands(AttentionOp op) {
  WalkResult result = op.walk([](Operation *inner) {
    return WalkResult(success(succeeded(verifyDivisor(inner)) &&
                              succeeded(verifyShift(inner))));
  });
  return failure(result.wasInterrupted());
}

LogicalResult AttentionOp::verifyRegions() {
  Type f32 = Float32Type::get(getContext());
  Type i32 = IntegerType::get(getContext(), 32);
  Type i1 = IntegerType::get(getContext(), 1);
  SmallVector<Type> scoreArgs = {f32, i32, i32, i32, i32};
  SmallVector<Type> maskArgs = {i32, i32, i32, i32};
  llvm::append_range(scoreArgs, getCaptures().getTypes());
  llvm::append_range(maskArgs, getCaptures().getTypes());
  if (hasScoreMod() && failed(verifyModRegion(getScoreMod(), "score_mod",
                                              scoreArgs, f32, isAttnModOp)))
    return failure();
  if (hasMaskMod() && failed(verifyModRegion(getMaskMod(), "mask_mod", maskArgs,
                                             i1, isAttnModOp)))
    return failure();
  if (failed(verifyConstantOperands(*this)))
    return failure();
  return verifyCaptureSizes(*this);
}

namespace {
/// A mask_mod that is always true, or a score_mod that yields its score, says
/// nothing.
struct DropTrivialMods : OpRewritePattern<AttentionOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(AttentionOp op,
                                PatternRewriter &rewriter) const override {
    bool dropScore = op.hasScoreMod() && yieldsItsScore(op.getScoreMod());
    bool dropMask = op.hasMaskMod() && yieldsTrue(op.getMaskMod());
    if (!dropScore && !dropMask)
      return failure();
    rewriter.modifyOpInPlace(op, [&] {
      if (dropScore)
        rewriter.eraseBlock(&op.getScoreMod().front());
      if (dropMask)
        rewriter.eraseBlock(&op.getMaskMod().front());
    });
    return success();
  }

  static bool yieldsItsScore(Region &region) {
    return region.front().back().getOperand(0) == region.getArgument(0);
  }
  static bool yieldsTrue(Region &region) {
    return matchPattern(region.front().back().getOperand(0), m_One());
  }
};

/// A constant scale operand becomes the attribute.
struct FoldScale : OpRewritePattern<AttentionOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(AttentionOp op,
                                PatternRewriter &rewriter) const override {
    FloatAttr constant;
    if (!op.getScaleValue() ||
        !matchPattern(op.getScaleValue(), m_Constant(&constant)) ||
        !constant.getValue().isFinite())
      return failure();
    rewriter.modifyOpInPlace(op, [&] {
      op.getScaleValueMutable().clear();
      op.setScaleAttr(constant);
    });
    return success();
  }
};
} // namespace

void AttentionOp::getCanonicalizationPatterns(RewritePatternSet &results,
                                              MLIRContext *context) {
  results.add<DropTrivialMods, FoldScale>(context);
}

//===----------------------------------------------------------------------===//
// Ops of the regions
//===----------------------------------------------------------------------===//

static LogicalResult verifyInAttention(Operation *op) {
  if (isa_and_present<AttentionOp>(op->getParentOp()))
    return success();
  return op->emitOpError(
      "is legal only in the score_mod or mask_mod of attn.attention");
}

LogicalResult QLenOp::verify() { return verifyInAttention(*this); }
LogicalResult KVLenOp::verify() { return verifyInAttention(*this); }

SmallVector<CaptureBound> CaptureLoadOp::getBounds() {
  SmallVector<CaptureBound> bounds;
  auto attention = dyn_cast<AttentionOp>((*this)->getParentOp());
  if (!attention)
    return bounds;
  Value q = attention.getQ(), k = attention.getK();
  SequenceCount sequences = attention.getSequenceCounts().front();
  StringRef sequencesName =
      attention.hasDeviceLengths() ? "number of sequences" : "batch size";
  // Lengths that only the device knows are no bound.
  Value queries = attention.getCuQ() ? Value() : q;
  Value keys = attention.getCuK() || attention.getKvLen() ? Value() : k;
  const CaptureBound kinds[] = {{0, sequences.operand, sequences.dim,
                                 sequences.excess, "b", sequencesName},
                                {0, q, 1, 0, "h", "number of query heads"},
                                {0, queries, 2, 0, "q_idx", "query length"},
                                {0, keys, 2, 0, "kv_idx", "key length"}};
  Region *region = (*this)->getParentRegion();
  // A score_mod takes the score before its indices.
  unsigned first = region == &attention.getScoreMod() ? 1 : 0;
  for (auto [dim, index] : llvm::enumerate(getIndices())) {
    auto argument = dyn_cast<BlockArgument>(index);
    if (!argument || isBroadcast(dim))
      continue;
    CaptureBound bound = kinds[argument.getArgNumber() - first];
    bound.dim = dim;
    if (bound.sized)
      bounds.push_back(bound);
  }
  return bounds;
}

LogicalResult CaptureLoadOp::verify() {
  Operation *parent = (*this)->getParentOp();
  if (!isa_and_present<linalg::LinalgOp>(parent) &&
      failed(verifyInAttention(*this)))
    return failure();
  auto type = cast<ShapedType>(getSource().getType());
  if (static_cast<int64_t>(getIndices().size()) != type.getRank())
    return emitOpError("has ") << getIndices().size() << " indices for a rank-"
                               << type.getRank() << " capture";
  if (getResult().getType() != type.getElementType())
    return emitOpError("must yield the capture's element type ")
           << type.getElementType();
  for (auto [dim, index] : llvm::enumerate(getIndices())) {
    APInt value;
    if (isBroadcast(dim) || !matchPattern(index, m_ConstantInt(&value)))
      continue;
    bool isPast = !type.isDynamicDim(dim) && value.sge(type.getDimSize(dim));
    if (value.isNegative() || isPast)
      return emitOpError("index ")
             << value.getSExtValue() << " is out of range for dimension " << dim
             << " of " << type;
  }
  return success();
}

//===----------------------------------------------------------------------===//
// SoftmaxOp
//===----------------------------------------------------------------------===//

MutableOperandRange SoftmaxOp::getDpsInitsMutable() {
  return MutableOperandRange(*this, /*start=*/1, getNumOperands() - 1);
}

void SoftmaxOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  addBufferEffects(*this, effects);
}

LogicalResult SoftmaxOp::verify() {
  auto scores = cast<ShapedType>(getScores().getType());
  auto p = cast<ShapedType>(getP().getType());
  SmallVector<Type> results;
  for (Value init : getDpsInits())
    if (isa<RankedTensorType>(init.getType()))
      results.push_back(init.getType());
  if (TypeRange(results) != TypeRange(getResultTypes()) ||
      llvm::any_of(getOperandTypes(), [&](Type type) {
        return isa<MemRefType>(type) != results.empty();
      }))
    return emitOpError("takes tensors, with the types of its outs as results, "
                       "or memrefs, without results");
  if (scores.getRank() < 2 || !isa<FloatType>(scores.getElementType()) ||
      !isa<FloatType>(p.getElementType()))
    return emitOpError("takes floating-point rows of rank 2 or more, not ")
           << scores << " and " << p;
  if (failed(verifyCompatibleShape(scores, p)))
    return emitOpError("p must have the shape of the scores: ")
           << p << " and " << scores;
  if (!getLse())
    return success();
  auto lse = cast<ShapedType>(getLse().getType());
  if (!lse.getElementType().isF32() ||
      failed(
          verifyCompatibleShape(lse.getShape(), scores.getShape().drop_back())))
    return emitOpError("lse must be f32 with the scores' shape without the "
                       "last dimension, not ")
           << lse;
  return success();
}

//===----------------------------------------------------------------------===//
// MergeOp
//===----------------------------------------------------------------------===//

LogicalResult MergeOp::verify() {
  if (getPartials().empty() || getPartials().size() != getPartialLses().size())
    return emitOpError("needs one lse for each partial output, and at least "
                       "one of them");
  for (Value partial : getPartials())
    if (partial.getType() != getO().getType())
      return emitOpError("partial outputs must have the type of the result");
  for (Value lse : getPartialLses())
    if (lse.getType() != getLse().getType())
      return emitOpError("partial lses must have the type of the result's lse");
  auto oType = cast<RankedTensorType>(getO().getType());
  auto lseType = cast<RankedTensorType>(getLse().getType());
  if (oType.getRank() == 0 || !lseType.getElementType().isF32() ||
      oType.getShape().drop_back() != lseType.getShape())
    return emitOpError("lse must be f32 of the output's shape without its "
                       "last dimension");
  return success();
}
