//===- ScalarBuilder.h - Elementwise tensor code as a scalar rule -*- C++ -*-=//
//
// Rebuilds what a chain of elementwise tensor ops computes at one element as
// scalar code over the score and the element's indices.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_LINALGTOATTN_SCALARBUILDER_H
#define ATTN_LIB_CONVERSION_LINALGTOATTN_SCALARBUILDER_H

#include "AxisLayout.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::attn {

/// Why a match failed: the first reason given stands.
class MatchFailure {
public:
  LogicalResult fail(Location where, const Twine &why) {
    if (reason.empty()) {
      loc = where;
      reason = why.str();
    }
    return failure();
  }
  std::optional<Location> loc;
  std::string reason;
};

/// A tensor that the scalar code reads and doesn't look into: a reduction or
/// softmax.
struct Leaf {
  OpResult tensor;
  AxisLayout layout;
};

class ScalarBuilder {
public:
  ScalarBuilder(MLIRContext *context, Location loc, AxisSpace &space,
                MatchFailure &failure);

  /// The element of `tensor` at the indices that `layout` says. f16 and bf16
  /// become f32, and index and i64 become i32 where they can't overflow.
  FailureOr<Value> build(Value tensor, const AxisLayout &layout);

  /// The element that reduction `leaf` reduces, if it combines elements with
  /// one of `CombinerOps`; `reduced` is the axis it reduces over.
  template <typename... CombinerOps>
  FailureOr<Value> buildReduced(const Leaf &leaf, const AxisTuple &reduced) {
    return buildReduced(leaf, reduced,
                        [](Operation *op) { return isa<CombinerOps...>(op); });
  }

  /// The matrix product whose elements are the scores, and what its loops
  /// stand for; the only one that the code reads.
  linalg::LinalgOp scoreOp;
  AxisLayout scoreLoops;
  Axis scoreReduction = 0;

  /// Lets the code ask for the sizes of `tensor`.
  void addKnownLayout(Value tensor, const AxisLayout &layout) {
    knownLayouts.emplace_back(tensor, layout);
  }

  Value getScore() const { return score; }
  /// The leaf that `value` stands for, or null.
  const Leaf *getLeaf(Value value) const;
  /// Tensor ops that the code was built from.
  const llvm::SmallSetVector<Operation *, 16> &getVisited() const {
    return visited;
  }

  /// Copies the code that computes `result` into `block`, whose arguments for
  /// the score (or null) and the groups of axes are given.
  struct Indices {
    Value score;
    Value batch, head, query, key;
    AxisTuple batchAxes, headAxes;
    Axis queryAxis, keyAxis;
  };
  FailureOr<Value> emit(Value result, Block &block, const Indices &indices);

  OpBuilder &getBuilder() { return builder; }
  /// Inserts `op` or what it folds to, and returns the results.
  SmallVector<Value> insertFolded(Operation *op);

private:
  struct Cached {
    Value tensor;
    AxisLayout layout;
    Value scalar;
  };
  struct Length {
    Value arg, tensor;
    int64_t dim;
  };

  FailureOr<Value> buildUncached(Value tensor, const AxisLayout &layout);
  FailureOr<Value> buildLinalg(linalg::LinalgOp op, OpResult result,
                               const AxisLayout &layout);
  FailureOr<Value> buildElementwise(Operation *op, OpResult result,
                                    const AxisLayout &layout);
  FailureOr<Value> buildScore(linalg::LinalgOp op, const AxisLayout &layout);
  FailureOr<Value> buildScalar(Value scalar);
  FailureOr<Value> buildBodyValue(linalg::LinalgOp op, Value value,
                                  const AxisLayout &loops, IRMapping &mapping);
  FailureOr<Value> buildScalarOp(Operation *op, unsigned result,
                                 ValueRange operands);
  Value buildConstant(TypedAttr attr);
  Value buildIntegerCast(Operation *op, Value operand, Type resultType);
  FailureOr<Value> buildReduced(const Leaf &leaf, const AxisTuple &reduced,
                                function_ref<bool(Operation *)> isCombiner);
  Value getIndex(const AxisTuple &tuple);
  Value buildLength(Value tensor, int64_t dim);
  FailureOr<Value> emitArgument(OpBuilder &b, Value arg,
                                const Indices &indices);
  Value emitIndex(OpBuilder &b, const AxisTuple &tuple, const Indices &indices);
  FailureOr<Value> emitLength(OpBuilder &b, const Length &length,
                              const Indices &indices);

  AxisSpace &space;
  MatchFailure &failure;
  Location loc;
  /// Holds the code; its arguments are the score, indices, lengths and leaves.
  Region region;
  Block *block;
  OpBuilder builder;
  Value score;
  SmallVector<Cached> cache;
  SmallVector<std::pair<Value, AxisTuple>> indexArgs;
  SmallVector<Length> lengthArgs;
  SmallVector<std::pair<Value, Leaf>> leaves;
  SmallVector<std::pair<Value, AxisLayout>> knownLayouts;
  llvm::SmallSetVector<Operation *, 16> visited;
};

/// A product of two float matrices (batched, transposed) with one reduced axis.
bool isMatrixProduct(linalg::LinalgOp op);

/// Whether two values of scalar code are computed alike.
bool areEquivalent(Value a, Value b);

/// Whether `value` is computed from `source`.
bool dependsOn(Value value, Value source);

/// The operand's constant: an arith.constant, a splat or what a linalg.fill
/// fills with.
std::optional<APFloat> getConstantFloat(Value value);

} // namespace mlir::attn

#endif // ATTN_LIB_CONVERSION_LINALGTOATTN_SCALARBUILDER_H
