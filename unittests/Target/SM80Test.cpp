//===- SM80Test.cpp - What ptxas makes of the sm_80 kernels ---------------===//

#include "attn/Compiler/Compiler.h"
#include "attn/Runtime/Ptxas.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FormatVariadic.h"
#include "gtest/gtest.h"

using namespace mlir;

namespace {
constexpr char kCausal[] = R"mlir(
    mask_mod (%b: i32, %h: i32, %q_idx: i32, %kv_idx: i32) {
      %visible = arith.cmpi sle, %kv_idx, %q_idx : i32
      attn.yield %visible : i1
    })mlir";

std::string getSource(int headDim, StringRef element, bool isCausal) {
  std::string type = llvm::formatv("tensor<?x8x?x{0}x{1}>", headDim, element);
  return llvm::formatv(R"mlir(
func.func @attention(%q: {0}, %k: {0}, %v: {0}, %o: {0}) -> {0} {{
  %r = attn.attention ins(%q, %k, %v : {0}, {0}, {0}) outs(%o : {0}){1} -> {0}
  return %r : {0}
})mlir",
                       type, isCausal ? kCausal : "");
}

/// (head dimension, element type, causal): the table's schedules.
class SM80Test
    : public testing::TestWithParam<std::tuple<int, const char *, bool>> {};

TEST_P(SM80Test, FitsRegisters) {
  auto ptxas = ::attn::findPtxas();
  if (!ptxas)
    GTEST_SKIP() << llvm::toString(ptxas.takeError());
  auto [headDim, element, isCausal] = GetParam();
  DialectRegistry registry;
  mlir::attn::registerAttncDialects(registry);
  MLIRContext context(registry);
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(
      getSource(headDim, element, isCausal), &context);
  ASSERT_TRUE(module);
  ::attn::CompileOptions options;
  options.target = "sm_80";
  auto program = ::attn::compile(*module, options);
  ASSERT_TRUE(static_cast<bool>(program))
      << llvm::toString(program.takeError());
  // The driver compiles sm_80 PTX for newer GPUs too.
  for (StringRef arch : {"sm_80", "sm_90"}) {
    auto assembled = ::attn::runPtxas(program->ptx, arch);
    ASSERT_TRUE(static_cast<bool>(assembled))
        << llvm::toString(assembled.takeError());
    EXPECT_NE(assembled->log.find("0 bytes stack frame, 0 bytes spill stores"),
              std::string::npos)
        << arch.str() << ": " << assembled->log;
  }
}

INSTANTIATE_TEST_SUITE_P(Table, SM80Test,
                         testing::Combine(testing::Values(64, 128),
                                          testing::Values("bf16", "f16"),
                                          testing::Bool()));
} // namespace
