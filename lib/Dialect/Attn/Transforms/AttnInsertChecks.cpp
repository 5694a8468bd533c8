//===- AttnInsertChecks.cpp - Run-time checks of dynamic sizes ------------===//

#include "attn/Dialect/Attn/IR/AttnSupport.h"
#include "attn/Dialect/Attn/Transforms/Passes.h"
#include "mlir/IR/Matchers.h"

namespace mlir::attn {
#define GEN_PASS_DEF_ATTNINSERTCHECKS
#include "attn/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace mlir::attn

using namespace mlir;
using namespace mlir::attn;

namespace {
/// Two sizes that the operator needs to be equal.
struct SizePair {
  Value a, b;
  int64_t aDim, bDim;
  StringRef message;
};

struct AttnInsertChecksPass
    : attn::impl::AttnInsertChecksBase<AttnInsertChecksPass> {
  void runOnOperation() override {
    getOperation().walk([](AttentionOp op) { insertChecks(op); });
  }

  static void insertChecks(AttentionOp op) {
    Value q = op.getQ(), k = op.getK(), v = op.getV(), o = op.getO();
    SmallVector<SizePair> pairs;
    if (!op.hasDeviceLengths())
      pairs.push_back({q, k, 0, 0, "q and k have different batch sizes"});
    pairs.append({{k, v, 0, 0, "k and v have different batch sizes"},
                  {q, o, 0, 0, "q and o have different batch sizes"},
                  {k, v, 2, 2, "k and v have different lengths"},
                  {q, o, 2, 2, "q and o have different lengths"}});
    if (Value lse = op.getLse()) {
      pairs.push_back({q, lse, 0, 0, "q and lse have different batch sizes"});
      pairs.push_back({q, lse, 2, 2, "q and lse have different lengths"});
    }
    auto addScale = [&](Value scale, StringRef message) {
      if (scale && cast<ShapedType>(scale.getType()).getRank() == 2)
        pairs.push_back({q, scale, 0, 0, message});
    };
    addScale(op.getQScale(), "q and q_scale have different batch sizes");
    addScale(op.getKScale(), "k and k_scale have different batch sizes");
    addScale(op.getVScale(), "v and v_scale have different batch sizes");
    OpBuilder builder(op);
    for (const SizePair &pair : pairs)
      insertCheck(builder, op.getLoc(), pair);
    if (op.hasDeviceLengths() && !op.hasBufferSemantics()) {
      insertSequenceChecks(builder, op);
      insertNumberChecks(builder, op);
    }
    op.walk([&](CaptureLoadOp load) {
      auto source = cast<BlockArgument>(load.getSource());
      unsigned numCaptures = op.getCaptures().size();
      unsigned fromEnd =
          source.getOwner()->getNumArguments() - source.getArgNumber();
      Value capture = op.getCaptures()[numCaptures - fromEnd];
      for (const CaptureBound &bound : load.getBounds())
        insertCaptureCheck(builder, load.getLoc(), capture, bound);
      insertConstantChecks(builder, load, capture);
    });
  }

  static void insertSequenceChecks(OpBuilder &builder, AttentionOp op) {
    SmallVector<SequenceCount> counts = op.getSequenceCounts();
    const SequenceCount &first = counts.front();
    auto isDynamic = [](const SequenceCount &count) {
      auto type = cast<ShapedType>(count.operand.getType());
      return type.isDynamicDim(count.dim);
    };
    for (const SequenceCount &count : counts) {
      if (count.excess == 0 || !isDynamic(count))
        continue;
      Value size = getSize(builder, op.getLoc(), count.operand, count.dim, 0);
      Value least =
          arith::ConstantIndexOp::create(builder, op.getLoc(), count.excess);
      Value isEnough = arith::CmpIOp::create(
          builder, op.getLoc(), arith::CmpIPredicate::sge, size, least);
      cf::AssertOp::create(
          builder, op.getLoc(), isEnough,
          (count.name + " has no element, not even the 0 that it begins with")
              .str());
    }
    for (const SequenceCount &count : ArrayRef(counts).drop_front()) {
      if (!isa<RankedTensorType>(count.operand.getType()) ||
          (!isDynamic(first) && !isDynamic(count)))
        continue;
      Value a =
          getSize(builder, op.getLoc(), first.operand, first.dim, first.excess);
      Value b =
          getSize(builder, op.getLoc(), count.operand, count.dim, count.excess);
      Value equal = arith::CmpIOp::create(builder, op.getLoc(),
                                          arith::CmpIPredicate::eq, a, b);
      cf::AssertOp::create(builder, op.getLoc(), equal,
                           (first.name + " and " + count.name +
                            " are for different numbers of sequences")
                               .str());
    }
  }

  /// What the numbers themselves must be.
  static void insertNumberChecks(OpBuilder &builder, AttentionOp op) {
    Location loc = op.getLoc();
    Value rows = getSize(builder, loc, op.getQ(), 2, 0);
    Value keyBatches = getSize(builder, loc, op.getK(), 0, 0);
    Value keyRows = getSize(builder, loc, op.getK(), 2, 0);
    CheckSequencesOp::create(builder, loc, rows, keyBatches, keyRows,
                             op.getCuQ(), op.getCuK(), op.getKvLen(),
                             op.getBlockTable());
  }

  static Value getSize(OpBuilder &builder, Location loc, Value operand,
                       int64_t dim, int64_t excess) {
    Value size = builder.createOrFold<tensor::DimOp>(loc, operand, dim);
    if (excess == 0)
      return size;
    return builder.createOrFold<arith::SubIOp>(
        loc, size, arith::ConstantIndexOp::create(builder, loc, excess));
  }

  static void insertCaptureCheck(OpBuilder &builder, Location loc,
                                 Value capture, const CaptureBound &bound) {
    auto type = cast<ShapedType>(capture.getType());
    auto sized = cast<ShapedType>(bound.sized.getType());
    if (!isa<RankedTensorType>(type) ||
        (!type.isDynamicDim(bound.dim) && !sized.isDynamicDim(bound.sizedDim)))
      return;
    Value size = builder.createOrFold<tensor::DimOp>(loc, capture, bound.dim);
    Value needed =
        getSize(builder, loc, bound.sized, bound.sizedDim, bound.excess);
    Value isEnough = arith::CmpIOp::create(
        builder, loc, arith::CmpIPredicate::sge, size, needed);
    cf::AssertOp::create(builder, loc, isEnough,
                         (describeCapture(capture) + ", indexed by " +
                          bound.index + " in dimension " + Twine(bound.dim) +
                          ", is smaller than the " + bound.size)
                             .str());
  }

  /// The verifier has looked at constant indices into static sizes.
  static void insertConstantChecks(OpBuilder &builder, CaptureLoadOp load,
                                   Value capture) {
    auto type = dyn_cast<RankedTensorType>(capture.getType());
    if (!type)
      return;
    Location loc = load.getLoc();
    for (auto [dim, index] : llvm::enumerate(load.getIndices())) {
      APInt value;
      if (!type.isDynamicDim(dim) ||
          !matchPattern(index, m_ConstantInt(&value)))
        continue;
      Value size = builder.createOrFold<tensor::DimOp>(loc, capture, dim);
      Value last =
          arith::ConstantIndexOp::create(builder, loc, value.getSExtValue());
      Value isEnough = arith::CmpIOp::create(
          builder, loc, arith::CmpIPredicate::sgt, size, last);
      cf::AssertOp::create(builder, loc, isEnough,
                           (describeCapture(capture) + ", indexed by " +
                            Twine(value.getSExtValue()) + " in dimension " +
                            Twine(dim) + ", has no such element there")
                               .str());
    }
  }

  static std::string describeCapture(Value capture) {
    auto argument = dyn_cast<BlockArgument>(capture);
    auto func =
        argument
            ? dyn_cast<FunctionOpInterface>(argument.getOwner()->getParentOp())
            : FunctionOpInterface();
    if (!func)
      return "a capture";
    return "capture '" + attn::getArgumentName(func, argument.getArgNumber()) +
           "'";
  }

  static void insertCheck(OpBuilder &builder, Location loc,
                          const SizePair &pair) {
    auto aType = cast<ShapedType>(pair.a.getType());
    auto bType = cast<ShapedType>(pair.b.getType());
    // The verifier has compared static sizes.
    if (!isa<RankedTensorType>(aType) ||
        (!aType.isDynamicDim(pair.aDim) && !bType.isDynamicDim(pair.bDim)))
      return;
    Value a = builder.createOrFold<tensor::DimOp>(loc, pair.a, pair.aDim);
    Value b = builder.createOrFold<tensor::DimOp>(loc, pair.b, pair.bDim);
    Value equal =
        arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, a, b);
    cf::AssertOp::create(builder, loc, equal, pair.message);
  }
};
} // namespace
