//===- ThreadEmitter.h - Short names for the GPU operations we emit ---*- C++ -*-===//

#ifndef ATTN_LIB_CONVERSION_TILETONVVM_THREADEMITTER_H
#define ATTN_LIB_CONVERSION_TILETONVVM_THREADEMITTER_H

#include "attn/Dialect/Tile/Layout.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/DenseMap.h"

namespace mlir::tile {

/// An operation builder for one thread of a GPU program. Arithmetic on
/// constants folds.
class ThreadEmitter : public ImplicitLocOpBuilder {
public:
  using ImplicitLocOpBuilder::ImplicitLocOpBuilder;

  /// Constants are made once, at the head of `function`: a kernel unrolled to
  /// scalars would otherwise consist mostly of them.
  void setFunction(LLVM::LLVMFuncOp newFunction) { function = newFunction; }
  Value i1(bool value);
  Value i32(int64_t value);
  Value i64(int64_t value);
  Value f32(float value);

  Value add(Value a, Value b);
  Value sub(Value a, Value b);
  Value mul(Value a, Value b);
  Value div(Value a, int64_t b);
  Value rem(Value a, int64_t b);
  Value shl(Value a, int64_t b);
  Value andBits(Value a, Value b);
  Value orBits(Value a, Value b);
  Value xorBits(Value a, Value b);
  Value less(Value a, Value b);
  Value equal(Value a, Value b);
  Value select(Value condition, Value a, Value b);
  Value extend(Value i32Value);
  Value bitcast(Value value, Type type);

  /// Calls an LLVM intrinsic without side effects.
  Value intrinsic(StringRef name, Type result, ValueRange operands);
  /// The value of lane `lane ^ distance`.
  Value shuffleXor(Value value, int64_t distance);

  /// `base + offset * bytes`, in global memory.
  Value globalPointer(Value base, Value offset, int64_t bytes);
  /// `address + offset` in shared memory, as a pointer; `address` is i32.
  Value sharedPointer(Value address, int64_t offset);

  /// Loads (stores) `words` 32-bit words where `predicate` holds; a load
  /// yields zeros elsewhere.
  SmallVector<Value> loadGlobal(Value pointer, int64_t words, Value predicate);
  void storeGlobal(Value pointer, ValueRange words, Value predicate);
  /// The same for one 16-bit value.
  Value loadGlobal16(Value pointer, Value predicate);
  void storeGlobal16(Value pointer, Value value, Value predicate);
  /// The same for one 8-bit value.
  Value loadGlobal8(Value pointer, Value predicate);
  void storeGlobal8(Value pointer, Value value, Value predicate);

  /// Four 8x8 blocks of 16-bit elements; lane 8 * i + r gives the address of
  /// row r of block i, `address + offset`.
  /// The four bytes of a word, and the words of some bytes.
  SmallVector<Value> splitWord(Value word);
  SmallVector<Value> joinBytes(ValueRange bytes);

  SmallVector<Value> ldmatrix(Value address, int64_t offset, bool transpose);
  /// acc += a * b, an m16n8k16 (16-bit) or m16n8k8 (TF32) product.
  void mma(MutableArrayRef<Value> acc, ArrayRef<Value> a, ArrayRef<Value> b,
           NVVM::MMATypes type);

  /// `thread` through the terms of a layout.
  Value evaluate(ArrayRef<ThreadTerm> terms, Value thread);

private:
  Value constant(TypedAttr value);

  LLVM::LLVMFuncOp function;
  DenseMap<Attribute, Value> constants;

};

} // namespace mlir::tile

#endif // ATTN_LIB_CONVERSION_TILETONVVM_THREADEMITTER_H
