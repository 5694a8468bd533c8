//===- SM90a.cpp - From tile kernels to LLVM dialect on sm_90a ------------===//

#include "attn/Pipelines/SM90a.h"
#include "attn/Conversion/Passes.h"
#include "attn/Dialect/Hopper/Transforms/Passes.h"
#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

void attn::buildTileToSM90aPipeline(OpPassManager &pm) {
  OpPassManager &kernel = pm.nest<tile::KernelOp>();
  kernel.addPass(tile::createTileSplitKVRanges());
  kernel.addPass(tile::createTileDeferRescale());
  kernel.addPass(hopper::createHopperStageCaptures());
  kernel.addPass(createConvertTileToHopper());
  kernel.addPass(hopper::createHopperVerifyProtocol());
  // The loops of kernels without warp roles.
  kernel.addPass(tile::createTilePipelineLoads());
  kernel.addPass(tile::createTileLowerKVLoop());
  kernel.addPass(tile::createTileRewriteMasks());
  kernel.addPass(tile::createTileExpandOnlineSoftmax());
  kernel.addPass(tile::createTileLowerMath());
  kernel.addPass(createCanonicalizerPass());
  kernel.addPass(createCSEPass());
  kernel.addPass(hopper::createHopperAssignLayouts());
  pm.addPass(createConvertHopperToNVVM());
}
