//===- HopperTypes.td - Types of the hopper dialect --------*- tablegen -*-===//

#ifndef ATTN_DIALECT_HOPPER_IR_HOPPERTYPES_TD
#define ATTN_DIALECT_HOPPER_IR_HOPPERTYPES_TD

include "mlir/IR/AttrTypeBase.td"
include "attn/Dialect/Hopper/IR/HopperDialect.td"

class Hopper_Type<string name, string typeMnemonic>
    : TypeDef<HopperDialect, name> {
  let mnemonic = typeMnemonic;
}

def Hopper_RingType : Hopper_Type<"Ring", "ring"> {
  let summary = "Slots for tiles in shared memory, handed from role to role";
  let description = [{
    `stages` slots, each for one 16-bit tile or numbers (`tensor<Nxi32>`),
    with two mbarriers a slot: *full* (the producer to the consumers) and
    *empty* (back). The n-th tile that passes through the ring uses slot `n mod
    stages`.

    A tile is stored as blocks of 64 columns, one after the other; a block's
    rows are 128 bytes, its 16-byte chunks XOR-swizzled by `row mod 8`: what
    TMA writes and wgmma reads in the 128-byte swizzle mode.
  }];
  let parameters = (ins "int64_t":$stages, "::mlir::RankedTensorType":$tile);
  let assemblyFormat = "`<` $stages `x` $tile `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Columns of one block of the 128-byte swizzle mode.
    static constexpr int64_t kBlockColumns = 64;
    bool isNumber() { return getTile().getElementType().isInteger(); }
    int64_t getNumBlocks() {
      return (getTile().getDimSize(1) + kBlockColumns - 1) / kBlockColumns;
    }
    int64_t getBlockBytes() { return getTile().getDimSize(0) * 128; }
    int64_t getSlotBytes() {
      return isNumber() ? 4 * getTile().getNumElements()
                        : getNumBlocks() * getBlockBytes();
    }
    int64_t getBytes() { return getStages() * getSlotBytes(); }
  }];
}

def Hopper_SlotType : Hopper_Type<"Slot", "slot"> {
  let summary = "A slot of a ring that this role may use now";
  let parameters = (ins "::mlir::RankedTensorType":$tile);
  let assemblyFormat = "`<` $tile `>`";
  let extraClassDeclaration = [{
    bool isNumber() { return getTile().getElementType().isInteger(); }
  }];
}

def Hopper_PendingType : Hopper_Type<"Pending", "pending"> {
  let summary = "A tile that matrix products are still writing";
  let description = [{
    Its registers must not be read or written before `hopper.wgmma_wait`; only
    another product may take it, as its accumulator. Loops and branches may hand
    it on.
  }];
  let parameters = (ins "::mlir::RankedTensorType":$tile);
  let assemblyFormat = "`<` $tile `>`";
}

#endif // ATTN_DIALECT_HOPPER_IR_HOPPERTYPES_TD
