//===- AttnSelectSchedule.cpp - Picks a schedule for the target -----------===//

#include "attn/Dialect/Attn/IR/AttnSupport.h"
#include "attn/Dialect/Attn/Transforms/Passes.h"
#include "attn/Target/ScheduleTable.h"

namespace mlir::attn {
#define GEN_PASS_DEF_ATTNSELECTSCHEDULE
#include "attn/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace mlir::attn

using namespace mlir;
using namespace mlir::attn;

namespace {
struct AttnSelectSchedulePass
    : attn::impl::AttnSelectScheduleBase<AttnSelectSchedulePass> {
  using AttnSelectScheduleBase::AttnSelectScheduleBase;

  void runOnOperation() override {
    const TargetInfo *info =
        TargetInfo::lookupOrEmitError(target, getOperation().getLoc());
    if (!info)
      return signalPassFailure();
    WalkResult result = getOperation().walk([&](AttentionOp op) {
      return succeeded(select(op, *info, decode)) ? WalkResult::advance()
                                                  : WalkResult::interrupt();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }

  static LogicalResult select(AttentionOp op, const TargetInfo &info,
                              bool decode) {
    if (failed(verifySupported(op)) || failed(verifyTarget(op, info)))
      return failure();
    if (!op.getScheduleAttr() && failed(selectFromTable(op, info, decode)))
      return failure();
    return verifySchedules(op, info);
  }

  static LogicalResult selectFromTable(AttentionOp op, const TargetInfo &info,
                                       bool decode) {
    MLIRContext *context = op.getContext();
    SmallVector<Attribute> shorter;
    int64_t covered = 0;
    SmallVector<const DecodeRow *> fewRows;
    if (decode)
      fewRows = lookupDecodeRows(op, info);
    for (const DecodeRow *row : fewRows) {
      covered = row->getMaxQLen(op);
      shorter.push_back(
          ShortScheduleAttr::get(context, covered, row->getSchedule(op)));
    }
    auto type = cast<ShapedType>(op.getQ().getType());
    if (!type.isDynamicDim(2) && !op.getCuQ() && !shorter.empty()) {
      auto only = cast<ShortScheduleAttr>(shorter.front());
      op.setScheduleAttr(only.getSchedule());
      return success();
    }
    SmallVector<const ScheduleRow *> rows = lookupRows(op, info);
    if (rows.empty())
      return op.emitOpError("has no row in the schedule table for target ")
             << info.name << "; write a #attn.schedule on it";
    op.setScheduleAttr(rows.pop_back_val()->getSchedule(op));
    // Packed sequences get the schedule for their mean length.
    if (op.getBatchInvariant() && op.getCuQ())
      return success();
    for (const ScheduleRow *row : rows)
      if (row->maxQLen > covered)
        shorter.push_back(ShortScheduleAttr::get(context, row->maxQLen,
                                                 row->getSchedule(op)));
    if (!shorter.empty())
      op.setShortSchedulesAttr(ArrayAttr::get(context, shorter));
    return success();
  }
};
} // namespace
