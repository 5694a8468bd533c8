//===- TransposeTile.cpp - 8-bit tiles, transposed in shared memory -------===//
//
// What a warp does at a time is 32 keys (rows of the source) by 16 columns of
// bytes, which become 16 rows of 32 bytes:
//
//   ldmatrix.trans  reads four blocks of 8 keys by 8 pairs of columns. Of a
//                   block, thread 4 g + t gets columns 2 g and 2 g + 1 of keys
//                   2 t and 2 t + 1.
//   prmt            makes a row's bytes of the pairs of two blocks: those of
//                   keys 2 t, 2 t + 1, 8 + 2 t, 9 + 2 t in column 2 g, or in
//                   column 2 g + 1. That is the order of getOperandColumn, so
//                   that nothing moves between threads.
//   stmatrix        writes four blocks of 8 rows by 16 bytes.
//
// The 8 rows that stmatrix writes at a time should lie in different banks.
// Every second row doesn't: rows 0, 2, 4, 6 have those of 8, 10, 12, 14. So the
// upper threads write their odd rows when the lower ones write their even ones.
//
// Warps share the keys: what differs from one 16 columns to the next is then
// the same for all threads, and costs no instruction or one.
//
//===----------------------------------------------------------------------===//

#include "TransposeTile.h"
#include "HopperInstructions.h"

using namespace mlir;
using namespace mlir::hopper;
using tile::ThreadEmitter;

static constexpr int64_t kChunkBytes = 16;
static constexpr int64_t kSwizzleBytes = 128;
/// Of the four blocks that ldmatrix reads.
static constexpr int64_t kKeys = 32;
// Bytes of prmt's operands, the lowest first.
static constexpr int64_t kEvenBytes = 0x6420;
static constexpr int64_t kOddBytes = 0x7531;

namespace {
class TileTransposer {
public:
  TileTransposer(ThreadEmitter &emit, TileInSlot source, TileInSlot target,
                 Value warp, Value lane)
      : emit(emit), source(source), target(target), warp(warp), lane(lane) {}

  void run() {
    bindThread();
    constexpr int64_t kWarps = WarpSpecializeOp::kTransposerWarps;
    int64_t groups = source.ring.getTile().getDimSize(0) / kKeys;
    for (int64_t first = 0; first < groups; first += kWarps) {
      if (first + kWarps <= groups) {
        transposeKeys(first);
        continue;
      }
      emit.createIf(
          emit.less(warp, emit.i32(groups - first)),
          [&] { transposeKeys(first); }, [] {});
    }
  }

private:
  static int64_t getChunksOfBlock(RingType ring) {
    return ring.getBlockRowBytes() / kChunkBytes;
  }

  /// What the chunks of row `row` of a block are exchanged by.
  Value getSwizzle(RingType ring, Value row) {
    // So many rows as fill 128 bytes are swizzled alike.
    return emit.rem(emit.div(row, kSwizzleBytes / ring.getBlockRowBytes()),
                    getChunksOfBlock(ring));
  }

  Value getRowAddress(TileInSlot &tile, Value row) {
    return emit.add(tile.address,
                    emit.mul(row, emit.i32(tile.ring.getBlockRowBytes())));
  }

  /// Lane 8 b + r gives the address of row r of block b: of the source key
  /// 8 b + r; of the target one of 16 rows, in the first (b < 2) or the second
  /// half of 32 bytes.
  void bindThread() {
    Value key = emit.add(emit.mul(warp, emit.i32(kKeys)), lane);
    Value swizzle = getSwizzle(source.ring, lane);
    from = emit.add(getRowAddress(source, key),
                    emit.mul(swizzle, emit.i32(kChunkBytes)));

    Value row = emit.rem(lane, 8), block = emit.div(lane, 8);
    Value isOdd = emit.xorBits(emit.div(row, 4), emit.rem(block, 2));
    row = emit.add(emit.mul(row, emit.i32(2)), isOdd);
    targetHalf = emit.div(block, 2);
    targetRow = getRowAddress(target, row);
    targetSwizzle = getSwizzle(target.ring, row);

    constexpr int64_t kHalfWarp = 16;
    Value isLower = emit.less(lane, emit.i32(kHalfWarp));
    Value even = emit.i32(kEvenBytes), odd = emit.i32(kOddBytes);
    selectors[0] = emit.select(isLower, even, odd);
    selectors[1] = emit.select(isLower, odd, even);
  }

  /// Where in the first rows of the target 32 keys begin.
  Value getTargetAddress(Value group) {
    int64_t groupsOfBlock = getChunksOfBlock(target.ring) / 2;
    Value block = emit.mul(emit.div(group, groupsOfBlock),
                           emit.i32(target.ring.getBlockBytes()));
    Value chunk = emit.add(
        emit.mul(emit.rem(group, groupsOfBlock), emit.i32(2)), targetHalf);
    chunk = emit.xorBits(chunk, targetSwizzle);
    return emit.add(emit.add(targetRow, block),
                    emit.mul(chunk, emit.i32(kChunkBytes)));
  }

  /// The 32 keys of group `first` + the warp's number.
  void transposeKeys(int64_t first) {
    Value to = getTargetAddress(emit.add(warp, emit.i32(first)));
    // Not as an offset of the load: addresses would be kept for the next keys.
    Value fromKeys = emit.add(
        from, emit.i32(first * kKeys * source.ring.getBlockRowBytes()));
    int64_t chunkBytes = kChunkBytes * target.ring.getBlockRowBytes();
    int64_t chunks = source.ring.getTile().getDimSize(1) / kChunkBytes;
    // One load at a time: with two, kernels of three consumer warpgroups, whose
    // producer has 32 registers, spill.
    for (int64_t chunk = 0; chunk < chunks; ++chunk)
      storeMatrix(emit, to, toRows(load(fromKeys, chunk)), chunk * chunkBytes);
  }

  /// Columns [16 chunk, 16 chunk + 16).
  SmallVector<Value> load(Value fromKeys, int64_t chunk) {
    int64_t chunks = getChunksOfBlock(source.ring);
    // Where rows begin, the bits that say which chunk are 0.
    Value address =
        emit.xorBits(fromKeys, emit.i32(chunk % chunks * kChunkBytes));
    return emit.ldmatrix(address, chunk / chunks * source.ring.getBlockBytes(),
                         /*transpose=*/true);
  }

  SmallVector<Value> toRows(ArrayRef<Value> words) {
    SmallVector<Value> rows;
    for (int64_t pair : {0, 2})
      for (Value selector : selectors)
        rows.push_back(
            emit.intrinsic("llvm.nvvm.prmt", emit.getI32Type(),
                           {words[pair], words[pair + 1], selector}));
    return rows;
  }

  ThreadEmitter &emit;
  TileInSlot source, target;
  Value warp, lane;

  /// Of the first chunk of this lane's key.
  Value from;
  Value targetRow, targetHalf, targetSwizzle;
  Value selectors[2];
};
} // namespace

void hopper::transposeTile(ThreadEmitter &emit, TileInSlot source,
                           TileInSlot target, Value warp, Value lane) {
  TileTransposer(emit, source, target, warp, lane).run();
}
