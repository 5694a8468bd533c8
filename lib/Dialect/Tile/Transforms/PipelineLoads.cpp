//===- PipelineLoads.cpp - Prefetch tiles of later steps ------------------===//
//
// A loop's loads become copies into a ring of `num_stages` slots that run
// `num_stages - 1` steps ahead:
//
//   start the loads of steps 0 .. num_stages - 2, one group a step
//   for each step:
//     wait for this step's group       (a barrier: the slot read in the last
//                                       step is free)
//     start the loads of step + num_stages - 1 into that slot
//     compute on this step's slot
//
// One barrier a step is enough because the slot that a step overwrites was
// read in the step before the barrier.
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace mlir::tile {
#define GEN_PASS_DEF_TILEPIPELINELOADS
#include "attn/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace mlir::tile

using namespace mlir;
using namespace mlir::tile;

namespace {
/// A load of the loop and the ring that it moves to.
struct PipelinedLoad {
  LoadOp load;
  Value buffer;
};

/// What the two kinds of loops have in common.
struct LoopBounds {
  Value begin, end, step; // i32
};

/// The step whose loads are next, and where it takes them from.
struct LaterStep {
  Value iv, key;
};

class LoopPipeliner {
public:
  LoopPipeliner(Operation *loop, int64_t stages)
      : loop(loop), stages(stages), rewriter(loop->getContext()) {}

  /// Finds the loads to prefetch; false if there are none.
  bool findLoads();
  void pipelineKVLoop();
  void pipelineFor();

private:
  bool isPipelinable(LoadOp load);
  void createBuffers();
  void makeInvariantLoadsAsync();
  void emitPrologue(const LoopBounds &bounds);
  /// The head of a step: waits for its slot and starts the loads of the step
  /// that `getLater` gives. Returns the next step's slot.
  Value emitStepHead(const LoopBounds &bounds, Value slot,
                     function_ref<LaterStep()> getLater);
  /// `iv` moved on by as many steps as loads run ahead.
  Value advance(const LoopBounds &bounds, Value iv);
  /// The key of a kv_loop's step, the induction variable of another. What lies
  /// behind the end of a list is anything; such a step begins at key 0.
  Value getKey(const LoopBounds &bounds, Value iv);
  void startLoads(Value key, Value slot, Value condition);
  void readFromBuffers(Value slot);
  Value i32(int64_t value);
  Value less(Value a, Value b);
  Value wrap(Value slot);

  Operation *loop;
  int64_t stages;
  IRRewriter rewriter;
  SmallVector<PipelinedLoad> loads;
};
} // namespace

/// The loop variable that `value`, an argument of the loop's blocks, is.
static bool isInductionVariable(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  return argument && argument.getArgNumber() == 0;
}

/// True if `value` can be computed for another step: it is defined outside of
/// `loop`, is the induction variable, or pure arithmetic on such values.
static bool isRecomputable(Value value, Operation *loop) {
  if (!loop->isProperAncestor(value.getParentBlock()->getParentOp()) &&
      value.getParentBlock()->getParentOp() != loop)
    return true;
  if (isInductionVariable(value) &&
      value.getParentBlock()->getParentOp() == loop)
    return true;
  Operation *op = value.getDefiningOp();
  return op && op->getNumRegions() == 0 && isPure(op) &&
         llvm::all_of(op->getOperands(), [&](Value operand) {
           return isRecomputable(operand, loop);
         });
}

bool LoopPipeliner::isPipelinable(LoadOp load) {
  auto tile = cast<RankedTensorType>(load.getType());
  return load->getParentOp() == loop && tile.getRank() == 2 &&
         !load->use_empty() &&
         llvm::all_of(load->getUsers(),
                      [](Operation *user) { return isa<MmaOp>(user); }) &&
         llvm::all_of(load.getIndices(),
                      [&](Value index) { return isRecomputable(index, loop); });
}

bool LoopPipeliner::findLoads() {
  loop->walk([&](LoadOp load) {
    if (isPipelinable(load))
      loads.push_back({load, Value()});
  });
  return !loads.empty();
}

Value LoopPipeliner::i32(int64_t value) {
  return arith::ConstantOp::create(rewriter, loop->getLoc(),
                                   rewriter.getI32IntegerAttr(value));
}

Value LoopPipeliner::less(Value a, Value b) {
  return arith::CmpIOp::create(rewriter, loop->getLoc(),
                               arith::CmpIPredicate::slt, a, b);
}

/// `slot` modulo the number of stages, for slots below twice that.
Value LoopPipeliner::wrap(Value slot) {
  Location loc = loop->getLoc();
  Value wrapped = arith::SubIOp::create(rewriter, loc, slot, i32(stages));
  return arith::SelectOp::create(rewriter, loc, less(slot, i32(stages)), slot,
                                 wrapped);
}

void LoopPipeliner::createBuffers() {
  for (PipelinedLoad &pipelined : loads) {
    auto type =
        BufferType::get(rewriter.getContext(), stages,
                        cast<RankedTensorType>(pipelined.load.getType()));
    pipelined.buffer =
        AllocBufferOp::create(rewriter, pipelined.load.getLoc(), type);
  }
}

/// Copies the indices' arithmetic for the step `iv`.
static Value recompute(OpBuilder &builder, Value value, Operation *loop,
                       Value iv, IRMapping &mapping) {
  if (mapping.contains(value))
    return mapping.lookup(value);
  if (value.getParentBlock()->getParentOp() == loop &&
      isInductionVariable(value))
    return iv;
  Operation *op = value.getDefiningOp();
  if (!op || !loop->isProperAncestor(op))
    return value;
  for (Value operand : op->getOperands())
    mapping.map(operand, recompute(builder, operand, loop, iv, mapping));
  builder.clone(*op, mapping);
  return mapping.lookup(value);
}

Value LoopPipeliner::advance(const LoopBounds &bounds, Value iv) {
  Location loc = loop->getLoc();
  Value distance =
      arith::MulIOp::create(rewriter, loc, bounds.step, i32(stages - 1));
  return arith::AddIOp::create(rewriter, loc, iv, distance);
}

Value LoopPipeliner::getKey(const LoopBounds &bounds, Value iv) {
  auto kvLoop = dyn_cast<KVLoopOp>(loop);
  if (!kvLoop || !kvLoop.getTiles())
    return iv;
  Value key = kvLoop.getKey(rewriter, iv, IRMapping());
  return arith::SelectOp::create(rewriter, loop->getLoc(), less(iv, bounds.end),
                                 key, i32(0));
}

void LoopPipeliner::startLoads(Value key, Value slot, Value condition) {
  IRMapping mapping;
  for (PipelinedLoad &pipelined : loads) {
    SmallVector<Value> indices;
    for (Value index : pipelined.load.getIndices())
      indices.push_back(recompute(rewriter, index, loop, key, mapping));
    AsyncLoadOp::create(rewriter, pipelined.load.getLoc(),
                        pipelined.load.getSource(), indices, pipelined.buffer,
                        slot, condition, pipelined.load.getInterleave());
  }
  AsyncCommitOp::create(rewriter, loop->getLoc());
}

/// Loads ahead of the loop that only feed its matrix products (the Q tile)
/// start first and are waited for after the prologue has started its own.
void LoopPipeliner::makeInvariantLoadsAsync() {
  SmallVector<LoadOp> invariant;
  for (LoadOp load : loop->getBlock()->getOps<LoadOp>()) {
    bool onlyHere = llvm::all_of(load->getUsers(), [&](Operation *user) {
      auto mma = dyn_cast<MmaOp>(user);
      return mma && loop->isProperAncestor(mma) && mma.getA() == load &&
             mma.getB() != load;
    });
    if (cast<RankedTensorType>(load.getType()).getRank() == 2 && onlyHere &&
        !load->use_empty() && load->isBeforeInBlock(loop))
      invariant.push_back(load);
  }
  if (invariant.empty())
    return;
  SmallVector<Value> buffers;
  Location loc = loop->getLoc();
  {
    OpBuilder::InsertionGuard guard(rewriter);
    for (LoadOp load : invariant) {
      rewriter.setInsertionPoint(load);
      auto type = BufferType::get(rewriter.getContext(), 1,
                                  cast<RankedTensorType>(load.getType()));
      Value buffer = AllocBufferOp::create(rewriter, load.getLoc(), type);
      Value always =
          arith::ConstantOp::create(rewriter, loc, rewriter.getBoolAttr(true));
      AsyncLoadOp::create(rewriter, load.getLoc(), load.getSource(),
                          load.getIndices(), buffer, i32(0), always,
                          load.getInterleave());
      AsyncCommitOp::create(rewriter, loc);
      buffers.push_back(buffer);
    }
  }
  AsyncWaitOp::create(rewriter, loc, stages - 1);
  for (auto [load, buffer] : llvm::zip_equal(invariant, buffers)) {
    Value read = BufferReadOp::create(rewriter, load.getLoc(), load.getType(),
                                      buffer, i32(0));
    rewriter.replaceOp(load, read);
  }
}

void LoopPipeliner::emitPrologue(const LoopBounds &bounds) {
  Location loc = loop->getLoc();
  Value iv = bounds.begin;
  for (int64_t stage = 0; stage < stages - 1; ++stage) {
    if (stage > 0)
      iv = arith::AddIOp::create(rewriter, loc, iv, bounds.step);
    startLoads(getKey(bounds, iv), i32(stage), less(iv, bounds.end));
  }
  makeInvariantLoadsAsync();
}

Value LoopPipeliner::emitStepHead(const LoopBounds &bounds, Value slot,
                                  function_ref<LaterStep()> getLater) {
  Location loc = loop->getLoc();
  AsyncWaitOp::create(rewriter, loc, stages - 2);
  LaterStep later = getLater();
  Value free =
      wrap(arith::AddIOp::create(rewriter, loc, slot, i32(stages - 1)));
  startLoads(later.key, free, less(later.iv, bounds.end));
  return wrap(arith::AddIOp::create(rewriter, loc, slot, i32(1)));
}

void LoopPipeliner::readFromBuffers(Value slot) {
  for (PipelinedLoad &pipelined : loads) {
    rewriter.setInsertionPoint(pipelined.load);
    rewriter.replaceOpWithNewOp<BufferReadOp>(
        pipelined.load, pipelined.load.getType(), pipelined.buffer, slot);
  }
}

void LoopPipeliner::pipelineFor() {
  auto oldLoop = cast<scf::ForOp>(loop);
  rewriter.setInsertionPoint(loop);
  createBuffers();
  LoopBounds bounds{oldLoop.getLowerBound(), oldLoop.getUpperBound(),
                    oldLoop.getStep()};
  emitPrologue(bounds);
  Value first = i32(0);
  Value nextSlot;
  auto newLoop = cast<scf::ForOp>(*oldLoop.replaceWithAdditionalYields(
      rewriter, first, /*replaceInitOperandUsesInLoop=*/false,
      [&](OpBuilder &, Location, ArrayRef<BlockArgument> newArguments) {
        // The step's head goes to the front of the body, which moves next.
        return SmallVector<Value>{newArguments[0]};
      }));
  loop = newLoop;
  Value slot = newLoop.getRegionIterArgs().back();
  rewriter.setInsertionPointToStart(newLoop.getBody());
  nextSlot = emitStepHead(bounds, slot, [&]() -> LaterStep {
    Value later = advance(bounds, newLoop.getInductionVar());
    return {later, later};
  });
  readFromBuffers(slot);
  Operation *yield = newLoop.getBody()->getTerminator();
  yield->setOperand(yield->getNumOperands() - 1, nextSlot);
}

void LoopPipeliner::pipelineKVLoop() {
  auto oldLoop = cast<KVLoopOp>(loop);
  Location loc = loop->getLoc();
  rewriter.setInsertionPoint(loop);
  createBuffers();
  LoopBounds bounds{oldLoop.getBegin(), oldLoop.getEnd(),
                    i32(oldLoop.getStep())};
  emitPrologue(bounds);

  // Carried are the slot and, if keys are read from a list, the position there
  // that loads have come to, and its key, read a step ahead.
  SmallVector<Value> added = {i32(0)};
  if (oldLoop.getTiles()) {
    Value later = advance(bounds, bounds.begin);
    added.append({later, getKey(bounds, later)});
  }
  SmallVector<Value> inits(oldLoop.getInits());
  llvm::append_range(inits, added);
  KVLoopOp newLoop = oldLoop.cloneWithInits(rewriter, inits);
  // Slots are taken in turn.
  newLoop.setUnordered(false);
  for (auto [from, to] :
       llvm::zip_equal(oldLoop->getRegions(), newLoop->getRegions())) {
    to.takeBody(from);
    for (Value value : added)
      to.front().addArgument(value.getType(), loc);
  }
  rewriter.replaceOp(oldLoop, newLoop.getResults().drop_back(added.size()));
  loop = newLoop;
  auto getAdded = [&](Block &block) {
    return ValueRange(block.getArguments()).take_back(added.size());
  };

  Block &qk = newLoop.getQk().front();
  rewriter.setInsertionPointToStart(&qk);
  ValueRange state = getAdded(qk);
  emitStepHead(bounds, state[0], [&]() -> LaterStep {
    if (newLoop.getTiles())
      return {state[1], state[2]};
    Value later = advance(bounds, qk.getArgument(0));
    return {later, later};
  });
  for (PipelinedLoad &pipelined : loads) {
    LoadOp load = pipelined.load;
    rewriter.setInsertionPoint(load);
    rewriter.replaceOpWithNewOp<BufferReadOp>(
        load, load.getType(), pipelined.buffer,
        getAdded(*load->getBlock()).front());
  }

  // In front of the product, under which the key comes.
  Block &pv = newLoop.getPv().front();
  rewriter.setInsertionPointToStart(&pv);
  state = getAdded(pv);
  SmallVector<Value> next = {
      wrap(arith::AddIOp::create(rewriter, loc, state[0], i32(1)))};
  if (newLoop.getTiles()) {
    Value position =
        arith::AddIOp::create(rewriter, loc, state[1], bounds.step);
    next.append({position, getKey(bounds, position)});
  }
  Operation *yield = pv.getTerminator();
  yield->insertOperands(yield->getNumOperands(), next);
}

namespace {
struct TilePipelineLoads
    : tile::impl::TilePipelineLoadsBase<TilePipelineLoads> {
  void runOnOperation() override {
    KernelOp kernel = getOperation();
    int64_t stages = kernel.getNumStages().value_or(1);
    if (stages < 2)
      return;
    SmallVector<Operation *> loops;
    kernel->walk([&](Operation *op) {
      auto loop = dyn_cast<scf::ForOp>(op);
      if (isa<KVLoopOp>(op) ||
          (loop && loop.getInductionVar().getType().isInteger(32)))
        loops.push_back(op);
    });
    for (Operation *loop : loops) {
      LoopPipeliner pipeliner(loop, stages);
      if (!pipeliner.findLoads())
        continue;
      if (isa<KVLoopOp>(loop))
        pipeliner.pipelineKVLoop();
      else
        pipeliner.pipelineFor();
    }
  }
};
} // namespace
