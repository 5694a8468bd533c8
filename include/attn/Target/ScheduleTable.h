//===- ScheduleTable.h - Measured schedules per problem class ---*- C++ -*-===//

#ifndef ATTN_TARGET_SCHEDULETABLE_H
#define ATTN_TARGET_SCHEDULETABLE_H

#include "attn/Dialect/Attn/IR/AttnOps.h"
#include "attn/Target/TargetInfo.h"

namespace mlir::attn {

/// Whether `target` has a kernel for `op`, which must be supported.
bool isServed(AttentionOp op, const TargetInfo &target);

/// Emits an error that names another target if `target` has no kernel for `op`.
LogicalResult verifyTarget(AttentionOp op, const TargetInfo &target);

/// The table's schedule for `op` on `target`.
ScheduleAttr lookupSchedule(AttentionOp op, const TargetInfo &target);

/// Emits an error that itemises the bytes if `schedule` needs more shared
/// memory than a program of `target` may use, or doesn't cut the tile into
/// whole matrix instructions.
LogicalResult verifySchedule(AttentionOp op, ScheduleAttr schedule,
                             const TargetInfo &target);

} // namespace mlir::attn

#endif // ATTN_TARGET_SCHEDULETABLE_H
