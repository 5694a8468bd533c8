//===- PrepassKernel.cpp - What kernels of a pre-pass share ---------------===//

#include "PrepassKernel.h"
#include "mlir/IR/SymbolTable.h"

using namespace mlir;
using namespace mlir::attn;

/// Queries that are classified together, at most: what a warpgroup of sm_90a
/// takes.
static constexpr int64_t kMaxGranule = 64;

Prepass::Prepass(AttentionOp op, StringRef name, const PrepassTiles &tiles,
                 SymbolTable &symbols)
    : op(op), rule(op.getMaskMod()), name(name), tiles(tiles), symbols(symbols),
      granule(tiles.blockM % kMaxGranule == 0 ? kMaxGranule : tiles.blockM),
      granulesInTile(tiles.blockM / granule), host(op.getLoc(), op) {}

unsigned Prepass::getDims(unsigned inputs) {
  if (isPacked() && (inputs & kQuery))
    return inputs & ~kBatch;
  if (hasKeyLengths() && (inputs & kKey))
    return inputs | kBatch;
  return inputs;
}

PrepassKernel::PrepassKernel(Prepass &prepass, StringRef suffix,
                             ArrayRef<Value> results)
    : prepass(prepass), op(prepass.op), rule(prepass.rule),
      kernel(op.getLoc(), op.getContext()) {
  llvm::append_range(prepass.arguments, results);
  kernelOp = tile::KernelOp::create(kernel, (prepass.name + suffix).str(),
                                    ValueRange(prepass.arguments).getTypes(),
                                    /*numWarps=*/1);
  kernel.setInsertionPointToStart(&kernelOp.getBody().front());
  ValueRange rest = kernelOp.getBody().getArguments();
  auto take = [&] {
    Value arg = rest.front();
    rest = rest.drop_front();
    return arg;
  };
  for (BlockArgument capture :
       rule.getArguments().take_back(op.getCaptures().size()))
    context.captures.push_back(prepass.isUsed(capture) ? take() : Value());
  for (Value operand : {op.getCuQ(), op.getCuK(), op.getKvLen()})
    if (operand)
      args.map(operand, take());
  Value queryRows = take(), keyRoom = take();
  sequences.emplace(op, args, kernel,
                    SequenceBuilder::Rows{queryRows, keyRoom});
  written = rest;
}

void PrepassKernel::finish(Value grid) {
  tile::ReturnOp::create(kernel);
  // The table makes the name unique.
  prepass.symbols.insert(kernelOp);
  Arithmetic &host = prepass.host;
  if (Value factor = prepass.tiles.getFactor())
    grid = host.mul(grid, factor);
  tile::LaunchOp::create(host, kernelOp.getSymName(), grid, prepass.arguments,
                         /*bytes=*/Value(), /*flops=*/Value(),
                         /*prepass=*/true);
}

Value PrepassKernel::takeOff(Value &number, Value memref, int64_t dim) {
  Value size = kernel.getSizeI32(memref, dim);
  Value rest = kernel.rem(number, size);
  number = kernel.div(number, size);
  return rest;
}

Value PrepassKernel::divideRoundingUp(Value number, int64_t size) {
  return kernel.div(kernel.add(number, kernel.i32(size - 1)), kernel.i32(size));
}

void PrepassKernel::bindSequence(Value sequence) {
  sequences->setSequence(sequence);
  context.batch = sequence;
  context.qLen = sequences->getQueryLength();
  context.kvLen = sequences->getKeyLength();
}

Value PrepassKernel::bindTile(Value number, Value batch) {
  const int64_t blockM = prepass.tiles.blockM;
  if (!prepass.isPacked()) {
    bindSequence(batch);
    return kernel.mul(number, kernel.i32(blockM));
  }
  bindSequence(sequences->findSequence(number, blockM));
  return kernel.mul(sequences->getTileInSequence(number, blockM),
                    kernel.i32(blockM));
}

Value PrepassKernel::bindGranule(Value number, Value batch) {
  Value size = kernel.i32(prepass.granule);
  if (!prepass.isPacked()) {
    bindSequence(batch);
    return kernel.mul(number, size);
  }
  Value inTile = kernel.i32(prepass.granulesInTile);
  Value first = bindTile(kernel.div(number, inTile), batch);
  return kernel.add(first, kernel.mul(kernel.rem(number, inTile), size));
}
