//===- Passes.td - Conversions between dialects --------------*- tablegen -*-===//

#ifndef ATTN_CONVERSION_PASSES_TD
#define ATTN_CONVERSION_PASSES_TD

include "mlir/Pass/PassBase.td"

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
