//===- AssignLayouts.cpp - Layouts of the consumers' tiles ----------------===//

#include "attn/Dialect/Hopper/Transforms/Passes.h"
#include "attn/Dialect/Tile/Transforms/Passes.h"

namespace mlir::hopper {
#define GEN_PASS_DEF_HOPPERASSIGNLAYOUTS
#include "attn/Dialect/Hopper/Transforms/Passes.h.inc"
} // namespace mlir::hopper

using namespace mlir;
using namespace mlir::hopper;

static constexpr int64_t kWarpsPerWarpgroup = 4;

/// Converts a left operand in registers to the form that wgmma takes.
static void convertLeftOperand(WgmmaOp op, tile::MmaLayoutAttr layout) {
  auto type = dyn_cast<RankedTensorType>(op.getA().getType());
  if (!type)
    return;
  auto operandLayout = tile::OperandLayoutAttr::get(op.getContext(), layout);
  OpBuilder builder(op);
  Value converted = tile::ConvertLayoutOp::create(
      builder, op.getLoc(), type.cloneWithEncoding(operandLayout), op.getA());
  op.getAMutable().assign(converted);
}

static void setPendingLayout(Value value, Attribute layout) {
  auto type = dyn_cast<PendingType>(value.getType());
  if (type)
    value.setType(PendingType::get(value.getContext(),
                                   type.getTile().cloneWithEncoding(layout)));
}

namespace {
struct HopperAssignLayoutsPass
    : hopper::impl::HopperAssignLayoutsBase<HopperAssignLayoutsPass> {
  void runOnOperation() override {
    tile::KernelOp kernel = getOperation();
    WarpSpecializeOp roles;
    kernel.walk([&](WarpSpecializeOp op) { roles = op; });
    if (!roles) {
      if (failed(tile::assignLayouts(kernel)))
        signalPassFailure();
      return;
    }
    auto layout = tile::MmaLayoutAttr::get(
        &getContext(), kWarpsPerWarpgroup * roles.getWarpgroups());
    roles.getConsumer().walk([&](Operation *op) {
      if (auto product = dyn_cast<WgmmaOp>(op))
        convertLeftOperand(product, layout);
      for (Value result : op->getResults())
        setPendingLayout(result, layout);
      for (Region &region : op->getRegions())
        for (Value argument : region.getArguments())
          setPendingLayout(argument, layout);
    });
    if (failed(tile::assignRegisterLayouts(kernel, layout)))
      signalPassFailure();
  }
};
} // namespace
