//===- HeadDimsTest.cpp - Head dimensions between the table's -------------===//
//
// Schedules are made for the largest head dimension of their row. Others have
// padded tiles, products of other sizes and stores that drop columns.
//
//===----------------------------------------------------------------------===//

#include "attn/Compiler/Assembler.h"
#include "attn/Target/PTX.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FormatVariadic.h"
#include "gtest/gtest.h"

using namespace mlir;

namespace {
struct HeadDims {
  const char *target;
  int qk, v;
};

std::string getName(const HeadDims &dims) {
  return llvm::formatv("{0}_d{1}_{2}", dims.target, dims.qk, dims.v);
}

void PrintTo(const HeadDims &dims, std::ostream *os) { *os << getName(dims); }

class HeadDimsTest : public testing::TestWithParam<HeadDims> {
protected:
  HeadDimsTest() {
    DialectRegistry registry;
    mlir::attn::registerAttncDialects(registry);
    context.appendDialectRegistry(registry);
  }

  OwningOpRef<ModuleOp> parse() {
    auto [target, qk, v] = GetParam();
    return parseSourceString<ModuleOp>(
        llvm::formatv(R"mlir(
func.func @attention(%q: {0}, %k: {0}, %v: {1}, %o: {1}) -> {1} {{
  %r = attn.attention ins(%q, %k, %v : {0}, {0}, {1}) outs(%o : {1})
    mask_mod (%b: i32, %h: i32, %q_idx: i32, %kv_idx: i32) {{
      %visible = arith.cmpi sle, %kv_idx, %q_idx : i32
      attn.yield %visible : i1
    } -> {1}
  return %r : {1}
})mlir",
                      llvm::formatv("tensor<?x8x?x{0}xbf16>", qk).str(),
                      llvm::formatv("tensor<?x8x?x{0}xbf16>", v).str())
            .str(),
        &context);
  }

  MLIRContext context;
};

TEST_P(HeadDimsTest, PleasesPtxas) {
  auto ptxas = ::attn::findPtxas();
  if (!ptxas)
    GTEST_SKIP() << llvm::toString(ptxas.takeError());
  OwningOpRef<ModuleOp> module = parse();
  ASSERT_TRUE(module);
  ::attn::CompileOptions options;
  options.target = GetParam().target;
  auto lowered = ::attn::lower(*module, options);
  ASSERT_TRUE(static_cast<bool>(lowered))
      << llvm::toString(lowered.takeError());
  auto ptx = mlir::attn::translateToPTX(::attn::getGPUModule(**lowered),
                                        options.target);
  ASSERT_TRUE(static_cast<bool>(ptx)) << llvm::toString(ptx.takeError());
  auto assembled =
      ::attn::assemble(**lowered, *ptx, options, {/*werrorPerf=*/true});
  EXPECT_TRUE(static_cast<bool>(assembled))
      << llvm::toString(assembled.takeError());
}

std::vector<HeadDims> getHeadDims() {
  std::vector<HeadDims> result;
  for (const char *target : {"sm_80", "sm_90a"})
    for (auto [qk, v] :
         {std::pair(8, 8), std::pair(40, 72), std::pair(72, 40),
          std::pair(136, 200), std::pair(192, 128), std::pair(96, 256),
          std::pair(256, 8), std::pair(31, 33), std::pair(1, 2),
          std::pair(0, 255), std::pair(576, 512), std::pair(264, 8),
          std::pair(64, 320)})
      result.push_back({target, qk, v});
  return result;
}

INSTANTIATE_TEST_SUITE_P(GPU, HeadDimsTest, testing::ValuesIn(getHeadDims()),
                         [](const testing::TestParamInfo<HeadDims> &info) {
                           return getName(info.param);
                         });
} // namespace
