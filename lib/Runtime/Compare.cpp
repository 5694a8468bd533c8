//===- Compare.cpp - Distance of a result from its reference --------------===//

#include "attn/Runtime/Compare.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>
#include <limits>

using namespace attn;

static bool agreesNonFinite(double actual, double expected) {
  return actual == expected || (std::isnan(actual) && std::isnan(expected));
}

ErrorNorms attn::compare(const Tensor &actual, const Tensor &expected) {
  assert(actual.getShape() == expected.getShape() && "different shapes");
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  double differences = 0, norm = 0, maxAbsolute = 0;
  for (auto [a, e] :
       llvm::zip_equal(actual.toDoubles(), expected.toDoubles())) {
    if (!std::isfinite(a) || !std::isfinite(e)) {
      if (agreesNonFinite(a, e))
        continue;
      return {kInfinity, kInfinity};
    }
    differences += (a - e) * (a - e);
    norm += e * e;
    maxAbsolute = std::max(maxAbsolute, std::abs(a - e));
  }
  const double distance = std::sqrt(differences);
  return {norm == 0 ? distance : distance / std::sqrt(norm), maxAbsolute};
}
