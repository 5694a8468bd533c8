//===- TileCompute.cpp - Tiles in scratch memory and loops over them ----===//

#include "KernelLowering.h"
#include "VectorMath.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/bit.h"
#include <limits>
#include <numeric>

using namespace mlir;
using namespace mlir::tile;
using namespace mlir::tile::cpu;

//===----------------------------------------------------------------------===//
// Tiles in scratch memory
//===----------------------------------------------------------------------===//

int64_t KernelLowering::getNumLanes(int64_t extent) const {
  int64_t powerOfTwo = int64_t(1) << llvm::countr_zero(uint64_t(extent));
  return std::min(powerOfTwo, maxLanes);
}

Geometry KernelLowering::getGeometry(RankedTensorType type) const {
  int64_t rows = type.getDimSize(0);
  if (type.getRank() == 1) {
    int64_t lanes = getNumLanes(rows);
    return {lanes, rows / lanes, 1, lanes, 0, /*lanesAreRows=*/true};
  }
  int64_t cols = type.getDimSize(1);
  if (lanesAreRows) {
    int64_t lanes = getNumLanes(rows);
    return {lanes, rows / lanes, cols, cols * lanes, lanes, true};
  }
  int64_t lanes = getNumLanes(cols);
  return {lanes, rows, cols / lanes, cols, lanes, false};
}

Value KernelLowering::getOffset(const Geometry &g, Value outer, Value inner) {
  Value offset = e.mul(outer, e.i64(g.outerStride));
  return g.inner == 1 ? offset
                      : e.add(offset, e.mul(inner, e.i64(g.innerStride)));
}

Value KernelLowering::getElementOffset(RankedTensorType type, Value row,
                                       Value col) {
  Geometry g = getGeometry(type);
  if (type.getRank() == 1)
    return col;
  if (!g.lanesAreRows)
    return e.add(e.mul(row, e.i64(g.outerStride)), col);
  Value lanes = e.i64(g.lanes);
  Value panel = builder.createOrFold<arith::DivUIOp>(e.loc, row, lanes);
  Value lane = builder.createOrFold<arith::RemUIOp>(e.loc, row, lanes);
  return e.add(getOffset(g, panel, col), lane);
}

void KernelLowering::forEachPoint(RankedTensorType type,
                                  function_ref<void(Point &)> body) {
  Geometry g = getGeometry(type);
  e.loop(g.outer, [&](Value outer) {
    e.loop(g.inner, [&](Value inner) {
      Point point(g, outer, inner);
      body(point);
    });
  });
}

Value KernelLowering::allocate(int64_t count, Type element, Operation *op) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(entry);
  scratch.push_back(
      {op, count * llvm::divideCeil(element.getIntOrFloatBitWidth(), 8)});
  // 64 bytes: a cache line and the widest vector.
  return LLVM::AllocaOp::create(builder, e.loc,
                                LLVM::LLVMPointerType::get(op->getContext()),
                                element, e.i64(count), /*alignment=*/64);
}

Value KernelLowering::allocateTile(RankedTensorType type, Operation *op) {
  return allocate(type.getNumElements(), getScratchType(type.getElementType()),
                  op);
}

/// The buffer of a candidate that nothing reads after `unit`, for a result of
/// `type` that `unit` computes place by place; or null.
Value KernelLowering::takeDeadBuffer(RankedTensorType type,
                                     ArrayRef<Value> candidates,
                                     const BlockSchedule &schedule,
                                     int64_t unit) {
  Block *block = schedule.getUnits()[unit].ops.front()->getBlock();
  for (Value candidate : candidates) {
    Value buffer = buffers.lookup(candidate);
    RankedTensorType other = getType(candidate);
    if (buffer && candidate.getParentBlock() == block &&
        other.getShape() == type.getShape() &&
        getScratchType(other.getElementType()) ==
            getScratchType(type.getElementType()) &&
        schedule.getLastUse(candidate) == unit &&
        !schedule.isBroadcastIn(candidate, unit))
      return buffer;
  }
  return Value();
}

Value KernelLowering::materialize(Value tile, Operation *op) {
  if (Value buffer = buffers.lookup(tile))
    return buffer;
  // Only free operations have no buffer. The copy isn't remembered: it is
  // made where it is needed, maybe inside of a loop.
  Value buffer = allocateTile(getType(tile), op);
  copyTile(tile, buffer);
  return buffer;
}

void KernelLowering::copyTile(Value tile, Value buffer) {
  Type element = getType(tile).getElementType();
  forEachPoint(getType(tile), [&](Point &point) {
    Value value = e.computeToScratch(evaluate(tile, point), element);
    e.store(value, buffer, getOffset(point.geometry, point.outer, point.inner));
  });
}

//===----------------------------------------------------------------------===//
// Values at a place
//===----------------------------------------------------------------------===//

Value KernelLowering::evaluate(Value tile, Point &point) {
  if (Value value = point.computed.lookup(tile))
    return value;
  const Geometry &g = point.geometry;
  Value value;
  if (Value buffer = buffers.lookup(tile)) {
    Type element = getType(tile).getElementType();
    Value loaded = e.load(buffer, getOffset(g, point.outer, point.inner),
                          getScratchType(element), g.lanes);
    value = e.scratchToCompute(loaded, element);
  } else if (auto broadcast = tile.getDefiningOp<BroadcastOp>()) {
    Value panel = g.lanesAreRows ? point.outer : point.inner;
    Value other = g.lanesAreRows ? point.inner : point.outer;
    bool alongLanes = (broadcast.getDim() == 0) == g.lanesAreRows;
    value = alongLanes ? evaluateLanes(broadcast.getSource(), panel, g.lanes)
                       : e.splat(evaluateScalar(broadcast.getSource(), other),
                                 g.lanes);
  } else {
    value = evaluateLanes(tile, point.outer, g.lanes);
  }
  point.computed[tile] = value;
  return value;
}

/// Lanes [panel * lanes, (panel + 1) * lanes) of a rank-1 tile, or any lanes of
/// a splat.
Value KernelLowering::evaluateLanes(Value tile, Value panel, int64_t lanes) {
  Type element = getType(tile).getElementType();
  Value first = e.mul(panel, e.i64(lanes));
  if (Value buffer = buffers.lookup(tile))
    return e.scratchToCompute(
        e.load(buffer, first, getScratchType(element), lanes), element);
  if (tile.getDefiningOp<IotaOp>()) {
    SmallVector<int32_t> steps(lanes);
    std::iota(steps.begin(), steps.end(), 0);
    Value lane = arith::ConstantOp::create(
        builder, e.loc,
        DenseElementsAttr::get(VectorType::get({lanes}, element),
                               ArrayRef<int32_t>(steps)));
    Value base = arith::TruncIOp::create(builder, e.loc, element, first);
    return arith::AddIOp::create(builder, e.loc, e.splat(base, lanes), lane);
  }
  return e.splat(evaluateScalar(tile, Value()), lanes);
}

/// Element `index` of a rank-1 tile, or any element of a splat.
Value KernelLowering::evaluateScalar(Value tile, Value index) {
  Type element = getType(tile).getElementType();
  if (Value buffer = buffers.lookup(tile))
    return e.scratchToCompute(e.load(buffer, index, getScratchType(element), 0),
                              element);
  Operation *def = tile.getDefiningOp();
  if (isa<IotaOp>(def))
    return arith::TruncIOp::create(builder, e.loc, element, index);
  if (auto splat = dyn_cast<tensor::SplatOp>(def))
    return scalars.lookup(splat.getInput());
  auto constant = cast<arith::ConstantOp>(def);
  return arith::ConstantOp::create(
      builder, e.loc,
      cast<SplatElementsAttr>(constant.getValue()).getSplatValue<TypedAttr>());
}

//===----------------------------------------------------------------------===//
// Elementwise operations and reductions
//===----------------------------------------------------------------------===//

static Value emitReduceStep(Emitter &e, ReduceKind kind, Value acc, Value x) {
  if (kind == ReduceKind::Add)
    return arith::AddFOp::create(e.b, e.loc, acc, x);
  // One instruction on x86. A NaN is passed over here; it reaches the result
  // through the sum of the exponentials.
  Value greater =
      arith::CmpFOp::create(e.b, e.loc, arith::CmpFPredicate::OGT, x, acc);
  return arith::SelectOp::create(e.b, e.loc, greater, x, acc);
}

static Value emitReduceLanes(Emitter &e, ReduceKind kind, Value vector) {
  if (kind == ReduceKind::Max)
    return vector::ReductionOp::create(e.b, e.loc,
                                       vector::CombiningKind::MAXNUMF, vector);
  return vector::ReductionOp::create(e.b, e.loc, vector::CombiningKind::ADD,
                                     vector, arith::FastMathFlags::reassoc);
}

/// exp(scale * (x - max)), 0 where x is -inf.
static Value emitExpDiff(Emitter &e, Value x, Value max, Value scale) {
  int64_t lanes = cast<VectorType>(x.getType()).getNumElements();
  // max = -inf: every x is -inf. Subtract 0 to keep it so.
  Value lowest = e.constantF32(-std::numeric_limits<float>::infinity(), lanes);
  Value isEmpty =
      arith::CmpFOp::create(e.b, e.loc, arith::CmpFPredicate::OEQ, max, lowest);
  Value safeMax = arith::SelectOp::create(e.b, e.loc, isEmpty,
                                          e.constantF32(0.0f, lanes), max);
  Value difference = arith::SubFOp::create(e.b, e.loc, x, safeMax);
  Value scaled =
      arith::MulFOp::create(e.b, e.loc, difference, e.splat(scale, lanes));
  return emitExpOfNonPositive(e, scaled);
}

void KernelLowering::emitLoopOp(Operation *op, Point &point) {
  e.loc = op->getLoc();
  int64_t lanes = point.geometry.lanes;
  Value result;
  if (auto expDiff = dyn_cast<ExpDiffOp>(op)) {
    Value panel = point.geometry.lanesAreRows ? point.outer : point.inner;
    Value max;
    if (expDiff.getSource().getType() == expDiff.getMax().getType())
      max = evaluate(expDiff.getMax(), point);
    else if (point.geometry.lanesAreRows)
      max = evaluateLanes(expDiff.getMax(), panel, lanes);
    else
      max = e.splat(evaluateScalar(expDiff.getMax(), point.outer), lanes);
    result = emitExpDiff(e, evaluate(expDiff.getSource(), point), max,
                         scalars.lookup(expDiff.getScale()));
  } else if (auto gather = dyn_cast<GatherOp>(op)) {
    result = emitGather(gather, point);
  } else {
    SmallVector<Value> operands;
    for (Value operand : op->getOperands())
      operands.push_back(isTile(operand) ? evaluate(operand, point)
                                         : scalars.lookup(operand));
    Type element = getType(op->getResult(0)).getElementType();
    OperationState state(op->getLoc(), op->getName().getStringRef(), operands,
                         Type(VectorType::get({lanes}, element)),
                         op->getAttrs());
    result = builder.create(state)->getResult(0);
  }
  point.computed[op->getResult(0)] = result;
}

void KernelLowering::emitGroup(const BlockSchedule &schedule, int64_t unit) {
  const ScheduleUnit &group = schedule.getUnits()[unit];
  Geometry g = getGeometry(group.space);

  // Results that are read elsewhere take the place of tiles that die here.
  SmallVector<Value> stored;
  SmallVector<ReduceOp> reductions;
  llvm::SetVector<Value> candidates;
  llvm::DenseMap<Value, Value> targets;
  for (Operation *op : group.ops)
    for (Value operand : op->getOperands())
      if (isTile(operand))
        candidates.insert(operand);
  for (Operation *op : group.ops) {
    Value result = op->getResult(0);
    if (auto reduce = dyn_cast<ReduceOp>(op)) {
      reductions.push_back(reduce);
      buffers[result] = allocateTile(getType(result), op);
      continue;
    }
    if (!schedule.escapes(result, unit))
      continue;
    Value buffer = takeDeadBuffer(getType(result), candidates.getArrayRef(),
                                  schedule, unit);
    if (buffer)
      candidates.remove_if(
          [&](Value v) { return buffers.lookup(v) == buffer; });
    else
      buffer = allocateTile(getType(result), op);
    stored.push_back(result);
    // Not yet in `buffers`: inside of the loop the value is at hand.
    targets[result] = buffer;
  }

  SmallVector<Value> inits;
  for (ReduceOp reduce : reductions)
    inits.push_back(e.constantF32(reduce.getKind() == ReduceKind::Max
                                      ? -std::numeric_limits<float>::infinity()
                                      : 0.0f,
                                  g.lanes));
  e.loop(g.outer, [&](Value outer) {
    auto body = [&](Value inner, ValueRange accs) {
      Point point(g, outer, inner);
      SmallVector<Value> next;
      for (Operation *op : group.ops) {
        if (auto reduce = dyn_cast<ReduceOp>(op))
          next.push_back(emitReduceStep(e, reduce.getKind(), accs[next.size()],
                                        evaluate(reduce.getSource(), point)));
        else
          emitLoopOp(op, point);
      }
      for (Value result : stored)
        e.store(e.computeToScratch(point.computed[result],
                                   getType(result).getElementType()),
                targets[result], getOffset(g, outer, inner));
      return next;
    };
    SmallVector<Value> reduced = e.loop(g.inner, inits, body);
    for (auto [reduce, value] : llvm::zip(reductions, reduced)) {
      Value buffer = buffers[reduce.getResult()];
      if (g.lanesAreRows)
        e.store(value, buffer, e.mul(outer, e.i64(g.lanes)));
      else
        e.store(emitReduceLanes(e, reduce.getKind(), value), buffer, outer);
    }
  });
  for (Value result : stored)
    buffers[result] = targets[result];
}

//===----------------------------------------------------------------------===//
// Parts of an online softmax that targets with warps need; simple, not fast
//===----------------------------------------------------------------------===//

void KernelLowering::emitAnyExceeds(AnyExceedsOp op) {
  RankedTensorType type = getType(op.getSource());
  Value source = materialize(op.getSource(), op);
  Value no =
      arith::ConstantOp::create(builder, e.loc, builder.getBoolAttr(false));
  auto visitRow = [&](Value row, ValueRange found) -> SmallVector<Value> {
    Value limit = evaluateScalar(op.getLimits(), row);
    auto visitElement = [&](Value col, ValueRange found) -> SmallVector<Value> {
      Value element = e.load(source, getElementOffset(type, row, col),
                             type.getElementType(), 0);
      Value exceeds = arith::CmpFOp::create(
          builder, e.loc, arith::CmpFPredicate::OGT, element, limit);
      return {arith::OrIOp::create(builder, e.loc, found[0], exceeds)};
    };
    return e.loop(type.getDimSize(1), found, visitElement);
  };
  scalars.map(op.getResult(), e.loop(type.getDimSize(0), no, visitRow)[0]);
}

void KernelLowering::emitFoldSum(FoldSumOp op) {
  RankedTensorType from = getType(op.getSource()), to = getType(op.getResult());
  Value source = materialize(op.getSource(), op);
  Value target = buffers[op.getResult()] = allocateTile(to, op);
  zeroFill(target, to.getElementType(), to.getNumElements());
  e.loop(from.getDimSize(0), [&](Value row) {
    e.loop(from.getDimSize(1), [&](Value col) {
      Value folded = builder.createOrFold<arith::RemUIOp>(
          e.loc, col, e.i64(FoldSumOp::kColumns));
      Value at = getElementOffset(to, row, folded);
      Value sum = arith::AddFOp::create(
          builder, e.loc, e.load(target, at, to.getElementType(), 0),
          e.load(source, getElementOffset(from, row, col),
                 from.getElementType(), 0));
      e.store(sum, target, at);
    });
  });
}
