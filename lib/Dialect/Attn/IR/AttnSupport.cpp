//===- AttnSupport.cpp - What the lowerings can do today ------------------===//

#include "attn/Dialect/Attn/IR/AttnSupport.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::attn;

static constexpr int64_t kHeadDims[] = {32, 64, 96, 128};

static LogicalResult refuse(AttentionOp op, const Twine &what) {
  InFlightDiagnostic diag = op.emitOpError(what) << " not supported yet";
  diag.attachNote() << "supported: q, k, v of f16, bf16 or f32, head dimension "
                       "32, 64, 96 or 128 (the same for q/k and v), any "
                       "lengths, grouped-query heads, lse, and score_mod / "
                       "mask_mod without captures";
  return diag;
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

LogicalResult attn::verifySupported(AttentionOp op) {
  if (!op.getCaptures().empty())
    return refuse(op, "captures are");
  if (op.getSink())
    return refuse(op, "attention sinks (sink) are");
  if (op.getCuQ() || op.getCuK())
    return refuse(op, "packed sequences (cu_q, cu_k) are");
  if (op.getKvLen() || op.getBlockTable())
    return refuse(op, "a key/value cache (kv_len, block_table) is");
  if (op.getQScale() || op.getKScale() || op.getVScale())
    return refuse(op, "quantised inputs (q_scale, k_scale, v_scale) are");
  Type type = op.getElementType();
  if (!type.isF16() && !type.isBF16() && !type.isF32()) {
    std::string name;
    llvm::raw_string_ostream(name) << type;
    return refuse(op, "element type " + name + " is");
  }
  if (op.getQKHeadDim() != op.getVHeadDim())
    return refuse(op, "head dimensions " + Twine(op.getQKHeadDim()) +
                          " of q/k and " + Twine(op.getVHeadDim()) +
                          " of v, which differ, are");
  if (!llvm::is_contained(kHeadDims, op.getQKHeadDim()))
    return refuse(op, "head dimension " + Twine(op.getQKHeadDim()) + " is");
  return verifySizes(op);
}
