//===- Passes.td - Passes on the tile dialect --------------*- tablegen -*-===//

#ifndef ATTN_DIALECT_TILE_TRANSFORMS_PASSES_TD
#define ATTN_DIALECT_TILE_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def TileSplitKVRanges : Pass<"tile-split-kv-ranges", "::mlir::tile::KernelOp"> {
  let summary = "Finds which steps of a kv_loop need their mask, and which none";
  let description = [{
    Reads the `tile.mask` ops of every `tile.kv_loop` and sets its ranges: steps
    whose keys no row of the tile sees are skipped, steps whose keys all rows
    see are full (they lose the mask in `tile-lower-kv-loop`), the others are
    partial. The bounds are scalar arithmetic in front of the loop. See
    attn/Analysis/MaskAnalysis.h for what is understood; a remark names an op
    that isn't, and then every step that it may concern keeps its mask. Rows
    behind the loop's `rows` don't count.

    Steps are skipped only if a hidden step changes nothing: the masked scores
    go straight into the loop's one `tile.online_softmax`, and the loop carries
    its statistics and a product with `p` that starts at 0. In any other loop
    all steps run, and a remark says so.

    Positions and lengths must be below 2^30.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def TileDeferRescale : Pass<"tile-defer-rescale", "::mlir::tile::KernelOp"> {
  let summary = "Lets an online softmax rescale only where its maximum grew much";
  let description = [{
    Rewrites the `tile.online_softmax` of a `tile.kv_loop` so that a common step
    costs an FMA, an exp2 and an addition an element, and a test:

    - The maximum that scores are subtracted from, the *base*, and with it the
      sum and the accumulator stay as they are until some score is so far above
      it that its exponential would exceed 2^8 (`tile.any_exceeds`).
    - What the exponentials need of the base, a factor and an addend a row, is
      computed when it changes and carried by the loop, rounded so that it
      can't show (lib/Dialect/Tile/Transforms/DeferRescale.cpp says why).
    - The loop carries the row sums folded to 8 columns (`tile.fold_sum`); they
      are reduced once, after it.

    After the loop, `scale * max + log(sum)` is what it was. The maximum alone
    isn't: it may be the base, which is up to `8 / (scale * log2(e))` less.

    Kernels whose `attn.warp_roles` don't ask for `lazy_rescale` are left alone.
    A loop is left alone, with a remark, unless it has one online softmax, with
    one scale for all steps, whose statistics it carries from -inf and 0 and
    uses for nothing else; of the maximum, what follows the loop may want only
    the log-sum-exp. Loops without an online softmax
    have nothing to defer.
  }];
  let dependentDialects = ["::mlir::scf::SCFDialect",
                           "::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect",
                           "::mlir::tensor::TensorDialect"];
}

def TileLowerKVLoop : Pass<"tile-lower-kv-loop", "::mlir::tile::KernelOp"> {
  let summary = "Lowers tile.kv_loop to one scf.for per range";
  let description = [{
    Each `tile.kv_loop` becomes up to three `scf.for` loops over i32 key
    positions: the partial steps before the full ones, the full steps, and the
    partial steps after them. The four regions are inlined in order. `tile.mask`
    ops vanish from the full loop: nothing is hidden there. A range whose bounds
    are the same value or equal constants gets no loop.
  }];
  let dependentDialects = ["::mlir::scf::SCFDialect",
                           "::mlir::arith::ArithDialect"];
}

def TileRewriteMasks : Pass<"tile-rewrite-masks", "::mlir::tile::KernelOp"> {
  let summary = "Inlines mask and score_mod regions as elementwise tile code";
  let description = [{
    `tile.mask` becomes a select of the score or -inf in place, `tile.score_mod`
    elementwise arithmetic on the score tile: no mask exists in memory. What
    depends only on scalars stays scalar, and what depends on the query index
    alone (or the key index alone) is computed once a row (column). Signed
    bounds on the key in a mask's conjunction become a first and a last visible
    column of each row, so that an element costs a comparison with each.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::tensor::TensorDialect"];
}

def TileExpandOnlineSoftmax
    : Pass<"tile-expand-online-softmax", "::mlir::tile::KernelOp"> {
  let summary = "Expands tile.online_softmax into reductions and exponentials";
  let description = [{
    The formula is in the op's description. The maximum propagates NaN, so that
    a row which sees a NaN score yields NaN, whereas a masked score is -inf and
    never matters.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def TileLowerMath : Pass<"tile-lower-math", "::mlir::tile::KernelOp"> {
  let summary = "Lowers math to the few functions that every target has";
  let description = [{
    Afterwards `math` ops are only `exp2`, `log2`, `sqrt`, `rsqrt`, `absf`,
    `floor` and `fma`, on f32. These are lowered to them with an error of about
    1e-6 (relative; absolute for `tanh fastmath<afn>`, which is cheaper):

    | op | lowering |
    |---|---|
    | `exp` | exp2 of a product carried in two floats |
    | `expm1`, `tanh`, `erf` | a polynomial near 0, exp2 elsewhere |
    | `log`, `log10`, `log1p` | a series near the zero, log2 elsewhere |
    | `ceil`, `trunc` | `floor` |
    | `absi` | `arith.maxsi` |
    | `arith.floordivsi`, `ceildivsi`, `ceildivui` | a division that rounds towards 0, corrected |
    | `powf`, `fpowi` | with a constant exponent that is an integer in [-16, 16], 0.5 or -0.5, or with base 2 |

    16-bit floats are computed in f32. Everything else is refused: no call of a
    device or host math library is ever made.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect"];
}

def TilePipelineLoads : Pass<"tile-pipeline-loads", "::mlir::tile::KernelOp"> {
  let summary = "Prefetches the tiles of later steps of a loop";
  let description = [{
    In kernels with `num_stages` of 2 or more, the loads in a `tile.kv_loop` or
    an i32 `scf.for` that only feed matrix products become copies into a ring
    of `num_stages` slots in shared memory, `num_stages - 1` steps ahead. Loads
    before the loop that only feed its products are started before the ring's
    first ones and waited for after them.

    It runs before `tile-lower-kv-loop`, so that one stream of loads crosses the
    loops over partial and full steps.
  }];
  let dependentDialects = ["::mlir::scf::SCFDialect",
                           "::mlir::arith::ArithDialect"];
}

def TileAssignLayouts : Pass<"tile-assign-layouts", "::mlir::tile::KernelOp"> {
  let summary = "Gives every tile a layout";
  let description = [{
    Afterwards every tile type carries an encoding:

    | tile | layout |
    |---|---|
    | right operand of a product | `#tile.shared` |
    | left operand, in registers | `#tile.operand` |
    | left operand that would not fit there, or of path `fma` | `#tile.shared` |
    | other rank-2 tiles, in a kernel with products | `#tile.mma` |
    | other rank-2 tiles, in a kernel without | `#tile.blocked` |
    | rank-1 values | `#tile.row` or `#tile.col`, by their uses |

    So every rank-2 tile in registers has one layout, and the only conversions
    are those to a left operand, which don't move data between threads.
  }];
  let dependentDialects = ["::mlir::scf::SCFDialect",
                           "::mlir::tensor::TensorDialect"];
}

#endif // ATTN_DIALECT_TILE_TRANSFORMS_PASSES_TD
