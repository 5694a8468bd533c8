//===- HandEditedTest.cpp - Hand-edited kernels on the CPU ----------------===//

#include "../Support/HandEdited.h"
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
constexpr KernelShape kShape = {/*blockM=*/16, /*blockN=*/8, /*headDim=*/32,
                                "f32", /*numWarps=*/1};

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

class HandEdited : public testing::TestWithParam<Edit> {};

TEST_P(HandEdited, MatchesDouble) {
  const Edit &edit = GetParam();
  Kernels kernels(lower(makeKernel(edit, kShape)));
  constexpr int64_t numRows = 37, headDim = kShape.headDim;
  Buffer q("f32", numRows * headDim);
  q.randomize(1);
  const std::vector<double> qValues = q.getAll();
  // The number of keys less than, equal to and more than that of rows.
  for (int64_t numKeys : {1, 13, 24, 37, 53}) {
    Buffer k("f32", numKeys * headDim), v("f32", numKeys * headDim),
        o("f32", numRows * headDim);
    k.randomize(2);
    v.randomize(3);
    const std::vector<double> kValues = k.getAll(), vValues = v.getAll();
    Params params;
    for (Buffer *buffer : {&q, &k, &v, &o})
      params.addMemRef(
          buffer->data(),
          {int32_t(buffer == &q || buffer == &o ? numRows : numKeys)}, {});
    kernels.run("edited", (numRows + kShape.blockM - 1) / kShape.blockM,
                params);
    for (int64_t row = 0; row < numRows; ++row) {
      std::vector<double> want =
          evaluateRow(edit, kShape, qValues, kValues, vValues, row);
      for (int64_t d = 0; d < headDim; ++d)
        ASSERT_NEAR(o.get(row * headDim + d), want[d],
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
