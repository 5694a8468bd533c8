//===- TileToVector.cpp - Lower tile kernels to vector code ---------------===//

#include "Emitter.h"
#include "Schedule.h"
#include "VectorMath.h"
#include "attn/Conversion/Passes.h"
#include "attn/Dialect/Tile/IR/TileOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/bit.h"
#include <limits>
#include <numeric>

namespace mlir::attn {
#define GEN_PASS_DEF_CONVERTTILETOVECTOR
#include "attn/Conversion/Passes.h.inc"
} // namespace mlir::attn

using namespace mlir;
using namespace mlir::tile;

namespace {

/// Most of a thread's stack that a kernel may take (glibc's default is 8 MB).
constexpr int64_t kMaxScratchBytes = 4 * 1024 * 1024;

/// What the kernel knows of a memref argument.
struct MemRefArg {
  Value pointer;
  SmallVector<Value> sizes, strides; // i64
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
  Value rowBegin, rowEnd, colBegin, colEnd;
  /// i1: the window lies inside of the memref; its columns do.
  Value isFull, hasFullCols;
  int64_t rows, cols;
  Type element;
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
  LogicalResult checkOp(Operation *op);
  void emitArguments(Value params);
  MemRefArg emitMemRefArgument(MemRefType type,
                               function_ref<Value(Type)> nextParam);

  void emitBlock(Block &block);
  void emitGroup(const BlockSchedule &schedule, int64_t unit);
  void emitLoopOp(Operation *op, Point &point);
  void emitOp(Operation *op, const BlockSchedule &schedule, int64_t unit);
  void emitFor(scf::ForOp op, const BlockSchedule &schedule, int64_t unit);
  void emitIf(scf::IfOp op);
  void emitLoad(LoadOp op);
  void emitStore(StoreOp op);
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

  Window emitWindow(Value memref, ValueRange indices, RankedTensorType tile);
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

} // namespace

static RankedTensorType getType(Value tile) {
  return cast<RankedTensorType>(tile.getType());
}

static bool isTile(Value value) {
  return bool(getTileTypeOrNull(value.getType()));
}

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

LogicalResult KernelLowering::checkOp(Operation *op) {
  if (isa<KVLoopOp, MaskOp, ScoreModOp, OnlineSoftmaxOp>(op))
    return op->emitOpError("must be lowered before convert-tile-to-vector");
  if (isa<LoadOp, StoreOp, MmaOp, ReduceOp, BroadcastOp, IotaOp, ExpDiffOp,
          ProgramIdOp, ReturnOp, tensor::SplatOp, scf::ForOp, scf::IfOp,
          scf::YieldOp>(op))
    return success();
  if (auto dim = dyn_cast<memref::DimOp>(op)) {
    auto arg = dyn_cast<BlockArgument>(dim.getSource());
    std::optional<int64_t> index = dim.getConstantIndex();
    if (!arg || arg.getOwner()->getParentOp() != kernel.getOperation() ||
        !index || *index < 0 ||
        *index >= cast<MemRefType>(arg.getType()).getRank())
      return op->emitOpError("must ask for a constant, existing dimension of a "
                             "kernel argument");
    return success();
  }
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    if (isTile(constant) && !isa<SplatElementsAttr>(constant.getValue()))
      return op->emitOpError("must be a splat; other constants can be made "
                             "from tile.iota");
    return success();
  }
  if (isa<math::MathDialect>(op->getDialect()) && !isSupportedMath(op))
    return op->emitOpError("isn't supported on the CPU; run tile-lower-math "
                           "first, which leaves ")
           << getSupportedMathNames();
  bool known = isa<arith::ArithDialect, math::MathDialect>(op->getDialect()) &&
               (isLoopOp(op) || llvm::none_of(op->getResults(), isTile));
  if (!known)
    return op->emitOpError("isn't supported in a CPU kernel; legal are tile, "
                           "arith and math operations, scf.for, scf.if and "
                           "memref.dim");
  return success();
}

LogicalResult KernelLowering::run() {
  WalkResult checked =
      kernel.getBody().walk<WalkOrder::PreOrder>([&](Operation *op) {
        for (Value result : op->getResults()) {
          auto type = getTileTypeOrNull(result.getType());
          if (type && (type.getRank() < 1 || type.getRank() > 2)) {
            op->emitOpError("yields a tile of rank ")
                << type.getRank() << "; the CPU takes ranks 1 and 2";
            return WalkResult::interrupt();
          }
        }
        lanesAreRows |= isa<MmaOp>(op);
        return failed(checkOp(op)) ? WalkResult::interrupt()
                                   : WalkResult::advance();
      });
  if (checked.wasInterrupted())
    return failure();

  auto pointer = LLVM::LLVMPointerType::get(kernel.getContext());
  auto type =
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(kernel.getContext()),
                                  {pointer, builder.getI32Type()});
  auto func = LLVM::LLVMFuncOp::create(builder, kernel.getLoc(),
                                       kernel.getSymName(), type);
  entry = func.addEntryBlock(builder);
  builder.setInsertionPointToStart(entry);
  programId = entry->getArgument(1);
  emitArguments(entry->getArgument(0));
  emitBlock(kernel.getBody().front());

  int64_t bytes = 0;
  for (auto [op, size] : scratch)
    bytes += size;
  if (bytes > kMaxScratchBytes) {
    InFlightDiagnostic diag =
        kernel.emitOpError("needs ")
        << bytes << " bytes of stack for its tiles; at most "
        << kMaxScratchBytes << " are allowed: choose smaller tiles";
    for (auto [op, size] : scratch)
      diag.attachNote(op->getLoc()) << size << " bytes here";
    return diag;
  }
  StringAttr name = kernel.getSymNameAttr();
  kernel.erase();
  func.setSymNameAttr(name);
  return success();
}

void KernelLowering::emitArguments(Value params) {
  auto pointer = cast<LLVM::LLVMPointerType>(params.getType());
  int64_t next = 0;
  auto loadParam = [&](Type type) -> Value {
    Value slot = LLVM::GEPOp::create(builder, e.loc, pointer, pointer, params,
                                     ArrayRef<LLVM::GEPArg>{int32_t(next++)});
    Value param = LLVM::LoadOp::create(builder, e.loc, pointer, slot);
    return LLVM::LoadOp::create(builder, e.loc, type, param);
  };
  for (BlockArgument arg : kernel.getBody().getArguments()) {
    if (auto memref = dyn_cast<MemRefType>(arg.getType()))
      memrefs[arg] = emitMemRefArgument(memref, loadParam);
    else
      scalars.map(arg, loadParam(arg.getType()));
  }
}

MemRefArg
KernelLowering::emitMemRefArgument(MemRefType type,
                                   function_ref<Value(Type)> nextParam) {
  MemRefArg arg;
  arg.pointer = nextParam(LLVM::LLVMPointerType::get(type.getContext()));
  for (int64_t size : type.getShape())
    arg.sizes.push_back(ShapedType::isDynamic(size)
                            ? e.toI64(nextParam(builder.getI32Type()))
                            : e.i64(size));
  arg.strides.resize(type.getRank());
  if (type.getLayout().isIdentity()) {
    Value stride = e.i64(1);
    for (int64_t dim = type.getRank() - 1; dim >= 0; --dim) {
      arg.strides[dim] = stride;
      stride = e.mul(stride, arg.sizes[dim]);
    }
    return arg;
  }
  auto [strides, offset] = type.getStridesAndOffset();
  for (auto [value, stride] : llvm::zip(arg.strides, strides))
    value = ShapedType::isDynamic(stride) ? nextParam(builder.getI64Type())
                                          : e.i64(stride);
  return arg;
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

void KernelLowering::emitBlock(Block &block) {
  BlockSchedule schedule(block);
  for (auto [index, unit] : llvm::enumerate(schedule.getUnits())) {
    e.loc = unit.ops.front()->getLoc();
    if (unit.space)
      emitGroup(schedule, index);
    else
      emitOp(unit.ops.front(), schedule, index);
  }
}

void KernelLowering::emitOp(Operation *op, const BlockSchedule &schedule,
                            int64_t unit) {
  if (auto load = dyn_cast<LoadOp>(op))
    return emitLoad(load);
  if (auto store = dyn_cast<StoreOp>(op))
    return emitStore(store);
  if (auto mma = dyn_cast<MmaOp>(op))
    return emitMma(mma, schedule, unit);
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return emitFor(loop, schedule, unit);
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return emitIf(branch);
  if (isa<ProgramIdOp>(op))
    return scalars.map(op->getResult(0), programId);
  if (auto dim = dyn_cast<memref::DimOp>(op)) {
    Value size = memrefs[dim.getSource()].sizes[*dim.getConstantIndex()];
    return scalars.map(dim.getResult(),
                       arith::IndexCastOp::create(
                           builder, e.loc, builder.getIndexType(), size));
  }
  if (isa<ReturnOp>(op)) {
    LLVM::ReturnOp::create(builder, e.loc, ValueRange());
    return;
  }
  // emitFor and emitIf make their own.
  if (isa<scf::YieldOp>(op))
    return;
  builder.clone(*op, scalars);
}

void KernelLowering::emitFor(scf::ForOp op, const BlockSchedule &schedule,
                             int64_t unit) {
  // Loop-carried tiles stay in one buffer.
  SmallVector<Value> scalarInits;
  for (auto [init, arg, result] :
       llvm::zip(op.getInits(), op.getRegionIterArgs(), op.getResults())) {
    if (!isTile(init)) {
      scalarInits.push_back(scalars.lookup(init));
      continue;
    }
    bool usedOnce = llvm::count_if(init.getUses(), [&](OpOperand &use) {
                      return schedule.getUnit(use.getOwner()) == unit;
                    }) == 1;
    Value buffer;
    if (usedOnce)
      buffer = takeDeadBuffer(getType(init), {init}, schedule, unit);
    if (!buffer) {
      buffer = allocateTile(getType(init), op);
      copyTile(init, buffer);
    }
    buffers[arg] = buffers[result] = buffer;
  }
  auto loop = scf::ForOp::create(
      builder, e.loc, scalars.lookup(op.getLowerBound()),
      scalars.lookup(op.getUpperBound()), scalars.lookup(op.getStep()),
      scalarInits, nullptr, op.getUnsignedCmp());
  scalars.map(op.getInductionVar(), loop.getInductionVar());
  ValueRange scalarArgs = loop.getRegionIterArgs(), results = loop.getResults();
  for (auto [arg, result] :
       llvm::zip(op.getRegionIterArgs(), op.getResults())) {
    if (isTile(arg))
      continue;
    scalars.map(arg, scalarArgs.front());
    scalars.map(result, results.front());
    scalarArgs = scalarArgs.drop_front();
    results = results.drop_front();
  }

  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  emitBlock(*op.getBody());
  SmallVector<Value> scalarYields;
  SmallVector<std::pair<Value, Value>> copies;
  for (auto [arg, yielded] :
       llvm::zip(op.getRegionIterArgs(), op.getYieldedValues())) {
    if (!isTile(arg))
      scalarYields.push_back(scalars.lookup(yielded));
    else if (buffers.lookup(yielded) != buffers[arg])
      copies.push_back({yielded, buffers[arg]});
  }
  // A yielded tile may lie where another one is to go.
  bool overlaps = llvm::any_of(copies, [&](auto &copy) {
    Value from = buffers.lookup(copy.first);
    return llvm::any_of(
        copies, [&](auto &other) { return from && from == other.second; });
  });
  if (overlaps)
    for (auto &[yielded, buffer] : copies) {
      Value temporary = allocateTile(getType(yielded), op);
      copyTile(yielded, temporary);
      buffers[yielded] = temporary;
    }
  for (auto &[yielded, buffer] : copies)
    copyTile(yielded, buffer);
  if (!scalarInits.empty())
    scf::YieldOp::create(builder, e.loc, scalarYields);
}

void KernelLowering::emitIf(scf::IfOp op) {
  SmallVector<Type> scalarTypes;
  for (Value result : op.getResults()) {
    if (isTile(result))
      buffers[result] = allocateTile(getType(result), op);
    else
      scalarTypes.push_back(result.getType());
  }
  bool hasElse = !op.getElseRegion().empty();
  auto branch = scf::IfOp::create(builder, e.loc, scalarTypes,
                                  scalars.lookup(op.getCondition()), hasElse);
  ValueRange results = branch.getResults();
  for (Value result : op.getResults()) {
    if (isTile(result))
      continue;
    scalars.map(result, results.front());
    results = results.drop_front();
  }
  auto emitRegion = [&](Block &from, Block &to) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(&to);
    emitBlock(from);
    SmallVector<Value> yields;
    for (auto [yielded, result] :
         llvm::zip(from.getTerminator()->getOperands(), op.getResults())) {
      if (isTile(result))
        copyTile(yielded, buffers[result]);
      else
        yields.push_back(scalars.lookup(yielded));
    }
    if (!scalarTypes.empty())
      scf::YieldOp::create(builder, e.loc, yields);
  };
  emitRegion(*op.thenBlock(), *branch.thenBlock());
  if (hasElse)
    emitRegion(*op.elseBlock(), *branch.elseBlock());
}

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
// Memory
//===----------------------------------------------------------------------===//

Window KernelLowering::emitWindow(Value memref, ValueRange indices,
                                  RankedTensorType tile) {
  const MemRefArg &arg = memrefs[memref];
  Window w;
  w.element = tile.getElementType();
  Value one = e.i64(1), zero = e.i64(0);
  w.rowBegin = w.rowStride = zero;
  w.rowEnd = one;
  w.rows = tile.getRank() == 2 ? tile.getDimSize(0) : 1;
  w.cols = tile.getShape().back();

  int64_t selecting = indices.size() - tile.getRank();
  Value offset = zero, exists;
  for (auto [dim, index32] : llvm::enumerate(indices)) {
    Value index = e.toI64(scalars.lookup(index32));
    offset = e.add(offset, e.mul(index, arg.strides[dim]));
    if (static_cast<int64_t>(dim) < selecting) {
      // One unsigned comparison covers negative indices.
      Value inside = arith::CmpIOp::create(
          builder, e.loc, arith::CmpIPredicate::ult, index, arg.sizes[dim]);
      exists = exists
                   ? builder.createOrFold<arith::AndIOp>(e.loc, exists, inside)
                   : inside;
      continue;
    }
    int64_t extent = tile.getDimSize(dim - selecting);
    Value begin = e.clamp(e.sub(zero, index), extent);
    Value end = e.clamp(e.sub(arg.sizes[dim], index), extent);
    if (dim + 1 == indices.size()) {
      w.colBegin = begin;
      w.colEnd = end;
    } else {
      w.rowBegin = begin;
      w.rowEnd = end;
      w.rowStride = arg.strides[dim];
    }
  }
  if (exists)
    w.rowEnd = arith::SelectOp::create(builder, e.loc, exists, w.rowEnd, zero);
  w.pointer = e.address(arg.pointer, offset, getMemoryType(w.element));

  auto covers = [&](Value begin, Value end, int64_t extent) {
    Value length = e.sub(end, begin);
    return arith::CmpIOp::create(builder, e.loc, arith::CmpIPredicate::eq,
                                 length, e.i64(extent));
  };
  w.hasFullCols = covers(w.colBegin, w.colEnd, w.cols);
  w.isFull = arith::AndIOp::create(
      builder, e.loc, covers(w.rowBegin, w.rowEnd, w.rows), w.hasFullCols);
  return w;
}

void KernelLowering::zeroFill(Value buffer, Type element, int64_t count) {
  int64_t lanes = getNumLanes(count);
  Value zero = arith::ConstantOp::create(
      builder, e.loc, builder.getZeroAttr(VectorType::get({lanes}, element)));
  e.loop(e.i64(0), e.i64(count), lanes,
         [&](Value i) { e.store(zero, buffer, i); });
}

/// Covers the columns of a row that exist: by vectors where all of them do.
void KernelLowering::copyRow(
    const Window &w, Value row,
    function_ref<void(Value col, int64_t lanes)> copy) {
  auto branch = scf::IfOp::create(builder, e.loc, w.hasFullCols,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(branch.thenBlock());
  int64_t lanes = getNumLanes(w.cols);
  e.loop(e.i64(0), e.i64(w.cols), lanes, [&](Value col) { copy(col, lanes); });
  builder.setInsertionPointToStart(branch.elseBlock());
  e.loop(w.colBegin, w.colEnd, 1, [&](Value col) { copy(col, 0); });
}

Value KernelLowering::copyToRowMajor(const Window &w, Operation *op) {
  Type element = getScratchType(w.element);
  Value buffer = allocate(w.rows * w.cols, element, op);
  auto ifRagged =
      scf::IfOp::create(builder, e.loc, w.isFull, /*withElseRegion=*/true);
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(ifRagged.elseBlock());
    zeroFill(buffer, element, w.rows * w.cols);
  }
  e.loop(w.rowBegin, w.rowEnd, 1, [&](Value row) {
    copyRow(w, row, [&](Value col, int64_t lanes) {
      Value from = e.add(e.mul(row, w.rowStride), col);
      Value to = e.add(e.mul(row, e.i64(w.cols)), col);
      Value value = e.load(w.pointer, from, getMemoryType(w.element), lanes);
      e.store(e.memoryToScratch(value, w.element), buffer, to);
    });
  });
  return buffer;
}

/// True if a store may change what `load` has read before `user` runs.
static bool mayBeOverwritten(LoadOp load, Operation *user) {
  if (load->getBlock() != user->getBlock())
    return true;
  for (Operation *op = load->getNextNode(); op && op != user;
       op = op->getNextNode())
    if (op->walk([](StoreOp) {
            return WalkResult::interrupt();
          }).wasInterrupted())
      return true;
  return false;
}

void KernelLowering::emitLoad(LoadOp op) {
  Value tile = op.getResult();
  RankedTensorType type = getType(tile);
  bool isOperandB = false, isOther = false, canReadDirectly = true;
  for (OpOperand &use : tile.getUses()) {
    auto mma = dyn_cast<MmaOp>(use.getOwner());
    if (mma && use.get() == mma.getB() &&
        use.getOperandNumber() == mma.getBMutable().getOperandNumber()) {
      isOperandB = true;
      canReadDirectly &= !mayBeOverwritten(op, mma);
    } else {
      isOther = true;
    }
  }
  canReadDirectly &= type.getElementType().isF32();

  Window w = emitWindow(op.getSource(), op.getIndices(), type);
  if (isOperandB && !canReadDirectly)
    uniforms[tile] = {copyToRowMajor(w, op), e.i64(w.cols)};
  if (isOperandB && canReadDirectly) {
    auto branch = scf::IfOp::create(
        builder, e.loc, TypeRange{w.pointer.getType(), builder.getI64Type()},
        w.isFull,
        /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(branch.thenBlock());
    scf::YieldOp::create(builder, e.loc, {w.pointer, w.rowStride});
    builder.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(builder, e.loc,
                         {copyToRowMajor(w, op), e.i64(w.cols)});
    uniforms[tile] = {branch.getResult(0), branch.getResult(1)};
  }
  if (!isOther)
    return;

  if (type.getRank() == 1 || !lanesAreRows) {
    buffers[tile] = copyToRowMajor(w, op);
    return;
  }
  buffers[tile] = copyToLanes(w, type, op);
}

/// Copies a window to scratch memory with rows along the lanes: by square
/// blocks that are transposed in registers, or element by element where the
/// window is ragged.
Value KernelLowering::copyToLanes(const Window &w, RankedTensorType type,
                                  Operation *op) {
  Value buffer = allocateTile(type, op);
  Type element = getScratchType(w.element), memory = getMemoryType(w.element);
  auto branch = scf::IfOp::create(builder, e.loc, w.isFull,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(branch.thenBlock());
  forEachSquare(type, [&](Value row, Value col, int64_t size) {
    SmallVector<Value> vectors;
    for (int64_t i = 0; i < size; ++i) {
      Value at = e.add(e.mul(e.add(row, e.i64(i)), w.rowStride), col);
      vectors.push_back(
          e.memoryToScratch(e.load(w.pointer, at, memory, size), w.element));
    }
    e.transpose(vectors);
    for (auto [i, vector] : llvm::enumerate(vectors))
      e.store(vector, buffer,
              getElementOffset(type, row, e.add(col, e.i64(i))));
  });

  builder.setInsertionPointToStart(branch.elseBlock());
  zeroFill(buffer, element, w.rows * w.cols);
  e.loop(w.rowBegin, w.rowEnd, 1, [&](Value row) {
    e.loop(w.colBegin, w.colEnd, 1, [&](Value col) {
      Value from = e.add(e.mul(row, w.rowStride), col);
      e.store(e.memoryToScratch(e.load(w.pointer, from, memory, 0), w.element),
              buffer, getElementOffset(type, row, col));
    });
  });
  return buffer;
}

/// Covers a tile whose rows are lanes by squares no larger than a register.
void KernelLowering::forEachSquare(
    RankedTensorType type,
    function_ref<void(Value row, Value col, int64_t size)> body) {
  int64_t size = std::min({getNumLanes(type.getDimSize(0)),
                           getNumLanes(type.getDimSize(1)), maxLanes / 2});
  e.loop(e.i64(0), e.i64(type.getDimSize(0)), size, [&](Value row) {
    e.loop(e.i64(0), e.i64(type.getDimSize(1)), size,
           [&](Value col) { body(row, col, size); });
  });
}

void KernelLowering::emitStore(StoreOp op) {
  RankedTensorType type = getType(op.getValue());
  Window w = emitWindow(op.getDest(), op.getIndices(), type);
  Value buffer = materialize(op.getValue(), op);
  Type element = getScratchType(w.element);
  auto copy = [&](Value row, Value col, int64_t lanes) {
    Value value =
        e.load(buffer, getElementOffset(type, row, col), element, lanes);
    e.store(e.scratchToMemory(value, w.element), w.pointer,
            e.add(e.mul(row, w.rowStride), col));
  };
  if (type.getRank() == 1 || !lanesAreRows) {
    e.loop(w.rowBegin, w.rowEnd, 1, [&](Value row) {
      copyRow(w, row, [&](Value col, int64_t lanes) { copy(row, col, lanes); });
    });
    return;
  }
  auto branch = scf::IfOp::create(builder, e.loc, w.isFull,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(branch.thenBlock());
  forEachSquare(type, [&](Value row, Value col, int64_t size) {
    SmallVector<Value> vectors;
    for (int64_t i = 0; i < size; ++i)
      vectors.push_back(
          e.load(buffer, getElementOffset(type, row, e.add(col, e.i64(i))),
                 element, size));
    e.transpose(vectors);
    for (auto [i, vector] : llvm::enumerate(vectors))
      e.store(e.scratchToMemory(vector, w.element), w.pointer,
              e.add(e.mul(e.add(row, e.i64(i)), w.rowStride), col));
  });
  builder.setInsertionPointToStart(branch.elseBlock());
  e.loop(w.rowBegin, w.rowEnd, 1, [&](Value row) {
    e.loop(w.colBegin, w.colEnd, 1, [&](Value col) { copy(row, col, 0); });
  });
}

//===----------------------------------------------------------------------===//
// Matrix products
//===----------------------------------------------------------------------===//

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

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {

struct ConvertTileToVectorPass
    : attn::impl::ConvertTileToVectorBase<ConvertTileToVectorPass> {
  using Base::Base;

  void runOnOperation() override {
    if (vectorBits != 128 && vectorBits != 256 && vectorBits != 512) {
      emitError(getOperation().getLoc())
          << "vector-bits must be 128, 256 or 512, not " << vectorBits;
      return signalPassFailure();
    }
    for (KernelOp kernel :
         llvm::make_early_inc_range(getOperation().getOps<KernelOp>()))
      if (failed(KernelLowering(kernel, vectorBits).run()))
        return signalPassFailure();
    // Narrower vectors than AVX-512's come with CPUs on which LLVM converts to
    // bf16 by calls.
    expandMath(getOperation(), /*expandBF16=*/vectorBits < 512);
  }
};

} // namespace
