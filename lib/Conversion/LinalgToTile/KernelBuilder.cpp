//===- KernelBuilder.cpp - One op's kernel and its launch -----------------===//

#include "KernelBuilder.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::attn;

const TileSizes &TileSizes::get(const TargetInfo &target) {
  // Measured on an H200 at B8 H16 N1024 D64 in bf16, where every kernel is
  // bound by memory bandwidth: 80 % (products) to 95 % of a copy's.
  static constexpr TileSizes kGPU = {
      /*matmulM=*/128,   /*matmulN=*/128,        /*matmulK=*/64,
      /*shortSumN=*/64,  /*shortSumTiles=*/4,
      /*elements=*/4096, /*elementColumns=*/256,
      /*rows=*/4,        /*rowColumns=*/1024,
      /*matmulWarps=*/4, /*numWarps=*/4,         /*numStages=*/3};
  // Tiles fit the first-level cache.
  static constexpr TileSizes kCPU = {
      /*matmulM=*/64,    /*matmulN=*/64,         /*matmulK=*/64,
      /*shortSumN=*/64,  /*shortSumTiles=*/1,
      /*elements=*/4096, /*elementColumns=*/256,
      /*rows=*/8,        /*rowColumns=*/256,
      /*matmulWarps=*/1, /*numWarps=*/1,         /*numStages=*/1};
  return target.isGPU ? kGPU : kCPU;
}

InFlightDiagnostic attn::emitUnsupported(Operation *op, const Twine &what) {
  InFlightDiagnostic diag = op->emitOpError() << what;
  diag.attachNote()
      << "convert-linalg-to-tile takes matrix products, elementwise ops of "
         "rank 2 or more, fills, softmax and reductions of the last dimension, "
         "on memrefs with innermost stride 1";
  return diag;
}

StringRef KernelBuilder::getStep(StringRef fallback) const {
  auto step = op->getAttrOfType<StringAttr>("attn.step");
  return step ? step.getValue() : fallback;
}

static LogicalResult verifyArg(Operation *op, Value value) {
  Type type = value.getType();
  if (auto memref = dyn_cast<MemRefType>(type)) {
    SmallVector<int64_t> strides;
    int64_t offset;
    bool isLegal = memref.getElementType().isIntOrFloat() &&
                   succeeded(memref.getStridesAndOffset(strides, offset)) &&
                   (strides.empty() || strides.back() == 1);
    return isLegal ? success()
                   : emitUnsupported(op, "has an operand of type ")
                         << memref << ", which a kernel can't access";
  }
  if (type.isInteger(32) || type.isInteger(64) || type.isF32())
    return success();
  return emitUnsupported(op, "has a run-time scalar of type ")
         << type << "; make it i32, i64 or f32";
}

bool KernelBuilder::mapConstant(Value value) {
  TypedAttr attr;
  if (!matchPattern(value, m_Constant(&attr)))
    return false;
  if (attr.getType().isIndex())
    attr = kernel.getI32IntegerAttr(cast<IntegerAttr>(attr).getInt());
  mapping.map(value, arith::ConstantOp::create(kernel, attr));
  return true;
}

LogicalResult KernelBuilder::begin(const Twine &name, ValueRange operands,
                                   int32_t numWarps) {
  SetVector<Value> unique;
  SmallVector<Value> constants;
  for (Value operand : operands) {
    if (!isa<MemRefType>(operand.getType()) &&
        matchPattern(operand, m_Constant())) {
      constants.push_back(operand);
      continue;
    }
    if (failed(verifyArg(op, operand)))
      return failure();
    unique.insert(operand);
  }
  args = unique.takeVector();
  kernelOp = tile::KernelOp::create(kernel, name.str(),
                                    ValueRange(args).getTypes(), numWarps);
  symbols.insert(kernelOp);
  kernel.setInsertionPointToStart(&kernelOp.getBody().front());
  mapping.map(args, kernelOp.getBody().getArguments());
  for (Value constant : constants)
    mapConstant(constant);
  return success();
}

//===----------------------------------------------------------------------===//
// Kernel code
//===----------------------------------------------------------------------===//

Value KernelBuilder::getI32(int64_t value) {
  return arith::ConstantOp::create(kernel, kernel.getI32IntegerAttr(value));
}

Value KernelBuilder::getSize(Value memref, int64_t dim) {
  Value size =
      kernel.createOrFold<memref::DimOp>(kernel.getLoc(), getArg(memref), dim);
  return kernel.createOrFold<arith::IndexCastOp>(kernel.getLoc(),
                                                 kernel.getI32Type(), size);
}

Value KernelBuilder::getSplat(ArrayRef<int64_t> shape, Type type,
                              double value) {
  TypedAttr element =
      isa<FloatType>(type)
          ? TypedAttr(kernel.getFloatAttr(type, value))
          : TypedAttr(kernel.getIntegerAttr(type, static_cast<int64_t>(value)));
  return arith::ConstantOp::create(
      kernel, DenseElementsAttr::get(RankedTensorType::get(shape, type),
                                     Attribute(element)));
}

Value KernelBuilder::convertFloat(Value tile, Type type) {
  auto from = cast<RankedTensorType>(tile.getType());
  if (from.getElementType() == type)
    return tile;
  Type to = from.clone(type);
  if (from.getElementTypeBitWidth() < type.getIntOrFloatBitWidth())
    return arith::ExtFOp::create(kernel, to, tile);
  return arith::TruncFOp::create(kernel, to, tile);
}

bool KernelBuilder::isSupportedIndex(AffineExpr expr) {
  if (isa<AffineDimExpr, AffineConstantExpr>(expr))
    return true;
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary || binary.getKind() != AffineExprKind::FloorDiv)
    return false;
  auto divisor = dyn_cast<AffineConstantExpr>(binary.getRHS());
  return divisor && divisor.getValue() > 0 && isSupportedIndex(binary.getLHS());
}

Value KernelBuilder::getIndex(AffineExpr expr, ArrayRef<Value> starts) {
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return starts[dim.getPosition()];
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return getI32(constant.getValue());
  auto binary = cast<AffineBinaryOpExpr>(expr);
  return arith::DivUIOp::create(kernel, getIndex(binary.getLHS(), starts),
                                getIndex(binary.getRHS(), starts));
}

Value KernelBuilder::load(Value memref, ArrayRef<int64_t> shape,
                          ValueRange indices) {
  Type elementType = cast<MemRefType>(memref.getType()).getElementType();
  return tile::LoadOp::create(kernel, RankedTensorType::get(shape, elementType),
                              getArg(memref), indices);
}

void KernelBuilder::store(Value tile, Value memref, ValueRange indices) {
  tile::StoreOp::create(kernel, tile, getArg(memref), indices);
}

//===----------------------------------------------------------------------===//
// Programs and launch
//===----------------------------------------------------------------------===//

Value KernelBuilder::getHostIndex(int64_t value) {
  return arith::ConstantIndexOp::create(host, value);
}

Value KernelBuilder::getHostSize(Value memref, int64_t dim) {
  return host.createOrFold<memref::DimOp>(host.getLoc(), memref, dim);
}

Value KernelBuilder::multiply(Value a, Value b) {
  return host.createOrFold<arith::MulIOp>(host.getLoc(), a, b);
}

SmallVector<Value> KernelBuilder::splitPrograms(ArrayRef<GridLoop> loops) {
  SmallVector<Value> starts(loops.size());
  Value id = tile::ProgramIdOp::create(kernel, kernel.getI32Type());
  grid = getHostIndex(1);
  for (size_t index = loops.size(); index-- > 0;) {
    const GridLoop &loop = loops[index];
    Value hostSize = getHostSize(loop.memref, loop.dim);
    grid =
        multiply(grid, host.createOrFold<arith::CeilDivSIOp>(
                           host.getLoc(), hostSize, getHostIndex(loop.tile)));
    Value position = id;
    if (index != 0) {
      Value size = getSize(loop.memref, loop.dim);
      Value roundedUp = kernel.createOrFold<arith::AddIOp>(
          kernel.getLoc(), size, getI32(loop.tile - 1));
      Value count = kernel.createOrFold<arith::DivUIOp>(
          kernel.getLoc(), roundedUp, getI32(loop.tile));
      position =
          kernel.createOrFold<arith::RemUIOp>(kernel.getLoc(), id, count);
      id = kernel.createOrFold<arith::DivUIOp>(kernel.getLoc(), id, count);
    }
    starts[index] = kernel.createOrFold<arith::MulIOp>(
        kernel.getLoc(), position, getI32(loop.tile));
  }
  return starts;
}

/// Every operand once; one that is read and written twice.
Value KernelBuilder::countBytes() {
  Value total = getHostIndex(0);
  for (Value arg : args) {
    auto type = dyn_cast<MemRefType>(arg.getType());
    if (!type)
      continue;
    Value kernelArg = getArg(arg);
    int64_t accesses =
        llvm::any_of(
            kernelArg.getUsers(),
            llvm::IsaPred<tile::LoadOp, tile::GatherOp, memref::SubViewOp>) +
        llvm::any_of(kernelArg.getUsers(), llvm::IsaPred<tile::StoreOp>);
    int64_t elementBytes = llvm::divideCeil(type.getElementTypeBitWidth(), 8);
    Value bytes = getHostIndex(elementBytes * accesses);
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      bytes = multiply(bytes, getHostSize(arg, dim));
    total = host.createOrFold<arith::AddIOp>(host.getLoc(), total, bytes);
  }
  return total;
}

void KernelBuilder::finish(ArrayRef<GridLoop> loops, int64_t flops) {
  tile::ReturnOp::create(kernel);
  Value operations = getHostIndex(flops);
  for (const GridLoop &loop : loops)
    operations = multiply(operations, getHostSize(loop.memref, loop.dim));
  tile::LaunchOp::create(host, kernelOp.getSymName(), grid, args, countBytes(),
                         operations);
}
