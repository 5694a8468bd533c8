//===- HopperOps.td - Operations of the hopper dialect -----*- tablegen -*-===//

#ifndef ATTN_DIALECT_HOPPER_IR_HOPPEROPS_TD
#define ATTN_DIALECT_HOPPER_IR_HOPPEROPS_TD

include "attn/Dialect/Hopper/IR/HopperTypes.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Hopper_Op<string mnemonic, list<Trait> traits = []>
    : Op<HopperDialect, mnemonic, traits>;

def Hopper_Tile2D : Type<
    And<[StaticShapeTensorOf<[AnyType]>.predicate, HasAnyRankOfPred<[2]>]>,
    "static rank-2 tile", "::mlir::RankedTensorType">;

//===----------------------------------------------------------------------===//
// Roles
//===----------------------------------------------------------------------===//

def WarpSpecializeOp : Hopper_Op<"warp_specialize", [
    IsolatedFromAbove, NoTerminator, RecursiveMemoryEffects]> {
  let summary = "Splits the threads of a program into a producer and consumers";
  let description = [{
    Runs both regions at the same time. `producer` runs in one thread of the
    first warpgroup; `consumer` in `warpgroups` warpgroups, whose tiles are
    those of all of them together, each warpgroup holding 64 rows. The regions
    see nothing from above but `args`, which become the arguments of all: no
    pass can move code from one role into another.

    There may be a third role, `transposer`, which the other three warps of the
    first warpgroup run together, each for a part of every tile: it takes tiles
    out of rings, as consumers do, and fills others with them, transposed.

    `registers` is what a thread of the role may use after `setmaxnreg`. All
    threads of the program together must stay within the 64 K registers that
    the launch allocated, or the consumers wait forever.

    ```mlir
    hopper.warp_specialize(%k, %ring : memref<?x64xbf16, strided<[?, 1]>>, !hopper.ring<2 x tensor<64x64xbf16>>)
      producer registers(24) (%a: memref<?x64xbf16, strided<[?, 1]>>, %r: !hopper.ring<2 x tensor<64x64xbf16>>) {
        ...
      } consumer warpgroups(2) registers(240) (...) {
        ...
      }
    ```
  }];
  let arguments = (ins Variadic<AnyType>:$args, I32Attr:$producer_registers,
                       I32Attr:$warpgroups, I32Attr:$consumer_registers);
  let regions = (region SizedRegion<1>:$producer, SizedRegion<1>:$consumer,
                        MaxSizedRegion<1>:$transposer);
  let assemblyFormat = [{
    (`(` $args^ `:` type($args) `)`)? attr-dict
    `producer` `registers` `(` $producer_registers `)` custom<RoleRegion>($producer)
    (`transposer` custom<RoleRegion>($transposer)^)?
    `consumer` `warpgroups` `(` $warpgroups `)`
    `registers` `(` $consumer_registers `)` custom<RoleRegion>($consumer)
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    static constexpr uint32_t kWarpgroupThreads = 128;
    static constexpr int64_t kRowsPerWarpgroup = 64;
    static constexpr int64_t kTransposerWarps = 3;
    uint32_t getNumThreads() {
      return kWarpgroupThreads * (1 + getWarpgroups());
    }
    bool hasTransposer() { return !getTransposer().empty(); }
    /// Those that there are, with the consumers last.
    ::llvm::SmallVector<::mlir::Region *> getRoles();
    ::llvm::StringRef getRoleName(::mlir::Region &role);
    /// Whether `role` takes tiles out of `ring`, an operand, or fills it. The
    /// barriers of a ring count the warps of the roles that do.
    bool takes(::mlir::Region &role, ::mlir::Value ring);
    bool fills(::mlir::Region &role, ::mlir::Value ring);
  }];
}

def WarpgroupIdOp : Hopper_Op<"warpgroup_id", [Pure]> {
  let summary = "Consumer: which of the consumer warpgroups this is";
  let description = [{
    From 0. Warpgroup `w` holds rows `[64 w, 64 w + 64)` of every tile, and may
    take another number of steps than the others, as long as it waits for and
    releases the same tiles of every ring.
  }];
  let results = (outs I32:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

//===----------------------------------------------------------------------===//
// Persistent programs
//===----------------------------------------------------------------------===//

def NumTilesOp : Hopper_Op<"num_tiles", [Pure]> {
  let summary = "How many programs the tile kernel was written for";
  let description = [{
    The grid of its launch. A kernel that uses this op is persistent: it is
    launched with one program a multiprocessor at most, `tile.program_id` is the
    first tile of a program, and the program takes the others itself.
  }];
  let results = (outs I32:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

def NextTileOp : Hopper_Op<"next_tile", [
    MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Producer: takes the number of the next tile";
  let description = [{
    From a counter in memory that all programs share, so that a program that is
    done early takes more. Numbers from `hopper.num_tiles` on mean that there is
    none left; a program must ask once for every tile that it worked on, which
    brings the counter back to where it was before the launch.
  }];
  let results = (outs I32:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

//===----------------------------------------------------------------------===//
// Rings
//===----------------------------------------------------------------------===//

def CreateRingOp : Hopper_Op<"create_ring", [
    MemoryEffects<[MemAlloc]>]> {
  let summary = "Reserves a ring in shared memory, for the whole kernel";
  let description = [{
    ```mlir
    %ring = hopper.create_ring : !hopper.ring<2 x tensor<128x64xbf16>>
    ```
  }];
  let results = (outs Hopper_RingType:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

class Hopper_TakeSlotOp<string mnemonic> : Hopper_Op<mnemonic, [
    MemoryEffects<[MemRead, MemWrite]>,
    TypesMatchWith<"the slot must be for the ring's tile", "ring", "slot",
        "SlotType::get($_ctxt, ::llvm::cast<RingType>($_self).getTile())">]> {
  let arguments = (ins Hopper_RingType:$ring, I32:$number);
  let results = (outs Hopper_SlotType:$slot);
  let builders = [OpBuilder<(ins "::mlir::Value":$ring, "::mlir::Value":$number), [{
    auto type = ::llvm::cast<RingType>(ring.getType());
    build($_builder, $_state, SlotType::get($_builder.getContext(), type.getTile()),
          ring, number);
  }]>];
  let assemblyFormat = "$ring `[` $number `]` attr-dict `:` type($ring)";
}

def AcquireOp : Hopper_TakeSlotOp<"acquire"> {
  let summary = "Producer, transposer: waits until the slot of tile `number` is empty";
  let description = [{
    `number` counts the tiles that pass through the ring, over the whole kernel,
    from 0, in the same order in every role. Slot and phase are derived from it
    in one place; nobody flips phases by hand.
  }];
}

def WaitOp : Hopper_TakeSlotOp<"wait"> {
  let summary = "Consumer, transposer: waits until tile `number` is there";
}

def SlotOp : Hopper_TakeSlotOp<"slot"> {
  let summary = "The slot of tile `number`, which this role holds already";
  let description = [{
    Doesn't wait. For a slot that is taken in one step of a loop and given back
    in another.
  }];
}

class Hopper_GiveSlotOp<string mnemonic> : Hopper_Op<mnemonic, [
    MemoryEffects<[MemRead, MemWrite]>]> {
  let arguments = (ins Hopper_SlotType:$slot);
  let assemblyFormat = "$slot attr-dict `:` type($slot)";
}

def CommitOp : Hopper_GiveSlotOp<"commit"> {
  let summary = "Producer, transposer: hands the slot over once what fills it is there";
  let description = [{
    Doesn't wait: the slot becomes full when the loads started into it are done,
    or when each warp of the transposer has handed it over.
  }];
}

def ReleaseOp : Hopper_GiveSlotOp<"release"> {
  let summary = "Consumer, transposer: gives the slot back, once per warp";
  let description = [{
    Products that read the slot must have been waited for.
  }];
}

def TmaLoadOp : Hopper_Op<"tma_load", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Starts copying a tile from memory into a slot";
  let description = [{
    Positions are those of `tile.load`, and so is the zero fill: elements beyond
    the memref's sizes become 0. The base and all strides but the innermost must
    be multiples of 16 bytes, which the launch checks.

    ```mlir
    hopper.tma_load %k[%b, %h, %row, %zero] to %slot
      : memref<?x4x?x64xbf16, strided<[?, ?, ?, 1]>>, !hopper.slot<tensor<128x64xbf16>>
    ```
  }];
  let arguments = (ins AnyMemRef:$source, Variadic<I32>:$indices,
                       Hopper_SlotType:$slot);
  let assemblyFormat = [{
    $source `[` $indices `]` `to` $slot attr-dict
    `:` type($source) `,` type($slot)
  }];
  let hasVerifier = 1;
}

def TmaStoreOp : Hopper_Op<"tma_store", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Consumer: stores a tile by TMA, through a slot";
  let description = [{
    Each warpgroup writes its 64 rows of `tile` to the slot's rows of the same
    numbers and has them copied to memory. What the slot held is lost; products
    of this warpgroup that read it must be complete. The slot may be given back
    right away. Elements beyond the memref's sizes are dropped. Alignment is as
    for `hopper.tma_load`.

    ```mlir
    hopper.tma_store %o, %slot to %out[%b, %h, %row, %zero]
      : tensor<128x64xbf16>, !hopper.slot<tensor<128x64xbf16>>, memref<?x4x?x64xbf16>
    ```
  }];
  let arguments = (ins Hopper_Tile2D:$tile, Hopper_SlotType:$slot,
                       AnyMemRef:$target, Variadic<I32>:$indices);
  let assemblyFormat = [{
    $tile `,` $slot `to` $target `[` $indices `]` attr-dict
    `:` type($tile) `,` type($slot) `,` type($target)
  }];
  let hasVerifier = 1;
}

def ReadOp : Hopper_Op<"read", [MemoryEffects<[MemRead]>]> {
  let summary = "Consumer: reads the tile in a slot into registers";
  let description = [{
    For elementwise code; products take the slot itself. The slot may be given
    back right away.

    ```mlir
    %bias = hopper.read %slot : !hopper.slot<tensor<128x64xbf16>> -> tensor<128x64xbf16>
    ```
  }];
  let arguments = (ins Hopper_SlotType:$slot);
  let results = (outs Hopper_Tile2D:$result);
  let assemblyFormat =
      "$slot attr-dict `:` type($slot) `->` type($result)";
  let hasVerifier = 1;
}

def TransposeOp : Hopper_Op<"transpose", [
    MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Transposer: fills a slot with the transposed tile of another";
  let description = [{
    Of 8-bit floats, in the order of `permuted_k` (see `tile.mma`): row `r` of
    `target` has element `[getOperandColumn(s), r]` of `source` in column `s`.
    That is what a product reads as `b`, transposed and permuted. Both slots may
    be given away right after.

    ```mlir
    hopper.transpose %v to %vt : !hopper.slot<tensor<96x128xf8E4M3FN>>, !hopper.slot<tensor<128x96xf8E4M3FN>>
    ```
  }];
  let arguments = (ins Hopper_SlotType:$source, Hopper_SlotType:$target);
  let assemblyFormat = [{
    $source `to` $target attr-dict `:` type($source) `,` type($target)
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

def Hopper_NumberSlot : Type<
    CPred<"::llvm::isa<SlotType>($_self) && "
          "::llvm::cast<SlotType>($_self).isNumber()">,
    "slot for numbers", "::mlir::hopper::SlotType">;

def PutOp : Hopper_Op<"put", [MemoryEffects<[MemWrite]>]> {
  let summary = "Producer: puts numbers into a slot";
  let description = [{
    As many as the slot holds.

    ```mlir
    %slot = hopper.acquire %ring[%n] : !hopper.ring<2 x tensor<2xi32>>
    hopper.put %tile, %length to %slot : !hopper.slot<tensor<2xi32>>
    hopper.commit %slot : !hopper.slot<tensor<2xi32>>
    ```
  }];
  let arguments = (ins Variadic<I32>:$values, Hopper_NumberSlot:$slot);
  let assemblyFormat = "$values `to` $slot attr-dict `:` type($slot)";
  let hasVerifier = 1;
}

def GetOp : Hopper_Op<"get", [MemoryEffects<[MemRead]>]> {
  let summary = "Consumer, transposer: numbers in a slot";
  let description = [{
    As many as there are results, from number `first` on.

    ```mlir
    %tile, %length = hopper.get %slot[%first] : !hopper.slot<tensor<8xi32>> -> i32, i32
    ```
  }];
  let arguments = (ins Hopper_NumberSlot:$slot, I32:$first);
  let results = (outs Variadic<I32>:$values);
  let assemblyFormat = [{
    $slot `[` $first `]` attr-dict `:` type($slot) `->` type($values)
  }];
}

//===----------------------------------------------------------------------===//
// Matrix products
//===----------------------------------------------------------------------===//

def WgmmaOp : Hopper_Op<"wgmma", [MemoryEffects<[MemRead, MemWrite]>,
                                  AttrSizedOperandSegments]> {
  let summary = "Starts a matrix product with f32 accumulation";
  let description = [{
    `result = a * b (+ acc)`, with a [M, K] and b [K, N], or b [N, K] with
    `transpose_b`. `a` is a slot or a tile in registers, `b` a slot. The product
    is one group of wgmma instructions; groups complete in order. A tile in
    registers that it reads must not be written before it is complete: that is
    why its uses end with the wait.

    Elements are f16 or bf16, the same in both, or of 8 bits (f8E4M3FN, f8E5M2).
    Of those `b` must be transposed; if `a` is in registers its columns are
    permuted (`#tile.operand`), and so must those of `b` be: `permuted_k`, as on
    `tile.mma`.

    Instead of `acc` a product may have a ramp added, slope * (start + j) in
    column j: a bias by the distance of query and key. It is one more wgmma, of
    the parts of both numbers by a constant tile in shared memory (16 bytes a
    column), and so no instruction an element.

    ```mlir
    %s = hopper.wgmma %q, %k {transpose_b}
      : !hopper.slot<tensor<128x64xbf16>>, !hopper.slot<tensor<128x64xbf16>> -> !hopper.pending<tensor<128x128xf32>>
    %o = hopper.wgmma %p, %v acc %acc : tensor<128x64xf32>
      : tensor<128x128xbf16>, !hopper.slot<tensor<128x64xbf16>> -> !hopper.pending<tensor<128x64xf32>>
    ```
  }];
  let arguments = (ins AnyTypeOf<[Hopper_Tile2D, Hopper_SlotType]>:$a,
                       Hopper_SlotType:$b,
                       Optional<AnyTypeOf<[Hopper_Tile2D, Hopper_PendingType]>>:$acc,
                       Optional<F32>:$slope, Optional<F32>:$start,
                       UnitAttr:$transpose_b, UnitAttr:$permuted_k);
  let results = (outs Hopper_PendingType:$result);
  let assemblyFormat = [{
    $a `,` $b (`acc` $acc^ `:` type($acc))?
    (`ramp` `(` $slope^ `,` $start `)`)? attr-dict
    `:` type($a) `,` type($b) `->` type($result)
  }];
  let hasVerifier = 1;
}

def WgmmaWaitOp : Hopper_Op<"wgmma_wait", [
    MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Waits until at most `in_flight` products are not complete";
  let description = [{
    The results are the tiles of `pending`, which must be among the complete
    ones.

    ```mlir
    %t = hopper.wgmma_wait 1, %s : !hopper.pending<tensor<128x128xf32>> -> tensor<128x128xf32>
    ```
  }];
  let arguments = (ins I32Attr:$in_flight, Hopper_PendingType:$pending);
  let results = (outs Hopper_Tile2D:$result);
  let assemblyFormat = [{
    $in_flight `,` $pending attr-dict `:` type($pending) `->` type($result)
  }];
  let hasVerifier = 1;
}

#endif // ATTN_DIALECT_HOPPER_IR_HOPPEROPS_TD
