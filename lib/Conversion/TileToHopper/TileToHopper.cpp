//===- TileToHopper.cpp - tile kernels to warp-specialised ones -----------===//

#include "KVLoopKernel.h"
#include "attn/Conversion/Passes.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Transforms/RegionUtils.h"

namespace mlir::attn {
#define GEN_PASS_DEF_CONVERTTILETOHOPPER
#include "attn/Conversion/Passes.h.inc"
} // namespace mlir::attn

using namespace mlir;
using namespace mlir::tile;
using namespace mlir::hopper;

namespace {
/// What setmaxnreg leaves to the threads of each role. The launch allocates
/// 65536 registers divided by the threads, in multiples of 8; a total beyond
/// that makes the consumers wait forever.
struct RegisterSplit {
  int64_t warpgroups;
  int32_t producer, consumer;
};
} // namespace

static constexpr RegisterSplit kRegisterSplits[] = {
    {1, 24, 240}, {2, 24, 240}, {3, 32, 160}, {4, 32, 112}};

static constexpr int32_t kDefaultStages = 2;
static constexpr int32_t kWarpsPerWarpgroup = 4;

static const RegisterSplit *findRegisterSplit(int64_t rows) {
  const auto *it = llvm::find_if(kRegisterSplits, [&](const auto &split) {
    return split.warpgroups * WarpSpecializeOp::kRowsPerWarpgroup == rows;
  });
  return it == std::end(kRegisterSplits) ? nullptr : it;
}

static RankedTensorType getTileType(Value value) {
  return cast<RankedTensorType>(value.getType());
}

/// Clones the scalar code without effects of `block` that depends on mapped
/// values only: what a producer may compute.
static void cloneScalarCode(OpBuilder &builder, Block &block,
                            IRMapping &mapping) {
  auto isTensor = [](Type type) { return isa<TensorType>(type); };
  auto isMapped = [&](Value value) { return mapping.contains(value); };
  for (Operation &op : block)
    if (isMemoryEffectFree(&op) && op.getNumRegions() == 0 &&
        !op.hasTrait<OpTrait::IsTerminator>() &&
        llvm::none_of(op.getResultTypes(), isTensor) &&
        llvm::all_of(op.getOperands(), isMapped))
      builder.clone(op, mapping);
}

namespace {
using Values = SmallVector<Value>;

/// The rings that carry the tiles of one kernel.
struct Rings {
  Value q, k, v;
};

/// Emits one role: a clone of parts of the kernel in a region of the
/// warp_specialize op.
class RoleBuilder {
public:
  RoleBuilder(KVLoopKernel parts, KernelOp kernel, Region &region,
              TypeRange argTypes)
      : parts(parts), loop(parts.loop), kernel(kernel),
        builder(parts.loop.getLoc(), kernel.getContext()) {
    SmallVector<Location> locs(argTypes.size(), kernel.getLoc());
    Block *block = builder.createBlock(&region, region.end(), argTypes, locs);
    ValueRange args = block->getArguments();
    ValueRange kernelArgs = kernel.getBody().getArguments();
    mapping.map(kernelArgs, args.take_front(kernelArgs.size()));
    rings = {args[kernelArgs.size()], args[kernelArgs.size() + 1],
             args[kernelArgs.size() + 2]};
  }

protected:
  Value i32(int64_t value) {
    return arith::ConstantOp::create(builder, builder.getI32IntegerAttr(value));
  }
  Value add(Value a, Value b) { return arith::AddIOp::create(builder, a, b); }
  Value lookup(Value value) { return mapping.lookupOrDefault(value); }
  Value begin() { return lookup(loop.getBegin()); }
  Value end() { return lookup(loop.getEnd()); }
  Value step() { return i32(loop.getStep()); }
  Value hasSteps() {
    return arith::CmpIOp::create(builder, arith::CmpIPredicate::slt, begin(),
                                 end());
  }

  KVLoopKernel parts;
  KVLoopOp loop;
  KernelOp kernel;
  ImplicitLocOpBuilder builder;
  IRMapping mapping;
  Rings rings;
};

//===----------------------------------------------------------------------===//
// Producer
//===----------------------------------------------------------------------===//

class ProducerBuilder : RoleBuilder {
public:
  using RoleBuilder::RoleBuilder;

  LogicalResult build(bool overlap) {
    cloneScalarCode(builder, kernel.getBody().front(), mapping);
    for (Value bound : {loop.getBegin(), loop.getEnd()})
      if (!mapping.contains(bound))
        return loop.emitOpError("has a range that isn't scalar code; the "
                                "producer can't compute it");
    load(parts.qLoad, rings.q, i32(0), mapping);
    if (overlap)
      buildSkewedLoop();
    else
      buildLoop();
    return success(!invalid);
  }

private:
  /// Copies the tile of `source` into slot `number` of `ring`.
  void load(LoadOp source, Value ring, Value number, IRMapping &values) {
    Values operands;
    for (Value operand : source->getOperands())
      operands.push_back(values.lookupOrNull(operand));
    if (llvm::is_contained(operands, Value())) {
      source.emitOpError("has a position that isn't scalar code of the key "
                         "position; the producer can't compute it");
      invalid = true;
      return;
    }
    Value slot = AcquireOp::create(builder, ring, number);
    TmaLoadOp::create(builder, operands.front(),
                      ValueRange(operands).drop_front(), slot);
    CommitOp::create(builder, slot);
  }

  /// The same for a load in the loop, at `kv`.
  void loadStep(LoadOp source, Value ring, Value number, Value kv) {
    IRMapping local = mapping;
    Block &block = *source->getBlock();
    local.map(block.getArgument(0), kv);
    cloneScalarCode(builder, block, local);
    load(source, ring, number, local);
  }

  /// K0 V0 K1 V1 ...
  void buildLoop() {
    emitLoop(begin(), i32(0), [&](Value kv, Value number) {
      loadStep(parts.kLoad, rings.k, number, kv);
      loadStep(parts.vLoad, rings.v, number, kv);
    });
  }

  /// K0 K1 V0 K2 V1 ...: as the overlapped consumers take them.
  void buildSkewedLoop() {
    auto branch = scf::IfOp::create(builder, hasSteps());
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(branch.thenBlock());
    loadStep(parts.kLoad, rings.k, i32(0), begin());
    Value numSteps =
        emitLoop(add(begin(), step()), i32(1), [&](Value kv, Value number) {
          loadStep(parts.kLoad, rings.k, number, kv);
          loadStep(parts.vLoad, rings.v, previous(number),
                   arith::SubIOp::create(builder, kv, step()));
        });
    Value last = previous(numSteps);
    Value kv = add(begin(), arith::MulIOp::create(builder, last, step()));
    loadStep(parts.vLoad, rings.v, last, kv);
  }

  Value previous(Value number) {
    return arith::SubIOp::create(builder, number, i32(1));
  }

  /// A loop over the key positions from `lower`, counting from `number`;
  /// returns the count after it.
  Value emitLoop(Value lower, Value number,
                 function_ref<void(Value kv, Value number)> body) {
    auto forOp = scf::ForOp::create(builder, lower, end(), step(), number);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(forOp.getBody());
    Value count = forOp.getRegionIterArg(0);
    body(forOp.getInductionVar(), count);
    scf::YieldOp::create(builder, add(count, i32(1)));
    return forOp.getResult(0);
  }

  bool invalid = false;
};

//===----------------------------------------------------------------------===//
// Consumers
//===----------------------------------------------------------------------===//

enum class StepKind { Partial, Full };

class ConsumerBuilder : RoleBuilder {
public:
  using RoleBuilder::RoleBuilder;

  void build(bool overlap) {
    Block &body = kernel.getBody().front();
    cloneBody(body.begin(), Block::iterator(loop));
    qSlot = WaitOp::create(builder, rings.q, i32(0));
    Values results = overlap ? buildOverlapped() : buildSimple();
    ReleaseOp::create(builder, qSlot);
    mapping.map(loop.getResults(), results);
    cloneBody(std::next(Block::iterator(loop)), body.end());
  }

private:
  void cloneBody(Block::iterator first, Block::iterator last) {
    for (Operation &op : llvm::make_range(first, last))
      if (!parts.isReplaced(&op) &&
          !isa<CreateRingOp, WarpSpecializeOp, ReturnOp>(op))
        builder.clone(op, mapping);
  }

  /// What a step hands to its PV product and to the next step.
  struct SoftmaxResult {
    Value p, acc;
    Values carried;
  };

  /// S = Q K^T of step `number`.
  std::pair<Value, Value> startQK(Value number) {
    Value slot = WaitOp::create(builder, rings.k, number);
    auto type = PendingType::get(builder.getContext(), parts.qk.getType());
    Value scores = WgmmaOp::create(builder, type, qSlot, slot, Value(),
                                   /*transpose_b=*/true);
    return {slot, scores};
  }

  std::pair<Value, Value> startPV(Value number, Value p, Value acc) {
    Value slot = WaitOp::create(builder, rings.v, number);
    auto type = PendingType::get(builder.getContext(), parts.pv.getType());
    Value output = WgmmaOp::create(builder, type, p, slot, acc,
                                   /*transpose_b=*/false);
    return {slot, output};
  }

  /// Waits for a product and gives the slot back that it read.
  Value finish(std::pair<Value, Value> product, int32_t inFlight) {
    auto type = cast<PendingType>(product.second.getType());
    Value tile =
        WgmmaWaitOp::create(builder, type.getTile(), inFlight, product.second);
    ReleaseOp::create(builder, product.first);
    return tile;
  }

  /// Clones a region of the loop without its load and product and returns what
  /// it yields.
  Values cloneRegion(Region &region, Value kv, ValueRange previous,
                     ValueRange carried, IRMapping &local) {
    Block &block = region.front();
    Values args = {kv};
    llvm::append_range(args, previous);
    llvm::append_range(args, carried);
    local.map(block.getArguments(), args);
    for (Operation &op : block.without_terminator())
      if (!parts.isReplaced(&op))
        builder.clone(op, local);
    return llvm::map_to_vector(
        block.getTerminator()->getOperands(),
        [&](Value value) { return local.lookupOrDefault(value); });
  }

  /// The regions qk (behind its product), score and softmax.
  Values emitSoftmax(Value kv, Value scores, ValueRange carried,
                     StepKind kind) {
    IRMapping local = mapping;
    local.map(parts.qk.getResult(), scores);
    Values values;
    for (Region *region :
         {&loop.getQk(), &loop.getScore(), &loop.getSoftmax()}) {
      Block *block = builder.getInsertionBlock();
      Operation *last = block->empty() ? nullptr : &block->back();
      values = cloneRegion(*region, kv, values, carried, local);
      if (kind == StepKind::Full)
        dropMasks(last ? std::next(last->getIterator()) : block->begin(),
                  block->end(), values);
    }
    return values;
  }

  static void dropMasks(Block::iterator first, Block::iterator last,
                        Values &values) {
    for (Operation &op :
         llvm::make_early_inc_range(llvm::make_range(first, last))) {
      auto mask = dyn_cast<MaskOp>(op);
      if (!mask)
        continue;
      llvm::replace(values, mask.getResult(), mask.getSource());
      mask.replaceAllUsesWith(mask.getSource());
      mask.erase();
    }
  }

  /// The region pv up to its product.
  SoftmaxResult emitRescale(Value kv, ValueRange previous, ValueRange carried) {
    IRMapping local = mapping;
    Values yielded = cloneRegion(loop.getPv(), kv, previous, carried, local);
    // What stands for the product is bound by the caller.
    yielded[parts.accIndex] = Value();
    return {local.lookupOrDefault(parts.pv.getA()),
            local.lookupOrDefault(parts.pv.getAcc()), std::move(yielded)};
  }

  //===--------------------------------------------------------------------===//
  // One step after the other
  //===--------------------------------------------------------------------===//

  Values buildSimple() {
    Values state = llvm::map_to_vector(
        loop.getInits(), [&](Value value) { return lookup(value); });
    state.push_back(i32(0));
    auto body = [&](Value kv, ValueRange state, StepKind kind) {
      ValueRange carried = state.drop_back();
      Value number = state.back();
      Value scores = finish(startQK(number), 0);
      Values values = emitSoftmax(kv, scores, carried, kind);
      SoftmaxResult result = emitRescale(kv, values, carried);
      result.carried[parts.accIndex] =
          finish(startPV(number, result.p, result.acc), 0);
      result.carried.push_back(add(number, i32(1)));
      return result.carried;
    };
    state = emitRanges(state, /*skipFirst=*/false, body);
    state.pop_back();
    return state;
  }

  //===--------------------------------------------------------------------===//
  // Overlapped steps
  //===--------------------------------------------------------------------===//

  Values buildOverlapped() {
    Values inits = llvm::map_to_vector(
        loop.getInits(), [&](Value value) { return lookup(value); });
    auto branch = scf::IfOp::create(builder, ValueRange(inits).getTypes(),
                                    hasSteps(), /*withElseRegion=*/true);
    {
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToStart(branch.elseBlock());
      scf::YieldOp::create(builder, inits);
      builder.setInsertionPointToStart(branch.thenBlock());
      scf::YieldOp::create(builder, emitOverlappedSteps(inits));
    }
    return branch.getResults();
  }

  /// The state between steps is (carried without the accumulator, rescaled
  /// accumulator, P, number of the step).
  Values emitOverlappedSteps(ValueRange inits) {
    Value scores = finish(startQK(i32(0)), 0);
    // Masks do nothing in a full step: the first may be either.
    Values softmax = emitSoftmax(begin(), scores, inits, StepKind::Partial);
    Values state = pack(emitRescale(begin(), softmax, inits), i32(1));

    auto body = [&](Value kv, ValueRange state, StepKind kind) {
      auto [p, acc, carried] = unpack(state);
      Value number = state.back();
      auto qk = startQK(number);
      Value previous = arith::SubIOp::create(builder, number, i32(1));
      auto pv = startPV(previous, p, acc);
      Value scores = finish(qk, 1);
      Values softmax = emitSoftmax(kv, scores, carried, kind);
      carried[parts.accIndex] = finish(pv, 0);
      return pack(emitRescale(kv, softmax, carried), add(number, i32(1)));
    };
    state = emitRanges(state, /*skipFirst=*/true, body);
    auto [p, acc, carried] = unpack(state);
    Value last = arith::SubIOp::create(builder, state.back(), i32(1));
    carried[parts.accIndex] = finish(startPV(last, p, acc), 0);
    return carried;
  }

  Values pack(SoftmaxResult result, Value number) {
    Values state = std::move(result.carried);
    state[parts.accIndex] = result.acc;
    state.push_back(result.p);
    state.push_back(number);
    return state;
  }

  /// canOverlap: no one reads the accumulator among the carried values.
  SoftmaxResult unpack(ValueRange state) {
    Values carried(state.drop_back(2));
    Value acc = carried[parts.accIndex];
    return {state[state.size() - 2], acc, std::move(carried)};
  }

  //===--------------------------------------------------------------------===//
  // Ranges
  //===--------------------------------------------------------------------===//

  using StepFn = function_ref<Values(Value kv, ValueRange state, StepKind)>;

  /// Emits the steps in order, one loop a range; with `skipFirst` without the
  /// first one.
  Values emitRanges(Values state, bool skipFirst, StepFn body) {
    Value first = begin();
    if (skipFirst)
      first = add(first, step());
    auto lower = [&](Value bound) -> Value {
      if (!skipFirst)
        return lookup(bound);
      return arith::MaxSIOp::create(builder, lookup(bound), first);
    };
    state = emitRange(loop.getBegin(), loop.getFullBegin(), first,
                      std::move(state), StepKind::Partial, body);
    state = emitRange(loop.getFullBegin(), loop.getFullEnd(),
                      lower(loop.getFullBegin()), std::move(state),
                      StepKind::Full, body);
    return emitRange(loop.getFullEnd(), loop.getEnd(), lower(loop.getFullEnd()),
                     std::move(state), StepKind::Partial, body);
  }

  /// The range is [rangeBegin, rangeEnd) in the kernel, from `first` here.
  Values emitRange(Value rangeBegin, Value rangeEnd, Value first, Values state,
                   StepKind kind, StepFn body) {
    if (isEqualConstantIntOrValue(rangeBegin, rangeEnd))
      return state;
    auto forOp =
        scf::ForOp::create(builder, first, lookup(rangeEnd), step(), state);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(forOp.getBody());
    Values next =
        body(forOp.getInductionVar(), forOp.getRegionIterArgs(), kind);
    scf::YieldOp::create(builder, next);
    return forOp.getResults();
  }

  Value qSlot;
};

//===----------------------------------------------------------------------===//
// Pass
//===----------------------------------------------------------------------===//

struct ConvertTileToHopperPass
    : attn::impl::ConvertTileToHopperBase<ConvertTileToHopperPass> {
  using ConvertTileToHopperBase::ConvertTileToHopperBase;

  void runOnOperation() override {
    KernelOp kernel = getOperation();
    FailureOr<KVLoopKernel> parts = KVLoopKernel::match(kernel);
    if (failed(parts) || failed(split(kernel, *parts)))
      return signalPassFailure();
  }

private:
  static Value createRing(OpBuilder &builder, Operation *load, int64_t stages) {
    auto emitError = [&] { return load->emitOpError("in a ring: "); };
    auto type = RingType::getChecked(emitError, load->getContext(), stages,
                                     getTileType(load->getResult(0)));
    if (!type)
      return {};
    return CreateRingOp::create(builder, load->getLoc(), type);
  }

  LogicalResult split(KernelOp kernel, KVLoopKernel parts) {
    int64_t rows = getTileType(parts.qLoad.getResult()).getDimSize(0);
    const RegisterSplit *registers = findRegisterSplit(rows);
    if (!registers)
      return parts.qLoad.emitOpError("has ")
             << rows
             << " rows; 64 rows a consumer warpgroup, with 1 to 4 of "
                "them: use block_m = 64, 128, 192 or 256";
    int64_t numStages = kernel.getNumStages().value_or(kDefaultStages);

    Block &body = kernel.getBody().front();
    OpBuilder builder = OpBuilder::atBlockTerminator(&body);
    Values args(kernel.getBody().getArguments());
    for (auto [load, ringStages] : {std::pair(parts.qLoad, int64_t(1)),
                                    {parts.kLoad, numStages},
                                    {parts.vLoad, numStages}}) {
      Value ring = createRing(builder, load, ringStages);
      if (!ring)
        return failure();
      args.push_back(ring);
    }
    kernel.setNumWarps(kWarpsPerWarpgroup * (1 + registers->warpgroups));
    auto roles = WarpSpecializeOp::create(
        builder, kernel.getLoc(), args, registers->producer,
        registers->warpgroups, registers->consumer);
    TypeRange argTypes = ValueRange(args).getTypes();
    bool overlapped = overlap && parts.canOverlap();
    ProducerBuilder producer(parts, kernel, roles.getProducer(), argTypes);
    if (failed(producer.build(overlapped)))
      return failure();
    ConsumerBuilder consumer(parts, kernel, roles.getConsumer(), argTypes);
    consumer.build(overlapped);
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
