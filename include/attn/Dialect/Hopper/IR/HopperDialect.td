//===- HopperDialect.td - The hopper dialect ---------------*- tablegen -*-===//

#ifndef ATTN_DIALECT_HOPPER_IR_HOPPERDIALECT_TD
#define ATTN_DIALECT_HOPPER_IR_HOPPERDIALECT_TD

include "mlir/IR/OpBase.td"

def HopperDialect : Dialect {
  let name = "hopper";
  let cppNamespace = "::mlir::hopper";
  let summary = "A tile kernel split into warp roles, for sm_90a";
  let description = [{
    Between `tile` and NVVM. A producer warp fills rings of tiles in shared
    memory with the tensor memory accelerator (TMA); consumer warpgroups read
    them with warpgroup matrix products (wgmma). Everything else in a role is
    `tile`, `arith` and `scf`, on the tiles of all consumer warpgroups together.

    What can go wrong on this machine is made visible in types: a tile in shared
    memory is only reachable through a slot that an `acquire` or a `wait` gave
    out, and the result of a product is `pending` until a `wgmma_wait` unwraps
    it. See docs/Rationale/Hopper.md.
  }];
  let extraClassDeclaration = [{
    /// On a `tile.load` in a kv_loop (i32): the producer loads the tile, ahead,
    /// into a ring of so many stages, and the consumers read it.
    static ::llvm::StringRef getStagesAttrName() { return "hopper.stages"; }
  }];
  let hasOperationAttrVerify = 1;
  let dependentDialects = ["::mlir::tile::TileDialect"];
  let useDefaultTypePrinterParser = 1;
}

#endif // ATTN_DIALECT_HOPPER_IR_HOPPERDIALECT_TD
