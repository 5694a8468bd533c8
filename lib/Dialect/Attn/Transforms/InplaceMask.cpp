//===- InplaceMask.cpp - Masked fills without a copy ----------------------===//

#include "attn/Dialect/Attn/Transforms/Passes.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/Matchers.h"

namespace mlir::attn {
#define GEN_PASS_DEF_ATTNINPLACEMASK
#include "attn/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace mlir::attn

using namespace mlir;
using namespace mlir::attn;

static bool isMinusInfinity(Value value) {
  APFloat constant(0.0f);
  return matchPattern(value, m_ConstantFloat(&constant)) &&
         constant.isInfinity() && constant.isNegative();
}

/// True if `op` yields its output's element or -inf.
static bool isMaskedFill(linalg::GenericOp op) {
  if (op.getNumDpsInits() != 1 || op.getNumReductionLoops() != 0)
    return false;
  Value element = op.getRegionOutputArgs().front();
  auto select = op.getBody()
                    ->getTerminator()
                    ->getOperand(0)
                    .getDefiningOp<arith::SelectOp>();
  if (!select)
    return false;
  Value kept = select.getTrueValue(), hidden = select.getFalseValue();
  return (kept == element && isMinusInfinity(hidden)) ||
         (hidden == element && isMinusInfinity(kept));
}

/// The masked fill that is the only user of the copy, or null.
static linalg::GenericOp getMaskedFill(bufferization::AllocTensorOp copy) {
  if (!copy.getCopy() || !copy->hasOneUse())
    return nullptr;
  OpOperand &use = *copy->use_begin();
  auto fill = dyn_cast<linalg::GenericOp>(use.getOwner());
  if (!fill || !fill.isDpsInit(&use) || !isMaskedFill(fill))
    return nullptr;
  return fill;
}

/// True if `use` happens before `fill` and leaves no other name for the data.
static bool isEarlierRead(OpOperand &use, Operation *fill) {
  Operation *user = use.getOwner();
  // A size is not data.
  if (isa<tensor::DimOp>(user))
    return true;
  auto linalgOp = dyn_cast<linalg::LinalgOp>(user);
  return linalgOp && linalgOp.isDpsInput(&use) &&
         user->getBlock() == fill->getBlock() && user->isBeforeInBlock(fill);
}

static InFlightDiagnostic remarkCopyStays(linalg::GenericOp fill) {
  return fill.emitRemark("masked fill keeps its copy of the scores");
}

/// True if nothing reads the scores after `fill`; else says who does.
static bool areScoresDead(bufferization::AllocTensorOp copy,
                          linalg::GenericOp fill) {
  Value scores = copy.getCopy();
  for (OpOperand &use : scores.getUses()) {
    Operation *user = use.getOwner();
    if (user == copy || isEarlierRead(use, fill))
      continue;
    remarkCopyStays(fill).attachNote(user->getLoc())
        << (user->hasTrait<OpTrait::ReturnLike>() ? "they are returned here"
                                                  : "they are read again here");
    return false;
  }
  if (auto argument = dyn_cast<BlockArgument>(scores)) {
    remarkCopyStays(fill).attachNote(argument.getLoc())
        << "they are an argument, which the caller may read";
    return false;
  }
  return true;
}

namespace {
struct AttnInplaceMaskPass
    : attn::impl::AttnInplaceMaskBase<AttnInplaceMaskPass> {
  void runOnOperation() override {
    getOperation().walk([](bufferization::AllocTensorOp copy) {
      linalg::GenericOp fill = getMaskedFill(copy);
      if (!fill || !areScoresDead(copy, fill))
        return;
      copy.getResult().replaceAllUsesWith(copy.getCopy());
      copy.erase();
    });
  }
};
} // namespace
