//===- UnfusedTest.cpp - Kernels of one step and hand-written ones --------===//

#include "Kernel.h"
#include "gtest/gtest.h"
#include <cmath>

using namespace attn::test;

namespace {

constexpr const char *kMatmul = R"mlir(
!mem = memref<?x?x$T, strided<[?, 1]>>
tile.kernel @matmul(%a: !mem, %b: !mem, %c: !mem) attributes {num_warps = 4 : i32} {
  %pid = tile.program_id : i32
  %c0 = arith.constant 0 : i32
  %ck = arith.constant 32 : i32
  %cm = arith.constant 128 : i32
  %d1 = arith.constant 1 : index
  %ki = memref.dim %a, %d1 : !mem
  %k = arith.index_cast %ki : index to i32
  %row = arith.muli %pid, %cm : i32
  %zero = arith.constant dense<0.0> : tensor<128x64xf32>
  %r = scf.for %i = %c0 to %k step %ck iter_args(%acc = %zero) -> (tensor<128x64xf32>) : i32 {
    %at = tile.load %a[%row, %i] : !mem -> tensor<128x32x$T>
    %bt = tile.load %b[$BINDEX] : !mem -> tensor<$BSHAPEx$T>
    %next = tile.mma mma %at, %bt, %acc $TRANSPOSE : tensor<128x32x$T>, tensor<$BSHAPEx$T>, tensor<128x64xf32>
    scf.yield %next : tensor<128x64xf32>
  }
  %t = arith.truncf %r : tensor<128x64xf32> to tensor<128x64x$T>
  tile.store %t, %c[%row, %c0] : tensor<128x64x$T>, !mem
  tile.return
}
)mlir";

/// Products whose every size is ragged, in one column block.
TEST(Unfused, Matmul) {
  for (bool transposed : {false, true}) {
    Kernels kernels(
        substitute(kMatmul, {{"TRANSPOSE", transposed ? "{transpose_b}" : ""},
                             {"BINDEX", transposed ? "%c0, %i" : "%i, %c0"},
                             {"BSHAPE", transposed ? "64x32" : "32x64"},
                             {"T", "f16"}}));
    for (auto [m, n, k] : {std::tuple(1, 1, 1), {200, 61, 77}, {128, 64, 64}}) {
      Buffer a("f16", m * k), b("f16", n * k), c("f16", m * n);
      a.randomize(1);
      b.randomize(2);
      Params params;
      params.addMemRef(a.data(), {m, k}, {k});
      if (transposed)
        params.addMemRef(b.data(), {n, k}, {k});
      else
        params.addMemRef(b.data(), {k, n}, {n});
      params.addMemRef(c.data(), {m, n}, {n});
      kernels.run("matmul", (m + 127) / 128, params);
      for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j) {
          double want = 0;
          for (int64_t x = 0; x < k; ++x)
            want +=
                a.get(i * k + x) * b.get(transposed ? j * k + x : x * n + j);
          ASSERT_NEAR(c.get(i * n + j), want, 2e-3 * (1 + std::abs(want)))
              << i << "," << j;
        }
    }
  }
}

/// Row softmax in place, over chunks of columns; rows of -inf become 0.
constexpr const char *kSoftmax = R"mlir(
!mem = memref<?x?xbf16>
tile.kernel @softmax(%x: !mem, %y: !mem) attributes {num_warps = 4 : i32} {
  %row0 = tile.program_id : i32
  %c4 = arith.constant 4 : i32
  %row = arith.muli %row0, %c4 : i32
  %c0 = arith.constant 0 : i32
  %cn = arith.constant 64 : i32
  %one = arith.constant 1.0 : f32
  %d1 = arith.constant 1 : index
  %ni = memref.dim %x, %d1 : !mem
  %n = arith.index_cast %ni : index to i32
  %m0 = arith.constant dense<0xFF800000> : tensor<4xf32>
  %l0 = arith.constant dense<0.0> : tensor<4xf32>
  %lowest = arith.constant dense<0xFF800000> : tensor<4x64xf32>
  %r:2 = scf.for %j = %c0 to %n step %cn iter_args(%m = %m0, %l = %l0) -> (tensor<4xf32>, tensor<4xf32>) : i32 {
    %t = tile.load %x[%row, %j] : !mem -> tensor<4x64xbf16>
    %f = arith.extf %t : tensor<4x64xbf16> to tensor<4x64xf32>
    %i = tile.iota : tensor<64xi32>
    %js = tensor.splat %j : tensor<64xi32>
    %ji = arith.addi %i, %js : tensor<64xi32>
    %ns = tensor.splat %n : tensor<64xi32>
    %in = arith.cmpi slt, %ji, %ns : tensor<64xi32>
    %inb = tile.broadcast %in dim 1 : tensor<64xi1> -> tensor<4x64xi1>
    %s = arith.select %inb, %f, %lowest : tensor<4x64xi1>, tensor<4x64xf32>
    %rm = tile.reduce max %s : tensor<4x64xf32> -> tensor<4xf32>
    %m1 = arith.maximumf %m, %rm : tensor<4xf32>
    %alpha = tile.exp_diff %m, %m1 scale %one : tensor<4xf32>, tensor<4xf32>
    %p = tile.exp_diff %s, %m1 scale %one : tensor<4x64xf32>, tensor<4xf32>
    %rs = tile.reduce add %p : tensor<4x64xf32> -> tensor<4xf32>
    %la = arith.mulf %l, %alpha : tensor<4xf32>
    %l1 = arith.addf %la, %rs : tensor<4xf32>
    scf.yield %m1, %l1 : tensor<4xf32>, tensor<4xf32>
  }
  %empty = arith.cmpf oeq, %r#1, %l0 : tensor<4xf32>
  %ones = arith.constant dense<1.0> : tensor<4xf32>
  %den = arith.select %empty, %ones, %r#1 : tensor<4xi1>, tensor<4xf32>
  %denb = tile.broadcast %den dim 0 : tensor<4xf32> -> tensor<4x64xf32>
  scf.for %j = %c0 to %n step %cn : i32 {
    %t = tile.load %x[%row, %j] : !mem -> tensor<4x64xbf16>
    %f = arith.extf %t : tensor<4x64xbf16> to tensor<4x64xf32>
    %p = tile.exp_diff %f, %r#0 scale %one : tensor<4x64xf32>, tensor<4xf32>
    %q = arith.divf %p, %denb : tensor<4x64xf32>
    %b = arith.truncf %q : tensor<4x64xf32> to tensor<4x64xbf16>
    tile.store %b, %y[%row, %j] : tensor<4x64xbf16>, !mem
  }
  tile.return
}
)mlir";

TEST(Unfused, Softmax) {
  Kernels kernels(kSoftmax);
  for (auto [m, n] : {std::pair(1, 1), {3, 64}, {6, 100}, {4, 640}}) {
    Buffer x("bf16", m * n), y("bf16", m * n);
    x.randomize(1);
    for (int64_t j = 0; j < n; ++j)
      x.set((m - 1) * n + j, -INFINITY);
    Params params;
    params.addMemRef(x.data(), {m, n}, {});
    params.addMemRef(y.data(), {m, n}, {});
    kernels.run("softmax", (m + 3) / 4, params);
    for (int64_t i = 0; i < m; ++i) {
      double sum = 0;
      for (int64_t j = 0; j < n; ++j)
        sum += std::exp(x.get(i * n + j));
      for (int64_t j = 0; j < n; ++j) {
        double want = sum ? std::exp(x.get(i * n + j)) / sum : 0;
        ASSERT_NEAR(y.get(i * n + j), want, 4e-3 * want) << i << "," << j;
      }
    }
  }
}

constexpr const char *kSwap = R"mlir(
!mem = memref<?x64xf32, strided<[?, 1]>>
tile.kernel @swap(%x: !mem, %y: !mem, %steps: i32) attributes {num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %a = tile.load %x[%c0, %c0] : !mem -> tensor<16x64xf32>
  %b = tile.load %y[%c0, %c0] : !mem -> tensor<16x64xf32>
  %one = arith.constant dense<1.0> : tensor<16x64xf32>
  %r:2 = scf.for %i = %c0 to %steps step %c1 iter_args(%u = %a, %v = %b) -> (tensor<16x64xf32>, tensor<16x64xf32>) : i32 {
    %odd = arith.andi %i, %c1 : i32
    %is_odd = arith.cmpi eq, %odd, %c1 : i32
    %w = scf.if %is_odd -> (tensor<16x64xf32>) {
      %t = arith.addf %u, %one : tensor<16x64xf32>
      scf.yield %t : tensor<16x64xf32>
    } else {
      scf.yield %u : tensor<16x64xf32>
    }
    scf.yield %v, %w : tensor<16x64xf32>, tensor<16x64xf32>
  }
  tile.store %r#0, %x[%c0, %c0] : tensor<16x64xf32>, !mem
  tile.store %r#1, %y[%c0, %c0] : tensor<16x64xf32>, !mem
  tile.return
}
)mlir";

/// Loop-carried tiles that change places.
TEST(Unfused, LoopCarriedSwap) {
  Kernels kernels(kSwap);
  for (int32_t steps : {0, 1, 2, 5}) {
    Buffer x("f32", 1024), y("f32", 1024);
    x.randomize(1);
    y.randomize(2);
    std::vector<double> u = x.getAll(), v = y.getAll();
    for (int32_t i = 0; i < steps; ++i) {
      if (i % 2)
        for (double &value : u)
          value = float(value) + 1.0f;
      std::swap(u, v);
    }
    Params params;
    params.addMemRef(x.data(), {16}, {64}).addMemRef(y.data(), {16}, {64});
    params.addI32(steps);
    kernels.run("swap", 1, params);
    EXPECT_EQ(x.getAll(), u) << steps;
    EXPECT_EQ(y.getAll(), v) << steps;
  }
}

constexpr const char *kMath = R"mlir(
tile.kernel @math(%x: memref<?xf32>, %exp2: memref<?xf32>, %log2: memref<?xf32>, %exp: memref<?xf32>, %bf16: memref<?xbf16>) attributes {num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %one = arith.constant 1.0 : f32
  %zero = arith.constant dense<0.0> : tensor<256xf32>
  %t = tile.load %x[%c0] : memref<?xf32> -> tensor<256xf32>
  %e = math.exp2 %t : tensor<256xf32>
  tile.store %e, %exp2[%c0] : tensor<256xf32>, memref<?xf32>
  %l = math.log2 %t : tensor<256xf32>
  tile.store %l, %log2[%c0] : tensor<256xf32>, memref<?xf32>
  %d = tile.exp_diff %t, %zero scale %one : tensor<256xf32>, tensor<256xf32>
  tile.store %d, %exp[%c0] : tensor<256xf32>, memref<?xf32>
  %b = arith.truncf %t : tensor<256xf32> to tensor<256xbf16>
  tile.store %b, %bf16[%c0] : tensor<256xbf16>, memref<?xbf16>
  tile.return
}
)mlir";

void expectClose(double got, double want, double tolerance, double x) {
  if (std::isnan(want))
    EXPECT_TRUE(std::isnan(got)) << x;
  else if (std::isinf(want) || want == 0)
    EXPECT_EQ(got, want) << x;
  else
    EXPECT_NEAR(got, want, tolerance) << x;
}

TEST(Unfused, MathFunctions) {
  for (int64_t bits : {128, 256, 512}) {
    Kernels kernels(kMath, bits);
    Buffer x("f32", 256), exp2("f32", 256), log2("f32", 256), exp("f32", 256),
        bf16("bf16", 256);
    std::vector<double> special = {
        0,        -0.0,    1,    -1,        INFINITY, -INFINITY, NAN,
        127.9999, 128,     -126, -149,      -160,     -1e30,     1e30,
        0.99999,  1.00001, 0.5,  1.411e-38, 88.7,     -87.0,     -87.4};
    for (int64_t i = 0; i < 256; ++i)
      x.set(i, i < int64_t(special.size()) ? special[i] : (i - 160) * 0.77);
    Params params;
    for (Buffer *buffer : {&x, &exp2, &log2, &exp, &bf16})
      params.addMemRef(buffer->data(), {256}, {});
    kernels.run("math", 1, params);
    for (int64_t i = 0; i < 256; ++i) {
      double value = x.get(i);
      double e = float(std::exp2(value)), l = std::log2(value);
      // Denormal results may lose bits.
      expectClose(exp2.get(i), e, 3e-7 * e + 1.5e-45, value);
      expectClose(log2.get(i), l, 3e-7 * std::abs(l) + 1e-10, value);
      if (!(value > 0)) {
        double want = value < -87.3 ? 0 : std::exp(value);
        expectClose(exp.get(i), want, 3e-7 * want, value);
      }
      Buffer rounded("bf16", 1);
      rounded.set(0, value);
      expectClose(bf16.get(i), rounded.get(0), 0, value);
    }
  }
}

constexpr const char *kReluGram = R"mlir(
!mem = memref<?x?x16x$T, strided<[?, ?, 1]>>
tile.kernel @gram(%x: !mem, %y: memref<?x16xf32>) attributes {num_warps = 4 : i32} {
  %h = tile.program_id : i32
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %t = tile.load %x[%h, %c0, %c0] : !mem -> tensor<16x16x$T>
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %s = tile.mma $P %t, %t, %zero {transpose_b} : tensor<16x16x$T>, tensor<16x16x$T>, tensor<16x16xf32>
  %relu = arith.maximumf %s, %zero : tensor<16x16xf32>
  %two = arith.constant dense<2.0> : tensor<16x16x$T>
  %doubled = arith.mulf %t, %two : tensor<16x16x$T>
  %iota = tile.iota : tensor<16xi32>
  %columns = arith.sitofp %iota : tensor<16xi32> to tensor<16x$T>
  %bias = tile.broadcast %columns dim 1 : tensor<16x$T> -> tensor<16x16x$T>
  %b = arith.addf %doubled, %bias : tensor<16x16x$T>
  $CAST
  %o = tile.mma $P %p, %b, %s : tensor<16x16x$T>, tensor<16x16x$T>, tensor<16x16xf32>
  tile.store %o, %y[%c0, %c0] : tensor<16x16xf32>, memref<?x16xf32>
  tile.return
}
)mlir";

/// A kernel edited by hand: one tile is both operands of a product, no softmax,
/// a computed right operand, a product that adds to a tile which is read again.
TEST(Unfused, HandEdited) {
  for (std::string type : {"f32", "bf16"}) {
    bool isF32 = type == "f32";
    Kernels kernels(substitute(
        kReluGram,
        {{"CAST", isF32 ? "%p = arith.addf %relu, %zero : tensor<16x16xf32>"
                        : "%p = arith.truncf %relu : tensor<16x16xf32> to "
                          "tensor<16x16xbf16>"},
         {"P", isF32 ? "fma" : "mma"},
         {"T", type}}));
    constexpr int64_t n = 16, rows = 13;
    Buffer x(type, 2 * rows * n), y("f32", n * n);
    x.randomize(1);
    Params params;
    params.addMemRef(x.data(), {2, rows}, {rows * n, n});
    params.addMemRef(y.data(), {n}, {});
    // Beyond the memref, also in a selecting dimension, everything is 0.
    for (int64_t h : {0, 1, 2}) {
      kernels.runOne("gram", h, params);
      auto at = [&](int64_t i, int64_t j) {
        return h < 2 && i < rows ? x.get((h * rows + i) * n + j) : 0;
      };
      for (int64_t i = 0; i < n; ++i) {
        std::vector<double> s(n);
        for (int64_t j = 0; j < n; ++j)
          for (int64_t k = 0; k < n; ++k)
            s[j] += at(i, k) * at(j, k);
        for (int64_t j = 0; j < n; ++j) {
          double want = s[j], size = 1;
          for (int64_t k = 0; k < n; ++k) {
            double term = std::max(s[k], 0.0) * (2 * at(k, j) + j);
            want += term;
            size += std::abs(term);
          }
          ASSERT_NEAR(y.get(i * n + j), want, (isF32 ? 1e-6 : 1e-2) * size)
              << type << " " << h << ": " << i << "," << j;
        }
      }
    }
  }
}

} // namespace
