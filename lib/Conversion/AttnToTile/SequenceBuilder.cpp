//===- SequenceBuilder.cpp - Where a program's sequence lies --------------===//

#include "SequenceBuilder.h"
#include "attn/Dialect/Tile/IR/TileOps.h"
#include "attn/Dialect/Tile/Transforms/MemrefParts.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::attn;

Value SequenceBuilder::i32(int64_t value) {
  return arith::ConstantOp::create(builder, builder.getI32IntegerAttr(value));
}

Value SequenceBuilder::getSize(Value operand, int64_t dim) {
  Value size = builder.createOrFold<memref::DimOp>(args.lookup(operand), dim);
  return builder.createOrFold<arith::IndexCastOp>(builder.getI32Type(), size);
}

/// An index past the end, which a problem without sequences leads to, reads 0.
Value SequenceBuilder::read(Value operand, Value index) {
  return tile::GatherOp::create(builder, builder.getI32Type(),
                                args.lookup(operand), index,
                                /*in_bounds=*/ArrayRef<int64_t>());
}

Value SequenceBuilder::clamp(Value value, Value limit) {
  return binary<arith::MaxSIOp>(binary<arith::MinSIOp>(value, limit), i32(0));
}

//===----------------------------------------------------------------------===//
// Tiles of packed queries
//===----------------------------------------------------------------------===//

Value SequenceBuilder::countTiles(int64_t block, int64_t interleave) {
  Value numRows = binary<arith::MulIOp>(getQueryRows(), i32(interleave));
  if (!op.getCuQ())
    return binary<arith::DivUIOp>(
        binary<arith::AddIOp>(numRows, i32(block - 1)), i32(block));
  Value numSequences = binary<arith::SubIOp>(getSize(op.getCuQ(), 0), i32(1));
  return binary<arith::AddIOp>(binary<arith::DivUIOp>(numRows, i32(block)),
                               numSequences);
}

/// The first tile of a sequence that begins with query `start`.
Value SequenceBuilder::getFirstTile(Value start, Value number, int64_t block,
                                    int64_t interleave) {
  Value row = binary<arith::MulIOp>(start, i32(interleave));
  return binary<arith::AddIOp>(binary<arith::DivUIOp>(row, i32(block)), number);
}

/// A binary search for the last sequence whose first tile isn't behind `tile`:
/// bit by bit of its number, from the highest.
Value SequenceBuilder::findSequence(Value tile, int64_t block,
                                    int64_t interleave) {
  Value numSequences = binary<arith::SubIOp>(getSize(op.getCuQ(), 0), i32(1));
  Value zeroBits =
      builder.createOrFold<math::CountLeadingZerosOp>(numSequences);
  Value numBits = binary<arith::SubIOp>(i32(32), zeroBits);
  auto loop =
      scf::ForOp::create(builder, i32(0), numBits, i32(1), ValueRange{i32(0)});
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  Value found = loop.getRegionIterArg(0);
  Value bit = binary<arith::SubIOp>(binary<arith::SubIOp>(numBits, i32(1)),
                                    loop.getInductionVar());
  Value candidate =
      binary<arith::AddIOp>(found, binary<arith::ShLIOp>(i32(1), bit));
  Value first =
      getFirstTile(read(op.getCuQ(), candidate), candidate, block, interleave);
  Value exists = arith::CmpIOp::create(builder, arith::CmpIPredicate::slt,
                                       candidate, numSequences);
  Value isBefore =
      arith::CmpIOp::create(builder, arith::CmpIPredicate::sle, first, tile);
  Value isBetter = binary<arith::AndIOp>(exists, isBefore);
  Value next = arith::SelectOp::create(builder, isBetter, candidate, found);
  scf::YieldOp::create(builder, next);
  return loop.getResult(0);
}

Value SequenceBuilder::getFirstTile(int64_t block, int64_t interleave) {
  return getFirstTile(queryStart, sequence, block, interleave);
}

Value SequenceBuilder::getTileInSequence(Value tile, int64_t block,
                                         int64_t interleave) {
  Value first = getFirstTile(block, interleave);
  // Only offsets that decrease have such tiles.
  return binary<arith::MaxSIOp>(binary<arith::SubIOp>(tile, first), i32(0));
}

//===----------------------------------------------------------------------===//
// Lengths
//===----------------------------------------------------------------------===//

void SequenceBuilder::setSequence(Value value) {
  sequence = value;
  setQueries();
  setKeys();
}

void SequenceBuilder::setAllQueries() {
  sequence = queryStart = i32(0);
  queryLength = getQueryRows();
  if (!op.getCuQ())
    return;
  Value numSequences = binary<arith::SubIOp>(getSize(op.getCuQ(), 0), i32(1));
  queryLength = clamp(read(op.getCuQ(), numSequences), queryLength);
}

void SequenceBuilder::setQueries() {
  Value numRows = getQueryRows();
  if (!op.getCuQ()) {
    queryLength = numRows;
    return;
  }
  queryStart = clamp(read(op.getCuQ(), sequence), numRows);
  Value next = binary<arith::AddIOp>(sequence, i32(1));
  Value end = read(op.getCuQ(), next);
  queryLength = clamp(binary<arith::SubIOp>(end, queryStart),
                      binary<arith::SubIOp>(numRows, queryStart));
}

Value SequenceBuilder::getQueryRows() {
  return rows.queries ? rows.queries : getSize(op.getQ(), 2);
}

Value SequenceBuilder::getKeyRoom() {
  if (rows.keyRoom)
    return rows.keyRoom;
  Value pageRows = getSize(op.getK(), 2);
  if (!op.getBlockTable())
    return pageRows;
  Value room = binary<arith::MulIOp>(getSize(op.getBlockTable(), 1), pageRows);
  return binary<arith::MinSIOp>(room, i32(kMaxKeyRoom));
}

void SequenceBuilder::setKeys() {
  Value room = getKeyRoom();
  keyLength = room;
  if (op.getCuK()) {
    keyStart = clamp(read(op.getCuK(), sequence), room);
    room = binary<arith::SubIOp>(room, keyStart);
    Value next = binary<arith::AddIOp>(sequence, i32(1));
    if (!op.getKvLen())
      keyLength =
          clamp(binary<arith::SubIOp>(read(op.getCuK(), next), keyStart), room);
  }
  if (op.getKvLen())
    keyLength = clamp(read(op.getKvLen(), sequence), room);
}

//===----------------------------------------------------------------------===//
// Parts of tensors
//===----------------------------------------------------------------------===//

/// Rows `start` (null: 0) up to `start + length` of all batches and heads.
Value SequenceBuilder::getRows(Value operand, unsigned rowDim, Value start,
                               Value length) {
  return tile::createPart(builder, args.lookup(operand), rowDim, start, length);
}

SequenceBuilder::Part SequenceBuilder::getQueries(Value operand) {
  if (!op.getCuQ())
    return {args.lookup(operand), sequence};
  return {getRows(operand, /*rowDim=*/2, queryStart, queryLength), i32(0)};
}

SequenceBuilder::Part SequenceBuilder::getQueryRows(Value memref,
                                                    unsigned rowDim,
                                                    int64_t interleave) {
  if (!op.getCuQ())
    return {memref, sequence};
  Value start = binary<arith::MulIOp>(queryStart, i32(interleave));
  Value length = binary<arith::MulIOp>(queryLength, i32(interleave));
  return {tile::createPart(builder, memref, rowDim, start, length), i32(0)};
}

SequenceBuilder::Part SequenceBuilder::getKeys(Value operand) {
  return getKeys(operand, Value());
}

SequenceBuilder::Part SequenceBuilder::getKeys(Value operand, Value length) {
  const bool endsEarly = length != nullptr;
  if (!endsEarly)
    length = keyLength;
  if (op.getCuK())
    return {getRows(operand, /*rowDim=*/2, keyStart, length), i32(0)};
  if (op.getBlockTable()) {
    Value rows = tile::PagedRowsOp::create(builder, args.lookup(operand),
                                           args.lookup(op.getBlockTable()),
                                           sequence, length);
    return {rows, i32(0)};
  }
  if (op.getKvLen() || endsEarly)
    return {getRows(operand, /*rowDim=*/2, Value(), length), sequence};
  return {args.lookup(operand), sequence};
}
