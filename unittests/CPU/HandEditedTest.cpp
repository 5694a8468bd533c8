//===- HandEditedTest.cpp - kv_loops that a person changed ----------------===//
//
// Every pass on kv_loop takes the loop as it is: another activation, an
// operation between the scores and P, no scale. The oracle is in double.
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

using namespace attn::test;

namespace {
constexpr int64_t kBlockM = 16, kBlockN = 8, kHeadDim = 32;

/// $SCORE makes %t from the masked scores %x; $SOFTMAX makes %p, %m1, %l1 and
/// %a; $OUT makes the output tile %y from the carried values %r.
constexpr const char *kKernel = R"mlir(
!mem = memref<?x32xf32>
!s = tensor<16x8xf32>
!o = tensor<16x32xf32>
!row = tensor<16xf32>
tile.kernel @edited(%qm: !mem, %km: !mem, %vm: !mem, %om: !mem) attributes {num_warps = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %c16 = arith.constant 16 : i32
  %scale = arith.constant 1.0 : f32
  %d0 = arith.constant 0 : index
  %dim = memref.dim %km, %d0 : !mem
  %n = arith.index_cast %dim : index to i32
  %pid = tile.program_id : i32
  %q0 = arith.muli %pid, %c16 : i32
  %q = tile.load %qm[%q0, %c0] : !mem -> !o
  %zs = arith.constant dense<0.0> : !s
  %zo = arith.constant dense<0.0> : !o
  %minf = arith.constant dense<0xFF800000> : !row
  %zrow = arith.constant dense<0.0> : !row
  %r:3 = tile.kv_loop ranges(%c0, %c0, %c0, %n) step 8 iter_args(%zo, %minf, %zrow) : !o, !row, !row
    qk (%kv: i32, %acc: !o, %m: !row, %l: !row) {
      %k = tile.load %km[%kv, %c0] : !mem -> tensor<8x32xf32>
      %s = tile.mma fma %q, %k, %zs {transpose_b} : !o, tensor<8x32xf32>, !s
      tile.yield %s : !s
    } score (%kv: i32, %s: !s, %acc: !o, %m: !row, %l: !row) {
      %x = tile.mask %s at (%q0, %kv) (%qi: i32, %ki: i32) {
        %exists = arith.cmpi slt, %ki, %n : i32
        %before = arith.cmpi sle, %ki, %qi : i32
        %keep = arith.andi %exists, %before : i1
        tile.yield %keep : i1
      } : !s
      $SCORE
      tile.yield %t : !s
    } softmax (%kv: i32, %t: !s, %acc: !o, %m: !row, %l: !row) {
      $SOFTMAX
      tile.yield %p, %m1, %l1, %a : !s, !row, !row, !row
    } pv (%kv: i32, %p: !s, %m1: !row, %l1: !row, %a: !row, %acc: !o, %m: !row, %l: !row) {
      %v = tile.load %vm[%kv, %c0] : !mem -> tensor<8x32xf32>
      %ab = tile.broadcast %a dim 0 : !row -> !o
      %scaled = arith.mulf %acc, %ab : !o
      %next = tile.mma fma %p, %v, %scaled : !s, tensor<8x32xf32>, !o
      tile.yield %next, %m1, %l1 : !o, !row, !row
    }
  $OUT
  tile.store %y, %om[%q0, %c0] : !o, !mem
  tile.return
})mlir";

constexpr const char *kSame = "%t = arith.addf %x, %zs : !s";
constexpr const char *kSoftmax =
    "%p, %m1, %l1, %a = tile.online_softmax %t, %m, %l scale %scale : !s, !row";
constexpr const char *kNormalize = "%lb = tile.broadcast %r#2 dim 0 : !row -> "
                                   "!o\n%y = arith.divf %r#0, %lb : !o";

struct Edit {
  const char *name, *score, *softmax, *out;
  /// The score that a visible or hidden key gets; the second is for hidden
  /// ones.
  std::function<double(double)> visible;
  double hidden;
  /// Its weight.
  std::function<double(double)> weight;
  bool normalized;
};

void PrintTo(const Edit &edit, std::ostream *os) { *os << edit.name; }

std::vector<Edit> getEdits() {
  auto exp = [](double s) { return std::exp(s); };
  auto same = [](double s) { return s; };
  return {
      {"plain",
       "%t = tile.score_mod %x at (%q0, %kv) (%e: f32, %i: i32, %j: "
       "i32) { tile.yield %e : f32 } : !s",
       kSoftmax, kNormalize, same, -INFINITY, exp, true},
      {"between_scores_and_p", "%t = arith.addf %x, %x : !s", kSoftmax,
       kNormalize, [](double s) { return 2 * s; }, -INFINITY, exp, true},
      // An op that gives hidden keys a weight: no step may be skipped.
      {"unhides",
       "%floor = arith.constant dense<-1.0> : !s\n"
       "%t = arith.maximumf %x, %floor : !s",
       kSoftmax, kNormalize, [](double s) { return std::max(s, -1.0); }, -1.0,
       exp, true},
      {"relu", kSame,
       "%p = arith.maximumf %t, %zs : !s\n"
       "%m1 = arith.addf %m, %zrow : !row\n"
       "%l1 = arith.addf %l, %zrow : !row\n"
       "%a = arith.constant dense<1.0> : !row",
       "%y = arith.addf %r#0, %zo : !o", same, -INFINITY,
       [](double s) { return std::max(s, 0.0); }, false},
      // 1 / (1 + exp(-s)), with math that tile-lower-math rewrites.
      {"sigmoid", kSame,
       "%one = arith.constant dense<1.0> : !s\n"
       "%neg = arith.negf %t : !s\n"
       "%e = math.exp %neg : !s\n"
       "%den = arith.addf %e, %one : !s\n"
       "%p = arith.divf %one, %den : !s\n"
       "%m1 = arith.addf %m, %zrow : !row\n"
       "%l1 = arith.addf %l, %zrow : !row\n"
       "%a = arith.constant dense<1.0> : !row",
       "%y = arith.addf %r#0, %zo : !o", same, -INFINITY,
       [](double s) { return 1 / (1 + std::exp(-s)); }, false},
  };
}

std::string lower(const std::string &text) {
  mlir::DialectRegistry registry;
  mlir::attn::registerAttncDialects(registry);
  mlir::MLIRContext context(registry);
  // Remarks say which steps can't be skipped.
  context.getDiagEngine().registerHandler([](mlir::Diagnostic &diag) {
    return mlir::success(diag.getSeverity() ==
                         mlir::DiagnosticSeverity::Remark);
  });
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  mlir::PassManager pm(&context);
  mlir::OpPassManager &kernel = pm.nest<mlir::tile::KernelOp>();
  kernel.addPass(mlir::tile::createTileSplitKVRanges());
  kernel.addPass(mlir::tile::createTileLowerKVLoop());
  kernel.addPass(mlir::tile::createTileRewriteMasks());
  kernel.addPass(mlir::tile::createTileExpandOnlineSoftmax());
  kernel.addPass(mlir::tile::createTileLowerMath());
  if (!module || failed(pm.run(*module)))
    llvm::report_fatal_error("kernel doesn't lower");
  std::string lowered;
  llvm::raw_string_ostream(lowered) << *module;
  return lowered;
}

/// One row of the output.
std::vector<double> evaluateRow(const Edit &edit, const Buffer &q,
                                const Buffer &k, const Buffer &v, int64_t row,
                                int64_t numKeys) {
  std::vector<double> sum(kHeadDim, 0.0);
  double total = 0;
  // Positions of the last tile beyond the keys exist for the kernel; they are
  // hidden, and their V is 0.
  int64_t numPositions = (numKeys + kBlockN - 1) / kBlockN * kBlockN;
  for (int64_t j = 0; j < numPositions; ++j) {
    double score = edit.hidden;
    if (j < numKeys && j <= row) {
      double dot = 0;
      for (int64_t d = 0; d < kHeadDim; ++d)
        dot += q.get(row * kHeadDim + d) * k.get(j * kHeadDim + d);
      score = edit.visible(dot);
    }
    double weight = edit.weight(score);
    total += weight;
    for (int64_t d = 0; d < kHeadDim && j < numKeys; ++d)
      sum[d] += weight * v.get(j * kHeadDim + d);
  }
  for (double &value : sum)
    value /= edit.normalized ? total : 1.0;
  return sum;
}

class HandEdited : public testing::TestWithParam<Edit> {};

TEST_P(HandEdited, MatchesDouble) {
  const Edit &edit = GetParam();
  Kernels kernels(lower(substitute(
      kKernel,
      {{"SCORE", edit.score}, {"SOFTMAX", edit.softmax}, {"OUT", edit.out}})));
  constexpr int64_t numRows = 37;
  Buffer q("f32", numRows * kHeadDim);
  q.randomize(1);
  // The number of keys less than, equal to and more than that of rows.
  for (int64_t numKeys : {1, 13, 24, 37, 53}) {
    Buffer k("f32", numKeys * kHeadDim), v("f32", numKeys * kHeadDim),
        o("f32", numRows * kHeadDim);
    k.randomize(2);
    v.randomize(3);
    Params params;
    for (Buffer *buffer : {&q, &k, &v, &o})
      params.addMemRef(
          buffer->data(),
          {int32_t(buffer == &q || buffer == &o ? numRows : numKeys)}, {});
    kernels.run("edited", (numRows + kBlockM - 1) / kBlockM, params);
    for (int64_t row = 0; row < numRows; ++row) {
      std::vector<double> want = evaluateRow(edit, q, k, v, row, numKeys);
      for (int64_t d = 0; d < kHeadDim; ++d)
        ASSERT_NEAR(o.get(row * kHeadDim + d), want[d],
                    1e-5 * (1 + std::abs(want[d])))
            << numKeys << " keys, row " << row << ", column " << d;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, HandEdited, testing::ValuesIn(getEdits()),
                         [](const auto &info) {
                           return std::string(info.param.name);
                         });
} // namespace
