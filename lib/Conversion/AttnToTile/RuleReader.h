//===- RuleReader.h - Values and bounds of a mask rule ----------*- C++ -*-===//
//
// Scalar code that computes what a mask_mod computes: at one query and key, or
// bounds of it over a range of queries and keys.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_ATTNTOTILE_RULEREADER_H
#define ATTN_LIB_CONVERSION_ATTNTOTILE_RULEREADER_H

#include "attn/Dialect/Attn/IR/AttnOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::attn {

/// What a value of a rule depends on, as bits.
enum RuleInput : unsigned { kBatch = 1, kHead = 2, kQuery = 4, kKey = 8 };

/// Finds what the values of a mask_mod depend on.
class RuleInputs {
public:
  unsigned get(Value value);
  bool dependsOnPosition(Value value) {
    return (get(value) & (kQuery | kKey)) != 0;
  }

private:
  DenseMap<Value, unsigned> known;
};

/// What a kernel has in the place of a rule's inputs.
struct RuleContext {
  Value batch, head, qLen, kvLen;
  /// One memref a capture.
  SmallVector<Value> captures;
};

/// The tile.gather that `load` becomes at the indices `positions`, 0 where the
/// element is the only one.
Value createGather(OpBuilder &builder, CaptureLoadOp load, Value source,
                   ValueRange positions, Value batch, Value head);

/// Clones the values of a mask_mod at one query and key.
class RuleCloner {
public:
  RuleCloner(Region &rule, const RuleContext &context, Value query, Value key);
  Value clone(OpBuilder &builder, Value value);

private:
  const RuleContext &context;
  IRMapping mapping;
};

/// Inclusive bounds: of integers as i64, of a condition as i1, where `min` says
/// that it holds everywhere and `max` that it may hold somewhere.
struct RuleBounds {
  Value min, max;
};

/// Emits bounds of the values of a mask_mod over some queries and keys, by
/// interval arithmetic. They are sound for every rule, and exact for
/// comparisons of sums in which no input comes twice.
class RuleBoundsBuilder {
public:
  /// Reads the bounds of a capture over the queries and keys; null if they
  /// aren't known.
  using ReadFn =
      function_ref<std::optional<RuleBounds>(OpBuilder &, CaptureLoadOp)>;

  /// `query` and `key` are i32 bounds. What doesn't depend on the key is
  /// emitted at `outer`, the rest at `inner`. What can't be bounded is added to
  /// `opaque`.
  RuleBoundsBuilder(Region &rule, const RuleContext &context,
                    RuleInputs &inputs, ImplicitLocOpBuilder &outer,
                    ImplicitLocOpBuilder &inner, RuleBounds query,
                    RuleBounds key, ReadFn read, SetVector<Operation *> &opaque)
      : rule(rule), inputs(inputs), outer(outer), inner(inner), query(query),
        key(key), read(read), opaque(opaque),
        uniform(rule, context, Value(), Value()) {}

  RuleBounds get(Value value);

private:
  class Emitter;
  RuleBounds compute(Emitter &emit, Value value);
  RuleBounds computeInteger(Emitter &emit, Operation *op);
  RuleBounds computeCondition(Emitter &emit, Operation *op);
  RuleBounds computeCompare(Emitter &emit, arith::CmpIOp op);
  RuleBounds getUnknown(Emitter &emit, Operation *op, Type type);
  std::optional<int64_t> getPositiveConstant(Value value);

  Region &rule;
  RuleInputs &inputs;
  ImplicitLocOpBuilder &outer, &inner;
  RuleBounds query, key;
  ReadFn read;
  SetVector<Operation *> &opaque;
  RuleCloner uniform;
  DenseMap<Value, RuleBounds> known;
};

} // namespace mlir::attn

#endif // ATTN_LIB_CONVERSION_ATTNTOTILE_RULEREADER_H
