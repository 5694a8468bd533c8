//===- FusedTest.cpp - Fused attention kernels against float64 ------------===//

#include "Kernel.h"
#include "gtest/gtest.h"
#include <cmath>

using namespace attn::test;

namespace {

/// What tile-lower-math leaves of fused attention over [H, N, D] tensors.
constexpr const char *kFused = R"mlir(
!mem = memref<?x?x$Dx$T, strided<[?, ?, 1]>>
tile.kernel @fused(%q: !mem, %k: !mem, %v: !mem, %o: !mem, %lse: memref<?x?xf32, strided<[?, 1]>>, %c: f32) attributes {num_warps = 4 : i32} {
  %pid = tile.program_id : i32
  %c0 = arith.constant 0 : i32
  %cm = arith.constant $M : i32
  %cn = arith.constant $N : i32
  %d1 = arith.constant 1 : index
  %nqi = memref.dim %q, %d1 : !mem
  %nq = arith.index_cast %nqi : index to i32
  %nki = memref.dim %k, %d1 : !mem
  %nk = arith.index_cast %nki : index to i32
  %blocks = arith.ceildivsi %nq, %cm : i32
  %h = arith.divsi %pid, %blocks : i32
  %block = arith.remsi %pid, %blocks : i32
  %row = arith.muli %block, %cm : i32
  %shift = arith.subi %nk, %nq : i32
  %qt = tile.load %q[%h, %row, %c0] : !mem -> tensor<$Mx$Dx$T>
  %zs = arith.constant dense<0.0> : tensor<$Mx$Nxf32>
  %zo = arith.constant dense<0.0> : tensor<$Mx$Dxf32>
  %l0 = arith.constant dense<0.0> : tensor<$Mxf32>
  %m0 = arith.constant dense<0xFF800000> : tensor<$Mxf32>
  %ninf = arith.constant dense<0xFF800000> : tensor<$Mx$Nxf32>
  %r:3 = scf.for %kv = %c0 to %nk step %cn iter_args(%acc = %zo, %m = %m0, %l = %l0) -> (tensor<$Mx$Dxf32>, tensor<$Mxf32>, tensor<$Mxf32>) : i32 {
    %kt = tile.load %k[%h, %kv, %c0] : !mem -> tensor<$Nx$Dx$T>
    %s0 = tile.mma $P %qt, %kt, %zs {transpose_b} : tensor<$Mx$Dx$T>, tensor<$Nx$Dx$T>, tensor<$Mx$Nxf32>
    %in = tile.iota : tensor<$Nxi32>
    %kvs = tensor.splat %kv : tensor<$Nxi32>
    %ki = arith.addi %in, %kvs : tensor<$Nxi32>
    %im = tile.iota : tensor<$Mxi32>
    %first = arith.addi %row, %shift : i32
    %rows = tensor.splat %first : tensor<$Mxi32>
    %qi = arith.addi %im, %rows : tensor<$Mxi32>
    %kb = tile.broadcast %ki dim 1 : tensor<$Nxi32> -> tensor<$Mx$Nxi32>
    %qb = tile.broadcast %qi dim 0 : tensor<$Mxi32> -> tensor<$Mx$Nxi32>
    %nks = tensor.splat %nk : tensor<$Mx$Nxi32>
    %exists = arith.cmpi slt, %kb, %nks : tensor<$Mx$Nxi32>
    %ca = arith.cmpi sle, %kb, %qb : tensor<$Mx$Nxi32>
    %both = arith.andi %exists, %ca : tensor<$Mx$Nxi1>
    %s = arith.select $KEEP, %s0, %ninf : tensor<$Mx$Nxi1>, tensor<$Mx$Nxf32>
    %rm = tile.reduce max %s : tensor<$Mx$Nxf32> -> tensor<$Mxf32>
    %m1 = arith.maximumf %m, %rm : tensor<$Mxf32>
    %p = tile.exp_diff %s, %m1 scale %c : tensor<$Mx$Nxf32>, tensor<$Mxf32>
    %al = tile.exp_diff %m, %m1 scale %c : tensor<$Mxf32>, tensor<$Mxf32>
    %rs = tile.reduce add %p : tensor<$Mx$Nxf32> -> tensor<$Mxf32>
    %la = arith.mulf %l, %al : tensor<$Mxf32>
    %l1 = arith.addf %la, %rs : tensor<$Mxf32>
    %vt = tile.load %v[%h, %kv, %c0] : !mem -> tensor<$Nx$Dx$T>
    %ab = tile.broadcast %al dim 0 : tensor<$Mxf32> -> tensor<$Mx$Dxf32>
    %acc1 = arith.mulf %acc, %ab : tensor<$Mx$Dxf32>
    $CASTP
    %acc2 = tile.mma $P %pt, %vt, %acc1 : tensor<$Mx$Nx$T>, tensor<$Nx$Dx$T>, tensor<$Mx$Dxf32>
    scf.yield %acc2, %m1, %l1 : tensor<$Mx$Dxf32>, tensor<$Mxf32>, tensor<$Mxf32>
  }
  %one = arith.constant dense<1.0> : tensor<$Mxf32>
  %empty = arith.cmpf oeq, %r#2, %l0 : tensor<$Mxf32>
  %den = arith.select %empty, %one, %r#2 : tensor<$Mxi1>, tensor<$Mxf32>
  %inv = arith.divf %one, %den : tensor<$Mxf32>
  %invb = tile.broadcast %inv dim 0 : tensor<$Mxf32> -> tensor<$Mx$Dxf32>
  %on = arith.mulf %r#0, %invb : tensor<$Mx$Dxf32>
  $CASTO
  tile.store %ot, %o[%h, %row, %c0] : tensor<$Mx$Dx$T>, !mem
  %cs = tensor.splat %c : tensor<$Mxf32>
  %ms = arith.mulf %r#1, %cs : tensor<$Mxf32>
  %log = math.log2 %r#2 : tensor<$Mxf32>
  %ln2 = arith.constant dense<0.693147180559945> : tensor<$Mxf32>
  %ln = arith.mulf %log, %ln2 : tensor<$Mxf32>
  %lset = arith.addf %ms, %ln : tensor<$Mxf32>
  %lses = arith.select %empty, %m0, %lset : tensor<$Mxi1>, tensor<$Mxf32>
  tile.store %lses, %lse[%h, %row] : tensor<$Mxf32>, memref<?x?xf32, strided<[?, 1]>>
  tile.return
}
)mlir";

struct Case {
  std::string type;
  int64_t d, m, n;
  bool causal;
};

std::string getFused(const Case &c) {
  bool isF32 = c.type == "f32";
  std::string cast = isF32
                         ? "arith.addf $X, $Z : tensor<$Sxf32>"
                         : "arith.truncf $X : tensor<$Sxf32> to tensor<$Sx$T>";
  auto castOf = [&](std::string x, std::string zero, std::string shape) {
    return substitute(cast, {{"X", x}, {"Z", zero}, {"S", shape}});
  };
  return substitute(kFused,
                    {{"KEEP", c.causal ? "%both" : "%exists"},
                     {"CASTP", "%pt = " + castOf("%p", "%zs", "$Mx$N")},
                     {"CASTO", "%ot = " + castOf("%on", "%zo", "$Mx$D")},
                     {"P", isF32 ? "fma" : "mma"},
                     {"T", c.type},
                     {"D", std::to_string(c.d)},
                     {"M", std::to_string(c.m)},
                     {"N", std::to_string(c.n)}});
}

double getTolerance(const std::string &type) {
  if (type == "f32")
    return 2e-5;
  return type == "f16" ? 4e-3 : 2.5e-2;
}

/// Attention of every row in float64, bottom-right causal.
void check(const Kernels &kernels, const Case &c, int64_t nq, int64_t nk) {
  constexpr int64_t heads = 2;
  const float scale = 1.0f / std::sqrt(float(c.d));
  // [N, H, D] seen as [H, N, D].
  const int64_t stride = heads * c.d;
  Buffer q(c.type, nq * stride), k(c.type, nk * stride), v(c.type, nk * stride),
      o(c.type, nq * stride), lse("f32", heads * nq);
  q.randomize(1);
  k.randomize(2);
  v.randomize(3);
  Params params;
  params.addMemRef(q.data(), {heads, int32_t(nq)}, {c.d, stride});
  params.addMemRef(k.data(), {heads, int32_t(nk)}, {c.d, stride});
  params.addMemRef(v.data(), {heads, int32_t(nk)}, {c.d, stride});
  params.addMemRef(o.data(), {heads, int32_t(nq)}, {c.d, stride});
  params.addMemRef(lse.data(), {heads, int32_t(nq)}, {nq});
  params.addF32(scale);
  kernels.run("fused", heads * ((nq + c.m - 1) / c.m), params);

  const std::vector<double> qs = q.getAll(), ks = k.getAll(), vs = v.getAll();
  for (int64_t h = 0; h < heads; ++h) {
    for (int64_t i = 0; i < nq; ++i) {
      int64_t visible =
          c.causal ? std::clamp<int64_t>(i + nk - nq + 1, 0, nk) : nk;
      std::vector<double> scores(visible);
      double max = -INFINITY, sum = 0;
      for (int64_t j = 0; j < visible; ++j) {
        for (int64_t x = 0; x < c.d; ++x)
          scores[j] +=
              qs[i * stride + h * c.d + x] * ks[j * stride + h * c.d + x];
        scores[j] *= scale;
        max = std::max(max, scores[j]);
      }
      for (double &s : scores)
        sum += s = std::exp(s - max);
      double gotLse = lse.get(h * nq + i);
      if (visible)
        ASSERT_NEAR(gotLse, max + std::log(sum), 1e-4)
            << nq << "x" << nk << " row " << i;
      else
        ASSERT_EQ(gotLse, -INFINITY) << nq << "x" << nk << " row " << i;
      for (int64_t x = 0; x < c.d; ++x) {
        double want = 0;
        for (int64_t j = 0; j < visible; ++j)
          want += scores[j] / sum * vs[j * stride + h * c.d + x];
        ASSERT_NEAR(o.get(i * stride + h * c.d + x), want,
                    visible ? getTolerance(c.type) : 0)
            << nq << "x" << nk << " row " << i << " column " << x;
      }
    }
  }
}

class Fused : public testing::TestWithParam<Case> {};

TEST_P(Fused, MatchesFloat64) {
  Kernels kernels(getFused(GetParam()));
  for (int64_t nq : {1, 7, 64, 100, 129})
    for (int64_t nk : {0, 1, 7, 64, 129})
      check(kernels, GetParam(), nq, nk);
}

std::vector<Case> getCases() {
  std::vector<Case> cases;
  for (const char *type : {"f32", "f16", "bf16"})
    for (int64_t d : {32, 64, 96, 128})
      for (bool causal : {false, true})
        cases.push_back({type, d, 64, 64, causal});
  // Tiles of other proportions: one panel, few lanes, no lanes at all.
  for (auto [m, n] : {std::pair(32, 16), {16, 128}, {8, 24}, {1, 8}, {96, 7}})
    cases.push_back({"f32", 64, m, n, true});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(All, Fused, testing::ValuesIn(getCases()),
                         [](const auto &info) {
                           const Case &c = info.param;
                           return c.type + "_d" + std::to_string(c.d) + "_m" +
                                  std::to_string(c.m) + "_n" +
                                  std::to_string(c.n) +
                                  (c.causal ? "_causal" : "");
                         });

TEST(FusedVectorWidths, MatchFloat64) {
  for (int64_t bits : {128, 256, 512}) {
    Case c{"bf16", 64, 64, 64, true};
    Kernels kernels(getFused(c), bits);
    check(kernels, c, 129, 100);
  }
}

} // namespace
