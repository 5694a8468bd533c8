//===- TileAttributes.td - Attributes of the tile dialect --*- tablegen -*-===//

#ifndef ATTN_DIALECT_TILE_IR_TILEATTRIBUTES_TD
#define ATTN_DIALECT_TILE_IR_TILEATTRIBUTES_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "attn/Dialect/Tile/IR/TileDialect.td"

//===----------------------------------------------------------------------===//
// Enumerations
//===----------------------------------------------------------------------===//

def Tile_MatmulPath : I32EnumAttr<"MatmulPath",
    "which arithmetic a matrix product uses", [
  I32EnumAttrCase<"MMA", 0, "mma">,
  I32EnumAttrCase<"TF32x3", 1, "tf32x3">,
  I32EnumAttrCase<"FMA", 2, "fma">]> {
  let cppNamespace = "::mlir::tile";
  let description = [{
    - `mma`: 16-bit and 8-bit operands on the matrix units, f32 accumulation.
    - `tf32x3`: f32 operands as three TF32 products on the matrix units, which
      keeps an f32 error bound.
    - `fma`: f32 operands on the scalar units, off the matrix units.

    The CPU runs all three as f32 FMA.
  }];
  let genSpecializedAttr = 0;
}
def Tile_MatmulPathAttr : EnumAttr<TileDialect, Tile_MatmulPath, "path"> {
  let assemblyFormat = "$value";
}

def Tile_ReduceKind : I32EnumAttr<"ReduceKind", "how a row is reduced", [
  I32EnumAttrCase<"Max", 0, "max">,
  I32EnumAttrCase<"Add", 1, "add">]> {
  let cppNamespace = "::mlir::tile";
  let genSpecializedAttr = 0;
}
def Tile_ReduceKindAttr : EnumAttr<TileDialect, Tile_ReduceKind, "reduce"> {
  let assemblyFormat = "$value";
}

//===----------------------------------------------------------------------===//
// Memory spaces
//===----------------------------------------------------------------------===//

def Tile_PagesAttr : AttrDef<TileDialect, "Pages"> {
  let mnemonic = "pages";
  let summary = "The memory space of a memref whose rows lie in pages";
  let description = [{
    Rows of such a memref have no common stride: only `tile.load` and
    `tile.async_load` of tiles of rank 2 reach them (`tile.paged_rows`).
  }];
  let assemblyFormat = "";
}

//===----------------------------------------------------------------------===//
// Layout encodings
//===----------------------------------------------------------------------===//

class Tile_Layout<string name, string attrMnemonic>
    : AttrDef<TileDialect, name> {
  let mnemonic = attrMnemonic;
}

def Tile_MmaLayoutAttr : Tile_Layout<"MmaLayout", "mma"> {
  let summary = "Accumulator of the warp-level m16 x n8 matrix products";
  let description = [{
    Warps split the rows in blocks of 16; a warp's thread `4g + t` holds
    columns `2t, 2t+1` of rows `g` and `g + 8` of every m16 x n8 block. A tile
    of more than `16 * warps` rows repeats the pattern every `16 * warps` rows.
    mma.sync and wgmma accumulators share it. A thread's elements are ordered
    [row repeat][n8 block][row half][column pair].
  }];
  let parameters = (ins "int64_t":$warps);
  let assemblyFormat = "`<` `warps` `=` $warps `>`";
  let genVerifyDecl = 1;
}

def Tile_OperandLayoutAttr : Tile_Layout<"OperandLayout", "operand"> {
  let summary = "Left operand (A) of a matrix product, in registers";
  let description = [{
    The elements lie in threads as in the parent accumulator: for 16-bit types
    the registers of two neighbouring n8 blocks are the A registers of one
    m16n8k16, and for f32 the products permute k so that a thread's columns
    `2t, 2t+1` of an n8 block are the A columns `t, t+4` of one m16n8k8. So an
    accumulator becomes an operand without moving between threads.

    For 8-bit types a register holds four neighbouring k: slots `4t` to `4t+3`
    of 16. There a thread puts its columns `2t, 2t+1` of two neighbouring n8
    blocks, which permutes k (`getOperandColumn` in Layout.h); the right operand
    lies permuted in memory.
  }];
  let parameters = (ins "::mlir::tile::MmaLayoutAttr":$parent);
  let assemblyFormat = "`<` $parent `>`";
}

def Tile_SharedLayoutAttr : Tile_Layout<"SharedLayout", "shared"> {
  let summary = "A tile in shared memory, rows of 16-byte chunks XOR-swizzled";
  let description = [{
    Rows lie one after the other. The 16-byte chunk `c` of row `r` is stored at
    chunk `c ^ phase(r)`, so that 8 rows' chunks of one column fall into
    different banks (`SharedSwizzle` in Layout.h).
  }];
  let assemblyFormat = "";
}

def Tile_BlockedLayoutAttr : Tile_Layout<"BlockedLayout", "blocked"> {
  let summary = "Rows of contiguous vectors, for coalesced access";
  let description = [{
    A row is covered by `threads_per_row` neighbouring threads (a power of two,
    at most 32), each holding `vector` contiguous elements, repeated along the
    row; the program's `32 * warps / threads_per_row` thread groups split the
    rows, repeated down the tile. A thread's elements are ordered [row repeat]
    [column repeat][vector]. A tile of rank 1 is one row that all threads share.
  }];
  let parameters = (ins "int64_t":$vector, "int64_t":$threadsPerRow,
                        "int64_t":$warps);
  let assemblyFormat = [{
    `<` `vector` `=` $vector `,` `threads_per_row` `=` $threadsPerRow `,`
    `warps` `=` $warps `>`
  }];
  let genVerifyDecl = 1;
}

def Tile_RowLayoutAttr : Tile_Layout<"RowLayout", "row"> {
  let summary = "A value per row, held by every thread that holds the row";
  let parameters = (ins "::mlir::Attribute":$parent);
  let assemblyFormat = "`<` $parent `>`";
}

def Tile_ColLayoutAttr : Tile_Layout<"ColLayout", "col"> {
  let summary = "A value per column, held by every thread that holds the column";
  let parameters = (ins "::mlir::Attribute":$parent);
  let assemblyFormat = "`<` $parent `>`";
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

def Tile_BufferType : TypeDef<TileDialect, "Buffer"> {
  let mnemonic = "buffer";
  let summary = "A ring of tiles in shared memory";
  let description = [{
    `stages` tiles of one type, each laid out as `#tile.shared` says.

    ```mlir
    !tile.buffer<2, tensor<64x64xbf16>>
    ```
  }];
  let parameters = (ins "int64_t":$stages, "::mlir::RankedTensorType":$tile);
  let assemblyFormat = "`<` $stages `,` $tile `>`";
  let extraClassDeclaration = [{
    int64_t getTileBytes() {
      return getTile().getNumElements() * getTile().getElementTypeBitWidth() / 8;
    }
    int64_t getBytes() { return getStages() * getTileBytes(); }
  }];
}

#endif // ATTN_DIALECT_TILE_IR_TILEATTRIBUTES_TD
