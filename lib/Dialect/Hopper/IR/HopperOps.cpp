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
  if (getWarpgroups() < 1)
    return emitOpError("needs at least 1 consumer warpgroup");
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
  for (Region *region : {&getProducer(), &getConsumer()}) {
    if (TypeRange(region->getArgumentTypes()) != TypeRange(getArgs()))
      return emitOpError("has a ")
             << (region == &getProducer() ? "producer" : "consumer")
             << " region whose arguments are not of the operands' types";
  }
  return success();
}

//===----------------------------------------------------------------------===//
// TmaLoadOp
//===----------------------------------------------------------------------===//

LogicalResult TmaLoadOp::verify() {
  auto source = cast<MemRefType>(getSource().getType());
  int64_t rank = source.getRank();
  if (rank < 2 || rank > 5)
    return emitOpError("takes memrefs of rank 2 to 5, not ") << rank;
  if (static_cast<int64_t>(getIndices().size()) != rank)
    return emitOpError("needs ")
           << rank << " indices, not " << getIndices().size();
  if (source.getElementType() != getTile(getSlot().getType()).getElementType())
    return emitOpError("copies ")
           << source.getElementType() << " to a slot of another element type";
  return success();
}

//===----------------------------------------------------------------------===//
// WgmmaOp
//===----------------------------------------------------------------------===//

LogicalResult WgmmaOp::verify() {
  RankedTensorType a = getTile(getA().getType());
  RankedTensorType b = getTile(getB().getType());
  RankedTensorType result = getTile(getType());
  if (a.getElementType() != b.getElementType() ||
      !result.getElementType().isF32())
    return emitOpError("multiplies one 16-bit type and accumulates in f32");
  int64_t depth = b.getDimSize(getTransposeB() ? 1 : 0);
  int64_t columns = b.getDimSize(getTransposeB() ? 0 : 1);
  if (a.getDimSize(1) != depth || result.getDimSize(0) != a.getDimSize(0) ||
      result.getDimSize(1) != columns)
    return emitOpError("has shapes that don't multiply: ")
           << a << " and " << b << " to " << result;
  if (getAcc() && getTile(getAcc().getType()) != result)
    return emitOpError("accumulates to ")
           << getAcc().getType() << " but yields " << result;
  // PTX ISA, wgmma: m64nNk16 with N a multiple of 8 up to 256.
  if (a.getDimSize(0) % 64 != 0 || depth % 16 != 0 || columns % 8 != 0 ||
      columns > 256)
    return emitOpError("needs rows in multiples of 64, a depth in multiples of "
                       "16 and at most 256 columns in multiples of 8");
  return success();
}

LogicalResult WgmmaWaitOp::verify() {
  if (getTile(getPending().getType()) != getType())
    return emitOpError("yields the tile of its operand");
  return success();
}
