//===- KernelLowering.cpp - Signature, blocks and control flow of a kernel ===//

#include "KernelLowering.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace mlir::tile;
using namespace mlir::tile::cpu;

/// Most of a thread's stack that a kernel may take (glibc's default is 8 MB).
constexpr int64_t kMaxScratchBytes = 4 * 1024 * 1024;

LogicalResult KernelLowering::run() {
  if (failed(verifyKernel(kernel)))
    return failure();
  kernel.walk([&](MmaOp) { lanesAreRows = true; });

  auto pointer = LLVM::LLVMPointerType::get(kernel.getContext());
  auto type =
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(kernel.getContext()),
                                  {pointer, builder.getI32Type()});
  auto func = LLVM::LLVMFuncOp::create(builder, kernel.getLoc(),
                                       kernel.getSymName(), type);
  if (Attribute schedule = kernel->getAttr("attn.schedule"))
    func->setAttr("attn.schedule", schedule);
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
  kernel.erase();
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
  if (auto gather = dyn_cast<GatherOp>(op))
    return emitGather(gather);
  if (auto store = dyn_cast<StoreOp>(op))
    return emitStore(store);
  if (auto store = dyn_cast<StoreElementOp>(op))
    return emitStoreElement(store);
  if (auto mma = dyn_cast<MmaOp>(op))
    return emitMma(mma, schedule, unit);
  if (auto exceeds = dyn_cast<AnyExceedsOp>(op))
    return emitAnyExceeds(exceeds);
  if (auto fold = dyn_cast<FoldSumOp>(op))
    return emitFoldSum(fold);
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return emitFor(loop, schedule, unit);
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return emitIf(branch);
  if (auto reduce = dyn_cast<ReduceRangeOp>(op))
    return emitReduceRange(reduce);
  if (isa<ProgramIdOp>(op))
    return scalars.map(op->getResult(0), programId);
  if (auto dim = dyn_cast<memref::DimOp>(op)) {
    Value size = memrefs[dim.getSource()].sizes[*dim.getConstantIndex()];
    return scalars.map(dim.getResult(),
                       arith::IndexCastOp::create(
                           builder, e.loc, builder.getIndexType(), size));
  }
  if (auto part = dyn_cast<memref::SubViewOp>(op))
    return emitSubView(part);
  if (auto rows = dyn_cast<PagedRowsOp>(op))
    return emitPagedRows(rows);
  if (isa<ReturnOp>(op)) {
    LLVM::ReturnOp::create(builder, e.loc, ValueRange());
    return;
  }
  // What emits the op around makes its own.
  if (isa<scf::YieldOp, YieldOp>(op))
    return;
  builder.clone(*op, scalars);
}

void KernelLowering::emitSubView(memref::SubViewOp op) {
  auto get = [&](OpFoldResult value) -> Value {
    if (auto constant = getConstantIntValue(value))
      return e.i64(*constant);
    Value index = scalars.lookup(cast<Value>(value));
    return arith::IndexCastOp::create(builder, e.loc, builder.getI64Type(),
                                      index);
  };
  MemRefArg part = memrefs[op.getSource()];
  Value offset = e.i64(0);
  for (auto [start, stride] :
       llvm::zip_equal(op.getMixedOffsets(), part.strides))
    offset = e.add(offset, e.mul(get(start), stride));
  part.pointer = e.address(part.pointer, offset,
                           getMemoryType(op.getType().getElementType()));
  for (auto [size, mixed] : llvm::zip_equal(part.sizes, op.getMixedSizes()))
    size = get(mixed);
  memrefs[op.getResult()] = part;
}

void KernelLowering::emitPagedRows(PagedRowsOp op) {
  MemRefArg rows = memrefs[op.getPool()];
  const MemRefArg &table = memrefs[op.getTable()];
  Value sequence = e.toI64(scalars.lookup(op.getSequence()));
  MemRefArg::Pages pages;
  pages.numbers = e.address(table.pointer, e.mul(sequence, table.strides[0]),
                            builder.getI32Type());
  pages.stride = table.strides[1];
  pages.lastNumber = e.sub(rows.sizes[0], e.i64(1));
  pages.rows = op.getPageRows();
  rows.sizes[0] = e.i64(1);
  rows.sizes[2] = e.toI64(scalars.lookup(op.getLength()));
  rows.pages = pages;
  memrefs[op.getResult()] = rows;
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
    // One by one: inserting may move what another entry refers to.
    buffers[arg] = buffer;
    buffers[result] = buffer;
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

/// One number after the other.
void KernelLowering::emitReduceRange(ReduceRangeOp op) {
  SmallVector<Value> neutral;
  for (unsigned i = 0; i < op.getNumResults(); ++i)
    neutral.push_back(arith::ConstantIntOp::create(
        builder, e.loc, op.getNeutral(i), /*width=*/32));
  Value one = arith::ConstantIntOp::create(builder, e.loc, 1, /*width=*/32);
  auto loop = scf::ForOp::create(
      builder, e.loc, scalars.lookup(op.getBegin()),
      scalars.lookup(op.getEnd()), one, neutral,
      [&](OpBuilder &, Location, Value number, ValueRange carried) {
        Block &body = op.getBody().front();
        scalars.map(body.getArgument(0), number);
        OpBuilder::InsertionGuard guard(builder);
        builder.setInsertionPointToStart(number.getParentBlock());
        emitBlock(body);
        SmallVector<Value> next;
        for (auto [i, value] :
             llvm::enumerate(body.getTerminator()->getOperands())) {
          Value own = scalars.lookup(value);
          next.push_back(
              op.isMin(i)
                  ? arith::MinSIOp::create(builder, e.loc, carried[i], own)
                        .getResult()
                  : arith::MaxSIOp::create(builder, e.loc, carried[i], own));
        }
        scf::YieldOp::create(builder, e.loc, next);
      });
  scalars.map(op.getResults(), loop.getResults());
}
