//===- MaskAnalysis.h - Which keys a mask hides from a tile -----*- C++ -*-===//
//
// Reads the region of a tile.mask and computes, as SSA values in front of the
// KV loop, which keys the rows of the query tile can see at all and which they
// all see.
//
// The region is taken apart into comparisons that are linear in the query and
// key index, combined by and, or, not and select. A comparison that bounds the
// key gives a half-line for each row; over the rows of a tile these are nested,
// so "some row" and "every row" are half-lines too, from the tile's first or
// last row. Conjunctions intersect. A disjunction takes the hull of what is
// visible and, of what is fully visible, the union where it is an interval.
//
// The result is sound for every region. It is exact if the keys visible to a
// query tile form an interval, as for causal masks, windows and prefixes, and
// says so where that follows from the form of the region.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_ANALYSIS_MASKANALYSIS_H
#define ATTN_ANALYSIS_MASKANALYSIS_H

#include "attn/Dialect/Tile/IR/TileOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::tile {

/// Key positions [begin, end), i32; empty where begin >= end.
struct KeyInterval {
  Value begin, end;
};

/// How well sets of keys say what a mask does to the rows of a query tile. Of
/// exact ones, how what a row sees follows from its number decides what other
/// conditions they can be combined with.
enum class Precision {
  /// In the same way for all rows.
  SameForRows,
  /// Ends move by at most one key from a row to the next, upwards. This takes
  /// windows to be open: where both ends do so, the first is not behind the
  /// last.
  Stepwise,
  /// In another way.
  Exact,
  /// Keys that are neither outside of the visible ones nor within the full ones
  /// may be anything.
  Sound
};

/// What a mask does to the keys of a loop, for one query tile.
struct KeySets {
  /// Outside it, no row of the tile sees a key.
  KeyInterval visible;
  /// Inside it, every row of the tile sees every key.
  KeyInterval full;
  Precision precision = Precision::Sound;
};

/// Some rows of a query tile: `count` from its row `offset` (i32) on.
struct RowWindow {
  Value offset;
  int64_t count;
};

/// Analyses `mask`, somewhere in `loop`, with respect to that loop's keys
/// `keys`, where keys.begin >= 0, and to the rows `rows` of the query tile, or
/// all; those behind the loop's `rows` don't count. The values are emitted at
/// `builder`, in front of the loop, and lie within [keys.begin, keys.end]. Ops
/// that the analysis couldn't see through are added to `opaque`.
KeySets analyzeMask(ImplicitLocOpBuilder &builder, KVLoopOp loop, MaskOp mask,
                    KeyInterval keys, std::optional<RowWindow> rows,
                    SmallVectorImpl<Operation *> &opaque);

/// Combines the sets of two masks that both apply.
KeySets intersect(ImplicitLocOpBuilder &builder, const KeySets &a,
                  const KeySets &b, KeyInterval keys);

} // namespace mlir::tile

#endif // ATTN_ANALYSIS_MASKANALYSIS_H
