//===- LowerMerge.cpp - Merges of partial results as linalg ops -----------===//

#include "attn/Dialect/Attn/Transforms/Passes.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::attn {
#define GEN_PASS_DEF_ATTNLOWERMERGE
#include "attn/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace mlir::attn

using namespace mlir;
using namespace mlir::attn;

namespace {
/// Lowers one merge to an elementwise op for each of its results.
class MergeLowering {
public:
  explicit MergeLowering(MergeOp op) : op(op), builder(op.getLoc(), op) {}

  void run() {
    insertChecks();
    int64_t rank = cast<RankedTensorType>(op.getO().getType()).getRank();
    auto all = AffineMap::getMultiDimIdentityMap(rank, op.getContext());
    SmallVector<Value> inputs(op.getPartialLses());
    llvm::append_range(inputs, op.getPartials());
    SmallVector<AffineMap> maps(op.getPartialLses().size(),
                                all.dropResult(rank - 1));
    maps.append(op.getPartials().size(), all);
    Value o = elementwise("merge_o", inputs, maps, op.getO().getType(),
                          [&](ValueRange args) { return mergeOutputs(args); });
    maps.assign(op.getPartialLses().size(),
                AffineMap::getMultiDimIdentityMap(rank - 1, op.getContext()));
    Value lse = elementwise("merge_lse", op.getPartialLses(), maps,
                            op.getLse().getType(),
                            [&](ValueRange args) { return mergeLses(args); });
    op->replaceAllUsesWith(ValueRange{o, lse});
    op.erase();
  }

private:
  /// Sizes that only the launch knows.
  void insertChecks() {
    for (auto operands : {op.getPartials(), op.getPartialLses()})
      for (Value operand : operands) {
        auto type = cast<RankedTensorType>(operand.getType());
        Value first = op.getPartials().front();
        for (int64_t dim = 0; dim < type.getRank(); ++dim)
          if (type.isDynamicDim(dim) && operand != first)
            insertCheck(operand, first, dim);
      }
  }

  void insertCheck(Value a, Value b, int64_t dim) {
    Value equal =
        arith::CmpIOp::create(builder, arith::CmpIPredicate::eq,
                              builder.createOrFold<tensor::DimOp>(a, dim),
                              builder.createOrFold<tensor::DimOp>(b, dim));
    cf::AssertOp::create(builder, equal,
                         "partial results to merge have different sizes");
  }

  Value elementwise(StringRef step, ValueRange inputs,
                    ArrayRef<AffineMap> inputMaps, Type type,
                    function_ref<Value(ValueRange)> body) {
    auto resultType = cast<RankedTensorType>(type);
    SmallVector<OpFoldResult> sizes =
        tensor::getMixedSizes(builder, op.getLoc(), op.getPartials().front());
    sizes.truncate(resultType.getRank());
    Value empty =
        tensor::EmptyOp::create(builder, sizes, resultType.getElementType());
    SmallVector<AffineMap> maps(inputMaps);
    maps.push_back(AffineMap::getMultiDimIdentityMap(resultType.getRank(),
                                                     op.getContext()));
    SmallVector<utils::IteratorType> iterators(resultType.getRank(),
                                               utils::IteratorType::parallel);
    auto buildBody = [&](OpBuilder &nested, Location, ValueRange args) {
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToEnd(nested.getInsertionBlock());
      linalg::YieldOp::create(builder, body(args));
    };
    auto generic = linalg::GenericOp::create(builder, type, inputs, empty, maps,
                                             iterators, buildBody);
    generic->setDiscardableAttr("attn.step", builder.getStringAttr(step));
    return generic.getResult(0);
  }

  //===--------------------------------------------------------------------===//
  // Elements
  //===--------------------------------------------------------------------===//

  Value constant(float value) {
    return arith::ConstantOp::create(builder, builder.getF32FloatAttr(value));
  }
  Value isEqual(Value a, Value b) {
    return arith::CmpFOp::create(builder, arith::CmpFPredicate::OEQ, a, b);
  }
  Value select(Value condition, Value a, Value b) {
    return arith::SelectOp::create(builder, condition, a, b);
  }

  /// The parts' weights: exp(lse - max), 0 of empty ones.
  struct Weights {
    SmallVector<Value> lses, weights;
    Value max, total;
  };

  Weights weigh(ValueRange lses) {
    Weights result;
    minusInf = constant(-std::numeric_limits<float>::infinity());
    Value plusInf = constant(std::numeric_limits<float>::infinity());
    for (Value lse : lses) {
      lse = select(isEqual(lse, plusInf), minusInf, lse);
      result.lses.push_back(lse);
      result.max = result.max
                       ? arith::MaximumFOp::create(builder, result.max, lse)
                       : lse;
    }
    // Where all are empty, 0 leaves the differences -inf.
    result.max = select(isEqual(result.max, minusInf), constant(0), result.max);
    for (Value lse : result.lses) {
      Value weight = math::ExpOp::create(
          builder, arith::SubFOp::create(builder, lse, result.max));
      result.weights.push_back(weight);
      result.total = result.total
                         ? arith::AddFOp::create(builder, result.total, weight)
                         : weight;
    }
    return result;
  }

  /// Of (lses, partial outputs, result).
  Value mergeOutputs(ValueRange args) {
    size_t count = op.getPartials().size();
    Type element = args.back().getType();
    Weights weights = weigh(args.take_front(count));
    Value zero = constant(0), sum = zero;
    for (auto [i, weight] : llvm::enumerate(weights.weights)) {
      Value output = args[count + i];
      if (!element.isF32())
        output = arith::ExtFOp::create(builder, builder.getF32Type(), output);
      Value weighted = arith::MulFOp::create(builder, output, weight);
      // An empty part may hold anything.
      Value isEmpty = isEqual(weights.lses[i], minusInf);
      sum =
          arith::AddFOp::create(builder, sum, select(isEmpty, zero, weighted));
    }
    Value o = arith::DivFOp::create(builder, sum, weights.total);
    o = select(isEqual(weights.total, zero), zero, o);
    return element.isF32() ? o : arith::TruncFOp::create(builder, element, o);
  }

  /// Of (lses, result).
  Value mergeLses(ValueRange args) {
    Weights weights = weigh(args.drop_back());
    Value lse = arith::AddFOp::create(
        builder, weights.max, math::LogOp::create(builder, weights.total));
    return select(isEqual(weights.total, constant(0)), minusInf, lse);
  }

  MergeOp op;
  ImplicitLocOpBuilder builder;
  Value minusInf;
};

struct AttnLowerMergePass : attn::impl::AttnLowerMergeBase<AttnLowerMergePass> {
  void runOnOperation() override {
    WalkResult result = getOperation().walk([](MergeOp op) {
      if (failed(verify(op)))
        return WalkResult::interrupt();
      MergeLowering(op).run();
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }

  static LogicalResult verify(MergeOp op) {
    Type element = getElementTypeOrSelf(op.getO());
    if (element.isF16() || element.isBF16() || element.isF32())
      return success();
    return op.emitOpError("merges outputs of f16, bf16 or f32, not ")
           << element;
  }
};
} // namespace
