//===- TileOps.td - Operations of the tile dialect ---------*- tablegen -*-===//

#ifndef ATTN_DIALECT_TILE_IR_TILEOPS_TD
#define ATTN_DIALECT_TILE_IR_TILEOPS_TD

include "attn/Dialect/Tile/IR/TileAttributes.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/CallInterfaces.td"
include "mlir/Interfaces/FunctionInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Tile_Op<string mnemonic, list<Trait> traits = []>
    : Op<TileDialect, mnemonic, traits>;

def Tile_Tile : StaticShapeTensorOf<[AnyType]>;
def Tile_Tile1D : Type<
    And<[Tile_Tile.predicate, HasAnyRankOfPred<[1]>]>, "static rank-1 tile",
    "::mlir::RankedTensorType">;
def Tile_Tile2D : Type<
    And<[Tile_Tile.predicate, HasAnyRankOfPred<[2]>]>, "static rank-2 tile",
    "::mlir::RankedTensorType">;

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

def KernelOp : Tile_Op<"kernel", [
    FunctionOpInterface, IsolatedFromAbove, AutomaticAllocationScope]> {
  let summary = "The work of one program";
  let description = [{
    Programs are numbered from 0 in one dimension (`tile.program_id`).
    Arguments are strided memrefs with innermost stride 1 and scalars (i32,
    i64, f32). `num_warps` is the number of warps of a program on a GPU. The
    `num_stages` is how many steps' loads a
    loop keeps in shared memory at once (1 or absent: no prefetch). The
    name is unique and readable and carries the path that the kernel takes,
    e.g. `naive_qk_s16816_bf16`.

    ```mlir
    tile.kernel @scale(%x: memref<?x?xf32, strided<[?, 1]>>, %c: f32) attributes {num_warps = 4 : i32} {
      %pid = tile.program_id : i32
      %zero = arith.constant 0 : i32
      %c64 = arith.constant 64 : i32
      %row = arith.muli %pid, %c64 : i32
      %t = tile.load %x[%row, %zero] : memref<?x?xf32, strided<[?, 1]>> -> tensor<64x64xf32>
      %s = tensor.splat %c : tensor<64x64xf32>
      %y = arith.mulf %t, %s : tensor<64x64xf32>
      tile.store %y, %x[%row, %zero] : tensor<64x64xf32>, memref<?x?xf32, strided<[?, 1]>>
      tile.return
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
                       TypeAttrOf<FunctionType>:$function_type,
                       I32Attr:$num_warps,
                       OptionalAttr<I32Attr>:$num_stages,
                       OptionalAttr<DictArrayAttr>:$arg_attrs,
                       OptionalAttr<DictArrayAttr>:$res_attrs);
  let regions = (region AnyRegion:$body);
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name,
                                 "::mlir::TypeRange":$argTypes,
                                 "int32_t":$numWarps)>];
  let skipDefaultBuilders = 1;
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::llvm::ArrayRef<::mlir::Type> getArgumentTypes() {
      return getFunctionType().getInputs();
    }
    ::llvm::ArrayRef<::mlir::Type> getResultTypes() {
      return getFunctionType().getResults();
    }
    ::mlir::Region *getCallableRegion() { return &getBody(); }
  }];
}

def ReturnOp : Tile_Op<"return", [Pure, Terminator, HasParent<"KernelOp">]> {
  let summary = "Ends a kernel";
  let assemblyFormat = "attr-dict";
}

def LaunchOp : Tile_Op<"launch", [
    AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "Runs `grid` programs of a kernel, from host code";
  let description = [{
    Launches are ordered as host code orders them. A grid of 0 runs nothing.
    `cost` states the bytes of device memory that the kernel must move (each
    input read once, each output written once) and its floating-point
    operations; it reaches the manifest and the reports. `prepass` says that the
    kernel finds something out about its inputs that holds as long as their
    content: it writes memory that nothing else writes.

    ```mlir
    tile.launch @scale grid(%n) args(%x, %c) cost(bytes %b, flops %f)
      : memref<?x?xf32, strided<[?, 1]>>, f32
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, Index:$grid,
                       Variadic<AnyType>:$args,
                       Optional<Index>:$bytes, Optional<Index>:$flops,
                       UnitAttr:$prepass);
  let assemblyFormat = [{
    $kernel `grid` `(` $grid `)` `args` `(` $args `)`
    (`cost` `(` `bytes` $bytes^ `,` `flops` $flops `)`)? (`prepass` $prepass^)?
    attr-dict (`:` type($args)^)?
  }];
  let hasVerifier = 1;
}

def NumSMsOp : Tile_Op<"num_sms", [Pure]> {
  let summary = "Multiprocessors of the device that runs the plan, in host code";
  let description = [{
    On a CPU, the threads that run programs.

    ```mlir
    %n = tile.num_sms : index
    ```
  }];
  let results = (outs Index:$count);
  let assemblyFormat = "attr-dict `:` type($count)";
}

def ProgramIdOp : Tile_Op<"program_id", [Pure]> {
  let summary = "The number of this program";
  let results = (outs I32:$id);
  let assemblyFormat = "attr-dict `:` type($id)";
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

def LoadOp : Tile_Op<"load", [
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "Loads a tile; elements outside the memref are zero";
  let description = [{
    With a tile of rank r, the last r indices give the position of its first
    element in the last r dimensions of `source`; the others select. Element
    (i, j) is `source[..., row + i, col + j]`, and 0 where that lies outside
    the memref's sizes. Indices are i32; addresses are computed in 64 bits.

    With `interleave` g, the rows of g neighbouring matrices (of a tile of rank
    1, elements of g neighbouring vectors) come in turn: row r, counted from row
    0, is row r / g of the matrix r % g, the first of which the index in front
    of the row's says. All g exist.

    ```mlir
    %t = tile.load %k[%b, %h, %row, %zero]
      : memref<?x4x?x64xbf16, strided<[?, ?, ?, 1]>> -> tensor<64x64xbf16>
    %q = tile.load %q[%b, %h, %row, %zero] interleave 4
      : memref<?x16x?x64xbf16, strided<[?, ?, ?, 1]>> -> tensor<16x64xbf16>
    ```
  }];
  let arguments = (ins AnyMemRef:$source, Variadic<I32>:$indices,
                       DefaultValuedAttr<I64Attr, "1">:$interleave);
  let results = (outs Tile_Tile:$result);
  let builders = [OpBuilder<(ins "::mlir::Type":$result,
                                 "::mlir::Value":$source,
                                 "::mlir::ValueRange":$indices), [{
    build($_builder, $_state, result, source, indices, /*interleave=*/1);
  }]>];
  let assemblyFormat = [{
    $source `[` $indices `]` (`interleave` $interleave^)? attr-dict `:`
    type($source) `->` type($result)
  }];
  let hasVerifier = 1;
}

def GatherOp : Tile_Op<"gather", [Pure]> {
  let summary = "Reads elements at computed positions; 0 outside the memref";
  let description = [{
    Without tiles among the indices, the element of `source` there. With tiles,
    which have one shape, a tile of that shape: its element (i, j) is read at
    the elements (i, j) of the tiles and at the other indices. It is 0 where an
    index is negative or not below the memref's size, except in dimensions of
    `in_bounds`, whose indices never are. Indices are i32; addresses are
    computed in 64 bits.

    No program of the launch writes `source`, so the op has no effect and may
    be moved and repeated freely.

    ```mlir
    %slope = tile.gather %slopes[%h] in_bounds [0] : memref<16xf32>, (i32) -> f32
    %t = tile.gather %table[%h, %d] in_bounds [0]
      : memref<16x?xbf16, strided<[?, 1]>>, (i32, tensor<64x64xi32>) -> tensor<64x64xbf16>
    ```
  }];
  let arguments = (ins AnyMemRef:$source, Variadic<AnyType>:$indices,
                       DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$in_bounds);
  let results = (outs AnyType:$result);
  let assemblyFormat = [{
    $source `[` $indices `]` (`in_bounds` $in_bounds^)? attr-dict `:`
    type($source) `,` functional-type($indices, $result)
  }];
  let hasVerifier = 1;
}

def PagedRowsOp : Tile_Op<"paged_rows", [Pure]> {
  let summary = "Rows that lie in pages, as one memref";
  let description = [{
    Row j of the result is row j mod page of `pool`'s batch
    `table[sequence, j / page]`, for j below `length`. `pool` is [pages, heads,
    page, columns] with a static page, a power of two, and `table` holds i32.
    Numbers of pages are moved into the pool, so that no load leaves it.

    ```mlir
    %k = tile.paged_rows %pool through %table[%b] length %n
      : memref<?x4x16x64xbf16>, memref<?x?xi32> -> memref<1x4x?x64xbf16, #tile.pages>
    %t = tile.load %k[%zero, %h, %row, %zero] : memref<1x4x?x64xbf16, #tile.pages> -> tensor<64x64xbf16>
    ```
  }];
  let arguments = (ins AnyMemRef:$pool, AnyMemRef:$table, I32:$sequence,
                       I32:$length);
  let results = (outs AnyMemRef:$result);
  let assemblyFormat = [{
    $pool `through` $table `[` $sequence `]` `length` $length attr-dict `:`
    type($pool) `,` type($table) `->` type($result)
  }];
  let builders = [OpBuilder<(ins "::mlir::Value":$pool, "::mlir::Value":$table,
                                 "::mlir::Value":$sequence,
                                 "::mlir::Value":$length)>];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    int64_t getPageRows() {
      return ::llvm::cast<::mlir::MemRefType>(getPool().getType()).getDimSize(2);
    }
    /// The type of rows that lie in the pages of `pool`.
    static ::mlir::MemRefType getRowsType(::mlir::MemRefType pool);
  }];
}

def StoreOp : Tile_Op<"store", [
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "Stores a tile; elements outside the memref are dropped";
  let description = [{
    Positions are those of `tile.load`, with `interleave` too.

    ```mlir
    tile.store %t, %o[%b, %h, %row, %zero]
      : tensor<64x64xbf16>, memref<?x4x?x64xbf16, strided<[?, ?, ?, 1]>>
    ```
  }];
  let arguments = (ins Tile_Tile:$value, AnyMemRef:$dest,
                       Variadic<I32>:$indices,
                       DefaultValuedAttr<I64Attr, "1">:$interleave);
  let builders = [OpBuilder<(ins "::mlir::Value":$value,
                                 "::mlir::Value":$dest,
                                 "::mlir::ValueRange":$indices), [{
    build($_builder, $_state, value, dest, indices, /*interleave=*/1);
  }]>];
  let assemblyFormat = [{
    $value `,` $dest `[` $indices `]` (`interleave` $interleave^)? attr-dict `:`
    type($value) `,` type($dest)
  }];
  let hasVerifier = 1;
}

def StoreElementOp : Tile_Op<"store_element", [
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "Stores one i32; nothing outside the memref";
  let description = [{
    The counterpart of a `tile.gather` without tiles.

    ```mlir
    tile.store_element %n, %counts[%b, %tile] : memref<?x?xi32>
    ```
  }];
  let arguments = (ins I32:$value, MemRefOf<[I32]>:$dest,
                       Variadic<I32>:$indices);
  let assemblyFormat = "$value `,` $dest `[` $indices `]` attr-dict `:` type($dest)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Shared memory (GPU)
//===----------------------------------------------------------------------===//

def AllocBufferOp : Tile_Op<"alloc_buffer"> {
  let summary = "Reserves a ring of tiles in shared memory, for the whole kernel";
  let results = (outs Tile_BufferType:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

def AsyncLoadOp : Tile_Op<"async_load", [
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "Starts copying a tile from memory into a slot of a buffer";
  let description = [{
    Element positions and zero fill are those of `tile.load`, with `interleave`
    too. Nothing happens where `condition` is false. The copy belongs to the next
    `tile.async_commit` and must be waited for with `tile.async_wait`.

    ```mlir
    tile.async_load %k[%b, %h, %row, %zero] to %buffer[%slot] if %more
      : memref<?x4x?x64xbf16, strided<[?, ?, ?, 1]>>, !tile.buffer<2, tensor<64x64xbf16>>
    ```
  }];
  let arguments = (ins AnyMemRef:$source, Variadic<I32>:$indices,
                       Tile_BufferType:$buffer, I32:$slot, I1:$condition,
                       DefaultValuedAttr<I64Attr, "1">:$interleave);
  let assemblyFormat = [{
    $source `[` $indices `]` (`interleave` $interleave^)? `to` $buffer
    `[` $slot `]` `if` $condition attr-dict `:` type($source) `,` type($buffer)
  }];
  let hasVerifier = 1;
}

def AsyncCommitOp : Tile_Op<"async_commit"> {
  let summary = "Closes the group of copies started since the last commit";
  let assemblyFormat = "attr-dict";
}

def AsyncWaitOp : Tile_Op<"async_wait"> {
  let summary = "Waits until at most `pending` groups are under way";
  let description = [{
    Afterwards the older groups' tiles may be read by every thread, and every
    thread is past its earlier reads: a barrier of the program.
  }];
  let arguments = (ins I32Attr:$pending);
  let assemblyFormat = "$pending attr-dict";
}

def BufferReadOp : Tile_Op<"buffer_read", [
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "The tile in a slot of a buffer";
  let description = [{
    The tile is read where it is used: the slot must not be loaded again before
    that.
  }];
  let arguments = (ins Tile_BufferType:$buffer, I32:$slot);
  let results = (outs Tile_Tile2D:$result);
  let assemblyFormat =
      "$buffer `[` $slot `]` attr-dict `:` type($buffer) `->` type($result)";
  let hasVerifier = 1;
}

def ConvertLayoutOp : Tile_Op<"convert_layout", [Pure]> {
  let summary = "The same tile in another layout";
  let arguments = (ins Tile_Tile:$source);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Computation
//===----------------------------------------------------------------------===//

def MmaOp : Tile_Op<"mma", [Pure, AllTypesMatch<["acc", "result"]>]> {
  let summary = "Matrix product with f32 accumulation";
  let description = [{
    `result = a * b + acc`, with a [M, K], b [K, N] and acc [M, N], or
    b [N, K] with `transpose_b`. `a` and `b` have one element type: f16 or bf16
    with path `mma`, f32 with path `tf32x3` or `fma`. With path `mma` both may
    also be of 8-bit floats (f8E4M3FN, f8E5M2), which may differ.

    With `permuted_k`, for 8-bit floats, column `s` of a transposed `b` belongs
    to column `getOperandColumn(s)` of `a` (Layout.h): the order in which a thread
    holds an accumulator that becomes `a` (`#tile.operand`).

    ```mlir
    %s = tile.mma mma %q, %k, %zero {transpose_b}
      : tensor<128x64xbf16>, tensor<64x64xbf16>, tensor<128x64xf32>
    ```
  }];
  let arguments = (ins Tile_MatmulPathAttr:$path, Tile_Tile2D:$a,
                       Tile_Tile2D:$b, Tile_Tile2D:$acc,
                       UnitAttr:$transpose_b, UnitAttr:$permuted_k);
  let results = (outs Tile_Tile2D:$result);
  let assemblyFormat = [{
    $path $a `,` $b `,` $acc attr-dict `:` type($a) `,` type($b) `,` type($acc)
  }];
  let hasVerifier = 1;
}

def ReduceOp : Tile_Op<"reduce", [Pure]> {
  let summary = "Reduces every row of an f32 tile to one value";
  let description = [{
    ```mlir
    %m = tile.reduce max %s : tensor<128x64xf32> -> tensor<128xf32>
    ```
  }];
  let arguments = (ins Tile_ReduceKindAttr:$kind, Tile_Tile2D:$source);
  let results = (outs Tile_Tile1D:$result);
  let assemblyFormat =
      "$kind $source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

def ReduceRangeOp : Tile_Op<"reduce_range", [SingleBlock, Pure,
    RecursiveMemoryEffects]> {
  let summary = "Least and largest values of a rule over a range of numbers";
  let description = [{
    Evaluates the body for every number from `begin` up to, but not including,
    `end`. It yields i32 values, of which the first `num_min` are combined to
    their minimum and the others to their maximum. Of an empty range these are
    the largest and the lowest i32.

    The body is pure scalar `arith`, `math` and `tile.gather`. It may be
    evaluated in any order, at the same time, and more than once for a number.
    Values from above are free to use. On a GPU, the threads of the program
    share the numbers; it must have one warp.

    ```mlir
    %first, %last = tile.reduce_range %c0 to %n min 1 (%i: i32) {
      %x = tile.gather %table[%i] : memref<?xi32>, (i32) -> i32
      tile.yield %x, %x : i32, i32
    } -> i32, i32
    ```
  }];
  let arguments = (ins I32:$begin, I32:$end,
                       ConfinedAttr<I64Attr, [IntNonNegative]>:$num_min);
  let results = (outs Variadic<I32>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $begin `to` $end `min` $num_min custom<ModRegion>($body) attr-dict `->`
    type($results)
  }];
  let hasRegionVerifier = 1;
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins
      "::mlir::Value":$begin, "::mlir::Value":$end, "int64_t":$numMin,
      "::llvm::function_ref<::llvm::SmallVector<::mlir::Value>("
      "::mlir::OpBuilder &, ::mlir::Value)>":$body)>];
  let extraClassDeclaration = [{
    /// Whether the result is a minimum.
    bool isMin(unsigned result) { return result < getNumMin(); }
    /// The result of an empty range.
    int32_t getNeutral(unsigned result);
  }];
}

def AnyExceedsOp : Tile_Op<"any_exceeds", [Pure]> {
  let summary = "Whether some element of a tile exceeds its row's limit";
  let description = [{
    The answer is true if source[i, j] > limits[i] for some i and j. It may be
    true without such an element. Threads that run together (a warp) may get an
    answer of their own, for the rows that they hold. So it may only choose
    between paths that are both right: a costly one that holds for every
    element, and a cheap one that relies on the limits.

    Targets differ in how often they answer true needlessly. On a GPU, elements
    are compared as integers, without a shuffle, and any row whose limit is
    negative makes the answer true. With constant limits of this kind, as before
    the first step of a loop, it canonicalizes to true.

    ```mlir
    %grew = tile.any_exceeds %s, %limit : tensor<128x64xf32>, tensor<128xf32>
    ```
  }];
  let arguments = (ins Tile_Tile2D:$source, Tile_Tile1D:$limits);
  let results = (outs I1:$result);
  let assemblyFormat =
      "$source `,` $limits attr-dict `:` type($source) `,` type($limits)";
  let hasVerifier = 1;
  let hasCanonicalizeMethod = 1;
}

def FoldSumOp : Tile_Op<"fold_sum", [Pure]> {
  let summary = "Adds the columns of a tile by their number modulo 8";
  let description = [{
    `result[i, j]` is the sum over k of `source[i, 8 * k + j]`. It is the part
    of a row sum that needs no exchange between threads under `#tile.mma`: a
    loop carries the folded sums, and a `tile.reduce` after it adds up the rest.

    ```mlir
    %l = tile.fold_sum %p : tensor<128x64xf32> -> tensor<128x8xf32>
    ```
  }];
  let arguments = (ins Tile_Tile2D:$source);
  let results = (outs Tile_Tile2D:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The columns of the result: one block of an accumulator.
    static constexpr int64_t kColumns = 8;
  }];
}

def BroadcastOp : Tile_Op<"broadcast", [Pure]> {
  let summary = "Repeats a vector along the other dimension";
  let description = [{
    `dim` is the dimension of the result that `source` runs along: 0 for a
    value per row, 1 for a value per column.

    ```mlir
    %b = tile.broadcast %m dim 0 : tensor<128xf32> -> tensor<128x64xf32>
    ```
  }];
  let arguments = (ins Tile_Tile1D:$source, I64Attr:$dim);
  let results = (outs Tile_Tile2D:$result);
  let assemblyFormat = [{
    $source `dim` $dim attr-dict `:` type($source) `->` type($result)
  }];
  let hasVerifier = 1;
}

def IotaOp : Tile_Op<"iota", [Pure]> {
  let summary = "0, 1, 2, ...";
  let description = [{
    ```mlir
    %i = tile.iota : tensor<64xi32>
    ```
  }];
  let results = (outs Tile_Tile1D:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def ExpDiffOp : Tile_Op<"exp_diff", [Pure, AllTypesMatch<["source", "result"]>]> {
  let summary = "exp(scale * (x - max)), safe where either is -inf";
  let description = [{
    For x [M, N] (or [M]) and max [M], both f32, element (i, j) is
    `exp(scale * (x[i, j] - max[i]))`; it is 0 where x is -inf, also where max
    is -inf too. `scale` > 0 and x <= max. The result is accurate for every
    finite input: a target may contract the subtraction and the product into
    one FMA only where the rounding of `scale * max` can't show.

    ```mlir
    %p = tile.exp_diff %s, %m scale %c : tensor<128x64xf32>, tensor<128xf32>
    ```
  }];
  let arguments = (ins Tile_Tile:$source, Tile_Tile1D:$max, F32:$scale);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = [{
    $source `,` $max `scale` $scale attr-dict `:` type($source) `,` type($max)
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

class Tile_ScoreRegionOp<string mnemonic, list<Trait> traits = []>
    : Tile_Op<mnemonic, traits # [Pure, SingleBlock, RecursiveMemoryEffects,
          AllTypesMatch<["source", "result"]>]> {
  let arguments = (ins Tile_Tile2D:$source, I32:$q_start, I32:$kv_start);
  let results = (outs Tile_Tile2D:$result);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $source `at` `(` $q_start `,` $kv_start `)` custom<ModRegion>($body)
    attr-dict `:` type($source)
  }];
  let hasRegionVerifier = 1;
}

def ScoreModOp : Tile_ScoreRegionOp<"score_mod"> {
  let summary = "Rewrites every score of a tile by a scalar rule";
  let description = [{
    Element (i, j) becomes `body(source[i, j], q_start + i, kv_start + j)`. The
    body is pure scalar `arith`, `math` and `tile.gather`; values from above
    (batch, head, lengths) are free to use.

    ```mlir
    %t = tile.score_mod %s at (%q0, %kv) (%x: f32, %qi: i32, %ki: i32) {
      %d = arith.subi %ki, %qi : i32
      %f = arith.sitofp %d : i32 to f32
      %y = arith.addf %x, %f : f32
      tile.yield %y : f32
    } : tensor<128x64xf32>
    ```
  }];
}

def ElementOp : Tile_Op<"element", [
    Pure, ParentOneOf<["MaskOp", "ScoreModOp"]>,
    TypesMatchWith<"the result must be an element of the tile", "tile",
        "result", "::mlir::getElementTypeOrSelf($_self)">]> {
  let summary = "The element of a tile that belongs to the score of a rule";
  let description = [{
    In the body of `tile.score_mod` or `tile.mask`, which is about element (i, j)
    of its scores: `tile[i, j]`. The tile has the shape of the scores.

    ```mlir
    %t = tile.score_mod %s at (%q0, %kv) (%x: f32, %qi: i32, %ki: i32) {
      %b = tile.element %bias : tensor<128x64xf32>
      %y = arith.addf %x, %b : f32
      tile.yield %y : f32
    } : tensor<128x64xf32>
    ```
  }];
  let arguments = (ins Tile_Tile2D:$tile);
  let results = (outs AnyType:$result);
  let assemblyFormat = "$tile attr-dict `:` type($tile)";
  let hasVerifier = 1;
}

def MaskOp : Tile_ScoreRegionOp<"mask", [AttrSizedOperandSegments]> {
  let summary = "Sets the scores of hidden keys to -inf";
  let description = [{
    Element (i, j) stays where `body(q_start + i, kv_start + j)` is true and
    becomes -inf elsewhere. `tile-split-kv-ranges` reads the body to find which
    KV tiles need it; `tile-rewrite-masks` turns it into a select in place.
    `skippable` says that a step of the loop around it changes nothing for rows
    that see none of its keys; `tile-split-kv-ranges` proves it.

    With `bounds(%ranges[%b, %h, %t])` a kernel that ran before knows what the
    body hides, and the body isn't read for it: the rows are those of granules
    of `rows` queries each, and `ranges[b, h, granule]` holds four key positions
    begin, full begin, full end and end, as `tile.kv_loop` has them. In the
    granule's rows no key outside [begin, end) is visible, and every key in
    [full begin, full end) is. `q_start` is a multiple of the tile's rows, which
    are whole granules. The first granule of query 0 is the first of query tile
    `t`: several sequences may have their granules in one array.

    With `tiles(%tiles)` that kernel has also listed the tiles of keys of which
    some row of the query tile sees a key: they are
    `tiles[b, h, t + q_start / rows of the tile, 0 ...]`, and what `bounds`
    holds are positions in this list, in keys. `tile-split-kv-ranges` hands the
    list to the `tile.kv_loop` around.

    ```mlir
    %t = tile.mask %s at (%q0, %kv) (%qi: i32, %ki: i32) {
      %keep = arith.cmpi sle, %ki, %qi : i32
      tile.yield %keep : i1
    } : tensor<128x64xf32>
    ```
  }];
  let arguments = (ins Tile_Tile2D:$source, I32:$q_start, I32:$kv_start,
                       UnitAttr:$skippable, Optional<MemRefOf<[I32]>>:$bounds,
                       Variadic<I32>:$bounds_indices,
                       OptionalAttr<I64Attr>:$bounds_rows,
                       Optional<MemRefOf<[I32]>>:$tiles);
  let assemblyFormat = [{
    $source `at` `(` $q_start `,` $kv_start `)`
    (`bounds` `(` $bounds^ `[` $bounds_indices `]` `:` type($bounds) `)` `rows`
     $bounds_rows)?
    (`tiles` `(` $tiles^ `:` type($tiles) `)`)?
    custom<ModRegion>($body) attr-dict `:` type($source)
  }];
  let skipDefaultBuilders = 1;
  let builders = [
    OpBuilder<(ins "::mlir::Type":$type, "::mlir::Value":$source,
                   "::mlir::Value":$qStart, "::mlir::Value":$kvStart), [{
      $_state.addTypes(type);
      $_state.addOperands({source, qStart, kvStart});
      $_state.getOrAddProperties<Properties>().operandSegmentSizes = {1, 1, 1,
                                                                      0, 0, 0};
      $_state.addRegion();
    }]>
  ];
  let extraClassDeclaration = [{
    /// How the ranges of a granule lie in the last dimension of `bounds`.
    enum BoundsField { Begin, FullBegin, FullEnd, End, NumBoundsFields };

    /// The number of the query tile in `bounds` and `tiles`.
    ::mlir::Value getTileNumber(::mlir::OpBuilder &builder);
  }];
  let hasVerifier = 1;
}

def OnlineSoftmaxOp : Tile_Op<"online_softmax", [Pure,
    AllTypesMatch<["scores", "p"]>,
    AllTypesMatch<["max_in", "sum_in", "max_out", "sum_out", "alpha"]>]> {
  let summary = "One step of softmax over a row that arrives in tiles";
  let description = [{
    With c = `scale` > 0, e = `exponent` and all values f32,

    ```
    max_out = max(max_in, rowmax(scores))
    p       = 2^e * exp(c * (scores - max_out))   0 where the score is -inf
    alpha   = exp(c * (max_in - max_out))         0 where max_in is -inf
    sum_out = sum_in * alpha + rowsum(p)
    ```

    `exponent`, 0 if absent, moves p into the range of a type that has few
    exponents. Starting from max = -inf and sum = 0, after the last tile
    `sum = 2^e * rowsum(exp(c * (s - max)))`; the partial output of earlier tiles is
    to be multiplied by `alpha`. A row with no finite score keeps max = -inf
    and sum = 0, and its p is 0.

    ```mlir
    %p, %m1, %l1, %alpha = tile.online_softmax %s, %m0, %l0 scale %c
      : tensor<128x64xf32>, tensor<128xf32>
    ```
  }];
  let arguments = (ins Tile_Tile2D:$scores, Tile_Tile1D:$max_in,
                       Tile_Tile1D:$sum_in, F32:$scale,
                       DefaultValuedAttr<I32Attr, "0">:$exponent);
  let results = (outs Tile_Tile2D:$p, Tile_Tile1D:$max_out,
                      Tile_Tile1D:$sum_out, Tile_Tile1D:$alpha);
  let assemblyFormat = [{
    $scores `,` $max_in `,` $sum_in `scale` $scale attr-dict `:`
    type($scores) `,` type($max_in)
  }];
  let hasVerifier = 1;
}

def KVLoopOp : Tile_Op<"kv_loop", [RecursiveMemoryEffects, AttrSizedOperandSegments]> {
  let summary = "The loop over key/value tiles, as one structured op";
  let description = [{
    Runs for kv = begin, begin + step, ... while kv < end, carrying
    `iter_args`. Each step runs four single-block regions in order, `qk`,
    `score`, `softmax`, `pv`. A region's arguments are (kv, what the region
    before it yielded, the loop-carried values); `pv` yields the next values of
    the loop-carried ones.

    The ranges are `begin <= full_begin <= full_end <= end`, each but `end` a
    multiple of `step` away from `begin`. Steps in [full_begin, full_end) are
    *full*: every key of the tile exists and `tile.mask` ops hide nothing
    there, so they are dropped when the loop is lowered. The others are
    *partial*. Keys outside [begin, end) are *skipped*. Before
    `tile-split-kv-ranges` everything is partial. With `unordered` the steps
    may run in any order. With `rows` nothing behind the loop depends on rows of
    the results from that number on, and what masks hide from these rows doesn't
    count.

    With `tiles(%tiles[%b, %h, %row])` the ranges, from 0 on, count in a list of
    tiles: the step at p gets kv = step * `tiles[b, h, row, p / step]`. So any
    tiles can be left out, and those that need no mask be brought together.

    ```mlir
    %r:3 = tile.kv_loop ranges(%c0, %f0, %f1, %n) step 64
        iter_args(%acc0, %m0, %l0) : tensor<128x64xf32>, tensor<128xf32>, tensor<128xf32>
      qk (%kv: i32, %acc: tensor<128x64xf32>, %m: tensor<128xf32>, %l: tensor<128xf32>) {
        %kt = tile.load %k[%b, %h, %kv, %c0] : ... -> tensor<64x64xbf16>
        %s = tile.mma mma %q, %kt, %zero {transpose_b} : ...
        tile.yield %s : tensor<128x64xf32>
      } score (%kv: i32, %s: tensor<128x64xf32>, ...) {
        ...
      } softmax (...) {
        ...
      } pv (...) {
        ...
      }
    ```
  }];
  let arguments = (ins I32:$begin, I32:$full_begin, I32:$full_end, I32:$end,
                       I64Attr:$step, Variadic<AnyType>:$inits,
                       Optional<I32>:$rows,
                       Optional<MemRefOf<[I32]>>:$tiles,
                       Variadic<I32>:$tiles_indices, UnitAttr:$unordered);
  let results = (outs Variadic<AnyType>:$results);
  let regions = (region SizedRegion<1>:$qk, SizedRegion<1>:$score,
                        SizedRegion<1>:$softmax, SizedRegion<1>:$pv);
  let assemblyFormat = [{
    `ranges` `(` $begin `,` $full_begin `,` $full_end `,` $end `)`
    `step` $step (`rows` $rows^)?
    (`tiles` `(` $tiles^ `[` $tiles_indices `]` `:` type($tiles) `)`)?
    (`iter_args` `(` $inits^ `)` `:` type($inits))? attr-dict
    custom<KVLoopRegions>($qk, $score, $softmax, $pv)
    custom<SameTypes>(ref(type($inits)), type($results))
  }];
  let builders = [OpBuilder<(ins "::mlir::TypeRange":$results,
                                 "::mlir::Value":$begin,
                                 "::mlir::Value":$fullBegin,
                                 "::mlir::Value":$fullEnd, "::mlir::Value":$end,
                                 "int64_t":$step, "::mlir::ValueRange":$inits,
                                 "::mlir::Value":$rows, "bool":$unordered), [{
    build($_builder, $_state, results, begin, fullBegin, fullEnd, end, step,
          inits, rows, /*tiles=*/::mlir::Value(),
          /*tiles_indices=*/::mlir::ValueRange(), unordered);
  }]>];
  let extraClassDeclaration = [{
    /// The key of the step at `position`: with `tiles` it is read from the
    /// list, which gives 0 outside of it. `mapping` says what stands for the
    /// loop's operands.
    ::mlir::Value getKey(::mlir::OpBuilder &builder, ::mlir::Value position,
                         const ::mlir::IRMapping &mapping);

    /// The same loop, yet without its regions, with `inits` instead of its own.
    KVLoopOp cloneWithInits(::mlir::OpBuilder &builder,
                            ::mlir::ValueRange inits);
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def YieldOp : Tile_Op<"yield", [Pure, ReturnLike, Terminator,
    ParentOneOf<["KVLoopOp", "MaskOp", "ReduceRangeOp", "ScoreModOp"]>]> {
  let summary = "Ends a region of kv_loop, mask, reduce_range or score_mod";
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
}

#endif // ATTN_DIALECT_TILE_IR_TILEOPS_TD
