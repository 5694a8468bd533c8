//===- attn-opt.cpp - Runs passes and pipelines on MLIR files -------------===//

#include "attn/Pipelines/Pipelines.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

/// Leaves LLVM's options, which are hundreds and registered by now, to
/// --help-hidden.
static void hideLLVMOptions() {
  for (auto &option : llvm::cl::getRegisteredOptions())
    if (option.second->Categories.front()->getName() != "Generic Options")
      option.second->setHiddenFlag(llvm::cl::Hidden);
}

int main(int argc, char **argv) {
  hideLLVMOptions();
  mlir::DialectRegistry registry;
  mlir::attn::registerAttncDialects(registry);
  mlir::registerTransformsPasses();
  mlir::attn::registerAttncPasses();
  return mlir::asMainReturnCode(mlir::MlirOptMain(
      argc, argv, "Runs passes and pipelines on MLIR files\n", registry));
}
