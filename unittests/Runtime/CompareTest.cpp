//===- CompareTest.cpp - Error norms --------------------------------------===//

#include "attn/Runtime/Compare.h"
#include "TestUtils.h"
#include <cmath>
#include <limits>

using namespace attn;
using namespace attn::test;

static constexpr double kInfinity = std::numeric_limits<double>::infinity();
static constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

static ErrorNorms compareValues(std::vector<double> actual,
                                std::vector<double> expected) {
  const int64_t size = actual.size();
  return compare(Tensor::borrow(DType::F64, {size}, {1}, actual.data()),
                 Tensor::borrow(DType::F64, {size}, {1}, expected.data()));
}

TEST(CompareTest, RelativeFrobenius) {
  ErrorNorms norms = compareValues({3, 4.5}, {3, 4});
  EXPECT_DOUBLE_EQ(norms.relative, 0.1);
  EXPECT_DOUBLE_EQ(norms.maxAbsolute, 0.5);
}

TEST(CompareTest, ZeroReferenceGivesTheAbsoluteNorm) {
  EXPECT_DOUBLE_EQ(compareValues({0.3, 0.4}, {0, 0}).relative, 0.5);
  EXPECT_EQ(compareValues({0, 0}, {0, 0}).relative, 0);
}

TEST(CompareTest, NonFiniteValuesMustAgree) {
  EXPECT_EQ(compareValues({-kInfinity, kNaN}, {-kInfinity, kNaN}).relative, 0);
  EXPECT_EQ(compareValues({kNaN}, {0}).relative, kInfinity);
  EXPECT_EQ(compareValues({0}, {kNaN}).maxAbsolute, kInfinity);
  EXPECT_EQ(compareValues({-1e300}, {-kInfinity}).relative, kInfinity);
  EXPECT_EQ(compareValues({kInfinity}, {-kInfinity}).relative, kInfinity);
}
