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
      return succeeded(select(op, *info)) ? WalkResult::advance()
                                          : WalkResult::interrupt();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }

  static LogicalResult select(AttentionOp op, const TargetInfo &info) {
    if (failed(verifySupported(op)) || failed(verifyTarget(op, info)))
      return failure();
    if (!op.getScheduleAttr() && failed(selectFromTable(op, info)))
      return failure();
    return verifySchedules(op, info);
  }

  static LogicalResult selectFromTable(AttentionOp op, const TargetInfo &info) {
    SmallVector<const ScheduleRow *> rows = lookupRows(op, info);
    if (rows.empty())
      return op.emitOpError("has no row in the schedule table for target ")
             << info.name << "; write a #attn.schedule on it";
    MLIRContext *context = op.getContext();
    op.setScheduleAttr(rows.pop_back_val()->getSchedule(context));
    if (rows.empty())
      return success();
    SmallVector<Attribute> shorter;
    for (const ScheduleRow *row : rows)
      shorter.push_back(ShortScheduleAttr::get(context, row->maxQLen,
                                               row->getSchedule(context)));
    op.setShortSchedulesAttr(ArrayAttr::get(context, shorter));
    return success();
  }
};
} // namespace
