//===- HopperOps.cpp - Operations of the hopper dialect -------------------===//

#include "attn/Dialect/Hopper/IR/HopperOps.h"
#include "attn/Dialect/ModRegion.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace mlir::hopper;

static ParseResult parseRoleRegion(OpAsmParser &parser, Region &region) {
  return attn::parseModRegion(parser, region, /*isIsolated=*/true);
}

static void printRoleRegion(OpAsmPrinter &printer, Operation *op,
                            Region &region) {
  attn::printModRegion(printer, op, region);
}

#define GET_OP_CLASSES
#include "attn/Dialect/Hopper/IR/HopperOps.cpp.inc"

/// The tile of a slot or a pending product, or the tile itself.
static RankedTensorType getTile(Type type) {
  if (auto slot = dyn_cast<SlotType>(type))
    return slot.getTile();
  if (auto pending = dyn_cast<PendingType>(type))
    return pending.getTile();
  return cast<RankedTensorType>(type);
}

static bool isFloat8(RankedTensorType tile) {
  return isa<Float8E4M3FNType, Float8E5M2Type>(tile.getElementType());
}

//===----------------------------------------------------------------------===//
// WarpSpecializeOp
//===----------------------------------------------------------------------===//

static LogicalResult verifyRegisters(Operation *op, StringRef role,
                                     int64_t registers) {
  // PTX ISA, setmaxnreg.
  if (registers >= 24 && registers <= 256 && registers % 8 == 0)
    return success();
  return op->emitOpError("gives the ")
         << role << " " << registers
         << " registers, but setmaxnreg takes multiples of 8 from 24 to 256";
}

LogicalResult WarpSpecializeOp::verify() {
  // 1024 threads a program, less the producer's.
  if (getWarpgroups() < 1 || getWarpgroups() > 7)
    return emitOpError("has ")
           << getWarpgroups() << " consumer warpgroups; it needs 1 to 7";
  if (failed(verifyRegisters(*this, "producer", getProducerRegisters())) ||
      failed(verifyRegisters(*this, "consumers", getConsumerRegisters())))
    return failure();
  if (auto kernel = (*this)->getParentOfType<tile::KernelOp>();
      kernel && 32 * kernel.getNumWarps() != getNumThreads())
    return emitOpError("uses ")
           << getNumThreads() << " threads, but the kernel has num_warps = "
           << kernel.getNumWarps();
  return success();
}

LogicalResult WarpSpecializeOp::verifyRegions() {
  for (Region *region : getRoles()) {
    if (TypeRange(region->getArgumentTypes()) != TypeRange(getArgs()))
      return emitOpError("has a ")
             << getRoleName(*region)
             << " region whose arguments are not of the operands' types";
  }
  return success();
}

StringRef WarpSpecializeOp::getRoleName(Region &role) {
  if (&role == &getProducer())
    return "producer";
  return &role == &getConsumer() ? "consumer" : "transposer";
}

SmallVector<Region *> WarpSpecializeOp::getRoles() {
  SmallVector<Region *> roles = {&getProducer()};
  if (hasTransposer())
    roles.push_back(&getTransposer());
  roles.push_back(&getConsumer());
  return roles;
}

/// Whether an `OpTy` in `role` takes a slot of `ring`, an operand of `op`. It
/// may be several operands.
template <typename OpTy>
static bool takesSlots(WarpSpecializeOp op, Region &role, Value ring) {
  auto isRing = [&](OpTy take) {
    auto argument = dyn_cast<BlockArgument>(take.getRing());
    bool isFound = argument && argument.getParentRegion() == &role &&
                   op.getArgs()[argument.getArgNumber()] == ring;
    return isFound ? WalkResult::interrupt() : WalkResult::advance();
  };
  return role.walk(isRing).wasInterrupted();
}

bool WarpSpecializeOp::takes(Region &role, Value ring) {
  return takesSlots<WaitOp>(*this, role, ring);
}

bool WarpSpecializeOp::fills(Region &role, Value ring) {
  return takesSlots<AcquireOp>(*this, role, ring);
}

//===----------------------------------------------------------------------===//
// TMA
//===----------------------------------------------------------------------===//

/// A copy between `slot` and `memref` at `indices`.
static LogicalResult verifyCopy(Operation *op, Value memref, ValueRange indices,
                                SlotType slot) {
  auto type = cast<MemRefType>(memref.getType());
  int64_t rank = type.getRank();
  if (rank < 2 || rank > 5)
    return op->emitOpError("takes memrefs of rank 2 to 5, not ") << rank;
  if (static_cast<int64_t>(indices.size()) != rank)
    return op->emitOpError("needs ")
           << rank << " indices, not " << indices.size();
  if (type.getElementType() != slot.getTile().getElementType())
    return op->emitOpError("copies ")
           << type.getElementType() << " through a slot for "
           << slot.getTile().getElementType();
  return success();
}

LogicalResult TmaLoadOp::verify() {
  return verifyCopy(*this, getSource(), getIndices(), getSlot().getType());
}

LogicalResult TmaStoreOp::verify() {
  RankedTensorType tile = getTile().getType();
  RankedTensorType room = getSlot().getType().getTile();
  if (failed(verifyCopy(*this, getTarget(), getIndices(), getSlot().getType())))
    return failure();
  if (tile.getElementType() != room.getElementType() ||
      tile.getDimSize(0) != room.getDimSize(0) ||
      tile.getDimSize(1) > room.getDimSize(1))
    return emitOpError("stores ") << tile << " through a slot for " << room
                                  << ", which must have the same rows and "
                                     "element type and as many columns";
  return success();
}

LogicalResult ReadOp::verify() {
  RankedTensorType tile = getSlot().getType().getTile();
  if (!RingType::isReadable(tile.getElementType()))
    return emitOpError("doesn't read ")
           << tile.getElementType() << ", which only products take";
  if (getType().getShape() == tile.getShape() &&
      getType().getElementType() == tile.getElementType())
    return success();
  return emitOpError("reads ") << getType() << " from a slot for " << tile;
}

//===----------------------------------------------------------------------===//
// TransposeOp
//===----------------------------------------------------------------------===//

LogicalResult TransposeOp::verify() {
  RankedTensorType source = getSource().getType().getTile();
  RankedTensorType target = getTarget().getType().getTile();
  if (!isFloat8(source) || source.getElementType() != target.getElementType())
    return emitOpError("transposes 8-bit floats, from slot to slot of one "
                       "type, not ")
           << source << " to " << target;
  if (source.getDimSize(0) != target.getDimSize(1) ||
      source.getDimSize(1) != target.getDimSize(0))
    return emitOpError("transposes ")
           << source
           << " to a slot of as many rows as it has columns and as "
              "many columns as it has rows, not to "
           << target;
  // Rings hold 8-bit tiles of columns in multiples of it.
  constexpr int64_t kGranule = 32;
  if (source.getDimSize(0) % kGranule != 0 ||
      source.getDimSize(1) % kGranule != 0)
    return emitOpError("needs rows and columns in multiples of ")
           << kGranule << ", not " << source;
  return success();
}

//===----------------------------------------------------------------------===//
// PutOp
//===----------------------------------------------------------------------===//

LogicalResult PutOp::verify() {
  int64_t room = getSlot().getType().getTile().getNumElements();
  if (static_cast<int64_t>(getValues().size()) != room)
    return emitOpError("puts ")
           << getValues().size() << " numbers into a slot for " << room;
  return success();
}

//===----------------------------------------------------------------------===//
// WgmmaOp
//===----------------------------------------------------------------------===//

/// What wgmma takes of 8-bit types: K-major operands, and a left operand in
/// registers in its own order.
static LogicalResult verifyFloat8Operands(WgmmaOp op) {
  if (!op.getTransposeB())
    return op.emitOpError("takes an 8-bit b only with transpose_b: with K "
                          "contiguous in memory");
  bool isInRegisters = isa<RankedTensorType>(op.getA().getType());
  if (isInRegisters == op.getPermutedK())
    return success();
  return op.emitOpError("of 8-bit types needs permuted_k ")
         << (isInRegisters ? "if a is in registers: their order is that of "
                             "#tile.operand"
                           : "only if a is in registers");
}

LogicalResult WgmmaOp::verify() {
  RankedTensorType a = getTile(getA().getType());
  RankedTensorType b = getTile(getB().getType());
  RankedTensorType result = getTile(getType());
  bool areFloat8 = isFloat8(a) && isFloat8(b);
  bool are16Bit = a.getElementType() == b.getElementType() &&
                  (b.getElementType().isF16() || b.getElementType().isBF16());
  if (!(are16Bit || areFloat8) || !result.getElementType().isF32())
    return emitOpError("multiplies f16, bf16 or 8-bit floats and "
                       "accumulates in f32");
  if (areFloat8 && failed(verifyFloat8Operands(*this)))
    return failure();
  if (!areFloat8 && getPermutedK())
    return emitOpError("has permuted_k, which is for 8-bit types");
  int64_t depth = b.getDimSize(getTransposeB() ? 1 : 0);
  int64_t columns = b.getDimSize(getTransposeB() ? 0 : 1);
  if (a.getDimSize(1) != depth || result.getDimSize(0) != a.getDimSize(0) ||
      result.getDimSize(1) != columns)
    return emitOpError("has shapes that don't multiply: ")
           << a << " and " << b << " to " << result;
  if (getAcc() && getTile(getAcc().getType()) != result)
    return emitOpError("accumulates to ")
           << getAcc().getType() << " but yields " << result;
  if (bool(getSlope()) != bool(getStart()) ||
      (getSlope() && (getAcc() || areFloat8)))
    return emitOpError("has a ramp, which takes a slope, a start, 16-bit "
                       "operands and no acc");
  // PTX ISA, wgmma: m64nNk16, or k32 of 8-bit types, with N a multiple of 8 up
  // to 256.
  int64_t step = areFloat8 ? 32 : 16;
  if (a.getDimSize(0) % 64 != 0 || depth % step != 0 || columns % 8 != 0 ||
      columns > 256)
    return emitOpError(
               "needs rows in multiples of 64, a depth in multiples of ")
           << step << " and at most 256 columns in multiples of 8";
  return success();
}

LogicalResult WgmmaWaitOp::verify() {
  if (getTile(getPending().getType()) != getType())
    return emitOpError("yields the tile of its operand");
  return success();
}
