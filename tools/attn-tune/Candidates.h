//===- Candidates.h - Schedules around a given one --------------*- C++ -*-===//

#ifndef ATTN_TOOLS_ATTNTUNE_CANDIDATES_H
#define ATTN_TOOLS_ATTNTUNE_CANDIDATES_H

#include "attn/Target/ScheduleTable.h"

namespace attn {

/// The schedules that verifySchedule accepts for `op` on `target` and that
/// differ from `base` in at most `distance` parameters; `base` comes first.
llvm::SmallVector<mlir::attn::ScheduleAttr>
getCandidates(mlir::attn::AttentionOp op, const mlir::attn::TargetInfo &target,
              mlir::attn::ScheduleAttr base, unsigned distance);

/// "128 x 64, 2 stages, 4 warps", and what the roles do.
std::string describe(mlir::attn::ScheduleAttr schedule);

} // namespace attn

#endif // ATTN_TOOLS_ATTNTUNE_CANDIDATES_H
