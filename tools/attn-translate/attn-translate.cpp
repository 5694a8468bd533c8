//===- attn-translate.cpp - Translates GPU modules to PTX -----------------===//

#include "attn/Pipelines/Pipelines.h"
#include "attn/Target/PTX.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Tools/mlir-translate/MlirTranslateMain.h"
#include "mlir/Tools/mlir-translate/Translation.h"
#include "llvm/Support/CommandLine.h"

using namespace mlir;

static LogicalResult translateToPTX(Operation *op, raw_ostream &output) {
  for (auto module : cast<ModuleOp>(op).getOps<gpu::GPUModuleOp>()) {
    llvm::Expected<std::string> ptx = attn::translateToPTX(module, "sm_80");
    if (!ptx)
      return module.emitError(llvm::toString(ptx.takeError()));
    output << *ptx;
  }
  return success();
}

int main(int argc, char **argv) {
  TranslateFromMLIRRegistration registration(
      "gpu-to-ptx", "Translate the gpu.modules to PTX for sm_80",
      translateToPTX, attn::registerAttncDialects);
  return failed(mlirTranslateMain(argc, argv, "attnc translation driver"));
}
