//===- Pipelines.cpp - From attn.attention to LLVM dialect ----------------===//

#include "attn/Pipelines/Pipelines.h"
#include "attn/Conversion/Passes.h"
#include "attn/Dialect/Attn/Transforms/Passes.h"
#include "attn/Dialect/Hopper/Transforms/Passes.h"
#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "attn/Pipelines/CPU.h"
#include "attn/Pipelines/SM80.h"
#include "attn/Pipelines/SM90a.h"
#include "attn/Target/ScheduleTable.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::attn;

static constexpr std::pair<Variant, StringRef> kVariants[] = {
    {Variant::Naive, "naive"},
    {Variant::Inplace, "inplace"},
    {Variant::Math, "math"},
    {Variant::Fused, "fused"}};

StringRef attn::stringifyVariant(Variant variant) {
  return llvm::find_if(kVariants,
                       [&](auto &entry) { return entry.first == variant; })
      ->second;
}

std::optional<Variant> attn::symbolizeVariant(StringRef name) {
  for (auto [variant, variantName] : kVariants)
    if (name == variantName)
      return variant;
  return std::nullopt;
}

ArrayRef<Variant> attn::getAllVariants() {
  static constexpr Variant kAll[] = {Variant::Naive, Variant::Inplace,
                                     Variant::Math, Variant::Fused};
  return kAll;
}

/// Tensors to tile kernels and their launches.
static void buildFrontEnd(OpPassManager &pm, Variant variant,
                          const TargetInfo &target) {
  std::string targetName = target.name.str();
  pm.addNestedPass<func::FuncOp>(createAttnInsertChecks());
  pm.addNestedPass<func::FuncOp>(createAttnLowerMerge());
  if (variant == Variant::Fused) {
    pm.addNestedPass<func::FuncOp>(createAttnSelectSchedule({targetName}));
    pm.addPass(createAttnBufferize());
    pm.addPass(createConvertAttnToTile({targetName}));
    // What surrounds the attention: copies into a cache, score outputs.
    pm.addPass(createConvertLinalgToTile({targetName}));
    return;
  }
  pm.addNestedPass<func::FuncOp>(
      createConvertAttnToLinalg({stringifyVariant(variant).str()}));
  if (variant == Variant::Inplace)
    pm.addNestedPass<func::FuncOp>(createAttnInplaceMask());
  pm.addPass(createAttnBufferize());
  pm.addPass(createConvertLinalgToTile({targetName}));
}

/// Tile kernels, as tile-lower-math leaves them, to LLVM dialect.
static void buildBackEnd(OpPassManager &pm, const TargetInfo &target) {
  if (target.isGPU)
    buildTileToSM80Pipeline(pm);
  else
    buildTileToCPUPipeline(pm);
}

/// Tile kernels to elementwise ops, reductions and matrix products in loops.
static void buildKernelMiddle(OpPassManager &pm, const TargetInfo &target) {
  OpPassManager &kernel = pm.nest<tile::KernelOp>();
  kernel.addPass(tile::createTileSplitKVRanges());
  if (target.isGPU)
    kernel.addPass(tile::createTileDeferRescale());
  // Prefetching looks at the whole kv_loop, so that one stream of loads
  // crosses the loops that it becomes.
  if (target.isGPU)
    kernel.addPass(tile::createTilePipelineLoads());
  kernel.addPass(tile::createTileLowerKVLoop());
  kernel.addPass(tile::createTileRewriteMasks());
  kernel.addPass(tile::createTileExpandOnlineSoftmax());
  kernel.addPass(tile::createTileLowerMath());
  kernel.addPass(createCanonicalizerPass());
  kernel.addPass(createCSEPass());
}

const TargetInfo &attn::getKernelTarget(func::FuncOp entry, Variant variant,
                                        const TargetInfo &target) {
  if (!target.hasWarpRoles)
    return target;
  const TargetInfo &other = *TargetInfo::lookup("sm_80");
  // What neither serves is refused by the target that was asked for.
  WalkResult result = entry.walk([&](AttentionOp op) {
    return getUnserved(op, target).empty() || !getUnserved(op, other).empty()
               ? WalkResult::advance()
               : WalkResult::interrupt();
  });
  return variant == Variant::Fused && !result.wasInterrupted() ? target : other;
}

void attn::buildAttnPipeline(OpPassManager &pm, Variant variant,
                             const TargetInfo &target) {
  // The unfused kernels are those of sm_80, on every GPU.
  if (target.hasWarpRoles && variant != Variant::Fused)
    return buildAttnPipeline(pm, variant, *TargetInfo::lookup("sm_80"));
  buildFrontEnd(pm, variant, target);
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  pm.addPass(createConvertHostToPlan());
  if (target.hasWarpRoles)
    return buildTileToSM90aPipeline(pm);
  buildKernelMiddle(pm, target);
  buildBackEnd(pm, target);
}

void attn::buildKVRangesPipeline(OpPassManager &pm, const TargetInfo &target) {
  buildFrontEnd(pm, Variant::Fused, target);
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  pm.nest<tile::KernelOp>().addPass(tile::createTileSplitKVRanges());
}

void attn::buildCudnnPipeline(OpPassManager &pm) {
  pm.addNestedPass<func::FuncOp>(createAttnInsertChecks());
  pm.addPass(createAttnBufferize());
  pm.addPass(createConvertAttnToCudnn());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  pm.addPass(createConvertHostToPlan());
}

/// PassPipelineRegistration with a check of the target's name.
static void registerPipeline(Variant variant, StringRef description) {
  auto build = [variant](OpPassManager &pm, StringRef text,
                         function_ref<LogicalResult(const Twine &)> error) {
    AttnPipelineOptions options;
    if (failed(options.parseFromString(text)))
      return failure();
    std::string name = resolveTarget(
        options.target, ("attn-" + stringifyVariant(variant)).str());
    const TargetInfo *target = TargetInfo::lookup(name);
    if (!target)
      return error(TargetInfo::explainUnknown(
          name, "native, " + TargetInfo::getAllNames()));
    buildAttnPipeline(pm, variant, *target);
    return success();
  };
  auto printOptions =
      [](function_ref<void(const mlir::detail::PassOptions &)> fn) {
        fn(AttnPipelineOptions());
      };
  registerPassPipeline(("attn-" + stringifyVariant(variant)).str(), description,
                       build, printOptions);
}

void attn::registerAttncPasses() {
  registerAttnPasses();
  registerAttncConversionPasses();
  hopper::registerHopperPasses();
  tile::registerTilePasses();
  registerPipeline(Variant::Naive,
                   "Lowers attention to the unfused sequence, with the copy of "
                   "an out-of-place masked fill");
  registerPipeline(Variant::Inplace,
                   "As attn-naive, with the mask applied in place");
  registerPipeline(Variant::Math,
                   "Lowers attention to the reference sequence in f32");
  registerPipeline(Variant::Fused, "Lowers attention to one fused kernel");
  PassPipelineRegistration<>(
      "attn-cudnn", "Lowers attention to a call of cuDNN", buildCudnnPipeline);
  PassPipelineRegistration<>(
      "tile-to-sm80", "Lowers tile kernels to GPU kernels for sm_80",
      [](OpPassManager &pm) {
        const TargetInfo &target = *TargetInfo::lookup("sm_80");
        buildKernelMiddle(pm, target);
        buildBackEnd(pm, target);
      });
  PassPipelineRegistration<>(
      "tile-to-sm90a",
      "Lowers attention kernels to warp-specialised GPU kernels for sm_90a",
      [](OpPassManager &pm) { buildTileToSM90aPipeline(pm); });
}
