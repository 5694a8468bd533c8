//===- AttnBufferize.cpp - Destination-passing entry functions ------------===//

#include "attn/Dialect/Attn/Transforms/Passes.h"
#include "mlir/Dialect/Bufferization/Transforms/OneShotAnalysis.h"
#include "mlir/Dialect/Bufferization/Transforms/OneShotModuleBufferize.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"

namespace mlir::attn {
#define GEN_PASS_DEF_ATTNBUFFERIZE
#include "attn/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace mlir::attn

using namespace mlir;
using namespace mlir::attn;

static constexpr StringLiteral kOutputAttr = "attn.output";

/// The value that `value`'s buffer comes from, along the ties of
/// destination-style ops.
static Value getDestination(Value value) {
  while (auto result = dyn_cast<OpResult>(value)) {
    auto op = dyn_cast<DestinationStyleOpInterface>(result.getOwner());
    if (!op)
      break;
    OpOperand *init = op.getTiedOpOperand(result);
    if (!init)
      break;
    value = init->get();
  }
  return value;
}

/// Marks arguments that results are written into.
static void markOutputs(func::FuncOp func) {
  func.walk([&](func::ReturnOp op) {
    for (Value operand : op.getOperands()) {
      auto arg = dyn_cast<BlockArgument>(getDestination(operand));
      if (arg && arg.getOwner() == &func.getBody().front())
        func.setArgAttr(arg.getArgNumber(), kOutputAttr,
                        UnitAttr::get(func.getContext()));
    }
  });
}

/// Outer strides of an argument are the caller's; the innermost is 1.
static bufferization::BufferLikeType
getArgumentType(bufferization::TensorLikeType type, Attribute memorySpace,
                func::FuncOp, const bufferization::BufferizationOptions &) {
  auto tensor = cast<RankedTensorType>(type);
  int64_t rank = tensor.getRank();
  if (rank == 0)
    return cast<bufferization::BufferLikeType>(MemRefType::get(
        tensor.getShape(), tensor.getElementType(), AffineMap(), memorySpace));
  SmallVector<int64_t> strides(rank, ShapedType::kDynamic);
  strides.back() = 1;
  auto layout =
      StridedLayoutAttr::get(type.getContext(), ShapedType::kDynamic, strides);
  return cast<bufferization::BufferLikeType>(MemRefType::get(
      tensor.getShape(), tensor.getElementType(), layout, memorySpace));
}

/// Arguments that promoteBufferResultsToOutParams added after the first
/// `numArgs` are outputs.
static void markAddedOutputs(func::FuncOp func, unsigned numArgs) {
  for (unsigned i = numArgs; i < func.getNumArguments(); ++i)
    func.setArgAttr(i, kOutputAttr, UnitAttr::get(func.getContext()));
}

namespace {
struct AttnBufferizePass : attn::impl::AttnBufferizeBase<AttnBufferizePass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    for (auto func : module.getOps<func::FuncOp>()) {
      if (failed(verifyRanked(func)))
        return signalPassFailure();
      markOutputs(func);
    }
    if (failed(bufferize(module)) || failed(dropEquivalentResults(module)))
      return signalPassFailure();
    llvm::DenseMap<Operation *, unsigned> numArgs;
    for (auto func : module.getOps<func::FuncOp>())
      numArgs[func] = func.getNumArguments();
    bufferization::BufferResultsToOutParamsOpts options;
    options.hoistStaticAllocs = options.hoistDynamicAllocs = true;
    options.modifyPublicFunctions = true;
    if (failed(bufferization::promoteBufferResultsToOutParams(module, options)))
      return signalPassFailure();
    for (auto func : module.getOps<func::FuncOp>())
      markAddedOutputs(func, numArgs[func]);
  }

  static LogicalResult verifyRanked(func::FuncOp func) {
    for (auto [index, type] : llvm::enumerate(func.getArgumentTypes()))
      if (isa<UnrankedTensorType>(type))
        return func.emitError("argument ")
               << index << " must be ranked, not " << type;
    return success();
  }

  /// Upstream leaves the signatures of public functions alone; entry functions
  /// are ours to change.
  static LogicalResult dropEquivalentResults(ModuleOp module) {
    SmallVector<func::FuncOp> publicFuncs;
    for (auto func : module.getOps<func::FuncOp>())
      if (func.isPublic() && !func.isExternal())
        publicFuncs.push_back(func);
    for (func::FuncOp func : publicFuncs)
      func.setPrivate();
    LogicalResult result = bufferization::dropEquivalentBufferResults(module);
    for (func::FuncOp func : publicFuncs)
      func.setPublic();
    return result;
  }

  static LogicalResult bufferize(ModuleOp module) {
    bufferization::OneShotBufferizationOptions options;
    options.bufferizeFunctionBoundaries = true;
    options.setFunctionBoundaryTypeConversion(
        bufferization::LayoutMapOption::InferLayoutMap);
    options.functionArgTypeConverterFn = getArgumentType;
    bufferization::BufferizationState state;
    return bufferization::runOneShotModuleBufferize(module, options, state);
  }
};
} // namespace
