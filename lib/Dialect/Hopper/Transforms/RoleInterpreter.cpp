//===- RoleInterpreter.cpp - Runs the protocol of a program ---------------===//

#include "attn/Dialect/Hopper/Transforms/RoleInterpreter.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/xxhash.h"
#include <variant>

using namespace mlir;
using namespace mlir::hopper;
using Kind = RoleEvent::Kind;

std::string TileRef::describe() const {
  return llvm::formatv("tile {0} of ring {1}", number, ring);
}

bool RoleEvent::isSame(const RoleEvent &other) const {
  return kind == other.kind && tile == other.tile && left == other.left &&
         product == other.product && accumulator == other.accumulator &&
         value == other.value && numbers == other.numbers;
}

std::string ProblemSample::describe() const {
  std::string tiles = numTiles > 1 ? llvm::formatv(" of {0} that share {1} "
                                                   "tiles",
                                                   numPrograms, numTiles)
                                   : std::string();
  return llvm::formatv("in program {0}{1} where the first memref has dynamic "
                       "sizes of {2} and the others of {3}",
                       program, tiles, querySize, otherSize);
}

//===----------------------------------------------------------------------===//
// Slices
//===----------------------------------------------------------------------===//

static bool isProtocolOp(Operation *op) {
  return isa<AcquireOp, TmaLoadOp, PutOp, CommitOp, WaitOp, SlotOp, GetOp,
             ReadOp, TmaStoreOp, ReleaseOp, WgmmaOp, WgmmaWaitOp, NextTileOp,
             TransposeOp>(op);
}

namespace {
/// The operations of a role that decide on its protocol: those of the protocol,
/// the control flow around them, and the integer code that both depend on.
class RoleSlice {
public:
  explicit RoleSlice(Region &role) : role(role) {
    role.walk([&](Operation *op) {
      if (isProtocolOp(op))
        addProtocolOp(op);
    });
    while (!worklist.empty())
      addDefinition(worklist.pop_back_val());
    role.walk([&](Operation *op) {
      if (ops.contains(op))
        opsOfBlock[op->getBlock()].push_back(op);
    });
  }

  ArrayRef<Operation *> getOps(Block &block) const {
    auto it = opsOfBlock.find(&block);
    return it == opsOfBlock.end() ? ArrayRef<Operation *>() : it->second;
  }
  bool contains(Value value) const { return values.contains(value); }
  /// Whether `op` is or contains an operation of the protocol.
  bool isActive(Operation *op) const { return active.contains(op); }

private:
  void addProtocolOp(Operation *op) {
    // Positions in memory decide on nothing.
    bool needsIntegers = !isa<TmaLoadOp, TmaStoreOp>(op);
    for (Value operand : op->getOperands())
      if (isa<SlotType, PendingType>(operand.getType()) ||
          (needsIntegers && operand.getType().isInteger()))
        add(operand);
    for (; op && op->getParentRegion(); op = op->getParentOp()) {
      active.insert(op);
      addOp(op);
      if (op->getParentRegion() == &role)
        return;
    }
  }

  void add(Value value) {
    if (values.insert(value).second)
      worklist.push_back(value);
  }

  /// Adds what decides on the control flow of `op`.
  void addOp(Operation *op) {
    if (!ops.insert(op).second)
      return;
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      add(loop.getLowerBound());
      add(loop.getUpperBound());
      add(loop.getStep());
    } else if (auto loop = dyn_cast<scf::WhileOp>(op)) {
      add(loop.getConditionOp().getCondition());
    } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
      add(branch.getCondition());
    }
  }

  void addDefinition(Value value) {
    if (auto argument = dyn_cast<BlockArgument>(value))
      return addArgument(argument);
    auto result = cast<OpResult>(value);
    unsigned index = result.getResultNumber();
    Operation *op = result.getOwner();
    addOp(op);
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      add(loop.getRegionIterArg(index));
    } else if (auto loop = dyn_cast<scf::WhileOp>(op)) {
      add(loop.getConditionOp().getArgs()[index]);
    } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
      for (Region *region : branch.getRegions())
        add(region->front().getTerminator()->getOperand(index));
    } else if (op->getNumRegions() == 0 && !isProtocolOp(op)) {
      for (Value operand : op->getOperands())
        if (operand.getType().isIntOrIndexOrFloat())
          add(operand);
    }
  }

  void addArgument(BlockArgument argument) {
    Operation *op = argument.getOwner()->getParentOp();
    unsigned index = argument.getArgNumber();
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      addOp(loop);
      if (argument == loop.getInductionVar())
        return;
      add(loop.getTiedLoopInit(argument)->get());
      add(loop.getTiedLoopYieldedValue(argument)->get());
    } else if (auto loop = dyn_cast<scf::WhileOp>(op)) {
      addOp(loop);
      if (argument.getOwner() == loop.getAfterBody())
        return add(loop.getConditionOp().getArgs()[index]);
      add(loop.getInits()[index]);
      add(loop.getYieldOp().getOperand(index));
    }
  }

  Region &role;
  DenseSet<Value> values;
  DenseSet<Operation *> ops, active;
  DenseMap<Block *, SmallVector<Operation *>> opsOfBlock;
  SmallVector<Value> worklist;
};

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

/// The number of a product.
struct ProductRef {
  int64_t index;
  bool operator!=(const ProductRef &other) const {
    return index != other.index;
  }
};

/// Unknown, a number, a slot or a pending product.
using RoleValue = std::variant<std::monostate, Attribute, TileRef, ProductRef>;

/// The numbers that the producer puts, by ring and tile.
using RingNumbers =
    DenseMap<std::pair<unsigned, int64_t>, SmallVector<std::optional<int64_t>>>;

/// What a role has done so far.
struct RoleState {
  DenseMap<Value, RoleValue> values;
  RoleTrace trace;
  int64_t numProducts = 0, numTilesTaken = 0, numIterations = 0;
};
} // namespace

static IntegerAttr getInteger(Type type, int64_t value) {
  unsigned width = type.isIndex() ? IndexType::kInternalStorageBitWidth
                                  : type.getIntOrFloatBitWidth();
  return IntegerAttr::get(type, APInt(width, value, /*isSigned=*/true,
                                      /*implicitTrunc=*/true));
}

//===----------------------------------------------------------------------===//
// Interpreter
//===----------------------------------------------------------------------===//

/// More than any sample asks of a loop that ends.
static constexpr int64_t kMaxIterations = 4096;

/// How often folding may change an operation before it yields a result.
static constexpr int kMaxChanges = 4;

/// Runs one role.
class hopper::RoleInterpreter {
public:
  RoleInterpreter(WarpSpecializeOp roles, Region &role)
      : roles(roles), role(role), slice(role) {}

  FailureOr<RoleTrace> run(const ProblemSample &sample, int64_t warpgroup,
                           const RingNumbers &numbers) {
    this->sample = &sample;
    this->warpgroup = warpgroup;
    this->numbers = &numbers;
    state = RoleState();
    for (BlockArgument argument : role.getArguments())
      if (argument.getType().isIntOrIndex())
        setInt(argument, sample.otherSize);
    if (failed(runBlock(role.front())) && state.trace.isComplete)
      return failure();
    return std::move(state.trace);
  }

private:
  //===--------------------------------------------------------------------===//
  // Values
  //===--------------------------------------------------------------------===//

  RoleValue get(Value value) { return state.values.lookup(value); }
  void set(Value value, RoleValue known) { state.values[value] = known; }
  void setInt(Value value, int64_t number) {
    set(value, Attribute(getInteger(value.getType(), number)));
  }

  /// Copies values that matter. Targets may be among the sources.
  void copy(ValueRange to, ValueRange from) {
    SmallVector<std::pair<Value, RoleValue>> copies;
    for (auto [target, source] : llvm::zip_equal(to, from))
      if (slice.contains(target))
        copies.emplace_back(target, get(source));
    for (auto &[target, known] : copies)
      set(target, known);
  }

  /// An integer or a float; null if it isn't known.
  Attribute lookupNumber(Value value) {
    RoleValue known = get(value);
    auto *attr = std::get_if<Attribute>(&known);
    return attr ? *attr : Attribute();
  }

  std::optional<int64_t> lookupInt(Value value) {
    auto attr = dyn_cast_or_null<IntegerAttr>(lookupNumber(value));
    if (!attr)
      return std::nullopt;
    return value.getType().isInteger(1)
               ? int64_t(attr.getValue().getZExtValue())
               : attr.getValue().getSExtValue();
  }

  InFlightDiagnostic emitUnknown(Operation *op) {
    return op->emitOpError("depends on more than sizes and the program's "
                           "number, so the order of ring operations can't be "
                           "checked; compute it from those");
  }

  FailureOr<int64_t> getInt(Operation *op, Value value) {
    if (std::optional<int64_t> number = lookupInt(value))
      return *number;
    return emitUnknown(op);
  }

  /// The slot or product that `value` is.
  template <typename T>
  FailureOr<T> getRef(Operation *op, Value value) {
    RoleValue known = get(value);
    if (auto *ref = std::get_if<T>(&known))
      return *ref;
    return op->emitOpError("takes a slot or a product that depends on data; "
                           "name it without branches on data");
  }

  //===--------------------------------------------------------------------===//
  // Control flow
  //===--------------------------------------------------------------------===//

  LogicalResult runBlock(Block &block) {
    for (Operation *op : slice.getOps(block))
      if (failed(runOp(op)))
        return failure();
    return success();
  }

  LogicalResult runOp(Operation *op) {
    return llvm::TypeSwitch<Operation *, LogicalResult>(op)
        .Case<scf::ForOp>([&](auto op) { return runFor(op); })
        .Case<scf::WhileOp>([&](auto op) { return runWhile(op); })
        .Case<scf::IfOp>([&](auto op) { return runIf(op); })
        .Case<AcquireOp>([&](auto op) { return take(op, Kind::Acquire); })
        .Case<WaitOp>([&](auto op) { return take(op, Kind::Wait); })
        .Case<SlotOp>([&](auto op) { return take(op, Kind::Slot); })
        .Case<TmaLoadOp>([&](auto op) { return useSlot(op, Kind::Load); })
        .Case<ReadOp>([&](auto op) { return useSlot(op, Kind::Read); })
        .Case<TmaStoreOp>([&](auto op) { return useSlot(op, Kind::Store); })
        .Case<TransposeOp>([&](auto op) { return transpose(op); })
        .Case<CommitOp>([&](auto op) { return useSlot(op, Kind::Commit); })
        .Case<ReleaseOp>([&](auto op) { return useSlot(op, Kind::Release); })
        .Case<PutOp>([&](auto op) { return put(op); })
        .Case<GetOp>([&](auto op) { return get(op); })
        .Case<WgmmaOp>([&](auto op) { return startProduct(op); })
        .Case<WgmmaWaitOp>([&](auto op) { return finishProduct(op); })
        .Case<NextTileOp>([&](auto op) { return takeTile(op); })
        .Default([&](Operation *op) { return runScalar(op); });
  }

  /// Counts an iteration of `loop`.
  LogicalResult iterate(Operation *loop) {
    if (++state.numIterations <= kMaxIterations)
      return success();
    return loop->emitOpError("doesn't end ") << sample->describe();
  }

  /// What to do with control flow that depends on data: nothing if it decides
  /// on nothing.
  LogicalResult skip(Operation *op) {
    if (slice.isActive(op))
      return emitUnknown(op);
    for (Value result : op->getResults())
      set(result, {});
    return success();
  }

  LogicalResult runFor(scf::ForOp op) {
    std::optional<int64_t> lower = lookupInt(op.getLowerBound());
    std::optional<int64_t> upper = lookupInt(op.getUpperBound());
    std::optional<int64_t> step = lookupInt(op.getStep());
    if (!lower || !upper || !step || op.getUnsignedCmp())
      return skip(op);
    if (*step <= 0)
      return op.emitOpError("doesn't advance");
    copy(op.getRegionIterArgs(), op.getInitArgs());
    bool hasOverflow = false;
    for (int64_t i = *lower; i < *upper && !hasOverflow;
         hasOverflow = llvm::AddOverflow(i, *step, i)) {
      setInt(op.getInductionVar(), i);
      if (failed(iterate(op)) || failed(runBlock(*op.getBody())))
        return failure();
      copy(op.getRegionIterArgs(), op.getYieldedValues());
    }
    copy(op.getResults(), op.getRegionIterArgs());
    return success();
  }

  LogicalResult runWhile(scf::WhileOp op) {
    scf::ConditionOp condition = op.getConditionOp();
    copy(op.getBeforeArguments(), op.getInits());
    while (true) {
      if (failed(iterate(op)) || failed(runBlock(*op.getBeforeBody())))
        return failure();
      std::optional<int64_t> goesOn = lookupInt(condition.getCondition());
      if (!goesOn)
        return skip(op);
      if (!*goesOn)
        break;
      copy(op.getAfterArguments(), condition.getArgs());
      if (failed(runBlock(*op.getAfterBody())))
        return failure();
      copy(op.getBeforeArguments(), op.getYieldOp().getOperands());
    }
    copy(op.getResults(), condition.getArgs());
    return success();
  }

  LogicalResult runBranch(scf::IfOp op, Region &region) {
    if (region.empty())
      return success();
    if (failed(runBlock(region.front())))
      return failure();
    copy(op.getResults(), region.front().getTerminator()->getOperands());
    return success();
  }

  LogicalResult runIf(scf::IfOp op) {
    if (std::optional<int64_t> condition = lookupInt(op.getCondition()))
      return runBranch(op,
                       *condition ? op.getThenRegion() : op.getElseRegion());
    return slice.isActive(op) ? runBothBranches(op) : skip(op);
  }

  /// Both branches of an op that depends on data must do the same.
  LogicalResult runBothBranches(scf::IfOp op) {
    RoleState before = state;
    if (failed(runBranch(op, op.getThenRegion())))
      return failure();
    RoleState afterThen = std::exchange(state, std::move(before));
    if (failed(runBranch(op, op.getElseRegion())))
      return failure();
    if (!llvm::equal(
            afterThen.trace.events, state.trace.events,
            [](const RoleEvent &a, const RoleEvent &b) { return a.isSame(b); }))
      return op.emitOpError(
          "depends on data, but its branches differ in what they do to rings "
          "or products; move that out of the branches");
    for (Value result : op.getResults())
      if (get(result) != afterThen.values.lookup(result))
        set(result, {});
    return success();
  }

  //===--------------------------------------------------------------------===//
  // Numbers
  //===--------------------------------------------------------------------===//

  /// Arithmetic folds; whatever doesn't is unknown.
  LogicalResult runScalar(Operation *op) {
    if (slice.isActive(op))
      return op->emitOpError("can't contain operations on rings or products; "
                             "the control flow of a role is scf.for, scf.while "
                             "and scf.if");
    if (auto dim = dyn_cast<memref::DimOp>(op))
      return runDim(dim);
    if (isa<tile::ProgramIdOp>(op))
      setInt(op->getResult(0), sample->program);
    else if (isa<WarpgroupIdOp>(op))
      setInt(op->getResult(0), warpgroup);
    else if (isa<NumTilesOp>(op))
      setInt(op->getResult(0), sample->numTiles);
    else if (auto gather = dyn_cast<tile::GatherOp>(op))
      runGather(gather);
    else if (dividesByZero(op))
      setInt(op->getResult(0), 0);
    else if (op->getNumResults() == 1 && op->getNumRegions() == 0)
      fold(op);
    return success();
  }

  /// In a program beyond those of the problem. GPUs don't trap, and what comes
  /// out decides on nothing that a real program does.
  bool dividesByZero(Operation *op) {
    return isa<arith::DivUIOp, arith::RemUIOp, arith::DivSIOp, arith::RemSIOp>(
               op) &&
           lookupInt(op->getOperand(1)) == 0;
  }

  /// Memory that nobody writes: some number that is the same for both roles. An
  /// index that isn't known (of a problem without batches, say) is taken for 0.
  void runGather(tile::GatherOp op) {
    auto source = dyn_cast<BlockArgument>(op.getSource());
    if (!op.getType().isIntOrFloat() || !source)
      return;
    uint64_t hash = source.getArgNumber();
    for (Value index : op.getIndices())
      hash = hash * 31 + lookupInt(index).value_or(0) + 1;
    setSome(op.getResult(), hash);
  }

  /// What folders don't know of floats, as most functions: of numbers that are
  /// known, some number that is the same for both roles.
  void runFunction(Operation *op) {
    if (!op->getNumOperands() || !op->getResult(0).getType().isIntOrFloat())
      return;
    uint64_t hash = llvm::xxh3_64bits(op->getName().getStringRef());
    for (Value operand : op->getOperands()) {
      auto number = dyn_cast_or_null<FloatAttr>(lookupNumber(operand));
      if (!number)
        return;
      hash = hash * 31 + number.getValue().bitcastToAPInt().getZExtValue();
    }
    setSome(op->getResult(0), hash);
  }

  /// A number for `hash`, below, at or beyond the lengths.
  void setSome(Value value, uint64_t hash) {
    int64_t limit = 2 * std::max(sample->querySize, sample->otherSize) + 1;
    int64_t number = hash * 7919 % limit;
    Type type = value.getType();
    if (isa<FloatType>(type))
      return set(value, Attribute(FloatAttr::get(type, double(number))));
    unsigned width = type.getIntOrFloatBitWidth();
    int64_t max = width == 1 ? 1 : llvm::maxIntN(width);
    setInt(value, std::min(number, max));
  }

  void fold(Operation *op) {
    SmallVector<OpFoldResult> results;
    bool isFolded = succeeded(tryFold(op, results));
    // Success without a result means that folding changed the operation.
    for (int i = 0; i < kMaxChanges && isFolded && results.empty(); ++i)
      isFolded = succeeded(tryFold(op, results));
    RoleValue value;
    if (isFolded && results.size() == 1) {
      if (auto attr = dyn_cast<Attribute>(results[0])) {
        if (isa<IntegerAttr, FloatAttr>(attr))
          value = attr;
      } else {
        value = get(cast<Value>(results[0]));
      }
    }
    set(op->getResult(0), value);
    if (!isFolded)
      runFunction(op);
  }

  LogicalResult tryFold(Operation *op, SmallVectorImpl<OpFoldResult> &results) {
    SmallVector<Attribute> operands;
    for (Value operand : op->getOperands())
      operands.push_back(lookupNumber(operand));
    return op->fold(operands, results);
  }

  LogicalResult runDim(memref::DimOp op) {
    std::optional<int64_t> index = op.getConstantIndex();
    auto argument = dyn_cast<BlockArgument>(op.getSource());
    auto type = dyn_cast<MemRefType>(op.getSource().getType());
    if (!index || !argument || !type)
      return success();
    int64_t size = type.getDimSize(*index);
    if (ShapedType::isDynamic(size))
      size =
          argument.getArgNumber() == 0 ? sample->querySize : sample->otherSize;
    setInt(op.getResult(), size);
    return success();
  }

  //===--------------------------------------------------------------------===//
  // The protocol
  //===--------------------------------------------------------------------===//

  RoleEvent &record(Operation *op, Kind kind, TileRef tile = {}) {
    state.trace.events.emplace_back(kind, op, tile);
    return state.trace.events.back();
  }

  /// Two arguments may be the same ring.
  FailureOr<unsigned> getRing(Operation *op, Value ring) {
    auto argument = dyn_cast<BlockArgument>(ring);
    if (!argument || argument.getOwner() != &role.front())
      return op->emitOpError(
          "must name a ring that is an argument of its role");
    Value operand = roles.getArgs()[argument.getArgNumber()];
    return unsigned(llvm::find(roles.getArgs(), operand) -
                    roles.getArgs().begin());
  }

  template <typename TakeOp>
  LogicalResult take(TakeOp op, Kind kind) {
    FailureOr<int64_t> number = getInt(op, op.getNumber());
    if (failed(number))
      return failure();
    FailureOr<unsigned> ring = getRing(op, op.getRing());
    if (failed(ring))
      return failure();
    TileRef tile{*ring, *number};
    record(op, kind, tile);
    set(op.getSlot(), tile);
    return success();
  }

  template <typename SlotUser>
  LogicalResult useSlot(SlotUser op, Kind kind) {
    FailureOr<TileRef> tile = getRef<TileRef>(op, op.getSlot());
    if (failed(tile))
      return failure();
    record(op, kind, *tile);
    return success();
  }

  LogicalResult transpose(TransposeOp op) {
    FailureOr<TileRef> source = getRef<TileRef>(op, op.getSource());
    FailureOr<TileRef> target = getRef<TileRef>(op, op.getTarget());
    if (failed(source) || failed(target))
      return failure();
    record(op, Kind::Transpose, *target).left = *source;
    return success();
  }

  LogicalResult put(PutOp op) {
    if (failed(useSlot(op, Kind::Put)))
      return failure();
    RoleEvent &event = state.trace.events.back();
    for (Value value : op.getValues())
      event.numbers.push_back(lookupInt(value));
    return success();
  }

  LogicalResult get(GetOp op) {
    FailureOr<int64_t> first = getInt(op, op.getFirst());
    if (failed(first) || failed(useSlot(op, Kind::Get)))
      return failure();
    RoleEvent &event = state.trace.events.back();
    auto it = numbers->find({event.tile.ring, event.tile.number});
    if (it == numbers->end()) {
      state.trace.isComplete = false;
      return failure();
    }
    int64_t last = *first + op.getNumResults();
    if (*first < 0 || last > static_cast<int64_t>(it->second.size()))
      return op.emitOpError("reads numbers from ")
             << *first << " up to " << last << " of a slot that holds "
             << it->second.size() << ", " << sample->describe();
    for (auto [result, number] :
         llvm::zip(op.getResults(), ArrayRef(it->second).drop_front(*first))) {
      event.numbers.push_back(number);
      if (number)
        setInt(result, *number);
      else
        state.values.erase(result);
    }
    return success();
  }

  LogicalResult startProduct(WgmmaOp op) {
    FailureOr<TileRef> right = getRef<TileRef>(op, op.getB());
    if (failed(right))
      return failure();
    RoleEvent event(Kind::StartProduct, op, *right);
    if (isa<SlotType>(op.getA().getType())) {
      FailureOr<TileRef> left = getRef<TileRef>(op, op.getA());
      if (failed(left))
        return failure();
      event.left = *left;
    }
    if (op.getAcc() && isa<PendingType>(op.getAcc().getType())) {
      FailureOr<ProductRef> product = getRef<ProductRef>(op, op.getAcc());
      if (failed(product))
        return failure();
      event.accumulator = product->index;
    }
    event.product = state.numProducts++;
    state.trace.events.push_back(event);
    set(op.getResult(), ProductRef{event.product});
    return success();
  }

  LogicalResult finishProduct(WgmmaWaitOp op) {
    FailureOr<ProductRef> product = getRef<ProductRef>(op, op.getPending());
    if (failed(product))
      return failure();
    RoleEvent &event = record(op, Kind::FinishProduct);
    event.product = product->index;
    event.value = op.getInFlight();
    return success();
  }

  LogicalResult takeTile(NextTileOp op) {
    int64_t tile =
        sample->program + ++state.numTilesTaken * sample->numPrograms;
    record(op, Kind::NextTile).value = tile;
    setInt(op.getResult(), tile);
    return success();
  }

  WarpSpecializeOp roles;
  Region &role;
  RoleSlice slice;
  const ProblemSample *sample = nullptr;
  const RingNumbers *numbers = nullptr;
  int64_t warpgroup = 0;
  RoleState state;
};

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

template <typename... OpTys>
static bool containsAny(Operation *op) {
  auto find = [](Operation *nested) {
    return isa<OpTys...>(nested) ? WalkResult::interrupt()
                                 : WalkResult::advance();
  };
  return op->walk(find).wasInterrupted();
}

ProgramInterpreter::ProgramInterpreter(WarpSpecializeOp op)
    : op(op), producer(std::make_unique<RoleInterpreter>(op, op.getProducer())),
      consumer(std::make_unique<RoleInterpreter>(op, op.getConsumer())),
      areWarpgroupsEqual(!containsAny<WarpgroupIdOp>(op)),
      persistent(containsAny<NumTilesOp, NextTileOp>(op)) {
  if (op.hasTransposer())
    transposer = std::make_unique<RoleInterpreter>(op, op.getTransposer());
}

ProgramInterpreter::~ProgramInterpreter() = default;

FailureOr<ProgramTrace> ProgramInterpreter::run(const ProblemSample &sample) {
  RingNumbers numbers;
  FailureOr<RoleTrace> trace = producer->run(sample, /*warpgroup=*/0, numbers);
  if (failed(trace))
    return failure();
  for (const RoleEvent &event : trace->events)
    if (event.kind == Kind::Put)
      numbers[{event.tile.ring, event.tile.number}] = event.numbers;
  ProgramTrace program;
  program.producer = std::move(*trace);
  if (transposer) {
    trace = transposer->run(sample, /*warpgroup=*/0, numbers);
    if (failed(trace))
      return failure();
    program.transposer = std::move(*trace);
  }
  for (int64_t warpgroup = 0; warpgroup < op.getWarpgroups(); ++warpgroup) {
    if (warpgroup > 0 && areWarpgroupsEqual) {
      program.warpgroups.push_back(program.warpgroups.front());
      continue;
    }
    trace = consumer->run(sample, warpgroup, numbers);
    if (failed(trace))
      return failure();
    program.warpgroups.push_back(std::move(*trace));
  }
  return program;
}
