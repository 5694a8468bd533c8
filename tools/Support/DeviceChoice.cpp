//===- DeviceChoice.cpp - The device that --target means ------------------===//

#include "DeviceChoice.h"
#include "attn/Target/TargetInfo.h"

using namespace attn;
using mlir::attn::TargetInfo;

llvm::Expected<std::unique_ptr<Device>>
attn::createDevice(std::string &target) {
  if (target == "native")
    return createNativeDevice(target);
  const TargetInfo *info = TargetInfo::lookup(target);
  if (!info)
    return llvm::createStringError(TargetInfo::explainUnknown(
        target, "native, " + TargetInfo::getAllNames()));
  if (!info->isGPU)
    return createCpuDevice();
  return createCudaDevice();
}
