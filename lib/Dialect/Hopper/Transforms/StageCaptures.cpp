//===- StageCaptures.cpp - Captures through shared memory -----------------===//

#include "attn/Dialect/Attn/IR/AttnOps.h"
#include "attn/Dialect/Attn/IR/AttnSupport.h"
#include "attn/Dialect/Hopper/Transforms/Passes.h"
#include "attn/Target/TargetInfo.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

namespace mlir::hopper {
#define GEN_PASS_DEF_HOPPERSTAGECAPTURES
#include "attn/Dialect/Hopper/Transforms/Passes.h.inc"
} // namespace mlir::hopper

using namespace mlir;
using namespace mlir::hopper;
using namespace mlir::tile;

static constexpr int64_t kDefaultStages = 2;
/// With fewer stages loads don't run ahead of their use.
static constexpr int64_t kMinStages = 2;
// Barriers, posted numbers and the alignment of tiles, rounded up.
static constexpr int64_t kReservedBytes = 2048;
// Rows of blocks, see RingType.
static constexpr int64_t kBlockRowBytes = 128;
static constexpr int64_t kMinBlockRowBytes = 32;
// What a ramp takes for each column, see WgmmaOp.
static constexpr int64_t kRampColumnBytes = 16;
// PTX ISA, tensor maps.
static constexpr int64_t kMaxRank = 5;

namespace {
/// The part of a capture under one tile of scores, and who reads it.
struct Plane {
  Operation *rule;
  Value source;
  SmallVector<Value> position;
  RankedTensorType type;
  SmallVector<GatherOp> readers;

  bool isSame(const Plane &other) const {
    return rule->getBlock() == other.rule->getBlock() &&
           source == other.source && position == other.position;
  }
};

/// Shared memory of a kernel's rings, in bytes.
struct RingBudget {
  /// What the stages below share.
  int64_t available = 0;
  /// One stage of K and V.
  int64_t keysAndValues = 0;

  int64_t countStages(int64_t kvStages, int64_t bytesPerStage) const {
    return (available - kvStages * keysAndValues) / bytesPerStage;
  }
};
} // namespace

static int64_t getSlotBytes(RankedTensorType type) {
  int64_t elementBytes = llvm::divideCeil(type.getElementTypeBitWidth(), 8);
  return type.getDimSize(0) *
         llvm::alignTo(type.getDimSize(1) * elementBytes,
                       elementBytes == 1 ? kMinBlockRowBytes : kBlockRowBytes);
}

static RingBudget getBudget(KVLoopOp loop, KernelOp kernel) {
  RingBudget budget;
  budget.available =
      attn::TargetInfo::lookup("sm_90a")->maxSharedBytes - kReservedBytes;
  auto roles = kernel->getAttrOfType<attn::WarpRolesAttr>(
      attn::WarpRolesAttr::getKernelAttrName());
  int64_t qStages = roles ? roles.getQStages() : 1;
  for (auto product : loop.getQk().getOps<MmaOp>())
    if (!matchPattern(product.getAcc(), m_AnyZeroFloat()))
      budget.available -= kRampColumnBytes * product.getType().getDimSize(1);
  for (auto product : loop.getPv().getOps<MmaOp>())
    if (auto type = cast<RankedTensorType>(product.getB().getType());
        type.getElementTypeBitWidth() == 8 && !product.getTransposeB())
      budget.available -= attn::kStagedValueTiles * getSlotBytes(type);
  kernel.walk([&](LoadOp load) {
    auto type = dyn_cast<RankedTensorType>(load.getType());
    if (!type || type.getRank() != 2)
      return;
    if (loop->isProperAncestor(load))
      budget.keysAndValues += getSlotBytes(type);
    else
      budget.available -= qStages * getSlotBytes(type);
  });
  return budget;
}

/// The position that `gather`, in the region of `rule`, reads for the first
/// query and key of a tile, if it reads (..., query, key); else empty.
static SmallVector<Value> getPosition(GatherOp gather, Operation *rule,
                                      KVLoopOp loop) {
  auto isInFront = [&](Value value) {
    return value.getType().isInteger(32) &&
           value.getParentBlock() == loop->getBlock();
  };
  ValueRange indices = gather.getIndices();
  ValueRange arguments = rule->getRegion(0).getArguments().take_back(2);
  int64_t rank = indices.size();
  Value qStart = rule->getOperand(1), kvStart = rule->getOperand(2);
  if (rank < 2 || rank > kMaxRank || indices.take_back(2) != arguments ||
      !isInFront(qStart) || kvStart != rule->getBlock()->getArgument(0))
    return {};
  SmallVector<Value> position(indices.drop_back(2));
  for (auto [dim, index] : llvm::enumerate(position))
    if (!isInFront(index) ||
        !llvm::is_contained(gather.getInBounds(), static_cast<int64_t>(dim)))
      return {};
  position.push_back(qStart);
  position.push_back(kvStart);
  return position;
}

static SmallVector<Plane> findPlanes(KVLoopOp loop) {
  SmallVector<Plane> planes;
  loop.walk([&](GatherOp gather) {
    Operation *rule = gather->getParentOp();
    Type element = gather.getType();
    // The pv region has no scores.
    if (!isa<ScoreModOp, MaskOp>(rule) || rule->getParentOp() != loop ||
        rule->getParentRegion() == &loop.getPv() ||
        !RingType::isReadable(element) ||
        !isa<BlockArgument>(gather.getSource()))
      return;
    auto scores = cast<RankedTensorType>(rule->getOperand(0).getType());
    Plane plane = {rule,
                   gather.getSource(),
                   getPosition(gather, rule, loop),
                   scores.clone(element),
                   {gather}};
    if (plane.position.empty())
      return;
    auto *known = llvm::find_if(
        planes, [&](const Plane &other) { return other.isSame(plane); });
    if (known == planes.end())
      planes.push_back(plane);
    else
      known->readers.push_back(gather);
  });
  return planes;
}

static int64_t countBytes(ArrayRef<Plane> planes) {
  int64_t bytes = 0;
  for (const Plane &plane : planes)
    bytes += getSlotBytes(plane.type);
  return bytes;
}

/// Loads a tile in front of the first rule that reads it.
static void stage(const Plane &plane, int64_t stages) {
  OpBuilder builder(plane.rule);
  auto load = LoadOp::create(builder, plane.rule->getLoc(), plane.type,
                             plane.source, plane.position);
  load->setAttr(HopperDialect::getStagesAttrName(),
                builder.getI32IntegerAttr(stages));
  for (GatherOp gather : plane.readers) {
    builder.setInsertionPoint(gather);
    gather.replaceAllUsesWith(
        ElementOp::create(builder, gather.getLoc(), load.getResult())
            .getResult());
    gather.erase();
  }
}

namespace {
struct HopperStageCapturesPass
    : hopper::impl::HopperStageCapturesBase<HopperStageCapturesPass> {
  void runOnOperation() override {
    KernelOp kernel = getOperation();
    auto loops = llvm::to_vector(kernel.getBody().getOps<KVLoopOp>());
    if (loops.size() == 1 && !attn::isForDecode(kernel))
      stageCaptures(kernel, loops.front());
  }

private:
  static void stageCaptures(KernelOp kernel, KVLoopOp loop) {
    SmallVector<Plane> planes = findPlanes(loop);
    RingBudget budget = getBudget(loop, kernel);
    int64_t kvStages = kernel.getNumStages().value_or(kDefaultStages);
    const int64_t maxStages = kvStages;
    const int64_t leastKVStages = std::min(kvStages, kMinStages);
    while (!planes.empty() &&
           budget.countStages(leastKVStages, countBytes(planes)) < 1)
      planes.pop_back();
    if (planes.empty())
      return;
    int64_t bytes = countBytes(planes);
    while (kvStages > leastKVStages &&
           budget.countStages(kvStages, bytes) < kMinStages)
      --kvStages;
    if (kvStages != maxStages)
      kernel.setNumStages(static_cast<uint32_t>(kvStages));
    int64_t stages = std::min(budget.countStages(kvStages, bytes), maxStages);
    for (const Plane &plane : planes)
      stage(plane, stages);
  }
};
} // namespace
