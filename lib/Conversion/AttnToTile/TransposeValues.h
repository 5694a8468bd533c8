//===- TransposeValues.h - V as 8-bit products read it ----------*- C++ -*-===//

#ifndef ATTN_LIB_CONVERSION_ATTNTOTILE_TRANSPOSEVALUES_H
#define ATTN_LIB_CONVERSION_ATTNTOTILE_TRANSPOSEVALUES_H

#include "attn/Dialect/Attn/IR/AttnOps.h"
#include "mlir/IR/SymbolTable.h"

namespace mlir::attn {

/// Launches a kernel before `op`, whose v is in memory, that writes v as
/// [B, Hkv, Dv, N], with keys contiguous and permuted as tile.mma's permuted_k
/// says, and returns that memory. N is the number of keys rounded up, and what
/// it has beyond them, or beyond those that some query of the batch sees, is 0.
Value transposeValues(AttentionOp op, SymbolTable &symbols);

} // namespace mlir::attn

#endif // ATTN_LIB_CONVERSION_ATTNTOTILE_TRANSPOSEVALUES_H
