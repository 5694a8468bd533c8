//===- TileMap.cpp - What a kernel does with each tile --------------------===//

#include "attn/Analysis/TileMap.h"
#include "attn/Analysis/ScalarInterpreter.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/Parallel.h"

using namespace mlir;
using namespace mlir::tile;

/// A map is at most so many cells wide and high.
static constexpr int64_t kMaxCells = 64;

//===----------------------------------------------------------------------===//
// Evaluation
//===----------------------------------------------------------------------===//

/// Sets what a kernel may compute in its own way; a constant stays.
static void override(ScalarInterpreter &interpreter, Value value,
                     int64_t constant) {
  if (!matchPattern(value, m_Constant()))
    interpreter.set(value, constant);
}

/// Sets the sizes of q, k, v and o, which are the kernel's first arguments. Of
/// several that are one tensor it may read any.
static void setSizes(ScalarInterpreter &interpreter, KernelOp kernel,
                     const TileMapPoint &point) {
  kernel.walk([&](memref::DimOp dim) {
    auto arg = dyn_cast<BlockArgument>(dim.getSource());
    std::optional<int64_t> index = dim.getConstantIndex();
    if (!arg || arg.getArgNumber() > 3 || !index)
      return;
    const bool isKey = arg.getArgNumber() == 1 || arg.getArgNumber() == 2;
    if (*index == 0)
      interpreter.set(dim, point.batch + 1);
    else if (*index == 2)
      interpreter.set(dim, isKey ? point.keyLength : point.queryLength);
  });
}

/// The load of the query tile, the kernel's first: its indices are batch, head,
/// first query, 0.
static LoadOp findQueryLoad(KernelOp kernel) {
  auto loads = kernel.getBody().getOps<LoadOp>();
  return loads.empty() ? LoadOp() : *loads.begin();
}

static KVLoopOp findLoop(KernelOp kernel) {
  KVLoopOp found;
  kernel.walk([&](KVLoopOp loop) { found = loop; });
  return found;
}

/// The row of the next query tile, by its elements.
LogicalResult TileMap::addListedRow(const TileMapData &data) {
  const int64_t first = rows.size() * blockM;
  const int64_t numQueries = std::min(blockM, point.queryLength - first);
  std::vector<FailureOr<llvm::BitVector>> visible(numQueries, failure());
  auto evaluate = [&](size_t i) {
    visible[i] = data.getVisibleKeys(first + i);
  };
  // One error is enough.
  evaluate(0);
  if (failed(visible[0]))
    return failure();
  llvm::parallelFor(1, numQueries, evaluate);
  std::vector<int64_t> counts(numColumns);
  for (const FailureOr<llvm::BitVector> &keys : visible) {
    if (failed(keys))
      return failure();
    for (unsigned key : keys->set_bits())
      ++counts[key / blockN];
  }
  Row row;
  for (int64_t count : counts)
    row.listed.push_back(count == 0                     ? Kind::Skipped
                         : count == numQueries * blockN ? Kind::Full
                                                        : Kind::Partial);
  rows.push_back(std::move(row));
  return success();
}

FailureOr<TileMap> TileMap::compute(KernelOp kernel, const TileMapPoint &point,
                                    const TileMapData &data) {
  KVLoopOp loop = findLoop(kernel);
  LoadOp query = findQueryLoad(kernel);
  if (!loop || !query)
    return kernel.emitError("is no attention kernel with a tile.kv_loop");
  TileMap map;
  map.name = kernel.getSymName().str();
  map.point = point;
  map.blockM = cast<ShapedType>(query.getType()).getDimSize(0);
  map.blockN = loop.getStep();
  map.numColumns = llvm::divideCeil(point.keyLength, map.blockN);
  const int64_t numRows = llvm::divideCeil(point.queryLength, map.blockM);
  // A map of nothing has no cells.
  map.rowsInCell = std::max<int64_t>(llvm::divideCeil(numRows, kMaxCells), 1);
  map.columnsInCell =
      std::max<int64_t>(llvm::divideCeil(map.numColumns, kMaxCells), 1);

  if (loop.getTiles()) {
    const int64_t numPairs = point.queryLength * point.keyLength;
    if (numPairs > data.maxPairs)
      return emitError(loop.getLoc(),
                       "a tile map of this mask evaluates it for "
                       "every query and key, at most ")
             << data.maxPairs << " pairs, not " << numPairs
             << "; give shorter lengths";
    for (int64_t i = 0; i < numRows; ++i)
      if (failed(map.addListedRow(data)))
        return failure();
    return map;
  }

  // Which program takes the tile is the launch's business.
  ScalarInterpreter launch;
  launch.setMemory(data.read);
  setSizes(launch, kernel, point);
  ValueRange indices = query.getIndices();
  override(launch, indices[0], point.batch);
  override(launch, indices[1], point.head);
  for (int64_t i = 0; i < numRows; ++i) {
    ScalarInterpreter interpreter = launch;
    override(interpreter, indices[2], i * map.blockM);
    int64_t bounds[4];
    Value values[] = {loop.getBegin(), loop.getFullBegin(), loop.getFullEnd(),
                      loop.getEnd()};
    for (auto [bound, value] : llvm::zip_equal(bounds, values)) {
      FailureOr<int64_t> key = interpreter.evaluate(value);
      if (failed(key))
        return failure();
      bound = llvm::divideCeil(*key, map.blockN);
    }
    map.rows.push_back({bounds[0], bounds[1], bounds[2], bounds[3]});
  }
  return map;
}

//===----------------------------------------------------------------------===//
// Tiles and cells
//===----------------------------------------------------------------------===//

TileMap::Kind TileMap::Row::classify(int64_t keyTile) const {
  if (!listed.empty())
    return listed[keyTile];
  if (keyTile < begin || keyTile >= end)
    return Kind::Skipped;
  return keyTile >= fullBegin && keyTile < fullEnd ? Kind::Full : Kind::Partial;
}

int64_t TileMap::Row::countVisited() const {
  if (!listed.empty())
    return listed.size() - llvm::count(listed, Kind::Skipped);
  return std::max<int64_t>(0, end - begin);
}

int64_t TileMap::Row::countFull() const {
  return listed.empty() ? fullEnd - fullBegin : llvm::count(listed, Kind::Full);
}

TileMap::Counts TileMap::count() const {
  Counts counts;
  for (const Row &row : rows) {
    const int64_t visited = row.countVisited(), full = row.countFull();
    counts.skipped += numColumns - visited;
    counts.full += full;
    counts.partial += visited - full;
  }
  return counts;
}

double TileMap::getImbalance() const {
  int64_t most = 0, total = 0;
  for (const Row &row : rows) {
    const int64_t visited = row.countVisited();
    most = std::max(most, visited);
    total += visited;
  }
  return total == 0 ? 1 : double(most) * rows.size() / total;
}

int64_t TileMap::getNumCellRows() const {
  return llvm::divideCeil(int64_t(rows.size()), rowsInCell);
}

int64_t TileMap::getNumCellColumns() const {
  return llvm::divideCeil(numColumns, columnsInCell);
}

TileMap::Kind TileMap::getCell(int64_t cellRow, int64_t cellColumn) const {
  const int64_t row = cellRow * rowsInCell;
  const int64_t column = cellColumn * columnsInCell;
  const Kind kind = rows[row].classify(column);
  for (const Row &next : ArrayRef(rows).slice(row).take_front(rowsInCell))
    for (int64_t j = column; j < std::min(column + columnsInCell, numColumns);
         ++j)
      if (next.classify(j) != kind)
        return Kind::Partial;
  return kind;
}

//===----------------------------------------------------------------------===//
// Output
//===----------------------------------------------------------------------===//

std::string TileMap::getTitle() const {
  return llvm::formatv("{0}: {1} queries x {2} keys, batch {3}, head {4}, "
                       "tiles of {5} x {6}",
                       name, point.queryLength, point.keyLength, point.batch,
                       point.head, blockM, blockN);
}

std::string TileMap::getScale() const {
  if (rowsInCell == 1 && columnsInCell == 1)
    return "";
  return llvm::formatv("each cell stands for {0} x {1} tiles; / also where "
                       "they differ",
                       rowsInCell, columnsInCell);
}

static double getPercent(int64_t part, int64_t total) {
  return total == 0 ? 0 : 100.0 * part / total;
}

std::string TileMap::getSummary() const {
  Counts counts = count();
  const int64_t total = counts.getTotal();
  return llvm::formatv(
      "{0} tiles: {1} skipped ({2:f1}%), {3} partial ({4:f1}%), {5} full "
      "({6:f1}%)",
      total, counts.skipped, getPercent(counts.skipped, total), counts.partial,
      getPercent(counts.partial, total), counts.full,
      getPercent(counts.full, total));
}

std::vector<std::string> TileMap::getCells() const {
  std::vector<std::string> cells(getNumCellRows());
  for (auto [i, row] : llvm::enumerate(cells))
    for (int64_t j = 0; j < getNumCellColumns(); ++j)
      row += StringRef("./#")[static_cast<unsigned>(getCell(i, j))];
  return cells;
}

void TileMap::print(llvm::raw_ostream &os) const {
  os << getTitle() << "\n\n";
  for (const std::string &row : getCells())
    os << row << '\n';
  os << "\nquery tiles down, key tiles across: . skipped, / partial (evaluates "
        "the mask), # full (doesn't)\n";
  if (std::string scale = getScale(); !scale.empty())
    os << scale << '\n';
  Counts counts = count();
  const int64_t visited = counts.partial + counts.full;
  os << getSummary() << '\n'
     << llvm::formatv("work saved: {0:f1}% of the tiles' products; the mask is "
                      "evaluated in {1:f1}% of what is left\n",
                      getPercent(counts.skipped, counts.getTotal()),
                      getPercent(counts.partial, visited));
}

void TileMap::printSVG(llvm::raw_ostream &os) const {
  constexpr int64_t kCell = 8, kTop = 24, kMargin = 8, kMinWidth = 680;
  const int64_t bottom = kTop + getNumCellRows() * kCell;
  const int64_t width =
      std::max(kMinWidth, getNumCellColumns() * kCell + 2 * kMargin);
  os << llvm::formatv("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" "
                      "height=\"{1}\" viewBox=\"0 0 {0} {1}\">\n",
                      width, bottom + 64);
  os << "<style>\n"
        "  text { font: 12px sans-serif; fill: #222 }\n"
        "  .skipped { fill: #ddd } .partial { fill: #e08a1e }"
        " .full { fill: #2f6fb5 }\n"
        "  @media (prefers-color-scheme: dark) {\n"
        "    text { fill: #ddd } .skipped { fill: #444 }\n"
        "  }\n"
        "</style>\n";
  auto printText = [&](int64_t x, int64_t y, StringRef text) {
    os << llvm::formatv("<text x=\"{0}\" y=\"{1}\">{2}</text>\n", x, y, text);
  };
  auto printRect = [&](int64_t x, int64_t y, int64_t cells, Kind kind) {
    static constexpr StringLiteral kNames[] = {"skipped", "partial", "full"};
    os << llvm::formatv("<rect class=\"{0}\" x=\"{1}\" y=\"{2}\" "
                        "width=\"{3}\" height=\"{4}\"/>\n",
                        kNames[static_cast<unsigned>(kind)], x, y,
                        cells * kCell, kCell);
  };
  printText(kMargin, 16, getTitle());
  for (int64_t i = 0; i < getNumCellRows(); ++i)
    // One rectangle for each run of equal cells.
    for (int64_t j = 0, next; j < getNumCellColumns(); j = next) {
      const Kind kind = getCell(i, j);
      for (next = j + 1; next < getNumCellColumns(); ++next)
        if (getCell(i, next) != kind)
          break;
      printRect(kMargin + j * kCell, kTop + i * kCell, next - j, kind);
    }
  const int64_t legend = bottom + 20;
  printRect(kMargin, legend - kCell, 1, Kind::Skipped);
  printText(kMargin + 14, legend, "skipped");
  printRect(kMargin + 80, legend - kCell, 1, Kind::Partial);
  printText(kMargin + 94, legend, "partial");
  printRect(kMargin + 160, legend - kCell, 1, Kind::Full);
  printText(kMargin + 174, legend, "full");
  if (std::string scale = getScale(); !scale.empty())
    printText(kMargin + 220, legend, scale);
  printText(kMargin, legend + 22, getSummary());
  os << "</svg>\n";
}
