//===- ProtocolTrace.h - What a role does to its rings ----------*- C++ -*-===//

#ifndef ATTN_LIB_DIALECT_HOPPER_TRANSFORMS_PROTOCOLTRACE_H
#define ATTN_LIB_DIALECT_HOPPER_TRANSFORMS_PROTOCOLTRACE_H

#include "attn/Dialect/Hopper/IR/HopperOps.h"
#include <vector>

namespace mlir::hopper {

/// One ring operation, with its values.
struct RingEvent {
  enum Kind { Acquire, Commit, Wait, Release };
  Kind kind;
  Operation *op;
  /// Which operand of the warp_specialize op the ring is.
  unsigned ring;
  int64_t stages;
  int64_t number;
};

/// One problem and program to trace: the dynamic sizes of the first memref, of
/// the others (and integer arguments), and the program's number.
struct ProblemSample {
  int64_t querySize, otherSize, program;
  std::string describe() const;
};

/// The ring operations of `region`, in order, for `sample`. Control flow and
/// numbers must follow from sizes and the program's number by integer code.
FailureOr<std::vector<RingEvent>> traceRole(WarpSpecializeOp op, Region &region,
                                            const ProblemSample &sample);

} // namespace mlir::hopper

#endif // ATTN_LIB_DIALECT_HOPPER_TRANSFORMS_PROTOCOLTRACE_H
