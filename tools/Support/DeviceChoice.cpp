//===- DeviceChoice.cpp - The device that --target means ------------------===//

#include "DeviceChoice.h"
#include "attn/Compiler/CompiledKernel.h"

using namespace attn;

llvm::Expected<std::unique_ptr<Device>>
attn::createDevice(mlir::ModuleOp module, std::string &target) {
  if (target == "cpu")
    return createCpuDevice();
  if (target != "native") {
    const auto *info = mlir::attn::TargetInfo::lookup(target);
    if (!info)
      return llvm::createStringError("unknown target '" + target +
                                     "'; known are native, " +
                                     mlir::attn::TargetInfo::getAllNames());
    return createCudaDevice();
  }
  llvm::Expected<std::unique_ptr<Device>> gpu = createCudaDevice();
  if (gpu) {
    target = chooseTarget(module, **gpu);
    return gpu;
  }
  llvm::consumeError(gpu.takeError());
  target = "cpu";
  return createCpuDevice();
}
