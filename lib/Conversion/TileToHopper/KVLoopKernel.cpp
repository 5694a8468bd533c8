//===- KVLoopKernel.cpp - The parts of a kernel with a kv_loop ------------===//

#include "KVLoopKernel.h"
#include "attn/Dialect/Hopper/IR/HopperOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::tile;

static FailureOr<KVLoopOp> findLoop(KernelOp kernel) {
  SmallVector<KVLoopOp> loops;
  kernel.walk([&](KVLoopOp loop) { loops.push_back(loop); });
  if (loops.size() != 1)
    return kernel.emitOpError("needs exactly one tile.kv_loop to be split into "
                              "warp roles; it has ")
           << loops.size();
  if (loops[0]->getParentOp() != kernel)
    return loops[0].emitOpError(
        "must stand in the body of the kernel to be split into warp roles");
  return loops[0];
}

/// The only product in `region`.
static FailureOr<MmaOp> findProduct(KVLoopOp loop, Region &region,
                                    StringRef name) {
  auto products = llvm::to_vector(region.front().getOps<MmaOp>());
  if (products.size() != 1)
    return loop.emitOpError("needs exactly one tile.mma in its ")
           << name << " region to be split into warp roles; it has "
           << products.size();
  if (products[0].getPath() != MatmulPath::MMA)
    return products[0].emitOpError(
        "must multiply 16-bit or 8-bit types (path mma) to run as wgmma");
  return products[0];
}

/// The load in `block` that `operand` of `product` comes straight from.
static FailureOr<LoadOp> findLoad(MmaOp product, Value operand, Block &block,
                                  StringRef where) {
  auto load = operand.getDefiningOp<LoadOp>();
  if (!load || load->getBlock() != &block)
    return product.emitOpError("takes an operand that is no tile.load ")
           << where << ", which the producer could copy to shared memory";
  if (!load->hasOneUse()) {
    InFlightDiagnostic diag = product.emitOpError(
        "takes a tile that others use too; give them a tile.load of their own");
    diag.attachNote(load.getLoc()) << "the tile";
    return diag;
  }
  return load;
}

/// Checks that only the parts multiply tiles.
static LogicalResult verifyNoOtherProduct(KernelOp kernel,
                                          const KVLoopKernel &parts) {
  WalkResult result = kernel.walk([&](MmaOp op) {
    if (parts.isReplaced(op))
      return WalkResult::advance();
    op.emitOpError("is outside of the qk and pv regions of tile.kv_loop, where "
                   "it has no lowering to wgmma");
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

/// Finds the loop-carried value that is the result of the pv product.
static LogicalResult findAccumulator(KVLoopKernel &parts) {
  Operation *yield = parts.loop.getPv().front().getTerminator();
  if (!parts.pv->hasOneUse() || *parts.pv->user_begin() != yield)
    return parts.pv.emitOpError(
        "must be yielded as it is; move what follows it to the next step or "
        "behind the loop");
  parts.accIndex = parts.pv->use_begin()->getOperandNumber();
  return success();
}

/// The scalar that is in all elements of `tile`; null if there is none.
static Value getSplat(Value tile, OpBuilder &builder) {
  if (auto splat = tile.getDefiningOp<tensor::SplatOp>())
    return splat.getInput();
  DenseElementsAttr elements;
  if (!matchPattern(tile, m_Constant(&elements)) || !elements.isSplat())
    return {};
  return arith::ConstantOp::create(
      builder, tile.getLoc(),
      cast<TypedAttr>(elements.getSplatValue<Attribute>()));
}

/// Finds what the qk product accumulates onto: nothing, or a ramp along the
/// columns.
static LogicalResult findRamp(KVLoopKernel &parts) {
  if (matchPattern(parts.qk.getAcc(), m_AnyZeroFloat()))
    return success();
  OpBuilder builder(parts.qk);
  auto broadcast = parts.qk.getAcc().getDefiningOp<BroadcastOp>();
  auto ramp = broadcast && broadcast.getDim() == 1
                  ? broadcast.getSource().getDefiningOp<arith::MulFOp>()
                  : arith::MulFOp();
  auto sum =
      ramp ? ramp.getLhs().getDefiningOp<arith::AddFOp>() : arith::AddFOp();
  auto columns =
      sum ? sum.getLhs().getDefiningOp<arith::SIToFPOp>() : arith::SIToFPOp();
  if (columns && columns.getIn().getDefiningOp<IotaOp>()) {
    parts.slope = getSplat(ramp.getRhs(), builder);
    parts.start = getSplat(sum.getRhs(), builder);
  }
  if (parts.slope && parts.start)
    return success();
  return parts.qk.emitOpError("must accumulate to zero to run as wgmma, or to "
                              "(columns + start) * slope, with columns from "
                              "tile.iota, broadcast along the rows");
}

/// Finds the loads whose tiles the consumers read.
static LogicalResult findCaptureLoads(KVLoopKernel &parts) {
  WalkResult result = parts.loop.walk([&](LoadOp load) -> WalkResult {
    StringRef name = hopper::HopperDialect::getStagesAttrName();
    if (!load->hasAttr(name))
      return WalkResult::advance();
    if (parts.isReplaced(load) || load->getParentOp() != parts.loop ||
        load->getParentRegion() == &parts.loop.getPv())
      return load.emitOpError("has ")
             << name
             << ", which is for loads that the qk, score or softmax region "
                "reads in registers; num_stages of the kernel is for operands "
                "of products";
    auto type = dyn_cast<RankedTensorType>(load.getType());
    if (!type || type.getShape() != parts.qk.getType().getShape())
      return load.emitOpError("has ")
             << name << ", so that its tile must have the shape of the scores, "
             << parts.qk.getType();
    parts.captureLoads.push_back(load);
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

FailureOr<KVLoopKernel> KVLoopKernel::match(KernelOp kernel) {
  KVLoopKernel parts;
  FailureOr<KVLoopOp> loop = findLoop(kernel);
  if (failed(loop))
    return failure();
  parts.loop = *loop;
  FailureOr<MmaOp> qk = findProduct(*loop, loop->getQk(), "qk");
  FailureOr<MmaOp> pv = findProduct(*loop, loop->getPv(), "pv");
  if (failed(qk) || failed(pv))
    return failure();
  parts.qk = *qk;
  parts.pv = *pv;
  if (!qk->getTransposeB() || qk->getPermutedK())
    return qk->emitOpError("must have transpose_b and not permuted_k to run as "
                           "wgmma");
  bool isFloat8 = pv->getA().getType().getElementTypeBitWidth() == 8;
  parts.transposesV = isFloat8 && !pv->getTransposeB();
  if (isFloat8 && !parts.transposesV && !pv->getPermutedK())
    return pv->emitOpError(
        "must have permuted_k to run as wgmma: its left operand is in "
        "registers, and 8-bit ones have an order of their own");
  if (failed(findRamp(parts)))
    return failure();

  FailureOr<LoadOp> q =
      findLoad(*qk, qk->getA(), kernel.getBody().front(), "before the loop");
  FailureOr<LoadOp> k = findLoad(
      *qk, qk->getB(), *qk->getOperation()->getBlock(), "in its region");
  FailureOr<LoadOp> v = findLoad(
      *pv, pv->getB(), *pv->getOperation()->getBlock(), "in its region");
  if (failed(q) || failed(k) || failed(v))
    return failure();
  parts.qLoad = *q;
  parts.kLoad = *k;
  parts.vLoad = *v;
  if (failed(verifyNoOtherProduct(kernel, parts)) ||
      failed(findAccumulator(parts)) || failed(findCaptureLoads(parts)))
    return failure();
  return parts;
}

bool KVLoopKernel::canOverlap() {
  unsigned fromEnd = loop.getInits().size() - accIndex;
  for (Region *region : {&loop.getQk(), &loop.getScore(), &loop.getSoftmax()}) {
    Block &block = region->front();
    if (!block.getArgument(block.getNumArguments() - fromEnd).use_empty())
      return false;
  }
  return true;
}

StoreOp KVLoopKernel::findTmaStore() {
  RankedTensorType room = qLoad.getType();
  for (auto store : loop->getBlock()->getOps<StoreOp>()) {
    auto tile = dyn_cast<RankedTensorType>(store.getValue().getType());
    auto memref = cast<MemRefType>(store.getDest().getType());
    if (loop->isBeforeInBlock(store) && tile && tile.getRank() == 2 &&
        tile.getElementType() == room.getElementType() &&
        tile.getDimSize(0) == room.getDimSize(0) &&
        tile.getDimSize(1) <= room.getDimSize(1) && memref.getRank() >= 2 &&
        memref.getRank() <= 5 &&
        (isa<BlockArgument>(store.getDest()) ||
         (memref.getRank() == 4 &&
          store.getDest().getDefiningOp<memref::SubViewOp>())))
      return store;
  }
  return {};
}
