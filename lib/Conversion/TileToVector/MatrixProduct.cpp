//===- MatrixProduct.cpp - Products with rows in the lanes --------------===//

#include "KernelLowering.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace mlir::tile;
using namespace mlir::tile::cpu;

UniformTile KernelLowering::getUniform(Value tile, MmaOp op) {
  auto it = uniforms.find(tile);
  if (it != uniforms.end())
    return it->second;
  // Computed, not loaded: bring it into the layout of loaded tiles.
  RankedTensorType type = getType(tile);
  Value from = materialize(tile, op);
  int64_t rows = type.getDimSize(0), cols = type.getDimSize(1);
  Value to = allocate(type.getNumElements(), builder.getF32Type(), op);
  e.loop(rows, [&](Value row) {
    e.loop(cols, [&](Value col) {
      Value value = e.load(from, getElementOffset(type, row, col),
                           builder.getF32Type(), 0);
      e.store(value, to, e.add(e.mul(row, e.i64(cols)), col));
    });
  });
  return {to, e.i64(cols)};
}

void KernelLowering::emitMma(MmaOp op, const BlockSchedule &schedule,
                             int64_t unit) {
  Type f32 = builder.getF32Type();
  RankedTensorType type = getType(op.getResult());
  Geometry g = getGeometry(type);
  int64_t depth = getType(op.getA()).getDimSize(1);
  int64_t columns = maxColumns;
  while (g.inner % columns != 0)
    --columns;

  Value a = materialize(op.getA(), op);
  UniformTile b = getUniform(op.getB(), op);
  Value acc = op.getAcc(), from = buffers.lookup(acc), to;
  if (acc != op.getA() && acc != op.getB())
    to = takeDeadBuffer(type, {acc}, schedule, unit);
  if (!to)
    to = allocateTile(type, op);
  buffers[op.getResult()] = to;

  e.loop(g.outer, [&](Value panel) {
    Value aPanel = e.address(a, e.mul(panel, e.i64(depth * g.lanes)), f32);
    e.loop(e.i64(0), e.i64(g.inner), columns, [&](Value first) {
      SmallVector<Value> offsets, accs, rows;
      for (int64_t i = 0; i < columns; ++i) {
        Value column = e.add(first, e.i64(i));
        offsets.push_back(getOffset(g, panel, column));
        Point point(g, panel, column);
        accs.push_back(from ? e.load(from, offsets.back(), f32, g.lanes)
                            : evaluate(acc, point));
        if (op.getTransposeB())
          rows.push_back(e.address(b.pointer, e.mul(column, b.rowStride), f32));
      }
      Value firstColumn = e.address(b.pointer, first, f32);
      SmallVector<Value> results =
          e.loop(depth, accs, [&](Value k, ValueRange accs) {
            Value aLanes =
                e.load(aPanel, e.mul(k, e.i64(g.lanes)), f32, g.lanes);
            Value row =
                op.getTransposeB()
                    ? Value()
                    : e.address(firstColumn, e.mul(k, b.rowStride), f32);
            SmallVector<Value> next;
            for (auto [i, c] : llvm::enumerate(accs)) {
              Value element = op.getTransposeB()
                                  ? e.load(rows[i], k, f32, 0)
                                  : e.load(row, e.i64(i), f32, 0);
              next.push_back(LLVM::FMulAddOp::create(
                  builder, e.loc, aLanes, e.splat(element, g.lanes), c));
            }
            return next;
          });
      for (auto [offset, value] : llvm::zip(offsets, results))
        e.store(value, to, offset);
    });
  });
}
