//===- ThreadEmitter.cpp - Short names for the GPU operations we emit
//-----------===//

#include "ThreadEmitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace mlir::tile;

static constexpr unsigned kGlobalSpace = 1;
static constexpr unsigned kSharedSpace = 3;

//===----------------------------------------------------------------------===//
// Constants and arithmetic
//===----------------------------------------------------------------------===//

Value ThreadEmitter::constant(TypedAttr value) {
  if (value.getType().isIndex())
    value = getI64IntegerAttr(cast<IntegerAttr>(value).getInt());
  Value &made = constants[value];
  if (!made) {
    InsertionGuard guard(*this);
    setInsertionPointToStart(&function.getBody().front());
    made = create<LLVM::ConstantOp>(value);
  }
  return made;
}

Value ThreadEmitter::integer(Type type, int64_t value) {
  return constant(getIntegerAttr(type, value));
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

Value ThreadEmitter::remember(Pure kind, ValueRange operands, const void *extra,
                              function_ref<Value()> make) {
  const void *b =
      operands.size() > 1 ? operands[1].getAsOpaquePointer() : extra;
  Key key(static_cast<unsigned>(kind), operands[0].getAsOpaquePointer(), b);
  if (Value value = known.lookup(key))
    return value;
  unsigned depth = firstHoistingLoop;
  for (Value operand : operands)
    depth = std::max(depth, loopDepths.lookup(operand.getParentBlock()));
  if (depth >= loops.size()) {
    Value value = make();
    known.insert(key, value);
    return value;
  }
  InsertionGuard guard(*this);
  setInsertionPoint(loops[depth].preheader->getTerminator());
  Value value = make();
  known.insertIntoScope(loops[depth].scope, key, value);
  return value;
}

template <typename OpT>
Value ThreadEmitter::binary(Pure kind, Value a, Value b) {
  return remember(kind, {a, b}, nullptr,
                  [&]() -> Value { return create<OpT>(a, b); });
}

static std::optional<int64_t> getConstant(Value value) {
  APInt constant;
  if (!matchPattern(value, m_ConstantInt(&constant)))
    return std::nullopt;
  return constant.getSExtValue();
}

Value ThreadEmitter::add(Value a, Value b) {
  auto x = getConstant(a), y = getConstant(b);
  if (x && y)
    return integer(a.getType(), *x + *y);
  if (x == 0 || y == 0)
    return x == 0 ? b : a;
  return binary<LLVM::AddOp>(Pure::Add, a, b);
}
Value ThreadEmitter::sub(Value a, Value b) {
  return getConstant(b) == 0 ? a : binary<LLVM::SubOp>(Pure::Sub, a, b);
}
Value ThreadEmitter::mul(Value a, Value b) {
  auto x = getConstant(a), y = getConstant(b);
  if (x && y)
    return integer(a.getType(), *x * *y);
  if (x == 0 || y == 0)
    return integer(a.getType(), 0);
  if (x == 1 || y == 1)
    return x == 1 ? b : a;
  return binary<LLVM::MulOp>(Pure::Mul, a, b);
}

/// Thread numbers are not negative: shifts and masks do.
Value ThreadEmitter::div(Value a, int64_t b) {
  if (auto x = getConstant(a))
    return integer(a.getType(), *x / b);
  return b == 1 ? a : binary<LLVM::UDivOp>(Pure::Div, a, i32(b));
}
Value ThreadEmitter::rem(Value a, int64_t b) {
  auto x = getConstant(a);
  if (x || b == 1)
    return integer(a.getType(), x.value_or(0) % b);
  return binary<LLVM::URemOp>(Pure::Rem, a, i32(b));
}
Value ThreadEmitter::shl(Value a, int64_t b) {
  if (auto x = getConstant(a))
    return integer(a.getType(), *x << b);
  return binary<LLVM::ShlOp>(Pure::Shl, a, i32(b));
}
Value ThreadEmitter::andBits(Value a, Value b) {
  auto x = getConstant(a), y = getConstant(b);
  if (x && y)
    return integer(a.getType(), *x & *y);
  if (x == 0 || y == 0)
    return integer(a.getType(), 0);
  if (x == -1 || y == -1)
    return x == -1 ? b : a;
  return binary<LLVM::AndOp>(Pure::And, a, b);
}
Value ThreadEmitter::orBits(Value a, Value b) {
  auto x = getConstant(a), y = getConstant(b);
  if (x && y)
    return integer(a.getType(), *x | *y);
  if (x == 0 || y == 0)
    return x == 0 ? b : a;
  return binary<LLVM::OrOp>(Pure::Or, a, b);
}
Value ThreadEmitter::xorBits(Value a, Value b) {
  auto x = getConstant(a), y = getConstant(b);
  if (x && y)
    return integer(a.getType(), *x ^ *y);
  if (x == 0 || y == 0)
    return x == 0 ? b : a;
  return binary<LLVM::XOrOp>(Pure::Xor, a, b);
}
Value ThreadEmitter::compare(Pure kind, LLVM::ICmpPredicate predicate, Value a,
                             Value b) {
  return remember(kind, {a, b}, nullptr, [&]() -> Value {
    return create<LLVM::ICmpOp>(predicate, a, b);
  });
}
Value ThreadEmitter::less(Value a, Value b) {
  auto x = getConstant(a), y = getConstant(b);
  if (x && y)
    return i1(*x < *y);
  return compare(Pure::Less, LLVM::ICmpPredicate::slt, a, b);
}
Value ThreadEmitter::equal(Value a, Value b) {
  auto x = getConstant(a), y = getConstant(b);
  if (x && y)
    return i1(*x == *y);
  return compare(Pure::Equal, LLVM::ICmpPredicate::eq, a, b);
}
Value ThreadEmitter::select(Value condition, Value a, Value b) {
  if (auto constant = getConstant(condition))
    return *constant ? a : b;
  return create<LLVM::SelectOp>(condition, a, b);
}
Value ThreadEmitter::resize(Value value, Type type) {
  unsigned from = value.getType().getIntOrFloatBitWidth();
  unsigned to = type.getIntOrFloatBitWidth();
  if (from == to)
    return value;
  if (auto constant = getConstant(value))
    return integer(type, *constant);
  // What was extended before, as sizes are for index arithmetic.
  if (auto extension = value.getDefiningOp<LLVM::SExtOp>();
      extension && extension.getArg().getType() == type)
    return extension.getArg();
  return remember(Pure::Cast, value, type.getAsOpaquePointer(), [&]() -> Value {
    if (from < to)
      return create<LLVM::SExtOp>(type, value);
    return create<LLVM::TruncOp>(type, value);
  });
}
Value ThreadEmitter::bitcast(Value value, Type type) {
  if (value.getType() == type)
    return value;
  return remember(Pure::Cast, value, type.getAsOpaquePointer(), [&]() -> Value {
    return create<LLVM::BitcastOp>(type, value);
  });
}

/// The LLVM operation of an arith operation that has the same operands and
/// result. Flags that allow more are dropped.
static StringRef getLLVMOpName(Operation *op) {
  return llvm::TypeSwitch<Operation *, StringRef>(op)
      .Case([](arith::AddIOp) { return "llvm.add"; })
      .Case([](arith::SubIOp) { return "llvm.sub"; })
      .Case([](arith::MulIOp) { return "llvm.mul"; })
      .Case([](arith::DivSIOp) { return "llvm.sdiv"; })
      .Case([](arith::DivUIOp) { return "llvm.udiv"; })
      .Case([](arith::RemSIOp) { return "llvm.srem"; })
      .Case([](arith::RemUIOp) { return "llvm.urem"; })
      .Case([](arith::AndIOp) { return "llvm.and"; })
      .Case([](arith::OrIOp) { return "llvm.or"; })
      .Case([](arith::XOrIOp) { return "llvm.xor"; })
      .Case([](arith::ShLIOp) { return "llvm.shl"; })
      .Case([](arith::ShRSIOp) { return "llvm.ashr"; })
      .Case([](arith::ShRUIOp) { return "llvm.lshr"; })
      .Case([](arith::MaxSIOp) { return "llvm.intr.smax"; })
      .Case([](arith::MinSIOp) { return "llvm.intr.smin"; })
      .Case([](arith::MaxUIOp) { return "llvm.intr.umax"; })
      .Case([](arith::MinUIOp) { return "llvm.intr.umin"; })
      .Case([](arith::AddFOp) { return "llvm.fadd"; })
      .Case([](arith::SubFOp) { return "llvm.fsub"; })
      .Case([](arith::MulFOp) { return "llvm.fmul"; })
      .Case([](arith::DivFOp) { return "llvm.fdiv"; })
      .Case([](arith::RemFOp) { return "llvm.frem"; })
      .Case([](arith::NegFOp) { return "llvm.fneg"; })
      .Case([](arith::MaximumFOp) { return "llvm.intr.maximum"; })
      .Case([](arith::MinimumFOp) { return "llvm.intr.minimum"; })
      .Case([](arith::MaxNumFOp) { return "llvm.intr.maxnum"; })
      .Case([](arith::MinNumFOp) { return "llvm.intr.minnum"; })
      .Case([](arith::SelectOp) { return "llvm.select"; })
      .Case([](arith::ExtSIOp) { return "llvm.sext"; })
      .Case([](arith::ExtUIOp) { return "llvm.zext"; })
      .Case([](arith::TruncIOp) { return "llvm.trunc"; })
      .Case([](arith::ExtFOp) { return "llvm.fpext"; })
      .Case([](arith::TruncFOp) { return "llvm.fptrunc"; })
      .Case([](arith::SIToFPOp) { return "llvm.sitofp"; })
      .Case([](arith::UIToFPOp) { return "llvm.uitofp"; })
      .Case([](arith::FPToSIOp) { return "llvm.fptosi"; })
      .Case([](arith::FPToUIOp) { return "llvm.fptoui"; })
      .Case([](arith::BitcastOp) { return "llvm.bitcast"; })
      .Default(StringRef());
}

Value ThreadEmitter::createArith(Operation *op, ValueRange operands) {
  Type type = getElementTypeOrSelf(op->getResult(0));
  if (type.isIndex())
    type = getI64Type();
  if (isa<arith::IndexCastOp>(op))
    return resize(operands[0], type);
  // The enumerations' cases have the same numbers.
  if (auto cmp = dyn_cast<arith::CmpIOp>(op))
    return create<LLVM::ICmpOp>(
        static_cast<LLVM::ICmpPredicate>(cmp.getPredicate()), operands[0],
        operands[1]);
  if (auto cmp = dyn_cast<arith::CmpFOp>(op))
    return create<LLVM::FCmpOp>(
        static_cast<LLVM::FCmpPredicate>(cmp.getPredicate()), operands[0],
        operands[1]);
  if (isa<arith::AddIOp>(op))
    return add(operands[0], operands[1]);
  if (isa<arith::MulIOp>(op))
    return mul(operands[0], operands[1]);
  if (isa<arith::SubIOp>(op))
    return sub(operands[0], operands[1]);
  if (isa<math::CountLeadingZerosOp>(op))
    return create<LLVM::CountLeadingZerosOp>(type, operands[0],
                                             /*is_zero_poison=*/false);
  StringRef name = getLLVMOpName(op);
  if (name.empty())
    return Value();
  Operation *made =
      OpBuilder::create(getLoc(), getStringAttr(name), operands, type);
  return made->getResult(0);
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

ThreadEmitter::Values
ThreadEmitter::createFor(Value lower, Value upper, Value step, ValueRange inits,
                         function_ref<Values(Value, ValueRange)> body) {
  Values entry = {lower};
  llvm::append_range(entry, inits);
  Block *header = enterLoop(entry);
  Block *bodyBlock = appendBlock();
  ValueRange arguments = header->getArguments();
  Value iv = arguments.front();
  setInsertionPointToEnd(bodyBlock);
  {
    Known::ScopeTy scope(known);
    Values next = {Value()};
    llvm::append_range(next, body(iv, arguments.drop_front()));
    next.front() = add(iv, step);
    create<LLVM::BrOp>(next, header);
  }
  loops.pop_back();
  Block *exit = appendBlock();
  setInsertionPointToEnd(header);
  Value goesOn = create<LLVM::ICmpOp>(LLVM::ICmpPredicate::slt, iv, upper);
  create<LLVM::CondBrOp>(goesOn, bodyBlock, ValueRange(), exit, ValueRange());
  setInsertionPointToEnd(exit);
  return Values(arguments.drop_front());
}

ThreadEmitter::Values
ThreadEmitter::createWhile(ValueRange inits,
                           function_ref<Values(ValueRange)> before,
                           function_ref<Values(ValueRange)> after) {
  Block *header = enterLoop(inits);
  Block *bodyBlock = appendBlock();
  // Such a loop is around all that a kernel does: what is hoisted out of it
  // holds a register all along.
  llvm::SaveAndRestore<unsigned> keepInside(firstHoistingLoop, loops.size());
  Block *conditionBlock;
  Values handed;
  {
    // What the condition's code makes is known in the body too.
    Known::ScopeTy scope(known);
    setInsertionPointToEnd(header);
    handed = before(header->getArguments());
    conditionBlock = getInsertionBlock();
    bodyBlock->moveBefore(&function.getBody(), function.getBody().end());
    setInsertionPointToEnd(bodyBlock);
    auto branch =
        create<LLVM::BrOp>(after(ArrayRef(handed).drop_front()), header);
    auto noHoisting = LLVM::LoopLICMAttr::get(getContext(), getBoolAttr(true),
                                              /*versioningDisable=*/{});
    branch.setLoopAnnotationAttr(LLVM::LoopAnnotationAttr::get(
        getContext(), {}, {}, {}, {}, {}, noHoisting, {}, {}, {}, {}, {}, {},
        {}, {}, {}));
  }
  loops.pop_back();
  Block *exit = appendBlock();
  setInsertionPointToEnd(conditionBlock);
  create<LLVM::CondBrOp>(handed.front(), bodyBlock, ValueRange(), exit,
                         ValueRange());
  setInsertionPointToEnd(exit);
  return Values(ArrayRef(handed).drop_front());
}

Block *ThreadEmitter::enterLoop(ValueRange inits) {
  Block *from = getInsertionBlock();
  loops.push_back({from, known.getCurScope()});
  Block *header = appendBlock(inits.getTypes());
  setInsertionPointToEnd(from);
  create<LLVM::BrOp>(inits, header);
  return header;
}

Block *ThreadEmitter::appendBlock(TypeRange types) {
  Region &region = function.getBody();
  SmallVector<Location> locations(types.size(), getLoc());
  Block *block = createBlock(&region, region.end(), types, locations);
  loopDepths[block] = loops.size();
  return block;
}

void ThreadEmitter::emitBranchBody(Block *block, Block *next,
                                   function_ref<Values()> body) {
  Region &region = function.getBody();
  block->moveBefore(&region, region.end());
  setInsertionPointToEnd(block);
  Known::ScopeTy scope(known);
  Values values = body();
  if (next->getNumArguments() == 0)
    for (Value value : values)
      next->addArgument(value.getType(), getLoc());
  create<LLVM::BrOp>(values, next);
  // Blocks stay in the order of the source.
  next->moveBefore(&region, region.end());
}

ThreadEmitter::Values
ThreadEmitter::createIfElse(Value condition, function_ref<Values()> thenBody,
                            function_ref<Values()> elseBody) {
  Block *from = getInsertionBlock();
  Block *thenBlock = appendBlock();
  Block *elseBlock = appendBlock();
  Block *next = appendBlock();
  setInsertionPointToEnd(from);
  create<LLVM::CondBrOp>(condition, thenBlock, ValueRange(), elseBlock,
                         ValueRange());
  emitBranchBody(thenBlock, next, thenBody);
  emitBranchBody(elseBlock, next, elseBody);
  setInsertionPointToEnd(next);
  return Values(ValueRange(next->getArguments()));
}

void ThreadEmitter::createIf(Value condition, function_ref<void()> thenBody,
                             function_ref<void()> elseBody) {
  auto withoutValues = [](function_ref<void()> body) {
    body();
    return Values();
  };
  createIfElse(
      condition, [&] { return withoutValues(thenBody); },
      [&] { return withoutValues(elseBody); });
}

//===----------------------------------------------------------------------===//
// Instructions
//===----------------------------------------------------------------------===//

Value ThreadEmitter::intrinsic(StringRef name, Type result,
                               ValueRange operands) {
  return create<LLVM::CallIntrinsicOp>(result, getStringAttr(name), operands)
      .getResult(0);
}

/// An assembly statement without side effects.
static Value pureAsm(ThreadEmitter &emit, Type type, ValueRange operands,
                     const Twine &text, StringRef constraints) {
  return emit
      .create<LLVM::InlineAsmOp>(
          TypeRange(type), operands, text.str(), constraints,
          /*has_side_effects=*/false, /*is_align_stack=*/false,
          LLVM::TailCallKind::None, LLVM::AsmDialectAttr(), ArrayAttr())
      .getResult(0);
}

Value ThreadEmitter::testBit(Value word, int64_t index) {
  return pureAsm(*this, getI1Type(), word,
                 "{\n\t.reg .b32 bit;\n\tand.b32 bit, $1, " +
                     Twine(1u << index) + ";\n\tsetp.ne.b32 $0, bit, 0;\n\t}",
                 "=b,r");
}

Value ThreadEmitter::selectByBit(Value word, int64_t index, Value a, Value b) {
  return pureAsm(*this, getF32Type(), {a, b, word},
                 "{\n\t.reg .b32 bit;\n\t.reg .pred set;\n\t"
                 "and.b32 bit, $3, " +
                     Twine(1u << index) +
                     ";\n\tsetp.ne.b32 set, bit, 0;\n\t"
                     "selp.f32 $0, $1, $2, set;\n\t}",
                 "=f,f,f,r");
}

Value ThreadEmitter::combinePredicates(StringRef name, Value a, Value b) {
  return pureAsm(*this, getI1Type(), {a, b}, name + ".pred $0, $1, $2;",
                 "=b,b,b");
}

Value ThreadEmitter::shuffleXor(Value value, int64_t distance) {
  return create<NVVM::ShflOp>(value.getType(), i32(-1), value, i32(distance),
                              i32(31), NVVM::ShflKind::bfly, UnitAttr());
}

Value ThreadEmitter::globalPointer(Value base, Value offset, int64_t bytes) {
  auto type = LLVM::LLVMPointerType::get(getContext(), kGlobalSpace);
  offset = mul(offset, integer(offset.getType(), bytes));
  return remember(Pure::Pointer, {base, offset}, nullptr, [&]() -> Value {
    return create<LLVM::GEPOp>(type, getI8Type(), base,
                               ArrayRef<LLVM::GEPArg>{offset});
  });
}

Value ThreadEmitter::sharedPointer(Value address, int64_t offset) {
  // The constant stays outside of the conversion so that it becomes the
  // immediate of the access. Shared addresses are computed in 32 bits although
  // LLVM's pointers have 64.
  auto type = LLVM::LLVMPointerType::get(getContext(), kSharedSpace);
  Value pointer = create<LLVM::IntToPtrOp>(type, address);
  if (offset == 0)
    return pointer;
  return create<LLVM::GEPOp>(
      type, getI8Type(), pointer,
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
                       const std::string &text,
                       const std::string &constraints) {
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
  return count == 1
             ? types[0]
             : Type(LLVM::LLVMStructType::getLiteral(emit.getContext(), types));
}

/// The operand `index` of an assembly statement as an address. As text, the
/// offset becomes an immediate of the instruction instead of an addition.
static std::string getAddress(int64_t index, int64_t offset) {
  std::string address = "[$" + std::to_string(index);
  if (offset != 0)
    address += "+" + std::to_string(offset);
  return address + "]";
}

// PTX has no 8-bit registers: a byte travels in a 16-bit one.
Value ThreadEmitter::loadGlobal8(GlobalAddress address, Value predicate) {
  std::string load = "ld.global.u8 $0, " + getAddress(1, address.offset) + ";";
  Value wide =
      predicate ? inlineAsm(*this, getI16Type(), {address.pointer, predicate},
                            "mov.b16 $0, 0;\n\t@$2 " + load, "=h,l,b")
                : inlineAsm(*this, getI16Type(), address.pointer, load, "=h,l");
  return create<LLVM::TruncOp>(getI8Type(), wide);
}

void ThreadEmitter::storeGlobal8(GlobalAddress address, Value value,
                                 Value predicate) {
  Value wide = create<LLVM::ZExtOp>(getI16Type(), value);
  inlineAsm(*this, Type(), {predicate, address.pointer, wide},
            "@$0 st.global.u8 " + getAddress(1, address.offset) + ", $2;",
            "b,l,h");
}

Value ThreadEmitter::joinWords(ArrayRef<Value> words, Type type) {
  if (words.size() == 1)
    return bitcast(words[0], type);
  Value pair = create<LLVM::PoisonOp>(VectorType::get(2, getI32Type()));
  for (auto [i, word] : llvm::enumerate(words))
    pair = create<LLVM::InsertElementOp>(pair, word, i32(i));
  return bitcast(pair, type);
}

SmallVector<Value> ThreadEmitter::splitBytes(Value word) {
  int64_t count = word.getType().getIntOrFloatBitWidth() / 8;
  Value bytes = bitcast(word, VectorType::get(count, getI8Type()));
  SmallVector<Value> result;
  for (int64_t i = 0; i < count; ++i)
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
  Value loaded =
      inlineAsm(*this, getWordsType(*this, 4), address, text, "=r,=r,=r,=r,r");
  return unpackWords(*this, loaded, 4);
}

SmallVector<Value> ThreadEmitter::loadGlobal(GlobalAddress address,
                                             int64_t words, Value predicate) {
  std::string text, constraints;
  if (!predicate) {
    for (int64_t i = 0; i < words; ++i)
      constraints += "=r,";
    text = "ld.global" + getVectorSuffix(words).str() + ".b32 " +
           getWordList(0, words) + ", " + getAddress(words, address.offset) +
           ";";
    Value loaded = inlineAsm(*this, getWordsType(*this, words), address.pointer,
                             text, constraints + "l");
    return unpackWords(*this, loaded, words);
  }
  // Predicated, not branched around, so that many loads are under way at once.
  for (int64_t i = 0; i < words; ++i) {
    text += "mov.b32 $" + std::to_string(i) + ", 0;\n\t";
    constraints += "=r,";
  }
  text += "@$" + std::to_string(words + 1) + " ld.global" +
          getVectorSuffix(words).str() + ".b32 " + getWordList(0, words) +
          ", " + getAddress(words, address.offset) + ";";
  constraints += "l,b";
  Value loaded = inlineAsm(*this, getWordsType(*this, words),
                           {address.pointer, predicate}, text, constraints);
  return unpackWords(*this, loaded, words);
}

void ThreadEmitter::storeGlobal(GlobalAddress address, ValueRange words,
                                Value predicate) {
  std::string constraints = "b,l";
  SmallVector<Value> operands = {predicate, address.pointer};
  for (Value word : words) {
    operands.push_back(bitcast(word, getI32Type()));
    constraints += ",r";
  }
  inlineAsm(*this, Type(), operands,
            "@$0 st.global" + getVectorSuffix(words.size()).str() + ".b32 " +
                getAddress(1, address.offset) + ", " +
                getWordList(2, words.size()) + ";",
            constraints);
}

Value ThreadEmitter::loadGlobal16(GlobalAddress address, Value predicate) {
  if (!predicate)
    return inlineAsm(*this, getI16Type(), address.pointer,
                     "ld.global.b16 $0, " + getAddress(1, address.offset) + ";",
                     "=h,l");
  return inlineAsm(*this, getI16Type(), {address.pointer, predicate},
                   "mov.b16 $0, 0;\n\t@$2 ld.global.b16 $0, " +
                       getAddress(1, address.offset) + ";",
                   "=h,l,b");
}

void ThreadEmitter::storeGlobal16(GlobalAddress address, Value value,
                                  Value predicate) {
  inlineAsm(
      *this, Type(), {predicate, address.pointer, bitcast(value, getI16Type())},
      "@$0 st.global.b16 " + getAddress(1, address.offset) + ", $2;", "b,l,h");
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
