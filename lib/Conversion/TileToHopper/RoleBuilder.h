//===- RoleBuilder.h - What warp roles are built with -----------*- C++ -*-===//

#ifndef ATTN_LIB_CONVERSION_TILETOHOPPER_ROLEBUILDER_H
#define ATTN_LIB_CONVERSION_TILETOHOPPER_ROLEBUILDER_H

#include "KVLoopKernel.h"
#include "attn/Analysis/KVRanges.h"
#include "attn/Dialect/Attn/IR/AttnOps.h"
#include "attn/Dialect/Hopper/IR/HopperOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::tile {

using Values = SmallVector<Value>;

/// The rings that carry the tiles of one kernel, and of a persistent one the
/// numbers of its tiles of queries.
struct Rings {
  Value q, k, v, tiles;
  /// V as it lies, if it is transposed for its products.
  Value staging;
  /// In the order of the loads.
  Values captures;
};

/// What the last tile number in the ring says: there is none left.
constexpr int64_t kNoTile = -1;

/// The steps of one warpgroup in the order in which they run, from those of all
/// warpgroups. Steps in [fullBegin, fullEnd) need no mask. All are i32.
struct Steps {
  /// KV tiles that all warpgroups take; before its first, that this one skips;
  /// that it takes.
  Value total, skipped, count;
  Value fullBegin, fullEnd;
  /// Where in the loop's ranges the first step is.
  Value first;

  static constexpr size_t kNumFields = 6;
  SmallVector<Value> getFields() const {
    return {total, skipped, count, fullBegin, fullEnd, first};
  }
  static Steps fromFields(ValueRange fields) {
    return {fields[0], fields[1], fields[2], fields[3], fields[4], fields[5]};
  }
};

/// What is the same for all threads of a kernel's program or warpgroup.
struct TileScalars {
  /// The steps of one warpgroup, in front of the loop.
  KVRanges ranges;
  /// The i32 scalars in front of the loop that follow from the number of the
  /// tile of queries and that the consumers use. The producer of a persistent
  /// kernel computes them, and everybody's steps, ahead.
  SmallVector<Value> shared;
  int64_t warpgroups;

  int64_t countPosted() const {
    return 1 + shared.size() + warpgroups * Steps::kNumFields;
  }
};

/// Whether `op` is code on scalars without effects, which any role may repeat.
bool isScalarCode(Operation &op);
/// The values from outside of `op` that it uses.
Values getUsedValues(Operation &op);

/// Clones the scalar code without effects of `block` that depends on mapped
/// values only: what a role that doesn't compute may compute.
void cloneScalarCode(OpBuilder &builder, Block &block, IRMapping &mapping);

/// Emits one role: a clone of parts of the kernel in a region of the
/// warp_specialize op.
///
/// All roles walk the KV tiles of a tile of queries in the same order. If the
/// loop is unordered they begin with the last: masks cut off the end more often
/// than the beginning, so that the steps that need a mask come first and the
/// last ones don't. Rings count their tiles over the whole kernel.
class RoleBuilder {
public:
  /// `args` are those of the warp_specialize op: the kernel's, then the rings.
  RoleBuilder(const KVLoopKernel &parts, attn::WarpRolesAttr schedule,
              const TileScalars &scalars, Region &region, ValueRange args);

protected:
  Value i32(int64_t value) {
    return arith::ConstantOp::create(builder, builder.getI32IntegerAttr(value));
  }
  Value add(Value a, Value b) {
    return builder.createOrFold<arith::AddIOp>(a, b);
  }
  Value sub(Value a, Value b) {
    return builder.createOrFold<arith::SubIOp>(a, b);
  }
  Value mul(Value a, Value b) {
    return builder.createOrFold<arith::MulIOp>(a, b);
  }
  Value min(Value a, Value b) {
    return builder.createOrFold<arith::MinSIOp>(a, b);
  }
  Value max(Value a, Value b) {
    return builder.createOrFold<arith::MaxSIOp>(a, b);
  }
  Value less(Value a, Value b) {
    return builder.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::slt, a, b);
  }
  Value lookup(Value value) { return mapping.lookupOrDefault(value); }
  Value step() { return i32(loop.getStep()); }
  /// The key of the step at `position` of the loop.
  Value getKey(Value position) {
    return loop.getKey(builder, position, mapping);
  }
  /// How many steps lead from key `begin` to `end`.
  Value countSteps(Value begin, Value end);
  /// `count` numbers of the tile of queries whose slot `slot` is.
  Values get(Value slot, Value first, size_t count);

  /// Makes `tile` the number of the program in what is cloned from here on.
  void bindProgramId(Value tile);
  /// Whether there may be full steps, and whether all are that come behind one.
  bool hasFull() const;
  bool endsFull() const;
  /// The steps of the warpgroup that `values` are about.
  Steps buildSteps(const IRMapping &values);

  /// Emits an scf.while on i32 values: `before` returns the condition and the
  /// `numHanded` values that go to `after`, which returns the next values.
  /// Returns the values handed on at the end.
  Values emitWhile(ValueRange inits, size_t numHanded,
                   function_ref<std::pair<Value, Values>(ValueRange)> before,
                   function_ref<Values(ValueRange)> after);
  /// Emits a loop over [lower, upper).
  Values emitFor(Value lower, Value upper, int64_t step, ValueRange inits,
                 function_ref<Values(Value index, ValueRange carried)> body);
  /// Emits a branch; both bodies return the same types.
  Values emitIf(Value condition, TypeRange types,
                function_ref<Values()> thenBody,
                function_ref<Values()> elseBody);

  KVLoopKernel parts;
  KVLoopOp loop;
  KernelOp kernel;
  attn::WarpRolesAttr schedule;
  TileScalars scalars;
  ImplicitLocOpBuilder builder;
  IRMapping mapping;
  Rings rings;
};

/// Emits the producer: one thread that loads what the consumers take.
class ProducerBuilder : RoleBuilder {
public:
  using RoleBuilder::RoleBuilder;
  LogicalResult build();

private:
  void post(ValueRange values, Value count);
  Values computePosted(Value tile);
  void cloneScalars();
  Value buildTile(Value tileNumber, Value base);
  void load(LoadOp source, Value ring, Value number, IRMapping &values);
  void loadStep(LoadOp source, Value ring, Value number, Value kv);

  bool invalid = false;
};

/// Emits the transposer: what gets V from the ring that the producer fills to
/// the one that the consumers read.
class TransposerBuilder : RoleBuilder {
public:
  using RoleBuilder::RoleBuilder;
  void build();

private:
  void transposeTiles(Value begin, Value end);
};

/// Emits the consumers: everything but the loads.
class ConsumerBuilder : RoleBuilder {
public:
  using RoleBuilder::RoleBuilder;
  void build();

private:
  enum class StepKind { Partial, Full };
  /// A product under way, and the slot of its right operand.
  struct Product {
    Value pending;
    Value ring, number;
  };
  /// What a step hands to its PV product and to the next step.
  struct SoftmaxResult {
    Value p, acc;
    Values carried;
  };
  /// Between two steps of the `ahead` pipeline: the scores of the next one, the
  /// product for those after it, and PV of the step before.
  struct AheadState {
    Values carried;
    Value scores, nextScores, output;
  };

  void getShared();
  Steps getSteps();
  Value buildTile(Value tileNumber, Value first, Steps steps);
  void cloneOp(Operation &op);
  void cloneBody(Block::iterator first, Block::iterator last);
  void skip(Value firstNumber, Value count);
  Value getKV(const Steps &steps, Value index);

  Product startQK(const Steps &steps, Value number);
  std::pair<Value, Value> cloneRamp(const Steps &steps, Value number);
  Product startPV(Value number, Value p, Value acc);
  Product startQK(const Steps &steps, Value slot, Value number);
  Product startPV(Value slot, Value number, Value p, Value acc);
  void releaseQ();
  Value finish(const Product &product, int32_t inFlight);
  Values readCaptures(Value number);
  Values cloneRegion(Region &region, Value kv, ValueRange previous,
                     ValueRange carried, IRMapping &local);
  Values emitSoftmax(Value kv, Value scores, ValueRange captures,
                     ValueRange carried, StepKind kind);
  SoftmaxResult emitRescale(Value kv, ValueRange previous, ValueRange carried);

  using StepFn =
      function_ref<Values(Value index, ValueRange state, StepKind kind)>;
  Values emitRanges(const Steps &steps, int64_t skipped, Values state,
                    StepFn body);
  Values buildSimple(const Steps &steps, ValueRange inits);
  Values buildSimpleStep(const Steps &steps, Value index, ValueRange carried,
                         StepKind kind);
  Values buildOverlapped(const Steps &steps, ValueRange inits);
  Values buildAhead(const Steps &steps, ValueRange inits);
  Values buildAheadSteps(const Steps &steps, ValueRange inits, StepKind last);
  AheadState buildAheadStep(const Steps &steps, Value index, AheadState state,
                            StepKind kind, bool isFirst, bool hasQK);
  Values pack(const AheadState &state);
  AheadState unpack(ValueRange values);

  /// The number of the tile in the K and V rings that step 0 takes.
  Value base;
  Value numbersSlot, qSlot;
};

} // namespace mlir::tile

#endif // ATTN_LIB_CONVERSION_TILETOHOPPER_ROLEBUILDER_H
