//===- MaskPrepass.cpp - Kernels that look at a mask before it runs -------===//

#include "MaskPrepass.h"
#include "PrepassKernel.h"
#include "TileClasses.h"
#include "TileLists.h"

using namespace mlir;
using namespace mlir::attn;
using tile::MaskOp;

namespace {
/// Sizes and memory, in host code.
class PrepassBuilder {
public:
  PrepassBuilder(AttentionOp op, StringRef name, const PrepassTiles &tiles,
                 SymbolTable &symbols)
      : prepass(op, name, tiles, symbols), op(op), host(prepass.host) {}

  MaskTiles build();

private:
  SmallVector<BoundedRead> findReads();
  void addArguments();
  Value countTiles(Value length, int64_t size) {
    return arith::CeilDivSIOp::create(host, length, host.index(size));
  }
  Value countSequences();
  Value countQueryTiles();
  Value getKeyRoom();
  Value product(ArrayRef<Value> factors);
  Value allocate(ArrayRef<Value> sizes, ArrayRef<int64_t> fixed = {});

  Prepass prepass;
  AttentionOp op;
  Arithmetic &host;
  Value queryRows, keyRoom;
};
} // namespace

/// Reads by query and key are of the size of the mask: their bounds would cost
/// as much as its elements.
SmallVector<BoundedRead> PrepassBuilder::findReads() {
  SmallVector<BoundedRead> reads;
  for (auto load : op.getMaskMod().front().getOps<CaptureLoadOp>()) {
    unsigned inputs = prepass.inputs.get(load);
    bool byQuery = (inputs & kQuery) != 0, byKey = (inputs & kKey) != 0;
    if (byQuery != byKey && isa<IntegerType>(load.getType()) &&
        !load->use_empty())
      reads.push_back({load, prepass.getDims(inputs)});
  }
  return reads;
}

void PrepassBuilder::addArguments() {
  SmallVector<Value> &arguments = prepass.arguments;
  for (auto [capture, operand] : llvm::zip_equal(
           op.getMaskMod().getArguments().take_back(op.getCaptures().size()),
           op.getCaptures()))
    if (prepass.isUsed(capture))
      arguments.push_back(operand);
  for (Value operand : {op.getCuQ(), op.getCuK(), op.getKvLen()})
    if (operand)
      arguments.push_back(operand);
  for (Value size : {queryRows, keyRoom})
    arguments.push_back(
        arith::IndexCastOp::create(host, host.getI32Type(), size));
}

Value PrepassBuilder::countSequences() {
  if (!op.getCuQ())
    return host.getSize(op.getQ(), 0);
  return host.sub(host.getSize(op.getCuQ(), 0), host.index(1));
}

/// As SequenceBuilder::countTiles.
Value PrepassBuilder::countQueryTiles() {
  if (!op.getCuQ())
    return countTiles(queryRows, prepass.tiles.blockM);
  Value whole = arith::FloorDivSIOp::create(host, queryRows,
                                            host.index(prepass.tiles.blockM));
  return host.add(whole, countSequences());
}

/// As SequenceBuilder::getKeyRoom.
Value PrepassBuilder::getKeyRoom() {
  Value rows = host.getSize(op.getK(), 2);
  if (!op.getBlockTable())
    return rows;
  Value room = host.mul(rows, host.getSize(op.getBlockTable(), 1));
  return host.min(room, host.index(SequenceBuilder::kMaxKeyRoom));
}

Value PrepassBuilder::product(ArrayRef<Value> factors) {
  Value result = factors.front();
  for (Value factor : factors.drop_front())
    result = arith::MulIOp::create(host, result, factor);
  return result;
}

/// i32, with `fixed` sizes behind those of the values.
Value PrepassBuilder::allocate(ArrayRef<Value> sizes, ArrayRef<int64_t> fixed) {
  SmallVector<int64_t> shape(sizes.size(), ShapedType::kDynamic);
  llvm::append_range(shape, fixed);
  auto type = MemRefType::get(shape, host.getI32Type());
  return memref::AllocOp::create(host, type, sizes);
}

MaskTiles PrepassBuilder::build() {
  queryRows = host.getSize(op.getQ(), 2);
  keyRoom = getKeyRoom();
  Value sequences = countSequences();
  Value heads = host.index(op.getNumQueryHeads());
  Value one = host.index(1);
  Value keyTiles = countTiles(keyRoom, prepass.tiles.blockN);
  Value queryTiles = countQueryTiles();
  // The last tile of queries may reach past the last granule of queries.
  Value numRanges = arith::MulIOp::create(host, queryTiles,
                                          host.index(prepass.granulesInTile));
  Value granules =
      prepass.isPacked() ? numRanges : countTiles(queryRows, prepass.granule);
  auto getSizes = [&](unsigned dims) -> std::array<Value, 4> {
    return {dims & kBatch ? sequences : one, dims & kHead ? heads : one,
            dims & kQuery ? granules : one, dims & kKey ? keyTiles : one};
  };

  SmallVector<BoundedRead> reads = findReads();
  SmallVector<Value> extremes;
  Value numExtremes;
  for (const BoundedRead &read : reads) {
    std::array<Value, 4> sizes = getSizes(read.dims);
    extremes.push_back(allocate(sizes, /*min and max*/ {2}));
    Value count = product(sizes);
    numExtremes =
        numExtremes ? arith::AddIOp::create(host, numExtremes, count) : count;
  }
  Value isVisible = op.getMaskMod().front().getTerminator()->getOperand(0);
  unsigned dims =
      prepass.getDims(prepass.inputs.get(isVisible) | kQuery | kKey);
  auto [batches, maskHeads, rows, columns] = getSizes(dims);
  Value groups = countTiles(columns, kTilesInGroup);
  Value classes = allocate({batches, maskHeads, rows, groups});
  Value groupPrograms = prepass.hasSequences()
                            ? host.min(groups, host.index(kMaxGroupPrograms))
                            : groups;
  Value lists = allocate({batches, maskHeads, queryTiles, keyTiles});
  Value ranges =
      allocate({batches, maskHeads, numRanges}, {MaskOp::NumBoundsFields});

  addArguments();
  if (!reads.empty())
    buildExtremesKernel(prepass, reads, extremes, numExtremes);
  buildClassesKernel(prepass, reads, classes,
                     product({batches, maskHeads, rows, groupPrograms}));
  buildTilesKernel(prepass, lists, ranges,
                   product({batches, maskHeads, queryTiles}));
  return {ranges, lists, prepass.granule, (dims & kBatch) != 0,
          (dims & kHead) != 0};
}

MaskTiles attn::buildMaskPrepass(AttentionOp op, StringRef name,
                                 const PrepassTiles &tiles,
                                 SymbolTable &symbols) {
  return PrepassBuilder(op, name, tiles, symbols).build();
}
