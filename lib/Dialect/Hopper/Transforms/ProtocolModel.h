//===- ProtocolModel.h - The rules that a program keeps ---------*- C++ -*-===//
//
// Checks the trace of a program in two steps.
//
// Alone, each role (each warpgroup of the consumers) fills what it acquired,
// reads what it waited for, takes the tiles of a ring
// in order, uses and gives back only slots that it holds, and gives back none
// that a product in flight reads. What holds here holds for any timing, since
// the trace of a role depends on values only.
//
// Together, roles wait for one another: a slot is full once it was committed
// and empty once every warpgroup has released it. Of roles that keep the first
// rules, each is sequential, and what one waits for stays true until it goes on
// itself. So all orders of execution end in the same state, and one order shows
// whether any hangs. None can race: a slot is written between acquire and
// commit, read between wait and release, and these exclude each other.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_DIALECT_HOPPER_TRANSFORMS_PROTOCOLMODEL_H
#define ATTN_LIB_DIALECT_HOPPER_TRANSFORMS_PROTOCOLMODEL_H

#include "attn/Dialect/Hopper/Transforms/RoleInterpreter.h"

namespace mlir::hopper {

/// Who hands the tiles of a ring to whom.
struct RingRoles {
  Region *filler = nullptr;
  /// All threads of these take every tile.
  SmallVector<Region *> takers;
};

/// Of each operand of `op`; of those that aren't rings it says nothing.
SmallVector<RingRoles> findRingRoles(WarpSpecializeOp op);

/// Fails, with an error at the place, if `program`, which is the trace of `op`
/// for `sample`, breaks a rule. A persistent one must take all its tiles.
LogicalResult verifyProgram(WarpSpecializeOp op, ArrayRef<RingRoles> rings,
                            const ProgramTrace &program,
                            const ProblemSample &sample, bool isPersistent);

} // namespace mlir::hopper

#endif // ATTN_LIB_DIALECT_HOPPER_TRANSFORMS_PROTOCOLMODEL_H
