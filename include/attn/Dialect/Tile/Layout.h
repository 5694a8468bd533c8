//===- Layout.h - Which thread holds which element of a tile ----*- C++ -*-===//

#ifndef ATTN_DIALECT_TILE_LAYOUT_H
#define ATTN_DIALECT_TILE_LAYOUT_H

#include "attn/Dialect/Tile/IR/TileOps.h"
#include "llvm/ADT/SmallVector.h"

namespace mlir::tile {

/// A position in a tile. Rank-1 tiles use `row` under #tile.row and `col`
/// under #tile.col and #tile.blocked.
struct TilePosition {
  int64_t row = 0;
  int64_t col = 0;
  bool operator==(const TilePosition &other) const {
    return row == other.row && col == other.col;
  }
};

/// `(thread / div % mod) * mul`; a mod of 0 stands for no modulo.
struct ThreadTerm {
  int64_t div, mod, mul;
  int64_t evaluate(int64_t thread) const;
};

/// A layout in registers, applied to a shape. Element i of a thread lies at
/// base(thread) + offsets[i]: the base depends on the thread only and the
/// offsets on the element only, so that addresses and indices are one value
/// per thread plus constants.
class RegisterLayout {
public:
  /// The layout that encodes `type`, or a failure after an error through
  /// `emitError` where the shape doesn't fit.
  static FailureOr<RegisterLayout>
  get(RankedTensorType type, function_ref<InFlightDiagnostic()> emitError);

  ArrayRef<TilePosition> getOffsets() const { return offsets; }
  ArrayRef<ThreadTerm> getRowTerms() const { return rowTerms; }
  ArrayRef<ThreadTerm> getColTerms() const { return colTerms; }

  TilePosition getBase(int64_t thread) const;
  TilePosition getPosition(int64_t thread, int64_t element) const;

  /// For every element, which of the thread's distinct rows (columns) it is
  /// in: the element of the #tile.row (#tile.col) value that belongs to it.
  SmallVector<int64_t> getRowIndices() const;
  SmallVector<int64_t> getColIndices() const;

  /// Neighbouring threads that share a row: a power of two.
  int64_t getThreadsPerRow() const { return threadsPerRow; }
  /// Neighbouring elements of a thread that are neighbours in memory.
  int64_t getVector() const { return vector; }
  /// True if threads may lie below the last row of the tile.
  bool mayExceedRows() const { return exceedsRows; }

private:
  SmallVector<TilePosition> offsets;
  SmallVector<ThreadTerm> rowTerms, colTerms;
  int64_t threadsPerRow = 1;
  int64_t vector = 1;
  bool exceedsRows = false;
};

/// Which column of an 8-bit left operand under #tile.operand the matrix
/// instruction sees as its k `slot`: a thread's columns of two neighbouring n8
/// blocks are four neighbouring slots. Permutes every 16.
constexpr int64_t getOperandColumn(int64_t slot) {
  int64_t thread = slot / 4 % 4, block = slot / 2 % 2;
  return slot / 16 * 16 + 8 * block + 2 * thread + slot % 2;
}

/// #tile.shared applied to a tile.
struct SharedSwizzle {
  static constexpr int64_t kChunkBytes = 16;

  static SharedSwizzle get(RankedTensorType type);

  /// What is XORed to the chunk number in a row.
  int64_t getPhase(int64_t row) const { return (row >> shift) & mask; }
  /// Byte offset of a chunk.
  int64_t getOffset(int64_t row, int64_t chunk) const {
    return row * rowBytes + (chunk ^ getPhase(row)) * kChunkBytes;
  }

  int64_t rowBytes;
  /// Row `r` uses the phase `(r >> shift) & mask`.
  int64_t shift;
  int64_t mask;
};

} // namespace mlir::tile

#endif // ATTN_DIALECT_TILE_LAYOUT_H
