//===- LowerMathTest.cpp - tile-lower-math against double -----------------===//

#include "Kernel.h"
#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "attn/Pipelines/Pipelines.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "gtest/gtest.h"
#include <cmath>

using namespace attn::test;

namespace {
struct Function {
  /// The name of the test and of the kernel.
  const char *name;
  /// From %x to %y, tensors of 512 f32 values.
  const char *body;
  double (*exact)(double);
};

void PrintTo(const Function &function, std::ostream *os) {
  *os << function.name;
}

const Function kFunctions[] = {
    {"exp", "%y = math.exp %x : !t", std::exp},
    {"expm1", "%y = math.expm1 %x : !t", std::expm1},
    {"log", "%y = math.log %x : !t", std::log},
    {"log1p", "%y = math.log1p %x : !t", std::log1p},
    {"log10", "%y = math.log10 %x : !t", std::log10},
    {"tanh", "%y = math.tanh %x : !t", std::tanh},
    {"erf", "%y = math.erf %x : !t", std::erf},
    {"ceil", "%y = math.ceil %x : !t", std::ceil},
    {"trunc", "%y = math.trunc %x : !t", std::trunc},
    {"cube", "%c = arith.constant dense<3.0> : !t\n%y = math.powf %x, %c : !t",
     [](double x) { return std::pow(x, 3); }},
    {"inverse_square",
     "%c = arith.constant dense<-2.0> : !t\n%y = math.powf %x, %c : !t",
     [](double x) { return std::pow(x, -2); }},
    {"zeroth",
     "%c = arith.constant dense<0.0> : !t\n%y = math.powf %x, %c : !t",
     [](double) { return 1.0; }},
    {"root", "%c = arith.constant dense<0.5> : !t\n%y = math.powf %x, %c : !t",
     std::sqrt},
    {"fourth",
     "%c = arith.constant dense<4> : tensor<512xi32>\n"
     "%y = math.fpowi %x, %c : !t, tensor<512xi32>",
     [](double x) { return std::pow(x, 4); }},
};

/// The kernel of a function, as tile-lower-math leaves it.
std::string getLoweredKernel(const Function &function) {
  std::string text =
      substitute(R"mlir(
!t = tensor<512xf32>
tile.kernel @$NAME(%in: memref<?xf32>, %out: memref<?xf32>) attributes {num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %x = tile.load %in[%c0] : memref<?xf32> -> !t
  $BODY
  tile.store %y, %out[%c0] : !t, memref<?xf32>
  tile.return
})mlir",
                 {{"NAME", function.name}, {"BODY", function.body}});
  mlir::DialectRegistry registry;
  mlir::attn::registerAttncDialects(registry);
  mlir::MLIRContext context(registry);
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  mlir::PassManager pm(&context);
  pm.addNestedPass<mlir::tile::KernelOp>(mlir::tile::createTileLowerMath());
  if (!module || failed(pm.run(*module)))
    llvm::report_fatal_error("kernel doesn't lower");
  std::string lowered;
  llvm::raw_string_ostream(lowered) << *module;
  return lowered;
}

/// Special values, and both signs of magnitudes from 1e-6 to 90.
std::vector<double> getInputs() {
  std::vector<double> inputs = {
      0.0,  -0.0, 1.0,  -1.0,  INFINITY,  -INFINITY, NAN,  0.5,  -0.5, 0.3,
      -0.3, 0.7,  1.3,  10.0,  -10.0,     100.0,     -100, 0.49, 0.51, -0.999,
      2.0,  3.0,  -7.0, 1e-30, 1.0000001, 0.9999999, 88.0, -87.0};
  while (inputs.size() < 512) {
    int64_t i = inputs.size() / 2;
    double magnitude = 1e-6 * std::pow(9e7, i / 256.0);
    inputs.push_back(inputs.size() % 2 ? -magnitude : magnitude);
  }
  return inputs;
}

class LowerMath : public testing::TestWithParam<Function> {};

TEST_P(LowerMath, MatchesDouble) {
  Kernels kernels(getLoweredKernel(GetParam()));
  Buffer x("f32", 512), y("f32", 512);
  for (auto [i, input] : llvm::enumerate(getInputs()))
    x.set(i, input);
  Params params;
  params.addMemRef(x.data(), {512}, {});
  params.addMemRef(y.data(), {512}, {});
  kernels.run(GetParam().name, 1, params);
  for (int64_t i = 0; i < 512; ++i) {
    double input = x.get(i), got = y.get(i);
    double want = float(GetParam().exact(input));
    if (std::isnan(want))
      EXPECT_TRUE(std::isnan(got)) << input << " gives " << got;
    else if (std::isinf(want))
      EXPECT_EQ(got, want) << input;
    else
      // Results near the least normal number may be flushed to 0.
      EXPECT_NEAR(got, want, 1e-6 * std::abs(want) + 1.2e-38) << input;
  }
}

INSTANTIATE_TEST_SUITE_P(All, LowerMath, testing::ValuesIn(kFunctions),
                         [](const auto &info) {
                           return std::string(info.param.name);
                         });
} // namespace
