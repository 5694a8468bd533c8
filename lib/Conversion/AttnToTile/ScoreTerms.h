//===- ScoreTerms.h - A score_mod as a sum ----------------------*- C++ -*-===//

#ifndef ATTN_LIB_CONVERSION_ATTNTOTILE_SCORETERMS_H
#define ATTN_LIB_CONVERSION_ATTNTOTILE_SCORETERMS_H

#include "attn/Dialect/Tile/IR/TileOps.h"

namespace mlir::attn {

/// score_mod(s) = factor * s + element + row, as values of the body. A null
/// value is a term that isn't there.
struct ScoreTerms {
  /// The same for all scores of the kernel's program.
  Value factor;
  /// What depends on the key, or on the score in another way.
  Value element;
  /// What does not: the softmax of a row doesn't change with it, only the
  /// logarithm of its sum does.
  Value row;
};

/// Takes the body of a tile.score_mod apart; its arguments are the score, the
/// query and the key. Adds what it needs ahead of the terminator, whose operand
/// stays.
///
/// The sum may be rounded elsewhere than as it was written. `qStart` is the
/// first query of the tile: distances of a query and a key are split there, so
/// that both parts are exact and the one that stays with the elements is as
/// small as the distance.
ScoreTerms splitScore(Block &body, Value qStart);

/// slope * (key + offset): an f32 and an i32 that are the same for all scores
/// of the kernel's program.
struct KeyRamp {
  Value slope, offset;
};

/// `element`, a term of the score in `body`, as a ramp, if it is one. Adds what
/// it needs ahead of the terminator.
std::optional<KeyRamp> matchKeyRamp(Block &body, Value element);

} // namespace mlir::attn

#endif // ATTN_LIB_CONVERSION_ATTNTOTILE_SCORETERMS_H
