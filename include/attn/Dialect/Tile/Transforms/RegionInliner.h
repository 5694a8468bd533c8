//===- RegionInliner.h - Scalar regions over tiles --------------*- C++ -*-===//
//
// The one place where a rule written on scalars (score_mod, mask, the body of
// an elementwise linalg op) becomes code on tiles.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_TILE_TRANSFORMS_REGIONINLINER_H
#define ATTN_DIALECT_TILE_TRANSFORMS_REGIONINLINER_H

#include "attn/Dialect/Tile/IR/TileOps.h"

namespace mlir::tile {

/// The dimensions of a tile that a value varies along, as a bit set.
enum class Extent : unsigned {
  Scalar = 0,
  Rows = 1,
  Columns = 2,
  Elements = 3
};

/// Emits the ops of one scalar region for all elements of a tile. What depends
/// only on scalars stays scalar, and what depends on the row (column) alone is
/// computed once a row (column). `index` values are i32, as in all of a kernel.
class RegionInliner {
public:
  RegionInliner(OpBuilder &builder, Location loc, RankedTensorType tileType)
      : builder(builder), loc(loc), tileType(tileType) {}

  /// `to` is `from` at `extent`.
  void map(Value from, Value to, Extent extent) { lifted[from] = {to, extent}; }

  /// `from` is start + 0, 1, 2, ... along one dimension.
  void mapIndex(Value from, Value start, Extent extent);

  /// Emits `op` at the least extent that its operands need. Diagnoses ops that
  /// aren't elementwise.
  LogicalResult inlineOp(Operation &op);

  /// Reads `source` at `indices`, at the least extent that these need: with
  /// tile.load where they run along the memref, else with tile.gather.
  void mapGather(Value from, Value source, ValueRange indices,
                 ArrayRef<int64_t> inBounds);

  /// The value of `original` for every element of `extent`.
  Value lift(Value original, Extent extent);

  /// The value of `original`, and the extent that it was computed at.
  std::pair<Value, Extent> lookup(Value original) const;

private:
  Type getType(Type element, Extent extent) const;
  void inlineIndexCast(Operation &cast);
  /// rest + the column's number, or less it; `rest` doesn't depend on columns.
  struct ColumnSum {
    std::pair<Value, Extent> rest;
    bool isNegative = false;
  };
  std::optional<ColumnSum> getColumnSum(Value original);
  bool inlineColumnSumToFloat(Operation &op);
  Value createLoad(Value from, Value source, ValueRange indices,
                   ArrayRef<int64_t> inBounds);
  void emit(Operation &op, Extent extent);

  OpBuilder &builder;
  Location loc;
  RankedTensorType tileType;
  DenseMap<Value, std::pair<Value, Extent>> lifted;
  /// Where the values that mapIndex made start.
  DenseMap<Value, Value> starts;
};

/// The divisor of the integer division `op`, or 1 where processors may trap: at
/// 0, and at -1 under the least integer.
Value createSafeDivisor(OpBuilder &builder, Operation &op, Value dividend,
                        Value divisor);

/// Whether `op` is one.
bool isIntegerDivision(Operation &op);

} // namespace mlir::tile

#endif // ATTN_DIALECT_TILE_TRANSFORMS_REGIONINLINER_H
