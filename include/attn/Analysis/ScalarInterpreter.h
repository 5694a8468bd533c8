//===- ScalarInterpreter.h - Values of scalar arithmetic --------*- C++ -*-===//

#ifndef ATTN_ANALYSIS_SCALARINTERPRETER_H
#define ATTN_ANALYSIS_SCALARINTERPRETER_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseMap.h"
#include <functional>
#include <optional>

namespace mlir::tile {

/// Evaluates integer arithmetic with upstream's folders.
class ScalarInterpreter {
public:
  /// The element of a kernel's argument at `indices`, none if it isn't known.
  using ReadFn = std::function<std::optional<int64_t>(
      unsigned argument, ArrayRef<int64_t> indices)>;

  /// With `isQuiet`, what can't be folded is no error: evaluate() only fails.
  explicit ScalarInterpreter(bool isQuiet = false) : isQuiet(isQuiet) {}

  /// Fixes a value, whatever computes it.
  void set(Value value, int64_t constant);

  /// What integers a tile.gather reads.
  void setMemory(ReadFn fn) { read = std::move(fn); }

  /// The value that follows from the fixed ones, i1 as 0 or 1. Fails after an
  /// error at the operation that can't be folded.
  FailureOr<int64_t> evaluate(Value value);

private:
  /// Null after an error.
  Attribute get(Value value);
  Attribute fold(Value value);
  /// Null if the element isn't known.
  Attribute readElement(Operation *op);

  bool isQuiet;
  DenseMap<Value, Attribute> values;
  ReadFn read;
};

} // namespace mlir::tile

#endif // ATTN_ANALYSIS_SCALARINTERPRETER_H
