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
    if (!op.getScheduleAttr()) {
      ScheduleAttr schedule = lookupSchedule(op, info);
      if (!schedule)
        return op.emitOpError("has no row in the schedule table for target ")
               << info.name << "; write a #attn.schedule on it";
      op.setScheduleAttr(schedule);
    }
    return verifySchedule(op, op.getScheduleAttr(), info);
  }
};
} // namespace
