//===- KernelBuilder.h - One op's kernel and its launch ---------*- C++ -*-===//

#ifndef ATTN_LIB_CONVERSION_LINALGTOTILE_KERNELBUILDER_H
#define ATTN_LIB_CONVERSION_LINALGTOTILE_KERNELBUILDER_H

#include "attn/Dialect/Tile/IR/TileOps.h"
#include "attn/Target/TargetInfo.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/SymbolTable.h"

namespace mlir::attn {

/// How work is cut into programs on one kind of target (KernelBuilder.cpp).
struct TileSizes {
  /// Output tile and K step of a matrix product; K halves for f32.
  int64_t matmulM, matmulN, matmulK;
  /// Where the sum takes at most two K steps (then made one): columns of an
  /// output tile, and the tiles of a row that a program computes.
  int64_t shortSumN, shortSumTiles;
  /// Elements of an elementwise tile, and columns of one if rows are long.
  int64_t elements, elementColumns;
  /// Rows of a row kernel, and columns that it holds at a time.
  int64_t rows, rowColumns;
  /// Warps of a matrix product, and of the other kernels.
  int32_t matmulWarps, numWarps;
  /// Tiles in flight of a matrix product's K loop.
  int32_t numStages;

  static const TileSizes &get(const TargetInfo &target);
};

/// One dimension of the program grid: the size of `memref`'s dimension `dim`,
/// in steps of `tile`.
struct GridLoop {
  Value memref;
  int64_t dim;
  int64_t tile;
};

class KernelBuilder {
public:
  KernelBuilder(Operation *op, const TargetInfo &target, SymbolTable &symbols)
      : host(op->getLoc(), op), kernel(op->getLoc(), op->getContext()), op(op),
        target(target), symbols(symbols) {}

  const TargetInfo &getTarget() const { return target; }
  const TileSizes &getSizes() const { return TileSizes::get(target); }
  Operation *getOp() const { return op; }

  /// The op's `attn.step`, or `fallback`.
  StringRef getStep(StringRef fallback) const;

  /// Starts the kernel, which takes the memrefs and non-constant scalars among
  /// `operands`. Diagnoses operands that a kernel can't take.
  LogicalResult begin(const Twine &name, ValueRange operands, int32_t numWarps);
  tile::KernelOp getKernel() { return kernelOp; }

  /// Splits the grid among the loops, the last one fastest, and returns the
  /// position (i32) in each at which the program starts.
  SmallVector<Value> splitPrograms(ArrayRef<GridLoop> loops);

  /// Ends the kernel and launches it in place of the op. `flops` is the number
  /// of operations per element of the space of `loops`.
  void finish(ArrayRef<GridLoop> loops, int64_t flops);

  /// What the host's value (a memref, scalar or constant) is in the kernel.
  Value getArg(Value operand) const { return mapping.lookup(operand); }

  /// Makes a constant of the host known to the kernel; false if it isn't one.
  bool mapConstant(Value value);

  Value getI32(int64_t value);
  /// A dimension of a memref, as i32.
  Value getSize(Value memref, int64_t dim);
  /// A tile whose elements are all `value`.
  Value getSplat(ArrayRef<int64_t> shape, Type type, double value);
  /// `tile` converted to or from f32.
  Value convertFloat(Value tile, Type type);
  /// The values at the loops' positions `starts` of an index expression that
  /// isSupportedIndex.
  Value getIndex(AffineExpr expr, ArrayRef<Value> starts);
  static bool isSupportedIndex(AffineExpr expr);

  Value load(Value memref, ArrayRef<int64_t> shape, ValueRange indices);
  void store(Value tile, Value memref, ValueRange indices);

  /// In host code, before the op.
  ImplicitLocOpBuilder host;
  /// In the kernel's body.
  ImplicitLocOpBuilder kernel;

private:
  Value getHostSize(Value memref, int64_t dim);
  Value getHostIndex(int64_t value);
  Value multiply(Value a, Value b);
  Value countBytes();

  Operation *op;
  const TargetInfo &target;
  SymbolTable &symbols;
  tile::KernelOp kernelOp;
  SmallVector<Value> args;
  IRMapping mapping;
  Value grid;
};

/// A diagnostic on `op` that says what this conversion takes.
InFlightDiagnostic emitUnsupported(Operation *op, const Twine &what);

} // namespace mlir::attn

#endif // ATTN_LIB_CONVERSION_LINALGTOTILE_KERNELBUILDER_H
