//===- ScheduleTable.h - Measured schedules per problem class ---*- C++ -*-===//

#ifndef ATTN_TARGET_SCHEDULETABLE_H
#define ATTN_TARGET_SCHEDULETABLE_H

#include "attn/Dialect/Attn/IR/AttnOps.h"
#include "attn/Target/TargetInfo.h"
#include <limits>

namespace mlir::attn {

/// What of `op`, which must be supported, the kernels of `target` don't serve;
/// empty if they do.
std::string getUnserved(AttentionOp op, const TargetInfo &target);

/// Emits an error that names another target if `target` has no kernel for `op`.
LogicalResult verifyTarget(AttentionOp op, const TargetInfo &target);

/// What an operator's mask_mod is like.
enum class MaskKind {
  Any,
  Without,
  With,
  /// It hides all keys but the two thousand before and behind a query, for
  /// their positions alone, and has no pattern among these: a query sees few
  /// tiles, one after the other.
  Window
};

/// What rules read of captured tensors by position, which takes registers
/// beside the scores.
enum class CaptureKind {
  /// Anything, or nothing.
  Any,
  /// Something.
  ByPosition,
  /// 16 bits for each query and key: on targets with warp roles such tiles come
  /// through shared memory.
  Planes16Bit,
  /// Integers of up to 32 bits, one of each query and one of each key, in a
  /// mask_mod alone: documents.
  PairsOfIntegers,
};

/// Larger than any length.
constexpr int64_t kAnyLength = std::numeric_limits<int64_t>::max();

/// What the table knows of one class of operators.
struct ScheduleRow {
  StringRef target;
  unsigned elementBits;
  /// Largest head dimension that the row serves.
  int64_t maxHeadDim;
  MaskKind mask;
  /// Longest query sequence that the row serves.
  int64_t maxQLen;
  int64_t blockM, blockN, numStages, numWarps;
  /// Targets with warp roles only.
  RolePipeline pipeline = RolePipeline::Overlap;
  bool lazyRescale = false;
  bool persistent = false;
  int64_t qStages = 1;
  bool tmaStore = false;
  CaptureKind captures = CaptureKind::Any;
  VTranspose vTranspose = VTranspose::Prepass;

  ScheduleAttr getSchedule(AttentionOp op) const;
  /// Whether the row is for `op` on `target`, its length aside.
  bool serves(AttentionOp op, const TargetInfo &target) const;
};

/// The narrowest kind that the mask of `op` is of.
MaskKind getMaskKind(AttentionOp op);

/// The narrowest kind that the captures of `op` are of.
CaptureKind getCaptureKind(AttentionOp op);

/// All rows; of those that serve an operator of some length, the first is
/// taken.
ArrayRef<ScheduleRow> getScheduleTable();

/// The rows that `op` on `target` may need, by increasing length: one if the
/// query length is static or if the table has but one, none if it has none.
SmallVector<const ScheduleRow *>
lookupRows(AttentionOp op, const TargetInfo &target,
           ArrayRef<ScheduleRow> table = getScheduleTable());

/// What the table knows of few queries of one class of operators.
struct DecodeRow {
  StringRef target;
  unsigned elementBits;
  /// Largest head dimension that the row serves.
  int64_t maxHeadDim;
  /// Most queries times query heads that share a KV head.
  int64_t maxRows;
  int64_t blockM, blockN, numStages, numWarps;
  /// As in #attn.decode.
  int64_t programsPerSM;

  /// Of a kernel for `op`, which may want results that don't depend on the
  /// batch.
  ScheduleAttr getSchedule(AttentionOp op) const;
  /// Whether the row is for `op` on `target`, its length aside.
  bool serves(AttentionOp op, const TargetInfo &info) const;
  /// The longest query sequence of `op` that the row serves; 0 for none.
  int64_t getMaxQLen(AttentionOp op) const;
};

ArrayRef<DecodeRow> getDecodeTable();

/// The rows that `op` on `target` may need for few queries, by increasing
/// length. If the query length is static, at most one, which serves it; packed
/// sequences have others than their tensor.
SmallVector<const DecodeRow *>
lookupDecodeRows(AttentionOp op, const TargetInfo &target,
                 ArrayRef<DecodeRow> table = getDecodeTable());

/// Emits an error that itemises the sum if `schedule` needs more shared memory
/// than a program of `target` may use, or more registers than its consumers
/// have, and an error if it doesn't cut the tile into whole matrix
/// instructions.
LogicalResult verifySchedule(AttentionOp op, ScheduleAttr schedule,
                             const TargetInfo &target);

/// verifySchedule of all schedules of `op`, which has one.
LogicalResult verifySchedules(AttentionOp op, const TargetInfo &target);

} // namespace mlir::attn

#endif // ATTN_TARGET_SCHEDULETABLE_H
