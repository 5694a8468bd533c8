//===- ThreadEmitter.h - Short names for the GPU operations we emit ---*- C++
//-*-===//

#ifndef ATTN_LIB_CONVERSION_TILETONVVM_THREADEMITTER_H
#define ATTN_LIB_CONVERSION_TILETONVVM_THREADEMITTER_H

#include "attn/Dialect/Tile/Layout.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/ScopedHashTable.h"

namespace mlir::tile {

/// An operation builder for one thread of a GPU program, in LLVM dialect:
/// nothing is left to convert. An unrolled kernel is thousands of operations,
/// so arithmetic on constants folds and what is known already isn't made again.
class ThreadEmitter : public ImplicitLocOpBuilder {
public:
  using ImplicitLocOpBuilder::ImplicitLocOpBuilder;

  using Values = SmallVector<Value>;

  /// Constants are made once, at the head of `function`.
  void setFunction(LLVM::LLVMFuncOp newFunction) { function = newFunction; }
  /// A constant of an integer, float or index type.
  Value constant(TypedAttr value);
  Value i1(bool value);
  Value i32(int64_t value);
  Value i64(int64_t value);
  Value f32(float value);

  /// `for (iv = lower; iv < upper; iv += step)`; `body` takes the carried
  /// values and returns the next ones. Returns the last ones.
  Values createFor(Value lower, Value upper, Value step, ValueRange inits,
                   function_ref<Values(Value, ValueRange)> body);
  /// `while (condition) ...`: `before` takes the carried values and returns the
  /// condition, followed by what `after` takes; `after` returns the next
  /// carried values. Returns what `after` would have taken when the condition
  /// is false.
  Values createWhile(ValueRange inits, function_ref<Values(ValueRange)> before,
                     function_ref<Values(ValueRange)> after);
  /// Returns what the branch taken returns.
  Values createIfElse(Value condition, function_ref<Values()> thenBody,
                      function_ref<Values()> elseBody);
  void createIf(Value condition, function_ref<void()> thenBody,
                function_ref<void()> elseBody);
  /// One element of an arith operation; null if LLVM has no operation for it.
  Value createArith(Operation *op, ValueRange operands);

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
  /// Between integers of any widths, by sign.
  Value extend(Value value) { return resize(value, getI64Type()); }
  Value resize(Value value, Type type);
  Value bitcast(Value value, Type type);

  /// Calls an LLVM intrinsic without side effects.
  Value intrinsic(StringRef name, Type result, ValueRange operands);
  /// Bit `index` of `word`, i1. LLVM would shift it to the bottom first.
  Value testBit(Value word, int64_t index);
  /// The f32 `a` where that bit is set, else `b`. In one piece, as the
  /// assembler must see it to move several bits to predicates at a time.
  Value selectByBit(Value word, int64_t index, Value a, Value b);
  /// `a` and (or) `b`, i1. LLVM would select twice by such a condition, which
  /// the assembler doesn't undo, where a comparison takes it for nothing.
  Value combinePredicates(StringRef name, Value a, Value b);
  /// The value of lane `lane ^ distance`.
  Value shuffleXor(Value value, int64_t distance);

  /// `base + offset * bytes`, in global memory.
  Value globalPointer(Value base, Value offset, int64_t bytes);
  /// `address + offset` in shared memory, as a pointer; `address` is i32.
  Value sharedPointer(Value address, int64_t offset);

  /// A pointer plus a constant of bytes.
  struct GlobalAddress {
    Value pointer;
    int64_t offset = 0;
  };
  /// Loads (stores) `words` 32-bit words where `predicate` holds; a load
  /// yields zeros elsewhere. A load without one is always made.
  SmallVector<Value> loadGlobal(GlobalAddress address, int64_t words,
                                Value predicate);
  void storeGlobal(GlobalAddress address, ValueRange words, Value predicate);
  /// The same for one 16-bit value.
  Value loadGlobal16(GlobalAddress address, Value predicate);
  void storeGlobal16(GlobalAddress address, Value value, Value predicate);
  /// The same for one 8-bit value.
  Value loadGlobal8(GlobalAddress address, Value predicate);
  void storeGlobal8(GlobalAddress address, Value value, Value predicate);

  /// The 32- or 64-bit value of `type` whose words, lowest first, these are.
  Value joinWords(ArrayRef<Value> words, Type type);
  /// The bytes of a (half) word, and the words of some bytes.
  SmallVector<Value> splitBytes(Value word);
  SmallVector<Value> joinBytes(ValueRange bytes);

  /// Four 8x8 blocks of 16-bit elements; lane 8 * i + r gives the address of
  /// row r of block i, `address + offset`.
  SmallVector<Value> ldmatrix(Value address, int64_t offset, bool transpose);
  /// acc += a * b, an m16n8k16 (16-bit) or m16n8k8 (TF32) product.
  void mma(MutableArrayRef<Value> acc, ArrayRef<Value> a, ArrayRef<Value> b,
           NVVM::MMATypes type);

  /// `thread` through the terms of a layout.
  Value evaluate(ArrayRef<ThreadTerm> terms, Value thread);

private:
  enum class Pure {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    Shl,
    And,
    Or,
    Xor,
    Less,
    Equal,
    Cast,
    Pointer
  };
  /// What a pure operation computes; of casts, the second is the type.
  using Key = std::tuple<unsigned, const void *, const void *>;
  using Known = llvm::ScopedHashTable<Key, Value>;

  Value integer(Type type, int64_t value);
  /// The known value of the operation, or what `make` makes: ahead of the
  /// loops that nothing of goes into it.
  Value remember(Pure kind, ValueRange operands, const void *type,
                 function_ref<Value()> make);
  template <typename OpT>
  Value binary(Pure kind, Value a, Value b);
  Value compare(Pure kind, LLVM::ICmpPredicate predicate, Value a, Value b);
  /// Ends the current block with a jump into a new loop, whose first block this
  /// returns.
  Block *enterLoop(ValueRange inits);
  void emitBranchBody(Block *block, Block *next, function_ref<Values()> body);

  LLVM::LLVMFuncOp function;
  DenseMap<Attribute, Value> constants;
  Known known;
  /// What is computed in a loop or branch is known only there.
  Known::ScopeTy functionScope{known};

  Block *appendBlock(TypeRange types = {});
  /// A loop that is being emitted: the block ahead of it and what is known
  /// there.
  struct Loop {
    Block *preheader;
    Known::ScopeTy *scope;
  };
  SmallVector<Loop> loops;
  /// Out of the loops from this one on, the outermost being 0, is hoisted.
  unsigned firstHoistingLoop = 0;
  /// The number of loops around each block.
  DenseMap<Block *, unsigned> loopDepths;
};

} // namespace mlir::tile

#endif // ATTN_LIB_CONVERSION_TILETONVVM_THREADEMITTER_H
