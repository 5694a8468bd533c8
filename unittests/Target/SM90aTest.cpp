//===- SM90aTest.cpp - What ptxas makes of the sm_90a kernels -------------===//

#include "attn/Pipelines/Pipelines.h"
#include "attn/Runtime/Ptxas.h"
#include "attn/Target/PTX.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/Support/FormatVariadic.h"
#include "gtest/gtest.h"
#include <mutex>

using namespace mlir;

namespace {
struct Shape {
  int64_t headDim, blockM, blockN, numStages;
  const char *element;
  bool isCausal;
};

constexpr char kCausal[] = R"mlir(
    mask_mod (%b: i32, %h: i32, %q_idx: i32, %kv_idx: i32) {
      %visible = arith.cmpi sle, %kv_idx, %q_idx : i32
      attn.yield %visible : i1
    })mlir";

std::string getSource(const Shape &shape, StringRef warpRoles) {
  std::string type =
      llvm::formatv("memref<?x8x?x{0}x{1}, strided<[?, ?, ?, 1]>>",
                    shape.headDim, shape.element);
  return llvm::formatv(R"mlir(
func.func @attention(%q: {0}, %k: {0}, %v: {0}, %o: {0}) {{
  attn.attention ins(%q, %k, %v : {0}, {0}, {0}) outs(%o : {0})
    {{schedule = #attn.schedule<block_m = {1}, block_n = {2}, num_stages = {3}, num_warps = {4}, warp_roles = <{5}>>}{6}
  return
})mlir",
                       type, shape.blockM, shape.blockN, shape.numStages,
                       4 * (1 + shape.blockM / 64), warpRoles.str(),
                       shape.isCausal ? kCausal : "");
}

class SM90aTest : public testing::TestWithParam<Shape> {
protected:
  static void SetUpTestSuite() {
    static std::once_flag once;
    std::call_once(once, mlir::attn::registerAttncPasses);
  }

  /// The log of ptxas.
  std::string assemble(StringRef warpRoles) {
    DialectRegistry registry;
    mlir::attn::registerAttncDialects(registry);
    MLIRContext context(registry);
    OwningOpRef<ModuleOp> module =
        parseSourceString<ModuleOp>(getSource(GetParam(), warpRoles), &context);
    EXPECT_TRUE(module);
    PassManager pm(&context);
    if (!module ||
        failed(parsePassPipeline("convert-attn-to-tile{target=sm_90a},"
                                 "convert-host-to-plan,tile-to-sm90a",
                                 pm)) ||
        failed(pm.run(*module)))
      return "can't lower";
    auto gpuModules = module->getOps<gpu::GPUModuleOp>();
    if (gpuModules.empty())
      return "no GPU module";
    auto ptx = mlir::attn::translateToPTX(*gpuModules.begin(), "sm_90a");
    if (!ptx)
      return llvm::toString(ptx.takeError());
    auto assembled = ::attn::runPtxas(*ptx, "sm_90a");
    if (!assembled)
      return llvm::toString(assembled.takeError());
    return assembled->log;
  }
};

TEST_P(SM90aTest, RunsProductsAsynchronouslyWithoutSpills) {
  auto ptxas = ::attn::findPtxas();
  if (!ptxas)
    GTEST_SKIP() << llvm::toString(ptxas.takeError());
  SmallVector<const char *> schedules = {
      "pipeline = simple", "pipeline = overlap",
      "persistent = true, q_stages = 2, tma_store = true"};
  // Two tiles of scores of more keys don't fit in registers.
  if (GetParam().blockN <= 64)
    schedules.push_back(
        "pipeline = ahead, lazy_rescale = true, persistent = true");
  for (const char *warpRoles : schedules) {
    SCOPED_TRACE(warpRoles);
    std::string log = assemble(warpRoles);
    EXPECT_NE(log.find("0 bytes spill stores"), std::string::npos) << log;
    // ptxas says in messages C7510 and up why it serialises wgmma.
    EXPECT_EQ(log.find("C75"), std::string::npos) << log;
    EXPECT_EQ(log.find("serialized"), std::string::npos) << log;
  }
}

INSTANTIATE_TEST_SUITE_P(Schedules, SM90aTest,
                         testing::Values(Shape{64, 128, 64, 2, "bf16", false},
                                         Shape{64, 192, 112, 4, "bf16", false},
                                         Shape{96, 128, 64, 2, "f16", true},
                                         Shape{128, 128, 128, 2, "bf16", false},
                                         Shape{128, 128, 128, 2, "f16", true}));
} // namespace
