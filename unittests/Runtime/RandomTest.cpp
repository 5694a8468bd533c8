//===- RandomTest.cpp - Reproducible input --------------------------------===//

#include "attn/Runtime/Random.h"
#include "TestUtils.h"
#include <cmath>

using namespace attn;
using namespace attn::test;

static std::vector<double> draw(DType dtype, std::vector<int64_t> shape,
                                uint64_t seed, uint64_t stream) {
  Tensor tensor = get(Tensor::allocate(dtype, shape));
  fillNormal(tensor, seed, stream);
  return tensor.toDoubles();
}

TEST(RandomTest, IsStandardNormal) {
  const std::vector<double> values = draw(DType::F64, {100000}, 7, 0);
  double sum = 0, squares = 0, fourths = 0;
  for (double value : values) {
    sum += value;
    squares += value * value;
    fourths += value * value * value * value;
  }
  // Standard errors are 0.003, 0.0045 and 0.03.
  EXPECT_NEAR(sum / values.size(), 0, 0.015);
  EXPECT_NEAR(squares / values.size(), 1, 0.02);
  EXPECT_NEAR(fourths / values.size(), 3, 0.15);
}

TEST(RandomTest, DependsOnSeedAndStreamOnly) {
  const auto first = draw(DType::F32, {64}, 1, 0);
  EXPECT_EQ(first, draw(DType::F32, {4, 16}, 1, 0));
  EXPECT_NE(first, draw(DType::F32, {64}, 2, 0));
  EXPECT_NE(first, draw(DType::F32, {64}, 1, 1));
}

TEST(RandomTest, BooleansAreFair) {
  double sum = 0;
  for (double value : draw(DType::I1, {10000}, 3, 0))
    sum += value;
  EXPECT_NEAR(sum, 5000, 250);
}
