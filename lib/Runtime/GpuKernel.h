//===- GpuKernel.h - What a CUDA device launches ----------------*- C++ -*-===//

#ifndef ATTN_LIB_RUNTIME_GPUKERNEL_H
#define ATTN_LIB_RUNTIME_GPUKERNEL_H

#include "attn/Runtime/Device.h"

namespace attn {

/// A kernel of a CUDA device: machine code, or what a library brings.
class GpuKernel : public LoadedKernel {
public:
  /// Device::launch, with the device's context current.
  virtual llvm::Error launch(int64_t grid, llvm::MutableArrayRef<void *> params,
                             Stream stream) = 0;
};

} // namespace attn

#endif // ATTN_LIB_RUNTIME_GPUKERNEL_H
