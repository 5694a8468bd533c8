//===- TileToNVVM.cpp - tile kernels to GPU kernels -----------------------===//

#include "KernelLowering.h"
#include "attn/Conversion/Passes.h"
#include "attn/Target/TargetInfo.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/MathExtras.h"

namespace mlir::attn {
#define GEN_PASS_DEF_CONVERTTILETONVVM
#include "attn/Conversion/Passes.h.inc"
} // namespace mlir::attn

using namespace mlir;
using namespace mlir::tile;

gpu::GPUModuleOp tile::createGPUModule(ModuleOp module) {
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  module->setAttr(gpu::GPUDialect::getContainerModuleAttrName(),
                  builder.getUnitAttr());
  return gpu::GPUModuleOp::create(builder, module.getLoc(), "kernels");
}

LLVM::GlobalOp tile::createSharedMemory(gpu::GPUModuleOp module) {
  OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
  auto type = LLVM::LLVMArrayType::get(builder.getI8Type(), 0);
  return LLVM::GlobalOp::create(builder, module.getLoc(), type,
                                /*isConstant=*/false, LLVM::Linkage::External,
                                "dynamic_smem", /*value=*/Attribute(),
                                /*alignment=*/128, /*addrSpace=*/3);
}

LogicalResult tile::lowerKernel(KernelOp kernel, gpu::GPUModuleOp module,
                                LLVM::GlobalOp sharedMemory,
                                const attn::TargetInfo &target) {
  if (!llvm::isPowerOf2_32(kernel.getNumWarps()))
    return kernel.emitOpError("num_warps must be a power of two, not ")
           << kernel.getNumWarps();
  KernelLowering lowering(kernel, module, sharedMemory, target);
  if (failed(lowering.run()))
    return failure();
  kernel.erase();
  return success();
}

namespace {
struct ConvertTileToNVVM
    : attn::impl::ConvertTileToNVVMBase<ConvertTileToNVVM> {
  using ConvertTileToNVVMBase::ConvertTileToNVVMBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    const auto *info =
        attn::TargetInfo::lookupOrEmitError(target, module.getLoc());
    if (!info)
      return signalPassFailure();
    auto kernels = llvm::to_vector(module.getOps<KernelOp>());
    if (kernels.empty())
      return;
    gpu::GPUModuleOp gpuModule = createGPUModule(module);
    LLVM::GlobalOp sharedMemory = createSharedMemory(gpuModule);
    for (KernelOp kernel : kernels) {
      if (failed(lowerKernel(kernel, gpuModule, sharedMemory, *info)))
        return signalPassFailure();
    }
  }
};
} // namespace
