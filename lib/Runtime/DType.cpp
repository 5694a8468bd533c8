//===- DType.cpp - Element types of tensors and scalars -------------------===//

#include "attn/Runtime/DType.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/ErrorHandling.h"
#include <cmath>
#include <cstring>
#include <limits>

using namespace attn;

llvm::StringRef attn::getName(DType dtype) {
  switch (dtype) {
  case DType::F8E4M3FN:
    return "f8E4M3FN";
  case DType::F8E5M2:
    return "f8E5M2";
  case DType::F16:
    return "f16";
  case DType::BF16:
    return "bf16";
  case DType::F32:
    return "f32";
  case DType::F64:
    return "f64";
  case DType::I1:
    return "i1";
  case DType::I8:
    return "i8";
  case DType::I16:
    return "i16";
  case DType::I32:
    return "i32";
  case DType::I64:
    return "i64";
  }
  llvm_unreachable("unknown dtype");
}

std::optional<DType> attn::parseDType(llvm::StringRef name) {
  return llvm::StringSwitch<std::optional<DType>>(name)
      .Case("f8E4M3FN", DType::F8E4M3FN)
      .Case("f8E5M2", DType::F8E5M2)
      .Case("f16", DType::F16)
      .Case("bf16", DType::BF16)
      .Case("f32", DType::F32)
      .Case("f64", DType::F64)
      .Case("i1", DType::I1)
      .Case("i8", DType::I8)
      .Case("i16", DType::I16)
      .Case("i32", DType::I32)
      .Case("i64", DType::I64)
      .Default(std::nullopt);
}

int64_t attn::getByteSize(DType dtype) {
  switch (dtype) {
  case DType::F8E4M3FN:
  case DType::F8E5M2:
  case DType::I1:
  case DType::I8:
    return 1;
  case DType::F16:
  case DType::BF16:
  case DType::I16:
    return 2;
  case DType::F32:
  case DType::I32:
    return 4;
  case DType::F64:
  case DType::I64:
    return 8;
  }
  llvm_unreachable("unknown dtype");
}

bool attn::isFloat(DType dtype) { return dtype <= DType::F64; }

namespace {

/// IEEE-like formats of 8 and 16 bits. Conversions are hand-written since they
/// run over every element of every verified tensor, where APFloat is 50 times
/// slower; the unit test compares all of them with APFloat. Without infinities
/// (OCP's E4M3) only all ones is NaN, and what is too large becomes the largest
/// finite value, as the GPU converts.
template <typename Bits, int exponentBits, int mantissaBits,
          bool hasInfinity = true>
struct SmallFloat {
  static constexpr int kBias = (1 << (exponentBits - 1)) - 1;
  static constexpr int kMinExponent = 1 - kBias;
  static constexpr int kSignShift = exponentBits + mantissaBits;
  static constexpr Bits kMagnitude = (1u << kSignShift) - 1;
  static constexpr Bits kLargestExponent = ((1u << exponentBits) - 1)
                                           << mantissaBits;
  static constexpr Bits kNaN =
      hasInfinity ? kLargestExponent | (1u << (mantissaBits - 1)) : kMagnitude;
  /// What overflows becomes.
  static constexpr Bits kOverflow =
      hasInfinity ? kLargestExponent : kMagnitude - 1;

  static double decode(Bits bits) {
    const double sign = bits >> kSignShift ? -1.0 : 1.0;
    const int exponent = (bits & kMagnitude) >> mantissaBits;
    const int mantissa = bits & ((1 << mantissaBits) - 1);
    if (hasInfinity && exponent == (1 << exponentBits) - 1)
      return mantissa ? std::numeric_limits<double>::quiet_NaN()
                      : sign * std::numeric_limits<double>::infinity();
    if (!hasInfinity && (bits & kMagnitude) == kNaN)
      return std::numeric_limits<double>::quiet_NaN();
    if (exponent == 0)
      return sign * std::ldexp(mantissa, kMinExponent - mantissaBits);
    return sign * std::ldexp(mantissa + (1 << mantissaBits),
                             exponent - kBias - mantissaBits);
  }

  static Bits encode(double value) {
    const uint64_t bits = llvm::bit_cast<uint64_t>(value);
    const Bits sign = Bits(bits >> 63) << kSignShift;
    if (std::isnan(value))
      return sign | kNaN;
    if (std::isinf(value))
      return sign | kOverflow;
    const int doubleExponent = (bits >> 52) & 0x7ff;
    // A subnormal double is far below half of any subnormal of the format.
    if (doubleExponent == 0)
      return sign;
    const int exponent = doubleExponent - 1023;
    const uint64_t significand = (bits & ((1ull << 52) - 1)) | (1ull << 52);
    const int denormalShift = std::max(0, kMinExponent - exponent);
    const int shift = 52 - mantissaBits + denormalShift;
    // Less than a quarter of the smallest subnormal.
    if (shift > 54)
      return sign;
    uint64_t rounded = significand >> shift;
    const uint64_t rest = significand & ((1ull << shift) - 1);
    const uint64_t half = 1ull << (shift - 1);
    if (rest > half || (rest == half && (rounded & 1)))
      ++rounded;
    // The implicit bit of `rounded` adds the last one to the exponent, and so
    // does a carry out of the mantissa.
    if (denormalShift == 0)
      rounded += uint64_t(exponent + kBias - 1) << mantissaBits;
    return sign | Bits(std::min<uint64_t>(rounded, kOverflow));
  }
};

using Float8E4M3FN = SmallFloat<uint8_t, 4, 3, /*hasInfinity=*/false>;
using Float8E5M2 = SmallFloat<uint8_t, 5, 2>;
using Half = SmallFloat<uint16_t, 5, 10>;
using BFloat = SmallFloat<uint16_t, 8, 7>;

template <typename T>
T load(const void *src) {
  T value;
  std::memcpy(&value, src, sizeof(T));
  return value;
}

template <typename T>
void store(T value, void *dst) {
  std::memcpy(dst, &value, sizeof(T));
}

template <typename T>
void storeInteger(double value, void *dst) {
  using Limits = std::numeric_limits<T>;
  const double rounded = std::nearbyint(value);
  if (std::isnan(rounded))
    return store<T>(0, dst);
  // -2^(n-1) is a double, 2^(n-1)-1 may not be.
  if (rounded >= -static_cast<double>(Limits::min()))
    return store<T>(Limits::max(), dst);
  if (rounded < static_cast<double>(Limits::min()))
    return store<T>(Limits::min(), dst);
  store<T>(static_cast<T>(rounded), dst);
}

} // namespace

double attn::loadAsDouble(DType dtype, const void *src) {
  switch (dtype) {
  case DType::F8E4M3FN:
    return Float8E4M3FN::decode(load<uint8_t>(src));
  case DType::F8E5M2:
    return Float8E5M2::decode(load<uint8_t>(src));
  case DType::F16:
    return Half::decode(load<uint16_t>(src));
  case DType::BF16:
    return llvm::bit_cast<float>(uint32_t(load<uint16_t>(src)) << 16);
  case DType::F32:
    return load<float>(src);
  case DType::F64:
    return load<double>(src);
  case DType::I1:
    return load<uint8_t>(src) != 0;
  case DType::I8:
    return load<int8_t>(src);
  case DType::I16:
    return load<int16_t>(src);
  case DType::I32:
    return load<int32_t>(src);
  case DType::I64:
    return static_cast<double>(load<int64_t>(src));
  }
  llvm_unreachable("unknown dtype");
}

void attn::storeFromDouble(DType dtype, double value, void *dst) {
  switch (dtype) {
  case DType::F8E4M3FN:
    return store<uint8_t>(Float8E4M3FN::encode(value), dst);
  case DType::F8E5M2:
    return store<uint8_t>(Float8E5M2::encode(value), dst);
  case DType::F16:
    return store<uint16_t>(Half::encode(value), dst);
  case DType::BF16:
    return store<uint16_t>(BFloat::encode(value), dst);
  case DType::F32:
    return store<float>(static_cast<float>(value), dst);
  case DType::F64:
    return store<double>(value, dst);
  case DType::I1:
    return store<uint8_t>(value != 0, dst);
  case DType::I8:
    return storeInteger<int8_t>(value, dst);
  case DType::I16:
    return storeInteger<int16_t>(value, dst);
  case DType::I32:
    return storeInteger<int32_t>(value, dst);
  case DType::I64:
    return storeInteger<int64_t>(value, dst);
  }
  llvm_unreachable("unknown dtype");
}
