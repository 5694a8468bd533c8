//===- ThreadEmitter.cpp - Short names for the GPU operations we emit -----------===//

#include "ThreadEmitter.h"

using namespace mlir;
using namespace mlir::tile;

static constexpr unsigned kGlobalSpace = 1;
static constexpr unsigned kSharedSpace = 3;

Value ThreadEmitter::constant(TypedAttr value) {
  Value &known = constants[value];
  if (!known) {
    InsertionGuard guard(*this);
    setInsertionPointToStart(&function.getBody().front());
    known = create<arith::ConstantOp>(value);
  }
  return known;
}

Value ThreadEmitter::i1(bool value) { return constant(getBoolAttr(value)); }
Value ThreadEmitter::i32(int64_t value) {
  return constant(getI32IntegerAttr(value));
}
Value ThreadEmitter::i64(int64_t value) {
  return constant(getI64IntegerAttr(value));
}
Value ThreadEmitter::f32(float value) {
  return constant(getF32FloatAttr(value));
}

Value ThreadEmitter::add(Value a, Value b) { return createOrFold<arith::AddIOp>(a, b); }
Value ThreadEmitter::sub(Value a, Value b) { return createOrFold<arith::SubIOp>(a, b); }
Value ThreadEmitter::mul(Value a, Value b) { return createOrFold<arith::MulIOp>(a, b); }

/// Thread numbers are not negative: shifts and masks do.
Value ThreadEmitter::div(Value a, int64_t b) {
  return createOrFold<arith::DivUIOp>(a, i32(b));
}
Value ThreadEmitter::rem(Value a, int64_t b) {
  return createOrFold<arith::RemUIOp>(a, i32(b));
}
Value ThreadEmitter::shl(Value a, int64_t b) {
  return createOrFold<arith::ShLIOp>(a, i32(b));
}
Value ThreadEmitter::andBits(Value a, Value b) {
  return createOrFold<arith::AndIOp>(a, b);
}
Value ThreadEmitter::orBits(Value a, Value b) {
  return createOrFold<arith::OrIOp>(a, b);
}
Value ThreadEmitter::xorBits(Value a, Value b) {
  return createOrFold<arith::XOrIOp>(a, b);
}
Value ThreadEmitter::less(Value a, Value b) {
  return createOrFold<arith::CmpIOp>(arith::CmpIPredicate::slt, a, b);
}
Value ThreadEmitter::equal(Value a, Value b) {
  return createOrFold<arith::CmpIOp>(arith::CmpIPredicate::eq, a, b);
}
Value ThreadEmitter::select(Value condition, Value a, Value b) {
  return createOrFold<arith::SelectOp>(condition, a, b);
}
Value ThreadEmitter::extend(Value value) {
  return createOrFold<arith::ExtSIOp>(getI64Type(), value);
}
Value ThreadEmitter::bitcast(Value value, Type type) {
  if (value.getType() == type)
    return value;
  return create<LLVM::BitcastOp>(type, value);
}

Value ThreadEmitter::intrinsic(StringRef name, Type result, ValueRange operands) {
  return create<LLVM::CallIntrinsicOp>(result, getStringAttr(name), operands)
      .getResult(0);
}

Value ThreadEmitter::shuffleXor(Value value, int64_t distance) {
  return create<NVVM::ShflOp>(value.getType(), i32(-1), value, i32(distance),
                              i32(31), NVVM::ShflKind::bfly, UnitAttr());
}

Value ThreadEmitter::globalPointer(Value base, Value offset, int64_t bytes) {
  auto type = LLVM::LLVMPointerType::get(getContext(), kGlobalSpace);
  Type element = getIntegerType(8 * bytes);
  return create<LLVM::GEPOp>(type, element, base, ArrayRef<LLVM::GEPArg>{offset});
}

Value ThreadEmitter::sharedPointer(Value address, int64_t offset) {
  // The constant stays outside of the conversion so that it becomes the
  // immediate of the access. Shared addresses are computed in 32 bits although
  // LLVM's pointers have 64.
  auto type = LLVM::LLVMPointerType::get(getContext(), kSharedSpace);
  Value pointer = create<LLVM::IntToPtrOp>(type, address);
  if (offset == 0)
    return pointer;
  return create<LLVM::GEPOp>(type, getI8Type(), pointer,
                             ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(offset)});
}

/// `{$first, $first + 1, ...}`, or `$first` alone.
static std::string getWordList(int64_t first, int64_t words) {
  std::string list = "$" + std::to_string(first);
  if (words == 1)
    return list;
  for (int64_t i = 1; i < words; ++i)
    list += ", $" + std::to_string(first + i);
  return "{" + list + "}";
}

static StringRef getVectorSuffix(int64_t words) {
  return words == 1 ? "" : words == 2 ? ".v2" : ".v4";
}

static Value inlineAsm(ThreadEmitter &emit, Type result, ValueRange operands,
                       const std::string &text, const std::string &constraints) {
  SmallVector<Type> results;
  if (result)
    results.push_back(result);
  auto op = emit.create<LLVM::InlineAsmOp>(
      TypeRange(results), operands, text, constraints,
      /*has_side_effects=*/true, /*is_align_stack=*/false,
      LLVM::TailCallKind::None, LLVM::AsmDialectAttr(), ArrayAttr());
  return result ? op.getResult(0) : Value();
}

/// The `count` 32-bit results of an assembly statement.
static SmallVector<Value> unpackWords(ThreadEmitter &emit, Value result,
                                      int64_t count) {
  if (count == 1)
    return {result};
  SmallVector<Value> words;
  for (int64_t i = 0; i < count; ++i)
    words.push_back(emit.create<LLVM::ExtractValueOp>(result, i));
  return words;
}

static Type getWordsType(ThreadEmitter &emit, int64_t count) {
  SmallVector<Type> types(count, emit.getI32Type());
  return count == 1 ? types[0]
                    : Type(LLVM::LLVMStructType::getLiteral(emit.getContext(),
                                                            types));
}

// PTX has no 8-bit registers: a byte travels in a 16-bit one.
Value ThreadEmitter::loadGlobal8(Value pointer, Value predicate) {
  Value wide =
      inlineAsm(*this, getI16Type(), {pointer, predicate},
                "mov.b16 $0, 0;\n\t@$2 ld.global.u8 $0, [$1];", "=h,l,b");
  return create<arith::TruncIOp>(getI8Type(), wide);
}

void ThreadEmitter::storeGlobal8(Value pointer, Value value, Value predicate) {
  Value wide = create<arith::ExtUIOp>(getI16Type(), value);
  inlineAsm(*this, Type(), {predicate, pointer, wide},
            "@$0 st.global.u8 [$1], $2;", "b,l,h");
}

SmallVector<Value> ThreadEmitter::splitWord(Value word) {
  Value bytes = bitcast(word, VectorType::get(4, getI8Type()));
  SmallVector<Value> result;
  for (int64_t i = 0; i < 4; ++i)
    result.push_back(create<LLVM::ExtractElementOp>(bytes, i32(i)));
  return result;
}

SmallVector<Value> ThreadEmitter::joinBytes(ValueRange bytes) {
  SmallVector<Value> words;
  for (size_t first = 0; first < bytes.size(); first += 4) {
    Value word = create<LLVM::PoisonOp>(VectorType::get(4, getI8Type()));
    for (int64_t i = 0; i < 4; ++i)
      word = create<LLVM::InsertElementOp>(word, bytes[first + i], i32(i));
    words.push_back(bitcast(word, getI32Type()));
  }
  return words;
}

SmallVector<Value> ThreadEmitter::ldmatrix(Value address, int64_t offset,
                                           bool transpose) {
  // As text, not as nvvm.ldmatrix: LLVM hoists every pointer `address +
  // constant` out of the loop into a register of its own, where the
  // instruction has an immediate for it.
  std::string text = "ldmatrix.sync.aligned.m8n8.x4";
  text += transpose ? ".trans" : "";
  text += ".shared.b16 {$0, $1, $2, $3}, [$4+" + std::to_string(offset) + "];";
  Value loaded = inlineAsm(*this, getWordsType(*this, 4), address, text,
                           "=r,=r,=r,=r,r");
  return unpackWords(*this, loaded, 4);
}

SmallVector<Value> ThreadEmitter::loadGlobal(Value pointer, int64_t words,
                                       Value predicate) {
  // Predicated, not branched around, so that many loads are under way at once.
  std::string text, constraints;
  for (int64_t i = 0; i < words; ++i) {
    text += "mov.b32 $" + std::to_string(i) + ", 0;\n\t";
    constraints += "=r,";
  }
  text += "@$" + std::to_string(words + 1) + " ld.global" +
          getVectorSuffix(words).str() + ".b32 " + getWordList(0, words) +
          ", [$" + std::to_string(words) + "];";
  constraints += "l,b";
  Value loaded = inlineAsm(*this, getWordsType(*this, words),
                           {pointer, predicate}, text, constraints);
  return unpackWords(*this, loaded, words);
}

void ThreadEmitter::storeGlobal(Value pointer, ValueRange words, Value predicate) {
  std::string constraints = "b,l";
  SmallVector<Value> operands = {predicate, pointer};
  for (Value word : words) {
    operands.push_back(bitcast(word, getI32Type()));
    constraints += ",r";
  }
  inlineAsm(*this, Type(), operands,
            "@$0 st.global" + getVectorSuffix(words.size()).str() +
                ".b32 [$1], " + getWordList(2, words.size()) + ";",
            constraints);
}

Value ThreadEmitter::loadGlobal16(Value pointer, Value predicate) {
  return inlineAsm(*this, getI16Type(), {pointer, predicate},
                   "mov.b16 $0, 0;\n\t@$2 ld.global.b16 $0, [$1];", "=h,l,b");
}

void ThreadEmitter::storeGlobal16(Value pointer, Value value, Value predicate) {
  inlineAsm(*this, Type(), {predicate, pointer, bitcast(value, getI16Type())},
            "@$0 st.global.b16 [$1], $2;", "b,l,h");
}

void ThreadEmitter::mma(MutableArrayRef<Value> acc, ArrayRef<Value> a,
                  ArrayRef<Value> b, NVVM::MMATypes type) {
  // f16 operands are vector<2xf16>, the others 32-bit integers.
  Type operandType = type == NVVM::MMATypes::f16
                         ? Type(VectorType::get(2, getF16Type()))
                         : Type(getI32Type());
  auto cast = [&](ArrayRef<Value> values) {
    return llvm::map_to_vector(
        values, [&](Value value) { return bitcast(value, operandType); });
  };
  SmallVector<Type> types(4, getF32Type());
  auto result = LLVM::LLVMStructType::getLiteral(getContext(), types);
  int64_t k = type == NVVM::MMATypes::tf32 ? 8 : 16;
  Value product = create<NVVM::MmaOp>(
      result, cast(a), cast(b), ValueRange(acc), ArrayRef<int64_t>{16, 8, k},
      std::nullopt, std::nullopt, std::array{type, type},
      std::array{NVVM::MMALayout::row, NVVM::MMALayout::col});
  for (auto [i, value] : llvm::enumerate(acc))
    value = create<LLVM::ExtractValueOp>(product, i);
}

Value ThreadEmitter::evaluate(ArrayRef<ThreadTerm> terms, Value thread) {
  Value sum = i32(0);
  for (const ThreadTerm &term : terms) {
    Value value = div(thread, term.div);
    if (term.mod)
      value = rem(value, term.mod);
    sum = add(sum, mul(value, i32(term.mul)));
  }
  return sum;
}
