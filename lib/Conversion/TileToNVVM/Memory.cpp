//===- Memory.cpp - Loads, stores and copies to shared memory -------------===//
//
// Every access has two forms: 16 bytes (or the layout's vector) at a time, and
// element by element. Which one is right depends on the alignment of the base
// and the strides, which only the launch knows: the kernel asks once and
// branches, uniformly.
//
//===----------------------------------------------------------------------===//

#include "KernelLowering.h"
#include "mlir/IR/Matchers.h"
#include <map>
#include <vector>

using namespace mlir;
using namespace mlir::tile;

static constexpr int64_t kVectorBytes = SharedSwizzle::kChunkBytes;

static RankedTensorType getTileType(Value value) {
  return cast<RankedTensorType>(value.getType());
}

/// An i1 takes a byte.
static int64_t getMemoryBytes(Type element) {
  return llvm::divideCeil(element.getIntOrFloatBitWidth(), 8);
}

/// A tile's place in a memref. Positions are within the last dimension(s).
struct KernelLowering::Access {
  MemRefArgument memref;
  Value base; // the pointer with the leading indices applied, but for `step`
  Value step; // i64, in elements: constant for all threads and programs
  Value row, col, rowLimit, colLimit; // i32
  Value rowStride;                    // i64, in elements
  Value colIndex;                     // in the tile kernel
  int64_t elementBytes;
  /// Of the op, and the stride between the matrices that take turns.
  int64_t interleave = 1;
  Value matrixStride;
};

/// Of row `row`, in elements from the access's base. With `interleave`, the
/// access's rows and their limit count those of all matrices.
static Value getInterleavedOffset(ThreadEmitter &emit, Value row,
                                  Value rowStride, int64_t interleave,
                                  Value matrixStride) {
  if (interleave == 1)
    return emit.mul(emit.extend(row), rowStride);
  Value inMatrix = emit.mul(emit.extend(emit.div(row, interleave)), rowStride);
  Value matrix = emit.mul(emit.extend(emit.rem(row, interleave)), matrixStride);
  return emit.add(inMatrix, matrix);
}

/// True if the i32 `value` is a multiple of `factor` whenever it is computed.
static bool isKnownMultiple(Value value, int64_t factor) {
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return constant.getSExtValue() % factor == 0;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto loop =
        dyn_cast_or_null<scf::ForOp>(argument.getOwner()->getParentOp());
    return loop && argument == loop.getInductionVar() &&
           isKnownMultiple(loop.getLowerBound(), factor) &&
           isKnownMultiple(loop.getStep(), factor);
  }
  Operation *op = value.getDefiningOp();
  if (isa<arith::MulIOp>(op))
    return isKnownMultiple(op->getOperand(0), factor) ||
           isKnownMultiple(op->getOperand(1), factor);
  if (isa<arith::AddIOp, arith::SubIOp>(op))
    return isKnownMultiple(op->getOperand(0), factor) &&
           isKnownMultiple(op->getOperand(1), factor);
  return false;
}

/// `value` as another one and a constant that it is more, for certain.
static std::pair<Value, int64_t> splitStep(Value value) {
  APInt step;
  auto add = value.getDefiningOp<arith::AddIOp>();
  if (!add || !matchPattern(add.getRhs(), m_ConstantInt(&step)) ||
      !bitEnumContainsAll(add.getOverflowFlags(),
                          arith::IntegerOverflowFlags::nsw))
    return {value, 0};
  return {add.getLhs(), step.getSExtValue()};
}

KernelLowering::Access KernelLowering::getAccess(Value memref,
                                                 ValueRange indices,
                                                 int64_t tileRank,
                                                 int64_t interleave) {
  Access access;
  access.memref = memrefs[memref];
  int64_t rank = indices.size();
  Type element = cast<MemRefType>(memref.getType()).getElementType();
  access.elementBytes = getMemoryBytes(element);
  access.colIndex = indices.back();
  access.col = getScalar(indices.back());
  access.colLimit = access.memref.sizes.back();
  if (tileRank == 2) {
    access.row = getScalar(indices[rank - 2]);
    access.rowLimit = access.memref.sizes[rank - 2];
    access.rowStride = access.memref.strides[rank - 2];
  }
  access.interleave = interleave;
  if (interleave > 1) {
    access.matrixStride = access.memref.strides[rank - tileRank - 1];
    Value &limit = tileRank == 2 ? access.rowLimit : access.colLimit;
    limit = emit.mul(limit, emit.i32(interleave));
  }
  // Positions that are constant steps apart share all else.
  Value offset = emit.i64(0);
  access.step = emit.i64(0);
  for (int64_t dim = 0; dim < rank - tileRank; ++dim) {
    auto [index, step] = splitStep(indices[dim]);
    Value stride = access.memref.strides[dim];
    offset = emit.add(offset, emit.mul(emit.extend(getScalar(index)), stride));
    access.step = emit.add(access.step, emit.mul(emit.i64(step), stride));
  }
  access.base =
      emit.globalPointer(access.memref.pointer, offset, access.elementBytes);
  return access;
}

/// True where `elements` elements from any multiple of `elements` in a row lie
/// aligned in memory and either all inside the row or all outside, of which the
/// caller of a tile that `isWhole` is sure.
Value KernelLowering::isVectorAligned(const Access &access, int64_t elements,
                                      bool isWhole) {
  Value bits =
      emit.create<LLVM::PtrToIntOp>(emit.getI64Type(), access.memref.pointer);
  for (Value stride : ArrayRef(access.memref.strides).drop_back())
    bits = emit.orBits(bits, emit.mul(stride, emit.i64(access.elementBytes)));
  int64_t mask = elements * access.elementBytes - 1;
  Value aligned = emit.equal(emit.andBits(bits, emit.i64(mask)), emit.i64(0));
  Value columns = emit.i32(0);
  if (!isKnownMultiple(access.colIndex, elements))
    columns = access.col;
  APInt limit;
  if (!isWhole && (!matchPattern(access.colLimit, m_ConstantInt(&limit)) ||
                   limit.getSExtValue() % elements != 0))
    columns = emit.orBits(columns, access.colLimit);
  Value whole =
      emit.equal(emit.andBits(columns, emit.i32(elements - 1)), emit.i32(0));
  return emit.andBits(aligned, whole);
}

/// Whether every element of the tile exists.
Value KernelLowering::isWhole(const Access &access, RankedTensorType type) {
  auto fits = [&](Value first, int64_t size, Value limit) -> Value {
    return emit.create<LLVM::ICmpOp>(LLVM::ICmpPredicate::sle,
                                     emit.add(first, emit.i32(size)), limit);
  };
  Value whole = fits(access.col, type.getShape().back(), access.colLimit);
  if (!access.row)
    return whole;
  return emit.andBits(whole,
                      fits(access.row, type.getDimSize(0), access.rowLimit));
}

//===----------------------------------------------------------------------===//
// Registers
//===----------------------------------------------------------------------===//

/// Whether the element `offset` away from the tile's position exists; the
/// thread's part is already in `access`.
Value KernelLowering::getPredicate(const Access &access,
                                   const RegisterLayout &layout,
                                   TilePosition offset, RankedTensorType type) {
  bool isRowValue = isa<RowLayoutAttr>(type.getEncoding());
  int64_t col = isRowValue ? offset.row : offset.col;
  Value inside =
      emit.less(emit.add(access.col, emit.i32(col)), access.colLimit);
  if (access.row)
    inside = emit.andBits(
        inside,
        emit.less(emit.add(access.row, emit.i32(offset.row)), access.rowLimit));
  bool hasRows = type.getRank() == 2 || isRowValue;
  if (!hasRows || !layout.mayExceedRows())
    return inside;
  Value row = emit.evaluate(layout.getRowTerms(), thread);
  return emit.andBits(inside, emit.less(emit.add(row, emit.i32(offset.row)),
                                        emit.i32(type.getDimSize(0))));
}

/// How far row `row` lies from the base, in elements, as an i64; anything for
/// rows from the limit on, which don't exist.
Value KernelLowering::getRowOffset(const Access &access, Value row) {
  const auto &pages = access.memref.pages;
  if (!pages)
    return getInterleavedOffset(emit, row, access.rowStride, access.interleave,
                                access.matrixStride);
  Value exists = emit.less(row, access.rowLimit);
  Value position =
      emit.mul(emit.extend(emit.div(row, pages->rows)), pages->stride);
  Value slot = emit.globalPointer(pages->numbers, position, /*bytes=*/4);
  Value number = emit.loadGlobal({slot}, /*words=*/1, exists)[0];
  number = emit.create<LLVM::UMinOp>(number, pages->lastNumber);
  Value offset = emit.mul(emit.extend(number), access.memref.strides[0]);
  Value inPage = emit.extend(emit.rem(row, pages->rows));
  return emit.add(offset, emit.mul(inPage, access.rowStride));
}

/// The address of the element `position` away from the access's base and step.
Value KernelLowering::getPointer(const Access &access, Value position) {
  Value pointer =
      emit.globalPointer(access.base, position, access.elementBytes);
  return emit.globalPointer(pointer, access.step, access.elementBytes);
}

/// The address of the element `offset` away from the tile's position, of which
/// the thread's part is already in `access`.
ThreadEmitter::GlobalAddress KernelLowering::getAddress(const Access &access,
                                                        TilePosition offset) {
  // Elements of a vector are its rows.
  if (!access.row && access.interleave > 1) {
    Value position = getInterleavedOffset(
        emit, emit.add(access.col, emit.i32(offset.col)), emit.i64(1),
        access.interleave, access.matrixStride);
    return {getPointer(access, position), 0};
  }
  Value position = emit.extend(access.col);
  if (access.row)
    position = emit.add(
        position,
        getRowOffset(access, emit.add(access.row, emit.i32(offset.row))));
  return {getPointer(access, position), offset.col * access.elementBytes};
}

namespace {
/// One memory access of a thread: `count` neighbouring elements from `first`.
struct Run {
  size_t first;
  int64_t count;
};
} // namespace

static SmallVector<Run> getRuns(const RegisterLayout &layout,
                                int64_t elementBytes, bool vector) {
  int64_t count =
      vector ? std::min(layout.getVector(), kVectorBytes / elementBytes) : 1;
  SmallVector<Run> runs;
  for (size_t i = 0; i < layout.getOffsets().size(); i += count)
    runs.push_back({i, count});
  return runs;
}

/// Whether a thread's neighbouring elements fill whole words.
static bool hasVectors(const RegisterLayout &layout, int64_t elementBytes) {
  return layout.getVector() > 1 && (layout.getVector() * elementBytes) % 4 == 0;
}

/// The same for loads, which also take two bytes at once.
static bool hasLoadVectors(const RegisterLayout &layout, int64_t elementBytes) {
  return hasVectors(layout, elementBytes) ||
         layout.getVector() * elementBytes == 2;
}

/// `access` with the thread's own part added to its position.
template <typename AccessT>
static AccessT addThreadPosition(ThreadEmitter &emit, AccessT access,
                                 Value thread, const RegisterLayout &layout,
                                 RankedTensorType type) {
  if (isa<RowLayoutAttr>(type.getEncoding())) {
    access.col =
        emit.add(access.col, emit.evaluate(layout.getRowTerms(), thread));
    return access;
  }
  access.col =
      emit.add(access.col, emit.evaluate(layout.getColTerms(), thread));
  if (access.row)
    access.row =
        emit.add(access.row, emit.evaluate(layout.getRowTerms(), thread));
  return access;
}

/// Where an element lies in memory: a row value runs along the last dimension.
static TilePosition getMemoryOffset(RankedTensorType type,
                                    TilePosition offset) {
  if (isa<RowLayoutAttr>(type.getEncoding()))
    return {0, offset.row};
  return offset;
}

/// A byte of memory as an element of type i8 or i1.
static Value convertByte(ThreadEmitter &emit, Value byte, Type element) {
  if (element.isInteger(1))
    return emit.create<LLVM::TruncOp>(element, byte);
  return byte;
}

/// One element of memory, 0 where `predicate` doesn't hold.
Value KernelLowering::emitElementLoad(ThreadEmitter::GlobalAddress address,
                                      Type element, Value predicate) {
  int64_t bytes = getMemoryBytes(element);
  if (bytes == 1)
    return convertByte(emit, emit.loadGlobal8(address, predicate), element);
  if (bytes == 2)
    return emit.bitcast(emit.loadGlobal16(address, predicate), element);
  return emit.joinWords(emit.loadGlobal(address, bytes / 4, predicate),
                        element);
}

/// The elements of some words, or of the two bytes of a half word; 16-bit
/// floats stay in pairs.
static SmallVector<Value> splitLoaded(ThreadEmitter &emit,
                                      ArrayRef<Value> words, Type element) {
  int64_t bytes = getMemoryBytes(element);
  SmallVector<Value> elements;
  if (bytes == 8) {
    for (size_t i = 0; i < words.size(); i += 2)
      elements.push_back(emit.joinWords(words.slice(i, 2), element));
    return elements;
  }
  for (Value word : words) {
    if (bytes == 1)
      for (Value byte : emit.splitBytes(word))
        elements.push_back(convertByte(emit, byte, element));
    else
      elements.push_back(emit.bitcast(
          word, bytes == 2 ? Type(VectorType::get(2, element)) : element));
  }
  return elements;
}

Fragment KernelLowering::emitLoad(const Access &access, RankedTensorType type,
                                  bool vector, bool isWhole) {
  RegisterLayout layout = getLayout(type);
  Access own = addThreadPosition(emit, access, thread, layout, type);
  Type element = type.getElementType();
  SmallVector<Value> elements;
  for (Run run : getRuns(layout, access.elementBytes, vector)) {
    TilePosition offset = layout.getOffsets()[run.first];
    Value predicate;
    if (!isWhole)
      predicate = getPredicate(own, layout, offset, type);
    ThreadEmitter::GlobalAddress pointer =
        getAddress(own, getMemoryOffset(type, offset));
    int64_t bytes = run.count * access.elementBytes;
    if (run.count == 1)
      elements.push_back(emitElementLoad(pointer, element, predicate));
    else if (bytes == 2)
      llvm::append_range(
          elements,
          splitLoaded(emit, emit.loadGlobal16(pointer, predicate), element));
    else
      llvm::append_range(
          elements,
          splitLoaded(emit, emit.loadGlobal(pointer, bytes / 4, predicate),
                      element));
  }
  bool isPairs = vector && access.elementBytes == 2;
  return isPairs ? Fragment(elements.begin(), elements.end())
                 : pack(type, elements);
}

void KernelLowering::emitStore(const Access &access, RankedTensorType type,
                               ArrayRef<Value> fragment, bool vector) {
  RegisterLayout layout = getLayout(type);
  Access own = addThreadPosition(emit, access, thread, layout, type);
  // Of the threads that hold a row value, the first of the row stores it.
  Value isOwner;
  if (isa<RowLayoutAttr>(type.getEncoding()))
    isOwner =
        emit.equal(emit.rem(thread, layout.getThreadsPerRow()), emit.i32(0));
  SmallVector<Value> elements;
  if (!vector)
    elements = unpack(type, fragment);
  for (Run run : getRuns(layout, access.elementBytes, vector)) {
    TilePosition offset = layout.getOffsets()[run.first];
    Value predicate = getPredicate(own, layout, offset, type);
    if (isOwner)
      predicate = emit.andBits(predicate, isOwner);
    ThreadEmitter::GlobalAddress pointer =
        getAddress(own, getMemoryOffset(type, offset));
    if (!vector && access.elementBytes == 1) {
      emit.storeGlobal8(pointer, elements[run.first], predicate);
      continue;
    }
    if (!vector && access.elementBytes == 2) {
      emit.storeGlobal16(pointer, elements[run.first], predicate);
      continue;
    }
    if (access.elementBytes == 1) {
      emit.storeGlobal(pointer,
                       emit.joinBytes(fragment.slice(run.first, run.count)),
                       predicate);
      continue;
    }
    int64_t words = run.count * access.elementBytes / 4;
    size_t first = run.first * access.elementBytes / 4;
    emit.storeGlobal(pointer, fragment.slice(first, words), predicate);
  }
}

/// Stores a packed accumulator 16 bytes at a time: the four threads of a quad
/// hold 4 bytes each of four n8 blocks' rows and trade them so that each has
/// 16 bytes of one block.
void KernelLowering::emitQuadStore(const Access &access, RankedTensorType type,
                                   ArrayRef<Value> fragment) {
  RegisterLayout layout = getLayout(type);
  Value quadLane = emit.rem(thread, 4);
  Value isOdd = emit.equal(emit.rem(thread, 2), emit.i32(1));
  Value isUpper = emit.equal(emit.div(quadLane, 2), emit.i32(1));
  Type word = emit.getI32Type();
  // Swaps x of the lanes where `high` with y of their partners `distance` away.
  auto exchange = [&](Value &x, Value &y, Value high, int64_t distance) {
    Value sent = emit.select(high, x, y);
    Value received = emit.shuffleXor(sent, distance);
    x = emit.select(high, received, x);
    y = emit.select(high, y, received);
  };

  Access own = access;
  own.row = emit.add(access.row, emit.evaluate(layout.getRowTerms(), thread));
  own.col = emit.add(access.col, emit.mul(quadLane, emit.i32(8)));
  int64_t blocks = type.getDimSize(1) / 8;
  int64_t repeats = fragment.size() / (2 * blocks);
  for (int64_t repeat = 0; repeat < repeats; ++repeat)
    for (int64_t block = 0; block < blocks; block += 4)
      for (int64_t half : {0, 1}) {
        SmallVector<Value> words;
        for (int64_t j = 0; j < 4; ++j) {
          int64_t pair = (repeat * blocks + block + j) * 2 + half;
          words.push_back(emit.bitcast(fragment[pair], word));
        }
        exchange(words[0], words[1], isOdd, 1);
        exchange(words[2], words[3], isOdd, 1);
        exchange(words[0], words[2], isUpper, 2);
        exchange(words[1], words[3], isUpper, 2);
        TilePosition offset =
            layout.getOffsets()[(repeat * blocks * 2 + half) * 2];
        offset.col = block * 8;
        Value inside = emit.andBits(
            emit.less(emit.add(own.row, emit.i32(offset.row)), own.rowLimit),
            emit.less(emit.add(own.col, emit.i32(offset.col)), own.colLimit));
        emit.storeGlobal(getAddress(own, offset), words, inside);
      }
}

LogicalResult KernelLowering::lowerLoad(LoadOp op) {
  RankedTensorType type = getTileType(op.getResult());
  int64_t bits = type.getElementTypeBitWidth();
  bool isKnown = bits == 8 || bits == 16 || bits == 32 ||
                 (!isInShared(type) && (bits == 1 || bits == 64));
  if (!isKnown)
    return op.emitOpError("loads elements of 1 (in registers), 8, 16, 32 or 64 "
                          "(in registers) bits on the GPU, not ")
           << type.getElementType();
  Access access = getAccess(op.getSource(), op.getIndices(), type.getRank(),
                            op.getInterleave());
  if (isInShared(type)) {
    // Every thread may still read what the last turn of a loop left there.
    if (op->getParentOp() != kernel)
      emitBarrier();
    Value address = emit.add(sharedBase, emit.i32(sharedOffsets.lookup(op)));
    emitCopyToShared(access, type, address);
    emit.create<NVVM::CpAsyncCommitGroupOp>();
    emit.create<NVVM::CpAsyncWaitGroupOp>(0);
    emitBarrier();
    fragments[op.getResult()] = {address};
    return success();
  }
  RegisterLayout layout = getLayout(type);
  bool isSpread = type.getRank() == 1 && access.interleave > 1;
  if (isSpread || !hasLoadVectors(layout, access.elementBytes)) {
    fragments[op.getResult()] = emitLoad(access, type, /*vector=*/false);
    return success();
  }
  int64_t elements =
      std::min(layout.getVector(), kVectorBytes / access.elementBytes);
  // What a step of a loop reads beside its scores is whole in all but the last
  // steps, which may take longer then.
  const bool expectsWhole = !isa<BlockedLayoutAttr>(type.getEncoding()) &&
                            !layout.mayExceedRows() &&
                            op->getParentOp() != kernel;
  Value aligned = isVectorAligned(access, elements, expectsWhole);
  if (expectsWhole)
    aligned = emit.andBits(aligned, isWhole(access, type));
  auto load = [&](bool vector) {
    return SmallVector<Value>(
        emitLoad(access, type, vector, vector && expectsWhole));
  };
  fragments[op.getResult()] = Fragment(emit.createIfElse(
      aligned, [&] { return load(/*vector=*/true); },
      [&] { return load(/*vector=*/false); }));
  return success();
}

/// Where one element lies, and whether the memref has it (null: for certain).
struct KernelLowering::ElementPosition {
  Value offset, isInside;
};

void KernelLowering::move(ElementPosition &position,
                          const MemRefArgument &memref, int64_t dim,
                          Value index, bool isInBounds) {
  Value step = emit.mul(emit.extend(index), memref.strides[dim]);
  position.offset = emit.add(position.offset, step);
  if (isInBounds)
    return;
  // One unsigned comparison covers negative indices.
  Value inside = emit.create<LLVM::ICmpOp>(LLVM::ICmpPredicate::ult, index,
                                           memref.sizes[dim]);
  position.isInside =
      position.isInside ? emit.andBits(position.isInside, inside) : inside;
}

LogicalResult KernelLowering::lowerGather(GatherOp op) {
  Type element = cast<MemRefType>(op.getSource().getType()).getElementType();
  int64_t bits = element.getIntOrFloatBitWidth();
  if (bits != 1 && bits != 8 && bits != 16 && bits != 32 && bits != 64)
    return op.emitOpError("reads elements of 1, 8, 16, 32 or 64 bits on the "
                          "GPU, not ")
           << element;
  const MemRefArgument memref = memrefs[op.getSource()];
  auto move = [&](ElementPosition &position, int64_t dim, Value index) {
    this->move(position, memref, dim, index,
               llvm::is_contained(op.getInBounds(), dim));
  };
  // Indices that are the same for all elements first, so that it is once.
  ElementPosition common = {emit.i64(0), Value()};
  SmallVector<int64_t> tileDims;
  for (auto [dim, index] : llvm::enumerate(op.getIndices())) {
    if (isa<RankedTensorType>(index.getType()))
      tileDims.push_back(dim);
    else
      move(common, dim, getScalar(index));
  }
  auto read = [&](const ElementPosition &position) {
    Value pointer = emit.globalPointer(memref.pointer, position.offset,
                                       getMemoryBytes(element));
    Value inside = position.isInside ? position.isInside : emit.i1(true);
    return emitElementLoad({pointer}, element, inside);
  };
  auto type = dyn_cast<RankedTensorType>(op.getType());
  if (!type) {
    scalars.map(op.getResult(), read(common));
    return success();
  }
  SmallVector<Value> elements;
  // Elements of one row or column often have the same indices.
  std::map<std::vector<const void *>, Value> known;
  for (size_t i = 0, e = getLayout(type).getOffsets().size(); i < e; ++i) {
    std::vector<const void *> key;
    for (int64_t dim : tileDims)
      key.push_back(getFragment(op.getIndices()[dim])[i].getAsOpaquePointer());
    Value &value = known[key];
    if (!value) {
      ElementPosition position = common;
      for (int64_t dim : tileDims)
        move(position, dim, getFragment(op.getIndices()[dim])[i]);
      value = read(position);
    }
    elements.push_back(value);
  }
  fragments[op.getResult()] = pack(type, elements);
  return success();
}

void KernelLowering::lowerStoreElement(StoreElementOp op) {
  const MemRefArgument memref = memrefs[op.getDest()];
  // One thread of the program stores.
  ElementPosition position = {emit.i64(0), emit.equal(thread, emit.i32(0))};
  for (auto [dim, index] : llvm::enumerate(op.getIndices()))
    move(position, memref, dim, getScalar(index), /*isInBounds=*/false);
  Value pointer =
      emit.globalPointer(memref.pointer, position.offset, sizeof(int32_t));
  emit.storeGlobal({pointer}, getScalar(op.getValue()), position.isInside);
}

LogicalResult KernelLowering::lowerStore(StoreOp op) {
  RankedTensorType type = getTileType(op.getValue());
  int64_t bits = type.getElementTypeBitWidth();
  if (bits != 8 && bits != 16 && bits != 32)
    return op.emitOpError(
               "stores elements of 8, 16 or 32 bits on the GPU, not ")
           << type.getElementType();
  if (isInShared(type))
    return op.emitOpError("can't store a tile that lies in shared memory");
  Access access = getAccess(op.getDest(), op.getIndices(), type.getRank(),
                            op.getInterleave());
  Fragment fragment = getFragment(op.getValue());
  RegisterLayout layout = getLayout(type);
  bool isSpread = type.getRank() == 1 && access.interleave > 1;
  if (isSpread || !hasVectors(layout, access.elementBytes)) {
    emitStore(access, type, fragment, /*vector=*/false);
    return success();
  }
  bool isQuad = isPacked(type) && type.getRank() == 2 &&
                isa<MmaLayoutAttr>(type.getEncoding()) &&
                type.getDimSize(1) % 32 == 0;
  int64_t elements =
      isQuad ? 8
             : std::min(layout.getVector(), kVectorBytes / access.elementBytes);
  emit.createIf(
      isVectorAligned(access, elements),
      [&] {
        if (isQuad)
          emitQuadStore(access, type, fragment);
        else
          emitStore(access, type, fragment, /*vector=*/true);
      },
      [&] { emitStore(access, type, fragment, /*vector=*/false); });
  return success();
}

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

void KernelLowering::emitBarrier() { emit.create<NVVM::Barrier0Op>(); }

Value KernelLowering::getSlotAddress(Value buffer, Value slot) {
  auto alloc = buffer.getDefiningOp<AllocBufferOp>();
  auto type = cast<BufferType>(buffer.getType());
  Value start = emit.add(sharedBase, emit.i32(sharedOffsets.lookup(alloc)));
  return emit.add(start,
                  emit.mul(getScalar(slot), emit.i32(type.getTileBytes())));
}

void KernelLowering::lowerBufferRead(BufferReadOp op) {
  fragments[op.getResult()] = {getSlotAddress(op.getBuffer(), op.getSlot())};
}

LogicalResult KernelLowering::lowerAsyncLoad(AsyncLoadOp op) {
  RankedTensorType tile = cast<BufferType>(op.getBuffer().getType()).getTile();
  Access access = getAccess(op.getSource(), op.getIndices(), tile.getRank(),
                            op.getInterleave());
  // Nothing exists for a copy that must not happen: the slot becomes zero,
  // which costs no branch and no access to global memory.
  access.rowLimit =
      emit.select(getScalar(op.getCondition()), access.rowLimit, emit.i32(0));
  emitCopyToShared(access, tile, getSlotAddress(op.getBuffer(), op.getSlot()));
  return success();
}

void KernelLowering::emitCopyToShared(const Access &access,
                                      RankedTensorType tile, Value address) {
  Value aligned = isVectorAligned(access, kVectorBytes / access.elementBytes);
  emit.createIf(
      aligned, [&] { emitVectorCopy(access, tile, address); },
      [&] { emitElementCopy(access, tile, address); });
}

void KernelLowering::emitVectorCopy(const Access &access, RankedTensorType tile,
                                    Value address) {
  SharedSwizzle swizzle = SharedSwizzle::get(tile);
  int64_t threads = 32 * kernel.getNumWarps();
  int64_t chunks = swizzle.rowBytes / kVectorBytes;
  int64_t chunkElements = kVectorBytes / access.elementBytes;
  // Threads cover `width` chunks of a row at once: whole lines of memory, and,
  // where there are threads enough, 8 rows, so that a thread's rows all have
  // one swizzle phase.
  constexpr int64_t kLineChunks = 128 / kVectorBytes;
  int64_t width =
      std::min(chunks & -chunks, std::max(threads / 8, kLineChunks));
  int64_t rowStep = threads / width;
  Value threadRow = emit.div(thread, width);
  Value threadChunk = emit.rem(thread, width);

  Value row = emit.add(access.row, threadRow);
  Value col =
      emit.add(access.col, emit.mul(threadChunk, emit.i32(chunkElements)));
  auto getRowPointer = [&](int64_t r) {
    Value offset = getRowOffset(access, emit.add(row, emit.i32(r)));
    return getPointer(access, emit.add(offset, emit.extend(col)));
  };
  Value pointer = getRowPointer(0);
  Value stepBytes =
      emit.mul(access.rowStride, emit.i64(rowStep * access.elementBytes));
  APInt limit;
  bool columnsExist = isKnownMultiple(access.colIndex, 1 << 30) &&
                      matchPattern(access.colLimit, m_ConstantInt(&limit)) &&
                      limit.sge(tile.getDimSize(1));
  for (int64_t r = 0; r < tile.getDimSize(0); r += rowStep) {
    Value exists = emit.less(emit.add(row, emit.i32(r)), access.rowLimit);
    for (int64_t c = 0; c < chunks; c += width) {
      Value chunkExists = exists;
      if (!columnsExist)
        chunkExists = emit.andBits(
            exists, emit.less(emit.add(col, emit.i32(c * chunkElements)),
                              access.colLimit));
      Value bytes =
          emit.select(chunkExists, emit.i32(kVectorBytes), emit.i32(0));
      auto [chunk, constant] =
          getSharedAddress(swizzle, address, threadRow, r, threadChunk, c);
      Value target = emit.sharedPointer(chunk, constant);
      Value source =
          c ? emit.globalPointer(pointer, emit.i32(c * kVectorBytes), 1)
            : pointer;
      auto copy = [&] {
        emit.create<NVVM::CpAsyncOp>(target, source, kVectorBytes,
                                     NVVM::LoadCacheModifierKind::CG, bytes);
      };
      if (r + rowStep <= tile.getDimSize(0)) {
        copy();
        continue;
      }
      Value inTile = emit.less(emit.add(threadRow, emit.i32(r)),
                               emit.i32(tile.getDimSize(0)));
      emit.createIf(inTile, copy, [] {});
    }
    if (access.interleave == 1 && !access.memref.pages)
      pointer = emit.globalPointer(pointer, stepBytes, 1);
    else if (r + rowStep < tile.getDimSize(0))
      pointer = getRowPointer(r + rowStep);
  }
}

void KernelLowering::emitElementCopy(const Access &access,
                                     RankedTensorType tile, Value address) {
  // A loop, so that the rarely taken path stays small.
  SharedSwizzle swizzle = SharedSwizzle::get(tile);
  int64_t threads = 32 * kernel.getNumWarps();
  int64_t columns = tile.getDimSize(1);
  emit.createFor(thread, emit.i32(tile.getNumElements()), emit.i32(threads), {},
                 [&](Value element, ValueRange) {
                   emitOneElementCopy(access, swizzle, address,
                                      emit.div(element, columns),
                                      emit.rem(element, columns));
                   return SmallVector<Value>();
                 });
}

void KernelLowering::emitOneElementCopy(const Access &access,
                                        const SharedSwizzle &swizzle,
                                        Value address, Value tileRow,
                                        Value tileCol) {
  Value row = emit.add(access.row, tileRow);
  Value col = emit.add(access.col, tileCol);
  Value exists = emit.andBits(emit.less(row, access.rowLimit),
                              emit.less(col, access.colLimit));
  Value position = emit.add(getRowOffset(access, row), emit.extend(col));
  Value pointer = getPointer(access, position);
  Value value = access.elementBytes == 2
                    ? emit.loadGlobal16({pointer}, exists)
                    : emit.loadGlobal({pointer}, 1, exists)[0];
  int64_t chunkElements = kVectorBytes / access.elementBytes;
  auto [chunk, constant] = getSharedAddress(
      swizzle, address, tileRow, 0, emit.div(tileCol, chunkElements), 0);
  Value inChunk =
      emit.mul(emit.rem(tileCol, chunkElements), emit.i32(access.elementBytes));
  emit.create<LLVM::StoreOp>(
      value, emit.sharedPointer(emit.add(chunk, inChunk), constant));
}
