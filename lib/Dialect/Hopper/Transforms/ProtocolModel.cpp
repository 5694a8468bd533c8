//===- ProtocolModel.cpp - The rules that a program keeps -----------------===//

#include "ProtocolModel.h"

using namespace mlir;
using namespace mlir::hopper;
using Kind = RoleEvent::Kind;

//===----------------------------------------------------------------------===//
// One role alone
//===----------------------------------------------------------------------===//

namespace {
/// Plays the events of a role and checks what needs no other role.
class RoleModel {
public:
  explicit RoleModel(const ProblemSample &sample)
      : sample(sample), lastTile(sample.program) {}

  LogicalResult run(const RoleTrace &trace) {
    for (const RoleEvent &event : trace.events)
      if (failed(step(event)))
        return failure();
    return trace.isComplete ? verifyEnd() : success();
  }

  bool hasTilesLeft() const { return lastTile < sample.numTiles; }

private:
  /// A slot that the role holds.
  struct HeldSlot {
    TileRef tile;
    Operation *take;
    /// To fill it, not to read what is there.
    bool isAcquired;
    bool isFilled = false;
    /// The store that went through it.
    Operation *store = nullptr;
  };

  struct Product {
    const RoleEvent *start;
    /// What waited for it or accumulates to it.
    Operation *user = nullptr;
  };

  LogicalResult step(const RoleEvent &event) {
    switch (event.kind) {
    case Kind::Acquire:
    case Kind::Wait:
      return take(event);
    case Kind::Slot:
      return success(findHeld(event.op, event.tile));
    case Kind::Get:
      return success(findTaken(event.op, event.tile, /*isAcquired=*/false));
    case Kind::Load:
    case Kind::Put:
      return fill(event);
    case Kind::Transpose:
      return success(succeeded(readSlot(event, *event.left)) &&
                     succeeded(fill(event)));
    case Kind::Commit:
      return commit(event);
    case Kind::Read:
      return readSlot(event, event.tile);
    case Kind::Store:
      return store(event);
    case Kind::Release:
      return release(event);
    case Kind::StartProduct:
      return startProduct(event);
    case Kind::FinishProduct:
      return finishProduct(event);
    case Kind::NextTile:
      return takeTile(event);
    }
    llvm_unreachable("unknown event");
  }

  //===--------------------------------------------------------------------===//
  // Slots
  //===--------------------------------------------------------------------===//

  LogicalResult take(const RoleEvent &event) {
    int64_t &next = nextTile[event.tile.ring];
    if (event.tile.number != next)
      return event.op->emitOpError("handles ")
             << event.tile.describe() << " where tile " << next << " is next, "
             << sample.describe();
    ++next;
    held.push_back({event.tile, event.op, event.kind == Kind::Acquire});
    return success();
  }

  /// The slot of `tile`; an error at `op` if this role doesn't hold it.
  HeldSlot *findHeld(Operation *op, TileRef tile) {
    auto *it = llvm::find_if(
        held, [&](const HeldSlot &slot) { return slot.tile == tile; });
    if (it != held.end())
      return it;
    InFlightDiagnostic diag = op->emitOpError("uses the slot of ");
    diag << tile.describe();
    if (tile.number >= 0 && tile.number < nextTile[tile.ring])
      diag << " after it has been given back";
    else
      diag << ", which this role has not taken";
    diag << ", " << sample.describe();
    return nullptr;
  }

  /// The same, where it must have been taken to be filled, or to be read.
  HeldSlot *findTaken(Operation *op, TileRef tile, bool isAcquired) {
    HeldSlot *slot = findHeld(op, tile);
    if (!slot || slot->isAcquired == isAcquired)
      return slot;
    InFlightDiagnostic diag = op->emitOpError(
        isAcquired ? "fills or hands over" : "reads or gives back");
    diag << " the slot of " << tile.describe() << ", which this role took to "
         << (isAcquired ? "read" : "fill") << " it, " << sample.describe();
    diag.attachNote(slot->take->getLoc()) << "here";
    return nullptr;
  }

  LogicalResult fill(const RoleEvent &event) {
    HeldSlot *slot = findTaken(event.op, event.tile, /*isAcquired=*/true);
    if (slot)
      slot->isFilled = true;
    return success(slot);
  }

  LogicalResult commit(const RoleEvent &event) {
    HeldSlot *slot = findTaken(event.op, event.tile, /*isAcquired=*/true);
    if (!slot)
      return failure();
    if (!slot->isFilled)
      return event.op->emitOpError("hands over ")
             << event.tile.describe() << " with nothing in it, "
             << sample.describe() << "; load or put something first";
    held.erase(slot);
    return success();
  }

  LogicalResult release(const RoleEvent &event) {
    HeldSlot *slot = findTaken(event.op, event.tile, /*isAcquired=*/false);
    if (!slot || failed(verifyNotRead(event, "gives a slot back")))
      return failure();
    held.erase(slot);
    return success();
  }

  LogicalResult store(const RoleEvent &event) {
    HeldSlot *slot = findHeld(event.op, event.tile);
    if (!slot || failed(verifyNotRead(event, "overwrites a slot")))
      return failure();
    slot->store = event.op;
    return success();
  }

  /// No product in flight reads the tile of `event`.
  LogicalResult verifyNotRead(const RoleEvent &event, StringRef what) {
    for (const Product &product : ArrayRef(products).drop_front(numComplete)) {
      const RoleEvent &start = *product.start;
      if (start.tile != event.tile && start.left != event.tile)
        continue;
      InFlightDiagnostic diag = event.op->emitOpError(what)
                                << " while a product may read it, "
                                << sample.describe();
      diag.attachNote(start.op->getLoc()) << "the product; wait for it before";
      return diag;
    }
    return success();
  }

  //===--------------------------------------------------------------------===//
  // Products
  //===--------------------------------------------------------------------===//

  LogicalResult readSlot(const RoleEvent &event, TileRef tile) {
    HeldSlot *slot = findTaken(event.op, tile, /*isAcquired=*/false);
    if (!slot)
      return failure();
    if (!slot->store)
      return success();
    InFlightDiagnostic diag =
        event.op->emitOpError("reads a slot that has been overwritten, ")
        << sample.describe();
    diag.attachNote(slot->store->getLoc()) << "the store through it";
    return diag;
  }

  LogicalResult startProduct(const RoleEvent &event) {
    if (failed(readSlot(event, event.tile)) ||
        (event.left && failed(readSlot(event, *event.left))) ||
        (event.accumulator && failed(use(event, *event.accumulator))))
      return failure();
    products.push_back({&event});
    return success();
  }

  /// A pending product is waited for or accumulated to once.
  LogicalResult use(const RoleEvent &event, int64_t index) {
    Operation *previous = std::exchange(products[index].user, event.op);
    if (!previous)
      return success();
    InFlightDiagnostic diag = event.op->emitOpError(
        "takes a product that has been waited for, or accumulated to, before");
    diag << ", " << sample.describe();
    diag.attachNote(previous->getLoc()) << "here";
    return diag;
  }

  LogicalResult finishProduct(const RoleEvent &event) {
    if (failed(use(event, event.product)))
      return failure();
    int64_t numStarted = products.size();
    numComplete = std::max(numComplete, numStarted - event.value);
    if (event.product < numComplete)
      return success();
    InFlightDiagnostic diag =
        event.op->emitOpError("leaves ")
        << event.value
        << " products in flight, and its operand is one of them, "
        << sample.describe();
    diag.attachNote(products[event.product].start->op->getLoc())
        << "only " << numStarted - event.product - 1 << " start after it";
    return diag;
  }

  //===--------------------------------------------------------------------===//
  // Tiles of persistent programs, and the end
  //===--------------------------------------------------------------------===//

  LogicalResult takeTile(const RoleEvent &event) {
    if (!hasTilesLeft())
      return event.op->emitOpError(
                 "asks for a tile after there was none left, ")
             << sample.describe()
             << "; the counter of all programs would be wrong in the next "
                "launch";
    lastTile = event.value;
    return success();
  }

  LogicalResult verifyEnd() {
    for (const HeldSlot &slot : held)
      return slot.take->emitOpError("takes ")
             << slot.tile.describe() << ", which this role never gives back, "
             << sample.describe();
    for (const Product &product : products)
      if (!product.user)
        return product.start->op->emitOpError("is never waited for or "
                                              "accumulated to, ")
               << sample.describe();
    return success();
  }

  const ProblemSample &sample;
  llvm::SmallDenseMap<unsigned, int64_t> nextTile;
  SmallVector<HeldSlot> held;
  /// In the order in which they start and complete.
  std::vector<Product> products;
  int64_t numComplete = 0;
  int64_t lastTile;
};

//===----------------------------------------------------------------------===//
// All roles together
//===----------------------------------------------------------------------===//

/// How far a role is. Tiles of one slot change hands in order.
struct Thread {
  Thread(std::string name, Region &role, const RoleTrace &trace)
      : name(std::move(name)), role(&role), trace(&trace),
        events(trace.events) {}

  /// In diagnostics.
  std::string name;
  Region *role;
  const RoleTrace *trace;
  /// Those to come.
  ArrayRef<RoleEvent> events;
  /// By ring: tiles acquired or waited for.
  llvm::SmallDenseMap<unsigned, int64_t> taken;
  /// By ring and slot: tiles committed or released.
  llvm::SmallDenseMap<std::pair<unsigned, int64_t>, int64_t> given;
};

/// Plays the roles of a program against each other.
class RingModel {
public:
  RingModel(WarpSpecializeOp op, ArrayRef<RingRoles> rings,
            const ProgramTrace &program, const ProblemSample &sample)
      : op(op), rings(rings), sample(sample) {
    threads.emplace_back("the producer", op.getProducer(), program.producer);
    if (program.transposer)
      threads.emplace_back("the transposer", op.getTransposer(),
                           *program.transposer);
    for (auto [index, trace] : llvm::enumerate(program.warpgroups))
      threads.emplace_back("warpgroup " + std::to_string(index),
                           op.getConsumer(), trace);
  }

  LogicalResult run() {
    bool moved = true;
    while (moved) {
      moved = false;
      for (Thread &thread : threads)
        moved |= advance(thread);
    }
    if (Thread *waiting = findFirstWaiting())
      return emitDeadlock(*waiting);
    return success(succeeded(verifyNumbers()) && succeeded(verifyDrained()));
  }

private:
  Thread &getFiller(unsigned ring) {
    return *llvm::find_if(threads, [&](const Thread &thread) {
      return thread.role == rings[ring].filler;
    });
  }

  auto getTakers(unsigned ring) {
    return llvm::make_filter_range(threads, [this, ring](const Thread &thread) {
      return llvm::is_contained(rings[ring].takers, thread.role);
    });
  }

  int64_t getStages(unsigned ring) {
    return cast<RingType>(op.getArgs()[ring].getType()).getStages();
  }

  /// How many tiles `thread` has given back in the slot of `tile`.
  int64_t &getGiven(Thread &thread, TileRef tile) {
    return thread.given[{tile.ring, tile.number % getStages(tile.ring)}];
  }

  /// Runs `thread` until it waits; true if it moved.
  bool advance(Thread &thread) {
    size_t before = thread.events.size();
    while (!thread.events.empty() && runEvent(thread, thread.events.front()))
      thread.events = thread.events.drop_front();
    return thread.events.size() != before;
  }

  /// The first that hasn't released what was in the slot of `tile`.
  Thread *findHolder(TileRef tile) {
    int64_t turn = tile.number / getStages(tile.ring);
    for (Thread &taker : getTakers(tile.ring))
      if (getGiven(taker, tile) < turn)
        return &taker;
    return nullptr;
  }

  /// False if the thread must wait.
  bool runEvent(Thread &thread, const RoleEvent &event) {
    TileRef tile = event.tile;
    if (event.kind == Kind::Acquire) {
      if (findHolder(tile))
        return false;
      ++thread.taken[tile.ring];
      lastAcquire[tile.ring] = event.op;
    } else if (event.kind == Kind::Wait) {
      int64_t turn = tile.number / getStages(tile.ring);
      if (getGiven(getFiller(tile.ring), tile) <= turn)
        return false;
      ++thread.taken[tile.ring];
    } else if (event.kind == Kind::Commit || event.kind == Kind::Release) {
      ++getGiven(thread, tile);
    }
    return true;
  }

  /// A consumer, or who works for them; null if nobody waits.
  Thread *findFirstWaiting() {
    Thread *first = nullptr;
    for (Thread &thread : threads) {
      bool isConsumer = thread.role == &op.getConsumer();
      if (thread.events.empty())
        continue;
      first = &thread;
      if (isConsumer)
        break;
    }
    return first;
  }

  LogicalResult emitDeadlock(Thread &first) {
    const RoleEvent &event = first.events.front();
    InFlightDiagnostic diag = event.op->emitOpError("waits forever for ");
    diag << (event.kind == Kind::Acquire ? "an empty slot for " : "")
         << event.tile.describe() << ", " << sample.describe();
    for (Thread &thread : threads)
      if (&thread != &first && thread.role != &op.getConsumer())
        explainDeadlock(diag, thread, event.tile.ring);
    if (first.role != &op.getConsumer() && event.kind == Kind::Acquire)
      explainDeadlock(diag, first, event.tile.ring);
    return diag;
  }

  /// Says how far a role is that fills rings.
  void explainDeadlock(InFlightDiagnostic &diag, Thread &thread,
                       unsigned ring) {
    if (thread.events.empty()) {
      if (&getFiller(ring) == &thread)
        diag.attachNote(op.getLoc())
            << thread.name << " ends after " << thread.taken[ring]
            << " tiles of this ring";
      return;
    }
    const RoleEvent &event = thread.events.front();
    Diagnostic &note = diag.attachNote(event.op->getLoc());
    note << thread.name << " waits here for ";
    if (event.kind != Kind::Acquire) {
      note << event.tile.describe();
      return;
    }
    note << "an empty slot for " << event.tile.describe() << ", which "
         << findHolder(event.tile)->name << " hasn't released";
  }

  LogicalResult verifyNumbers() {
    for (Thread &thread : threads)
      if (!thread.trace->isComplete)
        return thread.trace->events.back().op->emitOpError(
                   "takes a number that the producer doesn't put, ")
               << sample.describe();
    return success();
  }

  /// A program must not end while loads into its shared memory are under way.
  LogicalResult verifyDrained() {
    for (auto &[ring, acquire] : lastAcquire) {
      int64_t numFilled = getFiller(ring).taken[ring];
      for (Thread &taker : getTakers(ring))
        if (numFilled != taker.taken[ring])
          return acquire->emitOpError("fills ")
                 << numFilled << " tiles of ring " << ring << ", but "
                 << taker.name << " takes " << taker.taken[ring] << ", "
                 << sample.describe();
    }
    return success();
  }

  WarpSpecializeOp op;
  ArrayRef<RingRoles> rings;
  const ProblemSample &sample;
  std::vector<Thread> threads;
  llvm::SmallMapVector<unsigned, Operation *, 4> lastAcquire;
};
} // namespace

/// A warpgroup writes its rows only of a slot that it stores through, but the
/// right operand of a product is the whole slot, whichever warpgroup reads it.
static LogicalResult verifyStores(const ProgramTrace &program,
                                  const ProblemSample &sample) {
  SmallVector<const RoleEvent *> stores;
  for (const RoleTrace &trace : program.warpgroups)
    for (const RoleEvent &event : trace.events)
      if (event.kind == Kind::Store)
        stores.push_back(&event);
  if (stores.empty())
    return success();
  for (const RoleTrace &trace : program.warpgroups) {
    for (const RoleEvent &event : trace.events) {
      if (event.kind != Kind::StartProduct)
        continue;
      const auto *store = llvm::find_if(stores, [&](const RoleEvent *store) {
        return store->tile == event.tile;
      });
      if (store == stores.end())
        continue;
      InFlightDiagnostic diag =
          (*store)->op->emitOpError("overwrites the right operand of a "
                                    "product, which all warpgroups read; use a "
                                    "slot that is a left operand only, ")
          << sample.describe();
      diag.attachNote(event.op->getLoc()) << "the product";
      return diag;
    }
  }
  return success();
}

SmallVector<RingRoles> hopper::findRingRoles(WarpSpecializeOp op) {
  SmallVector<RingRoles> result;
  for (Value operand : op.getArgs()) {
    RingRoles &ring = result.emplace_back();
    ring.filler = &op.getProducer();
    if (!isa<RingType>(operand.getType()))
      continue;
    for (Region *role : op.getRoles()) {
      if (op.fills(*role, operand))
        ring.filler = role;
      if (op.takes(*role, operand))
        ring.takers.push_back(role);
    }
    // The tiles that nobody takes are left by the consumers.
    if (ring.takers.empty())
      ring.takers.push_back(&op.getConsumer());
  }
  return result;
}

LogicalResult hopper::verifyProgram(WarpSpecializeOp op,
                                    ArrayRef<RingRoles> rings,
                                    const ProgramTrace &program,
                                    const ProblemSample &sample,
                                    bool isPersistent) {
  RoleModel producer(sample);
  if (failed(producer.run(program.producer)))
    return failure();
  if (isPersistent && producer.hasTilesLeft())
    return op.emitOpError("stands in a persistent kernel, but doesn't ask for "
                          "tiles until there is none left, ")
           << sample.describe() << "; some would be left out";
  if (program.transposer && failed(RoleModel(sample).run(*program.transposer)))
    return failure();
  for (const RoleTrace &trace : program.warpgroups)
    if (failed(RoleModel(sample).run(trace)))
      return failure();
  if (failed(verifyStores(program, sample)))
    return failure();
  return RingModel(op, rings, program, sample).run();
}
