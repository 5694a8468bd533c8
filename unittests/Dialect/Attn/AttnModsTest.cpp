//===- AttnModsTest.cpp - Library of rules against their definitions ------===//
//
// With q = k = 0 the scaled score is 0, and with V the identity matrix the
// output is each key's weight: log(o) + lse is what the rules make of the score
// 0, and 0 weight is a hidden key.
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Attn/IR/AttnMods.h"
#include "attn/Pipelines/Pipelines.h"
#include "attn/Reference/Reference.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FormatVariadic.h"
#include "gtest/gtest.h"
#include <cmath>

using namespace mlir;
using namespace mlir::attn;

namespace {
constexpr int64_t kBatches = 2, kHeads = 3;
constexpr double kHidden = -std::numeric_limits<double>::infinity();

struct CaptureSpec {
  /// "2x1x1x7xf32"
  std::string type;
  const void *data;
  SmallVector<int64_t, 4> shape;
};

template <typename T>
CaptureSpec makeCapture(StringRef element, ArrayRef<int64_t> shape,
                        const std::vector<T> &values) {
  std::string type;
  for (int64_t size : shape)
    type += std::to_string(size) + "x";
  return {type + element.str(), values.data(), SmallVector<int64_t, 4>(shape)};
}

class AttnModsTest : public testing::Test {
protected:
  AttnModsTest() {
    DialectRegistry registry;
    mlir::attn::registerAttncDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  using Expected =
      std::function<double(int64_t b, int64_t h, int64_t i, int64_t j)>;

  void check(int64_t queries, int64_t keys, ArrayRef<CaptureSpec> captures,
             ScoreMod score, MaskMod mask, const Expected &expected) {
    OwningOpRef<ModuleOp> module = makeModule(queries, keys, captures);
    ASSERT_TRUE(module);
    AttentionOp op;
    module->walk([&](AttentionOp found) { op = found; });
    if (score)
      setScoreMod(op, score);
    if (mask)
      setMaskMod(op, mask);
    ASSERT_TRUE(succeeded(verify(*module)));

    std::vector<double> zeros(kBatches * kHeads * std::max(queries, keys));
    std::vector<double> identity(kBatches * kHeads * keys * keys);
    for (size_t i = 0; i < identity.size(); ++i)
      identity[i] = i % keys == i / keys % keys;
    using ::attn::ReferenceTensor;
    auto dense = [&](const std::vector<double> &data, int64_t n, int64_t d) {
      return ReferenceTensor::dense(data.data(), ReferenceTensor::Type::F64,
                                    {kBatches, kHeads, n, d});
    };
    ::attn::ReferenceInputs inputs;
    inputs.q = dense(zeros, queries, 1);
    inputs.k = dense(zeros, keys, 1);
    inputs.v = dense(identity, keys, keys);
    for (const CaptureSpec &capture : captures) {
      ::attn::ReferenceCapture view;
      view.data = capture.data;
      view.shape = capture.shape;
      view.strides.resize(view.shape.size());
      int64_t stride = 1;
      for (size_t dim = view.shape.size(); dim-- > 0;) {
        view.strides[dim] = stride;
        stride *= view.shape[dim];
      }
      inputs.captures.push_back(view);
    }
    auto result = evaluateReference(op, inputs);
    ASSERT_TRUE(bool(result)) << llvm::toString(result.takeError());
    size_t row = 0;
    for (int64_t b = 0; b < kBatches; ++b)
      for (int64_t h = 0; h < kHeads; ++h)
        for (int64_t i = 0; i < queries; ++i, ++row)
          for (int64_t j = 0; j < keys; ++j) {
            double weight = result->o[row * keys + j];
            double actual =
                weight == 0 ? kHidden : std::log(weight) + result->lse[row];
            double want = expected(b, h, i, j);
            if (want == kHidden)
              ASSERT_EQ(actual, want) << b << h << ' ' << i << ' ' << j;
            else
              ASSERT_NEAR(actual, want, 1e-5) << b << h << ' ' << i << ' ' << j;
          }
  }

  OwningOpRef<ModuleOp> makeModule(int64_t queries, int64_t keys,
                                   ArrayRef<CaptureSpec> captures) {
    auto type = [](int64_t n, int64_t d) {
      return llvm::formatv("tensor<{0}x{1}x{2}x{3}xf32>", kBatches, kHeads, n,
                           d)
          .str();
    };
    std::string q = type(queries, 1), k = type(keys, 1), v = type(keys, keys),
                o = type(queries, keys), arguments, names, types;
    for (auto [index, capture] : llvm::enumerate(captures)) {
      std::string tensor = "tensor<" + capture.type + ">";
      arguments += llvm::formatv(", %c{0}: {1}", index, tensor).str();
      names += llvm::formatv(", %c{0}", index).str();
      types += ", " + tensor;
    }
    std::string text =
        "func.func @f(%q: " + q + ", %k: " + k + ", %v: " + v + ", %o: " + o +
        arguments + ") -> " + o + " {\n  %r = attn.attention ins(%q, %k, %v" +
        names + " : " + q + ", " + k + ", " + v + types + ") outs(%o : " + o +
        ") -> " + o + "\n  return %r : " + o + "\n}";
    return parseSourceString<ModuleOp>(text, &context);
  }

  MLIRContext context;
};
} // namespace

//===----------------------------------------------------------------------===//
// Masks
//===----------------------------------------------------------------------===//

static double showIf(bool visible) { return visible ? 0 : kHidden; }

TEST_F(AttnModsTest, SlidingWindows) {
  for (auto [left, right] :
       {std::pair(2, 0), {0, 3}, {2, 1}, {-1, 1}, {1, -1}, {0, 0}})
    check(5, 7, {}, {}, getSlidingWindowMask(left, right),
          [left = left, right = right](int64_t, int64_t, int64_t i, int64_t j) {
            int64_t distance = j - (i + 2);
            return showIf((left < 0 || -distance <= left) &&
                          (right < 0 || distance <= right));
          });
}

TEST_F(AttnModsTest, CausalTopLeftAndBottomRight) {
  check(5, 7, {}, {}, getCausalTopLeftMask(),
        [](int64_t, int64_t, int64_t i, int64_t j) { return showIf(j <= i); });
  check(5, 3, {}, {}, getCausalMask(),
        [](int64_t, int64_t, int64_t i, int64_t j) {
          return showIf(j <= i - 2);
        });
}

TEST_F(AttnModsTest, DilatedWindow) {
  check(9, 11, {}, {}, getDilatedWindowMask(/*radius=*/2, /*dilation=*/3),
        [](int64_t, int64_t, int64_t i, int64_t j) {
          int64_t distance = std::abs(j - (i + 2));
          return showIf(distance == 0 || distance == 3 || distance == 6);
        });
}

TEST_F(AttnModsTest, Neighborhood) {
  constexpr int64_t kHeight = 5, kWidth = 4, kRows = 3, kColumns = 3;
  // The first of `size` places of an axis that are nearest to `place`.
  auto first = [](int64_t place, int64_t extent, int64_t size) {
    for (int64_t start = 0; start + size < extent; ++start)
      if (place <= start + size / 2)
        return start;
    return extent - size;
  };
  check(kHeight * kWidth, kHeight * kWidth, {}, {},
        getNeighborhoodMask(kHeight, kWidth, kRows, kColumns),
        [&](int64_t, int64_t, int64_t i, int64_t j) {
          int64_t row = first(i / kWidth, kHeight, kRows);
          int64_t column = first(i % kWidth, kWidth, kColumns);
          bool inRows = j / kWidth >= row && j / kWidth < row + kRows;
          bool inColumns =
              j % kWidth >= column && j % kWidth < column + kColumns;
          return showIf(inRows && inColumns);
        });
}

TEST_F(AttnModsTest, TensorMasks) {
  std::vector<int8_t> keep = {1, 0, 1, 1, 0, 0, 1, 1};
  check(3, 4, {makeCapture("i1", {2, 1, 1, 4}, keep)}, {}, getTensorMask(0),
        [&](int64_t b, int64_t, int64_t, int64_t j) {
          return showIf(keep[b * 4 + j] != 0);
        });
  std::vector<int32_t> numbers = {5, 0, -3, 0, 0, 1};
  check(3, 2, {makeCapture("i32", {1, 1, 3, 2}, numbers)}, {}, getTensorMask(0),
        [&](int64_t, int64_t, int64_t i, int64_t j) {
          return showIf(numbers[i * 2 + j] != 0);
        });
}

TEST_F(AttnModsTest, KeyPaddingWithinCausal) {
  std::vector<int64_t> lengths = {2, 5};
  check(5, 5, {makeCapture("i64", {2}, lengths)}, {},
        intersectMasks(getKeyPaddingMask(0), getCausalMask()),
        [&](int64_t b, int64_t, int64_t i, int64_t j) {
          return showIf(j < lengths[b] && j <= i);
        });
}

TEST_F(AttnModsTest, DocumentsOrPrefix) {
  std::vector<int32_t> query = {0, 0, 1, 3, 3, 3}, key = {0, 1, 1, 3, 3, 4};
  check(3, 3,
        {makeCapture("i32", {2, 3}, query), makeCapture("i32", {2, 3}, key)},
        {}, uniteMasks(getDocumentMask(0, 1), getPrefixMask(1)),
        [&](int64_t b, int64_t, int64_t i, int64_t j) {
          return showIf(query[b * 3 + i] == key[b * 3 + j] || j < 1);
        });
}

//===----------------------------------------------------------------------===//
// Scores
//===----------------------------------------------------------------------===//

TEST_F(AttnModsTest, BiasesAddUp) {
  std::vector<float> perHead = {0.5, -1, 2}, perKey = {1, 2, 3, 4};
  check(2, 4,
        {makeCapture("f32", {1, 3, 1, 1}, perHead),
         makeCapture("f32", {1, 1, 1, 4}, perKey)},
        chainScoreMods(getBias(0), getBias(1)), {},
        [&](int64_t, int64_t h, int64_t, int64_t j) {
          return perHead[h] + perKey[j];
        });
}

/// What attn.capture_load says of indices out of range, and of broadcasting.
TEST_F(AttnModsTest, ReadsZeroOutOfRange) {
  // 1, 2 and 3 as bf16; one element for all heads.
  std::vector<uint16_t> table = {0x3f80, 0x4000, 0x4040};
  ScoreMod shifted = [](ImplicitLocOpBuilder &builder, Value score,
                        const ModIndices &indices) -> Value {
    Value before = arith::SubIOp::create(builder, indices.key, indices.query);
    Value element = CaptureLoadOp::create(builder, builder.getBF16Type(),
                                          indices.captures[0],
                                          ValueRange{indices.head, before});
    Value bias = arith::ExtFOp::create(builder, builder.getF32Type(), element);
    return arith::AddFOp::create(builder, score, bias);
  };
  check(4, 6, {makeCapture("bf16", {1, 3}, table)}, shifted, {},
        [](int64_t, int64_t, int64_t i, int64_t j) {
          int64_t at = j - i;
          return at < 0 || at > 2 ? 0.0 : 1.0 + at;
        });
}

TEST_F(AttnModsTest, ALiBiFromSlopes) {
  std::vector<float> slopes = {0.5, 0.25, 1.5};
  CaptureSpec capture = makeCapture("f32", {3}, slopes);
  check(3, 5, {capture}, getALiBiFromSlopes(ALiBiForm::Causal, 0), {},
        [&](int64_t, int64_t h, int64_t i, int64_t j) {
          return slopes[h] * (j - (i + 2));
        });
  check(3, 5, {capture}, getALiBiFromSlopes(ALiBiForm::Symmetric, 0), {},
        [&](int64_t, int64_t h, int64_t i, int64_t j) {
          return -slopes[h] * std::abs(j - (i + 2));
        });
}

TEST_F(AttnModsTest, HeadSoftcap) {
  std::vector<float> caps = {0.5, 2, 30}, bias = {1, -40};
  check(1, 2,
        {makeCapture("f32", {3}, caps), makeCapture("f32", {1, 1, 1, 2}, bias)},
        chainScoreMods(getBias(1), getHeadSoftcap(0)), {},
        [&](int64_t, int64_t h, int64_t, int64_t j) {
          return caps[h] * std::tanh(bias[j] / caps[h]);
        });
}

/// The bucket of T5's paper's code, by logarithms.
static int64_t getT5Bucket(int64_t relative, bool bidirectional,
                           int64_t numBuckets, int64_t maxDistance) {
  int64_t bucket = 0;
  if (bidirectional) {
    numBuckets /= 2;
    bucket = relative > 0 ? numBuckets : 0;
    relative = std::abs(relative);
  } else {
    relative = -std::min<int64_t>(relative, 0);
  }
  int64_t exact = numBuckets / 2;
  if (relative < exact)
    return bucket + relative;
  double log = std::log(static_cast<double>(relative) / exact) /
               std::log(static_cast<double>(maxDistance) / exact);
  int64_t large = exact + static_cast<int64_t>(log * (numBuckets - exact) +
                                               /*rounding=*/1e-9);
  return bucket + std::min(large, numBuckets - 1);
}

TEST_F(AttnModsTest, T5Bias) {
  std::vector<float> table(32 * kHeads);
  for (size_t i = 0; i < table.size(); ++i)
    table[i] = 0.125f * i;
  for (bool bidirectional : {true, false})
    check(150, 150, {makeCapture("f32", {32, kHeads}, table)},
          getT5Bias(0, /*numBuckets=*/32, /*maxDistance=*/128, bidirectional),
          {}, [&](int64_t, int64_t h, int64_t i, int64_t j) {
            int64_t bucket = getT5Bucket(j - i, bidirectional, 32, 128);
            return table[bucket * kHeads + h];
          });
}
