//===- AttnDialect.td - The attn dialect -------------------*- tablegen -*-===//

#ifndef ATTN_DIALECT_ATTN_IR_ATTNDIALECT_TD
#define ATTN_DIALECT_ATTN_IR_ATTNDIALECT_TD

include "mlir/IR/OpBase.td"

def AttnDialect : Dialect {
  let name = "attn";
  let cppNamespace = "::mlir::attn";
  let summary = "Attention as one tensor-level operator";
  let description = [{
    The dialect states what attention computes and nothing about how. One
    operator, `attn.attention`, carries q, k, v and any rule that changes a
    score (`score_mod`) or hides a key (`mask_mod`) as small scalar regions.
    Causal masks, windows, ALiBi and softcap are builders over those regions
    (see `attn/Dialect/Attn/IR/AttnMods.h`): the region is the only truth.

    `convert-attn-to-linalg` lowers it to an unfused sequence of primitives,
    `convert-attn-to-tile` to one fused kernel.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let useDefaultAttributePrinterParser = 1;
}

#endif // ATTN_DIALECT_ATTN_IR_ATTNDIALECT_TD
