//===- RoleBuilder.cpp - What warp roles are built with -------------------===//

#include "RoleBuilder.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace mlir::tile;

bool tile::isScalarCode(Operation &op) {
  auto isTensor = [](Type type) { return isa<TensorType>(type); };
  return isMemoryEffectFree(&op) && !op.hasTrait<OpTrait::IsTerminator>() &&
         llvm::none_of(op.getResultTypes(), isTensor);
}

Values tile::getUsedValues(Operation &op) {
  SetVector<Value> used(op.operand_begin(), op.operand_end());
  getUsedValuesDefinedAbove(op.getRegions(), used);
  return Values(used.takeVector());
}

void tile::cloneScalarCode(OpBuilder &builder, Block &block,
                           IRMapping &mapping) {
  auto isMapped = [&](Value value) { return mapping.contains(value); };
  for (Operation &op : block)
    if (isScalarCode(op) && !isa<hopper::WarpgroupIdOp>(op) &&
        !llvm::all_of(op.getResults(), isMapped) &&
        llvm::all_of(getUsedValues(op), isMapped))
      builder.clone(op, mapping);
}

RoleBuilder::RoleBuilder(const KVLoopKernel &parts,
                         attn::WarpRolesAttr schedule,
                         const TileScalars &scalars, Region &region,
                         ValueRange args)
    : parts(parts), loop(parts.loop), kernel(loop->getParentOfType<KernelOp>()),
      schedule(schedule), scalars(scalars),
      builder(loop.getLoc(), loop.getContext()) {
  SmallVector<Location> locs(args.size(), kernel.getLoc());
  Block *block =
      builder.createBlock(&region, region.end(), args.getTypes(), locs);
  ValueRange arguments = block->getArguments();
  ValueRange kernelArgs = kernel.getBody().getArguments();
  mapping.map(kernelArgs, arguments.take_front(kernelArgs.size()));
  arguments = arguments.drop_front(kernelArgs.size());
  const size_t numCaptures = parts.captureLoads.size();
  rings = {arguments[0],
           arguments[1],
           arguments[2],
           schedule.getPersistent() ? arguments.back() : Value(),
           parts.transposesV ? arguments[3 + numCaptures] : Value(),
           Values(arguments.slice(3, numCaptures))};
}

Values RoleBuilder::get(Value slot, Value first, size_t count) {
  SmallVector<Type> types(count, builder.getI32Type());
  return Values(
      hopper::GetOp::create(builder, types, slot, first).getResults());
}

Value RoleBuilder::countSteps(Value begin, Value end) {
  Value distance = add(sub(end, begin), i32(loop.getStep() - 1));
  return builder.createOrFold<arith::DivUIOp>(max(distance, i32(0)), step());
}

void RoleBuilder::bindProgramId(Value tile) {
  for (auto id : kernel.getBody().getOps<ProgramIdOp>())
    mapping.map(id.getResult(), tile);
}

bool RoleBuilder::hasFull() const {
  return !isEqualConstantIntOrValue(scalars.ranges.fullBegin,
                                    scalars.ranges.fullEnd);
}

bool RoleBuilder::endsFull() const {
  KVLoopOp op = loop;
  return op.getUnordered() && hasFull() &&
         scalars.ranges.fullBegin == scalars.ranges.begin;
}

Steps RoleBuilder::buildSteps(const IRMapping &values) {
  auto get = [&](Value value) { return values.lookupOrDefault(value); };
  const KVRanges &ranges = scalars.ranges;
  Value begin = get(loop.getBegin());
  Steps steps;
  steps.total = countSteps(begin, get(loop.getEnd()));
  Value numBefore = i32(0), numUpTo = steps.total;
  if (ranges.begin != loop.getBegin())
    numBefore = min(countSteps(begin, get(ranges.begin)), steps.total);
  if (ranges.end != loop.getEnd())
    numUpTo = min(countSteps(begin, get(ranges.end)), steps.total);
  bool isReversed = loop.getUnordered();
  steps.count = max(sub(numUpTo, numBefore), i32(0));
  steps.skipped = isReversed ? sub(steps.total, numUpTo) : numBefore;
  Value first = isReversed ? sub(numUpTo, i32(1)) : numBefore;
  steps.first = add(begin, mul(first, step()));
  // Where steps begin or end that lie between the keys `begin` and `key`.
  auto getIndex = [&](Value key) {
    Value number = countSteps(begin, get(key));
    Value index = isReversed ? sub(numUpTo, number) : sub(number, numBefore);
    return max(min(index, steps.count), i32(0));
  };
  steps.fullBegin = steps.fullEnd = steps.count;
  if (hasFull())
    steps.fullBegin = getIndex(isReversed ? ranges.fullEnd : ranges.fullBegin);
  if (hasFull() && !endsFull())
    steps.fullEnd = getIndex(isReversed ? ranges.fullBegin : ranges.fullEnd);
  return steps;
}

Values RoleBuilder::emitWhile(
    ValueRange inits, size_t numHanded,
    function_ref<std::pair<Value, Values>(ValueRange)> before,
    function_ref<Values(ValueRange)> after) {
  SmallVector<Type> handedTypes(numHanded, builder.getI32Type());
  auto whileOp = scf::WhileOp::create(builder, handedTypes, inits);
  OpBuilder::InsertionGuard guard(builder);
  auto addBlock = [&](Region &region, TypeRange types) {
    SmallVector<Location> locs(types.size(), builder.getLoc());
    return builder.createBlock(&region, region.end(), types, locs);
  };
  Block *first = addBlock(whileOp.getBefore(), inits.getTypes());
  auto [condition, handed] = before(first->getArguments());
  scf::ConditionOp::create(builder, condition, handed);
  Block *second = addBlock(whileOp.getAfter(), handedTypes);
  Values next = after(second->getArguments());
  scf::YieldOp::create(builder, next);
  return Values(whileOp.getResults());
}

Values RoleBuilder::emitFor(
    Value lower, Value upper, int64_t step, ValueRange inits,
    function_ref<Values(Value index, ValueRange carried)> body) {
  auto forOp = scf::ForOp::create(builder, lower, upper, i32(step), inits);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(forOp.getBody());
  Values next = body(forOp.getInductionVar(), forOp.getRegionIterArgs());
  // Without carried values the loop comes with its terminator.
  if (!inits.empty())
    scf::YieldOp::create(builder, next);
  return Values(forOp.getResults());
}

Values RoleBuilder::emitIf(Value condition, TypeRange types,
                           function_ref<Values()> thenBody,
                           function_ref<Values()> elseBody) {
  auto branch = scf::IfOp::create(builder, types, condition,
                                  /*addThenBlock=*/true, /*addElseBlock=*/true);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(builder, thenBody());
  builder.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(builder, elseBody());
  return Values(branch.getResults());
}
