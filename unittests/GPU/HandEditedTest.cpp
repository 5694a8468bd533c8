//===- HandEditedTest.cpp - Hand-edited kernels on GPU targets ------------===//

#include "../Support/HandEdited.h"
#include "../Runtime/TestUtils.h"
#include "attn/Compiler/Assembler.h"
#include "attn/Pipelines/SM90a.h"
#include "attn/Runtime/Executable.h"
#include "attn/Runtime/Random.h"
#include "attn/Target/PTX.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>
#include <map>
#include <mutex>

using namespace attn::test;
using attn::DType;
using attn::Tensor;

namespace {
/// A target and the kernel's form on it.
struct Config {
  const char *name, *target;
  KernelShape shape;
};

constexpr Config kConfigs[] = {
    {"sm_80", "sm_80", {64, 32, 64, "bf16", 4, ", num_stages = 2 : i32"}},
    {"overlap", "sm_90a", {128, 64, 64, "bf16", 12, ", num_stages = 2 : i32"}},
    {"simple",
     "sm_90a",
     {64, 80, 64, "bf16", 8,
      ", num_stages = 2 : i32, attn.warp_roles = #attn.warp_roles<pipeline = "
      "simple>"}},
    {"lazy_persistent",
     "sm_90a",
     {192, 64, 64, "bf16", 16,
      ", num_stages = 3 : i32, attn.warp_roles = #attn.warp_roles<pipeline = "
      "overlap, lazy_rescale = true, persistent = true, q_stages = 2, "
      "tma_store = true>"}},
    {"ahead",
     "sm_90a",
     {128, 64, 64, "bf16", 12,
      ", num_stages = 3 : i32, attn.warp_roles = #attn.warp_roles<pipeline = "
      "ahead, lazy_rescale = true, persistent = true, q_stages = 2>"}}};

/// A kernel in all forms that there are.
struct Program {
  std::string manifest, ptx;
  /// Empty without ptxas.
  std::string cubin;
};

class GPUHandEdited : public testing::TestWithParam<std::tuple<Config, Edit>> {
protected:
  GPUHandEdited() {
    static std::once_flag isRegistered;
    std::call_once(isRegistered, mlir::attn::registerAttncPasses);
    mlir::DialectRegistry registry;
    mlir::attn::registerAttncDialects(registry);
    context.appendDialectRegistry(registry);
    // Remarks say which steps can't be skipped.
    context.getDiagEngine().registerHandler([&](mlir::Diagnostic &diagnostic) {
      if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error)
        errors += diagnostic.str() + "\n";
      return mlir::success();
    });
  }

  const Config &getConfig() const { return std::get<Config>(GetParam()); }
  const Edit &getEdit() const { return std::get<Edit>(GetParam()); }

  /// The kernel and a host function that launches it, lowered; null if it is
  /// refused.
  mlir::OwningOpRef<mlir::ModuleOp> lower() {
    const KernelShape &shape = getConfig().shape;
    std::string text =
        makeKernel(getEdit(), shape) + llvm::formatv(R"mlir(
func.func @host(%q: !mem {{attn.name = "q"}, %k: !mem {{attn.name = "k"},
                %v: !mem {{attn.name = "v"},
                %o: !mem {{attn.name = "o", attn.output}) {{
  %c0 = arith.constant 0 : index
  %rows = arith.constant {0} : index
  %n = memref.dim %q, %c0 : !mem
  %grid = arith.ceildivsi %n, %rows : index
  tile.launch @edited grid(%grid) args(%q, %k, %v, %o) : !mem, !mem, !mem, !mem
  return
})mlir",
                                                     shape.blockM)
                                           .str();
    auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    if (!module)
      return {};
    mlir::PassManager pm(&context);
    const bool isHopper = llvm::StringRef(getConfig().target) == "sm_90a";
    const char *backEnd = isHopper ? "tile-to-sm90a" : "tile-to-sm80";
    std::string pipeline =
        llvm::formatv("convert-host-to-plan,{0}", backEnd).str();
    if (failed(mlir::parsePassPipeline(pipeline, pm)) ||
        failed(pm.run(*module)))
      return {};
    return module;
  }

  /// Lowers and assembles the kernel once for all its tests: that is most of
  /// their time.
  const Program &getProgram() {
    static std::map<std::pair<std::string, std::string>, Program> programs;
    auto [it, isNew] = programs.try_emplace({getConfig().name, getEdit().name});
    if (isNew)
      it->second = build();
    return it->second;
  }

  Program build() {
    Program program;
    auto module = lower();
    if (!module)
      return program;
    program.manifest = get(attn::emitManifest(*module, getOptions()));
    program.ptx = get(mlir::attn::translateToPTX(attn::getGPUModule(*module),
                                                 getConfig().target));
    auto ptxas = attn::findPtxas();
    if (!ptxas) {
      llvm::consumeError(ptxas.takeError());
      return program;
    }
    auto assembled = attn::assemble(*module, program.ptx, getOptions(), {});
    if (assembled)
      program.cubin = std::move(assembled->cubin);
    else
      errors += llvm::toString(assembled.takeError());
    return program;
  }

  attn::CompileOptions getOptions() const {
    attn::CompileOptions options;
    options.target = getConfig().target;
    return options;
  }

  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};
  std::string errors;
};

Tensor makeInput(int64_t rows, int64_t columns, uint64_t stream) {
  Tensor tensor = get(Tensor::allocate(DType::BF16, {rows, columns}));
  attn::fillNormal(tensor, /*seed=*/1, stream);
  return tensor;
}

double norm(llvm::ArrayRef<double> values) {
  double sum = 0;
  for (double value : values)
    sum += value * value;
  return std::sqrt(sum);
}

TEST_P(GPUHandEdited, PleasesPtxas) {
  const Program &program = getProgram();
  ASSERT_FALSE(program.ptx.empty()) << errors;
  auto ptxas = attn::findPtxas();
  if (!ptxas)
    GTEST_SKIP() << llvm::toString(ptxas.takeError());
  EXPECT_FALSE(program.cubin.empty()) << errors;
}

TEST_P(GPUHandEdited, MatchesDouble) {
  const llvm::StringRef target = getConfig().target;
  auto device = attn::createCudaDevice();
  if (!device)
    GTEST_SKIP() << llvm::toString(device.takeError());
  if (llvm::Error error = (*device)->checkTarget(target))
    GTEST_SKIP() << llvm::toString(std::move(error));
  const Program &program = getProgram();
  ASSERT_FALSE(program.ptx.empty()) << errors;
  // Machine code loads at once. That of sm_80 runs on its generation only, and
  // this GPU may be a later one.
  const bool isOwn = target == "sm_90a" && !program.cubin.empty();
  attn::KernelCode code;
  code.image = isOwn ? program.cubin : program.ptx;
  auto executable = get(attn::Executable::create(
      get(attn::Manifest::parse(program.manifest)), code, **device));

  const KernelShape &shape = getConfig().shape;
  constexpr int64_t kRows = 403;
  Tensor q = makeInput(kRows, shape.headDim, 0);
  const std::vector<double> qValues = q.toDoubles();
  // The number of keys less than, equal to and more than that of rows.
  for (int64_t numKeys : {1, 70, 256, 403, 500}) {
    Tensor k = makeInput(numKeys, shape.headDim, 1);
    Tensor v = makeInput(numKeys, shape.headDim, 2);
    Tensor o = get(Tensor::allocate(DType::BF16, {kRows, shape.headDim}));
    auto invocation = get(executable->bind({q, k, v, o}));
    ASSERT_EQ(getError(invocation->poisonOutputs()), "");
    ASSERT_EQ(getError(invocation->run()), "");
    ASSERT_EQ(getError(invocation->downloadOutputs()), "");
    const std::vector<double> got = o.toDoubles(), kValues = k.toDoubles(),
                              vValues = v.toDoubles();
    for (int64_t row = 0; row < kRows; ++row) {
      std::vector<double> want =
          evaluateRow(getEdit(), shape, qValues, kValues, vValues, row);
      std::vector<double> distance;
      for (int64_t d = 0; d < shape.headDim; ++d)
        distance.push_back(got[row * shape.headDim + d] - want[d]);
      // P and the result are rounded to 8 bits.
      ASSERT_LE(norm(distance), 1e-2 * norm(want) + 1e-6)
          << numKeys << " keys, row " << row;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, GPUHandEdited,
                         testing::Combine(testing::ValuesIn(kConfigs),
                                          testing::ValuesIn(getEdits())),
                         [](const auto &info) {
                           return std::string(std::get<0>(info.param).name) +
                                  "_" + std::get<1>(info.param).name;
                         });

/// The kernels of the CPU's test, which multiply f32: they have no form with
/// warp roles, and the refusal says where and why.
TEST(GPUHandEditedF32, IsRefusedWithALocation) {
  mlir::DialectRegistry registry;
  mlir::attn::registerAttncDialects(registry);
  for (const Edit &edit : getEdits()) {
    mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
    std::string error;
    mlir::Location location = mlir::UnknownLoc::get(&context);
    context.getDiagEngine().registerHandler([&](mlir::Diagnostic &diagnostic) {
      if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error) {
        error += diagnostic.str();
        location = diagnostic.getLocation();
      }
      return mlir::success();
    });
    auto module = mlir::parseSourceString<mlir::ModuleOp>(
        makeKernel(edit, {16, 8, 32, "f32", 1}), &context, "edited.mlir");
    ASSERT_TRUE(module) << error;
    mlir::PassManager pm(&context);
    mlir::attn::buildTileToSM90aPipeline(pm);
    EXPECT_TRUE(failed(pm.run(*module))) << edit.name;
    EXPECT_TRUE(
        contains(error, "must multiply 16-bit or 8-bit types (path mma) to run "
                        "as wgmma"));
    EXPECT_TRUE(llvm::isa<mlir::FileLineColLoc>(mlir::LocationAttr(location)));
  }
}
} // namespace
