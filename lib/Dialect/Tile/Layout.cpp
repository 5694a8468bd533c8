//===- Layout.cpp - Which thread holds which element of a tile ------------===//

#include "attn/Dialect/Tile/Layout.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::tile;

static constexpr int64_t kWarpSize = 32;

int64_t ThreadTerm::evaluate(int64_t thread) const {
  int64_t value = thread / div;
  return (mod ? value % mod : value) * mul;
}

TilePosition RegisterLayout::getBase(int64_t thread) const {
  TilePosition base;
  for (const ThreadTerm &term : rowTerms)
    base.row += term.evaluate(thread);
  for (const ThreadTerm &term : colTerms)
    base.col += term.evaluate(thread);
  return base;
}

TilePosition RegisterLayout::getPosition(int64_t thread,
                                         int64_t element) const {
  TilePosition base = getBase(thread);
  return {base.row + offsets[element].row, base.col + offsets[element].col};
}

/// Numbers the distinct values in order of appearance.
static SmallVector<int64_t> numberDistinct(ArrayRef<int64_t> values) {
  llvm::MapVector<int64_t, int64_t> numbers;
  SmallVector<int64_t> result;
  for (int64_t value : values)
    result.push_back(
        numbers.try_emplace(value, static_cast<int64_t>(numbers.size()))
            .first->second);
  return result;
}

SmallVector<int64_t> RegisterLayout::getRowIndices() const {
  return numberDistinct(
      llvm::map_to_vector(offsets, [](TilePosition p) { return p.row; }));
}

SmallVector<int64_t> RegisterLayout::getColIndices() const {
  return numberDistinct(
      llvm::map_to_vector(offsets, [](TilePosition p) { return p.col; }));
}

/// The offsets of [row repeat][col repeat][row half][vector] elements.
static SmallVector<TilePosition>
enumerateOffsets(int64_t rowRepeats, int64_t rowStep, int64_t colRepeats,
                 int64_t colStep, int64_t halves, int64_t vector) {
  SmallVector<TilePosition> offsets;
  for (int64_t row = 0; row < rowRepeats; ++row)
    for (int64_t col = 0; col < colRepeats; ++col)
      for (int64_t half = 0; half < halves; ++half)
        for (int64_t v = 0; v < vector; ++v)
          offsets.push_back({row * rowStep + 8 * half, col * colStep + v});
  return offsets;
}

/// The distinct rows of rank-2 offsets, as the offsets of a #tile.row value;
/// the same for columns.
static SmallVector<TilePosition> project(ArrayRef<TilePosition> offsets,
                                         int64_t TilePosition::*coordinate) {
  SmallVector<TilePosition> result;
  for (const TilePosition &offset : offsets) {
    TilePosition kept;
    kept.*coordinate = offset.*coordinate;
    if (!llvm::is_contained(result, kept))
      result.push_back(kept);
  }
  return result;
}

FailureOr<RegisterLayout>
RegisterLayout::get(RankedTensorType type,
                    function_ref<InFlightDiagnostic()> emitError) {
  Attribute encoding = type.getEncoding();
  bool isRow = isa_and_present<RowLayoutAttr>(encoding);
  bool isCol = isa_and_present<ColLayoutAttr>(encoding);
  if (auto row = dyn_cast_if_present<RowLayoutAttr>(encoding))
    encoding = row.getParent();
  else if (auto col = dyn_cast_if_present<ColLayoutAttr>(encoding))
    encoding = col.getParent();
  if (auto operand = dyn_cast_if_present<OperandLayoutAttr>(encoding))
    encoding = operand.getParent();

  // A row (column) value sees only that dimension of its parent's shape.
  ArrayRef<int64_t> shape = type.getShape();
  bool isFlat = type.getRank() == 1 && !isRow && !isCol;
  RegisterLayout layout;
  if (auto mma = dyn_cast_if_present<MmaLayoutAttr>(encoding)) {
    int64_t rowStep = 16 * mma.getWarps();
    int64_t rows = isCol ? rowStep : shape[0];
    int64_t cols = isCol ? shape[0] : isRow ? 8 : shape.back();
    if (isFlat || rows % rowStep || cols % 8) {
      return emitError() << "tile " << type << " doesn't split into m16 x n8 "
                         << "blocks over " << mma.getWarps()
                         << " warps: rows must be a multiple of " << rowStep
                         << " and columns of 8";
    }
    layout.rowTerms = {{kWarpSize, 0, 16}, {4, 8, 1}};
    layout.colTerms = {{1, 4, 2}};
    layout.threadsPerRow = 4;
    layout.vector = 2;
    layout.offsets =
        enumerateOffsets(rows / rowStep, rowStep, cols / 8, 8, 2, 2);
  } else if (auto blocked = dyn_cast_if_present<BlockedLayoutAttr>(encoding)) {
    int64_t threads = kWarpSize * blocked.getWarps();
    int64_t threadsPerRow = isFlat ? threads : blocked.getThreadsPerRow();
    int64_t rowStep = isFlat ? 1 : threads / threadsPerRow;
    int64_t colStep = threadsPerRow * blocked.getVector();
    int64_t rows = isFlat || isCol ? 1 : shape[0];
    int64_t cols = isRow ? colStep : shape.back();
    if (cols % colStep) {
      return emitError() << "tile " << type << " doesn't split into rows of "
                         << colStep << " elements";
    }
    if (!isFlat)
      layout.rowTerms = {{threadsPerRow, 0, 1}};
    layout.colTerms = {{1, isFlat ? 0 : threadsPerRow, blocked.getVector()}};
    layout.threadsPerRow = threadsPerRow;
    layout.vector = blocked.getVector();
    layout.exceedsRows = !isFlat && rows % rowStep != 0;
    layout.offsets =
        enumerateOffsets(llvm::divideCeil(rows, rowStep), rowStep,
                         cols / colStep, colStep, 1, blocked.getVector());
  } else {
    return emitError() << "tile " << type
                       << " has no layout in registers; run "
                          "tile-assign-layouts first";
  }

  if (isRow) {
    layout.offsets = project(layout.offsets, &TilePosition::row);
    layout.vector = 1;
  } else if (isCol) {
    layout.offsets = project(layout.offsets, &TilePosition::col);
  }
  return layout;
}

SharedSwizzle SharedSwizzle::get(RankedTensorType type) {
  int64_t rowBytes = type.getShape().back() * type.getElementTypeBitWidth() / 8;
  // 8 rows' chunks of one column must fall into the 8 different 16-byte
  // columns of the 32 banks. Rows of a multiple of 128 bytes all start in the
  // same bank and need 3 bits of phase; with half of that, neighbouring rows
  // already differ, and so on.
  int64_t chunks = rowBytes / kChunkBytes;
  for (int64_t shift = 0; shift < 3; ++shift) {
    int64_t group = 8 >> shift;
    if (chunks % group == 0)
      return {rowBytes, shift, group - 1};
  }
  return {rowBytes, 0, 0};
}
