//===- KernelLowering.h - Lowers one kernel to vector code ------*- C++ -*-===//

#ifndef ATTN_LIB_CONVERSION_TILETOVECTOR_KERNELLOWERING_H
#define ATTN_LIB_CONVERSION_TILETOVECTOR_KERNELLOWERING_H

#include "Emitter.h"
#include "Schedule.h"
#include "attn/Dialect/Tile/IR/TileOps.h"
#include "mlir/IR/IRMapping.h"

namespace mlir::tile::cpu {

/// Checks that KernelLowering can lower `kernel`; otherwise says what to
/// change.
LogicalResult verifyKernel(KernelOp kernel);

/// The type of `tile`, which is one.
inline RankedTensorType getType(Value tile) {
  return cast<RankedTensorType>(tile.getType());
}

inline bool isTile(Value value) {
  return bool(getTileTypeOrNull(value.getType()));
}

/// What the kernel knows of a memref argument.
struct MemRefArg {
  /// Where rows lie in pages: the numbers of a sequence's pages.
  struct Pages {
    Value numbers, stride, lastNumber;
    int64_t rows;
  };

  Value pointer;
  SmallVector<Value> sizes, strides; // i64
  std::optional<Pages> pages;
};

/// How a tile lies in scratch memory, and the loop nest over its vectors:
/// vector (outer, inner) is at outer * outerStride + inner * innerStride.
struct Geometry {
  int64_t lanes, outer, inner, outerStride, innerStride;
  /// Lanes run along the rows (dimension 0) of a rank-2 tile: the outer loop
  /// runs over panels of rows. Otherwise the inner one does over panels of
  /// columns.
  bool lanesAreRows;
};

/// A place in the loop nest over a tile.
struct Point {
  Point(const Geometry &geometry, Value outer, Value inner)
      : geometry(geometry), outer(outer), inner(inner) {}

  const Geometry &geometry;
  Value outer, inner;
  /// What the enclosing loop has computed at this place.
  llvm::DenseMap<Value, Value> computed;
};

/// The part of a memref that a tile covers. Rank-1 tiles are one row.
struct Window {
  Value pointer, rowStride;
  /// The number of the window's first row.
  Value firstRow;
  /// Where rows lie in pages, the distance between those; the pointer is then
  /// that of row 0 of page 0.
  std::optional<MemRefArg::Pages> pages;
  Value pageStride;
  Value rowBegin, rowEnd, colBegin, colEnd;
  /// i1: the window lies inside of the memref; its columns do.
  Value isFull, hasFullCols;
  int64_t rows, cols;
  Type element;
  /// How many matrices take turns, and then the stride between them.
  int64_t interleave = 1;
  Value matrixStride;

  /// Of row `row`, which exists, in elements from `pointer`.
  Value getRowOffset(Emitter &e, Value row) const;
  Value getPagedRowOffset(Emitter &e, Value row) const;
};

/// A row-major f32 tile, the right operand of products.
struct UniformTile {
  Value pointer, rowStride;
};

class KernelLowering {
public:
  KernelLowering(KernelOp kernel, int64_t vectorBits)
      : kernel(kernel), builder(kernel), e(builder, kernel.getLoc()),
        maxLanes(2 * vectorBits / 32), maxColumns(vectorBits == 512 ? 8 : 4) {}

  LogicalResult run();

private:
  void emitArguments(Value params);
  MemRefArg emitMemRefArgument(MemRefType type,
                               function_ref<Value(Type)> nextParam);

  void emitBlock(Block &block);
  void emitGroup(const BlockSchedule &schedule, int64_t unit);
  void emitLoopOp(Operation *op, Point &point);
  void emitOp(Operation *op, const BlockSchedule &schedule, int64_t unit);
  void emitSubView(memref::SubViewOp op);
  void emitPagedRows(PagedRowsOp op);
  void emitFor(scf::ForOp op, const BlockSchedule &schedule, int64_t unit);
  void emitIf(scf::IfOp op);
  void emitReduceRange(ReduceRangeOp op);
  void emitLoad(LoadOp op);
  void emitGather(GatherOp op);
  Value emitGather(GatherOp op, Point &point);
  void emitStore(StoreOp op);
  void emitStoreElement(StoreElementOp op);
  void emitAnyExceeds(AnyExceedsOp op);
  void emitFoldSum(FoldSumOp op);
  void emitMma(MmaOp op, const BlockSchedule &schedule, int64_t unit);

  Geometry getGeometry(RankedTensorType type) const;
  int64_t getNumLanes(int64_t extent) const;
  Value getOffset(const Geometry &g, Value outer, Value inner);
  Value getElementOffset(RankedTensorType type, Value row, Value col);
  void forEachPoint(RankedTensorType type, function_ref<void(Point &)> body);

  Value allocate(int64_t count, Type element, Operation *op);
  Value allocateTile(RankedTensorType type, Operation *op);
  Value takeDeadBuffer(RankedTensorType type, ArrayRef<Value> candidates,
                       const BlockSchedule &schedule, int64_t unit);
  Value materialize(Value tile, Operation *op);
  void copyTile(Value tile, Value buffer);

  Value evaluate(Value tile, Point &point);
  Value evaluateLanes(Value tile, Value panel, int64_t lanes);
  Value evaluateScalar(Value tile, Value index);

  Window emitWindow(Value memref, ValueRange indices, RankedTensorType tile,
                    int64_t interleave);
  Value copyToRowMajor(const Window &window, Operation *op);
  Value copyToLanes(const Window &window, RankedTensorType type, Operation *op);
  void
  forEachSquare(RankedTensorType type,
                function_ref<void(Value row, Value col, int64_t size)> body);
  void copyRow(const Window &window, Value row,
               function_ref<void(Value col, int64_t lanes)> copy);
  void zeroFill(Value buffer, Type element, int64_t count);
  UniformTile getUniform(Value tile, MmaOp op);

  KernelOp kernel;
  OpBuilder builder;
  Emitter e;
  /// Lanes of a vector: two registers, so that one read of B serves both.
  int64_t maxLanes;
  /// Columns of C that a product keeps in registers.
  int64_t maxColumns;
  /// Lanes are rows, see the pass's description.
  bool lanesAreRows = false;

  Value programId;
  IRMapping scalars;
  llvm::DenseMap<Value, MemRefArg> memrefs;
  llvm::DenseMap<Value, Value> buffers;
  llvm::DenseMap<Value, UniformTile> uniforms;
  Block *entry = nullptr;
  SmallVector<std::pair<Operation *, int64_t>> scratch;
};

} // namespace mlir::tile::cpu

#endif // ATTN_LIB_CONVERSION_TILETOVECTOR_KERNELLOWERING_H
