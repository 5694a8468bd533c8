//===- ColumnBits.cpp - Sets of columns as the bits of words --------------===//
//
// What a mask asks of column numbers is the same few intervals of columns for
// all elements of a row. A thread has the visible ones of its columns as bits,
// which cost a few instructions a row, and which ptxas moves to predicates
// seven at a time. A comparison, and a select for each condition, would cost
// every element.
//
//===----------------------------------------------------------------------===//

#include "KernelLowering.h"
#include "attn/Dialect/Tile/Layout.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::tile;

static constexpr int64_t kWordBits = 32;

static RankedTensorType getTileType(Value value) {
  return cast<RankedTensorType>(value.getType());
}

static bool isBitwise(Operation *op) {
  return isa<arith::AndIOp, arith::OrIOp, arith::XOrIOp>(op);
}

/// Whether `op` takes the words of a set, not a predicate of each element.
static bool takesWords(Operation *op) {
  return isBitwise(op) || (isa<arith::SelectOp>(op) &&
                           getElementTypeOrSelf(op->getResult(0)).isF32());
}

/// The columns of each of a thread's rows, relative to its first one; empty if
/// they aren't pairs of neighbours in every 8, as those of matrix instructions
/// are, or are less than `minColumns`.
static SmallVector<SmallVector<int64_t>> getRows(const RegisterLayout &layout,
                                                 int64_t minColumns) {
  SmallVector<SmallVector<int64_t>> rows;
  for (auto [row, offset] :
       llvm::zip_equal(layout.getRowIndices(), layout.getOffsets())) {
    if (row >= static_cast<int64_t>(rows.size()))
      rows.resize(row + 1);
    rows[row].push_back(offset.col);
  }
  for (ArrayRef<int64_t> columns : rows) {
    if (static_cast<int64_t>(columns.size()) < minColumns)
      return {};
    for (auto [index, column] : llvm::enumerate(columns))
      if (column != static_cast<int64_t>(index / 2 * 8 + index % 2))
        return {};
  }
  return rows;
}

/// Which columns are at most `last`, as words.
static SmallVector<Value> getColumnsUpTo(ThreadEmitter &emit, Value last,
                                         int64_t numColumns) {
  // Of the columns 0, 8, 16, ... and of 1, 9, 17, ...
  auto count = [&](int64_t bias) -> Value {
    return emit.create<LLVM::AShrOp>(emit.add(last, emit.i32(bias)),
                                     emit.i32(3));
  };
  Value total = emit.add(count(8), count(7));
  SmallVector<Value> words;
  for (int64_t first = 0; first < numColumns; first += kWordBits) {
    Value own = total;
    if (first > 0)
      own = emit.create<LLVM::SMaxOp>(emit.sub(total, emit.i32(first)),
                                      emit.i32(0));
    words.push_back(emit.intrinsic("llvm.nvvm.bmsk.clamp", emit.getI32Type(),
                                   {emit.i32(0), own}));
  }
  return words;
}

/// The words of an order between column numbers and bounds of rows; empty if
/// the layout has none. Bounds are moved next to the tile first, so that the
/// difference can't overflow.
KernelLowering::ColumnBits KernelLowering::compareColumnBits(arith::CmpIOp op) {
  RankedTensorType type = getTileType(op.getLhs());
  RegisterLayout layout = getLayout(type);
  SmallVector<SmallVector<int64_t>> rows = getRows(layout, getMinBitColumns());
  if (rows.empty())
    return {};
  SmallVector<Value> bounds(rows.size());
  for (auto [row, bound] :
       llvm::zip_equal(layout.getRowIndices(), getFragment(op.getRhs()))) {
    if (bounds[row] && bounds[row] != bound)
      return {};
    bounds[row] = bound;
  }
  arith::CmpIPredicate predicate = op.getPredicate();
  const bool isBelow = predicate == arith::CmpIPredicate::sle ||
                       predicate == arith::CmpIPredicate::slt;
  // The last column that is visible or, of those before a bound, hidden.
  const bool isPrevious = predicate == arith::CmpIPredicate::slt ||
                          predicate == arith::CmpIPredicate::sge;
  Value base = emit.evaluate(layout.getColTerms(), thread);
  ColumnBits bits;
  for (auto [bound, columns] : llvm::zip_equal(bounds, rows)) {
    Value last =
        emit.create<LLVM::SMaxOp>(bound, emit.i32(isPrevious ? 0 : -1));
    last = emit.create<LLVM::SMinOp>(
        last, emit.i32(type.getDimSize(1) - (isPrevious ? 0 : 1)));
    last = emit.sub(last, emit.add(base, emit.i32(isPrevious ? 1 : 0)));
    SmallVector<Value> words =
        getColumnsUpTo(emit, last, static_cast<int64_t>(columns.size()));
    if (!isBelow)
      for (Value &word : words)
        word = emit.xorBits(word, emit.i32(-1));
    bits.push_back(std::move(words));
  }
  return bits;
}

/// The words of a combination of two such sets; empty if `op` is none.
KernelLowering::ColumnBits KernelLowering::combineColumnBits(Operation *op) {
  if (!isBitwise(op))
    return {};
  auto a = columnBits.find(op->getOperand(0));
  auto b = columnBits.find(op->getOperand(1));
  if (a == columnBits.end() || b == columnBits.end())
    return {};
  auto combine = [&](Value x, Value y) {
    return isa<arith::AndIOp>(op)  ? emit.andBits(x, y)
           : isa<arith::OrIOp>(op) ? emit.orBits(x, y)
                                   : emit.xorBits(x, y);
  };
  ColumnBits bits;
  for (auto [rowA, rowB] : llvm::zip_equal(a->second, b->second)) {
    SmallVector<Value> &words = bits.emplace_back();
    for (auto [wordA, wordB] : llvm::zip_equal(rowA, rowB))
      words.push_back(combine(wordA, wordB));
  }
  return bits;
}

/// Binds the result of `op` to `bits`; false if there are none.
bool KernelLowering::keepColumnBits(Operation *op, ColumnBits bits) {
  if (bits.empty())
    return false;
  Value result = op->getResult(0);
  columnBits[result] = std::move(bits);
  if (!llvm::all_of(result.getUsers(), takesWords))
    fragments[result] = expandColumnBits(result);
  return true;
}

/// A predicate of each element.
Fragment KernelLowering::expandColumnBits(Value tile) {
  const ColumnBits &bits = columnBits.at(tile);
  RegisterLayout layout = getLayout(getTileType(tile));
  SmallVector<int64_t> counts(bits.size());
  Fragment result;
  for (int64_t row : layout.getRowIndices()) {
    int64_t index = counts[row]++;
    result.push_back(
        emit.testBit(bits[row][index / kWordBits], index % kWordBits));
  }
  return result;
}

/// A select by such a set, row by row: the assembler knows what to do with the
/// bits of one word at a time.
bool KernelLowering::lowerSelectByColumnBits(Operation *op) {
  auto it = columnBits.find(op->getOperand(0));
  if (!isa<arith::SelectOp>(op) || it == columnBits.end() || !takesWords(op))
    return false;
  Fragment a = getFragment(op->getOperand(1));
  Fragment b = getFragment(op->getOperand(2));
  SmallVector<int64_t> rows =
      getLayout(getTileType(op->getResult(0))).getRowIndices();
  Fragment result(rows.size());
  for (auto [row, words] : llvm::enumerate(it->second)) {
    int64_t index = 0;
    for (auto [element, itsRow] : llvm::enumerate(rows)) {
      if (itsRow != static_cast<int64_t>(row))
        continue;
      result[element] = emit.selectByBit(
          words[index / kWordBits], index % kWordBits, a[element], b[element]);
      ++index;
    }
  }
  fragments[op->getResult(0)] = std::move(result);
  return true;
}
