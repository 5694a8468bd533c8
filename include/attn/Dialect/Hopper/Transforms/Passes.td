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

    A kernel without warp roles gets the layouts of `tile-assign-layouts`.
  }];
}

def HopperStageCaptures : Pass<"hopper-stage-captures", "::mlir::tile::KernelOp"> {
  let summary = "Has the producer load the tiles that score and mask rules read";
  let description = [{
    A `tile.gather` at (..., query, key) in a `tile.score_mod` or `tile.mask`, as
    of an additive bias or a boolean mask, becomes a `tile.load` of the scores'
    shape in front of it, of which the rule takes a `tile.element`. The load gets
    the attribute `hopper.stages`: `convert-tile-to-hopper` gives it a ring of
    its own, which TMA fills ahead of the softmax.

    The rings of such tiles take the shared memory that those of Q, K and V leave,
    up to `num_stages` each. Where that isn't enough for two, K and V give stages
    up, down to two; where there is no room for one, the last tiles stay gathers.
    So does what TMA can't load: elements of 64 bits, memrefs of more than five
    dimensions, other indices than the query, the key and scalars in front of the
    loop.
  }];
}

def HopperVerifyProtocol : Pass<"hopper-verify-protocol", "::mlir::tile::KernelOp"> {
  let summary = "Checks that roles can't hang, race on a slot or read too early";
  let description = [{
    Refuses, at the place,

    - register counts that the launch doesn't allocate, so that `setmaxnreg`
      would wait forever;
    - operations in the wrong role: the producer acquires, fills and commits, the
      consumers wait, multiply, store and release, and the transposer does what
      it takes to get a tile from one ring to another;
    - rings that two roles fill;
    - slots that are used or given back by a role that doesn't hold them, are
      never given back, are handed over empty, or are given back or overwritten
      while a product may still read them;
    - products that aren't waited for exactly once, or by a wait that leaves them
      in flight;
    - rings whose tiles are taken out of turn, left over, or waited for forever;
    - persistent programs that don't ask for tiles until there is none left.

    Found by running the integer code of every role (of the consumers once for
    each warpgroup) for sample sizes and programs, and playing what they do to
    rings, slots and products against each other. So control flow, tile numbers
    and slots must follow from sizes, numbers in rings and the program's number;
    both branches of a condition on data must do the same.
  }];
}

#endif // ATTN_DIALECT_HOPPER_TRANSFORMS_PASSES_TD
