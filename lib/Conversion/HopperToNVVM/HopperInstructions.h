//===- HopperInstructions.h - sm_90a instructions, one call each -*- C++ -*-==//
//
// PTX that NVVM has no operation for, or none that can be ordered: the value
// that an instruction changes asynchronously must go through the instruction
// that waits for it, as an operand tied to a result.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_HOPPERTONVVM_HOPPERINSTRUCTIONS_H
#define ATTN_LIB_CONVERSION_HOPPERTONVVM_HOPPERINSTRUCTIONS_H

#include "../TileToNVVM/ThreadEmitter.h"

namespace mlir::hopper {

/// Barriers are i32 addresses in shared memory.
void initBarrier(tile::ThreadEmitter &emit, Value barrier, int64_t count);
/// Makes initialised barriers visible to the other threads and to TMA.
void fenceBarrierInit(tile::ThreadEmitter &emit);
/// Spins until the phase with `parity` is complete.
void waitBarrier(tile::ThreadEmitter &emit, Value barrier, Value parity);
void arriveBarrier(tile::ThreadEmitter &emit, Value barrier);
/// The same where `predicate` holds, without a branch: code behind it that
/// needs the whole warp stays converged.
void arriveBarrierIf(tile::ThreadEmitter &emit, Value predicate, Value barrier);
/// The phase also waits for `bytes` more of TMA loads.
void expectBytes(tile::ThreadEmitter &emit, Value barrier, int64_t bytes);

/// Starts a TMA load of the tensor map's box at `coordinates`, innermost first.
void loadTensor(tile::ThreadEmitter &emit, Value sharedAddress, Value map,
                ValueRange coordinates, Value barrier);

/// Starts a TMA store from `sharedAddress` to the tensor map's box.
void storeTensor(tile::ThreadEmitter &emit, Value map, ValueRange coordinates,
                 Value sharedAddress);
/// Waits until this thread's TMA stores have read shared memory.
void waitStoresRead(tile::ThreadEmitter &emit);
/// Makes this thread's writes to shared memory visible to TMA.
void fenceAsyncShared(tile::ThreadEmitter &emit);
/// Waits for all threads of warpgroup `index`.
void syncWarpgroup(tile::ThreadEmitter &emit, Value index);
/// Stores four 8x8 blocks of 16-bit elements; lane 8 * i + r gives the address
/// of row r of block i, `address + offset`.
void storeMatrix(tile::ThreadEmitter &emit, Value address,
                 ArrayRef<Value> words, int64_t offset = 0);
void storeWord(tile::ThreadEmitter &emit, Value address, Value word);
Value loadWord(tile::ThreadEmitter &emit, Value address);
/// Two neighbouring i8 (`bytes` = 1) or i32 (4).
SmallVector<Value> loadPair(tile::ThreadEmitter &emit, Value address,
                            int64_t bytes);

/// Two floats, each rounded to nearest and at most the largest, as 8-bit floats
/// of `type` in an i16, `low` in the low byte.
Value convertToFloat8(tile::ThreadEmitter &emit, Value low, Value high,
                      Type type);

/// One wgmma instruction, m64 x columns x 256 bits. The accumulator is empty to
/// start from zero. `a` is a descriptor or four registers; `b` a descriptor.
struct WarpgroupProduct {
  int64_t columns;
  Type elementA, elementB;
  SmallVector<Value> a;
  Value b;
  /// b is stored [K, N], N contiguous: 16-bit types only.
  bool isBTransposed;
};
SmallVector<Value> multiply(tile::ThreadEmitter &emit,
                            const WarpgroupProduct &product,
                            ValueRange accumulator);
/// Waits until at most `inFlight` groups run; returns what `values` are then.
SmallVector<Value> waitProducts(tile::ThreadEmitter &emit, int64_t inFlight,
                                ValueRange values);

} // namespace mlir::hopper

#endif // ATTN_LIB_CONVERSION_HOPPERTONVVM_HOPPERINSTRUCTIONS_H
