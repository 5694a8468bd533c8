//===- DLPack.h - Tensors of other libraries --------------------*- C++ -*-===//
//
// The part of DLPack's C ABI (dmlc.github.io/dlpack) that we read.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CAPI_DLPACK_H
#define ATTN_LIB_CAPI_DLPACK_H

#include <cstdint>

namespace attn::dlpack {

enum DeviceType : int32_t {
  kDLCPU = 1,
  kDLCUDA = 2,
  kDLCUDAHost = 3,
  kDLCUDAManaged = 13
};

struct DLDevice {
  DeviceType type;
  int32_t id;
};

enum TypeCode : uint8_t {
  kDLInt = 0,
  kDLFloat = 2,
  kDLBfloat = 4,
  kDLBool = 6,
  kDLFloat8E4M3FN = 10,
  kDLFloat8E5M2 = 12
};

struct DLDataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};

struct DLTensor {
  void *data;
  DLDevice device;
  int32_t rank;
  DLDataType dtype;
  int64_t *shape;
  /// In elements; null for row-major.
  int64_t *strides;
  uint64_t byteOffset;
};

/// The object is a PyObject*, and the GIL held; 0, or -1 with an exception.
using ReadTensor = int (*)(void *object, DLTensor *tensor);
using GetCurrentStream = int (*)(DeviceType type, int32_t id, void **stream);

inline constexpr uint32_t kExchangeMajorVersion = 1;

/// What the capsule __dlpack_c_exchange_api__ of a tensor's type points to.
/// Later minor versions only append.
struct ExchangeAPI {
  struct {
    uint32_t major;
    uint32_t minor;
  } version;
  const void *previousAPI;
  const void *allocate;
  const void *toManagedTensor;
  const void *fromManagedTensor;
  /// May be null. The shape and strides are the object's own.
  ReadTensor readTensor;
  GetCurrentStream getCurrentStream;
};

} // namespace attn::dlpack

#endif // ATTN_LIB_CAPI_DLPACK_H
