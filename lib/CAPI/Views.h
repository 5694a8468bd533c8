//===- Views.h - Tensors of other libraries as ours -------------*- C++ -*-===//

#ifndef ATTN_LIB_CAPI_VIEWS_H
#define ATTN_LIB_CAPI_VIEWS_H

#include "attn-c/attnc.h"
#include "attn/Compiler/CompiledKernel.h"
#include <forward_list>

struct attnc_kernel {
  attn::CompiledKernel kernel;
  /// Of GPU kernels.
  int device;
  std::string deviceName;
};

namespace attn::capi {

/// The tensors of a call, without memory of its own for usual numbers of them.
class Views {
public:
  /// `tensor` is a DLTensor for `argument`. Its data is at `data`, if given.
  /// Refuses what the kernel can't take, shapes aside.
  llvm::Error add(const attnc_kernel &kernel, const Argument &argument,
                  const void *tensor, std::optional<void *> data);

  llvm::ArrayRef<TensorView> get() const { return views; }

private:
  llvm::SmallVector<TensorView, 8> views;
  /// Of tensors that come without useful strides; a list, since views point
  /// into it.
  std::forward_list<llvm::SmallVector<int64_t, 4>> strides;
};

} // namespace attn::capi

#endif // ATTN_LIB_CAPI_VIEWS_H
