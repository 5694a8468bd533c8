//===- Cudnn.h - Kernels that cuDNN brings ----------------------*- C++ -*-===//

#ifndef ATTN_LIB_RUNTIME_CUDNN_H
#define ATTN_LIB_RUNTIME_CUDNN_H

#include "CudaDriver.h"
#include "attn/Runtime/CudnnKernel.h"
#include "attn/Runtime/Device.h"
#include <mutex>

namespace attn {

/// cuDNN on one device, for all kernels: a handle has one stream at a time.
class CudnnContext {
public:
  /// With `context`, the device's, current, here and at the end.
  static llvm::Expected<std::unique_ptr<CudnnContext>>
  create(const cuda::Driver &driver, cuda::CUcontext context);
  ~CudnnContext();

  const cuda::Driver &driver;
  const cuda::CUcontext context;
  void *const handle;
  std::mutex mutex;

private:
  CudnnContext(const cuda::Driver &driver, cuda::CUcontext context,
               void *handle)
      : driver(driver), context(context), handle(handle) {}
};

/// The kernels of CudnnKernel.h. `context` and `device` must outlive it.
std::unique_ptr<LoadedModule> createCudnnModule(CudnnContext &context,
                                                Device &device);

} // namespace attn

#endif // ATTN_LIB_RUNTIME_CUDNN_H
