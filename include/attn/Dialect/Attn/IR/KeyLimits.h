//===- KeyLimits.h - Where a condition ends the keys ------------*- C++ -*-===//

#ifndef ATTN_DIALECT_ATTN_IR_KEYLIMITS_H
#define ATTN_DIALECT_ATTN_IR_KEYLIMITS_H

#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/SmallVector.h"

namespace mlir::attn {

/// A condition that keys must meet to be seen: key < bound, or key <= bound,
/// which is an integer of at least 32 bits.
struct KeyLimit {
  Value bound;
  bool isInclusive;
};

/// The limits that `condition` sets to the i32 `key`: those of its comparisons
/// with the key or the key extended, if it is one, a conjunction of several, or
/// the negation of a disjunction.
SmallVector<KeyLimit> findKeyLimits(Value condition, Value key);

/// How many of `numKeys` keys meet `limits`, in [0, numKeys].
Value countKeys(ImplicitLocOpBuilder &builder, ArrayRef<KeyLimit> limits,
                Value numKeys);

} // namespace mlir::attn

#endif // ATTN_DIALECT_ATTN_IR_KEYLIMITS_H
