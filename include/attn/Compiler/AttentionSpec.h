//===- AttentionSpec.h - Attention in numbers and rules ---------*- C++ -*-===//

#ifndef ATTN_COMPILER_ATTENTIONSPEC_H
#define ATTN_COMPILER_ATTENTIONSPEC_H

#include "attn/Dialect/Attn/IR/AttnMods.h"
#include "attn/Runtime/Manifest.h"
#include "llvm/Support/Error.h"
#include <optional>
#include <string>
#include <vector>

namespace attn {

/// A tensor that rules read: a bias, slopes, document numbers.
struct CaptureSpec {
  std::string name;
  DType dtype;
  /// kDynamicSize where it is known when it runs. A dimension of 1 is read at
  /// every index.
  llvm::SmallVector<int64_t, 4> shape;
};

/// One attention operator on q [B, Hq, Nq, Dqk], k [B, Hkv, Nk, Dqk],
/// v [B, Hkv, Nk, Dv], the captures, the sink, scales, those of sequences and
/// o [B, Hq, Nq, Dv], in this order; batch and lengths are known when it runs.
struct AttentionSpec {
  /// What errors call the text that print() makes.
  static constexpr llvm::StringLiteral kSourceName = "<AttentionSpec>";

  /// Of q, k and v.
  DType dtype = DType::BF16;
  /// Of o; by default that of q, k and v, and BF16 where those have 8 bits.
  std::optional<DType> outputDType;
  /// One more input behind the captures, sink [Hq] of F16, BF16 or F32: a
  /// logit that joins each row's denominator, and its lse, only.
  std::optional<DType> sinkDType;
  /// Three more inputs behind that, for 8-bit q, k and v, all f32:
  /// q_scale [B, Hq], k_scale and v_scale [B, Hkv].
  bool hasInputScales = false;
  int64_t numQueryHeads = 0;
  /// Divides numQueryHeads.
  int64_t numKVHeads = 0;
  int64_t qkHeadDim = 0;
  int64_t vHeadDim = 0;
  /// Default: 1 / sqrt(qkHeadDim).
  std::optional<float> scale;
  /// One more argument, f32 [B, Hq, Nq]: the natural log of the sum of exp.
  bool returnLse = false;
  /// A row's result doesn't depend on what else is in the batch, to the last
  /// bit.
  bool batchInvariant = false;
  /// ModIndices::captures of the rules.
  std::vector<CaptureSpec> captures;
  /// Sequences whose lengths only the device knows (docs/Sequences.md). Each
  /// adds an argument of i32 numbers, of FlashAttention's name.
  ///
  /// cu_seqlens_q [S + 1]: q and o are [1, Hq, Tq, D].
  bool hasCuSeqlensQ = false;
  /// cu_seqlens_k [S + 1]: k and v are [1, Hkv, Tk, D].
  bool hasCuSeqlensK = false;
  /// seqused_k [S]: keys of each sequence.
  bool hasSeqUsedK = false;
  /// block_table [S, P]: k and v are pages of so many rows.
  std::optional<int64_t> pageSize;
  /// The builders of AttnMods.h, or lambdas of their types. Null for none.
  mlir::attn::MaskMod maskMod;
  mlir::attn::ScoreMod scoreMod;

  /// The module in MLIR. Refuses what attn.attention does not allow.
  llvm::Expected<std::string> print() const;
};

} // namespace attn

#endif // ATTN_COMPILER_ATTENTIONSPEC_H
