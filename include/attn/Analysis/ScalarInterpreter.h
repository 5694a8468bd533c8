//===- ScalarInterpreter.h - Values of scalar arithmetic --------*- C++ -*-===//

#ifndef ATTN_ANALYSIS_SCALARINTERPRETER_H
#define ATTN_ANALYSIS_SCALARINTERPRETER_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseMap.h"

namespace mlir::tile {

/// Evaluates integer arithmetic with upstream's folders.
class ScalarInterpreter {
public:
  /// Fixes a value, whatever computes it.
  void set(Value value, int64_t constant);

  /// The value that follows from the fixed ones, i1 as 0 or 1. Fails after an
  /// error at the operation that can't be folded.
  FailureOr<int64_t> evaluate(Value value);

private:
  /// Null after an error.
  Attribute get(Value value);
  Attribute fold(Value value);

  DenseMap<Value, Attribute> values;
};

} // namespace mlir::tile

#endif // ATTN_ANALYSIS_SCALARINTERPRETER_H
