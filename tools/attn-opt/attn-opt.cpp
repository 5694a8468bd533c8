//===- attn-opt.cpp - Runs passes and pipelines on MLIR files -------------===//

#include "attn/Pipelines/Pipelines.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  mlir::attn::registerAttncDialects(registry);
  mlir::registerTransformsPasses();
  mlir::attn::registerAttncPasses();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "attnc optimizer driver\n", registry));
}
