//===- SequenceBuilder.h - The linalg ops of unfused attention --*- C++ -*-===//
//
// Every method makes one linalg op, which becomes one kernel and is named by
// its discardable attribute `attn.step`.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_ATTNTOLINALG_SEQUENCEBUILDER_H
#define ATTN_LIB_CONVERSION_ATTNTOLINALG_SEQUENCEBUILDER_H

#include "attn/Dialect/Attn/IR/AttnOps.h"
#include "attn/Dialect/Attn/IR/KeyLimits.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::attn {

/// A value and the map from an op's loops to its indices.
struct StepOperand {
  Value value;
  AffineMap map;
};

class SequenceBuilder {
public:
  /// Computes one element from those of the inputs and the output.
  using BodyFn = function_ref<Value(ImplicitLocOpBuilder &, ValueRange)>;

  /// Steps of `op` are named `<variant>_<step>`.
  SequenceBuilder(AttentionOp op, StringRef variant)
      : op(op), variant(variant), builder(op.getLoc(), op) {}

  ImplicitLocOpBuilder &getBuilder() { return builder; }

  //===--------------------------------------------------------------------===//
  // Shapes and maps. Scores have the loops (b, h, m, n).
  //===--------------------------------------------------------------------===//

  /// `first, second, ...` of a space of `numLoops` loops.
  AffineMap getMap(unsigned numLoops, ArrayRef<unsigned> loops);
  AffineMap scoreMap() { return getMap(4, {0, 1, 2, 3}); }
  AffineMap rowMap() { return getMap(4, {0, 1, 2}); }
  /// A value that is the same for all elements.
  AffineMap scalarMap() { return getMap(4, {}); }

  SmallVector<OpFoldResult> getScoreShape();
  SmallVector<OpFoldResult> getRowShape();
  Value empty(ArrayRef<OpFoldResult> shape, Type elementType);
  /// An uninitialised tensor of the shape of `value`.
  Value emptyLike(Value value, Type elementType);

  //===--------------------------------------------------------------------===//
  // Steps
  //===--------------------------------------------------------------------===//

  Value fill(StringRef step, TypedAttr value, Value into);

  /// An elementwise op. `body` gets the elements of the inputs and of `into`.
  Value elementwise(StringRef step, ArrayRef<StepOperand> inputs,
                    StepOperand into, BodyFn body);

  /// Converts a whole rank-4 tensor to the element type of `into`.
  Value convert(StringRef step, Value value, Value into);

  /// Reduces the last of the loops (b, h, m, n). `body` combines an element
  /// with what was reduced before.
  Value reduceRows(StringRef step, ArrayRef<StepOperand> inputs,
                   TypedAttr neutral, BodyFn body);

  /// scores[b, h, m, n] = sum_d q[b, h, m, d] * k[b, h / group, n, d].
  Value matmulQK(Value q, Value k, Value into, StringRef path);
  /// o[b, h, m, d] = sum_n p[b, h, m, n] * v[b, h / group, n, d], where v is 0
  /// behind the keys that the mask_mod shows to some query.
  Value matmulPV(Value p, Value v, Value into, StringRef path);

  //===--------------------------------------------------------------------===//
  // Rules
  //===--------------------------------------------------------------------===//

  /// Operands that the rule's lengths come from: one per dynamic length that it
  /// asks for.
  SmallVector<StepOperand> getRuleOperands(Region &rule, AffineMap scalarMap);

  /// Inlines score_mod or mask_mod in the body of an elementwise op whose last
  /// two loops are (m, n). `leading` is the score of a score_mod, and
  /// `lengths` the elements of getRuleOperands.
  Value inlineRule(ImplicitLocOpBuilder &body, Region &rule, ValueRange leading,
                   ValueRange lengths, unsigned numLoops);

  /// True if the rule depends on the batch or the head.
  static bool dependsOnBatchOrHead(Region &rule);

private:
  NamedAttribute nameStep(StringRef step);
  linalg::GenericOp generic(StringRef step, ArrayRef<StepOperand> inputs,
                            StepOperand into, unsigned numReductions,
                            BodyFn body);
  /// `changeB` gets an element of b and those of `scalars`.
  Value matmul(StringRef step, StepOperand a, StepOperand b, StepOperand into,
               StringRef path, ArrayRef<StepOperand> scalars = {},
               BodyFn changeB = nullptr);
  AffineMap getKVMap(ArrayRef<unsigned> loops);
  /// The limits of the mask_mod to its keys that are the same for all queries.
  SmallVector<KeyLimit> getCommonLimits();
  /// One operand for each dynamic length among `ruleOps`.
  SmallVector<StepOperand> getLengthOperands(ArrayRef<Operation *> ruleOps,
                                             AffineMap scalarMap);
  /// Clones `ruleOps` into a body. `lengths` are the elements of
  /// getLengthOperands.
  void cloneRule(ImplicitLocOpBuilder &body, ArrayRef<Operation *> ruleOps,
                 IRMapping &mapping, ValueRange lengths);
  /// The tensor whose dimension 2 is the length.
  Value getLengthSource(Operation *lengthOp);

  AttentionOp op;
  StringRef variant;
  ImplicitLocOpBuilder builder;
};

/// Converts a float element to `type`, exactly or by rounding to nearest even.
Value convertFloat(ImplicitLocOpBuilder &builder, Value value, Type type);

} // namespace mlir::attn

#endif // ATTN_LIB_CONVERSION_ATTNTOLINALG_SEQUENCEBUILDER_H
