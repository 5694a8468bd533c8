//===- IntegerRanges.h - What integers of a mask lie between ----*- C++ -*-===//

#ifndef ATTN_ANALYSIS_INTEGERRANGES_H
#define ATTN_ANALYSIS_INTEGERRANGES_H

#include "mlir/IR/Block.h"
#include "mlir/Interfaces/InferIntRangeInterface.h"
#include "llvm/ADT/DenseMap.h"

namespace mlir::tile {

/// Positions and lengths, padding included, are below this bound. It lets the
/// analysis of masks prove that a rule's i32 sums of them don't wrap;
/// arithmetic that might is not understood.
constexpr int64_t kPositionBound = int64_t(1) << 30;

/// Infers ranges by upstream's interface, through all that computes a value.
class IntegerRanges {
public:
  /// The integers that `rule`, the body of a mask, takes are positions, as the
  /// sizes of memrefs are.
  explicit IntegerRanges(Block &rule) : rule(rule) {}

  ConstantIntRanges get(Value value);

private:
  ConstantIntRanges infer(Value value);

  Block &rule;
  DenseMap<Value, ConstantIntRanges> known;
};

} // namespace mlir::tile

#endif // ATTN_ANALYSIS_INTEGERRANGES_H
