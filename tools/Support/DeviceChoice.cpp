//===- DeviceChoice.cpp - The device that --target means ------------------===//

#include "DeviceChoice.h"
#include "attn/Target/ScheduleTable.h"

using namespace attn;

/// The best target that `gpu` runs and that serves all of `module`.
static std::string chooseTarget(mlir::ModuleOp module, const Device &gpu) {
  const auto *best = mlir::attn::TargetInfo::lookup("sm_90a");
  if (llvm::Error error = gpu.checkTarget(best->name)) {
    llvm::consumeError(std::move(error));
    return "sm_80";
  }
  mlir::WalkResult result = module.walk([&](mlir::attn::AttentionOp op) {
    return mlir::attn::isServed(op, *best) ? mlir::WalkResult::advance()
                                           : mlir::WalkResult::interrupt();
  });
  return result.wasInterrupted() ? "sm_80" : best->name.str();
}

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
