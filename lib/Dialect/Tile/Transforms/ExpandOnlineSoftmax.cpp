//===- ExpandOnlineSoftmax.cpp - Online softmax to reductions and exp -----===//

#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include <cmath>

namespace mlir::tile {
#define GEN_PASS_DEF_TILEEXPANDONLINESOFTMAX
#include "attn/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace mlir::tile

using namespace mlir;
using namespace mlir::tile;

namespace {
void expand(OnlineSoftmaxOp op) {
  OpBuilder builder(op);
  Location loc = op.getLoc();
  Type rowType = op.getMaxIn().getType();

  // maximumf, not maxnumf: once a row has seen NaN its statistics stay NaN.
  Value tileMax =
      ReduceOp::create(builder, loc, rowType, ReduceKind::Max, op.getScores());
  Value max = arith::MaximumFOp::create(builder, loc, op.getMaxIn(), tileMax);
  Value p = ExpDiffOp::create(builder, loc, op.getScores(), max, op.getScale());
  if (op.getExponent() != 0) {
    float factor = std::ldexp(1.0f, static_cast<int>(op.getExponent()));
    auto type = cast<RankedTensorType>(p.getType());
    Value factors = arith::ConstantOp::create(
        builder, loc, DenseElementsAttr::get(type, factor));
    p = arith::MulFOp::create(builder, loc, p, factors);
  }
  Value alpha =
      ExpDiffOp::create(builder, loc, op.getMaxIn(), max, op.getScale());
  Value tileSum = ReduceOp::create(builder, loc, rowType, ReduceKind::Add, p);
  Value rescaled = arith::MulFOp::create(builder, loc, op.getSumIn(), alpha);
  Value sum = arith::AddFOp::create(builder, loc, rescaled, tileSum);

  op->replaceAllUsesWith(ValueRange{p, max, sum, alpha});
  op.erase();
}

struct TileExpandOnlineSoftmaxPass
    : tile::impl::TileExpandOnlineSoftmaxBase<TileExpandOnlineSoftmaxPass> {
  void runOnOperation() override {
    getOperation().walk([](OnlineSoftmaxOp op) { expand(op); });
  }
};
} // namespace
