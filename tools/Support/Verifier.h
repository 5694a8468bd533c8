//===- Verifier.h - Results against the float64 reference -------*- C++ -*-===//

#ifndef ATTN_TOOLS_SUPPORT_VERIFIER_H
#define ATTN_TOOLS_SUPPORT_VERIFIER_H

#include "attn/Reference/Reference.h"
#include "attn/Runtime/Report.h"
#include "attn/Runtime/Tensor.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace attn {

/// The relative error beyond which a result of inputs of `dtype` is wrong
/// rather than rounded: some ten times the unit roundoff, which leaves room for
/// variants that round the intermediates to the dtype.
double getTolerance(DType dtype);

/// Holds the float64 reference of an entry function for given arguments; of
/// large shapes, that of a sample of the rows.
class Verifier {
public:
  /// `entry` must hold one attn.attention on its own arguments, which are
  /// `arguments`, or views of them. Evaluates the reference, which is slow.
  static llvm::Expected<Verifier> create(mlir::func::FuncOp entry,
                                         llvm::ArrayRef<Tensor> arguments);

  /// Writes the errors of the outputs among `arguments` to `report`; an error
  /// beyond what the dtype explains makes its status "error".
  void check(llvm::ArrayRef<Tensor> arguments, VariantReport &report) const;

private:
  mlir::Value output;
  double tolerance = 0;
  std::optional<unsigned> lseIndex;
  std::vector<ReferenceRow> rows;
  bool isSample = false;
  ReferenceResult expected;
};

} // namespace attn

#endif // ATTN_TOOLS_SUPPORT_VERIFIER_H
