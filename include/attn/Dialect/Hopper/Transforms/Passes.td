//===- Passes.td - Passes on the hopper dialect ------------*- tablegen -*-===//

#ifndef ATTN_DIALECT_HOPPER_TRANSFORMS_PASSES_TD
#define ATTN_DIALECT_HOPPER_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def HopperAssignLayouts : Pass<"hopper-assign-layouts", "::mlir::tile::KernelOp"> {
  let summary = "Gives every tile of the consumers a layout in registers";
  let description = [{
    Tiles become `#tile.mma` over all consumer warps: what a warpgroup matrix
    product leaves in registers, each warpgroup holding 64 rows. The left
    operand of a product that comes from registers is converted to
    `#tile.operand`, which moves nothing. Vectors follow from their uses.
  }];
}

def HopperVerifyProtocol : Pass<"hopper-verify-protocol", "::mlir::tile::KernelOp"> {
  let summary = "Checks that roles can't hang, race on a slot or read too early";
  let description = [{
    Refuses, at the place,

    - register counts that the launch doesn't allocate, so that `setmaxnreg`
      would wait forever;
    - ring operations in the wrong role: the producer acquires and commits, the
      consumers wait and release;
    - slots that aren't given back exactly once in the block that took them, or
      are used after that, or given back while a product may still read them;
    - products that aren't waited for exactly once in their block, or by a wait
      that leaves them in flight;
    - rings whose tiles are taken out of turn, left over, or waited for forever.

    The last is found by running the integer code of both roles for sample sizes
    and programs and playing their ring operations against each other, so
    control flow and tile numbers must follow from sizes and the program's
    number.
  }];
}

#endif // ATTN_DIALECT_HOPPER_TRANSFORMS_PASSES_TD
