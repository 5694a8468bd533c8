//===- Reference.h - Attention by its definition, in float64 ----*- C++ -*-===//
//
// The oracle of the tests: evaluates attn.attention as its ODS description
// says, interpreting score_mod and mask_mod, and shares no code with any
// lowering.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_REFERENCE_REFERENCE_H
#define ATTN_REFERENCE_REFERENCE_H

#include "attn/Dialect/Attn/IR/AttnOps.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"
#include <array>
#include <memory>
#include <optional>
#include <vector>

namespace attn {

/// A view of a rank-4 host tensor [B, H, N, D] of floats. Strides count
/// elements.
struct ReferenceTensor {
  enum class Type { F8E4M3FN, F8E5M2, F16, BF16, F32, F64 };

  const void *data = nullptr;
  Type type = Type::F64;
  std::array<int64_t, 4> shape = {};
  std::array<int64_t, 4> strides = {};

  /// A contiguous row-major view.
  static ReferenceTensor dense(const void *data, Type type,
                               std::array<int64_t, 4> shape);

  double at(int64_t b, int64_t h, int64_t n, int64_t d) const;
};

/// A view of a host tensor of any rank that a rule reads. Booleans (i1) take a
/// byte. Strides count elements.
struct ReferenceCapture {
  const void *data = nullptr;
  llvm::SmallVector<int64_t, 4> shape, strides;
};

struct ReferenceInputs {
  ReferenceTensor q, k, v;
  /// The value of the op's scale operand; an op without one has its own scale.
  std::optional<double> scale;
  /// One per capture of the op, of the element type that it has there.
  std::vector<ReferenceCapture> captures;
  /// The sink of every query head; empty if the op has none.
  std::vector<double> sink;
  /// What 8-bit values count: one for the tensor, one for each head, or one for
  /// each batch and head, row-major; empty if the op has none.
  std::vector<double> qScale, kScale, vScale;
};

/// One row of the output; `head` is the query head.
struct ReferenceRow {
  int64_t batch, head, query;
};

struct ReferenceResult {
  /// [rows, Dv], row-major.
  std::vector<double> o;
  /// [rows], natural logarithm.
  std::vector<double> lse;
};

/// Evaluates every row, in the order of o[B, Hq, Nq, Dv].
///
/// Integer ops of the regions are exact, f32 and f64 ops are computed in
/// double, f16 and bf16 values are rounded as their type says. What MLIR leaves
/// undefined (a division by zero, a shift past the width) gives 0. An op that
/// the reference can't evaluate, or inputs that don't fit the op, are an error.
llvm::Expected<ReferenceResult>
evaluateReference(mlir::attn::AttentionOp op, const ReferenceInputs &inputs);

/// Evaluates the given rows only, so that a large shape can be checked by
/// sampling.
llvm::Expected<ReferenceResult>
evaluateReferenceRows(mlir::attn::AttentionOp op, const ReferenceInputs &inputs,
                      llvm::ArrayRef<ReferenceRow> rows);

class ScalarProgram;

/// The mask_mod of an operator on concrete captures.
class ReferenceMask {
public:
  /// `op` has a mask_mod; one capture per capture of it.
  static llvm::Expected<ReferenceMask>
  create(mlir::attn::AttentionOp op, llvm::ArrayRef<ReferenceCapture> captures);
  ReferenceMask(ReferenceMask &&other);
  ReferenceMask &operator=(ReferenceMask &&other);
  ~ReferenceMask();

  /// The keys that a row sees, of `keyLength`.
  llvm::BitVector getVisibleKeys(const ReferenceRow &row, int64_t queryLength,
                                 int64_t keyLength) const;

private:
  explicit ReferenceMask(std::unique_ptr<ScalarProgram> program);

  std::unique_ptr<ScalarProgram> program;
};

} // namespace attn

#endif // ATTN_REFERENCE_REFERENCE_H
