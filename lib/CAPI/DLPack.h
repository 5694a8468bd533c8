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

} // namespace attn::dlpack

#endif // ATTN_LIB_CAPI_DLPACK_H
