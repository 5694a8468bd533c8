//===- AttnToCudnn.h - Which attention cuDNN computes -----------*- C++ -*-===//

#ifndef ATTN_CONVERSION_ATTNTOCUDNN_H
#define ATTN_CONVERSION_ATTNTOCUDNN_H

#include "attn/Dialect/Attn/IR/AttnOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <optional>
#include <string>

namespace mlir::attn {

/// An attention in cuDNN's terms: scale, then a bias, then what hides keys.
struct CudnnAttention {
  /// Visible are the keys from position - left to position + right.
  std::optional<int32_t> left, right;
  /// A query's position is query + kv_len - q_len, not query.
  bool isBottomRight = false;
  /// Added to scores, [B or 1, H or 1, Nq, Nk]; null for none.
  Value bias;
  /// i32 [B], keys of each batch; null for all.
  Value lengths;

  bool hasWindow() const { return left || right; }
};

/// What cuDNN makes of an operator, and the conditions that it doesn't meet:
/// with one or more, cuDNN can't compute it.
struct CudnnMatch {
  CudnnAttention attention;
  SmallVector<std::string> unmet;
};

/// Reads the operator and its regions, on tensors or memrefs. What depends on
/// sizes that aren't static is checked before a launch.
CudnnMatch matchCudnn(AttentionOp op);

/// The same for the whole of an entry function, which must do nothing else.
CudnnMatch matchCudnn(func::FuncOp entry);

} // namespace mlir::attn

#endif // ATTN_CONVERSION_ATTNTOCUDNN_H
