//===- DeferRescaleTest.cpp - tile-defer-rescale against double -----------===//
//
// The pass isn't in the CPU's pipeline; here its code runs there. The kernels
// read their scores from memory, so that rows may grow in any way.
//
//===----------------------------------------------------------------------===//

#include "Kernel.h"
#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "attn/Pipelines/Pipelines.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "gtest/gtest.h"
#include <cmath>
#include <functional>
#include <limits>
#include <random>

using namespace attn::test;

namespace {
constexpr int64_t kRows = 32, kBlockN = 8, kHeadDim = 32;

constexpr const char *kKernel = R"mlir(
!scores = memref<?x?xf32>
!mem = memref<?x32x$T>
!out = memref<?x32xf32>
!s = tensor<16x8xf32>
!o = tensor<16x32xf32>
!row = tensor<16xf32>
tile.kernel @lazy(%sm: !scores, %vm: !mem, %om: !out, %lsem: memref<?xf32>, %c: f32) attributes {num_warps = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %c16 = arith.constant 16 : i32
  %d1 = arith.constant 1 : index
  %dim = memref.dim %sm, %d1 : !scores
  %n = arith.index_cast %dim : index to i32
  %pid = tile.program_id : i32
  %q0 = arith.muli %pid, %c16 : i32
  %zo = arith.constant dense<0.0> : !o
  %minf = arith.constant dense<0xFF800000> : !row
  %zrow = arith.constant dense<0.0> : !row
  %r:3 = tile.kv_loop ranges(%c0, %c0, %c0, %n) step 8 iter_args(%zo, %minf, %zrow) : !o, !row, !row
    qk (%kv: i32, %acc: !o, %m: !row, %l: !row) {
      %s = tile.load %sm[%q0, %kv] : !scores -> !s
      tile.yield %s : !s
    } score (%kv: i32, %s: !s, %acc: !o, %m: !row, %l: !row) {
      %x = tile.mask %s at (%q0, %kv) (%qi: i32, %ki: i32) {
        %exists = arith.cmpi slt, %ki, %n : i32
        tile.yield %exists : i1
      } : !s
      tile.yield %x : !s
    } softmax (%kv: i32, %x: !s, %acc: !o, %m: !row, %l: !row) {
      %p, %m1, %l1, %a = tile.online_softmax %x, %m, %l scale %c : !s, !row
      tile.yield %p, %m1, %l1, %a : !s, !row, !row, !row
    } pv (%kv: i32, %p: !s, %m1: !row, %l1: !row, %a: !row, %acc: !o, %m: !row, %l: !row) {
      %v = tile.load %vm[%kv, %c0] : !mem -> tensor<8x32x$T>
      %ab = tile.broadcast %a dim 0 : !row -> !o
      %scaled = arith.mulf %acc, %ab : !o
      $CAST
      %next = tile.mma $PATH $P, %v, %scaled : tensor<16x8x$T>, tensor<8x32x$T>, !o
      tile.yield %next, %m1, %l1 : !o, !row, !row
    }
  %lb = tile.broadcast %r#2 dim 0 : !row -> !o
  %y = arith.divf %r#0, %lb : !o
  tile.store %y, %om[%q0, %c0] : !o, !out
  %scales = tensor.splat %c : !row
  %ms = arith.mulf %r#1, %scales : !row
  %log = math.log %r#2 : !row
  %lse = arith.addf %ms, %log : !row
  tile.store %lse, %lsem[%q0] : !row, memref<?xf32>
  tile.return
})mlir";

std::string print(mlir::ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream(text) << module;
  return text;
}

std::string lower(const std::string &text) {
  mlir::DialectRegistry registry;
  mlir::attn::registerAttncDialects(registry);
  mlir::MLIRContext context(registry);
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  mlir::PassManager defer(&context);
  defer.addNestedPass<mlir::tile::KernelOp>(
      mlir::tile::createTileSplitKVRanges());
  defer.addNestedPass<mlir::tile::KernelOp>(
      mlir::tile::createTileDeferRescale());
  if (!module || failed(defer.run(*module)))
    llvm::report_fatal_error("kernel doesn't lower");
  // Otherwise the test would be one of the exact softmax.
  EXPECT_EQ(print(*module).find("online_softmax"), std::string::npos);
  mlir::PassManager pm(&context);
  mlir::OpPassManager &kernel = pm.nest<mlir::tile::KernelOp>();
  kernel.addPass(mlir::tile::createTileLowerKVLoop());
  kernel.addPass(mlir::tile::createTileRewriteMasks());
  kernel.addPass(mlir::tile::createTileLowerMath());
  if (failed(pm.run(*module)))
    llvm::report_fatal_error("kernel doesn't lower");
  return print(*module);
}

constexpr double kInf = std::numeric_limits<double>::infinity();

struct Case {
  const char *name;
  float scale;
  int64_t numKeys;
  /// The score of key j for row i; `noise` is standard normal.
  std::function<double(int64_t i, int64_t j, double noise)> score;
};

void PrintTo(const Case &c, std::ostream *os) { *os << c.name; }

/// How far the scores must grow for a new maximum.
double getThreshold(float scale) { return 8 / (scale * 1.4426950408889634); }

std::vector<Case> getCases() {
  auto grow = [](double perStep) {
    return [=](int64_t i, int64_t j, double noise) {
      return perStep * double(j / kBlockN) + i * 0.25 + 0.01 * noise;
    };
  };
  auto fromStep = [](int64_t first) {
    return [=](int64_t, int64_t j, double noise) {
      return j / kBlockN < first ? -kInf : noise;
    };
  };
  return {
      {"normal", 0.125f, 75, [](int64_t, int64_t, double x) { return x; }},
      {"wide", 0.125f, 75, [](int64_t, int64_t, double x) { return 50 * x; }},
      {"grows_by_much", 0.125f, 80, grow(3 * getThreshold(0.125f))},
      {"grows_by_more_than_the_threshold", 0.125f, 80,
       grow(1.01 * getThreshold(0.125f))},
      {"grows_by_less_than_the_threshold", 0.125f, 80,
       grow(0.97 * getThreshold(0.125f))},
      {"grows_by_a_third_of_the_threshold", 0.125f, 80,
       grow(0.34 * getThreshold(0.125f))},
      {"never_exceeds_the_threshold", 0.125f, 80,
       grow(0.09 * getThreshold(0.125f))},
      {"falls", 0.125f, 80, grow(-getThreshold(0.125f))},
      {"one_row_grows", 0.125f, 80,
       [](int64_t i, int64_t j, double x) {
         return i == 5 ? 60.0 * double(j / kBlockN) : x;
       }},
      {"no_key", 0.125f, 40,
       [](int64_t i, int64_t, double x) { return i % 3 ? x : -kInf; }},
      {"no_key_at_all", 0.125f, 40,
       [](int64_t, int64_t, double) { return -kInf; }},
      {"first_key_in_second_step", 0.125f, 40, fromStep(1)},
      {"first_key_in_last_step", 0.125f, 40, fromStep(4)},
      {"only_first_key", 0.125f, 40,
       [](int64_t, int64_t j, double x) { return j ? -kInf : x; }},
      {"very_negative", 0.125f, 75,
       [](int64_t, int64_t, double x) { return -1e4 + x; }},
      {"negative_and_grows", 0.125f, 80,
       [](int64_t, int64_t j, double x) {
         return -1e4 + 40.0 * double(j / kBlockN) + x;
       }},
      {"extremely_negative", 0.125f, 75,
       [](int64_t, int64_t, double x) { return -1e30 * (1 + x * x); }},
      // The products of q = k = 133120, at D = 64.
      {"huge", 0.125f, 75,
       [](int64_t, int64_t j, double) {
         return 133120.0 * 133120.0 * 64 * (j % 7 ? 1 : -1);
       }},
      {"huge_and_grows", 0.125f, 80,
       [](int64_t i, int64_t j, double) {
         return 133120.0 * 133120.0 * double(i + j / kBlockN);
       }},
      {"huge_next_to_small", 0.125f, 75,
       [](int64_t i, int64_t j, double x) {
         return (i + j) % 11 ? x : std::ldexp(x, 40);
       }},
      // Scores of one to a few units in the last place apart, at every size
      // where the rounding of scale * max could show.
      {"neighbours", 0.125f, 75,
       [](int64_t i, int64_t j, double) {
         double size = std::ldexp(1.0, 10 + 2 * int(i / 2));
         double ulps = double(1 + (j * 37 + 11) % 53);
         return (i % 2 ? -1 : 1) * size * (1.25 - std::ldexp(ulps, -23));
       }},
      // From below to above the sizes where the factor becomes a power of two,
      // 2^26 (for f16) and 2^30 after scaling.
      {"leaves_the_huge", 0.125f, 40,
       [](int64_t i, int64_t j, double) {
         double size = std::ldexp(8 / 1.4426950408889634, i % 2 ? 26 : 30);
         return size * (j < kBlockN ? -1.04 : -0.96);
       }},
      {"equal", 0.125f, 75, [](int64_t i, int64_t, double) { return 1.0 * i; }},
      {"tiny_scale", 1e-6f, 75,
       [](int64_t, int64_t, double x) { return 1e6 * x; }},
      // 8 / scale is infinite.
      {"tiniest_scale", 1.2e-38f, 75,
       [](int64_t, int64_t, double x) { return 7e37 * x; }},
      {"large_scale", 1000.f, 75,
       [](int64_t, int64_t, double x) { return 0.01 * x; }},
      {"large_scale_and_grows", 1000.f, 80, grow(0.97 * getThreshold(1000.f))},
      {"scale_1", 1.f, 75, [](int64_t, int64_t, double x) { return 3 * x; }},
  };
}

class DeferRescale
    : public testing::TestWithParam<std::tuple<Case, std::string>> {
protected:
  void SetUp() override {
    const auto &[c, type] = GetParam();
    bool isF32 = type == "f32";
    kernels = std::make_unique<Kernels>(lower(substitute(
        kKernel,
        {{"CAST",
          isF32 ? ""
                : "%pt = arith.truncf %p : !s to tensor<16x8x" + type + ">"},
         {"PATH", isF32 ? "fma" : "mma"},
         {"P", isF32 ? "%p" : "%pt"},
         {"T", type}})));
    scores = std::make_unique<Buffer>("f32", kRows * c.numKeys);
    v = std::make_unique<Buffer>(type, c.numKeys * kHeadDim);
    v->randomize(1);
    std::mt19937 generator(2);
    std::normal_distribution<double> normal;
    for (int64_t i = 0; i < kRows; ++i)
      for (int64_t j = 0; j < c.numKeys; ++j)
        scores->set(i * c.numKeys + j, c.score(i, j, normal(generator)));
  }

  void run() {
    const auto &[c, type] = GetParam();
    Params params;
    params.addMemRef(scores->data(), {kRows, int32_t(c.numKeys)}, {})
        .addMemRef(v->data(), {int32_t(c.numKeys)}, {})
        .addMemRef(out.data(), {kRows}, {})
        .addMemRef(lse.data(), {kRows}, {})
        .addF32(c.scale);
    kernels->run("lazy", kRows / 16, params);
  }

  /// Compares one row with the softmax in double.
  void checkRow(int64_t row) {
    const auto &[c, type] = GetParam();
    double max = -kInf;
    for (int64_t j = 0; j < c.numKeys; ++j)
      max = std::max(max, scores->get(row * c.numKeys + j));
    if (max == -kInf) {
      EXPECT_EQ(lse.get(row), -kInf) << "row " << row;
      return;
    }
    double sum = 0;
    std::vector<double> want(kHeadDim, 0.0);
    for (int64_t j = 0; j < c.numKeys; ++j) {
      double p = std::exp(c.scale * (scores->get(row * c.numKeys + j) - max));
      sum += p;
      for (int64_t d = 0; d < kHeadDim; ++d)
        want[d] += p * v->get(j * kHeadDim + d);
    }
    double tolerance = type == "f32" ? 2e-5 : type == "f16" ? 2e-3 : 2e-2;
    for (int64_t d = 0; d < kHeadDim; ++d)
      ASSERT_NEAR(out.get(row * kHeadDim + d), want[d] / sum, tolerance)
          << "row " << row << ", column " << d;
    double wantLse = c.scale * max + std::log(sum);
    ASSERT_NEAR(lse.get(row), wantLse, 2e-6 * (1 + std::abs(wantLse)))
        << "row " << row;
  }

  std::unique_ptr<Kernels> kernels;
  std::unique_ptr<Buffer> scores, v;
  Buffer out{"f32", kRows * kHeadDim}, lse{"f32", kRows};
};

TEST_P(DeferRescale, MatchesDouble) {
  run();
  for (int64_t row = 0; row < kRows; ++row)
    checkRow(row);
}

class DeferRescaleOfNaN : public DeferRescale {};

TEST_P(DeferRescaleOfNaN, StaysInItsRow) {
  const auto &[c, type] = GetParam();
  constexpr int64_t kRow = 9;
  scores->set(kRow * c.numKeys + c.numKeys / 2, std::nan(""));
  run();
  EXPECT_TRUE(std::isnan(lse.get(kRow)));
  EXPECT_TRUE(std::isnan(out.get(kRow * kHeadDim)));
  for (int64_t row = 0; row < kRows; ++row)
    if (row != kRow)
      checkRow(row);
}

std::string
getName(const testing::TestParamInfo<DeferRescale::ParamType> &info) {
  return std::string(std::get<0>(info.param).name) + "_" +
         std::get<1>(info.param);
}

INSTANTIATE_TEST_SUITE_P(All, DeferRescale,
                         testing::Combine(testing::ValuesIn(getCases()),
                                          testing::Values("f32", "f16",
                                                          "bf16")),
                         getName);
INSTANTIATE_TEST_SUITE_P(All, DeferRescaleOfNaN,
                         testing::Combine(testing::Values(getCases().front(),
                                                          getCases()[2]),
                                          testing::Values("f32")),
                         getName);
} // namespace
