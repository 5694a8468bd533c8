//===- Emitter.h - Short forms for the code that is emitted -----*- C++ -*-===//

#ifndef ATTN_LIB_CONVERSION_TILETOVECTOR_EMITTER_H
#define ATTN_LIB_CONVERSION_TILETOVECTOR_EMITTER_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"

namespace mlir::tile::cpu {

/// The type in which scratch memory keeps tiles of `element`: 16-bit floats
/// are widened (exactly) once, where they are produced, and not at each use.
Type getScratchType(Type element);

/// The type that memory outside of the kernel has for `element`.
Type getMemoryType(Type element);

/// Emits scalar and vector code. `lanes` = 0 means a scalar.
class Emitter {
public:
  Emitter(OpBuilder &builder, Location loc) : b(builder), loc(loc) {}

  Value i64(int64_t value);
  Value add(Value lhs, Value rhs);
  Value sub(Value lhs, Value rhs);
  Value mul(Value lhs, Value rhs);
  /// min(max(value, 0), limit).
  Value clamp(Value value, int64_t limit);
  Value toI64(Value i32);

  Value splat(Value scalar, int64_t lanes);
  Value constantF32(float value, int64_t lanes);

  /// `pointer` plus `index` elements.
  Value address(Value pointer, Value index, Type element);
  Value load(Value pointer, Value index, Type element, int64_t lanes);
  void store(Value value, Value pointer, Value index);

  /// Transposes n vectors of n lanes, n a power of two.
  void transpose(MutableArrayRef<Value> vectors);

  /// Between what computation, scratch and memory hold of tiles of `element`.
  Value computeToScratch(Value value, Type element);
  Value scratchToCompute(Value value, Type element);
  Value memoryToScratch(Value value, Type element);
  Value scratchToMemory(Value value, Type element);

  /// for (i = lb; i < ub; i += step). A single trip is emitted without a loop.
  void loop(Value lb, Value ub, int64_t step, function_ref<void(Value)> body);
  void loop(int64_t ub, function_ref<void(Value)> body);
  /// The same with loop-carried values; `body` returns their next values.
  SmallVector<Value>
  loop(int64_t ub, ValueRange inits,
       function_ref<SmallVector<Value>(Value, ValueRange)> body);

  OpBuilder &b;
  Location loc;
};

} // namespace mlir::tile::cpu

#endif // ATTN_LIB_CONVERSION_TILETOVECTOR_EMITTER_H
