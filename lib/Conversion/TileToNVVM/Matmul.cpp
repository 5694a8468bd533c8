//===- Matmul.cpp - Matrix products of a warp -----------------------------===//
//
// Warps split the rows of the result, each computing m16 blocks times all n8
// blocks. B lies in swizzled shared memory; A in registers or there too.
//
//===----------------------------------------------------------------------===//

#include "KernelLowering.h"

using namespace mlir;
using namespace mlir::tile;

static RankedTensorType getTileType(Value value) {
  return cast<RankedTensorType>(value.getType());
}

static LogicalResult verifyOperands(MmaOp op) {
  RankedTensorType a = getTileType(op.getA()), b = getTileType(op.getB());
  if (a.getElementTypeBitWidth() == 8)
    return op.emitOpError("multiplies 8-bit floats, which only the kernels of "
                          "sm_90a with warp roles do");
  if (!isInShared(b))
    return op.emitOpError("takes its right operand from shared memory; it must "
                          "come straight from a tile.load");
  if (op.getPath() == MatmulPath::FMA && !isInShared(a))
    return op.emitOpError("with path fma takes its left operand from shared "
                          "memory; it must come straight from a tile.load");
  int64_t k = a.getDimSize(1), n = op.getType().getDimSize(1);
  if (k % 16 || n % 16)
    return op.emitOpError("needs K and N to be multiples of 16, not ")
           << k << " and " << n;
  if (!isa_and_present<MmaLayoutAttr>(op.getType().getEncoding()))
    return op.emitOpError("needs an accumulator in #tile.mma");
  return success();
}

LogicalResult KernelLowering::lowerMma(MmaOp op) {
  if (failed(verifyOperands(op)))
    return failure();
  switch (op.getPath()) {
  case MatmulPath::MMA:
    lowerMma16(op);
    break;
  case MatmulPath::TF32x3:
    lowerMmaTF32x3(op);
    break;
  case MatmulPath::FMA:
    lowerMmaFMA(op);
    break;
  }
  return success();
}

/// Rows that all warps' m16 blocks cover together.
static int64_t getRowStep(MmaLayoutAttr layout) {
  return 16 * layout.getWarps();
}

KernelLowering::SharedAddress
KernelLowering::getSharedAddress(const SharedSwizzle &swizzle, Value address,
                                 Value laneRow, int64_t row, Value laneChunk,
                                 int64_t chunk) {
  // chunk ^ phase splits into the lane's part and constants, because the
  // lane's chunk number and the constant one share no bits, and neither do the
  // row numbers.
  Value lanePhase = emit.i32(0);
  if (laneRow) {
    address = emit.add(address, emit.mul(laneRow, emit.i32(swizzle.rowBytes)));
    lanePhase = emit.andBits(emit.div(laneRow, 1 << swizzle.shift),
                             emit.i32(swizzle.mask));
  }
  if (laneChunk)
    lanePhase = emit.xorBits(laneChunk, lanePhase);
  int64_t low = (chunk & swizzle.mask) ^ swizzle.getPhase(row);
  int64_t high = chunk & ~swizzle.mask;
  // Tiles and rows are a multiple of the swizzled bits apart, so the XOR may
  // come last: chunks of a row differ by it from one address in a register.
  address = emit.add(address, emit.shl(lanePhase, 4));
  return {emit.xorBits(address, emit.i32(low * 16)),
          row * swizzle.rowBytes + high * 16};
}

SmallVector<Value> KernelLowering::loadShared(SharedAddress address,
                                              Type element, int64_t count) {
  Value pointer = emit.sharedPointer(address.first, address.second);
  if (count == 1)
    return {emit.create<LLVM::LoadOp>(element, pointer)};
  auto type = VectorType::get(count, element);
  int64_t bytes = count * element.getIntOrFloatBitWidth() / 8;
  Value loaded = emit.create<LLVM::LoadOp>(type, pointer, bytes);
  SmallVector<Value> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(emit.create<LLVM::ExtractElementOp>(loaded, emit.i32(i)));
  return values;
}

//===----------------------------------------------------------------------===//
// 16-bit operands
//===----------------------------------------------------------------------===//

SmallVector<Value> KernelLowering::loadA16(RankedTensorType type, Value address,
                                           int64_t repeat, int64_t kBlock) {
  SharedSwizzle swizzle = SharedSwizzle::get(type);
  // Lanes 0-15 address the 16 rows of the left 8x8 blocks, the others those of
  // the right ones.
  Value laneRow = emit.add(emit.mul(warp, emit.i32(16)), emit.rem(lane, 16));
  Value laneChunk = emit.div(lane, 16);
  int64_t rowStep = 16 * kernel.getNumWarps();
  auto [base, constant] = getSharedAddress(
      swizzle, address, laneRow, repeat * rowStep, laneChunk, 2 * kBlock);
  SmallVector<Value> words = emit.ldmatrix(base, constant, /*transpose=*/false);
  auto pair = VectorType::get(2, type.getElementType());
  for (Value &word : words)
    word = emit.bitcast(word, pair);
  return words;
}

/// The B registers of two n8 blocks for one k16 block.
SmallVector<Value> KernelLowering::loadB16(MmaOp op, Value address,
                                           int64_t nPair, int64_t kBlock) {
  SharedSwizzle swizzle = SharedSwizzle::get(getTileType(op.getB()));
  // The four 8x8 blocks in the order (n, k), (n, k + 8), (n + 8, k),
  // (n + 8, k + 8): lane / 8 numbers them.
  Value inBlock = emit.rem(lane, 8);
  Value kHalf = emit.rem(emit.div(lane, 8), 2);
  Value nHalf = emit.div(lane, 16);
  bool transposeB = op.getTransposeB();
  Value laneRow =
      emit.add(inBlock, emit.mul(transposeB ? nHalf : kHalf, emit.i32(8)));
  auto [base, constant] = getSharedAddress(
      swizzle, address, laneRow, 16 * (transposeB ? nPair : kBlock),
      transposeB ? kHalf : nHalf, 2 * (transposeB ? kBlock : nPair));
  return emit.ldmatrix(base, constant, /*transpose=*/!transposeB);
}

void KernelLowering::lowerMma16(MmaOp op) {
  RankedTensorType a = getTileType(op.getA());
  auto layout = cast<MmaLayoutAttr>(op.getType().getEncoding());
  int64_t repeats = a.getDimSize(0) / getRowStep(layout);
  int64_t kBlocks = a.getDimSize(1) / 16;
  int64_t nBlocks = op.getType().getDimSize(1) / 8;
  auto type =
      a.getElementType().isBF16() ? NVVM::MMATypes::bf16 : NVVM::MMATypes::f16;
  Fragment aFragment = getFragment(op.getA());
  Fragment acc = getFragment(op.getAcc());
  Value bAddress = getFragment(op.getB())[0];
  for (int64_t k = 0; k < kBlocks; ++k) {
    SmallVector<SmallVector<Value>> aRegisters;
    for (int64_t repeat = 0; repeat < repeats; ++repeat) {
      if (isInShared(a))
        aRegisters.push_back(loadA16(a, aFragment[0], repeat, k));
      else
        aRegisters.emplace_back(
            ArrayRef(aFragment).slice((repeat * kBlocks + k) * 4, 4));
    }
    for (int64_t n = 0; n < nBlocks; n += 2) {
      SmallVector<Value> b = loadB16(op, bAddress, n / 2, k);
      for (int64_t repeat = 0; repeat < repeats; ++repeat)
        for (int64_t i : {0, 1}) {
          auto block =
              MutableArrayRef(acc).slice((repeat * nBlocks + n + i) * 4, 4);
          emit.mma(block, aRegisters[repeat], ArrayRef(b).slice(2 * i, 2),
                   type);
        }
    }
  }
  fragments[op.getResult()] = std::move(acc);
}

//===----------------------------------------------------------------------===//
// f32 on the matrix units
//===----------------------------------------------------------------------===//

/// The columns 2t, 2t + 1 of rows g and g + 8 of an m16 x k8 block, as the
/// accumulator orders them.
SmallVector<Value> KernelLowering::loadA32(RankedTensorType type, Value address,
                                           int64_t repeat, int64_t kBlock) {
  SharedSwizzle swizzle = SharedSwizzle::get(type);
  Value laneRow = emit.add(emit.mul(warp, emit.i32(16)), emit.div(lane, 4));
  Value quadLane = emit.rem(lane, 4);
  Value laneBytes = emit.mul(emit.rem(quadLane, 2), emit.i32(8));
  SmallVector<Value> values;
  for (int64_t half : {0, 1}) {
    SharedAddress chunk =
        getSharedAddress(swizzle, emit.add(address, laneBytes), laneRow,
                         repeat * 16 * kernel.getNumWarps() + 8 * half,
                         emit.div(quadLane, 2), 2 * kBlock);
    llvm::append_range(values, loadShared(chunk, type.getElementType(), 2));
  }
  return values;
}

/// The B values of k rows 2t and 2t + 1, column g, of a k8 x n8 block.
SmallVector<Value> KernelLowering::loadB32(MmaOp op, Value address,
                                           int64_t nBlock, int64_t kBlock) {
  RankedTensorType type = getTileType(op.getB());
  SharedSwizzle swizzle = SharedSwizzle::get(type);
  Value group = emit.div(lane, 4);
  Value quadLane = emit.rem(lane, 4);
  if (op.getTransposeB()) {
    Value laneBytes = emit.mul(emit.rem(quadLane, 2), emit.i32(8));
    SharedAddress chunk =
        getSharedAddress(swizzle, emit.add(address, laneBytes), group,
                         8 * nBlock, emit.div(quadLane, 2), 2 * kBlock);
    return loadShared(chunk, type.getElementType(), 2);
  }
  Value laneBytes = emit.mul(emit.rem(group, 4), emit.i32(4));
  SmallVector<Value> values;
  for (int64_t i : {0, 1}) {
    Value laneRow = emit.add(emit.mul(quadLane, emit.i32(2)), emit.i32(i));
    SharedAddress chunk =
        getSharedAddress(swizzle, emit.add(address, laneBytes), laneRow,
                         8 * kBlock, emit.div(group, 4), 2 * nBlock);
    llvm::append_range(values, loadShared(chunk, type.getElementType(), 1));
  }
  return values;
}

namespace {
/// x = big + small, both TF32 (as bit patterns), up to f32 rounding.
struct SplitTF32 {
  SmallVector<Value> big, small;
};
} // namespace

static SplitTF32 splitTF32(ThreadEmitter &emit, ArrayRef<Value> values) {
  SplitTF32 split;
  Type i32 = emit.getI32Type();
  for (Value value : values) {
    Value big = emit.intrinsic("llvm.nvvm.f2tf32.rna", i32, value);
    Value rest =
        emit.create<LLVM::FSubOp>(value, emit.bitcast(big, emit.getF32Type()));
    split.big.push_back(big);
    split.small.push_back(emit.intrinsic("llvm.nvvm.f2tf32.rna", i32, rest));
  }
  return split;
}

void KernelLowering::lowerMmaTF32x3(MmaOp op) {
  RankedTensorType a = getTileType(op.getA());
  auto layout = cast<MmaLayoutAttr>(op.getType().getEncoding());
  int64_t repeats = a.getDimSize(0) / getRowStep(layout);
  int64_t kBlocks = a.getDimSize(1) / 8;
  int64_t nBlocks = op.getType().getDimSize(1) / 8;
  Fragment aFragment = getFragment(op.getA());
  Fragment acc = getFragment(op.getAcc());
  Value bAddress = getFragment(op.getB())[0];
  for (int64_t k = 0; k < kBlocks; ++k) {
    SmallVector<SplitTF32> aRegisters;
    for (int64_t repeat = 0; repeat < repeats; ++repeat) {
      SmallVector<Value> values;
      if (isInShared(a))
        values = loadA32(a, aFragment[0], repeat, k);
      else
        values.assign(ArrayRef(aFragment).slice((repeat * kBlocks + k) * 4, 4));
      // The instruction's order is (g, t), (g + 8, t), (g, t + 4),
      // (g + 8, t + 4); columns t and t + 4 are our 2t and 2t + 1.
      std::swap(values[1], values[2]);
      aRegisters.push_back(splitTF32(emit, values));
    }
    for (int64_t n = 0; n < nBlocks; ++n) {
      SplitTF32 b = splitTF32(emit, loadB32(op, bAddress, n, k));
      for (int64_t repeat = 0; repeat < repeats; ++repeat) {
        auto block = MutableArrayRef(acc).slice((repeat * nBlocks + n) * 4, 4);
        // The matrix units round their sums towards zero, which adds up over
        // long sums: the accumulator is added to outside of them. Small terms
        // come first: they'd be lost against a large sum.
        auto tf32 = NVVM::MMATypes::tf32;
        SmallVector<Value> sums(4, emit.f32(0.0f));
        emit.mma(sums, aRegisters[repeat].small, b.big, tf32);
        emit.mma(sums, aRegisters[repeat].big, b.small, tf32);
        emit.mma(sums, aRegisters[repeat].big, b.big, tf32);
        for (auto [total, sum] : llvm::zip_equal(block, sums))
          total = emit.create<LLVM::FAddOp>(total, sum);
      }
    }
  }
  fragments[op.getResult()] = std::move(acc);
}

//===----------------------------------------------------------------------===//
// f32 off the matrix units
//===----------------------------------------------------------------------===//

void KernelLowering::lowerMmaFMA(MmaOp op) {
  RankedTensorType a = getTileType(op.getA()), b = getTileType(op.getB());
  SharedSwizzle aSwizzle = SharedSwizzle::get(a);
  SharedSwizzle bSwizzle = SharedSwizzle::get(b);
  RegisterLayout layout = getLayout(op.getType());
  SmallVector<int64_t> rowIndices = layout.getRowIndices();
  SmallVector<int64_t> colIndices = layout.getColIndices();
  Value aAddress = getFragment(op.getA())[0];
  Value bAddress = getFragment(op.getB())[0];
  Fragment acc = getFragment(op.getAcc());
  Type f32 = emit.getF32Type();
  Value laneRow = emit.evaluate(layout.getRowTerms(), thread);
  Value quadLane = emit.rem(lane, 4);

  // Four k at once: one chunk of every row of A, and of B if it is transposed.
  int64_t rows = 2 * a.getDimSize(0) /
                 getRowStep(cast<MmaLayoutAttr>(op.getType().getEncoding()));
  int64_t cols = op.getType().getDimSize(1) / 4;
  for (int64_t k = 0; k < a.getDimSize(1); k += 4) {
    SmallVector<SmallVector<Value>> aValues(rows), bValues(cols);
    for (size_t i = 0; i < acc.size(); ++i) {
      SmallVector<Value> &row = aValues[rowIndices[i]];
      if (row.empty())
        row = loadShared(getSharedAddress(aSwizzle, aAddress, laneRow,
                                          layout.getOffsets()[i].row, Value(),
                                          k / 4),
                         f32, 4);
    }
    for (int64_t n = 0; n < cols; n += 2) {
      int64_t column = n / 2 * 8;
      if (op.getTransposeB()) {
        for (int64_t i : {0, 1}) {
          Value row = emit.add(emit.mul(quadLane, emit.i32(2)), emit.i32(i));
          bValues[n + i] = loadShared(
              getSharedAddress(bSwizzle, bAddress, row, column, Value(), k / 4),
              f32, 4);
        }
        continue;
      }
      Value laneBytes = emit.mul(emit.rem(quadLane, 2), emit.i32(8));
      for (int64_t i = 0; i < 4; ++i) {
        SmallVector<Value> pair = loadShared(
            getSharedAddress(bSwizzle, emit.add(bAddress, laneBytes), Value(),
                             k + i, emit.div(quadLane, 2), column / 4),
            f32, 2);
        bValues[n].push_back(pair[0]);
        bValues[n + 1].push_back(pair[1]);
      }
    }
    for (int64_t i = 0; i < 4; ++i)
      for (auto [j, value] : llvm::enumerate(acc))
        value = emit.intrinsic(
            "llvm.fma.f32", f32,
            {aValues[rowIndices[j]][i], bValues[colIndices[j]][i], value});
  }
  fragments[op.getResult()] = std::move(acc);
}
