//===- AttnMods.h - Builders of score_mod and mask_mod regions --*- C++ -*-===//
//
// The public rules of the field as builders over the regions of
// attn.attention. They compose; nothing downstream knows their names, the
// region is the only truth.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_ATTN_IR_ATTNMODS_H
#define ATTN_DIALECT_ATTN_IR_ATTNMODS_H

#include "attn/Dialect/Attn/IR/AttnOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include <functional>

namespace mlir::attn {

/// The index arguments of a region, all i32, and the op's captures. `head` is
/// the query head.
struct ModIndices {
  Value batch, head, query, key;
  ValueRange captures;
};

/// Emits a mask_mod: i1, true where the key is visible.
using MaskMod =
    std::function<Value(ImplicitLocOpBuilder &, const ModIndices &)>;

/// Emits a score_mod: f32 from the scaled score.
using ScoreMod = std::function<Value(ImplicitLocOpBuilder &, Value score,
                                     const ModIndices &)>;

//===----------------------------------------------------------------------===//
// Masks
//===----------------------------------------------------------------------===//

/// key <= query + kv_len - q_len: the last query sees every key.
MaskMod getCausalMask();

/// key <= query: the first query sees the first key only.
MaskMod getCausalTopLeftMask();

/// Keys from `left` before to `right` after the query's own position
/// query + kv_len - q_len, both included; -1 is unbounded.
MaskMod getSlidingWindowMask(int32_t left, int32_t right);

/// key < `length`.
MaskMod getPrefixMask(int32_t length);

/// Every `dilation`-th key before and after the query's own position, up to
/// `radius` of them on either side, and the one there. Both are positive.
MaskMod getDilatedWindowMask(int32_t radius, int32_t dilation);

/// For pixels of an image, row by row, of height >= `rows` and width >=
/// `columns`, both odd: the `rows` x `columns` pixels around the query, or,
/// near an edge, the ones nearest to it that lie inside.
MaskMod getNeighborhoodMask(int32_t height, int32_t width, int32_t rows,
                            int32_t columns);

//===----------------------------------------------------------------------===//
// Masks that read the op's capture number `capture`
//===----------------------------------------------------------------------===//

/// Where capture[batch, head, query, key] is not 0. Dimensions of static size 1
/// are broadcast. Any integer type; i1 is a boolean mask.
MaskMod getTensorMask(unsigned capture);

/// key < capture[batch]: the keys behind a sequence's own are padding. Any
/// integer type.
MaskMod getKeyPaddingMask(unsigned capture);

/// queryDocuments[batch, query] == keyDocuments[batch, key], numbers of the
/// documents in packed sequences. Any integer type, the same for both.
MaskMod getDocumentMask(unsigned queryDocuments, unsigned keyDocuments);

//===----------------------------------------------------------------------===//
// Compositions of masks
//===----------------------------------------------------------------------===//

MaskMod intersectMasks(MaskMod first, MaskMod second);
MaskMod uniteMasks(MaskMod first, MaskMod second);

//===----------------------------------------------------------------------===//
// Scores
//===----------------------------------------------------------------------===//

/// The two public forms of ALiBi; they agree for keys up to the query's own
/// position, where the bias is -slope * distance.
enum class ALiBiForm {
  /// score + slope * (key - position)
  Causal,
  /// score - slope * |key - position|
  Symmetric
};

/// Attention with linear biases for `numHeads` query heads, at
/// position = query + kv_len - q_len. The slope of head h is 2^(-8 (h + 1) / n)
/// for a power of two n = numHeads; otherwise, with n the power of two below,
/// heads h >= n take the slopes 2^(-4 (2 (h - n) + 1) / n) between those.
ScoreMod getALiBi(ALiBiForm form, int64_t numHeads);

/// cap * tanh(score / cap), cap > 0.
ScoreMod getSoftcap(float cap);

/// score + capture[batch, head, query, key], of any float type. Dimensions of
/// static size 1 are broadcast.
ScoreMod getBias(unsigned capture);

/// getALiBi with the slope capture[head] instead of the public ones.
ScoreMod getALiBiFromSlopes(ALiBiForm form, unsigned capture);

/// cap * tanh(score / cap) with cap = capture[head] > 0.
ScoreMod getHeadSoftcap(unsigned capture);

/// T5's relative bias: score + capture[bucket, head] of a table [numBuckets,
/// Hq]. With d = position - key and, if `bidirectional`, one half of the
/// buckets for keys behind the position (else d < 0 is 0), half of the buckets
/// are for a |d| each and the others for ranges that grow geometrically up to
/// `maxDistance`, from where on it is the last.
ScoreMod getT5Bias(unsigned capture, int32_t numBuckets, int32_t maxDistance,
                   bool bidirectional);

/// Applies `first`, then `second`.
ScoreMod chainScoreMods(ScoreMod first, ScoreMod second);

//===----------------------------------------------------------------------===//
// Regions
//===----------------------------------------------------------------------===//

/// Replaces the region of `op` by what the builder emits. The arith and math
/// dialects must be loaded.
void setMaskMod(AttentionOp op, const MaskMod &mod);
void setScoreMod(AttentionOp op, const ScoreMod &mod);

} // namespace mlir::attn

#endif // ATTN_DIALECT_ATTN_IR_ATTNMODS_H
