//===- AttnSupport.h - What the lowerings can do today ----------*- C++ -*-===//

#ifndef ATTN_DIALECT_ATTN_IR_ATTNSUPPORT_H
#define ATTN_DIALECT_ATTN_IR_ATTNSUPPORT_H

#include "attn/Dialect/Attn/IR/AttnOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace mlir::attn {

/// Emits an error that names the feature, and lists what is supported, if no
/// lowering can serve `op` yet. The operator's form is legal IR all the same.
LogicalResult verifySupported(AttentionOp op);

/// What callers and messages call an argument of an entry function.
std::string getArgumentName(FunctionOpInterface func, unsigned number);

/// Whether a tile.kernel was made for a schedule with decode. Its rows don't
/// fill a warpgroup: it takes no warp roles on any target.
bool isForDecode(Operation *kernel);

} // namespace mlir::attn

#endif // ATTN_DIALECT_ATTN_IR_ATTNSUPPORT_H
