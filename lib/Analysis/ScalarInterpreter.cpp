//===- ScalarInterpreter.cpp - Values of scalar arithmetic ----------------===//

#include "attn/Analysis/ScalarInterpreter.h"
#include "attn/Dialect/Tile/IR/TileOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/OpDefinition.h"

using namespace mlir;
using namespace mlir::tile;

void ScalarInterpreter::set(Value value, int64_t constant) {
  values[value] = IntegerAttr::get(value.getType(), constant);
}

FailureOr<int64_t> ScalarInterpreter::evaluate(Value value) {
  Attribute result = get(value);
  if (!result)
    return failure();
  auto attr = dyn_cast<IntegerAttr>(result);
  if (!attr) {
    if (!isQuiet)
      emitError(value.getLoc(), "is no integer");
    return failure();
  }
  return value.getType().isInteger(1) ? attr.getValue().getZExtValue()
                                      : attr.getValue().getSExtValue();
}

Attribute ScalarInterpreter::get(Value value) {
  if (auto it = values.find(value); it != values.end())
    return it->second;
  Attribute result = fold(value);
  values[value] = result;
  return result;
}

Attribute ScalarInterpreter::readElement(Operation *op) {
  auto gather = dyn_cast<GatherOp>(op);
  if (!gather || !read || !gather.getType().isSignlessInteger())
    return {};
  auto source = dyn_cast<BlockArgument>(gather.getSource());
  if (!source)
    return {};
  SmallVector<int64_t> indices;
  for (Value index : gather.getIndices()) {
    FailureOr<int64_t> known = evaluate(index);
    if (failed(known))
      return {};
    indices.push_back(*known);
  }
  std::optional<int64_t> element = read(source.getArgNumber(), indices);
  return element ? IntegerAttr::get(gather.getType(), *element) : Attribute();
}

Attribute ScalarInterpreter::fold(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op) {
    if (!isQuiet)
      emitError(value.getLoc(), "depends on a value that isn't known");
    return {};
  }
  if (Attribute element = readElement(op))
    return element;
  SmallVector<Attribute> operands;
  // What isn't a scalar has no value; the folder does without it or fails.
  for (Value operand : op->getOperands()) {
    if (!operand.getType().isIntOrIndex()) {
      operands.emplace_back();
      continue;
    }
    Attribute attr = get(operand);
    if (!attr)
      return {};
    operands.push_back(attr);
  }
  SmallVector<OpFoldResult> results;
  if (failed(op->fold(operands, results)) || results.size() != 1) {
    if (!isQuiet)
      op->emitError("key tiles are skipped by what '")
          << op->getName()
          << "' reads when the kernel runs; give what the mask reads, or leave "
             "that out to see what the rest of it skips";
    return {};
  }
  if (auto attr = dyn_cast<Attribute>(results[0]))
    return attr;
  return get(cast<Value>(results[0]));
}
