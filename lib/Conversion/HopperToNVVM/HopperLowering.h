//===- HopperLowering.h - One warp-specialised kernel to NVVM ---*- C++ -*-===//

#ifndef ATTN_LIB_CONVERSION_HOPPERTONVVM_HOPPERLOWERING_H
#define ATTN_LIB_CONVERSION_HOPPERTONVVM_HOPPERLOWERING_H

#include "../TileToNVVM/KernelLowering.h"
#include "HopperInstructions.h"
#include "LaunchParameters.h"
#include "attn/Dialect/Hopper/IR/HopperOps.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::hopper {

/// Lowers a kernel with warp roles. What isn't `hopper` in the consumer role is
/// lowered as in any GPU kernel, with threads counted from the first consumer.
class HopperLowering : tile::KernelLowering {
public:
  using KernelLowering::KernelLowering;

  LogicalResult run();

  /// The maps that the kernel takes as its last parameters, in order.
  SmallVector<TensorMap> getTensorMaps() const;
  /// True if the kernel takes its tiles from a counter: before the maps it has
  /// the counter and the number of tiles as parameters.
  bool isPersistent() const { return persistent; }

private:
  /// A ring in shared memory: where its slots and barriers lie, in bytes from
  /// the aligned base.
  struct Ring {
    RingType type;
    int64_t slots, barriers;
  };
  /// A slot in use: i32 addresses.
  struct Slot {
    Value address, full, empty;
  };
  /// Row statistics times a scale, and which scale that was.
  struct ScaledRows {
    SmallVector<Value> products, scales, isHuge;
  };
  /// What one tensor map describes: a kernel argument, the rows and columns of
  /// its box, and 1 if it is for parts of the argument.
  using MapKey = std::tuple<unsigned, int64_t, int64_t, unsigned>;

  // Frame.
  LogicalResult findRoles();
  LogicalResult verifyRole(Region &role);
  LogicalResult verifyOp(Operation *op, Region &role);
  LogicalResult verifyOperand(Operation *op, Value operand);
  LogicalResult verifyProduct(WgmmaOp op);
  LogicalResult verifyRead(ReadOp op);
  LogicalResult verifyRows(Operation *op, int64_t rows);
  bool isRing(Value value);
  LogicalResult allocateRings();
  LogicalResult collectTensorMaps();
  void describeParameters();
  void bindTileCounter();
  void bindTensorMaps();
  std::pair<int64_t, int64_t> countArrivals(Value ring);
  void initBarriers();
  LogicalResult lowerRoles();
  LogicalResult lowerRole(Region &region);
  LogicalResult lowerProducer();
  LogicalResult lowerTransposer();
  LogicalResult lowerConsumer();

  LogicalResult lowerOp(Operation *op) override;
  Value makeUniform(Value value) override;
  Slot getSlot(Value ring, Value number);
  /// Which time around the ring tile `number` is, as a phase parity.
  Value getParity(RingType type, Value number);
  void lowerAcquire(AcquireOp op);
  void lowerWait(WaitOp op);
  void lowerCommit(CommitOp op);
  void lowerTranspose(TransposeOp op);
  void lowerTmaLoad(TmaLoadOp op);
  void lowerTmaStore(TmaStoreOp op);
  void lowerRead(ReadOp op);
  SmallVector<Value> readMatrices(RingType ring, Value address);
  SmallVector<Value> readPairs(RingType ring, Value address);
  SmallVector<Value> getMatrixAddresses(RingType ring, int64_t columns,
                                        Value address);
  void stageTile(TmaStoreOp op, Value address);
  void lowerNextTile(NextTileOp op);
  void lowerPut(PutOp op);
  void lowerGet(GetOp op);
  void lowerWgmma(WgmmaOp op);
  void fillRampColumns();
  SmallVector<Value> splitRamp(Value slope, Value start);
  WarpgroupProduct getRampProduct(WgmmaOp op);
  void lowerWgmmaWait(WgmmaWaitOp op);
  ScaledRows scaleRows(ArrayRef<Value> rows, Value scale);
  void lowerExpDiff(tile::ExpDiffOp op);
  Value emitExp2(Value exponent);
  /// The argument of the kernel behind an argument of a role; null if that is
  /// something else.
  BlockArgument getKernelArgument(Value roleArgument);
  void lowerTruncF(arith::TruncFOp op);
  /// How products read a tile in a slot.
  struct Operand;
  Operand getOperand(SlotType slot, Value address);
  /// The map by which a memref, an argument or a part of one, meets `slot`.
  std::optional<MapKey> getMapKey(Value memref, SlotType slot, int64_t rows);
  SmallVector<Value> getCoordinates(Value memref, ValueRange indices);
  Value makeDescriptor(const Operand &operand, int64_t leadingOffset,
                       int64_t offset);

  WarpSpecializeOp roles;
  bool persistent = false;
  bool isInProducer = false;
  Value tileCounter, numTiles;
  Value alignedBase;    // i32
  Value warpgroupIndex; // i32, the same in all threads of a warp
  Value isFirstLane;    // i1
  Value isFirstOfGroup; // i1: the first thread of a warpgroup
  /// What ramps are multiplied from, in bytes from the aligned base, and how
  /// many columns that is for.
  int64_t rampOffset = 0, rampColumns = 0;
  llvm::MapVector<Operation *, Ring> rings;
  DenseMap<Value, Ring *> ringOf;
  DenseMap<Value, Slot> slots;
  llvm::MapVector<MapKey, Value> tensorMaps;
};

} // namespace mlir::hopper

#endif // ATTN_LIB_CONVERSION_HOPPERTONVVM_HOPPERLOWERING_H
