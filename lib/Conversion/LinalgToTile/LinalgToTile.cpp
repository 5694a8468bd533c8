//===- LinalgToTile.cpp - linalg ops to one kernel each -------------------===//

#include "Kernels.h"
#include "attn/Conversion/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

namespace mlir::attn {
#define GEN_PASS_DEF_CONVERTLINALGTOTILE
#include "attn/Conversion/Passes.h.inc"
} // namespace mlir::attn

using namespace mlir;
using namespace mlir::attn;

/// The fill that is the last op to touch memory before `op`, but for other
/// fills and allocations, and fills `buffer`; null if there is none.
static linalg::FillOp findFill(Operation *op, Value buffer) {
  for (Operation *prev = op->getPrevNode(); prev; prev = prev->getPrevNode()) {
    if (auto fill = dyn_cast<linalg::FillOp>(prev)) {
      if (fill.getOutputs()[0] == buffer)
        return fill;
      continue;
    }
    if (!isMemoryEffectFree(prev) && !isa<memref::AllocOp>(prev))
      return nullptr;
  }
  return nullptr;
}

/// The op as a linalg.generic, in its place. (linalg::generalizeNamedOp's
/// header declares a function `mlir::tile`, which our namespace excludes.)
static linalg::GenericOp generalize(linalg::LinalgOp op) {
  IRRewriter rewriter(op);
  auto generic = linalg::GenericOp::create(
      rewriter, op.getLoc(), op.getDpsInputs(), op.getDpsInits(),
      op.getIndexingMapsArray(), op.getIteratorTypesArray());
  rewriter.inlineRegionBefore(op->getRegion(0), generic.getRegion(),
                              generic.getRegion().begin());
  generic->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  rewriter.eraseOp(op);
  return generic;
}

namespace {
class ModuleConverter {
public:
  ModuleConverter(ModuleOp module, const TargetInfo &target)
      : module(module), target(target), symbols(module) {}

  LogicalResult convert() {
    replaceStridedCopies();
    SmallVector<Operation *> ops;
    module.walk([&](Operation *op) {
      if (isa<linalg::LinalgOp, linalg::SoftmaxOp, SoftmaxOp>(op))
        ops.push_back(op);
    });
    for (Operation *op : ops)
      if (failed(verifyBuffers(op)))
        return failure();
    for (Operation *op : ops)
      takeFill(op);
    for (Operation *op : ops)
      if (!isFoldedFill(op) && failed(convertOp(op)))
        return failure();
    for (linalg::FillOp fill : foldedFills)
      fill.erase();
    return success();
  }

private:
  /// The plan copies whole buffers only; a window takes a kernel.
  void replaceStridedCopies() {
    module.walk([](memref::CopyOp op) {
      auto isContiguous = [](Value value) {
        auto type = cast<MemRefType>(value.getType());
        return type.getLayout().isIdentity();
      };
      if (op.getSource() == op.getTarget() ||
          (isContiguous(op.getSource()) && isContiguous(op.getTarget())))
        return;
      OpBuilder builder(op);
      auto copy = linalg::CopyOp::create(builder, op.getLoc(), op.getSource(),
                                         op.getTarget());
      copy->setDiscardableAttr("attn.step", builder.getStringAttr("copy"));
      op.erase();
    });
  }

  static LogicalResult verifyBuffers(Operation *op) {
    if (op->getNumResults() == 0 &&
        llvm::none_of(op->getOperandTypes(), llvm::IsaPred<TensorType>))
      return success();
    return emitUnsupported(op, "is on tensors; run attn-bufferize first");
  }

  bool isFoldedFill(Operation *op) const {
    auto fill = dyn_cast<linalg::FillOp>(op);
    return fill && foldedFills.contains(fill);
  }

  /// A fill is the start of the accumulator that the next op makes of it.
  void takeFill(Operation *op) {
    auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
    if (!linalgOp || linalgOp.getNumReductionLoops() == 0 ||
        linalgOp.getNumDpsInits() != 1)
      return;
    linalg::FillOp fill = findFill(op, linalgOp.getDpsInits()[0]);
    TypedAttr value;
    if (!fill || !matchPattern(fill.getInputs()[0], m_Constant(&value)))
      return;
    fillValues[op] = value;
    foldedFills.insert(fill);
  }

  LogicalResult convertOp(Operation *op) {
    FillValue fill = fillValues.lookup(op);
    if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op))
      if (!isa<linalg::GenericOp>(op))
        op = generalize(linalgOp);
    KernelBuilder builder(op, target, symbols);
    if (failed(buildKernel(builder, op, fill)))
      return failure();
    op->erase();
    return success();
  }

  static LogicalResult buildKernel(KernelBuilder &builder, Operation *op,
                                   FillValue fill) {
    if (auto softmax = dyn_cast<SoftmaxOp>(op))
      return buildRowSoftmax(builder,
                             {softmax.getScores(), softmax.getP(),
                              softmax.getLse(), /*zeroMaskedRows=*/true});
    if (auto softmax = dyn_cast<linalg::SoftmaxOp>(op))
      return convertLinalgSoftmax(builder, softmax);
    auto generic = cast<linalg::GenericOp>(op);
    if (isContraction(generic))
      return buildContraction(builder, generic, fill);
    if (generic.getNumReductionLoops() != 0)
      return buildRowReduction(builder, generic, fill);
    return buildElementwise(builder, generic);
  }

  static LogicalResult convertLinalgSoftmax(KernelBuilder &builder,
                                            linalg::SoftmaxOp op) {
    auto type = cast<MemRefType>(op.getInput().getType());
    if (static_cast<int64_t>(op.getDimension()) != type.getRank() - 1 ||
        type.getRank() < 2)
      return emitUnsupported(op, "is a softmax of dimension ")
             << op.getDimension() << " of " << type
             << "; it must be the last of two or more";
    return buildRowSoftmax(builder, {op.getInput(), op.getOutput(), Value(),
                                     /*zeroMaskedRows=*/false});
  }

  ModuleOp module;
  const TargetInfo &target;
  SymbolTable symbols;
  DenseMap<Operation *, TypedAttr> fillValues;
  DenseSet<linalg::FillOp> foldedFills;
};

struct ConvertLinalgToTilePass
    : attn::impl::ConvertLinalgToTileBase<ConvertLinalgToTilePass> {
  using ConvertLinalgToTileBase::ConvertLinalgToTileBase;

  void runOnOperation() override {
    const TargetInfo *info =
        TargetInfo::lookupOrEmitError(target, getOperation().getLoc());
    if (!info || failed(ModuleConverter(getOperation(), *info).convert()))
      signalPassFailure();
  }
};
} // namespace
