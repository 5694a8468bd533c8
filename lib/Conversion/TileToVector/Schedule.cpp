//===- Schedule.cpp - Grouping of tile operations into loops --------------===//

#include "Schedule.h"
#include "attn/Dialect/Tile/IR/TileOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace mlir::tile;
using namespace mlir::tile::cpu;

RankedTensorType cpu::getTileTypeOrNull(Type type) {
  return dyn_cast<RankedTensorType>(type);
}

bool cpu::isFreeOp(Operation *op) {
  if (isa<BroadcastOp, IotaOp, tensor::SplatOp>(op))
    return true;
  return isa<arith::ConstantOp>(op) &&
         getTileTypeOrNull(op->getResult(0).getType());
}

bool cpu::isLoopOp(Operation *op) {
  if (isa<ReduceOp, ExpDiffOp>(op))
    return true;
  return op->getNumResults() == 1 &&
         getTileTypeOrNull(op->getResult(0).getType()) &&
         (isa<GatherOp>(op) || OpTrait::hasElementwiseMappableTraits(op));
}

RankedTensorType cpu::getLoopSpace(Operation *op) {
  Value shaped = isa<ReduceOp>(op) ? op->getOperand(0) : op->getResult(0);
  auto type = cast<RankedTensorType>(shaped.getType());
  return RankedTensorType::get(type.getShape(),
                               Float32Type::get(op->getContext()));
}

/// Calls `callback(user, viaBroadcast)` for the operations that read `value`,
/// looking through free operations.
static void forEachReader(Value value, bool viaBroadcast,
                          function_ref<void(OpOperand &, bool)> callback) {
  for (OpOperand &use : value.getUses()) {
    if (isFreeOp(use.getOwner()))
      forEachReader(use.getOwner()->getResult(0), /*viaBroadcast=*/true,
                    callback);
    else
      callback(use, viaBroadcast);
  }
}

BlockSchedule::BlockSchedule(Block &block) : block(block) {
  SmallVector<ScheduleUnit> groups;
  auto flush = [&] {
    for (ScheduleUnit &group : groups) {
      for (Operation *op : group.ops)
        unitOfOp[op] = units.size();
      units.push_back(std::move(group));
    }
    groups.clear();
  };
  auto isTile = [](Type type) { return bool(getTileTypeOrNull(type)); };
  for (Operation &op : block) {
    if (isFreeOp(&op))
      continue;
    if (isLoopOp(&op)) {
      addLoopOp(&op, groups);
      continue;
    }
    // Scalar code never depends on tiles: it goes ahead of the open groups.
    bool isScalar = isMemoryEffectFree(&op) && op.getNumRegions() == 0 &&
                    !op.hasTrait<OpTrait::IsTerminator>() &&
                    llvm::none_of(op.getOperandTypes(), isTile) &&
                    llvm::none_of(op.getResultTypes(), isTile);
    if (!isScalar)
      flush();
    unitOfOp[&op] = units.size();
    units.push_back({RankedTensorType(), {&op}});
  }
}

/// The least index of a group that may hold a reader of `value`.
static int64_t getEarliestGroup(Value value, Operation *reader,
                                ArrayRef<ScheduleUnit> groups) {
  Operation *def = value.getDefiningOp();
  if (!def)
    return 0;
  if (isFreeOp(def)) {
    int64_t earliest = 0;
    for (Value operand : def->getOperands())
      earliest = std::max(earliest, getEarliestGroup(operand, def, groups));
    return earliest;
  }
  for (auto [index, group] : llvm::enumerate(groups)) {
    if (!llvm::is_contained(group.ops, def))
      continue;
    // A reduction's result is complete only after its loop; a broadcast's
    // source and the maxima of exp_diff are read at another place.
    bool samePlace = !isa<ReduceOp>(def) && !isFreeOp(reader) &&
                     getLoopSpace(def) == getLoopSpace(reader);
    return index + (samePlace ? 0 : 1);
  }
  return 0;
}

void BlockSchedule::addLoopOp(Operation *op,
                              SmallVectorImpl<ScheduleUnit> &groups) {
  int64_t earliest = 0;
  for (Value operand : op->getOperands())
    earliest = std::max(earliest, getEarliestGroup(operand, op, groups));
  RankedTensorType space = getLoopSpace(op);
  for (ScheduleUnit &group : llvm::drop_begin(groups, earliest)) {
    if (group.space != space)
      continue;
    group.ops.push_back(op);
    return;
  }
  groups.push_back({space, {op}});
}

int64_t BlockSchedule::getUnit(Operation *op) const {
  return unitOfOp.lookup(block.findAncestorOpInBlock(*op));
}

int64_t BlockSchedule::getLastUse(Value value) const {
  int64_t last = -1;
  forEachReader(value, false, [&](OpOperand &use, bool) {
    last = std::max(last, getUnit(use.getOwner()));
  });
  return last;
}

bool BlockSchedule::escapes(Value value, int64_t unit) const {
  bool found = false;
  forEachReader(value, false, [&](OpOperand &use, bool) {
    found |= getUnit(use.getOwner()) != unit;
  });
  return found;
}

bool BlockSchedule::isBroadcastIn(Value value, int64_t unit) const {
  bool found = false;
  forEachReader(value, false, [&](OpOperand &use, bool viaBroadcast) {
    found |= viaBroadcast && getUnit(use.getOwner()) == unit;
  });
  return found;
}
