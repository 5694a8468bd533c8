//===- SequenceBuilder.h - Where a program's sequence lies ------*- C++ -*-===//

#ifndef ATTN_LIB_CONVERSION_ATTNTOTILE_SEQUENCEBUILDER_H
#define ATTN_LIB_CONVERSION_ATTNTOTILE_SEQUENCEBUILDER_H

#include "attn/Dialect/Attn/IR/AttnOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::attn {

/// Builds, in a fused kernel, what depends on the lengths of sequences that
/// only the device knows: which sequence a program works on, its lengths, and
/// its part of the tensors.
///
/// A tensor's part is a memref.subview that ends where the sequence does, so
/// that loads past it give zeros and stores are dropped, as at the end of any
/// memref.
class SequenceBuilder {
public:
  /// No kernel takes more keys; the analysis of masks counts on it.
  static constexpr int64_t kMaxKeyRoom = int64_t(1) << 30;

  /// What stands for the sizes of tensors in a kernel that doesn't take them:
  /// the rows of q, and the most keys that a sequence can have.
  struct Rows {
    Value queries, keyRoom;
  };

  /// `args` maps the operator's operands to the kernel's arguments.
  SequenceBuilder(AttentionOp op, const IRMapping &args,
                  ImplicitLocOpBuilder &builder, Rows rows = {})
      : op(op), args(args), builder(builder), rows(rows) {}

  /// The number of query tiles that programs are numbered for, of one head. In
  /// packed sequences this is a bound that only takes the tensor's length:
  /// sequence s owns the numbers from cu_q[s] / block + s up to
  /// cu_q[s + 1] / block + s + 1, which are enough for all of its tiles and
  /// leave at most one a sequence without work. A query is `interleave` rows of
  /// a tile.
  Value countTiles(int64_t block, int64_t interleave = 1);

  /// The sequence that owns query tile `tile` of packed sequences.
  Value findSequence(Value tile, int64_t block, int64_t interleave = 1);
  /// Makes `sequence` the one that the rest is about.
  void setSequence(Value sequence);
  /// Makes all packed queries the ones that the rest is about, as if they were
  /// of one sequence.
  void setAllQueries();
  /// The first tile of packed `sequence`.
  Value getFirstTile(int64_t block, int64_t interleave = 1);
  /// The number within packed `sequence` of query tile `tile`.
  Value getTileInSequence(Value tile, int64_t block, int64_t interleave = 1);

  Value getSequence() const { return sequence; }
  Value getQueryLength() const { return queryLength; }
  Value getKeyLength() const { return keyLength; }
  /// The most keys that a sequence can have.
  Value getKeyRoom();

  /// The sequence's part of an operand: q, o or lse, or k or v. `batch` is the
  /// index of its first dimension.
  struct Part {
    Value memref, batch;
  };
  Part getQueries(Value operand);
  /// The same of a memref whose dimension `rowDim` has `interleave` rows for
  /// each query.
  Part getQueryRows(Value memref, unsigned rowDim, int64_t interleave);
  Part getKeys(Value operand);
  /// The same up to `length`, if given, which is at most the sequence's.
  Part getKeys(Value operand, Value length);

private:
  Value i32(int64_t value);
  Value getSize(Value operand, int64_t dim);
  Value read(Value operand, Value index);
  template <typename OpT>
  Value binary(Value a, Value b) {
    return builder.createOrFold<OpT>(a, b);
  }
  /// `value` moved into [0, limit].
  Value clamp(Value value, Value limit);
  Value getFirstTile(Value start, Value number, int64_t block,
                     int64_t interleave);
  Value getQueryRows();
  void setQueries();
  void setKeys();
  Value getRows(Value operand, unsigned rowDim, Value start, Value length);

  AttentionOp op;
  const IRMapping &args;
  ImplicitLocOpBuilder &builder;
  Rows rows;
  Value sequence, queryStart, queryLength, keyStart, keyLength;
};

} // namespace mlir::attn

#endif // ATTN_LIB_CONVERSION_ATTNTOTILE_SEQUENCEBUILDER_H
