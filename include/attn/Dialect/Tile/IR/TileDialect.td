//===- TileDialect.td - The tile dialect -------------------*- tablegen -*-===//

#ifndef ATTN_DIALECT_TILE_IR_TILEDIALECT_TD
#define ATTN_DIALECT_TILE_IR_TILEDIALECT_TD

include "mlir/IR/OpBase.td"

def TileDialect : Dialect {
  let name = "tile";
  let cppNamespace = "::mlir::tile";
  let summary = "The work of one program (CTA) on static tiles";
  let description = [{
    A `tile.kernel` is what one program does: it loads static tiles from
    strided memory, computes on them as values and stores tiles back. There are
    no threads and no target in it. `arith` and `math` work on the tiles
    directly; the dialect adds memory access, matrix products, reductions and
    the structured loop over keys and values, `tile.kv_loop`.

    The CPU path and the GPU paths lower the same kernel. GPU paths first give
    every tile a layout encoding (`tile-assign-layouts`) that says which thread
    holds which element, then distribute tiles to per-thread vectors.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::memref::MemRefDialect"];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
}

#endif // ATTN_DIALECT_TILE_IR_TILEDIALECT_TD
