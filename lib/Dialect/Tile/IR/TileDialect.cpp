//===- TileDialect.cpp - The tile dialect ---------------------------------===//

#include "attn/Dialect/Tile/IR/TileDialect.h"
#include "attn/Dialect/Tile/IR/TileOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::tile;

#include "attn/Dialect/Tile/IR/TileDialect.cpp.inc"
#include "attn/Dialect/Tile/IR/TileEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "attn/Dialect/Tile/IR/TileAttributes.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "attn/Dialect/Tile/IR/TileTypes.cpp.inc"

namespace {
/// Layouts print as aliases, so that types stay readable.
struct TileAsmInterface : OpAsmDialectInterface {
  using OpAsmDialectInterface::OpAsmDialectInterface;

  AliasResult getAlias(Attribute attr, raw_ostream &os) const override {
    StringRef name = TypeSwitch<Attribute, StringRef>(attr)
                         .Case([](MmaLayoutAttr) { return "mma"; })
                         .Case([](OperandLayoutAttr) { return "operand"; })
                         .Case([](SharedLayoutAttr) { return "shared"; })
                         .Case([](BlockedLayoutAttr) { return "blocked"; })
                         .Case([](RowLayoutAttr) { return "row"; })
                         .Case([](ColLayoutAttr) { return "col"; })
                         .Default(StringRef());
    if (name.empty())
      return AliasResult::NoAlias;
    os << name;
    return AliasResult::OverridableAlias;
  }
};
} // namespace

static LogicalResult
verifyNumWarps(function_ref<InFlightDiagnostic()> emitError, int64_t warps) {
  if (warps >= 1 && warps <= 32)
    return success();
  return emitError() << "warps must be in [1, 32], not " << warps;
}

LogicalResult
MmaLayoutAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                      int64_t warps) {
  return verifyNumWarps(emitError, warps);
}

LogicalResult
BlockedLayoutAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                          int64_t vector, int64_t threadsPerRow,
                          int64_t warps) {
  if (vector < 1 || vector > 1024)
    return emitError() << "vector must be in [1, 1024], not " << vector;
  if (threadsPerRow < 1 || threadsPerRow > 32 ||
      !llvm::isPowerOf2_64(threadsPerRow))
    return emitError() << "threads_per_row must be a power of two in [1, 32], "
                          "not "
                       << threadsPerRow;
  return verifyNumWarps(emitError, warps);
}

void TileDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "attn/Dialect/Tile/IR/TileAttributes.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "attn/Dialect/Tile/IR/TileTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "attn/Dialect/Tile/IR/TileOps.cpp.inc"
      >();
  addInterfaces<TileAsmInterface>();
}
