//===- CudnnKernel.h - Attention as a call of cuDNN -------------*- C++ -*-===//
//
// What a plan says of a kernel whose library is "cudnn": its name and its
// parameters. Their order is that of CudnnParameter; then follow the tensors q,
// k, v, o, and those of lse, bias and lengths that CudnnFlag says are there, in
// this order. A tensor is its address, its sizes (i32) and its strides in
// elements without the innermost, which is 1 (i64).
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_RUNTIME_CUDNNKERNEL_H
#define ATTN_RUNTIME_CUDNNKERNEL_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <string>

namespace attn {

/// Kernel::library.
constexpr llvm::StringLiteral kCudnnLibrary = "cudnn";
constexpr llvm::StringLiteral kCudnnKernelName = "cudnn_sdpa_fwd";

/// The i32 parameters.
enum CudnnParameter : unsigned {
  /// Of q, k, v and o, and of the bias: DType.
  CudnnDType,
  CudnnBiasDType,
  /// CudnnFlag.
  CudnnFlags,
  /// Keys before and after a query's position that it sees; kCudnnUnbounded.
  CudnnLeft,
  CudnnRight,
  /// The bits of an f32.
  CudnnScale,
  CudnnNumParameters
};

enum CudnnFlag : int32_t {
  CudnnHasLse = 1,
  CudnnHasBias = 2,
  CudnnHasLengths = 4,
  /// A query's position is query + kv_len - q_len, not query.
  CudnnBottomRight = 8,
  /// The bias is the same for all batches, heads.
  CudnnBiasOfAllBatches = 16,
  CudnnBiasOfAllHeads = 32
};

constexpr int32_t kCudnnUnbounded = -1;

/// Why this process can't call cuDNN; success if it can. Loads the library at
/// the first call: $ATTNC_CUDNN, where a loader finds it (torch's, once torch
/// is imported), and CUDA's folders.
llvm::Error checkCudnn();

/// "9.19.0"; empty if it can't be called.
std::string getCudnnVersion();

} // namespace attn

#endif // ATTN_RUNTIME_CUDNNKERNEL_H
