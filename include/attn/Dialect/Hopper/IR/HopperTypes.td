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
    `stages` slots, each for one tile or numbers (`tensor<Nxi32>`), with two
    mbarriers a slot: *full* (the producer to the consumers) and *empty* (back).
    The n-th tile that passes through the ring uses slot `n mod stages`.

    A tile is stored as blocks of columns, one after the other. A block's rows
    are 128 bytes, its 16-byte chunks XOR-swizzled by `row mod 8`: what TMA
    writes and wgmma reads in the 128-byte swizzle mode. Tiles of 16 or 32 bits
    that don't fill a block waste the rest. Those of 8 bits, whose key tiles
    rarely are multiples of 128 columns, have narrower blocks instead where that
    divides their columns: 64 bytes, swizzled by `row / 2 mod 4`, or 32 bytes,
    swizzled by `row / 4 mod 2`. Products take tiles of 16-bit or 8-bit floats;
    those of 16-bit floats, f32, i1 (a byte), i8 and i32 can be read.
  }];
  let parameters = (ins "int64_t":$stages, "::mlir::RankedTensorType":$tile);
  let assemblyFormat = "`<` $stages `x` $tile `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    bool isNumber() { return getTile().getRank() == 1; }
    /// Whether `hopper.read` reads tiles of such elements.
    static bool isReadable(::mlir::Type element);
    /// Bytes of a row of a block: the width of its swizzle mode.
    int64_t getBlockRowBytes();
    /// In memory, where an i1 takes a byte.
    int64_t getElementBytes() {
      return (getTile().getElementTypeBitWidth() + 7) / 8;
    }
    int64_t getBlockColumns() { return getBlockRowBytes() / getElementBytes(); }
    int64_t getNumBlocks() {
      return (getTile().getDimSize(1) + getBlockColumns() - 1) /
             getBlockColumns();
    }
    int64_t getBlockBytes() {
      return getTile().getDimSize(0) * getBlockRowBytes();
    }
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
    bool isNumber() { return getTile().getRank() == 1; }
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
