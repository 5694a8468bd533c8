//===- Random.cpp - Reproducible test input -------------------------------===//

#include "attn/Runtime/Random.h"
#include <cmath>

using namespace attn;

/// The finaliser of SplitMix64 (Steele, Lea, Flood 2014).
static uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

/// The increment of SplitMix64: 2^64 over the golden ratio.
static constexpr uint64_t kGolden = 0x9e3779b97f4a7c15ull;

/// Uniform in (0, 1], so that its logarithm is finite.
static double toUniform(uint64_t bits) {
  return static_cast<double>((bits >> 11) + 1) * 0x1p-53;
}

void attn::fillNormal(const Tensor &tensor, uint64_t seed, uint64_t stream) {
  constexpr double kTwoPi = 6.283185307179586;
  const DType dtype = tensor.getDType();
  uint64_t state = mix(mix(seed + kGolden) + stream * kGolden);
  tensor.forEachElement([&](void *element) {
    // Box-Muller; the second value of each pair is dropped, for the sake of
    // elements that don't depend on one another.
    const double radius =
        std::sqrt(-2.0 * std::log(toUniform(mix(state += kGolden))));
    const double angle = kTwoPi * toUniform(mix(state += kGolden));
    const double value = radius * std::cos(angle);
    storeFromDouble(dtype, dtype == DType::I1 ? value > 0 : value, element);
  });
}
