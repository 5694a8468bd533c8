//===- ProtocolTrace.cpp - What a role does to its rings ------------------===//

#include "ProtocolTrace.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::hopper;

std::string ProblemSample::describe() const {
  return llvm::formatv("in program {0} where the first memref has dynamic "
                       "sizes of {1} and the others of {2}",
                       program, querySize, otherSize);
}

namespace {
/// Runs a role on integers; everything else is unknown (null).
class Tracer {
public:
  Tracer(WarpSpecializeOp roles, const ProblemSample &sample)
      : roles(roles), sample(sample) {}

  LogicalResult runBlock(Block &block) {
    for (Operation &op : block.without_terminator())
      if (failed(runOp(&op)))
        return failure();
    return success();
  }

  LogicalResult runRole(Region &region) {
    for (BlockArgument argument : region.getArguments())
      if (isa<IntegerType>(argument.getType()))
        set(argument, sample.otherSize);
    // A role's block has no terminator.
    for (Operation &op : region.front())
      if (failed(runOp(&op)))
        return failure();
    return success();
  }

  std::vector<RingEvent> events;

private:
  void set(Value value, int64_t number) {
    values[value] = IntegerAttr::get(value.getType(), number);
  }
  Attribute get(Value value) { return values.lookup(value); }
  void copy(ValueRange to, ValueRange from) {
    SmallVector<Attribute> attributes;
    for (Value value : from)
      attributes.push_back(get(value));
    for (auto [value, attribute] : llvm::zip_equal(to, attributes))
      values[value] = attribute;
  }

  /// The integer that `value` is; an error at `op` if it isn't known.
  FailureOr<int64_t> getInt(Operation *op, Value value) {
    if (auto attr = dyn_cast_or_null<IntegerAttr>(get(value)))
      return attr.getValue().getSExtValue();
    return op->emitOpError("depends on more than sizes and the program's "
                           "number; its order of ring operations can't be "
                           "checked");
  }

  LogicalResult runOp(Operation *op) {
    return llvm::TypeSwitch<Operation *, LogicalResult>(op)
        .Case([&](scf::ForOp op) { return runFor(op); })
        .Case([&](scf::IfOp op) { return runIf(op); })
        .Case([&](AcquireOp op) {
          return take(op, RingEvent::Acquire, op.getRing(), op.getNumber());
        })
        .Case([&](WaitOp op) {
          return take(op, RingEvent::Wait, op.getRing(), op.getNumber());
        })
        .Case([&](CommitOp op) { return give(op, RingEvent::Commit); })
        .Case([&](ReleaseOp op) { return give(op, RingEvent::Release); })
        .Case([&](memref::DimOp op) { return runDim(op); })
        .Case([&](tile::ProgramIdOp op) {
          set(op.getResult(), sample.program);
          return success();
        })
        .Default([&](Operation *op) { return runScalar(op); });
  }

  /// Integer arithmetic folds; whatever doesn't is unknown.
  LogicalResult runScalar(Operation *op) {
    if (op->getNumRegions() != 0 || op->getNumResults() != 1 ||
        !op->getResult(0).getType().isIntOrIndex())
      return success();
    SmallVector<Attribute> operands;
    for (Value operand : op->getOperands())
      operands.push_back(get(operand));
    SmallVector<OpFoldResult> results;
    if (failed(op->fold(operands, results)) || results.size() != 1)
      return success();
    values[op->getResult(0)] = isa<Attribute>(results[0])
                                   ? cast<Attribute>(results[0])
                                   : get(cast<Value>(results[0]));
    return success();
  }

  LogicalResult runDim(memref::DimOp op) {
    std::optional<int64_t> index = op.getConstantIndex();
    auto argument = dyn_cast<BlockArgument>(op.getSource());
    auto type = dyn_cast<MemRefType>(op.getSource().getType());
    if (!index || !argument || !type)
      return success();
    int64_t size = type.getDimSize(*index);
    if (ShapedType::isDynamic(size))
      size = argument.getArgNumber() == 0 ? sample.querySize : sample.otherSize;
    set(op.getResult(), size);
    return success();
  }

  LogicalResult runFor(scf::ForOp op) {
    FailureOr<int64_t> lower = getInt(op, op.getLowerBound());
    FailureOr<int64_t> upper = getInt(op, op.getUpperBound());
    FailureOr<int64_t> step = getInt(op, op.getStep());
    if (failed(lower) || failed(upper) || failed(step))
      return failure();
    if (*step <= 0)
      return op.emitOpError("doesn't advance");
    copy(op.getRegionIterArgs(), op.getInitArgs());
    for (int64_t i = *lower; i < *upper; i += *step) {
      set(op.getInductionVar(), i);
      if (failed(runBlock(*op.getBody())))
        return failure();
      copy(op.getRegionIterArgs(),
           op.getBody()->getTerminator()->getOperands());
    }
    copy(op.getResults(), op.getRegionIterArgs());
    return success();
  }

  LogicalResult runIf(scf::IfOp op) {
    FailureOr<int64_t> condition = getInt(op, op.getCondition());
    if (failed(condition))
      return failure();
    Region &region = *condition ? op.getThenRegion() : op.getElseRegion();
    if (region.empty())
      return success();
    if (failed(runBlock(region.front())))
      return failure();
    copy(op.getResults(), region.front().getTerminator()->getOperands());
    return success();
  }

  LogicalResult take(Operation *op, RingEvent::Kind kind, Value ring,
                     Value numberValue) {
    FailureOr<int64_t> number = getInt(op, numberValue);
    if (failed(number))
      return failure();
    auto argument = dyn_cast<BlockArgument>(ring);
    if (!argument || argument.getOwner()->getParentOp() != roles)
      return op->emitOpError(
          "must name a ring that is an argument of its role");
    RingEvent event{kind, op, argument.getArgNumber(),
                    cast<RingType>(ring.getType()).getStages(), *number};
    events.push_back(event);
    slots[op->getResult(0)] = event;
    return success();
  }

  LogicalResult give(Operation *op, RingEvent::Kind kind) {
    RingEvent event = slots.lookup(op->getOperand(0));
    event.kind = kind;
    event.op = op;
    events.push_back(event);
    return success();
  }

  WarpSpecializeOp roles;
  const ProblemSample &sample;
  DenseMap<Value, Attribute> values;
  DenseMap<Value, RingEvent> slots;
};
} // namespace

FailureOr<std::vector<RingEvent>>
hopper::traceRole(WarpSpecializeOp op, Region &region,
                  const ProblemSample &sample) {
  Tracer tracer(op, sample);
  if (failed(tracer.runRole(region)))
    return failure();
  return std::move(tracer.events);
}
