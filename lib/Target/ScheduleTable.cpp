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
enum class Mask { Any, Without, With };

struct ScheduleRow {
  StringRef target;
  unsigned elementBits;
  /// Largest head dimension that the row serves.
  int64_t maxHeadDim;
  /// Whether the operator has a mask_mod.
  Mask mask;
  int64_t blockM, blockN, numStages, numWarps;
};
} // namespace

// clang-format off
static constexpr ScheduleRow kTable[] = {
    // target   bits  D   mask              m    n  stages  warps
    {"cpu",     16,  128, Mask::Any,        64,  64,  1,      1},
    {"cpu",     32,  128, Mask::Any,        64,  64,  1,      1},
    {"sm_80",   16,   64, Mask::Without,   128, 128,  2,      4},
    {"sm_80",   16,   64, Mask::With,      128,  64,  3,      4},
    {"sm_80",   16,  128, Mask::Any,       128,  64,  2,      4},
    {"sm_80",   32,  128, Mask::Any,        64,  32,  2,      4},
};
// clang-format on

static bool serves(const ScheduleRow &row, AttentionOp op,
                   const TargetInfo &target) {
  Mask mask = op.hasMaskMod() ? Mask::With : Mask::Without;
  return row.target == target.name &&
         row.elementBits == op.getElementType().getIntOrFloatBitWidth() &&
         std::max(op.getQKHeadDim(), op.getVHeadDim()) <= row.maxHeadDim &&
         (row.mask == Mask::Any || row.mask == mask);
}

ScheduleAttr attn::lookupSchedule(AttentionOp op, const TargetInfo &target) {
  const auto *row = llvm::find_if(kTable, [&](const ScheduleRow &row) {
    return serves(row, op, target);
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
