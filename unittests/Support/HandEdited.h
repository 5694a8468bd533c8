//===- HandEdited.h - kv_loops that a person changed ------------*- C++ -*-===//
//
// Every pass on kv_loop takes the loop as it is: another activation, an
// operation between the scores and P, no scale. The oracle is in double.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_UNITTESTS_SUPPORT_HANDEDITED_H
#define ATTN_UNITTESTS_SUPPORT_HANDEDITED_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <functional>
#include <ostream>
#include <string>
#include <vector>

namespace attn::test {

/// A change of the causal kernel below.
struct Edit {
  /// Operations of the kernel: `score` makes %t from the masked scores %x;
  /// `softmax` makes %p, %m1, %l1 and %a; `out` makes the output tile %y from
  /// the carried values %r.
  const char *name, *score, *softmax, *out;
  /// The score that a visible or hidden key gets.
  std::function<double(double)> visible;
  double hidden;
  /// Its weight.
  std::function<double(double)> weight;
  bool normalized;
};

void PrintTo(const Edit &edit, std::ostream *os);

std::vector<Edit> getEdits();

/// The tiles of a kernel and how it multiplies.
struct KernelShape {
  int64_t blockM, blockN, headDim;
  /// "f32" is multiplied with FMA, 16-bit types with matrix instructions.
  const char *element;
  int64_t numWarps;
  /// Further attributes of the kernel, each with a comma in front.
  const char *attributes = "";
};

/// `tile.kernel @edited(q, k, v, o)` on rank-2 memrefs with dynamic lengths.
std::string makeKernel(const Edit &edit, const KernelShape &shape);

/// One row of the output. `q`, `k` and `v` are row-major.
std::vector<double> evaluateRow(const Edit &edit, const KernelShape &shape,
                                llvm::ArrayRef<double> q,
                                llvm::ArrayRef<double> k,
                                llvm::ArrayRef<double> v, int64_t row);

} // namespace attn::test

#endif // ATTN_UNITTESTS_SUPPORT_HANDEDITED_H
