//===- CudnnGraph.h - cuDNN's attention by cudnn-frontend -------*- C++ -*-===//
//
// The part that is written against cudnn-frontend, which throws. Nothing of it
// leaves these functions. A build without cudnn-frontend has another
// implementation, which says so.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_RUNTIME_CUDNNGRAPH_H
#define ATTN_LIB_RUNTIME_CUDNNGRAPH_H

#include "attn/Runtime/DType.h"
#include <array>
#include <memory>
#include <optional>
#include <string>

namespace attn::cudnn {

struct TensorShape {
  std::array<int64_t, 4> sizes;
  /// In elements.
  std::array<int64_t, 4> strides;
};

/// A forward attention, with all sizes known.
struct Problem {
  DType dtype, biasDType;
  float scale;
  std::optional<int32_t> left, right;
  bool isBottomRight;
  TensorShape q, k, v, o;
  /// The last size is 1.
  std::optional<TensorShape> lse;
  std::optional<TensorShape> bias;
  bool hasLengths;
};

/// Where the tensors lie; null for those that a problem doesn't have.
struct Addresses {
  void *q, *k, *v, *o, *lse, *bias, *keyLengths, *queryLengths;
};

/// The plan of a problem.
class Graph {
public:
  virtual ~Graph();
  virtual int64_t getWorkspaceBytes() const = 0;
  /// Empty, or what went wrong.
  virtual std::string execute(void *handle, const Addresses &addresses,
                              void *workspace) const = 0;
};

/// Why this build can't call cuDNN; empty if it can.
std::string getMissingSupport();

/// The CUDA runtime that is needed beside, "libcudart.so.13".
std::string getRuntimeName();

/// What dlopen returned. To be called once, before anything below.
void setLibrary(void *library);
/// cudnnGetVersion.
size_t getVersion();

/// A handle for the current context; null with `error`.
void *createHandle(std::string &error);
void destroyHandle(void *handle);
std::string setStream(void *handle, void *stream);

/// Null with `error`, which says what cuDNN doesn't support.
std::unique_ptr<Graph> buildGraph(void *handle, const Problem &problem,
                                  std::string &error);

} // namespace attn::cudnn

#endif // ATTN_LIB_RUNTIME_CUDNNGRAPH_H
