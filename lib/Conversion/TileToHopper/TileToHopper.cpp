//===- TileToHopper.cpp - tile kernels to warp-specialised ones -----------===//

#include "RoleBuilder.h"
#include "attn/Conversion/Passes.h"
#include "attn/Dialect/Attn/IR/AttnSupport.h"
#include "attn/Target/TargetInfo.h"
#include "mlir/Transforms/RegionUtils.h"

namespace mlir::attn {
#define GEN_PASS_DEF_CONVERTTILETOHOPPER
#include "attn/Conversion/Passes.h.inc"
} // namespace mlir::attn

using namespace mlir;
using namespace mlir::tile;
using namespace mlir::hopper;

static constexpr int32_t kDefaultStages = 2;
static constexpr int32_t kWarpsPerWarpgroup = 4;

static const attn::RegisterSplit *findRegisterSplit(int64_t rows) {
  constexpr int64_t kRows = WarpSpecializeOp::kRowsPerWarpgroup;
  return rows % kRows == 0 ? attn::RegisterSplit::lookup(rows / kRows)
                           : nullptr;
}

static RankedTensorType getTileType(Value value) {
  return cast<RankedTensorType>(value.getType());
}

static attn::WarpRolesAttr getSchedule(KernelOp kernel) {
  auto schedule = kernel->getAttrOfType<attn::WarpRolesAttr>(
      attn::WarpRolesAttr::getKernelAttrName());
  return schedule ? schedule
                  : attn::WarpRolesAttr::getDefault(kernel.getContext());
}

/// The ranges of the loop for the rows of one warpgroup, computed in front of
/// it.
static KVRanges computeWarpgroupRanges(KVLoopOp loop, int64_t warpgroups) {
  if (warpgroups == 1)
    return {loop.getBegin(), loop.getFullBegin(), loop.getFullEnd(),
            loop.getEnd()};
  ImplicitLocOpBuilder builder(loop.getLoc(), loop);
  constexpr int64_t kRows = WarpSpecializeOp::kRowsPerWarpgroup;
  Value rows =
      arith::ConstantOp::create(builder, builder.getI32IntegerAttr(kRows));
  Value warpgroup = WarpgroupIdOp::create(builder, builder.getI32Type());
  Value offset = arith::MulIOp::create(builder, warpgroup, rows);
  SmallVector<Operation *> opaque;
  return computeKVRanges(builder, loop, RowWindow{offset, kRows}, opaque);
}

/// The i32 scalars in front of the loop that follow from the program's number
/// and that something else than such scalars uses.
static SmallVector<Value> findSharedScalars(const KVLoopKernel &parts,
                                            KernelOp kernel) {
  SetVector<Operation *> scalars;
  for (Operation &op : kernel.getBody().front()) {
    if (&op == parts.loop)
      break;
    bool isScalar = isScalarCode(op) && op.getNumResults() == 1 &&
                    op.getResult(0).getType().isIntOrIndex();
    bool follows = llvm::any_of(getUsedValues(op), [&](Value operand) {
      return scalars.contains(operand.getDefiningOp());
    });
    if (isa<ProgramIdOp>(op) || (isScalar && follows))
      scalars.insert(&op);
  }
  SmallVector<Value> shared;
  for (Operation *op : scalars) {
    bool isUsed = llvm::any_of(op->getUsers(), [&](Operation *user) {
      // Scalar code may have regions; the loop's are the consumers'.
      Operation *top = kernel.getBody().findAncestorOpInRegion(*user);
      if (top != parts.loop)
        user = top;
      return !scalars.contains(user) && !parts.isReplaced(user) &&
             user != parts.loop;
    });
    KVLoopOp loop = parts.loop;
    isUsed |= llvm::is_contained(loop.getTilesIndices(), op->getResult(0));
    if (isUsed && !isa<ProgramIdOp>(op) &&
        op->getResult(0).getType().isInteger(32))
      shared.push_back(op->getResult(0));
  }
  return shared;
}

namespace {
struct ConvertTileToHopperPass
    : attn::impl::ConvertTileToHopperBase<ConvertTileToHopperPass> {
  using ConvertTileToHopperBase::ConvertTileToHopperBase;

  void runOnOperation() override {
    KernelOp kernel = getOperation();
    bool hasLoop = kernel.walk([](KVLoopOp) { return WalkResult::interrupt(); })
                       .wasInterrupted();
    if (!hasLoop || attn::isForDecode(kernel))
      return;
    FailureOr<KVLoopKernel> parts = KVLoopKernel::match(kernel);
    if (failed(parts) || failed(split(kernel, *parts)))
      return signalPassFailure();
  }

private:
  static Value createRing(OpBuilder &builder, Operation *load, int64_t stages,
                          RankedTensorType tile) {
    auto emitError = [&] { return load->emitOpError("in a ring: "); };
    auto type =
        RingType::getChecked(emitError, load->getContext(), stages, tile);
    if (!type)
      return {};
    return CreateRingOp::create(builder, load->getLoc(), type);
  }

  /// Adds the rings of tiles in the order of the members of `Rings`.
  static LogicalResult createTileRings(OpBuilder &builder,
                                       const KVLoopKernel &parts,
                                       int64_t qStages, int64_t numStages,
                                       Values &args) {
    auto add = [&](LoadOp load, int64_t stages, RankedTensorType tile) {
      args.push_back(createRing(builder, load, stages, tile));
      return success(bool(args.back()));
    };
    LoadOp q = parts.qLoad, k = parts.kLoad, v = parts.vLoad;
    RankedTensorType vTile = v.getType(), productTile = vTile;
    if (parts.transposesV)
      productTile = vTile.clone({vTile.getDimSize(1), vTile.getDimSize(0)});
    if (failed(add(q, qStages, q.getType())) ||
        failed(add(k, numStages, k.getType())) ||
        failed(add(v, numStages, productTile)))
      return failure();
    for (LoadOp load : parts.captureLoads) {
      auto stages =
          load->getAttrOfType<IntegerAttr>(HopperDialect::getStagesAttrName());
      if (failed(add(load, stages.getInt(), load.getType())))
        return failure();
    }
    return parts.transposesV ? add(v, attn::kStagedValueTiles, vTile)
                             : success();
  }

  /// The numbers of two tiles.
  static Value createNumberRing(OpBuilder &builder, Location loc,
                                int64_t count) {
    auto numbers = RankedTensorType::get(count, builder.getI32Type());
    auto type = RingType::get(builder.getContext(), /*stages=*/2, numbers);
    return CreateRingOp::create(builder, loc, type);
  }

  static LogicalResult split(KernelOp kernel, KVLoopKernel parts) {
    int64_t rows = getTileType(parts.qLoad.getResult()).getDimSize(0);
    const attn::RegisterSplit *registers = findRegisterSplit(rows);
    if (!registers)
      return parts.qLoad.emitOpError("has ")
             << rows
             << " rows; 64 rows a consumer warpgroup, with 1 to 4 of "
                "them: use block_m = 64, 128, 192 or 256";
    attn::WarpRolesAttr schedule = getSchedule(kernel);
    if (schedule.getTmaStore())
      parts.tmaStore = parts.findTmaStore();
    int64_t numStages = kernel.getNumStages().value_or(kDefaultStages);
    TileScalars scalars;
    scalars.shared = findSharedScalars(parts, kernel);
    scalars.warpgroups = registers->warpgroups;
    scalars.ranges = computeWarpgroupRanges(parts.loop, registers->warpgroups);

    Block &body = kernel.getBody().front();
    OpBuilder builder = OpBuilder::atBlockTerminator(&body);
    Values args(kernel.getBody().getArguments());
    if (failed(createTileRings(builder, parts, schedule.getQStages(), numStages,
                               args)))
      return failure();
    if (schedule.getPersistent())
      args.push_back(
          createNumberRing(builder, kernel.getLoc(), scalars.countPosted()));
    kernel.setNumWarps(kWarpsPerWarpgroup * (1 + registers->warpgroups));
    auto roles = WarpSpecializeOp::create(
        builder, kernel.getLoc(), args, registers->producer,
        registers->warpgroups, registers->consumer);
    ProducerBuilder producer(parts, schedule, scalars, roles.getProducer(),
                             args);
    if (failed(producer.build()))
      return failure();
    if (parts.transposesV)
      TransposerBuilder(parts, schedule, scalars, roles.getTransposer(), args)
          .build();
    ConsumerBuilder(parts, schedule, scalars, roles.getConsumer(), args)
        .build();
    eraseReplaced(body);

    IRRewriter rewriter(builder);
    (void)runRegionDCE(rewriter, roles->getRegions());
    return success();
  }

  /// Leaves the rings, the roles and the terminator.
  static void eraseReplaced(Block &body) {
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
      if (!isa<CreateRingOp, WarpSpecializeOp, ReturnOp>(op))
        op.erase();
  }
};
} // namespace
