//===- TileWork.h - What a fused kernel does with its tiles -----*- C++ -*-===//

#ifndef ATTN_RUNTIME_TILEWORK_H
#define ATTN_RUNTIME_TILEWORK_H

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace attn {

/// Which tiles of the mask a kernel skips, as a picture of characters.
struct MaskMap {
  /// What it is of.
  std::string title;
  /// Query tiles down, key tiles across: `.` skipped, `/` partial, which
  /// evaluates the mask, `#` full.
  std::vector<std::string> cells;
  /// What a cell stands for, if not one tile.
  std::string scale;
  /// Tiles, not cells.
  int64_t skipped = 0, partial = 0, full = 0;
};

/// The tiles of one batch and head, as all of a launch are taken to be.
struct TileWork {
  MaskMap map;
  int64_t numQueryTiles = 0;
  /// Of the tiles that a query tile visits, the greatest number over the mean.
  double imbalance = 1;

  /// What is left of FLOPs that count every tile: skipped ones compute nothing.
  int64_t countVisited(int64_t flops) const {
    const int64_t visited = map.partial + map.full;
    if (map.skipped == 0)
      return flops;
    return static_cast<int64_t>(static_cast<double>(flops) * visited /
                                (visited + map.skipped));
  }
};

/// Maps the tiles of a kernel for lengths of q and k; nothing where they depend
/// on what is in memory. May take long, and may outlive the kernel.
using TileMapper = std::function<std::optional<TileWork>(int64_t queryLength,
                                                         int64_t keyLength)>;

} // namespace attn

#endif // ATTN_RUNTIME_TILEWORK_H
