//===- VerifyProtocol.cpp - Warp roles can't hang, race or read too early -===//

#include "ProtocolTrace.h"
#include "attn/Dialect/Hopper/Transforms/Passes.h"
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
// Slots and pending products, block by block
//===----------------------------------------------------------------------===//

/// How many products start in `block` after `first` and before `last`.
static FailureOr<int64_t> countProducts(Operation *first, Operation *last) {
  int64_t count = 0;
  for (Operation *op = first->getNextNode(); op != last;
       op = op->getNextNode()) {
    if (isa<WgmmaOp>(op))
      ++count;
    else if (op->walk([](WgmmaOp) {
                 return WalkResult::interrupt();
               }).wasInterrupted())
      return op->emitOpError("starts products while another one is pending; "
                             "wait for that first");
  }
  return count;
}

/// A product must be waited for, or be accumulated to, once, in its block.
static LogicalResult verifyPending(WgmmaOp op) {
  Value pending = op.getResult();
  if (!pending.hasOneUse())
    return op.emitOpError(
        "must be waited for, or accumulated to, exactly once");
  Operation *user = *pending.user_begin();
  if (user->getBlock() != op->getBlock() || !isa<WgmmaOp, WgmmaWaitOp>(user))
    return op.emitOpError("leaves its block while it is pending; put the "
                          "hopper.wgmma_wait into the same block");
  auto wait = dyn_cast<WgmmaWaitOp>(user);
  if (!wait)
    return success();
  FailureOr<int64_t> later = countProducts(op, wait);
  if (failed(later))
    return failure();
  if (*later >= wait.getInFlight())
    return success();
  InFlightDiagnostic diag = wait.emitOpError("leaves ")
                            << wait.getInFlight()
                            << " products in flight, and its operand is one of "
                               "them";
  diag.attachNote(op.getLoc()) << "only " << *later << " start after it";
  return diag;
}

/// True if `product` is complete before `op` for certain.
static bool isCompleteBefore(WgmmaOp product, Operation *op) {
  int64_t later = 0;
  for (Operation *next = product->getNextNode(); next && next != op;
       next = next->getNextNode()) {
    if (isa<WgmmaOp>(next))
      ++later;
    if (auto wait = dyn_cast<WgmmaWaitOp>(next);
        wait && later >= wait.getInFlight())
      return true;
  }
  return false;
}

/// A slot must be given back once, in its block or one around it, behind its
/// uses.
template <typename GiveOp>
static LogicalResult verifySlot(Operation *take) {
  Value slot = take->getResult(0);
  GiveOp give;
  for (Operation *user : slot.getUsers()) {
    if (isa<TmaLoadOp, WgmmaOp>(user))
      continue;
    auto found = dyn_cast<GiveOp>(user);
    if (!found)
      return user->emitOpError("takes a slot, which may only be loaded to, "
                               "multiplied from and given back");
    if (give)
      return found.emitOpError("gives a slot back for the second time");
    give = found;
  }
  if (!give || give->getBlock() != take->getBlock())
    return take->emitOpError("takes a slot that ")
           << GiveOp::getOperationName()
           << " doesn't give back in the same block";
  for (Operation *user : slot.getUsers()) {
    Operation *inBlock = take->getBlock()->findAncestorOpInBlock(*user);
    if (user != give && !inBlock->isBeforeInBlock(give))
      return user->emitOpError("uses a slot that has been given back");
    auto product = dyn_cast<WgmmaOp>(user);
    Operation *limit = product && user->getBlock() == take->getBlock()
                           ? give.getOperation()
                           : nullptr;
    if (product && !isCompleteBefore(product, limit)) {
      InFlightDiagnostic diag =
          give->emitOpError("gives a slot back while a product may read it");
      diag.attachNote(product.getLoc()) << "the product";
      return diag;
    }
  }
  return success();
}

template <typename... BannedOps>
static LogicalResult verifyRole(Region &region, StringRef role) {
  auto verifyOps = [&](auto &&verifyOp) {
    WalkResult result = region.walk([&](Operation *op) {
      return failed(verifyOp(op)) ? WalkResult::interrupt()
                                  : WalkResult::advance();
    });
    return failure(result.wasInterrupted());
  };
  auto verifyProduct = [&](Operation *op) -> LogicalResult {
    if (isa<BannedOps...>(op))
      return op->emitOpError("has no place in the ") << role << " role";
    auto product = dyn_cast<WgmmaOp>(op);
    return product ? verifyPending(product) : success();
  };
  auto verifyTakenSlot = [&](Operation *op) -> LogicalResult {
    if (isa<AcquireOp>(op))
      return verifySlot<CommitOp>(op);
    return isa<WaitOp>(op) ? verifySlot<ReleaseOp>(op) : success();
  };
  // What a slot needs follows from waits that are right.
  return success(succeeded(verifyOps(verifyProduct)) &&
                 succeeded(verifyOps(verifyTakenSlot)));
}

//===----------------------------------------------------------------------===//
// Traces
//===----------------------------------------------------------------------===//

namespace {
/// Plays the traces of both roles against each other.
class RingModel {
public:
  explicit RingModel(StringRef problem) : problem(problem) {}

  LogicalResult run(ArrayRef<RingEvent> producer,
                    ArrayRef<RingEvent> consumer) {
    size_t nextProduced = 0, nextConsumed = 0;
    while (nextProduced < producer.size() || nextConsumed < consumer.size()) {
      bool moved = false;
      while (nextProduced < producer.size() && canRun(producer[nextProduced])) {
        if (failed(step(producer[nextProduced++])))
          return failure();
        moved = true;
      }
      while (nextConsumed < consumer.size() && canRun(consumer[nextConsumed])) {
        if (failed(step(consumer[nextConsumed++])))
          return failure();
        moved = true;
      }
      if (!moved)
        return emitDeadlock(producer.drop_front(nextProduced),
                            consumer.drop_front(nextConsumed));
    }
    return verifyDrained();
  }

private:
  struct State {
    int64_t acquired = 0, committed = 0, waited = 0, released = 0;
    Operation *lastAcquire = nullptr;
  };

  bool canRun(const RingEvent &event) {
    State &state = states[event.ring];
    // A tile that is out of turn is for `step` to report.
    switch (event.kind) {
    case RingEvent::Acquire:
      return event.number != state.acquired ||
             event.number < state.released + event.stages;
    case RingEvent::Wait:
      return event.number != state.waited || event.number < state.committed;
    case RingEvent::Commit:
    case RingEvent::Release:
      return true;
    }
    llvm_unreachable("unknown event");
  }

  LogicalResult step(const RingEvent &event) {
    State &state = states[event.ring];
    int64_t *counters[] = {&state.acquired, &state.committed, &state.waited,
                           &state.released};
    int64_t &next = *counters[event.kind];
    if (event.number != next)
      return event.op->emitOpError("handles tile ")
             << event.number << " of ring " << event.ring << " where tile "
             << next << " is next, " << problem;
    ++next;
    if (event.kind == RingEvent::Acquire)
      state.lastAcquire = event.op;
    return success();
  }

  LogicalResult emitDeadlock(ArrayRef<RingEvent> producer,
                             ArrayRef<RingEvent> consumer) {
    const RingEvent &first = consumer.empty() ? producer[0] : consumer[0];
    InFlightDiagnostic diag = first.op->emitOpError("waits forever for tile ")
                              << first.number << " of ring " << first.ring
                              << ", " << problem;
    if (!consumer.empty() && !producer.empty())
      diag.attachNote(producer[0].op->getLoc())
          << "the producer waits here for an empty slot for tile "
          << producer[0].number << " of ring " << producer[0].ring;
    return diag;
  }

  /// A program must not end while loads into its shared memory are under way.
  LogicalResult verifyDrained() {
    for (auto &[ring, state] : states)
      if (state.committed != state.waited)
        return state.lastAcquire->emitOpError("fills ")
               << state.committed << " tiles of ring " << ring
               << ", but the consumers take " << state.waited << ", "
               << problem;
    return success();
  }

  StringRef problem;
  llvm::MapVector<unsigned, State> states;
};
} // namespace

/// Sizes of a problem at which loops have none, one and many steps, whole and
/// ragged tiles, and rings wrap around. No program runs without a query.
static constexpr int64_t kQuerySizes[] = {1, 129, 1000};
static constexpr int64_t kKeySizes[] = {0, 1, 64, 129, 1000};
static constexpr int64_t kPrograms[] = {0, 1, 5};

static LogicalResult verifyTraces(WarpSpecializeOp op) {
  for (int64_t querySize : kQuerySizes) {
    for (int64_t keySize : kKeySizes) {
      for (int64_t program : kPrograms) {
        ProblemSample sample{querySize, keySize, program};
        FailureOr<std::vector<RingEvent>> producer =
            traceRole(op, op.getProducer(), sample);
        FailureOr<std::vector<RingEvent>> consumer =
            traceRole(op, op.getConsumer(), sample);
        if (failed(producer) || failed(consumer))
          return failure();
        std::string problem = sample.describe();
        if (failed(RingModel(problem).run(*producer, *consumer)))
          return failure();
      }
    }
  }
  return success();
}

namespace {
struct HopperVerifyProtocolPass
    : hopper::impl::HopperVerifyProtocolBase<HopperVerifyProtocolPass> {
  void runOnOperation() override {
    // Folding, which the traces use, may touch operations.
    OwningOpRef<tile::KernelOp> kernel = getOperation().clone();
    WalkResult result = kernel->walk([](WarpSpecializeOp op) {
      bool failedOne =
          failed(verifyRegisters(op)) ||
          failed(verifyRole<WaitOp, ReleaseOp, WgmmaOp, WgmmaWaitOp>(
              op.getProducer(), "producer")) ||
          failed(verifyRole<AcquireOp, CommitOp, TmaLoadOp>(op.getConsumer(),
                                                            "consumer")) ||
          failed(verifyTraces(op));
      return failedOne ? WalkResult::interrupt() : WalkResult::advance();
    });
    if (result.wasInterrupted())
      return signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace
