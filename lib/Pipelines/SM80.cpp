//===- SM80.cpp - From tile kernels to LLVM dialect on sm_80 --------------===//

#include "attn/Pipelines/SM80.h"
#include "attn/Conversion/Passes.h"
#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;

void attn::buildTileToSM80Pipeline(OpPassManager &pm) {
  pm.addNestedPass<tile::KernelOp>(tile::createTileAssignLayouts());
  pm.addPass(createConvertTileToNVVM());
}
