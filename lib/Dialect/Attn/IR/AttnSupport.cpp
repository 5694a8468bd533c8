//===- AttnSupport.cpp - What the lowerings can do today ------------------===//

#include "attn/Dialect/Attn/IR/AttnSupport.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::attn;

/// 16 bytes of an 8-bit type, which TMA needs rows to be multiples of. Kernels
/// of other types do without TMA where rows aren't.
static constexpr int64_t kQuantizedHeadDimGranule = 16;
static constexpr int64_t kMaxHeadDim = 576;
static constexpr int64_t kMaxQuantizedHeadDim = 256;

static constexpr StringLiteral kCaptureTypes =
    "f16, bf16, f32, i1, i8, i32 and i64";

static InFlightDiagnostic refuse(AttentionOp op, const Twine &what) {
  InFlightDiagnostic diag = op.emitOpError(what) << " not supported yet";
  diag.attachNote() << "supported: q, k, v of f16, bf16 or f32, head "
                       "dimensions up to "
                    << kMaxHeadDim
                    << " (q/k and v may differ), any lengths, grouped-query "
                       "heads, packed sequences, caches and pages, sink, lse, "
                       "score_mod and mask_mod, and captures "
                       "of "
                    << kCaptureTypes
                    << "; on sm_90a also q, k, v of f8E4M3FN or f8E5M2, with "
                       "head dimensions in multiples of "
                    << kQuantizedHeadDimGranule << " up to "
                    << kMaxQuantizedHeadDim;
  return diag;
}

/// `name` is whose head dimension it is.
static LogicalResult verifyHeadDim(AttentionOp op, int64_t dim,
                                   StringRef name) {
  if (op.isQuantized() ? dim > 0 && dim <= kMaxQuantizedHeadDim &&
                             dim % kQuantizedHeadDimGranule == 0
                       : dim <= kMaxHeadDim)
    return success();
  return refuse(op, "head dimension " + Twine(dim) + " of " + name + " is");
}

/// Kernels take sizes as i32 and add tiles' sizes to positions.
static LogicalResult verifySizes(AttentionOp op) {
  constexpr int64_t kMaxSize = int64_t(1) << 30;
  for (Value operand : {op.getQ(), op.getK(), op.getV()})
    for (int64_t size : cast<ShapedType>(operand.getType()).getShape())
      if (!ShapedType::isDynamic(size) && size > kMaxSize)
        return op.emitOpError("has a size of ")
               << size << "; kernels take sizes up to " << kMaxSize;
  return success();
}

static LogicalResult verifyCaptures(AttentionOp op) {
  for (Type type : op.getCaptures().getTypes()) {
    Type element = getElementTypeOrSelf(type);
    if (element.isF16() || element.isBF16() || element.isF32() ||
        element.isSignlessInteger(1) || element.isSignlessInteger(8) ||
        element.isSignlessInteger(32) || element.isSignlessInteger(64))
      continue;
    std::string name;
    llvm::raw_string_ostream(name) << element;
    return refuse(op, "captures of " + name + " are");
  }
  return success();
}

LogicalResult attn::verifySupported(AttentionOp op) {
  if (failed(verifyCaptures(op)))
    return failure();
  Type type = op.getElementType();
  if (!type.isF16() && !type.isBF16() && !type.isF32() &&
      !isa<Float8E4M3FNType, Float8E5M2Type>(type)) {
    std::string name;
    llvm::raw_string_ostream(name) << type;
    return refuse(op, "element type " + name + " is");
  }
  if (failed(verifyHeadDim(op, op.getQKHeadDim(), "q and k")) ||
      failed(verifyHeadDim(op, op.getVHeadDim(), "v")))
    return failure();
  return verifySizes(op);
}

std::string attn::getArgumentName(FunctionOpInterface func, unsigned number) {
  auto name = func.getArgAttrOfType<StringAttr>(number, "attn.name");
  return name ? name.str() : "arg" + std::to_string(number);
}

bool attn::isForDecode(Operation *kernel) {
  auto schedule =
      kernel->getAttrOfType<ScheduleAttr>(ScheduleAttr::getKernelAttrName());
  return schedule && schedule.getDecode();
}
