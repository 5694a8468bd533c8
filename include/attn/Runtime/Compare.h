//===- Compare.h - Distance of a result from its reference ------*- C++ -*-===//

#ifndef ATTN_RUNTIME_COMPARE_H
#define ATTN_RUNTIME_COMPARE_H

#include "attn/Runtime/Tensor.h"

namespace attn {

struct ErrorNorms {
  /// |actual - expected| / |expected| in the Frobenius norm; the absolute norm
  /// where |expected| is 0.
  double relative = 0;
  double maxAbsolute = 0;
};

/// Compares element by element, in float64. Equal infinities and two NaNs
/// agree; any other element that isn't finite on either side makes both norms
/// infinite. The shapes must be equal.
ErrorNorms compare(const Tensor &actual, const Tensor &expected);

} // namespace attn

#endif // ATTN_RUNTIME_COMPARE_H
