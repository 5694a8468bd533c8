//===- AttnOps.h - Operations of the attn dialect ---------------*- C++ -*-===//

#ifndef ATTN_DIALECT_ATTN_IR_ATTNOPS_H
#define ATTN_DIALECT_ATTN_IR_ATTNOPS_H

#include "attn/Dialect/Attn/IR/AttnDialect.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "attn/Dialect/Attn/IR/AttnEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "attn/Dialect/Attn/IR/AttnAttributes.h.inc"

namespace mlir::attn {
/// Dimension `dim` of the operand `name`, less `excess`, is how many sequences
/// there are.
struct SequenceCount {
  Value operand;
  unsigned dim;
  int64_t excess;
  StringRef name;
};

/// Dimension `dim` of a capture is indexed by all of b, h, q_idx or kv_idx, so
/// it must be at least as large as dimension `sizedDim` of the operand `sized`
/// less `excess`.
struct CaptureBound {
  unsigned dim;
  Value sized;
  unsigned sizedDim;
  int64_t excess;
  /// What messages call the index and the size.
  StringRef index, size;
};
} // namespace mlir::attn

#define GET_OP_CLASSES
#include "attn/Dialect/Attn/IR/AttnOps.h.inc"

#endif // ATTN_DIALECT_ATTN_IR_ATTNOPS_H
