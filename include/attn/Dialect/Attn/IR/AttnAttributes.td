//===- AttnAttributes.td - Attributes of the attn dialect --*- tablegen -*-===//

#ifndef ATTN_DIALECT_ATTN_IR_ATTNATTRIBUTES_TD
#define ATTN_DIALECT_ATTN_IR_ATTNATTRIBUTES_TD

include "mlir/IR/AttrTypeBase.td"
include "attn/Dialect/Attn/IR/AttnDialect.td"

def Attn_ScheduleAttr : AttrDef<AttnDialect, "Schedule"> {
  let mnemonic = "schedule";
  let summary = "How one attention operator is cut into tiles and stages";
  let description = [{
    The schedule is IR: `attn-select-schedule` picks one from a table for the
    target, and a user may write one on the operator instead, which is then
    checked against the target's budget.

    - `block_m`: query rows a program computes.
    - `block_n`: keys a step of the KV loop takes.
    - `num_stages`: K and V tiles held in shared memory at a time (1 = no
      overlap of loads with compute). The CPU ignores it.
    - `num_warps`: warps of a program. The CPU ignores it.

    ```mlir
    #attn.schedule<block_m = 128, block_n = 64, num_stages = 2, num_warps = 4>
    ```
  }];
  let parameters = (ins "int64_t":$blockM, "int64_t":$blockN,
                        "int64_t":$numStages, "int64_t":$numWarps);
  let assemblyFormat = [{
    `<` `block_m` `=` $blockM `,` `block_n` `=` $blockN `,`
    `num_stages` `=` $numStages `,` `num_warps` `=` $numWarps `>`
  }];
  let genVerifyDecl = 1;
}

#endif // ATTN_DIALECT_ATTN_IR_ATTNATTRIBUTES_TD
