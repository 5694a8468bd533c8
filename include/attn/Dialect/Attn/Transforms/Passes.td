//===- Passes.td - Passes on the attn dialect --------------*- tablegen -*-===//

#ifndef ATTN_DIALECT_ATTN_TRANSFORMS_PASSES_TD
#define ATTN_DIALECT_ATTN_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def AttnInsertChecks : Pass<"attn-insert-checks", "::mlir::func::FuncOp"> {
  let summary = "States what must hold of dynamic sizes as cf.assert";
  let description = [{
    For every `attn.attention` whose operands have dynamic sizes that must
    agree (batch of q, k, v, o; lengths of k and v, of q and o), adds a
    `cf.assert` with a message. `convert-host-to-plan` turns them into checks
    that the runtime makes before any launch. Runs on tensors, first in every
    pipeline.

    Example: for `q: tensor<?x8x?x64xf16>` and `k: tensor<?x8x?x64xf16>`

    ```mlir
    %q0 = tensor.dim %q, %c0 : tensor<?x8x?x64xf16>
    %k0 = tensor.dim %k, %c0 : tensor<?x8x?x64xf16>
    %eq = arith.cmpi eq, %q0, %k0 : index
    cf.assert %eq, "q and k have different batch sizes"
    ```
  }];
  let dependentDialects = ["::mlir::cf::ControlFlowDialect",
                           "::mlir::tensor::TensorDialect",
                           "::mlir::arith::ArithDialect"];
}

def AttnLowerMerge : Pass<"attn-lower-merge", "::mlir::func::FuncOp"> {
  let summary = "Lowers merges of partial results to elementwise linalg ops";
  let description = [{
    An `attn.merge` becomes one `linalg.generic` for the output and one for the
    lse, in f32. Dynamic sizes must agree, which `cf.assert` checks before any
    launch. Runs on tensors.
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect",
                           "::mlir::cf::ControlFlowDialect",
                           "::mlir::math::MathDialect",
                           "::mlir::tensor::TensorDialect",
                           "::mlir::arith::ArithDialect"];
}

def AttnSelectSchedule : Pass<"attn-select-schedule", "::mlir::func::FuncOp"> {
  let summary = "Gives every attention operator a schedule for the target";
  let description = [{
    Attaches the `#attn.schedule` of the schedule table's row for (target,
    element type, head dimension, masked), and those for few queries unless
    their number is static and large. A schedule that the operator already
    has is kept and checked: one that needs more shared memory than a program
    of the target may use is an error that itemises the bytes.
  }];
  let options = [
    Option<"target", "target", "std::string", /*default=*/"\"cpu\"",
           "Target to schedule for: cpu, sm_80 or sm_90a">,
    Option<"decode", "decode", "bool", /*default=*/"true",
           "Whether few queries get schedules of their own">
  ];
}

def AttnBufferize : Pass<"attn-bufferize", "::mlir::ModuleOp"> {
  let summary = "Turns tensor entry functions into destination-passing ones";
  let description = [{
    One-Shot Bufferize across function boundaries. Arguments become memrefs
    whose outer strides are dynamic and whose innermost stride is 1. A result
    that is written into an argument is dropped; any other becomes a trailing
    output argument. Arguments that the function writes get the attribute
    `attn.output`.
  }];
  let dependentDialects = ["::mlir::bufferization::BufferizationDialect",
                           "::mlir::memref::MemRefDialect"];
}

def AttnInplaceMask : Pass<"attn-inplace-mask", "::mlir::func::FuncOp"> {
  let summary = "Fills masked scores in place where nobody reads them later";
  let description = [{
    A masked fill (an elementwise op that yields its own output element or -inf)
    whose output is a copy, `bufferization.alloc_tensor copy(%scores)`, writes
    into the scores themselves instead, if

    - the scores are computed in this function, not an argument of it, and
    - every other use of them is before the fill and only reads them.

    Otherwise the copy stays and a remark names the reader: a `return`, an op
    after the fill, or the caller. One launch, the copy, is saved per fill.
  }];
}

#endif // ATTN_DIALECT_ATTN_TRANSFORMS_PASSES_TD
