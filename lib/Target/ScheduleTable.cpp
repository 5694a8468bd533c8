//===- ScheduleTable.cpp - Measured schedules per problem class -----------===//
//
// One row per problem class; the first that matches is taken. Rows come from
// measurements (docs/Benchmarks.md).
//
//===----------------------------------------------------------------------===//

#include "attn/Target/ScheduleTable.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::attn;

namespace {
struct ScheduleRow {
  StringRef target;
  unsigned elementBits;
  /// Largest head dimension that the row serves.
  int64_t maxHeadDim;
  int64_t blockM, blockN, numStages, numWarps;
};
} // namespace

// clang-format off
static constexpr ScheduleRow kTable[] = {
    // target   bits  D     m    n   stages  warps
    {"cpu",     16,  128,   64,  64,  1,     1},
    {"cpu",     32,  128,   64,  64,  1,     1},
    {"sm_80",   16,   64,  128,  64,  2,     4},
    {"sm_80",   16,  128,  128,  64,  2,     4},
    {"sm_80",   32,   64,   64,  32,  2,     4},
    {"sm_80",   32,  128,   64,  32,  2,     4},
};
// clang-format on

ScheduleAttr attn::lookupSchedule(AttentionOp op, const TargetInfo &target) {
  unsigned bits = op.getElementType().getIntOrFloatBitWidth();
  int64_t headDim = std::max(op.getQKHeadDim(), op.getVHeadDim());
  const auto *row = llvm::find_if(kTable, [&](const ScheduleRow &row) {
    return row.target == target.name && row.elementBits == bits &&
           headDim <= row.maxHeadDim;
  });
  if (row == std::end(kTable))
    return {};
  return ScheduleAttr::get(op.getContext(), row->blockM, row->blockN,
                           row->numStages, row->numWarps);
}

LogicalResult attn::verifySchedule(AttentionOp op, ScheduleAttr schedule,
                                   const TargetInfo &target) {
  if (!target.isGPU)
    return success();
  int64_t rowsPerWarpStep = 16 * schedule.getNumWarps();
  if (schedule.getBlockM() % rowsPerWarpStep != 0)
    return op.emitOpError("schedule: block_m = ")
           << schedule.getBlockM() << " must be a multiple of 16 * num_warps = "
           << rowsPerWarpStep;
  if (schedule.getBlockN() % 16 != 0)
    return op.emitOpError("schedule: block_n = ")
           << schedule.getBlockN() << " must be a multiple of 16";
  int64_t bytes = op.getElementType().getIntOrFloatBitWidth() / 8;
  int64_t q = schedule.getBlockM() * op.getQKHeadDim() * bytes;
  int64_t k = schedule.getBlockN() * op.getQKHeadDim() * bytes;
  int64_t v = schedule.getBlockN() * op.getVHeadDim() * bytes;
  int64_t total = q + schedule.getNumStages() * (k + v);
  if (total <= target.maxSharedBytes)
    return success();
  InFlightDiagnostic diag = op.emitOpError("schedule needs ");
  diag << total << " bytes of shared memory, but a program of " << target.name
       << " may use " << target.maxSharedBytes << ": q tile " << q << " + "
       << schedule.getNumStages() << " stages * (k tile " << k << " + v tile "
       << v << "); lower num_stages, block_n or block_m";
  return diag;
}
