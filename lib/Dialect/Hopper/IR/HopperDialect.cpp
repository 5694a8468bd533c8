//===- HopperDialect.cpp - The hopper dialect -----------------------------===//

#include "attn/Dialect/Hopper/IR/HopperOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::hopper;

#include "attn/Dialect/Hopper/IR/HopperDialect.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "attn/Dialect/Hopper/IR/HopperTypes.cpp.inc"

void HopperDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "attn/Dialect/Hopper/IR/HopperTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "attn/Dialect/Hopper/IR/HopperOps.cpp.inc"
      >();
}

static constexpr int64_t kMaxBlockRowBytes = 128;
static constexpr int64_t kMinBlockRowBytes = 32;

int64_t RingType::getBlockRowBytes() {
  int64_t bytes = kMaxBlockRowBytes;
  if (getElementBytes() == 1)
    while (bytes > kMinBlockRowBytes && getTile().getDimSize(1) % bytes != 0)
      bytes /= 2;
  return bytes;
}

LogicalResult HopperDialect::verifyOperationAttribute(Operation *op,
                                                      NamedAttribute attr) {
  if (attr.getName() != getStagesAttrName())
    return op->emitError("has an attribute that the hopper dialect doesn't "
                         "know: ")
           << attr.getName();
  auto stages = dyn_cast<IntegerAttr>(attr.getValue());
  if (isa<tile::LoadOp>(op) && stages && stages.getType().isInteger(32) &&
      stages.getInt() >= 1)
    return success();
  return op->emitOpError("takes no ")
         << getStagesAttrName() << " = " << attr.getValue()
         << "; it is an i32 of at least 1 on a tile.load";
}

bool RingType::isReadable(Type element) {
  return element.isF16() || element.isBF16() || element.isF32() ||
         element.isInteger(1) || element.isInteger(8) || element.isInteger(32);
}

LogicalResult RingType::verify(function_ref<InFlightDiagnostic()> emitError,
                               int64_t stages, RankedTensorType tile) {
  if (stages < 1)
    return emitError() << "needs at least 1 stage, not " << stages;
  Type element = tile.getElementType();
  if (element.isInteger(32) && tile.hasStaticShape() && tile.getRank() == 1 &&
      tile.getNumElements() > 0)
    return success();
  bool isFloat8 = isa<Float8E4M3FNType, Float8E5M2Type>(element);
  if (!tile.hasStaticShape() || tile.getRank() != 2 ||
      !(isReadable(element) || isFloat8))
    return emitError() << "holds static rank-2 tiles of f16, bf16, f32, "
                          "f8E4M3FN, f8E5M2, i1, i8 or i32, or numbers as "
                          "tensor<Nxi32>, not "
                       << tile;
  // A row of the narrowest block.
  if (isFloat8 && tile.getDimSize(1) % kMinBlockRowBytes != 0)
    return emitError() << "holds 8-bit tiles of columns in multiples of "
                       << kMinBlockRowBytes << ", not " << tile.getDimSize(1);
  // The box of one TMA load, and whole swizzle atoms of 8 rows.
  int64_t rows = tile.getDimSize(0);
  if (rows % 8 != 0 || rows < 8 || rows > 256)
    return emitError() << "holds tiles of 8 to 256 rows, a multiple of 8, not "
                       << rows;
  return success();
}
