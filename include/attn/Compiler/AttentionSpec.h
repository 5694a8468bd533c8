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
/// v [B, Hkv, Nk, Dv], the captures and o [B, Hq, Nq, Dv], in this order; batch
/// and lengths are known when it runs.
struct AttentionSpec {
  /// Of q, k and v.
  DType dtype = DType::BF16;
  /// Of o; by default that of q, k and v, and BF16 where those have 8 bits.
  std::optional<DType> outputDType;
  /// Three more inputs behind the captures, for 8-bit q, k and v, all f32:
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
  /// The builders of AttnMods.h, or lambdas of their types. Null for none.
  mlir::attn::MaskMod maskMod;
  mlir::attn::ScoreMod scoreMod;

  /// The module in MLIR. Refuses what attn.attention does not allow.
  llvm::Expected<std::string> print() const;
};

} // namespace attn

#endif // ATTN_COMPILER_ATTENTIONSPEC_H
