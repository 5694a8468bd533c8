//===- Passes.td - Conversions between dialects --------------*- tablegen -*-===//

#ifndef ATTN_CONVERSION_PASSES_TD
#define ATTN_CONVERSION_PASSES_TD

include "mlir/Pass/PassBase.td"

#endif // ATTN_CONVERSION_PASSES_TD
