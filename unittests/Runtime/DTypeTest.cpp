//===- DTypeTest.cpp - Conversions against APFloat ------------------------===//

#include "attn/Runtime/DType.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/bit.h"
#include "gtest/gtest.h"
#include <cmath>
#include <limits>
#include <random>

using namespace attn;

static double decodeWithAPFloat(const llvm::fltSemantics &semantics,
                                uint16_t bits) {
  const unsigned size = llvm::APFloat::getSizeInBits(semantics);
  llvm::APFloat value(semantics, llvm::APInt(size, bits));
  bool losesInfo;
  value.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven,
                &losesInfo);
  return value.convertToDouble();
}

static uint16_t encodeWithAPFloat(const llvm::fltSemantics &semantics,
                                  double input) {
  llvm::APFloat value(input);
  bool losesInfo;
  value.convert(semantics, llvm::APFloat::rmNearestTiesToEven, &losesInfo);
  return value.bitcastToAPInt().getZExtValue();
}

static uint16_t encode(DType dtype, double value) {
  uint16_t bits = 0;
  storeFromDouble(dtype, value, &bits);
  return bits;
}

namespace {

struct SmallFormat {
  DType dtype;
  const llvm::fltSemantics &(*semantics)();
};

class SmallFloatTest : public testing::TestWithParam<SmallFormat> {};

} // namespace

TEST_P(SmallFloatTest, DecodesEveryPattern) {
  const auto [dtype, semantics] = GetParam();
  for (unsigned i = 0; i < 1u << (8 * getByteSize(dtype)); ++i) {
    const uint16_t bits = i;
    const double expected = decodeWithAPFloat(semantics(), bits);
    const double actual = loadAsDouble(dtype, &bits);
    if (std::isnan(expected))
      ASSERT_TRUE(std::isnan(actual)) << i;
    else
      ASSERT_EQ(llvm::bit_cast<uint64_t>(actual),
                llvm::bit_cast<uint64_t>(expected))
          << i;
  }
}

TEST_P(SmallFloatTest, RoundsLikeAPFloat) {
  const auto [dtype, semantics] = GetParam();
  // Every value, the midpoint to its neighbour, and both sides of that.
  for (unsigned i = 0; i < (1u << (8 * getByteSize(dtype))) - 1; ++i) {
    const double low = decodeWithAPFloat(semantics(), i);
    const double high = decodeWithAPFloat(semantics(), i + 1);
    if (!std::isfinite(low))
      continue;
    const double middle = std::isfinite(high) ? (low + high) / 2 : low * 1.001;
    for (double value : {low, middle, std::nextafter(middle, low),
                         std::nextafter(middle, high)})
      ASSERT_EQ(encode(dtype, value), encodeWithAPFloat(semantics(), value))
          << value;
  }
  std::mt19937_64 random(1);
  for (unsigned i = 0; i < 100000; ++i) {
    const double value = llvm::bit_cast<double>(random());
    if (!std::isnan(value))
      ASSERT_EQ(encode(dtype, value), encodeWithAPFloat(semantics(), value))
          << value;
  }
}

TEST_P(SmallFloatTest, KeepsNaN) {
  const DType dtype = GetParam().dtype;
  const uint16_t bits = encode(dtype, std::numeric_limits<double>::quiet_NaN());
  EXPECT_TRUE(std::isnan(loadAsDouble(dtype, &bits)));
}

INSTANTIATE_TEST_SUITE_P(
    Formats, SmallFloatTest,
    testing::Values(SmallFormat{DType::F8E5M2, llvm::APFloat::Float8E5M2},
                    SmallFormat{DType::F16, llvm::APFloat::IEEEhalf},
                    SmallFormat{DType::BF16, llvm::APFloat::BFloat}),
    [](const auto &info) { return getName(info.param.dtype).str(); });

/// E4M3 has no infinity: what APFloat makes NaN is the largest value here, as
/// on the GPU.
TEST(DTypeTest, E4M3RoundsLikeAPFloatAndSaturates) {
  const llvm::fltSemantics &semantics = llvm::APFloat::Float8E4M3FN();
  for (unsigned i = 0; i < 0x100; ++i) {
    const uint8_t bits = i;
    const double value = decodeWithAPFloat(semantics, bits);
    const double actual = loadAsDouble(DType::F8E4M3FN, &bits);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(actual)) << i;
      continue;
    }
    EXPECT_EQ(llvm::bit_cast<uint64_t>(actual),
              llvm::bit_cast<uint64_t>(value));
    for (double factor : {1.0, 0.97, 1.03125, 1.05})
      if (std::abs(value * factor) < 448)
        EXPECT_EQ(encode(DType::F8E4M3FN, value * factor),
                  encodeWithAPFloat(semantics, value * factor))
            << value * factor;
  }
  constexpr uint8_t kLargest = 0x7e;
  for (double value :
       {448.0, 463.0, 465.0, 1e30, std::numeric_limits<double>::infinity()}) {
    EXPECT_EQ(encode(DType::F8E4M3FN, value), kLargest) << value;
    EXPECT_EQ(encode(DType::F8E4M3FN, -value), 0x80 | kLargest) << value;
  }
  EXPECT_EQ(encode(DType::F8E4M3FN, std::numeric_limits<double>::quiet_NaN()) &
                0x7f,
            0x7f);
}

TEST(DTypeTest, IntegersSaturateAndRoundToEven) {
  int8_t i8;
  storeFromDouble(DType::I8, 2.5, &i8);
  EXPECT_EQ(i8, 2);
  storeFromDouble(DType::I8, 1000, &i8);
  EXPECT_EQ(i8, 127);
  storeFromDouble(DType::I8, -1000, &i8);
  EXPECT_EQ(i8, -128);
  int64_t i64;
  storeFromDouble(DType::I64, 0x1p63, &i64);
  EXPECT_EQ(i64, std::numeric_limits<int64_t>::max());
  storeFromDouble(DType::I64, -0x1p63, &i64);
  EXPECT_EQ(i64, std::numeric_limits<int64_t>::min());
  storeFromDouble(DType::I64, std::numeric_limits<double>::quiet_NaN(), &i64);
  EXPECT_EQ(i64, 0);
}

TEST(DTypeTest, NamesRoundTrip) {
  for (llvm::StringRef name : {"f8E4M3FN", "f8E5M2", "f16", "bf16", "f32",
                               "f64", "i1", "i8", "i16", "i32", "i64"}) {
    ASSERT_TRUE(parseDType(name)) << name.str();
    EXPECT_EQ(getName(*parseDType(name)), name);
  }
  EXPECT_FALSE(parseDType("f8"));
}
