//===- AttnDialect.cpp - The attn dialect ---------------------------------===//

#include "attn/Dialect/Attn/IR/AttnDialect.h"
#include "attn/Dialect/Attn/IR/AttnOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::attn;

#include "attn/Dialect/Attn/IR/AttnDialect.cpp.inc"

#include "attn/Dialect/Attn/IR/AttnEnums.cpp.inc"

/// What a schedule may say behind its sizes.
static ParseResult parseScheduleKind(AsmParser &parser,
                                     WarpRolesAttr &warpRoles,
                                     DecodeAttr &decode, int64_t &vColumns) {
  while (succeeded(parser.parseOptionalComma())) {
    SMLoc loc = parser.getCurrentLocation();
    StringRef name;
    if (parser.parseKeyword(&name) || parser.parseEqual())
      return failure();
    ParseResult result = failure();
    if (name == "warp_roles" && !warpRoles)
      result = parser.parseCustomAttributeWithFallback(warpRoles);
    else if (name == "decode" && !decode)
      result = parser.parseCustomAttributeWithFallback(decode);
    else if (name == "v_columns" && !vColumns)
      result = parser.parseInteger(vColumns);
    else
      return parser.emitError(loc,
                              "expected one warp_roles, decode or v_columns");
    if (result)
      return failure();
  }
  return success();
}

static void printScheduleKind(AsmPrinter &printer, WarpRolesAttr warpRoles,
                              DecodeAttr decode, int64_t vColumns) {
  if (warpRoles) {
    printer << ", warp_roles = ";
    printer.printStrippedAttrOrType(warpRoles);
  }
  if (decode) {
    printer << ", decode = ";
    printer.printStrippedAttrOrType(decode);
  }
  if (vColumns)
    printer << ", v_columns = " << vColumns;
}

#define GET_ATTRDEF_CLASSES
#include "attn/Dialect/Attn/IR/AttnAttributes.cpp.inc"

void AttnDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "attn/Dialect/Attn/IR/AttnAttributes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "attn/Dialect/Attn/IR/AttnOps.cpp.inc"
      >();
}

LogicalResult
WarpRolesAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                      RolePipeline pipeline, bool lazyRescale, bool persistent,
                      int64_t qStages, bool tmaStore, VTranspose vTranspose) {
  if (qStages < 1 || qStages > 2)
    return emitError() << "q_stages must be 1 or 2, not " << qStages;
  return success();
}

LogicalResult DecodeAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 int64_t maxSplits, int64_t programsPerSM,
                                 int64_t splitKeys) {
  // Numbers of programs and keys are 32 bits.
  constexpr int64_t kMaxCount = int64_t(1) << 16;
  if (maxSplits < 1 || maxSplits > kMaxCount)
    return emitError() << "max_splits must be in [1, " << kMaxCount << "], not "
                       << maxSplits;
  if (programsPerSM < 1 || programsPerSM > kMaxCount)
    return emitError() << "programs_per_sm must be in [1, " << kMaxCount
                       << "], not " << programsPerSM;
  if (splitKeys < 0 || splitKeys > (int64_t(1) << 30))
    return emitError() << "split_keys must be in [0, 2^30], not " << splitKeys;
  return success();
}

LogicalResult
ShortScheduleAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                          int64_t maxQLen, ScheduleAttr schedule) {
  // Kernels take no longer ones.
  constexpr int64_t kMaxLength = int64_t(1) << 30;
  if (maxQLen < 1 || maxQLen > kMaxLength)
    return emitError() << "max_q_len must be in [1, " << kMaxLength << "], not "
                       << maxQLen;
  return success();
}

LogicalResult ScheduleAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                   int64_t blockM, int64_t blockN,
                                   int64_t numStages, int64_t numWarps,
                                   WarpRolesAttr warpRoles, DecodeAttr decode,
                                   int64_t vColumns) {
  if (blockM <= 0 || blockM > 1024 || blockM % 8 != 0)
    return emitError() << "block_m must be a multiple of 8 in [8, 1024], not "
                       << blockM;
  if (blockN <= 0 || blockN > 1024 || blockN % 8 != 0)
    return emitError() << "block_n must be a multiple of 8 in [8, 1024], not "
                       << blockN;
  if (numStages < 1 || numStages > 8)
    return emitError() << "num_stages must be in [1, 8], not " << numStages;
  if (numWarps < 1 || numWarps > 32)
    return emitError() << "num_warps must be in [1, 32], not " << numWarps;
  if (decode && warpRoles)
    return emitError() << "a schedule with decode has no warp_roles";
  if (decode && decode.getSplitKeys() % blockN != 0)
    return emitError() << "split_keys must be a multiple of block_n = "
                       << blockN << ", not " << decode.getSplitKeys();
  if (vColumns < 0 || vColumns > 1024 || vColumns % 16 != 0)
    return emitError() << "v_columns must be a multiple of 16 in [0, 1024], "
                          "not "
                       << vColumns;
  return success();
}
