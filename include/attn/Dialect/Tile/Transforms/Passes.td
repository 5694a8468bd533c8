//===- Passes.td - Passes on the tile dialect --------------*- tablegen -*-===//

#ifndef ATTN_DIALECT_TILE_TRANSFORMS_PASSES_TD
#define ATTN_DIALECT_TILE_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

#endif // ATTN_DIALECT_TILE_TRANSFORMS_PASSES_TD
