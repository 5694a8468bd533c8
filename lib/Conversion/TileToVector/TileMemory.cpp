//===- TileMemory.cpp - Loads and stores of tiles -----------------------===//

#include "KernelLowering.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace mlir::tile;
using namespace mlir::tile::cpu;

Value Window::getRowOffset(Emitter &e, Value row) const {
  if (pages)
    return getPagedRowOffset(e, row);
  if (interleave == 1)
    return e.mul(row, rowStride);
  Value number = e.add(firstRow, row);
  Value inMatrix =
      e.b.createOrFold<arith::DivUIOp>(e.loc, number, e.i64(interleave));
  Value matrix =
      e.b.createOrFold<arith::RemUIOp>(e.loc, number, e.i64(interleave));
  return e.add(e.mul(inMatrix, rowStride), e.mul(matrix, matrixStride));
}

Value Window::getPagedRowOffset(Emitter &e, Value row) const {
  Value position = e.add(firstRow, row);
  Value rows = e.i64(pages->rows);
  Value index = arith::DivUIOp::create(e.b, e.loc, position, rows);
  Value inPage = arith::RemUIOp::create(e.b, e.loc, position, rows);
  Value number = e.toI64(e.load(pages->numbers, e.mul(index, pages->stride),
                                e.b.getI32Type(), /*lanes=*/0));
  number = arith::MinUIOp::create(e.b, e.loc, number, pages->lastNumber);
  return e.add(e.mul(number, pageStride), e.mul(inPage, rowStride));
}

/// With `interleave`, a tile of rank 1 is rows of one element.
Window KernelLowering::emitWindow(Value memref, ValueRange indices,
                                  RankedTensorType tile, int64_t interleave) {
  const MemRefArg &arg = memrefs[memref];
  Window w;
  w.element = tile.getElementType();
  Value one = e.i64(1), zero = e.i64(0);
  w.rowBegin = w.rowStride = zero;
  w.rowEnd = one;
  bool hasRows = tile.getRank() == 2 || interleave > 1;
  w.rows = hasRows ? tile.getDimSize(0) : 1;
  w.cols = hasRows && tile.getRank() == 1 ? 1 : tile.getShape().back();
  w.interleave = interleave;

  int64_t selecting = indices.size() - tile.getRank();
  Value offset = zero, exists;
  for (auto [dim, index32] : llvm::enumerate(indices)) {
    Value index = e.toI64(scalars.lookup(index32));
    bool isRow = hasRows && static_cast<int64_t>(dim) == selecting;
    if (isRow && interleave > 1) {
      // getRowOffset starts from row 0.
      w.firstRow = index;
      w.matrixStride = arg.strides[dim - 1];
    } else {
      offset = e.add(offset, e.mul(index, arg.strides[dim]));
    }
    if (static_cast<int64_t>(dim) < selecting) {
      // One unsigned comparison covers negative indices.
      Value inside = arith::CmpIOp::create(
          builder, e.loc, arith::CmpIPredicate::ult, index, arg.sizes[dim]);
      exists = exists
                   ? builder.createOrFold<arith::AndIOp>(e.loc, exists, inside)
                   : inside;
      continue;
    }
    int64_t extent = tile.getDimSize(dim - selecting);
    Value size = arg.sizes[dim];
    if (isRow)
      size = e.mul(size, e.i64(interleave));
    Value begin = e.clamp(e.sub(zero, index), extent);
    Value end = e.clamp(e.sub(size, index), extent);
    if (isRow) {
      w.rowBegin = begin;
      w.rowEnd = end;
      w.rowStride = arg.strides[dim];
      w.firstRow = index;
    } else {
      w.colBegin = begin;
      w.colEnd = end;
    }
  }
  if (w.cols == 1 && tile.getRank() == 1 && hasRows) {
    w.colBegin = zero;
    w.colEnd = one;
  }
  if (exists)
    w.rowEnd = arith::SelectOp::create(builder, e.loc, exists, w.rowEnd, zero);
  if (arg.pages) {
    w.pages = arg.pages;
    w.pageStride = arg.strides[0];
    // The rows' part comes from their pages.
    offset = e.sub(offset, e.mul(w.firstRow, w.rowStride));
  }
  w.pointer = e.address(arg.pointer, offset, getMemoryType(w.element));

  auto covers = [&](Value begin, Value end, int64_t extent) {
    Value length = e.sub(end, begin);
    return arith::CmpIOp::create(builder, e.loc, arith::CmpIPredicate::eq,
                                 length, e.i64(extent));
  };
  w.hasFullCols = covers(w.colBegin, w.colEnd, w.cols);
  w.isFull = arith::AndIOp::create(
      builder, e.loc, covers(w.rowBegin, w.rowEnd, w.rows), w.hasFullCols);
  // Rows have no common stride.
  if (interleave > 1)
    w.isFull =
        arith::ConstantIntOp::create(builder, e.loc, /*value=*/0, /*width=*/1);
  return w;
}

void KernelLowering::zeroFill(Value buffer, Type element, int64_t count) {
  int64_t lanes = getNumLanes(count);
  Value zero = arith::ConstantOp::create(
      builder, e.loc, builder.getZeroAttr(VectorType::get({lanes}, element)));
  e.loop(e.i64(0), e.i64(count), lanes,
         [&](Value i) { e.store(zero, buffer, i); });
}

/// Covers the columns of a row that exist: by vectors where all of them do.
void KernelLowering::copyRow(
    const Window &w, Value row,
    function_ref<void(Value col, int64_t lanes)> copy) {
  auto branch = scf::IfOp::create(builder, e.loc, w.hasFullCols,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(branch.thenBlock());
  int64_t lanes = getNumLanes(w.cols);
  e.loop(e.i64(0), e.i64(w.cols), lanes, [&](Value col) { copy(col, lanes); });
  builder.setInsertionPointToStart(branch.elseBlock());
  e.loop(w.colBegin, w.colEnd, 1, [&](Value col) { copy(col, 0); });
}

Value KernelLowering::copyToRowMajor(const Window &w, Operation *op) {
  Type element = getScratchType(w.element);
  Value buffer = allocate(w.rows * w.cols, element, op);
  auto ifRagged =
      scf::IfOp::create(builder, e.loc, w.isFull, /*withElseRegion=*/true);
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(ifRagged.elseBlock());
    zeroFill(buffer, element, w.rows * w.cols);
  }
  e.loop(w.rowBegin, w.rowEnd, 1, [&](Value row) {
    Value start = w.getRowOffset(e, row);
    copyRow(w, row, [&](Value col, int64_t lanes) {
      Value from = e.add(start, col);
      Value to = e.add(e.mul(row, e.i64(w.cols)), col);
      Value value = e.load(w.pointer, from, getMemoryType(w.element), lanes);
      e.store(e.memoryToScratch(value, w.element), buffer, to);
    });
  });
  return buffer;
}

/// True if a store may change what `load` has read before `user` runs.
static bool mayBeOverwritten(LoadOp load, Operation *user) {
  if (load->getBlock() != user->getBlock())
    return true;
  for (Operation *op = load->getNextNode(); op && op != user;
       op = op->getNextNode())
    if (op->walk([](StoreOp) {
            return WalkResult::interrupt();
          }).wasInterrupted())
      return true;
  return false;
}

void KernelLowering::emitLoad(LoadOp op) {
  Value tile = op.getResult();
  RankedTensorType type = getType(tile);
  bool isOperandB = false, isOther = false, canReadDirectly = true;
  for (OpOperand &use : tile.getUses()) {
    auto mma = dyn_cast<MmaOp>(use.getOwner());
    if (mma && use.get() == mma.getB() &&
        use.getOperandNumber() == mma.getBMutable().getOperandNumber()) {
      isOperandB = true;
      canReadDirectly &= !mayBeOverwritten(op, mma);
    } else {
      isOther = true;
    }
  }
  canReadDirectly &= type.getElementType().isF32();

  Window w =
      emitWindow(op.getSource(), op.getIndices(), type, op.getInterleave());
  canReadDirectly &= !w.pages;
  if (isOperandB && !canReadDirectly)
    uniforms[tile] = {copyToRowMajor(w, op), e.i64(w.cols)};
  if (isOperandB && canReadDirectly) {
    auto branch = scf::IfOp::create(
        builder, e.loc, TypeRange{w.pointer.getType(), builder.getI64Type()},
        w.isFull,
        /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(branch.thenBlock());
    scf::YieldOp::create(builder, e.loc, {w.pointer, w.rowStride});
    builder.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(builder, e.loc,
                         {copyToRowMajor(w, op), e.i64(w.cols)});
    uniforms[tile] = {branch.getResult(0), branch.getResult(1)};
  }
  if (!isOther)
    return;

  if (type.getRank() == 1 || !lanesAreRows) {
    buffers[tile] = copyToRowMajor(w, op);
    return;
  }
  buffers[tile] = copyToLanes(w, type, op);
}

/// Copies a window to scratch memory with rows along the lanes: by square
/// blocks that are transposed in registers, or element by element where the
/// window is ragged.
Value KernelLowering::copyToLanes(const Window &w, RankedTensorType type,
                                  Operation *op) {
  Value buffer = allocateTile(type, op);
  Type element = getScratchType(w.element), memory = getMemoryType(w.element);
  auto branch = scf::IfOp::create(builder, e.loc, w.isFull,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(branch.thenBlock());
  forEachSquare(type, [&](Value row, Value col, int64_t size) {
    SmallVector<Value> vectors;
    for (int64_t i = 0; i < size; ++i) {
      Value at = e.add(w.getRowOffset(e, e.add(row, e.i64(i))), col);
      vectors.push_back(
          e.memoryToScratch(e.load(w.pointer, at, memory, size), w.element));
    }
    e.transpose(vectors);
    for (auto [i, vector] : llvm::enumerate(vectors))
      e.store(vector, buffer,
              getElementOffset(type, row, e.add(col, e.i64(i))));
  });

  builder.setInsertionPointToStart(branch.elseBlock());
  zeroFill(buffer, element, w.rows * w.cols);
  e.loop(w.rowBegin, w.rowEnd, 1, [&](Value row) {
    Value start = w.getRowOffset(e, row);
    e.loop(w.colBegin, w.colEnd, 1, [&](Value col) {
      Value from = e.add(start, col);
      e.store(e.memoryToScratch(e.load(w.pointer, from, memory, 0), w.element),
              buffer, getElementOffset(type, row, col));
    });
  });
  return buffer;
}

/// Covers a tile whose rows are lanes by squares no larger than a register.
void KernelLowering::forEachSquare(
    RankedTensorType type,
    function_ref<void(Value row, Value col, int64_t size)> body) {
  int64_t size = std::min({getNumLanes(type.getDimSize(0)),
                           getNumLanes(type.getDimSize(1)), maxLanes / 2});
  e.loop(e.i64(0), e.i64(type.getDimSize(0)), size, [&](Value row) {
    e.loop(e.i64(0), e.i64(type.getDimSize(1)), size,
           [&](Value col) { body(row, col, size); });
  });
}

void KernelLowering::emitStore(StoreOp op) {
  RankedTensorType type = getType(op.getValue());
  Window w =
      emitWindow(op.getDest(), op.getIndices(), type, op.getInterleave());
  Value buffer = materialize(op.getValue(), op);
  Type element = getScratchType(w.element);
  auto copy = [&](Value row, Value col, int64_t lanes) {
    // A tile of rank 1 has one row, or one column.
    Value element0 = type.getRank() == 1 && w.cols == 1 ? row : col;
    Value value =
        e.load(buffer, getElementOffset(type, row, element0), element, lanes);
    e.store(e.scratchToMemory(value, w.element), w.pointer,
            e.add(w.getRowOffset(e, row), col));
  };
  if (type.getRank() == 1 || !lanesAreRows) {
    e.loop(w.rowBegin, w.rowEnd, 1, [&](Value row) {
      copyRow(w, row, [&](Value col, int64_t lanes) { copy(row, col, lanes); });
    });
    return;
  }
  auto branch = scf::IfOp::create(builder, e.loc, w.isFull,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(branch.thenBlock());
  forEachSquare(type, [&](Value row, Value col, int64_t size) {
    SmallVector<Value> vectors;
    for (int64_t i = 0; i < size; ++i)
      vectors.push_back(
          e.load(buffer, getElementOffset(type, row, e.add(col, e.i64(i))),
                 element, size));
    e.transpose(vectors);
    for (auto [i, vector] : llvm::enumerate(vectors))
      e.store(e.scratchToMemory(vector, w.element), w.pointer,
              e.add(e.mul(e.add(row, e.i64(i)), w.rowStride), col));
  });
  builder.setInsertionPointToStart(branch.elseBlock());
  e.loop(w.rowBegin, w.rowEnd, 1, [&](Value row) {
    e.loop(w.colBegin, w.colEnd, 1, [&](Value col) { copy(row, col, 0); });
  });
}

//===----------------------------------------------------------------------===//
// Gathers
//===----------------------------------------------------------------------===//

/// The type to read `element` as: 16-bit floats, which not every CPU has
/// registers for, as integers.
static Type getGatherType(Type element) {
  if (element.isF16() || element.isBF16())
    return IntegerType::get(element.getContext(), 16);
  return getMemoryType(element);
}

/// `value`, of type getGatherType(element), as `element`.
static Value convertGathered(Emitter &e, Value value, Type element) {
  Type type = element;
  if (auto vector = dyn_cast<VectorType>(value.getType()))
    type = VectorType::get(vector.getShape(), element);
  if (value.getType() == type)
    return value;
  if (element.isInteger(1))
    return arith::TruncIOp::create(e.b, e.loc, type, value);
  return arith::BitcastOp::create(e.b, e.loc, type, value);
}

namespace {
/// The element that some of a gather's indices lead to, and whether it exists
/// (null: it does).
struct GatherPosition {
  Value offset, exists;

  void move(Emitter &e, Value index, Value size, Value stride,
            bool isInBounds) {
    offset = e.add(offset, e.mul(index, stride));
    if (isInBounds)
      return;
    // One unsigned comparison covers negative indices.
    Value inside = arith::CmpIOp::create(e.b, e.loc, arith::CmpIPredicate::ult,
                                         index, size);
    exists = exists ? e.b.createOrFold<arith::AndIOp>(e.loc, exists, inside)
                    : inside;
  }
};
} // namespace

/// The position by the indices that are the same for all elements.
static GatherPosition moveByScalars(Emitter &e, GatherOp op,
                                    const MemRefArg &arg,
                                    const IRMapping &scalars) {
  GatherPosition position = {e.i64(0), Value()};
  for (auto [dim, index] : llvm::enumerate(op.getIndices()))
    if (!isTile(index))
      position.move(e, e.toI64(scalars.lookup(index)), arg.sizes[dim],
                    arg.strides[dim],
                    llvm::is_contained(op.getInBounds(), int64_t(dim)));
  return position;
}

void KernelLowering::emitGather(GatherOp op) {
  const MemRefArg &arg = memrefs[op.getSource()];
  GatherPosition position = moveByScalars(e, op, arg, scalars);
  Type element = op.getType(), memory = getGatherType(element);
  auto read = [&] {
    return convertGathered(e, e.load(arg.pointer, position.offset, memory, 0),
                           element);
  };
  if (!position.exists)
    return scalars.map(op.getResult(), read());
  auto branch = scf::IfOp::create(builder, e.loc, TypeRange{element},
                                  position.exists, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(builder, e.loc, read());
  builder.setInsertionPointToStart(branch.elseBlock());
  Value zero =
      arith::ConstantOp::create(builder, e.loc, builder.getZeroAttr(element));
  scf::YieldOp::create(builder, e.loc, zero);
  scalars.map(op.getResult(), branch.getResult(0));
}

void KernelLowering::emitStoreElement(StoreElementOp op) {
  const MemRefArg &arg = memrefs[op.getDest()];
  GatherPosition position = {e.i64(0), Value()};
  for (auto [dim, index] : llvm::enumerate(op.getIndices()))
    position.move(e, e.toI64(scalars.lookup(index)), arg.sizes[dim],
                  arg.strides[dim], /*isInBounds=*/false);
  auto branch = scf::IfOp::create(builder, e.loc, position.exists,
                                  /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(branch.thenBlock());
  e.store(scalars.lookup(op.getValue()), arg.pointer, position.offset);
}

/// The elements at one place of the loop nest.
Value KernelLowering::emitGather(GatherOp op, Point &point) {
  const MemRefArg &arg = memrefs[op.getSource()];
  int64_t lanes = point.geometry.lanes;
  GatherPosition common = moveByScalars(e, op, arg, scalars);
  auto vectorOf = [&](Type type) { return VectorType::get({lanes}, type); };
  Type element = getType(op.getResult()).getElementType();
  Type memory = getGatherType(element);

  GatherPosition position = {e.splat(e.i64(0), lanes), Value()};
  if (common.exists)
    position.exists = e.splat(common.exists, lanes);
  for (auto [dim, index] : llvm::enumerate(op.getIndices())) {
    if (!isTile(index))
      continue;
    Value wide = arith::ExtSIOp::create(
        builder, e.loc, vectorOf(builder.getI64Type()), evaluate(index, point));
    position.move(e, wide, e.splat(arg.sizes[dim], lanes),
                  e.splat(arg.strides[dim], lanes),
                  llvm::is_contained(op.getInBounds(), int64_t(dim)));
  }
  if (!position.exists)
    position.exists = e.splat(
        arith::ConstantIntOp::create(builder, e.loc, 1, /*width=*/1), lanes);
  Value base = e.address(arg.pointer, common.offset, memory);
  Value pointers =
      LLVM::GEPOp::create(builder, e.loc, vectorOf(base.getType()), memory,
                          base, ArrayRef<LLVM::GEPArg>{position.offset});
  Value zero = arith::ConstantOp::create(builder, e.loc,
                                         builder.getZeroAttr(vectorOf(memory)));
  unsigned alignment = memory.getIntOrFloatBitWidth() / 8;
  Value gathered = LLVM::masked_gather::create(
      builder, e.loc, vectorOf(memory), pointers, position.exists, zero,
      builder.getI32IntegerAttr(alignment));
  return convertGathered(e, gathered, element);
}
