//===- VerifyKernel.cpp - What the CPU path refuses -----------------------===//

#include "KernelLowering.h"
#include "VectorMath.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::tile;
using namespace mlir::tile::cpu;

/// Tiles of one of the element types that the emitted code can hold.
static LogicalResult verifyType(Operation *op, Type type) {
  if (isa<MemRefType>(type) || !isa<ShapedType>(type))
    return success();
  auto tile = dyn_cast<RankedTensorType>(type);
  if (!tile || !tile.hasStaticShape() || tile.getRank() < 1 ||
      tile.getRank() > 2 || tile.getNumElements() == 0)
    return op->emitOpError("has a value of type ")
           << type << "; the CPU takes static, nonempty tiles of rank 1 or 2";
  Type element = tile.getElementType();
  bool isKnown = element.isF16() || element.isBF16() || element.isF32() ||
                 element.isF64() || element.isSignlessInteger(1) ||
                 element.isSignlessInteger(8) ||
                 element.isSignlessInteger(16) ||
                 element.isSignlessInteger(32) || element.isSignlessInteger(64);
  if (!isKnown)
    return op->emitOpError("has a tile of ")
           << element
           << "; the CPU takes f16, bf16, f32, f64, i1, i8, i16, i32 and i64";
  return success();
}

static bool isKernelArgument(Value value, KernelOp kernel) {
  if (auto part = value.getDefiningOp<memref::SubViewOp>())
    value = part.getSource();
  if (auto rows = value.getDefiningOp<PagedRowsOp>())
    value = rows.getPool();
  auto arg = dyn_cast<BlockArgument>(value);
  return arg && arg.getOwner()->getParentOp() == kernel;
}

static LogicalResult verifyDim(memref::DimOp op) {
  std::optional<int64_t> index = op.getConstantIndex();
  if (index && *index >= 0 &&
      *index < cast<MemRefType>(op.getSource().getType()).getRank())
    return success();
  return op.emitOpError("must ask for a constant, existing dimension");
}

static LogicalResult verifyMath(Operation *op) {
  if (!isSupportedMath(op))
    return op->emitOpError("isn't supported on the CPU; run tile-lower-math "
                           "first, which leaves ")
           << getSupportedMathNames();
  Type element = getElementTypeOrSelf(op->getResult(0).getType());
  if (isa<math::Exp2Op, math::Log2Op>(op) && !element.isF32())
    return op->emitOpError("is supported in f32 only, not in ") << element;
  return success();
}

static LogicalResult verifyOp(Operation *op, KernelOp kernel) {
  for (Value operand : op->getOperands())
    if (isa<BaseMemRefType>(operand.getType()) &&
        (!isKernelArgument(operand, kernel) ||
         !isa<LoadOp, GatherOp, StoreOp, StoreElementOp, PagedRowsOp,
              memref::DimOp, memref::SubViewOp>(op)))
      return op->emitOpError("uses a memref; only tile.load, tile.gather, "
                             "tile.store, tile.store_element, memref.dim and "
                             "memref.subview may, and of kernel arguments or "
                             "subviews of them");
  for (Type type : op->getResultTypes())
    if (failed(verifyType(op, type)))
      return failure();

  if (isa<KVLoopOp, MaskOp, ScoreModOp, OnlineSoftmaxOp>(op))
    return op->emitOpError("must be lowered before convert-tile-to-vector");
  if (isa<LoadOp, GatherOp, StoreOp, StoreElementOp, PagedRowsOp, MmaOp,
          ReduceOp, ReduceRangeOp, AnyExceedsOp, FoldSumOp, BroadcastOp, IotaOp,
          ExpDiffOp, ProgramIdOp, ReturnOp, tensor::SplatOp, scf::ForOp,
          scf::IfOp, scf::YieldOp, YieldOp>(op))
    return success();
  if (auto dim = dyn_cast<memref::DimOp>(op))
    return verifyDim(dim);
  if (auto part = dyn_cast<memref::SubViewOp>(op)) {
    if (part.hasUnitStride() && part.getDroppedDims().none())
      return success();
    return op->emitOpError("must have unit strides and keep all dimensions");
  }
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    if (isTile(constant) && !isa<SplatElementsAttr>(constant.getValue()))
      return op->emitOpError("must be a splat; other constants can be made "
                             "from tile.iota");
    return success();
  }
  bool isElementwise = isLoopOp(op) || llvm::none_of(op->getResults(), isTile);
  if (isElementwise && isa<math::MathDialect>(op->getDialect()))
    return verifyMath(op);
  if (isElementwise && isa<arith::ArithDialect>(op->getDialect()))
    return success();
  return op->emitOpError("isn't supported in a CPU kernel; legal are tile, "
                         "arith and math operations, scf.for, scf.if, "
                         "memref.dim and memref.subview");
}

LogicalResult cpu::verifyKernel(KernelOp kernel) {
  WalkResult result =
      kernel.getBody().walk<WalkOrder::PreOrder>([&](Operation *op) {
        return failed(verifyOp(op, kernel)) ? WalkResult::interrupt()
                                            : WalkResult::advance();
      });
  return failure(result.wasInterrupted());
}
