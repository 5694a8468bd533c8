//===- ReferenceTest.cpp - Tests of the float64 reference -----------------===//

#include "attn/Reference/Reference.h"
#include "attn/Dialect/Attn/IR/AttnDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"
#include <cmath>

using namespace attn;
using mlir::attn::AttentionOp;

static constexpr double kInfinity = std::numeric_limits<double>::infinity();

namespace {
class ReferenceTest : public testing::Test {
protected:
  ReferenceTest() {
    context.loadDialect<mlir::arith::ArithDialect, mlir::attn::AttnDialect,
                        mlir::func::FuncDialect, mlir::math::MathDialect>();
  }

  /// An op on dynamic sizes with `heads` query heads, `kvHeads` key/value heads
  /// and head dimension `dim`; `rest` holds attributes and regions.
  AttentionOp parse(llvm::StringRef rest, int heads = 1, int kvHeads = 1,
                    int dim = 2, llvm::StringRef scaleOperand = "") {
    auto type = [&](int h) {
      return "tensor<?x" + std::to_string(h) + "x?x" + std::to_string(dim) +
             "xf32>";
    };
    std::string q = type(heads), kv = type(kvHeads);
    std::string text =
        "func.func @f(%q: " + q + ", %k: " + kv + ", %v: " + kv + ", %o: " + q +
        ", %scale: f32, %sink: tensor<1xf32>) {\n" +
        "  %r = attn.attention ins(%q, %k, %v : " + q + ", " + kv + ", " + kv +
        ")" + scaleOperand.str() + " outs(%o : " + q + ")" + rest.str() +
        " -> " + q + "\n  return\n}";
    // Some of what the reference has an answer for is refused by the verifier.
    mlir::ParserConfig config(&context, /*verifyAfterParse=*/false);
    module = mlir::parseSourceString<mlir::ModuleOp>(text, config);
    EXPECT_TRUE(module) << text;
    AttentionOp result;
    if (module)
      module->walk([&](AttentionOp op) { result = op; });
    return result;
  }

  /// The f32 function of two integers and one float, applied to the score.
  double evaluateScore(llvm::StringRef body, double score) {
    AttentionOp op = parse(" {scale = 1.0 : f32} score_mod (%s: f32, %b: i32, "
                           "%h: i32, %i: i32, %j: i32) {" +
                               body.str() + "}",
                           1, 1, 1);
    if (!op)
      return NAN;
    double one = 1, zero = 0;
    ReferenceInputs inputs;
    inputs.q = dense(&score, {1, 1, 1, 1});
    inputs.k = dense(&one, {1, 1, 1, 1});
    inputs.v = dense(&zero, {1, 1, 1, 1});
    auto result = evaluateReference(op, inputs);
    if (!result) {
      ADD_FAILURE() << llvm::toString(result.takeError());
      return NAN;
    }
    // With one key the lse is its score.
    return result->lse[0];
  }

  double evaluateInteger(llvm::StringRef body) {
    return evaluateScore(body.str() + " %f = arith.sitofp %r : i32 to f32 "
                                      "attn.yield %f : f32",
                         0);
  }

  static ReferenceTensor dense(const double *data,
                               std::array<int64_t, 4> shape) {
    return ReferenceTensor::dense(data, ReferenceTensor::Type::F64, shape);
  }

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};
} // namespace

static bool succeeded(llvm::Expected<ReferenceResult> &result) {
  if (result)
    return true;
  ADD_FAILURE() << llvm::toString(result.takeError());
  return false;
}

static std::string getError(AttentionOp op, const ReferenceInputs &inputs) {
  auto result = evaluateReference(op, inputs);
  return result ? "no error" : llvm::toString(result.takeError());
}

static std::vector<double> makeData(size_t size, unsigned seed) {
  std::vector<double> data(size);
  uint32_t state = seed;
  for (double &value : data) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<double>(state >> 8) / (1 << 23) - 1;
  }
  return data;
}

// Scores 0 and log 3 weigh the two values 1 : 3.
TEST_F(ReferenceTest, WeighsByHand) {
  AttentionOp op = parse(" {scale = 1.0 : f32}");
  double q[] = {1, 0}, k[] = {0, 5, std::log(3.0), 7}, v[] = {0, 4, 8, 0};
  auto result =
      evaluateReference(op, {dense(q, {1, 1, 1, 2}), dense(k, {1, 1, 2, 2}),
                             dense(v, {1, 1, 2, 2}), std::nullopt});
  ASSERT_TRUE(succeeded(result));
  EXPECT_NEAR(result->o[0], 6, 1e-14);
  EXPECT_NEAR(result->o[1], 1, 1e-14);
  EXPECT_NEAR(result->lse[0], std::log(4.0), 1e-14);
}

TEST_F(ReferenceTest, DefaultScaleIsInverseSquareRootOfHeadDim) {
  AttentionOp op = parse("", 1, 1, 4);
  double q[] = {2, 2, 2, 2}, k[] = {3, 3, 3, 3}, v[] = {1, 2, 3, 4};
  auto result =
      evaluateReference(op, {dense(q, {1, 1, 1, 4}), dense(k, {1, 1, 1, 4}),
                             dense(v, {1, 1, 1, 4}), std::nullopt});
  ASSERT_TRUE(succeeded(result));
  EXPECT_EQ(result->lse[0], 12);
}

// Grouped heads, a distance bias and a causal mask, against a plain loop.
TEST_F(ReferenceTest, MatchesPlainLoop) {
  AttentionOp op = parse(R"( {scale = 0.5 : f32}
    score_mod (%s: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      %d = arith.subi %j, %i : i32
      %hd = arith.muli %d, %h : i32
      %f = arith.sitofp %hd : i32 to f32
      %y = arith.addf %s, %f : f32
      attn.yield %y : f32
    }
    mask_mod (%b: i32, %h: i32, %i: i32, %j: i32) {
      %ql = attn.q_len : i32
      %kl = attn.kv_len : i32
      %shift = arith.subi %kl, %ql : i32
      %last = arith.addi %i, %shift : i32
      %keep = arith.cmpi sle, %j, %last : i32
      attn.yield %keep : i1
    })",
                         /*heads=*/6, /*kvHeads=*/2, /*dim=*/3);
  const int B = 2, H = 6, G = 2, M = 5, N = 7, D = 3;
  std::vector<double> q = makeData(B * H * M * D, 1),
                      k = makeData(B * G * N * D, 2),
                      v = makeData(B * G * N * D, 3);
  ReferenceInputs inputs{dense(q.data(), {B, H, M, D}),
                         dense(k.data(), {B, G, N, D}),
                         dense(v.data(), {B, G, N, D}), std::nullopt};
  auto result = evaluateReference(op, inputs);
  ASSERT_TRUE(succeeded(result));
  for (int b = 0; b < B; ++b)
    for (int h = 0; h < H; ++h)
      for (int i = 0; i < M; ++i) {
        double sum = 0, o[D] = {};
        for (int j = 0; j <= i + N - M; ++j) {
          double s = 0;
          for (int d = 0; d < D; ++d)
            s += q[((b * H + h) * M + i) * D + d] *
                 k[((b * G + h / 3) * N + j) * D + d];
          double p = std::exp(0.5 * s + (j - i) * h);
          sum += p;
          for (int d = 0; d < D; ++d)
            o[d] += p * v[((b * G + h / 3) * N + j) * D + d];
        }
        int row = (b * H + h) * M + i;
        EXPECT_NEAR(result->lse[row], std::log(sum), 1e-12);
        for (int d = 0; d < D; ++d)
          EXPECT_NEAR(result->o[row * D + d], o[d] / sum, 1e-12);
      }

  // Single rows are the rows of the whole.
  ReferenceRow rows[] = {{1, 4, 2}, {0, 0, 4}};
  auto some = evaluateReferenceRows(op, inputs, rows);
  ASSERT_TRUE(succeeded(some));
  EXPECT_EQ(some->lse[0], result->lse[(1 * H + 4) * M + 2]);
  EXPECT_EQ(some->lse[1], result->lse[4]);
  EXPECT_EQ(some->o[0], result->o[((1 * H + 4) * M + 2) * D]);
}

TEST_F(ReferenceTest, ReadsStridedSixteenBitTensors) {
  AttentionOp op = parse(" {scale = 1.0 : f32}");
  // 1.0 and 2.0 in bf16 and in f16, in every other element.
  uint16_t bf16[] = {0x3f80, 0, 0x4000, 0}, f16[] = {0x3c00, 0, 0x4000, 0};
  double v[] = {5, 6};
  ReferenceTensor q{
      bf16, ReferenceTensor::Type::BF16, {1, 1, 1, 2}, {4, 4, 4, 2}};
  ReferenceTensor k{
      f16, ReferenceTensor::Type::F16, {1, 1, 1, 2}, {4, 4, 4, 2}};
  auto result =
      evaluateReference(op, {q, k, dense(v, {1, 1, 1, 2}), std::nullopt});
  ASSERT_TRUE(succeeded(result));
  EXPECT_EQ(result->lse[0], 5);
  EXPECT_EQ(result->o[1], 6);
}

TEST_F(ReferenceTest, NoVisibleKeyGivesZeroAndMinusInfinity) {
  AttentionOp op = parse(R"( mask_mod (%b: i32, %h: i32, %i: i32, %j: i32) {
      %false = arith.constant false
      attn.yield %false : i1
    })");
  double data[] = {1, 2, NAN, kInfinity};
  auto result = evaluateReference(
      op, {dense(data, {1, 1, 1, 2}), dense(data, {1, 1, 2, 2}),
           dense(data, {1, 1, 2, 2}), std::nullopt});
  ASSERT_TRUE(succeeded(result));
  EXPECT_EQ(result->o, (std::vector<double>{0, 0}));
  EXPECT_EQ(result->lse[0], -kInfinity);
}

TEST_F(ReferenceTest, NoKeyAtAll) {
  AttentionOp op = parse("");
  double q[] = {1, 2};
  auto result = evaluateReference(
      op, {dense(q, {1, 1, 1, 2}), dense(nullptr, {1, 1, 0, 2}),
           dense(nullptr, {1, 1, 0, 2}), std::nullopt});
  ASSERT_TRUE(succeeded(result));
  EXPECT_EQ(result->o, (std::vector<double>{0, 0}));
  EXPECT_EQ(result->lse[0], -kInfinity);
}

TEST_F(ReferenceTest, NoHeadDimensionGivesNoElements) {
  AttentionOp op = parse("", 1, 1, 0);
  auto result = evaluateReference(
      op, {dense(nullptr, {1, 1, 1, 0}), dense(nullptr, {1, 1, 4, 0}),
           dense(nullptr, {1, 1, 4, 0}), std::nullopt});
  ASSERT_TRUE(succeeded(result));
  EXPECT_TRUE(result->o.empty());
  EXPECT_EQ(result->lse[0], std::log(4.0));
}

TEST_F(ReferenceTest, MaskedNaNDoesNotMatter) {
  AttentionOp op = parse(R"( {scale = 1.0 : f32}
    mask_mod (%b: i32, %h: i32, %i: i32, %j: i32) {
      %zero = arith.constant 0 : i32
      %keep = arith.cmpi eq, %j, %zero : i32
      attn.yield %keep : i1
    })");
  double q[] = {1, 1}, k[] = {1, 2, NAN, NAN}, v[] = {3, 4, NAN, NAN};
  auto result =
      evaluateReference(op, {dense(q, {1, 1, 1, 2}), dense(k, {1, 1, 2, 2}),
                             dense(v, {1, 1, 2, 2}), std::nullopt});
  ASSERT_TRUE(succeeded(result));
  EXPECT_EQ(result->o, (std::vector<double>{3, 4}));
  EXPECT_EQ(result->lse[0], 3);
}

// The lowest finite score in a whole row gives the mean, not an empty row.
TEST_F(ReferenceTest, LowestFiniteScoreIsNotAMask) {
  AttentionOp op = parse(R"(
    score_mod (%s: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      %low = arith.constant -3.40282347E+38 : f32
      attn.yield %low : f32
    })");
  double q[] = {1, 1}, v[] = {1, 2, 3, 6};
  auto result =
      evaluateReference(op, {dense(q, {1, 1, 1, 2}), dense(v, {1, 1, 2, 2}),
                             dense(v, {1, 1, 2, 2}), std::nullopt});
  ASSERT_TRUE(succeeded(result));
  EXPECT_EQ(result->o, (std::vector<double>{2, 4}));
}

TEST_F(ReferenceTest, ScaleOperand) {
  AttentionOp op = parse("", 1, 1, 2, " scale(%scale : f32)");
  double q[] = {1, 2}, k[] = {3, 4};
  ReferenceInputs inputs{dense(q, {1, 1, 1, 2}), dense(k, {1, 1, 1, 2}),
                         dense(k, {1, 1, 1, 2}), -2.0};
  auto result = evaluateReference(op, inputs);
  ASSERT_TRUE(succeeded(result));
  EXPECT_EQ(result->lse[0], -22);
  inputs.scale.reset();
  EXPECT_EQ(getError(op, inputs), "the op has a scale operand, "
                                  "but no scale is given");
}

// Scores 0 and log 3, and a sink of log 4, share 1 : 3 : 4.
TEST_F(ReferenceTest, SinkJoinsTheDenominatorOnly) {
  AttentionOp op =
      parse(" {scale = 1.0 : f32}", 1, 1, 2, " sink(%sink : tensor<1xf32>)");
  double q[] = {1, 0}, k[] = {0, 5, std::log(3.0), 7}, v[] = {0, 4, 8, 0};
  ReferenceInputs inputs{dense(q, {1, 1, 1, 2}), dense(k, {1, 1, 2, 2}),
                         dense(v, {1, 1, 2, 2}), std::nullopt};
  EXPECT_EQ(getError(op, inputs), "the op has 1 sinks, 0 are given");
  auto evaluate = [&](double sink) {
    inputs.sink = {sink};
    return evaluateReference(op, inputs);
  };
  auto result = evaluate(std::log(4.0));
  ASSERT_TRUE(succeeded(result));
  EXPECT_NEAR(result->o[0], 3, 1e-14);
  EXPECT_NEAR(result->o[1], 0.5, 1e-14);
  EXPECT_NEAR(result->lse[0], std::log(8.0), 1e-14);

  auto none = evaluate(-kInfinity);
  ASSERT_TRUE(succeeded(none));
  EXPECT_NEAR(none->o[0], 6, 1e-14);
  EXPECT_NEAR(none->lse[0], std::log(4.0), 1e-14);

  auto all = evaluate(kInfinity);
  ASSERT_TRUE(succeeded(all));
  EXPECT_EQ(all->o, (std::vector<double>{0, 0}));
  EXPECT_EQ(all->lse[0], kInfinity);

  inputs.k.shape[2] = inputs.v.shape[2] = 0;
  auto empty = evaluate(0.5);
  ASSERT_TRUE(succeeded(empty));
  EXPECT_EQ(empty->o, (std::vector<double>{0, 0}));
  EXPECT_EQ(empty->lse[0], 0.5);
}

TEST_F(ReferenceTest, IntegersWrapAndDivideExactly) {
  EXPECT_EQ(evaluateInteger("%a = arith.constant 2147483647 : i32 "
                            "%c = arith.constant 1 : i32 "
                            "%r = arith.addi %a, %c : i32"),
            -2147483648.0);
  EXPECT_EQ(evaluateInteger("%a = arith.constant -7 : i32 "
                            "%c = arith.constant 2 : i32 "
                            "%r = arith.floordivsi %a, %c : i32"),
            -4);
  EXPECT_EQ(evaluateInteger("%a = arith.constant -7 : i32 "
                            "%c = arith.constant 2 : i32 "
                            "%r = arith.ceildivsi %a, %c : i32"),
            -3);
  EXPECT_EQ(evaluateInteger("%a = arith.constant -7 : i32 "
                            "%c = arith.constant 2 : i32 "
                            "%r = arith.remsi %a, %c : i32"),
            -1);
  EXPECT_EQ(evaluateInteger("%a = arith.constant -1 : i32 "
                            "%c = arith.constant 28 : i32 "
                            "%r = arith.shrui %a, %c : i32"),
            15);
  EXPECT_EQ(evaluateInteger("%a = arith.constant -8 : i8 "
                            "%r = arith.extui %a : i8 to i32"),
            248);
  EXPECT_EQ(evaluateInteger("%a = arith.constant -8 : i8 "
                            "%r = arith.extsi %a : i8 to i32"),
            -8);
  EXPECT_EQ(evaluateInteger("%a = arith.constant -2 : i32 "
                            "%l, %r = arith.mului_extended %a, %a : i32"),
            -4);
  EXPECT_EQ(evaluateInteger("%a = arith.constant 1 : i32 "
                            "%r = math.ctlz %a : i32"),
            31);
  EXPECT_EQ(evaluateInteger("%a = arith.constant true "
                            "%r = arith.extui %a : i1 to i32"),
            1);
}

TEST_F(ReferenceTest, UndefinedIntegerOpsGiveZero) {
  for (const char *name : {"divsi", "remsi", "divui", "remui", "floordivsi",
                           "ceildivsi", "ceildivui"})
    EXPECT_EQ(evaluateInteger("%a = arith.constant 5 : i32 "
                              "%z = arith.constant 0 : i32 "
                              "%r = arith." +
                              std::string(name) + " %a, %z : i32"),
              0)
        << name;
  EXPECT_EQ(evaluateInteger("%a = arith.constant -2147483648 : i32 "
                            "%m = arith.constant -1 : i32 "
                            "%r = arith.divsi %a, %m : i32"),
            -2147483648.0);
  EXPECT_EQ(evaluateInteger("%a = arith.constant 1 : i32 "
                            "%n = arith.constant 32 : i32 "
                            "%r = arith.shli %a, %n : i32"),
            0);
}

TEST_F(ReferenceTest, FloatOps) {
  EXPECT_DOUBLE_EQ(
      evaluateScore("%y = math.tanh %s : f32 attn.yield %y : f32", 0.5),
      std::tanh(0.5));
  // 1 + 2^-9 lies between two bf16 values and goes to the even one.
  EXPECT_EQ(evaluateScore("%t = arith.truncf %s : f32 to bf16 "
                          "%y = arith.extf %t : bf16 to f32 "
                          "attn.yield %y : f32",
                          1 + std::ldexp(1.0, -9)),
            1);
  EXPECT_EQ(evaluateScore("%t = arith.bitcast %s : f32 to i32 "
                          "%y = arith.sitofp %t : i32 to f32 "
                          "attn.yield %y : f32",
                          1.0),
            0x3f800000);
  EXPECT_EQ(evaluateScore("%z = arith.constant 0x7FC00000 : f32 "
                          "%c = arith.cmpf ult, %s, %z : f32 "
                          "%n = arith.constant 9.0 : f32 "
                          "%y = arith.select %c, %n, %s : f32 "
                          "attn.yield %y : f32",
                          1.0),
            9);
  EXPECT_EQ(evaluateScore("%t = arith.fptosi %s : f32 to i8 "
                          "%y = arith.sitofp %t : i8 to f32 "
                          "attn.yield %y : f32",
                          -1000.0),
            -128);
}

TEST_F(ReferenceTest, RefusesWhatItCannotEvaluate) {
  AttentionOp op = parse(R"( mask_mod (%b: i32, %h: i32, %i: i32, %j: i32) {
      %w = arith.extsi %j : i32 to i128
      %z = arith.constant 0 : i128
      %keep = arith.cmpi sge, %w, %z : i128
      attn.yield %keep : i1
    })");
  double data[] = {1, 2};
  ReferenceInputs inputs{dense(data, {1, 1, 1, 2}), dense(data, {1, 1, 1, 2}),
                         dense(data, {1, 1, 1, 2}), std::nullopt};
  EXPECT_EQ(getError(op, inputs),
            "the reference can't evaluate 'arith.extsi': it takes i1 to i64, "
            "index, f16, bf16, f32 and f64 scalars");
  op = parse("");
  inputs.k.shape[3] = 3;
  EXPECT_EQ(getError(op, inputs),
            "the shape of k doesn't fit its type in the op");
  inputs.k.shape = {2, 1, 1, 2};
  EXPECT_EQ(getError(op, inputs), "the shapes of q, k and v don't match");
}
