//===- CPU.cpp - From tile kernels to LLVM dialect on the CPU -------------===//

#include "attn/Pipelines/CPU.h"
#include "attn/Conversion/Passes.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/TargetParser/Host.h"

using namespace mlir;

int64_t attn::getHostVectorBits() {
  llvm::StringMap<bool> features = llvm::sys::getHostCPUFeatures();
  if (features.lookup("avx512f"))
    return 512;
  return features.lookup("avx2") ? 256 : 128;
}

void attn::buildTileToCPUPipeline(OpPassManager &pm, int64_t vectorBits) {
  pm.addPass(createConvertTileToVector({vectorBits}));
  pm.addPass(createSCFToControlFlowPass());
  pm.addPass(createConvertVectorToLLVMPass());
  pm.addPass(createConvertMathToLLVMPass());
  pm.addPass(createArithToLLVMConversionPass());
  pm.addPass(createConvertControlFlowToLLVMPass());
  pm.addPass(createReconcileUnrealizedCastsPass());
}
