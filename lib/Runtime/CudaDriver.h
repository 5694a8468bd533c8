//===- CudaDriver.h - The driver's entry points, by dlopen ------*- C++ -*-===//
//
// The few types, constants and functions of the CUDA driver API that the
// runtime needs, so that neither building nor starting a tool asks for CUDA.
// Names and numbers are those of cuda.h.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_RUNTIME_CUDADRIVER_H
#define ATTN_LIB_RUNTIME_CUDADRIVER_H

#include "llvm/Support/Error.h"
#include <cstddef>
#include <cstdint>

namespace attn::cuda {

using CUresult = int;
using CUdevice = int;
using CUdeviceptr = uint64_t;
using CUcontext = struct CUctx_st *;
using CUmodule = struct CUmod_st *;
using CUfunction = struct CUfunc_st *;
using CUstream = struct CUstream_st *;
using CUevent = struct CUevent_st *;

enum : CUresult {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_NO_DEVICE = 100,
  CUDA_ERROR_UNSUPPORTED_PTX_VERSION = 222,
};

enum CUdevice_attribute : int {
  CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
  CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE = 38,
  CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR = 39,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
  CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR = 81,
  CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR = 82,
  CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
  CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR = 106,
  CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK = 111,
};

enum CUfunction_attribute : int {
  CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES = 1,
  CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES = 3,
  CU_FUNC_ATTRIBUTE_NUM_REGS = 4,
  CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
  CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT = 9,
};

enum CUjit_option : int {
  CU_JIT_ERROR_LOG_BUFFER = 5,
  CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6,
};

constexpr unsigned CU_STREAM_NON_BLOCKING = 1;
constexpr int CU_STREAM_CAPTURE_STATUS_NONE = 0;
constexpr int CU_STREAM_CAPTURE_MODE_RELAXED = 2;

// X(member, exported symbol, parameters)
#define ATTN_CUDA_FUNCTIONS(X)                                                 \
  X(Init, "cuInit", unsigned)                                                  \
  X(DriverGetVersion, "cuDriverGetVersion", int *)                             \
  X(GetErrorName, "cuGetErrorName", CUresult, const char **)                   \
  X(GetErrorString, "cuGetErrorString", CUresult, const char **)               \
  X(DeviceGetCount, "cuDeviceGetCount", int *)                                 \
  X(DeviceGet, "cuDeviceGet", CUdevice *, int)                                 \
  X(DeviceGetName, "cuDeviceGetName", char *, int, CUdevice)                   \
  X(DeviceGetPCIBusId, "cuDeviceGetPCIBusId", char *, int, CUdevice)           \
  X(DeviceGetAttribute, "cuDeviceGetAttribute", int *, CUdevice_attribute,     \
    CUdevice)                                                                  \
  X(DevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", CUcontext *, CUdevice) \
  X(DevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2", CUdevice)         \
  X(CtxGetCurrent, "cuCtxGetCurrent", CUcontext *)                             \
  X(CtxPushCurrent, "cuCtxPushCurrent_v2", CUcontext)                          \
  X(CtxPopCurrent, "cuCtxPopCurrent_v2", CUcontext *)                          \
  X(ModuleLoadDataEx, "cuModuleLoadDataEx", CUmodule *, const void *,          \
    unsigned, CUjit_option *, void **)                                         \
  X(ModuleUnload, "cuModuleUnload", CUmodule)                                  \
  X(ModuleGetFunction, "cuModuleGetFunction", CUfunction *, CUmodule,          \
    const char *)                                                              \
  X(FuncGetAttribute, "cuFuncGetAttribute", int *, CUfunction_attribute,       \
    CUfunction)                                                                \
  X(FuncSetAttribute, "cuFuncSetAttribute", CUfunction, CUfunction_attribute,  \
    int)                                                                       \
  X(OccupancyMaxActiveBlocksPerMultiprocessor,                                 \
    "cuOccupancyMaxActiveBlocksPerMultiprocessor", int *, CUfunction, int,     \
    size_t)                                                                    \
  X(LaunchKernel, "cuLaunchKernel", CUfunction, unsigned, unsigned, unsigned,  \
    unsigned, unsigned, unsigned, unsigned, CUstream, void **, void **)        \
  X(MemAlloc, "cuMemAlloc_v2", CUdeviceptr *, size_t)                          \
  X(MemFree, "cuMemFree_v2", CUdeviceptr)                                      \
  X(MemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2", CUdeviceptr, const void *,        \
    size_t, CUstream)                                                          \
  X(MemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2", void *, CUdeviceptr, size_t,      \
    CUstream)                                                                  \
  X(MemcpyDtoDAsync, "cuMemcpyDtoDAsync_v2", CUdeviceptr, CUdeviceptr, size_t, \
    CUstream)                                                                  \
  X(MemsetD8Async, "cuMemsetD8Async", CUdeviceptr, unsigned char, size_t,      \
    CUstream)                                                                  \
  X(MemsetD32Async, "cuMemsetD32Async", CUdeviceptr, unsigned, size_t,         \
    CUstream)                                                                  \
  X(StreamCreate, "cuStreamCreate", CUstream *, unsigned)                      \
  X(StreamDestroy, "cuStreamDestroy_v2", CUstream)                             \
  X(CtxSynchronize, "cuCtxSynchronize", )                                      \
  X(StreamSynchronize, "cuStreamSynchronize", CUstream)                        \
  X(StreamIsCapturing, "cuStreamIsCapturing", CUstream, int *)                 \
  X(ThreadExchangeStreamCaptureMode, "cuThreadExchangeStreamCaptureMode",      \
    int *)                                                                     \
  X(EventCreate, "cuEventCreate", CUevent *, unsigned)                         \
  X(EventDestroy, "cuEventDestroy_v2", CUevent)                                \
  X(EventRecord, "cuEventRecord", CUevent, CUstream)                           \
  X(EventElapsedTime, "cuEventElapsedTime", float *, CUevent, CUevent)

// Enumerators of tensor maps.
constexpr int CU_TENSOR_MAP_DATA_TYPE_UINT8 = 0;
constexpr int CU_TENSOR_MAP_DATA_TYPE_FLOAT16 = 6;
constexpr int CU_TENSOR_MAP_DATA_TYPE_FLOAT32 = 7;
constexpr int CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 = 9;
constexpr int CU_TENSOR_MAP_INTERLEAVE_NONE = 0;
constexpr int CU_TENSOR_MAP_SWIZZLE_32B = 1;
constexpr int CU_TENSOR_MAP_SWIZZLE_64B = 2;
constexpr int CU_TENSOR_MAP_SWIZZLE_128B = 3;
constexpr int CU_TENSOR_MAP_L2_PROMOTION_L2_128B = 2;
constexpr int CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE = 0;

struct Driver {
#define ATTN_CUDA_MEMBER(name, symbol, ...) CUresult (*name)(__VA_ARGS__);
  ATTN_CUDA_FUNCTIONS(ATTN_CUDA_MEMBER)
#undef ATTN_CUDA_MEMBER

  /// Null before CUDA 12.0.
  CUresult (*TensorMapEncodeTiled)(void *map, int dataType, uint32_t rank,
                                   void *address, const uint64_t *dims,
                                   const uint64_t *strides, const uint32_t *box,
                                   const uint32_t *elementStrides,
                                   int interleave, int swizzle, int l2Promotion,
                                   int oobFill);

  /// Null before CUDA 12.0.
  CUresult (*StreamGetId)(CUstream stream, unsigned long long *id);

  /// The initialised driver. The error says plainly what is missing.
  static llvm::Expected<const Driver *> get();

  /// An error for a call that failed, e.g.
  /// "cuMemAlloc: out of memory (CUDA_ERROR_OUT_OF_MEMORY)".
  llvm::Error check(CUresult result, llvm::StringRef call) const;
};

/// Makes a context current during our calls only, so that the caller's own is
/// never replaced. Mostly it is the same one, which takes one call.
class ScopedContext {
public:
  ScopedContext(const Driver &driver, CUcontext context) : driver(driver) {
    CUcontext current = nullptr;
    isPushed =
        driver.CtxGetCurrent(&current) != CUDA_SUCCESS || current != context;
    if (isPushed)
      driver.CtxPushCurrent(context);
  }
  ~ScopedContext() {
    CUcontext popped;
    if (isPushed)
      driver.CtxPopCurrent(&popped);
  }

private:
  const Driver &driver;
  bool isPushed;
};

/// Allows calls that a capture forbids by default, since they could belong to
/// it: memory that we allocate while a caller captures a launch does not.
class ScopedRelaxedCapture {
public:
  explicit ScopedRelaxedCapture(const Driver &driver) : driver(driver) {
    driver.ThreadExchangeStreamCaptureMode(&mode);
  }
  ~ScopedRelaxedCapture() { driver.ThreadExchangeStreamCaptureMode(&mode); }

private:
  const Driver &driver;
  /// The mode to set, then the one to restore.
  int mode = CU_STREAM_CAPTURE_MODE_RELAXED;
};

} // namespace attn::cuda

#endif // ATTN_LIB_RUNTIME_CUDADRIVER_H
