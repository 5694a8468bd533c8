//===- ScalarProgram.cpp - Interprets a mod region over a row -------------===//

#include "ScalarProgram.h"
#include "attn/Dialect/Attn/IR/AttnOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using mlir::FloatType;
using mlir::Type;
using namespace attn;

//===----------------------------------------------------------------------===//
// Scalars
//===----------------------------------------------------------------------===//

/// Bits of a scalar type that the reference can hold; 0 for any other.
static unsigned getWidth(Type type) {
  if (type.isIndex())
    return 64;
  if (type.isSignlessInteger() && type.getIntOrFloatBitWidth() <= 64)
    return type.getIntOrFloatBitWidth();
  if (type.isF16() || type.isBF16() || type.isF32() || type.isF64())
    return type.getIntOrFloatBitWidth();
  return 0;
}

static llvm::APFloat toAPFloat(double value, Type type) {
  llvm::APFloat result(value);
  bool losesInfo;
  result.convert(llvm::cast<FloatType>(type).getFloatSemantics(),
                 llvm::APFloat::rmNearestTiesToEven, &losesInfo);
  return result;
}

static double toDouble(llvm::APFloat value) {
  bool losesInfo;
  value.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven,
                &losesInfo);
  return value.convertToDouble();
}

static double roundTo(double value, Type type) {
  return toDouble(toAPFloat(value, type));
}

static int64_t signExtend(int64_t value, unsigned width) {
  return width == 0 ? 0 : llvm::SignExtend64(value, width);
}

static uint64_t zeroExtend(int64_t value, unsigned width) {
  return static_cast<uint64_t>(value) & llvm::maskTrailingOnes<uint64_t>(width);
}

/// Brings what evaluations wrote into the form that `Scalar` documents.
static void canonicalize(ScalarRow &row, Type type) {
  const unsigned width = getWidth(type);
  if (!llvm::isa<FloatType>(type)) {
    for (Scalar &value : row)
      value.i = signExtend(value.i, width);
  } else if (width == 16) {
    for (Scalar &value : row)
      value.f = roundTo(value.f, type);
  }
}

//===----------------------------------------------------------------------===//
// Integer and float semantics
//===----------------------------------------------------------------------===//

static int64_t wrapAdd(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) +
                              static_cast<uint64_t>(b));
}
static int64_t wrapSub(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) -
                              static_cast<uint64_t>(b));
}
static int64_t wrapMul(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) *
                              static_cast<uint64_t>(b));
}

static int64_t divSigned(int64_t a, int64_t b) {
  if (b == 0)
    return 0;
  return b == -1 ? wrapSub(0, a) : a / b;
}
static int64_t remSigned(int64_t a, int64_t b) {
  return b == 0 || b == -1 ? 0 : a % b;
}
static int64_t floorDivSigned(int64_t a, int64_t b) {
  bool isInexactNegative = remSigned(a, b) != 0 && (a < 0) != (b < 0);
  return divSigned(a, b) - (isInexactNegative ? 1 : 0);
}
static int64_t ceilDivSigned(int64_t a, int64_t b) {
  bool isInexactPositive = remSigned(a, b) != 0 && (a < 0) == (b < 0);
  return divSigned(a, b) + (isInexactPositive ? 1 : 0);
}

static int64_t powSigned(int64_t base, int64_t exponent) {
  if (exponent < 0) {
    if (base == 1 || base == -1)
      return exponent % 2 == 0 ? 1 : base;
    return 0;
  }
  int64_t result = 1;
  for (; exponent != 0; exponent >>= 1, base = wrapMul(base, base))
    if (exponent & 1)
      result = wrapMul(result, base);
  return result;
}

/// The nearest integer of `width` bits towards zero; NaN gives 0.
static int64_t toSigned(double value, unsigned width) {
  if (std::isnan(value))
    return 0;
  double bound = std::ldexp(1.0, width - 1);
  if (value >= bound)
    return llvm::maxIntN(width);
  return value <= -bound ? llvm::minIntN(width) : static_cast<int64_t>(value);
}
static uint64_t toUnsigned(double value, unsigned width) {
  if (std::isnan(value) || value <= 0)
    return 0;
  if (value >= std::ldexp(1.0, width))
    return llvm::maskTrailingOnes<uint64_t>(width);
  return static_cast<uint64_t>(value);
}

/// IEEE 754-2019 maximum: NaN propagates and -0 < +0.
static double maximum(double a, double b) {
  if (std::isnan(a) || std::isnan(b))
    return NAN;
  if (a == b)
    return std::signbit(a) ? b : a;
  return a > b ? a : b;
}
static double minimum(double a, double b) { return -maximum(-a, -b); }

static bool compareInts(int64_t predicate, int64_t a, int64_t b,
                        unsigned width) {
  using mlir::arith::CmpIPredicate;
  uint64_t ua = zeroExtend(a, width), ub = zeroExtend(b, width);
  switch (static_cast<CmpIPredicate>(predicate)) {
  case CmpIPredicate::eq:
    return a == b;
  case CmpIPredicate::ne:
    return a != b;
  case CmpIPredicate::slt:
    return a < b;
  case CmpIPredicate::sle:
    return a <= b;
  case CmpIPredicate::sgt:
    return a > b;
  case CmpIPredicate::sge:
    return a >= b;
  case CmpIPredicate::ult:
    return ua < ub;
  case CmpIPredicate::ule:
    return ua <= ub;
  case CmpIPredicate::ugt:
    return ua > ub;
  case CmpIPredicate::uge:
    return ua >= ub;
  }
  llvm_unreachable("unknown integer predicate");
}

static bool compareFloats(int64_t predicate, double a, double b) {
  using mlir::arith::CmpFPredicate;
  bool isUnordered = std::isnan(a) || std::isnan(b);
  switch (static_cast<CmpFPredicate>(predicate)) {
  case CmpFPredicate::AlwaysFalse:
    return false;
  case CmpFPredicate::OEQ:
    return a == b;
  case CmpFPredicate::OGT:
    return a > b;
  case CmpFPredicate::OGE:
    return a >= b;
  case CmpFPredicate::OLT:
    return a < b;
  case CmpFPredicate::OLE:
    return a <= b;
  case CmpFPredicate::ONE:
    return !isUnordered && a != b;
  case CmpFPredicate::ORD:
    return !isUnordered;
  case CmpFPredicate::UEQ:
    return isUnordered || a == b;
  case CmpFPredicate::UGT:
    return isUnordered || a > b;
  case CmpFPredicate::UGE:
    return isUnordered || a >= b;
  case CmpFPredicate::ULT:
    return isUnordered || a < b;
  case CmpFPredicate::ULE:
    return isUnordered || a <= b;
  case CmpFPredicate::UNE:
    return a != b;
  case CmpFPredicate::UNO:
    return isUnordered;
  case CmpFPredicate::AlwaysTrue:
    return true;
  }
  llvm_unreachable("unknown float predicate");
}

static void evalBitcast(const ScalarOpInfo &info, const Scalar *in,
                        Scalar *out) {
  auto outFloat = llvm::dyn_cast<FloatType>(info.outType);
  llvm::APInt bits(info.inWidth, zeroExtend(in->i, info.inWidth));
  if (llvm::isa<FloatType>(info.inType))
    bits = toAPFloat(in->f, info.inType).bitcastToAPInt();
  if (outFloat)
    out->f = toDouble(llvm::APFloat(outFloat.getFloatSemantics(), bits));
  else
    out->i = bits.getSExtValue();
}

//===----------------------------------------------------------------------===//
// The table of ops
//===----------------------------------------------------------------------===//

static ScalarEval float1(double (*fn)(double)) {
  return [fn](const ScalarOpInfo &, const Scalar *in, Scalar *out) {
    out->f = fn(in[0].f);
  };
}
static ScalarEval float2(double (*fn)(double, double)) {
  return [fn](const ScalarOpInfo &, const Scalar *in, Scalar *out) {
    out->f = fn(in[0].f, in[1].f);
  };
}
static ScalarEval float3(double (*fn)(double, double, double)) {
  return [fn](const ScalarOpInfo &, const Scalar *in, Scalar *out) {
    out->f = fn(in[0].f, in[1].f, in[2].f);
  };
}
static ScalarEval floatTest(bool (*fn)(double)) {
  return [fn](const ScalarOpInfo &, const Scalar *in, Scalar *out) {
    out->i = fn(in[0].f);
  };
}
static ScalarEval signed2(int64_t (*fn)(int64_t, int64_t)) {
  return [fn](const ScalarOpInfo &, const Scalar *in, Scalar *out) {
    out->i = fn(in[0].i, in[1].i);
  };
}
static ScalarEval unsigned2(uint64_t (*fn)(uint64_t, uint64_t)) {
  return [fn](const ScalarOpInfo &info, const Scalar *in, Scalar *out) {
    out->i = static_cast<int64_t>(fn(zeroExtend(in[0].i, info.inWidth),
                                     zeroExtend(in[1].i, info.inWidth)));
  };
}
/// A bit count or shift, which needs the width: fn(value, other, width).
static ScalarEval bits2(int64_t (*fn)(int64_t, uint64_t, unsigned)) {
  return [fn](const ScalarOpInfo &info, const Scalar *in, Scalar *out) {
    out->i = fn(in[0].i, zeroExtend(in[1].i, info.inWidth), info.inWidth);
  };
}
static ScalarEval bits1(int64_t (*fn)(uint64_t, unsigned)) {
  return [fn](const ScalarOpInfo &info, const Scalar *in, Scalar *out) {
    out->i = fn(zeroExtend(in[0].i, info.inWidth), info.inWidth);
  };
}

static void addArithIntegers(llvm::StringMap<ScalarEval> &table) {
  table["arith.addi"] = signed2(wrapAdd);
  table["arith.subi"] = signed2(wrapSub);
  table["arith.muli"] = signed2(wrapMul);
  table["arith.divsi"] = signed2(divSigned);
  table["arith.remsi"] = signed2(remSigned);
  table["arith.floordivsi"] = signed2(floorDivSigned);
  table["arith.ceildivsi"] = signed2(ceilDivSigned);
  table["arith.maxsi"] =
      signed2([](int64_t a, int64_t b) { return std::max(a, b); });
  table["arith.minsi"] =
      signed2([](int64_t a, int64_t b) { return std::min(a, b); });
  table["arith.andi"] = signed2([](int64_t a, int64_t b) { return a & b; });
  table["arith.ori"] = signed2([](int64_t a, int64_t b) { return a | b; });
  table["arith.xori"] = signed2([](int64_t a, int64_t b) { return a ^ b; });
  table["arith.divui"] = unsigned2(
      [](uint64_t a, uint64_t b) { return b == 0 ? uint64_t(0) : a / b; });
  table["arith.remui"] = unsigned2(
      [](uint64_t a, uint64_t b) { return b == 0 ? uint64_t(0) : a % b; });
  table["arith.ceildivui"] = unsigned2([](uint64_t a, uint64_t b) {
    return b == 0 ? uint64_t(0) : a / b + (a % b != 0);
  });
  table["arith.maxui"] =
      unsigned2([](uint64_t a, uint64_t b) { return std::max(a, b); });
  table["arith.minui"] =
      unsigned2([](uint64_t a, uint64_t b) { return std::min(a, b); });
  table["arith.shli"] = bits2([](int64_t a, uint64_t n, unsigned width) {
    return n >= width ? 0 : static_cast<int64_t>(static_cast<uint64_t>(a) << n);
  });
  table["arith.shrsi"] = bits2([](int64_t a, uint64_t n, unsigned width) {
    return n >= width ? 0 : a >> n;
  });
  table["arith.shrui"] = bits2([](int64_t a, uint64_t n, unsigned width) {
    return n >= width ? 0 : static_cast<int64_t>(zeroExtend(a, width) >> n);
  });
  table["arith.addui_extended"] = [](const ScalarOpInfo &info, const Scalar *in,
                                     Scalar *out) {
    out[0].i = signExtend(wrapAdd(in[0].i, in[1].i), info.inWidth);
    out[1].i =
        zeroExtend(out[0].i, info.inWidth) < zeroExtend(in[0].i, info.inWidth);
  };
  table["arith.mulsi_extended"] = [](const ScalarOpInfo &info, const Scalar *in,
                                     Scalar *out) {
    __int128 product = static_cast<__int128>(in[0].i) * in[1].i;
    out[0].i = static_cast<int64_t>(product);
    out[1].i = static_cast<int64_t>(product >> info.inWidth);
  };
  table["arith.mului_extended"] = [](const ScalarOpInfo &info, const Scalar *in,
                                     Scalar *out) {
    unsigned __int128 product =
        static_cast<unsigned __int128>(zeroExtend(in[0].i, info.inWidth)) *
        zeroExtend(in[1].i, info.inWidth);
    out[0].i = static_cast<int64_t>(product);
    out[1].i = static_cast<int64_t>(product >> info.inWidth);
  };
  table["arith.cmpi"] = [](const ScalarOpInfo &info, const Scalar *in,
                           Scalar *out) {
    out->i = compareInts(info.predicate, in[0].i, in[1].i, info.inWidth);
  };
}

static void addArithFloats(llvm::StringMap<ScalarEval> &table) {
  table["arith.negf"] = float1([](double a) { return -a; });
  table["arith.addf"] = float2([](double a, double b) { return a + b; });
  table["arith.subf"] = float2([](double a, double b) { return a - b; });
  table["arith.mulf"] = float2([](double a, double b) { return a * b; });
  table["arith.divf"] = float2([](double a, double b) { return a / b; });
  table["arith.remf"] = float2(std::fmod);
  table["arith.maximumf"] = float2(maximum);
  table["arith.minimumf"] = float2(minimum);
  table["arith.maxnumf"] = float2(std::fmax);
  table["arith.minnumf"] = float2(std::fmin);
  table["arith.cmpf"] = [](const ScalarOpInfo &info, const Scalar *in,
                           Scalar *out) {
    out->i = compareFloats(info.predicate, in[0].f, in[1].f);
  };
}

static void addArithCasts(llvm::StringMap<ScalarEval> &table) {
  ScalarEval copy = [](const ScalarOpInfo &, const Scalar *in, Scalar *out) {
    *out = *in;
  };
  ScalarEval zeroExtended = [](const ScalarOpInfo &info, const Scalar *in,
                               Scalar *out) {
    out->i = static_cast<int64_t>(zeroExtend(in->i, info.inWidth));
  };
  table["arith.extsi"] = copy;
  table["arith.trunci"] = copy;
  table["arith.index_cast"] = copy;
  table["arith.extui"] = zeroExtended;
  table["arith.index_castui"] = zeroExtended;
  table["arith.extf"] = copy;
  table["arith.truncf"] = [](const ScalarOpInfo &info, const Scalar *in,
                             Scalar *out) {
    out->f = roundTo(in->f, info.outType);
  };
  table["arith.sitofp"] = [](const ScalarOpInfo &, const Scalar *in,
                             Scalar *out) { out->f = in->i; };
  table["arith.uitofp"] = [](const ScalarOpInfo &info, const Scalar *in,
                             Scalar *out) {
    out->f = zeroExtend(in->i, info.inWidth);
  };
  table["arith.fptosi"] = [](const ScalarOpInfo &info, const Scalar *in,
                             Scalar *out) {
    out->i = toSigned(in->f, info.outWidth);
  };
  table["arith.fptoui"] = [](const ScalarOpInfo &info, const Scalar *in,
                             Scalar *out) {
    out->i = static_cast<int64_t>(toUnsigned(in->f, info.outWidth));
  };
  table["arith.bitcast"] = evalBitcast;
  table["arith.select"] = [](const ScalarOpInfo &, const Scalar *in,
                             Scalar *out) {
    *out = in[0].i != 0 ? in[1] : in[2];
  };
}

static void addMath(llvm::StringMap<ScalarEval> &table) {
  table["math.absf"] = float1(std::fabs);
  table["math.acos"] = float1(std::acos);
  table["math.acosh"] = float1(std::acosh);
  table["math.asin"] = float1(std::asin);
  table["math.asinh"] = float1(std::asinh);
  table["math.atan"] = float1(std::atan);
  table["math.atan2"] = float2(std::atan2);
  table["math.atanh"] = float1(std::atanh);
  table["math.cbrt"] = float1(std::cbrt);
  table["math.ceil"] = float1(std::ceil);
  table["math.clampf"] = float3([](double a, double low, double high) {
    return std::fmin(std::fmax(a, low), high);
  });
  table["math.copysign"] = float2(std::copysign);
  table["math.cos"] = float1(std::cos);
  table["math.cosh"] = float1(std::cosh);
  table["math.erf"] = float1(std::erf);
  table["math.erfc"] = float1(std::erfc);
  table["math.exp"] = float1(std::exp);
  table["math.exp2"] = float1(std::exp2);
  table["math.expm1"] = float1(std::expm1);
  table["math.floor"] = float1(std::floor);
  table["math.fma"] = float3(std::fma);
  table["math.log"] = float1(std::log);
  table["math.log10"] = float1(std::log10);
  table["math.log1p"] = float1(std::log1p);
  table["math.log2"] = float1(std::log2);
  table["math.powf"] = float2(std::pow);
  table["math.round"] = float1(std::round);
  table["math.roundeven"] = float1(std::nearbyint);
  table["math.rsqrt"] = float1([](double a) { return 1 / std::sqrt(a); });
  table["math.sin"] = float1(std::sin);
  table["math.sinh"] = float1(std::sinh);
  table["math.sqrt"] = float1(std::sqrt);
  table["math.tan"] = float1(std::tan);
  table["math.tanh"] = float1(std::tanh);
  table["math.trunc"] = float1(std::trunc);
  table["math.isfinite"] =
      floatTest([](double a) -> bool { return std::isfinite(a); });
  table["math.isinf"] =
      floatTest([](double a) -> bool { return std::isinf(a); });
  table["math.isnan"] =
      floatTest([](double a) -> bool { return std::isnan(a); });
  table["math.isnormal"] = [](const ScalarOpInfo &info, const Scalar *in,
                              Scalar *out) {
    out->i = toAPFloat(in->f, info.inType).isNormal();
  };
  table["math.fpowi"] = [](const ScalarOpInfo &, const Scalar *in,
                           Scalar *out) {
    out->f = std::pow(in[0].f, static_cast<double>(in[1].i));
  };
  table["math.sincos"] = [](const ScalarOpInfo &, const Scalar *in,
                            Scalar *out) {
    out[0].f = std::sin(in->f);
    out[1].f = std::cos(in->f);
  };
  table["math.ipowi"] = signed2(powSigned);
  table["math.absi"] = [](const ScalarOpInfo &, const Scalar *in, Scalar *out) {
    out->i = in->i < 0 ? wrapSub(0, in->i) : in->i;
  };
  table["math.ctlz"] = bits1([](uint64_t a, unsigned width) -> int64_t {
    return llvm::countl_zero(a) - (64 - static_cast<int64_t>(width));
  });
  table["math.cttz"] = bits1([](uint64_t a, unsigned width) -> int64_t {
    return std::min<int64_t>(llvm::countr_zero(a), width);
  });
  table["math.ctpop"] =
      bits1([](uint64_t a, unsigned) -> int64_t { return llvm::popcount(a); });
}

static const llvm::StringMap<ScalarEval> &getTable() {
  static const llvm::StringMap<ScalarEval> table = [] {
    llvm::StringMap<ScalarEval> table;
    addArithIntegers(table);
    addArithFloats(table);
    addArithCasts(table);
    addMath(table);
    return table;
  }();
  return table;
}

//===----------------------------------------------------------------------===//
// ScalarProgram
//===----------------------------------------------------------------------===//

static llvm::Error unsupported(mlir::Operation &op, llvm::StringRef why) {
  return llvm::createStringError("the reference can't evaluate '" +
                                 op.getName().getStringRef() + "': " + why);
}

unsigned ScalarProgram::addSlot(mlir::Value value, bool isVarying) {
  unsigned slot = varying.size();
  slots[value] = slot;
  varying.push_back(isVarying);
  return slot;
}

/// Reads an element of an array.
using ScalarReader = Scalar (*)(const void *data, int64_t offset);

template <typename T>
static Scalar readInteger(const void *data, int64_t offset) {
  Scalar value;
  value.i = static_cast<const T *>(data)[offset];
  return value;
}

static Scalar readBool(const void *data, int64_t offset) {
  Scalar value = readInteger<uint8_t>(data, offset);
  value.i = -(value.i & 1);
  return value;
}

template <typename T>
static Scalar readFloat(const void *data, int64_t offset) {
  Scalar value;
  value.f = static_cast<const T *>(data)[offset];
  return value;
}

template <llvm::APFloat::Semantics Semantics>
static Scalar readHalf(const void *data, int64_t offset) {
  llvm::APInt bits(16, static_cast<const uint16_t *>(data)[offset]);
  Scalar value;
  value.f =
      toDouble(llvm::APFloat(llvm::APFloat::EnumToSemantics(Semantics), bits));
  return value;
}

/// For arrays of a type that getWidth() knows.
static ScalarReader getReader(Type type) {
  if (type.isF16())
    return readHalf<llvm::APFloat::S_IEEEhalf>;
  if (type.isBF16())
    return readHalf<llvm::APFloat::S_BFloat>;
  if (type.isF32())
    return readFloat<float>;
  if (type.isF64())
    return readFloat<double>;
  switch (getWidth(type)) {
  case 1:
    return readBool;
  case 8:
    return readInteger<int8_t>;
  case 16:
    return readInteger<int16_t>;
  case 32:
    return readInteger<int32_t>;
  default:
    return readInteger<int64_t>;
  }
}

/// As attn.capture_load says: 0 outside, and any index into a size of 1.
llvm::Error ScalarProgram::addCaptureLoad(mlir::attn::CaptureLoadOp load) {
  if (getWidth(load.getType()) == 0)
    return unsupported(*load, "it takes captures of i1 to i64, f16, bf16, f32 "
                              "and f64");
  ReferenceCapture capture = captures.lookup(load.getSource());
  auto declared = llvm::to_vector(
      llvm::cast<mlir::ShapedType>(load.getSource().getType()).getShape());
  ScalarReader read = getReader(load.getType());
  auto eval = [capture, declared, read](const ScalarOpInfo &, const Scalar *in,
                                        Scalar *out) {
    int64_t offset = 0;
    for (size_t dim = 0; dim < declared.size(); ++dim) {
      if (declared[dim] == 1)
        continue;
      int64_t index = in[dim].i;
      if (index < 0 || index >= capture.shape[dim]) {
        // All bits of both members.
        out->i = 0;
        return;
      }
      offset += index * capture.strides[dim];
    }
    *out = read(capture.data, offset);
  };
  return addInstruction(*load, load.getIndices(), eval);
}

llvm::Error ScalarProgram::addOp(mlir::Operation &op) {
  if (auto load = llvm::dyn_cast<mlir::attn::CaptureLoadOp>(op))
    return addCaptureLoad(load);
  for (Type type :
       llvm::concat<const Type>(llvm::SmallVector<Type>(op.getOperandTypes()),
                                llvm::SmallVector<Type>(op.getResultTypes())))
    if (getWidth(type) == 0)
      return unsupported(op, "it takes i1 to i64, index, f16, bf16, f32 and "
                             "f64 scalars");
  if (auto constant = llvm::dyn_cast<mlir::arith::ConstantOp>(op)) {
    Scalar value;
    if (auto attr = llvm::dyn_cast<mlir::FloatAttr>(constant.getValue()))
      value.f = toDouble(attr.getValue());
    else
      value.i = llvm::cast<mlir::IntegerAttr>(constant.getValue())
                    .getValue()
                    .getSExtValue();
    constants.emplace_back(addSlot(constant, false), value);
    return llvm::Error::success();
  }
  if (llvm::isa<mlir::attn::QLenOp, mlir::attn::KVLenOp>(op)) {
    bool isQuery = llvm::isa<mlir::attn::QLenOp>(op);
    (isQuery ? queryLengthSlots : keyLengthSlots)
        .push_back(addSlot(op.getResult(0), false));
    return llvm::Error::success();
  }
  auto entry = getTable().find(op.getName().getStringRef());
  if (entry == getTable().end())
    return unsupported(op, "it is not among the scalar ops it knows");

  return addInstruction(op, op.getOperands(), entry->second);
}

llvm::Error ScalarProgram::addInstruction(mlir::Operation &op,
                                          mlir::ValueRange operands,
                                          ScalarEval eval) {
  Instruction instruction;
  instruction.eval = std::move(eval);
  bool isVarying = false;
  for (mlir::Value operand : operands) {
    unsigned slot = slots.lookup(operand);
    instruction.operands.push_back(slot);
    isVarying |= varying.test(slot);
  }
  ScalarOpInfo &info = instruction.info;
  info.inType = op.getOperand(0).getType();
  info.outType = op.getResult(0).getType();
  info.inWidth = getWidth(info.inType);
  info.outWidth = getWidth(info.outType);
  if (auto cmp = llvm::dyn_cast<mlir::arith::CmpIOp>(op))
    info.predicate = static_cast<int64_t>(cmp.getPredicate());
  else if (auto cmp = llvm::dyn_cast<mlir::arith::CmpFOp>(op))
    info.predicate = static_cast<int64_t>(cmp.getPredicate());
  instruction.firstResult = varying.size();
  for (mlir::Value result : op.getResults())
    addSlot(result, isVarying);
  instruction.resultTypes.assign(op.result_type_begin(), op.result_type_end());
  instructions.push_back(std::move(instruction));
  return llvm::Error::success();
}

llvm::Expected<ScalarProgram>
ScalarProgram::compile(mlir::Region &region,
                       llvm::ArrayRef<unsigned> varyingArgs,
                       llvm::ArrayRef<ReferenceCapture> captures) {
  ScalarProgram program;
  mlir::Block &block = region.front();
  for (auto [argument, capture] :
       llvm::zip(block.getArguments().take_back(captures.size()), captures))
    program.captures[argument] = capture;
  for (mlir::BlockArgument arg : block.getArguments())
    program.addSlot(arg, llvm::is_contained(varyingArgs, arg.getArgNumber()));
  for (mlir::Operation &op : block.without_terminator())
    if (llvm::Error error = program.addOp(op))
      return std::move(error);
  program.resultSlot =
      program.slots.lookup(block.getTerminator()->getOperand(0));
  return program;
}

ScalarRow ScalarProgram::run(llvm::MutableArrayRef<ScalarRow> args,
                             int64_t queryLength, int64_t keyLength,
                             int64_t numKeys) const {
  std::vector<ScalarRow> rows(varying.size());
  for (auto [slot, arg] : llvm::enumerate(args))
    rows[slot] = std::move(arg);
  for (auto [slot, value] : constants)
    rows[slot] = {value};
  Scalar length;
  length.i = queryLength;
  for (unsigned slot : queryLengthSlots)
    rows[slot] = {length};
  length.i = keyLength;
  for (unsigned slot : keyLengthSlots)
    rows[slot] = {length};

  for (const Instruction &instruction : instructions)
    instruction.run(rows, varying, numKeys);
  return std::move(rows[resultSlot]);
}

void ScalarProgram::Instruction::run(std::vector<ScalarRow> &rows,
                                     const llvm::BitVector &varying,
                                     int64_t numKeys) const {
  const int64_t numElements = varying.test(firstResult) ? numKeys : 1;
  llvm::SmallVector<Scalar *, 2> results;
  for (unsigned slot = firstResult; slot < firstResult + resultTypes.size();
       ++slot) {
    rows[slot].resize(numElements);
    results.push_back(rows[slot].data());
  }
  struct Source {
    const Scalar *data;
    int64_t step;
  };
  auto sources = llvm::map_to_vector<3>(operands, [&](unsigned slot) {
    return Source{rows[slot].data(), varying.test(slot) ? 1 : 0};
  });
  llvm::SmallVector<Scalar, 3> in(sources.size());
  llvm::SmallVector<Scalar, 2> out(results.size());
  for (int64_t j = 0; j < numElements; ++j) {
    for (size_t i = 0; i < sources.size(); ++i)
      in[i] = sources[i].data[j * sources[i].step];
    eval(info, in.data(), out.data());
    for (size_t r = 0; r < results.size(); ++r)
      results[r][j] = out[r];
  }
  for (auto [r, type] : llvm::enumerate(resultTypes))
    canonicalize(rows[firstResult + r], type);
}
