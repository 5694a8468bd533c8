//===- ProtocolMachine.cpp - Runs a program's trace on barriers -----------===//

#include "ProtocolMachine.h"
#include "llvm/Support/FormatVariadic.h"
#include <deque>
#include <map>
#include <numeric>
#include <random>

using namespace mlir;
using namespace mlir::hopper;
using Kind = RoleEvent::Kind;

namespace {
/// An mbarrier (PTX ISA, "Parallel Synchronization and Communication
/// Instructions: mbarrier").
struct Barrier {
  int arrivals = 1, pending = 1, pendingCopies = 0;
  unsigned phase = 0;

  void completeIfDone() {
    if (pending > 0 || pendingCopies > 0)
      return;
    ++phase;
    pending = arrivals;
  }
  void arrive() {
    --pending;
    completeIfDone();
  }
  void finishCopy() {
    --pendingCopies;
    completeIfDone();
  }
  /// test_wait.parity: true if the phase of that parity is the last complete
  /// one.
  bool isComplete(unsigned parity) const { return (phase & 1) != parity; }
};

struct SharedSlot {
  Barrier full, empty;
  /// The tile whose elements are in the rows of each warpgroup.
  std::vector<int64_t> rows;
  int numCopies = 0;
};

/// A copy to shared memory that is under way.
struct Copy {
  SharedSlot *slot;
  int64_t tile;
};

/// A product in flight.
struct Product {
  int64_t index;
  SharedSlot *left, *right;
};

struct Thread {
  explicit Thread(const RoleTrace &trace) : trace(&trace) {}

  const RoleTrace *trace;
  size_t next = 0;
  std::deque<Product> inFlight;

  bool isDone() const { return next == trace->events.size(); }
};

/// Who goes first, and when copies arrive.
struct Timing {
  /// Of threads: the warpgroups, the transposer and the producer; empty for
  /// random order.
  std::vector<int> priority;
  bool isCopyLate;
  unsigned seed;
};

constexpr int64_t kGarbage = -1000;

class Machine {
public:
  Machine(WarpSpecializeOp op, const ProgramTrace &program, Timing timing)
      : op(op), timing(std::move(timing)), random(this->timing.seed),
        numWarpgroups(program.warpgroups.size()) {
    for (const RoleTrace &trace : program.warpgroups)
      threads.emplace_back(trace);
    if (program.transposer)
      threads.emplace_back(*program.transposer);
    threads.emplace_back(program.producer);
  }

  std::string run() {
    while (fault.empty() && stepAny())
      ;
    if (!fault.empty())
      return fault;
    for (Thread &thread : threads) {
      if (!thread.isDone())
        return "hangs at " + describe(thread);
      if (!thread.inFlight.empty())
        return "ends with products in flight";
      if (!thread.trace->isComplete)
        return "reads a number that was never put";
    }
    return copies.empty() ? "" : "ends while copies are under way";
  }

private:
  static std::string describe(Thread &thread) {
    std::string text;
    llvm::raw_string_ostream(text) << *thread.trace->events[thread.next].op;
    return text;
  }

  /// How many threads give a tile of the ring back.
  int countTakers(unsigned ring) {
    Value operand = op.getArgs()[ring];
    int transposers =
        op.hasTransposer() && op.takes(op.getTransposer(), operand) ? 1 : 0;
    bool areConsumers = op.takes(op.getConsumer(), operand);
    return transposers + (areConsumers ? numWarpgroups : 0);
  }

  SharedSlot &getSlot(TileRef tile) {
    auto type = cast<RingType>(op.getArgs()[tile.ring].getType());
    auto [it, isNew] = slots.try_emplace(
        {tile.ring, uint32_t(tile.number) % type.getStages()});
    if (isNew) {
      it->second.rows.assign(numWarpgroups, kGarbage);
      it->second.empty.arrivals = it->second.empty.pending =
          countTakers(tile.ring);
    }
    return it->second;
  }

  unsigned getParity(TileRef tile) {
    auto type = cast<RingType>(op.getArgs()[tile.ring].getType());
    return uint32_t(tile.number) / type.getStages() & 1;
  }

  //===--------------------------------------------------------------------===//
  // Scheduling
  //===--------------------------------------------------------------------===//

  /// Runs one event or delivers one copy; false if nothing can happen.
  bool stepAny() {
    if (!timing.isCopyLate && deliver())
      return true;
    std::vector<int> order = timing.priority;
    if (order.empty()) {
      order.resize(threads.size());
      std::iota(order.begin(), order.end(), 0);
      std::shuffle(order.begin(), order.end(), random);
    }
    for (int index : order)
      if (step(index))
        return true;
    bool isOver =
        llvm::all_of(threads, [](const Thread &t) { return t.isDone(); });
    return !isOver && deliver();
  }

  bool deliver() {
    if (copies.empty())
      return false;
    Copy copy = copies.front();
    copies.pop_front();
    copy.slot->rows.assign(numWarpgroups, copy.tile);
    --copy.slot->numCopies;
    copy.slot->full.finishCopy();
    return true;
  }

  /// Runs the next event of a thread; false if it must wait.
  bool step(int index) {
    Thread &thread = threads[index];
    if (thread.isDone())
      return false;
    const RoleEvent &event = thread.trace->events[thread.next];
    if (event.kind == Kind::Acquire &&
        !getSlot(event.tile).empty.isComplete(getParity(event.tile) ^ 1))
      return false;
    if (event.kind == Kind::Wait &&
        !getSlot(event.tile).full.isComplete(getParity(event.tile)))
      return false;
    runEvent(index, event);
    ++thread.next;
    return true;
  }

  void runEvent(int index, const RoleEvent &event) {
    switch (event.kind) {
    case Kind::Acquire:
    case Kind::Wait:
    case Kind::Slot:
    case Kind::NextTile:
      return;
    case Kind::Load:
      return load(event);
    case Kind::Put:
      checkWrite(getSlot(event.tile), event);
      getSlot(event.tile).rows.assign(numWarpgroups, event.tile.number);
      return;
    case Kind::Commit:
      return getSlot(event.tile).full.arrive();
    case Kind::Get:
    case Kind::Read:
      return checkRead(getSlot(event.tile), index, event.tile, event);
    case Kind::Transpose:
      checkRead(getSlot(*event.left), index, *event.left, event);
      checkWrite(getSlot(event.tile), event);
      getSlot(event.tile).rows.assign(numWarpgroups, event.tile.number);
      return;
    case Kind::Store:
      return store(index, event);
    case Kind::Release:
      return getSlot(event.tile).empty.arrive();
    case Kind::StartProduct:
      return startProduct(index, event);
    case Kind::FinishProduct:
      return finishProduct(threads[index], event);
    }
  }

  //===--------------------------------------------------------------------===//
  // Shared memory
  //===--------------------------------------------------------------------===//

  void report(const RoleEvent &event, StringRef what) {
    if (!fault.empty())
      return;
    llvm::raw_string_ostream(fault) << what << " at " << *event.op;
  }

  void load(const RoleEvent &event) {
    SharedSlot &slot = getSlot(event.tile);
    checkWrite(slot, event);
    ++slot.full.pendingCopies;
    ++slot.numCopies;
    copies.push_back({&slot, event.tile.number});
  }

  /// Everything that is written races with products that read the slot.
  void checkWrite(SharedSlot &slot, const RoleEvent &event) {
    for (Thread &thread : threads)
      for (Product &product : thread.inFlight)
        if (product.left == &slot || product.right == &slot)
          report(event, "writes what a product reads");
    for (Copy &copy : copies)
      if (copy.slot == &slot && copy.tile != event.tile.number)
        report(event, "writes what a copy writes");
  }

  void store(int index, const RoleEvent &event) {
    SharedSlot &slot = getSlot(event.tile);
    for (int other = 0; other < numWarpgroups; ++other)
      for (Product &product : threads[other].inFlight)
        if (product.right == &slot || (product.left == &slot && other == index))
          report(event, "writes what a product reads");
    if (slot.numCopies > 0)
      report(event, "writes what a copy writes");
    slot.rows[index] = kGarbage;
  }

  /// The rows of a warpgroup, or all if `index` is none.
  void checkRead(SharedSlot &slot, int index, TileRef tile,
                 const RoleEvent &event) {
    if (slot.numCopies > 0)
      report(event, "reads what a copy writes");
    for (int row = 0; row < numWarpgroups; ++row)
      if ((index < 0 || index >= numWarpgroups || row == index) &&
          slot.rows[row] != tile.number)
        report(event, "reads another tile");
  }

  //===--------------------------------------------------------------------===//
  // Products
  //===--------------------------------------------------------------------===//

  void startProduct(int index, const RoleEvent &event) {
    Product product{event.product, nullptr, &getSlot(event.tile)};
    checkRead(*product.right, /*index=*/-1, event.tile, event);
    if (event.left) {
      product.left = &getSlot(*event.left);
      checkRead(*product.left, index, *event.left, event);
    }
    threads[index].inFlight.push_back(product);
  }

  /// Products complete no earlier than they must.
  void finishProduct(Thread &thread, const RoleEvent &event) {
    while (int64_t(thread.inFlight.size()) > event.value)
      thread.inFlight.pop_front();
    for (Product &product : thread.inFlight)
      if (product.index == event.product)
        report(event, "reads registers that a product writes");
  }

  WarpSpecializeOp op;
  Timing timing;
  std::mt19937 random;
  const int numWarpgroups;
  std::vector<Thread> threads;
  std::map<std::pair<unsigned, int64_t>, SharedSlot> slots;
  std::deque<Copy> copies;
  std::string fault;
};
} // namespace

/// Each thread behind all others, and random order.
static std::vector<Timing> getTimings(size_t numThreads) {
  constexpr unsigned kNumRandom = 2;
  std::vector<Timing> timings;
  for (bool isCopyLate : {false, true}) {
    for (int last = 0; last < int(numThreads); ++last) {
      std::vector<int> order(numThreads);
      std::iota(order.begin(), order.end(), 0);
      std::rotate(order.begin() + last, order.begin() + last + 1, order.end());
      timings.push_back({std::move(order), isCopyLate, 0});
    }
    for (unsigned seed = 0; seed < kNumRandom; ++seed)
      timings.push_back({{}, isCopyLate, seed});
  }
  return timings;
}

std::string findFault(WarpSpecializeOp op, const ProgramTrace &program) {
  size_t numThreads = program.warpgroups.size() + (program.transposer ? 2 : 1);
  for (Timing &timing : getTimings(numThreads)) {
    std::string fault = Machine(op, program, std::move(timing)).run();
    if (!fault.empty())
      return fault;
  }
  return "";
}
