//===- TileMap.h - What a kernel does with each tile ------------*- C++ -*-===//

#ifndef ATTN_ANALYSIS_TILEMAP_H
#define ATTN_ANALYSIS_TILEMAP_H

#include "attn/Analysis/ScalarInterpreter.h"
#include "attn/Dialect/Tile/IR/TileOps.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/Support/raw_ostream.h"

namespace mlir::tile {

/// Which part of a launch a tile map shows.
struct TileMapPoint {
  int64_t queryLength, keyLength;
  int64_t batch = 0, head = 0;
};

/// What a kernel finds in memory.
struct TileMapData {
  ScalarInterpreter::ReadFn read;
  /// The keys that a query of the point sees, from any thread. Fails after an
  /// error.
  std::function<FailureOr<llvm::BitVector>(int64_t query)> getVisibleKeys;
  /// Pairs of a query and a key for which that may be asked.
  int64_t maxPairs;
};

/// The tiles of one batch and head of an attention kernel: which the kernel
/// skips, and in which it evaluates the mask.
class TileMap {
public:
  /// Lengths that a map is made for; each query tile is evaluated.
  static constexpr int64_t kMaxLength = int64_t(1) << 20;

  /// Evaluates the ranges that tile-split-kv-ranges gave to the kv_loop of
  /// `kernel`, or if it has a list of tiles, which are those of which something
  /// is visible, the mask itself. Fails after an error where that depends on
  /// memory of which `data` doesn't know.
  static FailureOr<TileMap> compute(KernelOp kernel, const TileMapPoint &point,
                                    const TileMapData &data);

  int64_t getNumQueryTiles() const { return rows.size(); }
  /// Of the tiles that a query tile visits, the greatest number over the mean;
  /// 1 where none is visited.
  double getImbalance() const;

  struct Counts {
    int64_t skipped = 0, partial = 0, full = 0;
    int64_t getTotal() const { return skipped + partial + full; }
  };
  /// Of the tiles of each kind.
  Counts count() const;

  /// Kernel, lengths and tiles in a line.
  std::string getTitle() const;
  /// What a cell stands for; empty if that is one tile.
  std::string getScale() const;
  /// A line of characters for each row of cells: `.` skipped, `/` partial, `#`
  /// full.
  std::vector<std::string> getCells() const;

  /// The cells and the counts.
  void print(llvm::raw_ostream &os) const;

  /// The same as a picture.
  void printSVG(llvm::raw_ostream &os) const;

private:
  enum class Kind { Skipped, Partial, Full };

  /// Key tiles of a query tile: those outside [begin, end) are skipped, those
  /// in [fullBegin, fullEnd) are full.
  struct Row {
    int64_t begin = 0, fullBegin = 0, fullEnd = 0, end = 0;
    /// Of every key tile, if they come from a list.
    std::vector<Kind> listed = {};

    Kind classify(int64_t keyTile) const;
    int64_t countVisited() const;
    int64_t countFull() const;
  };

  LogicalResult addListedRow(const TileMapData &data);

  /// The kind of all the tiles that a cell stands for; partial where they
  /// differ.
  Kind getCell(int64_t cellRow, int64_t cellColumn) const;
  int64_t getNumCellRows() const;
  int64_t getNumCellColumns() const;
  std::string getSummary() const;

  std::string name;
  TileMapPoint point;
  int64_t blockM, blockN;
  SmallVector<Row> rows;
  int64_t numColumns;
  /// Tiles that a cell stands for.
  int64_t rowsInCell, columnsInCell;
};

} // namespace mlir::tile

#endif // ATTN_ANALYSIS_TILEMAP_H
