//===- ScalarProgram.h - Interprets a mod region over a row -----*- C++ -*-===//

#ifndef ATTN_LIB_REFERENCE_SCALARPROGRAM_H
#define ATTN_LIB_REFERENCE_SCALARPROGRAM_H

#include "attn/Reference/Reference.h"
#include "mlir/IR/Region.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"
#include <functional>
#include <vector>

namespace attn {

/// One scalar. Integers are kept sign-extended from their width, floats of any
/// type as double.
union Scalar {
  double f;
  int64_t i;
};

/// The values of one SSA value along a row of keys: one if it does not depend
/// on the key, else one per key.
using ScalarRow = std::vector<Scalar>;

/// What the evaluation of an op needs to know besides its operands.
struct ScalarOpInfo {
  mlir::Type inType, outType;
  /// Bits of the first operand and of the first result.
  unsigned inWidth = 0, outWidth = 0;
  /// Predicate of a comparison.
  int64_t predicate = 0;
};

using ScalarEval =
    std::function<void(const ScalarOpInfo &, const Scalar *, Scalar *)>;

/// The body of a score_mod or mask_mod as a list of instructions on rows.
/// Values that don't depend on the key are computed once per row.
class ScalarProgram {
public:
  /// `varyingArgs` lists the region's arguments that differ from key to key,
  /// and `captures` what its last arguments stand for.
  static llvm::Expected<ScalarProgram>
  compile(mlir::Region &region, llvm::ArrayRef<unsigned> varyingArgs,
          llvm::ArrayRef<ReferenceCapture> captures);

  /// Evaluates the region for `numKeys` keys. `args` has one row per argument
  /// that isn't a capture, as `varyingArgs` says. The result has one or
  /// `numKeys` elements.
  ScalarRow run(llvm::MutableArrayRef<ScalarRow> args, int64_t queryLength,
                int64_t keyLength, int64_t numKeys) const;

private:
  struct Instruction {
    /// `rows` has a row for each slot, `varying` a bit.
    void run(std::vector<ScalarRow> &rows, const llvm::BitVector &varying,
             int64_t numKeys) const;

    ScalarEval eval;
    ScalarOpInfo info;
    llvm::SmallVector<unsigned, 3> operands;
    unsigned firstResult = 0;
    llvm::SmallVector<mlir::Type, 2> resultTypes;
  };

  llvm::Error addOp(mlir::Operation &op);
  llvm::Error addCaptureLoad(mlir::attn::CaptureLoadOp load);
  llvm::Error addInstruction(mlir::Operation &op, mlir::ValueRange operands,
                             ScalarEval eval);
  unsigned addSlot(mlir::Value value, bool isVarying);

  llvm::DenseMap<mlir::Value, unsigned> slots;
  llvm::DenseMap<mlir::Value, ReferenceCapture> captures;
  llvm::BitVector varying;
  std::vector<Instruction> instructions;
  std::vector<std::pair<unsigned, Scalar>> constants;
  llvm::SmallVector<unsigned, 1> queryLengthSlots, keyLengthSlots;
  unsigned resultSlot = 0;
};

} // namespace attn

#endif // ATTN_LIB_REFERENCE_SCALARPROGRAM_H
