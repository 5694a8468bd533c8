//===- AttnAttributes.td - Attributes of the attn dialect --*- tablegen -*-===//

#ifndef ATTN_DIALECT_ATTN_IR_ATTNATTRIBUTES_TD
#define ATTN_DIALECT_ATTN_IR_ATTNATTRIBUTES_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "attn/Dialect/Attn/IR/AttnDialect.td"

def Attn_RolePipeline : I32Enum<"RolePipeline",
    "how the consumers of a kernel with warp roles overlap products and softmax", [
  I32EnumCase<"Simple", 0, "simple">,
  I32EnumCase<"Overlap", 1, "overlap">,
  I32EnumCase<"Ahead", 2, "ahead">]> {
  let cppNamespace = "::mlir::attn";
}

def Attn_VTranspose : I32Enum<"VTranspose",
    "where 8-bit values are transposed for the products that read them", [
  I32EnumCase<"Prepass", 0, "prepass">,
  I32EnumCase<"Producer", 1, "producer">]> {
  let cppNamespace = "::mlir::attn";
}

def Attn_WarpRolesAttr : AttrDef<AttnDialect, "WarpRoles"> {
  let mnemonic = "warp_roles";
  let summary = "How a kernel with warp roles (sm_90a) is pipelined";
  let description = [{
    - `pipeline`: `simple` runs QK, softmax and PV of a step one after the
      other; `overlap` runs PV of a step under the softmax of the next; `ahead`
      runs QK of the step after it there too, for which there are two score
      tiles in registers.
    - `lazy_rescale`: the running maximum, and with it the output, is updated
      only when a score exceeds it by more than 8 powers of two.
    - `persistent`: one program a multiprocessor, which takes tiles of queries
      from a counter until there are none.
    - `q_stages`: Q tiles in shared memory (1 or 2).
    - `tma_store`: the output goes through shared memory and TMA.
    - `v_transpose`: of 8-bit inputs, whose products take V only with its keys
      contiguous. `prepass` is a kernel in front that writes V so once; with
      `producer` the idle warps of the producer's warpgroup transpose every tile
      in shared memory, where two tiles more lie meanwhile.

    The attribute `attn.warp_roles` of a `tile.kernel` holds one.

    ```mlir
    #attn.warp_roles<pipeline = ahead, lazy_rescale = true, persistent = true, q_stages = 2, tma_store = true>
    ```
  }];
  let parameters = (ins
    DefaultValuedParameter<"::mlir::attn::RolePipeline", "::mlir::attn::RolePipeline::Overlap">:$pipeline,
    DefaultValuedParameter<"bool", "false">:$lazy_rescale,
    DefaultValuedParameter<"bool", "false">:$persistent,
    DefaultValuedParameter<"int64_t", "1">:$q_stages,
    DefaultValuedParameter<"bool", "false">:$tma_store,
    DefaultValuedParameter<"::mlir::attn::VTranspose", "::mlir::attn::VTranspose::Prepass">:$v_transpose);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The attribute of a tile.kernel.
    static ::llvm::StringRef getKernelAttrName() { return "attn.warp_roles"; }
    static WarpRolesAttr getDefault(::mlir::MLIRContext *context) {
      return get(context, RolePipeline::Overlap, /*lazy_rescale=*/false,
                 /*persistent=*/false, /*q_stages=*/1, /*tma_store=*/false,
                 VTranspose::Prepass);
    }
  }];
}

def Attn_DecodeAttr : AttrDef<AttnDialect, "Decode"> {
  let mnemonic = "decode";
  let summary = "How a kernel for few queries fills the device";
  let description = [{
    The query heads that share a KV head are rows of one tile, query by query,
    so that K and V are read once for all of them. The keys are cut into parts
    of whole steps of the KV loop, a program each; where there are several, they
    leave partial results in memory, and a second kernel merges them.

    - `max_splits`: parts at most. With 1 there is no second kernel.
    - `programs_per_sm`: there are about as many parts as it takes to give every
      multiprocessor this many programs.
    - `split_keys`: keys in a part, a multiple of `block_n`, whatever the
      device; 0 leaves it to `programs_per_sm`.

    On targets with warp roles such a kernel has none.

    ```mlir
    #attn.decode<max_splits = 64, programs_per_sm = 4>
    ```
  }];
  let parameters = (ins
    DefaultValuedParameter<"int64_t", "64">:$max_splits,
    DefaultValuedParameter<"int64_t", "4">:$programs_per_sm,
    DefaultValuedParameter<"int64_t", "0">:$split_keys);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Whether there may be several parts.
    bool splits() const { return getMaxSplits() > 1; }
  }];
}

def Attn_ScheduleAttr : AttrDef<AttnDialect, "Schedule"> {
  let mnemonic = "schedule";
  let summary = "How one attention operator is cut into tiles and stages";
  let description = [{
    The schedule is IR: `attn-select-schedule` picks one from a table for the
    target, and a user may write one on the operator instead, which is then
    checked against the target's budget.

    - `block_m`: query rows a program computes; of all heads of a KV head with
      `decode`.
    - `block_n`: keys a step of the KV loop takes.
    - `num_stages`: K and V tiles held in shared memory at a time (1 = no
      overlap of loads with compute). The CPU ignores it.
    - `num_warps`: warps of a program. The CPU ignores it.
    - `warp_roles`: of kernels with warp roles; others ignore it.
    - `decode`: makes it a kernel for few queries.
    - `v_columns`: columns of V, and so of the output, that a program computes
      (0 = all). Several programs share the rest and repeat the scores: for
      head dimensions whose output has no room in registers.

    ```mlir
    #attn.schedule<block_m = 128, block_n = 64, num_stages = 2, num_warps = 4>
    ```
  }];
  let parameters = (ins "int64_t":$blockM, "int64_t":$blockN,
                        "int64_t":$numStages, "int64_t":$numWarps,
                        OptionalParameter<"::mlir::attn::WarpRolesAttr">:$warpRoles,
                        OptionalParameter<"::mlir::attn::DecodeAttr">:$decode,
                        DefaultValuedParameter<"int64_t", "0">:$vColumns);
  let assemblyFormat = [{
    `<` `block_m` `=` $blockM `,` `block_n` `=` $blockN `,`
    `num_stages` `=` $numStages `,` `num_warps` `=` $numWarps
    `` custom<ScheduleKind>($warpRoles, $decode, $vColumns) `>`
  }];
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The attribute of a tile.kernel, and of the function that it becomes.
    static ::llvm::StringRef getKernelAttrName() { return "attn.schedule"; }
    /// The columns of V that a program computes, of `columns`.
    int64_t getVColumnsOf(int64_t columns) const {
      return getVColumns() == 0 ? columns : std::min(getVColumns(), columns);
    }
  }];
}

def Attn_ShortScheduleAttr : AttrDef<AttnDialect, "ShortSchedule"> {
  let mnemonic = "short_schedule";
  let summary = "A schedule for short query sequences";
  let description = [{
    `schedule` is for sequences of at most `max_q_len` queries. The length is
    known when the program runs, so that a kernel is made for each schedule of
    an operator, and the plan launches one of them.

    ```mlir
    #attn.short_schedule<max_q_len = 512, schedule = <block_m = 128, block_n = 64, num_stages = 2, num_warps = 4>>
    ```
  }];
  let parameters = (ins "int64_t":$maxQLen, "::mlir::attn::ScheduleAttr":$schedule);
  let assemblyFormat = [{
    `<` `max_q_len` `=` $maxQLen `,` `schedule` `=` $schedule `>`
  }];
  let genVerifyDecl = 1;
}

def Attn_ShortScheduleArrayAttr
    : TypedArrayAttrBase<Attn_ShortScheduleAttr, "schedules by increasing max_q_len">;

#endif // ATTN_DIALECT_ATTN_IR_ATTNATTRIBUTES_TD
