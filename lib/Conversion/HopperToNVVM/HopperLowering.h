//===- HopperLowering.h - One warp-specialised kernel to NVVM ---*- C++ -*-===//

#ifndef ATTN_LIB_CONVERSION_HOPPERTONVVM_HOPPERLOWERING_H
#define ATTN_LIB_CONVERSION_HOPPERTONVVM_HOPPERLOWERING_H

#include "../TileToNVVM/KernelLowering.h"
#include "HopperInstructions.h"
#include "TensorMapArguments.h"
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
  /// What one tensor map describes: a kernel argument and the rows of its box.
  using MapKey = std::pair<unsigned, int64_t>;

  // Frame.
  LogicalResult findRoles();
  LogicalResult verifyRole(Region &region, bool isProducer);
  LogicalResult verifyOp(Operation *op, bool isProducer);
  LogicalResult verifyProduct(WgmmaOp op);
  bool isRing(Value value);
  LogicalResult allocateRings();
  LogicalResult collectTensorMaps();
  void describeParameters();
  void bindTensorMaps();
  void initBarriers();
  LogicalResult lowerRoles();
  LogicalResult lowerRole(Region &region);
  LogicalResult lowerProducer();
  LogicalResult lowerConsumer();

  LogicalResult lowerOp(Operation *op) override;
  Slot getSlot(Value ring, Value number);
  /// Which time around the ring tile `number` is, as a phase parity.
  Value getParity(RingType type, Value number);
  void lowerAcquire(AcquireOp op);
  void lowerWait(WaitOp op);
  void lowerTmaLoad(TmaLoadOp op);
  void lowerWgmma(WgmmaOp op);
  void lowerWgmmaWait(WgmmaWaitOp op);
  ScaledRows scaleRows(ArrayRef<Value> rows, Value scale);
  void lowerExpDiff(tile::ExpDiffOp op);
  Value emitExp2(Value exponent);
  /// The argument number of the kernel behind an argument of a role.
  unsigned getKernelArgument(Value roleArgument);
  Value makeDescriptor(Value address, int64_t leadingOffset, int64_t offset);

  WarpSpecializeOp roles;
  int64_t firstBarrier = 0;
  Value alignedBase;    // i32
  Value warpgroupIndex; // i32, the same in all threads of a warp
  Value isFirstLane;    // i1
  llvm::MapVector<Operation *, Ring> rings;
  DenseMap<Value, Ring *> ringOf;
  DenseMap<Value, Slot> slots;
  llvm::MapVector<MapKey, Value> tensorMaps;
};

} // namespace mlir::hopper

#endif // ATTN_LIB_CONVERSION_HOPPERTONVVM_HOPPERLOWERING_H
