//===- BufferizableOpInterfaceImpl.cpp - attn.attention on memrefs --------===//

#include "attn/Dialect/Attn/Transforms/BufferizableOpInterfaceImpl.h"
#include "attn/Dialect/Attn/IR/AttnOps.h"
#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Dialect/Bufferization/IR/DstBufferizableOpInterfaceImpl.h"
#include "mlir/IR/DialectRegistry.h"

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::bufferization;

namespace {
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
    if (auto attention = dyn_cast<AttentionOp>(op))
      if (!attention.getCaptures().empty())
        return op->emitOpError("captures can't be bufferized yet");
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
    SoftmaxOp::attachInterface<DestinationOpInterface<SoftmaxOp>>(*context);
  });
}
