//===- VerifyProtocol.cpp - Warp roles can't hang, race or read too early -===//

#include "ProtocolModel.h"
#include "attn/Dialect/Hopper/Transforms/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/MathExtras.h"

namespace mlir::hopper {
#define GEN_PASS_DEF_HOPPERVERIFYPROTOCOL
#include "attn/Dialect/Hopper/Transforms/Passes.h.inc"
} // namespace mlir::hopper

using namespace mlir;
using namespace mlir::hopper;

//===----------------------------------------------------------------------===//
// Registers
//===----------------------------------------------------------------------===//

static constexpr int64_t kRegistersPerSM = 65536;
static constexpr int64_t kRegisterGranularity = 8;

/// The launch allocates an equal share to every thread, rounded down; raising
/// the consumers' waits until the producer's have been freed.
static LogicalResult verifyRegisters(WarpSpecializeOp op) {
  int64_t threads = op.getNumThreads();
  int64_t perThread =
      llvm::alignDown(kRegistersPerSM / threads, kRegisterGranularity);
  int64_t available = perThread * threads;
  int64_t wanted =
      WarpSpecializeOp::kWarpgroupThreads *
      (int64_t(op.getProducerRegisters()) +
       int64_t(op.getWarpgroups()) * int64_t(op.getConsumerRegisters()));
  if (wanted <= available)
    return success();
  return op.emitOpError("gives its threads ")
         << wanted << " registers, but a launch of " << threads
         << " threads allocates " << available
         << ": setmaxnreg would wait forever";
}

//===----------------------------------------------------------------------===//
// Operations in their places
//===----------------------------------------------------------------------===//

/// A slot may only be used by operations of the protocol, and by control flow,
/// which hands it on.
static LogicalResult verifyUse(OpOperand &use) {
  Operation *user = use.getOwner();
  if (isa_and_present<HopperDialect, scf::SCFDialect>(user->getDialect()))
    return success();
  return user->emitOpError("takes a slot or a pending product, which only "
                           "operations of the hopper dialect and scf may take");
}

template <typename... BannedOps>
static LogicalResult verifyRole(Region &region, StringRef role) {
  WalkResult result = region.walk([&](Operation *op) -> WalkResult {
    if (isa<BannedOps...>(op))
      return op->emitOpError("has no place in the ") << role << " role";
    if (isa<WgmmaOp>(op) && op->use_empty())
      return op->emitOpError("must be waited for, or accumulated to");
    for (OpOperand &operand : op->getOpOperands())
      if (isa<SlotType, PendingType>(operand.get().getType()) &&
          failed(verifyUse(operand)))
        return WalkResult::interrupt();
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

/// A ring is filled by one role.
static LogicalResult verifyFillers(WarpSpecializeOp op) {
  WalkResult result = op.getTransposer().walk([&](AcquireOp acquire) {
    auto argument = dyn_cast<BlockArgument>(acquire.getRing());
    bool isArgument =
        argument && argument.getParentRegion() == &op.getTransposer();
    if (!isArgument ||
        !op.fills(op.getProducer(), op.getArgs()[argument.getArgNumber()]))
      return WalkResult::advance();
    acquire.emitOpError("fills a ring that the producer fills too; give the "
                        "transposer one of its own");
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

/// Rings are created, and roles started, by the kernel; all else is a role's.
static LogicalResult verifyOutsideRoles(tile::KernelOp kernel) {
  WalkResult result = kernel.walk([](Operation *op) -> WalkResult {
    bool isRoleOp = isa_and_present<HopperDialect>(op->getDialect()) &&
                    !isa<CreateRingOp, WarpSpecializeOp>(op);
    if (isRoleOp && !op->getParentOfType<WarpSpecializeOp>())
      return op->emitOpError("must stand in a role of hopper.warp_specialize");
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

/// Roles start once in a program, where rings start with tile 0.
static LogicalResult verifyPlace(WarpSpecializeOp op) {
  Block *block = op->getBlock();
  if (!isa<tile::KernelOp>(block->getParentOp()))
    return op.emitOpError("must stand in the body of its kernel, not in "
                          "control flow: its rings start once");
  for (auto other : block->getOps<WarpSpecializeOp>())
    if (other->isBeforeInBlock(op))
      return op.emitOpError("is not the first of its kernel; a program can "
                            "split into roles only once");
  return success();
}

//===----------------------------------------------------------------------===//
// Samples
//===----------------------------------------------------------------------===//

/// Rows of the smallest tiles that pass through rings: those of a step.
static int64_t getStepRows(WarpSpecializeOp op) {
  std::optional<int64_t> rows;
  for (Type type : op.getArgs().getTypes())
    if (auto ring = dyn_cast<RingType>(type); ring && !ring.isNumber())
      rows = std::min(rows.value_or(ring.getTile().getDimSize(0)),
                      ring.getTile().getDimSize(0));
  return rows.value_or(1);
}

/// Problems and programs for which loops have 0 to 5 and many steps, whole and
/// ragged, rings wrap around, and persistent programs take 1, 3 and 5 tiles.
static std::vector<ProblemSample> getSamples(WarpSpecializeOp op,
                                             bool isPersistent) {
  struct Program {
    int64_t querySize, program, numTiles;
  };
  // No program runs without a query. Which rows a program has depends on how
  // tiles are numbered: by head, or the last rows of many heads first.
  static constexpr Program kPrograms[] = {{1, 0, 1},    {129, 1, 3},
                                          {1000, 3, 5}, {700, 1, 1},
                                          {450, 0, 1},  {250, 5, 1}};
  // The tiles of these are many enough.
  static constexpr size_t kNumPersistent = 3;
  static constexpr int64_t kNumPrograms = 149;
  ArrayRef<Program> programs = kPrograms;
  if (isPersistent)
    programs = programs.take_front(kNumPersistent);
  int64_t rows = getStepRows(op);
  std::vector<ProblemSample> samples;
  for (int64_t otherSize : {int64_t(0), int64_t(1), rows + 1, 3 * rows,
                            4 * rows - 1, 4 * rows + 1, 7 * rows, 12 * rows})
    for (auto [querySize, program, numTiles] : programs)
      samples.push_back({querySize, otherSize, program, kNumPrograms,
                         program + 1 + (numTiles - 1) * kNumPrograms});
  return samples;
}

static LogicalResult verifySamples(WarpSpecializeOp op) {
  ProgramInterpreter interpreter(op);
  SmallVector<RingRoles> rings = findRingRoles(op);
  for (const ProblemSample &sample :
       getSamples(op, interpreter.isPersistent())) {
    FailureOr<ProgramTrace> program = interpreter.run(sample);
    if (failed(program) || failed(verifyProgram(op, rings, *program, sample,
                                                interpreter.isPersistent())))
      return failure();
  }
  return success();
}

namespace {
struct HopperVerifyProtocolPass
    : hopper::impl::HopperVerifyProtocolBase<HopperVerifyProtocolPass> {
  void runOnOperation() override {
    // Folding, which running the roles uses, may touch operations.
    OwningOpRef<tile::KernelOp> kernel = getOperation().clone();
    if (failed(verifyOutsideRoles(*kernel)))
      return signalPassFailure();
    WalkResult result = kernel->walk([](WarpSpecializeOp op) {
      bool failedOne =
          failed(verifyPlace(op)) || failed(verifyRegisters(op)) ||
          failed(verifyRole<WaitOp, ReleaseOp, GetOp, ReadOp, TmaStoreOp,
                            WgmmaOp, WgmmaWaitOp, WarpgroupIdOp, TransposeOp>(
              op.getProducer(), "producer")) ||
          failed(verifyRole<AcquireOp, CommitOp, TmaLoadOp, PutOp, NextTileOp,
                            TransposeOp>(op.getConsumer(), "consumer")) ||
          failed(verifyRole<TmaLoadOp, PutOp, NextTileOp, ReadOp, TmaStoreOp,
                            WgmmaOp, WgmmaWaitOp, WarpgroupIdOp>(
              op.getTransposer(), "transposer")) ||
          failed(verifyFillers(op)) || failed(verifySamples(op));
      return failedOne ? WalkResult::interrupt() : WalkResult::advance();
    });
    if (result.wasInterrupted())
      return signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace
