//===- Views.cpp - Tensors of other libraries as ours ---------------------===//

#include "Views.h"
#include "Common.h"
#include "DLPack.h"
#include "llvm/ADT/STLExtras.h"

using namespace attn;
using namespace attn::capi;
using namespace attn::dlpack;

std::optional<DType> capi::getDType(const DLDataType &type) {
  static constexpr std::tuple<uint8_t, uint8_t, DType> kTypes[] = {
      {kDLFloat, 16, DType::F16},       {kDLBfloat, 16, DType::BF16},
      {kDLFloat, 32, DType::F32},       {kDLFloat, 64, DType::F64},
      {kDLBool, 8, DType::I1},          {kDLInt, 8, DType::I8},
      {kDLInt, 16, DType::I16},         {kDLInt, 32, DType::I32},
      {kDLInt, 64, DType::I64},         {kDLFloat8E4M3FN, 8, DType::F8E4M3FN},
      {kDLFloat8E5M2, 8, DType::F8E5M2}};
  for (auto [code, bits, dtype] : kTypes)
    if (type.code == code && type.bits == bits && type.lanes == 1)
      return dtype;
  return std::nullopt;
}

llvm::Expected<const DLTensor *> capi::getTensor(const llvm::Twine &name,
                                                 const void *pointer) {
  if (!pointer)
    return llvm::createStringError(name + " is missing (null)");
  const auto *tensor = static_cast<const DLTensor *>(pointer);
  if (tensor->rank < 0)
    return llvm::createStringError(name + " has a negative rank");
  if (tensor->rank > 0 && !tensor->shape)
    return llvm::createStringError(name + " has no shape (null)");
  return tensor;
}

static bool isHost(const DLDevice &device) {
  return device.type == kDLCPU || device.type == kDLCUDAHost;
}

static std::string describe(const DLDevice &device) {
  if (isHost(device))
    return "the CPU";
  if (device.type == kDLCUDA || device.type == kDLCUDAManaged)
    return "GPU " + std::to_string(device.id);
  return "a device of type " + std::to_string(device.type);
}

static llvm::Error checkDevice(const attnc_kernel &kernel,
                               const Argument &argument,
                               const DLDevice &device) {
  const bool isGPU = argument.isTensor && kernel.kernel.getDevice().isGPU();
  const DLDevice wanted = {isGPU ? kDLCUDA : kDLCPU, isGPU ? kernel.device : 0};
  const bool isRight =
      isGPU ? device.type == kDLCUDAManaged ||
                  (device.type == kDLCUDA && device.id == kernel.device)
            : isHost(device);
  if (isRight)
    return llvm::Error::success();
  return llvm::createStringError("argument '" + argument.name + "' is on " +
                                 describe(device) + ", needed is " +
                                 describe(wanted));
}

llvm::Error Views::add(const attnc_kernel &kernel, const Argument &argument,
                       const void *pointer, std::optional<void *> data) {
  llvm::Expected<const DLTensor *> given =
      getTensor("argument '" + argument.name + "'", pointer);
  if (!given)
    return given.takeError();
  const DLTensor &tensor = **given;
  if (llvm::Error error = checkDevice(kernel, argument, tensor.device))
    return error;
  std::optional<DType> dtype = getDType(tensor.dtype);
  if (!dtype)
    return llvm::createStringError(
        "argument '" + argument.name + "' has DLPack type code " +
        llvm::Twine(unsigned(tensor.dtype.code)) + " of " +
        llvm::Twine(unsigned(tensor.dtype.bits)) + " bits and " +
        llvm::Twine(unsigned(tensor.dtype.lanes)) + " lanes; known are " +
        kAllDTypeNames);
  const llvm::ArrayRef<int64_t> shape(tensor.shape, tensor.rank);
  llvm::ArrayRef<int64_t> tensorStrides(tensor.strides, tensor.rank);
  // Those of an empty tensor say nothing; numpy gives zeros.
  if (!tensor.strides || llvm::is_contained(shape, 0)) {
    strides.push_front(getRowMajorStrides(shape));
    tensorStrides = strides.front();
  }
  if (!data)
    data = static_cast<char *>(tensor.data) + tensor.byteOffset;
  views.push_back({*dtype, shape, tensorStrides, *data});
  return llvm::Error::success();
}
