//===- Passes.td - Conversions between dialects --------------*- tablegen -*-===//

#ifndef ATTN_CONVERSION_PASSES_TD
#define ATTN_CONVERSION_PASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertAttnToTile : Pass<"convert-attn-to-tile", "::mlir::ModuleOp"> {
  let summary = "Lowers attention on memrefs to one fused kernel and its launch";
  let description = [{
    Every `attn.attention` in memory form becomes a `tile.launch` of a new
    `tile.kernel`. One program computes `block_m` rows of one query head: it
    loads its Q tile, runs a `tile.kv_loop` over all keys that carries the
    output tile and the running row maxima and sums, and stores the normalised
    output (and the LSE). No score matrix exists in memory. The operator must
    carry a `#attn.schedule` (`attn-select-schedule`).

    Programs are numbered with the row tiles of a head fastest, then heads, so
    that programs that share K and V run at the same time. With a `mask_mod` the
    last rows come first: under a causal mask they are the longest.

    A constant scale > 0 without a `score_mod` is folded into the exponent;
    otherwise the scores are multiplied by it first.

    The launch's cost counts every byte of q, k, v, o and lse once, and the
    operations of the two matrix products without regard to the mask.
  }];
  let options = [
    Option<"target", "target", "std::string", "\"cpu\"",
           "Target: cpu or sm_80">
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect",
                           "::mlir::memref::MemRefDialect",
                           "::mlir::tensor::TensorDialect",
                           "::mlir::tile::TileDialect"];
}

def ConvertHostToPlan : Pass<"convert-host-to-plan", "::mlir::ModuleOp"> {
  let summary = "Turns the host function into a straight-line plan";
  let description = [{
    Replaces the entry function, a straight line of allocations, copies and
    `tile.launch` ops over memrefs, by the module attribute `attn.plan`: the
    part of the manifest (docs/Manifest.md) that the runtime executes without
    any host machine code. Sizes, strides and grids become integer expressions
    over the arguments' dimensions. Only kernels stay in the module.
  }];
}

#endif // ATTN_CONVERSION_PASSES_TD
