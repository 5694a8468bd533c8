//===- PrepassKernel.h - What kernels of a pre-pass share -------*- C++ -*-===//

#ifndef ATTN_LIB_CONVERSION_ATTNTOTILE_PREPASSKERNEL_H
#define ATTN_LIB_CONVERSION_ATTNTOTILE_PREPASSKERNEL_H

#include "MaskPrepass.h"
#include "RuleReader.h"
#include "SequenceBuilder.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlir::attn {

/// Tiles of keys whose classes are one number, which is what a program of
/// `_classes` finds out at a time.
constexpr int64_t kTilesInGroup = 8;

/// Programs of `_classes` that share the groups of a granule of sequences, at
/// most. There is memory for as many groups as the longest sequence could have,
/// and most have few of them.
constexpr int64_t kMaxGroupPrograms = 8;

/// What the elements of a granule of queries and a tile of keys are: all
/// hidden, mixed, all visible, or what bounds don't decide.
enum class TileClass { Hidden, Partial, Full, Open };
constexpr int64_t kClassBits = 2;
static_assert(kTilesInGroup * kClassBits <= 32);

/// Integer arithmetic in a kernel or in host code.
class Arithmetic : public ImplicitLocOpBuilder {
public:
  using ImplicitLocOpBuilder::ImplicitLocOpBuilder;

  Value i32(int64_t value) {
    return arith::ConstantOp::create(*this, getI32IntegerAttr(value));
  }
  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(*this, value);
  }
  template <typename OpT>
  Value binary(Value a, Value b) {
    return createOrFold<OpT>(a, b);
  }
  Value add(Value a, Value b) { return binary<arith::AddIOp>(a, b); }
  Value sub(Value a, Value b) { return binary<arith::SubIOp>(a, b); }
  Value mul(Value a, Value b) { return binary<arith::MulIOp>(a, b); }
  Value div(Value a, Value b) { return binary<arith::DivUIOp>(a, b); }
  Value rem(Value a, Value b) { return binary<arith::RemUIOp>(a, b); }
  Value min(Value a, Value b) { return binary<arith::MinSIOp>(a, b); }
  Value max(Value a, Value b) { return binary<arith::MaxSIOp>(a, b); }
  Value less(Value a, Value b) {
    return createOrFold<arith::CmpIOp>(arith::CmpIPredicate::slt, a, b);
  }
  Value equal(Value a, Value b) {
    return createOrFold<arith::CmpIOp>(arith::CmpIPredicate::eq, a, b);
  }
  Value both(Value a, Value b) { return binary<arith::AndIOp>(a, b); }
  Value either(Value a, Value b) { return binary<arith::OrIOp>(a, b); }
  Value negate(Value a) {
    return binary<arith::XOrIOp>(
        a, arith::ConstantIntOp::create(*this, 1, /*width=*/1));
  }
  Value toI32(Value condition) {
    return createOrFold<arith::ExtUIOp>(getI32Type(), condition);
  }
  template <typename EnumT>
  Value number(EnumT value) {
    return i32(static_cast<int64_t>(value));
  }
  Value select(Value condition, Value a, Value b) {
    return createOrFold<arith::SelectOp>(condition, a, b);
  }
  Value getSize(Value memref, int64_t dim) {
    return createOrFold<memref::DimOp>(memref, dim);
  }
  Value getSizeI32(Value memref, int64_t dim) {
    return createOrFold<arith::IndexCastOp>(getI32Type(), getSize(memref, dim));
  }
};

/// One pre-pass, for the tiles of one attention kernel.
struct Prepass {
  Prepass(AttentionOp op, StringRef name, const PrepassTiles &tiles,
          SymbolTable &symbols);

  /// Whether the sequences' queries lie one behind the other. Then tiles and
  /// granules of queries are numbered through all of them, as
  /// SequenceBuilder::countTiles says.
  bool isPacked() { return bool(op.getCuQ()); }
  /// Whether each sequence has a number of keys of its own.
  bool hasKeyLengths() { return op.getCuK() || op.getKvLen(); }
  bool hasSequences() { return isPacked() || hasKeyLengths(); }

  /// What tells apart the bounds or classes of a value with `inputs` in each
  /// granule of queries or tile of keys: a packed granule is of one sequence,
  /// and the last tile of keys ends where its sequence's do.
  unsigned getDims(unsigned inputs);

  bool isUsed(BlockArgument capture) { return !capture.use_empty(); }

  AttentionOp op;
  Region &rule;
  StringRef name;
  const PrepassTiles &tiles;
  SymbolTable &symbols;
  RuleInputs inputs;
  /// Queries that are classified together.
  int64_t granule, granulesInTile;
  /// Host code, and what it passes to all kernels: behind the operator's
  /// operands the rows of q and k, and what kernels have written.
  Arithmetic host;
  SmallVector<Value> arguments;
};

/// Builds a kernel of one warp a program, and its launch.
class PrepassKernel {
protected:
  /// It writes `results`, which later kernels read.
  PrepassKernel(Prepass &prepass, StringRef suffix, ArrayRef<Value> results);

  void finish(Value grid);

  /// The rest of `number` by the size of a dimension; `number` becomes the
  /// quotient.
  Value takeOff(Value &number, Value memref, int64_t dim);

  Value divideRoundingUp(Value number, int64_t size);

  /// Make sequence `sequence` the one that `context` is about, or the one that
  /// has tile or granule `number` of packed queries, else `batch`. Return the
  /// tile's or granule's first query.
  void bindSequence(Value sequence);
  Value bindTile(Value number, Value batch);
  Value bindGranule(Value number, Value batch);

  Prepass &prepass;
  AttentionOp op;
  Region &rule;
  Arithmetic kernel;
  tile::KernelOp kernelOp;
  RuleContext context;
  /// Its own results behind those of the kernels before it.
  ValueRange written;

private:
  IRMapping args;
  std::optional<SequenceBuilder> sequences;
};

} // namespace mlir::attn

#endif // ATTN_LIB_CONVERSION_ATTNTOTILE_PREPASSKERNEL_H
