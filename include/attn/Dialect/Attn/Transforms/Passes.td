//===- Passes.td - Passes on the attn dialect --------------*- tablegen -*-===//

#ifndef ATTN_DIALECT_ATTN_TRANSFORMS_PASSES_TD
#define ATTN_DIALECT_ATTN_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

#endif // ATTN_DIALECT_ATTN_TRANSFORMS_PASSES_TD
