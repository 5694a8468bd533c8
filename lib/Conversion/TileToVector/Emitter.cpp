//===- Emitter.cpp - Short forms for the code that is emitted -------------===//

#include "Emitter.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::tile;
using namespace mlir::tile::cpu;

static bool isHalf(Type element) { return element.isF16() || element.isBF16(); }

Type cpu::getScratchType(Type element) {
  if (isHalf(element))
    return Float32Type::get(element.getContext());
  return getMemoryType(element);
}

Type cpu::getMemoryType(Type element) {
  return element.isInteger(1) ? IntegerType::get(element.getContext(), 8)
                              : element;
}

static int64_t getNumLanes(Value value) {
  auto vector = dyn_cast<VectorType>(value.getType());
  return vector ? vector.getNumElements() : 0;
}

static Type withLanes(Type element, int64_t lanes) {
  return lanes ? Type(VectorType::get({lanes}, element)) : element;
}

static Type withLanesOf(Type element, Value value) {
  return withLanes(element, getNumLanes(value));
}

Value Emitter::i64(int64_t value) {
  return arith::ConstantIntOp::create(b, loc, value, 64);
}

Value Emitter::add(Value lhs, Value rhs) {
  return b.createOrFold<arith::AddIOp>(loc, lhs, rhs);
}

Value Emitter::sub(Value lhs, Value rhs) {
  return b.createOrFold<arith::SubIOp>(loc, lhs, rhs);
}

Value Emitter::mul(Value lhs, Value rhs) {
  return b.createOrFold<arith::MulIOp>(loc, lhs, rhs);
}

Value Emitter::clamp(Value value, int64_t limit) {
  Value low = b.createOrFold<arith::MaxSIOp>(loc, value, i64(0));
  return b.createOrFold<arith::MinSIOp>(loc, low, i64(limit));
}

Value Emitter::toI64(Value i32) {
  return b.createOrFold<arith::ExtSIOp>(loc, b.getI64Type(), i32);
}

Value Emitter::splat(Value scalar, int64_t lanes) {
  if (!lanes)
    return scalar;
  return vector::BroadcastOp::create(b, loc, withLanes(scalar.getType(), lanes),
                                     scalar);
}

Value Emitter::constantF32(float value, int64_t lanes) {
  TypedAttr attr = b.getF32FloatAttr(value);
  if (lanes)
    attr =
        DenseElementsAttr::get(VectorType::get({lanes}, b.getF32Type()), value);
  return arith::ConstantOp::create(b, loc, attr);
}

Value Emitter::address(Value pointer, Value index, Type element) {
  return LLVM::GEPOp::create(b, loc, pointer.getType(), element, pointer,
                             ArrayRef<LLVM::GEPArg>{index});
}

Value Emitter::load(Value pointer, Value index, Type element, int64_t lanes) {
  unsigned alignment = llvm::divideCeil(element.getIntOrFloatBitWidth(), 8);
  return LLVM::LoadOp::create(b, loc, withLanes(element, lanes),
                              address(pointer, index, element), alignment);
}

void Emitter::store(Value value, Value pointer, Value index) {
  Type element = getElementTypeOrSelf(value.getType());
  unsigned alignment = llvm::divideCeil(element.getIntOrFloatBitWidth(), 8);
  LLVM::StoreOp::create(b, loc, value, address(pointer, index, element),
                        alignment);
}

Value Emitter::computeToScratch(Value value, Type element) {
  Type type = withLanesOf(getScratchType(element), value);
  if (isHalf(element))
    return arith::ExtFOp::create(b, loc, type, value);
  if (element.isInteger(1))
    return arith::ExtUIOp::create(b, loc, type, value);
  return value;
}

Value Emitter::scratchToCompute(Value value, Type element) {
  Type type = withLanesOf(element, value);
  if (isHalf(element))
    return arith::TruncFOp::create(b, loc, type, value);
  if (element.isInteger(1))
    return arith::TruncIOp::create(b, loc, type, value);
  return value;
}

Value Emitter::memoryToScratch(Value value, Type element) {
  if (!isHalf(element))
    return value;
  return arith::ExtFOp::create(b, loc, withLanesOf(b.getF32Type(), value),
                               value);
}

Value Emitter::scratchToMemory(Value value, Type element) {
  if (element.isF16())
    return arith::TruncFOp::create(b, loc, withLanesOf(element, value), value);
  if (!element.isBF16())
    return value;
  // Scratch holds a bf16 exactly: its bits are the upper half.
  Type i32 = withLanesOf(b.getI32Type(), value);
  Value bits = arith::BitcastOp::create(b, loc, i32, value);
  Value sixteen =
      splat(arith::ConstantIntOp::create(b, loc, 16, 32), getNumLanes(value));
  Value upper = arith::ShRUIOp::create(b, loc, bits, sixteen);
  Value half = arith::TruncIOp::create(
      b, loc, withLanesOf(b.getIntegerType(16), value), upper);
  return arith::BitcastOp::create(b, loc, withLanesOf(element, value), half);
}

void Emitter::transpose(MutableArrayRef<Value> vectors) {
  // Swaps the off-diagonal quarters of ever smaller squares.
  int64_t size = vectors.size();
  for (int64_t half = size / 2; half > 0; half /= 2) {
    SmallVector<int64_t> upper, lower;
    for (int64_t lane = 0; lane < size; ++lane) {
      bool inRight = lane & half;
      upper.push_back(inRight ? size + lane - half : lane);
      lower.push_back(inRight ? size + lane : lane + half);
    }
    for (int64_t row = 0; row < size; ++row) {
      if (row & half)
        continue;
      Value a = vectors[row], b = vectors[row + half];
      vectors[row] = vector::ShuffleOp::create(this->b, loc, a, b, upper);
      vectors[row + half] =
          vector::ShuffleOp::create(this->b, loc, a, b, lower);
    }
  }
}

void Emitter::loop(Value lb, Value ub, int64_t step,
                   function_ref<void(Value)> body) {
  auto loop = scf::ForOp::create(b, loc, lb, ub, i64(step));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  body(loop.getInductionVar());
}

void Emitter::loop(int64_t ub, function_ref<void(Value)> body) {
  if (ub == 1)
    return body(i64(0));
  loop(i64(0), i64(ub), 1, body);
}

SmallVector<Value>
Emitter::loop(int64_t ub, ValueRange inits,
              function_ref<SmallVector<Value>(Value, ValueRange)> body) {
  if (ub == 1)
    return body(i64(0), inits);
  auto loop = scf::ForOp::create(b, loc, i64(0), i64(ub), i64(1), inits);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  SmallVector<Value> next =
      body(loop.getInductionVar(), loop.getRegionIterArgs());
  if (!inits.empty())
    scf::YieldOp::create(b, loc, next);
  return llvm::to_vector_of<Value>(loop.getResults());
}
