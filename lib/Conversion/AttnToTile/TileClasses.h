//===- TileClasses.h - What a mask does in each tile ------------*- C++ -*-===//

#ifndef ATTN_LIB_CONVERSION_ATTNTOTILE_TILECLASSES_H
#define ATTN_LIB_CONVERSION_ATTNTOTILE_TILECLASSES_H

#include "PrepassKernel.h"

namespace mlir::attn {

/// A read by query or key alone whose bounds in each tile are wanted.
struct BoundedRead {
  CaptureLoadOp load;
  /// What tells its bounds apart.
  unsigned dims;
};

/// Adds `_extremes`, which writes the bounds of each of `reads` to one of
/// `results`: i32, [batch, head, granule, key tile, 2].
void buildExtremesKernel(Prepass &prepass, ArrayRef<BoundedRead> reads,
                         ArrayRef<Value> results, Value grid);

/// Adds `_classes`, which writes the classes of tiles of keys for each granule
/// to `classes`: i32, [batch, head, granule, group of tiles], kClassBits a
/// tile. Of sequences it leaves out groups and granules that don't exist.
void buildClassesKernel(Prepass &prepass, ArrayRef<BoundedRead> reads,
                        Value classes, Value grid);

/// The class at bit `shift` of a group's.
Value getClassInGroup(Arithmetic &builder, Value classes, Value shift);

} // namespace mlir::attn

#endif // ATTN_LIB_CONVERSION_ATTNTOTILE_TILECLASSES_H
