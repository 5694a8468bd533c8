//===- KVRanges.h - Skipped, partial and full steps of a kv_loop -*- C++ -*-==//

#ifndef ATTN_ANALYSIS_KVRANGES_H
#define ATTN_ANALYSIS_KVRANGES_H

#include "attn/Analysis/MaskAnalysis.h"

namespace mlir::tile {

/// The ranges of a kv_loop, as its operands have them.
struct KVRanges {
  Value begin, fullBegin, fullEnd, end;
  /// Whether they are known to skip every step of which no row sees a key, and
  /// to count every step as full of which all rows see all keys.
  bool isExact = false;
};

/// Computes, in front of `loop`, which of its steps the masks in it leave for
/// the rows `rows` of the query tile, or all. Steps are skipped on account of
/// masks that are `skippable`. Ops that the analysis couldn't see through are
/// added to `opaque`.
KVRanges computeKVRanges(ImplicitLocOpBuilder &builder, KVLoopOp loop,
                         std::optional<RowWindow> rows,
                         SmallVectorImpl<Operation *> &opaque);

} // namespace mlir::tile

#endif // ATTN_ANALYSIS_KVRANGES_H
