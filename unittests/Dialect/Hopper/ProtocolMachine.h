//===- ProtocolMachine.h - Runs a program's trace on barriers ---*- C++ -*-===//
//
// The oracle of the mutation test: threads, mbarriers with phases and arrival
// counts, slots with contents, copies that arrive late and products that read
// until they are waited for. It knows nothing of the rules that
// hopper-verify-protocol checks, only what the machine does.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_UNITTESTS_DIALECT_HOPPER_PROTOCOLMACHINE_H
#define ATTN_UNITTESTS_DIALECT_HOPPER_PROTOCOLMACHINE_H

#include "attn/Dialect/Hopper/Transforms/RoleInterpreter.h"

/// What goes wrong when `program`, a trace of `op`, runs, under some timing of
/// those that it tries: the producer or one warpgroup behind all others, random
/// order, copies that arrive at once or as late as they can. Empty if nothing
/// does.
std::string findFault(mlir::hopper::WarpSpecializeOp op,
                      const mlir::hopper::ProgramTrace &program);

#endif // ATTN_UNITTESTS_DIALECT_HOPPER_PROTOCOLMACHINE_H
