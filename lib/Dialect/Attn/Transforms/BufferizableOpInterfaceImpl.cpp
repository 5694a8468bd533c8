//===- BufferizableOpInterfaceImpl.cpp - attn.attention on memrefs --------===//

#include "attn/Dialect/Attn/Transforms/BufferizableOpInterfaceImpl.h"
#include "attn/Dialect/Attn/IR/AttnOps.h"
#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Dialect/Bufferization/IR/DstBufferizableOpInterfaceImpl.h"
#include "mlir/IR/DialectRegistry.h"

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::bufferization;

/// Gives the arguments that stand for captures the types of their buffers.
static void retypeCaptures(AttentionOp op) {
  TypeRange types = op.getCaptures().getTypes();
  for (Region &region : op->getRegions())
    if (!region.empty())
      for (auto [argument, type] : llvm::zip_equal(
               region.getArguments().take_back(types.size()), types))
        argument.setType(type);
}

namespace {
/// Ops that read tensors and yield none.
template <typename Derived, typename OpTy>
struct ReadOnlyOpInterface
    : BufferizableOpInterface::ExternalModel<Derived, OpTy> {
  bool bufferizesToMemoryRead(Operation *, OpOperand &,
                              const AnalysisState &) const {
    return true;
  }
  bool bufferizesToMemoryWrite(Operation *, OpOperand &,
                               const AnalysisState &) const {
    return false;
  }
  AliasingValueList getAliasingValues(Operation *, OpOperand &,
                                      const AnalysisState &) const {
    return {};
  }
};

/// Reads in the regions of attn.attention follow their op; in the body of a
/// linalg op they read a tensor from outside.
struct CaptureLoadInterface
    : ReadOnlyOpInterface<CaptureLoadInterface, CaptureLoadOp> {
  LogicalResult bufferize(Operation *op, RewriterBase &rewriter,
                          const BufferizationOptions &options,
                          BufferizationState &state) const {
    if (isa<AttentionOp>(op->getParentOp()))
      return success();
    auto load = cast<CaptureLoadOp>(op);
    FailureOr<Value> buffer =
        getBuffer(rewriter, load.getSource(), options, state);
    if (failed(buffer))
      return failure();
    replaceOpWithNewBufferizedOp<CaptureLoadOp>(rewriter, op, load.getType(),
                                                *buffer, load.getIndices());
    return success();
  }
};

/// Checks read their tensors, in host code.
struct CheckSequencesInterface
    : ReadOnlyOpInterface<CheckSequencesInterface, CheckSequencesOp> {
  LogicalResult bufferize(Operation *op, RewriterBase &rewriter,
                          const BufferizationOptions &options,
                          BufferizationState &state) const {
    for (OpOperand &operand : op->getOpOperands()) {
      if (!isa<TensorType>(operand.get().getType()))
        continue;
      FailureOr<Value> buffer =
          getBuffer(rewriter, operand.get(), options, state);
      if (failed(buffer))
        return failure();
      rewriter.modifyOpInPlace(op, [&] { operand.set(*buffer); });
    }
    return success();
  }
};

/// The same op on buffers, for a destination-style op of the dialect.
template <typename OpTy>
struct DestinationOpInterface
    : DstBufferizableOpInterfaceExternalModel<DestinationOpInterface<OpTy>,
                                              OpTy> {
  /// The outs are only written: what they hold before doesn't matter.
  bool bufferizesToMemoryRead(Operation *op, OpOperand &operand,
                              const AnalysisState &) const {
    return !cast<OpTy>(op).isDpsInit(&operand);
  }

  LogicalResult bufferize(Operation *op, RewriterBase &rewriter,
                          const BufferizationOptions &options,
                          BufferizationState &state) const {
    SmallVector<Value> operands;
    for (Value operand : op->getOperands()) {
      if (!isa<TensorType>(operand.getType())) {
        operands.push_back(operand);
        continue;
      }
      FailureOr<Value> buffer = getBuffer(rewriter, operand, options, state);
      if (failed(buffer))
        return failure();
      operands.push_back(*buffer);
    }
    rewriter.setInsertionPoint(op);
    OperationState newState(op->getLoc(), op->getName(), operands, TypeRange(),
                            op->getAttrs());
    newState.propertiesAttr = op->getPropertiesAsAttribute();
    for (Region &region : op->getRegions())
      newState.addRegion()->takeBody(region);
    Operation *newOp = rewriter.create(newState);
    if (auto attention = dyn_cast<AttentionOp>(newOp))
      retypeCaptures(attention);
    replaceOpWithBufferizedValues(rewriter, op,
                                  cast<OpTy>(newOp).getDpsInits());
    return success();
  }
};
} // namespace

void attn::registerBufferizableOpInterfaceExternalModels(
    DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, AttnDialect *) {
    AttentionOp::attachInterface<DestinationOpInterface<AttentionOp>>(*context);
    CaptureLoadOp::attachInterface<CaptureLoadInterface>(*context);
    CheckSequencesOp::attachInterface<CheckSequencesInterface>(*context);
    SoftmaxOp::attachInterface<DestinationOpInterface<SoftmaxOp>>(*context);
  });
}
