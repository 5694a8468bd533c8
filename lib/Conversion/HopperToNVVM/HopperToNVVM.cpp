//===- HopperToNVVM.cpp - Warp-specialised kernels to GPU kernels ---------===//

#include "HopperLowering.h"
#include "attn/Conversion/Passes.h"
#include "attn/Target/TargetInfo.h"
#include "mlir/IR/BuiltinOps.h"

namespace mlir::attn {
#define GEN_PASS_DEF_CONVERTHOPPERTONVVM
#include "attn/Conversion/Passes.h.inc"
} // namespace mlir::attn

using namespace mlir;
using namespace mlir::hopper;

static bool hasRoles(tile::KernelOp kernel) {
  return !kernel.getBody().getOps<WarpSpecializeOp>().empty();
}

namespace {
struct ConvertHopperToNVVMPass
    : attn::impl::ConvertHopperToNVVMBase<ConvertHopperToNVVMPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto kernels = llvm::to_vector(module.getOps<tile::KernelOp>());
    if (kernels.empty())
      return;
    const attn::TargetInfo &target = *attn::TargetInfo::lookup("sm_90a");
    gpu::GPUModuleOp gpuModule = tile::createGPUModule(module);
    LLVM::GlobalOp sharedMemory = tile::createSharedMemory(gpuModule);
    for (tile::KernelOp kernel : kernels) {
      if (!hasRoles(kernel)) {
        if (failed(tile::lowerKernel(kernel, gpuModule, sharedMemory, target)))
          return signalPassFailure();
        continue;
      }
      HopperLowering lowering(kernel, gpuModule, sharedMemory, target);
      if (failed(lowering.run()))
        return signalPassFailure();
      LaunchParameters parameters{lowering.isPersistent(),
                                  lowering.getTensorMaps()};
      addLaunchParameters(module, kernel, parameters);
      kernel.erase();
    }
  }
};
} // namespace
