//===- Schedule.h - Grouping of tile operations into loops ------*- C++ -*-===//

#ifndef ATTN_LIB_CONVERSION_TILETOVECTOR_SCHEDULE_H
#define ATTN_LIB_CONVERSION_TILETOVECTOR_SCHEDULE_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Operation.h"

namespace mlir::tile::cpu {

/// The type of a value that is a tile, or null.
RankedTensorType getTileTypeOrNull(Type type);

/// True for operations whose tile is recomputed wherever it is used: splat,
/// constant, broadcast and iota cost less than a load.
bool isFreeOp(Operation *op);

/// True for operations that compute every element from the elements at the
/// same place, or that reduce rows.
bool isLoopOp(Operation *op);

/// The iteration space of an operation that isLoopOp.
RankedTensorType getLoopSpace(Operation *op);

/// Operations that are emitted together: one loop nest of loop operations over
/// the same space, or one other operation.
struct ScheduleUnit {
  /// Null for a unit of one other operation.
  RankedTensorType space;
  SmallVector<Operation *> ops;
};

/// An order in which to emit the operations of a block.
class BlockSchedule {
public:
  explicit BlockSchedule(Block &block);

  ArrayRef<ScheduleUnit> getUnits() const { return units; }

  /// The unit that holds `op`, or the operation of the block around it.
  int64_t getUnit(Operation *op) const;

  /// The last unit that uses `value`, also through free operations; -1 for
  /// none.
  int64_t getLastUse(Value value) const;

  /// True if an operation outside of `unit` uses `value`.
  bool escapes(Value value, int64_t unit) const;

  /// True if `unit` reads `value` through a broadcast.
  bool isBroadcastIn(Value value, int64_t unit) const;

private:
  void addLoopOp(Operation *op, SmallVectorImpl<ScheduleUnit> &groups);

  Block &block;
  SmallVector<ScheduleUnit> units;
  llvm::DenseMap<Operation *, int64_t> unitOfOp;
};

} // namespace mlir::tile::cpu

#endif // ATTN_LIB_CONVERSION_TILETOVECTOR_SCHEDULE_H
