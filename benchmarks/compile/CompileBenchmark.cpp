//===- CompileBenchmark.cpp - Time from one operator to its code ----------===//
//
// Usage: attn-compile-benchmark [Google Benchmark flags]
//
// compileOperator: to PTX, in a warm context.
// compileCold: every row of sm_90a's schedule table to machine code, in a new
// context, split into the parts of the compiler.
// firstLaunch: rules, from text to what a first launch waits for: all kernels
// in LLVM dialect, the one for long queries as machine code.
//
//===----------------------------------------------------------------------===//

#include "attn/Compiler/AttentionSpec.h"
#include "attn/Compiler/Compiler.h"
#include "attn/Runtime/Ptxas.h"
#include "attn/Target/PTX.h"
#include "attn/Target/ScheduleTable.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/AsmState.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FormatVariadic.h"
#include <benchmark/benchmark.h>
#include <chrono>

using namespace mlir;

/// Causal, as examples/causal.mlir.
static constexpr StringRef kMaskMod = R"(
  mask_mod (%b: i32, %h: i32, %q_idx: i32, %kv_idx: i32) {
    %q_len = attn.q_len : i32
    %kv_len = attn.kv_len : i32
    %shift = arith.subi %kv_len, %q_len : i32
    %last = arith.addi %q_idx, %shift : i32
    %visible = arith.cmpi sle, %kv_idx, %last : i32
    attn.yield %visible : i1
  })";

/// Attention on bf16.
static std::string getSource(int64_t headDim, bool isCausal) {
  std::string type = llvm::formatv("tensor<?x16x?x{0}xbf16>", headDim);
  return llvm::formatv(R"(
    func.func @attention(%q: {0}, %k: {0}, %v: {0}, %o: {0}) -> {0} {{
      %r = attn.attention ins(%q, %k, %v : {0}, {0}, {0}) outs(%o : {0}) {1}
        -> {0}
      return %r : {0}
    })",
                       type, isCausal ? kMaskMod : StringRef());
}

/// Parse, lower and generate code, in a context that is already warm: what a
/// JIT pays for one more operator.
static void compileOperator(benchmark::State &state, StringRef target,
                            mlir::attn::Variant variant) {
  DialectRegistry registry;
  mlir::attn::registerAttncDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  std::string source = getSource(state.range(0), /*isCausal=*/true);
  ::attn::CompileOptions options;
  options.target = target.str();
  options.variant = variant;
  for (auto _ : state) {
    OwningOpRef<ModuleOp> module =
        parseSourceString<ModuleOp>(source, ParserConfig(&context));
    auto program = ::attn::compile(*module, options);
    if (!program) {
      state.SkipWithError(llvm::toString(program.takeError()).c_str());
      return;
    }
    benchmark::DoNotOptimize(program->manifest.data());
  }
}

namespace {
/// Milliseconds of a part of the compiler, over all iterations.
class Stopwatch {
public:
  void start() { begin = Clock::now(); }
  void stop() { total += Clock::now() - begin; }
  benchmark::Counter getAverage() const {
    return {total.count(), benchmark::Counter::kAvgIterations};
  }

private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point begin;
  std::chrono::duration<double, std::milli> total{0};
};

struct ColdTimes {
  Stopwatch mlir, llvm, ptxas;
};
} // namespace

static bool hasPtxas() {
  llvm::Expected<std::string> path = ::attn::findPtxas();
  if (path)
    return true;
  llvm::consumeError(path.takeError());
  return false;
}

/// A module that lives in a context of its own.
struct Lowered {
  std::unique_ptr<MLIRContext> context;
  OwningOpRef<ModuleOp> module;
};

/// `prepare` changes what was parsed.
static llvm::Expected<Lowered>
lowerText(StringRef source, const ::attn::CompileOptions &options,
          llvm::function_ref<void(ModuleOp)> prepare, ColdTimes &times) {
  times.mlir.start();
  DialectRegistry registry;
  mlir::attn::registerAttncDialects(registry);
  Lowered result;
  result.context =
      std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
  auto module =
      parseSourceString<ModuleOp>(source, ParserConfig(result.context.get()));
  prepare(*module);
  auto lowered = ::attn::lower(*module, options);
  if (!lowered)
    return lowered.takeError();
  result.module = std::move(*lowered);
  times.mlir.stop();
  return result;
}

/// To machine code, if ptxas is there.
static llvm::Error generateCode(gpu::GPUModuleOp module, StringRef target,
                                bool isAssembled, ColdTimes &times) {
  times.llvm.start();
  auto ptx = mlir::attn::translateToPTX(module, target);
  if (!ptx)
    return ptx.takeError();
  times.llvm.stop();
  if (!isAssembled)
    return llvm::Error::success();
  times.ptxas.start();
  auto assembled = ::attn::runPtxas(*ptx, target);
  if (!assembled)
    return assembled.takeError();
  times.ptxas.stop();
  return llvm::Error::success();
}

static llvm::Error compileRow(const mlir::attn::ScheduleRow &row,
                              StringRef source, bool isAssembled,
                              ColdTimes &times) {
  ::attn::CompileOptions options;
  options.target = row.target.str();
  auto setSchedule = [&](ModuleOp module) {
    module->walk([&](mlir::attn::AttentionOp op) {
      op.setScheduleAttr(row.getSchedule(op));
    });
  };
  llvm::Expected<Lowered> lowered =
      lowerText(source, options, setSchedule, times);
  if (!lowered)
    return lowered.takeError();
  return generateCode(::attn::getGPUModule(*lowered->module), options.target,
                      isAssembled, times);
}

static void showTimes(benchmark::State &state, const ColdTimes &times,
                      bool isAssembled) {
  state.counters["mlir_ms"] = times.mlir.getAverage();
  state.counters["llvm_ms"] = times.llvm.getAverage();
  if (isAssembled)
    state.counters["ptxas_ms"] = times.ptxas.getAverage();
}

static void compileCold(benchmark::State &state,
                        const mlir::attn::ScheduleRow &row) {
  std::string source =
      getSource(row.maxHeadDim, row.mask != mlir::attn::MaskKind::Without);
  const bool isAssembled = hasPtxas();
  ColdTimes times;
  for (auto _ : state) {
    if (llvm::Error error = compileRow(row, source, isAssembled, times)) {
      state.SkipWithError(llvm::toString(std::move(error)).c_str());
      return;
    }
  }
  showTimes(state, times, isAssembled);
}

/// "compileCold/sm_90a/D128/causal/q4096".
static std::string getName(const mlir::attn::ScheduleRow &row) {
  const bool isCausal = row.mask != mlir::attn::MaskKind::Without;
  std::string name =
      llvm::formatv("compileCold/{0}/D{1}/{2}", row.target, row.maxHeadDim,
                    isCausal ? "causal" : "none");
  if (row.maxQLen != mlir::attn::kAnyLength)
    name += llvm::formatv("/q{0}", row.maxQLen);
  return name;
}

static void registerColdBenchmarks() {
  for (const mlir::attn::ScheduleRow &row : mlir::attn::getScheduleTable())
    if (row.target == "sm_90a" && row.captures == mlir::attn::CaptureKind::Any)
      benchmark::RegisterBenchmark(getName(row).c_str(), compileCold, row)
          ->Unit(benchmark::kMillisecond);
}

/// The manifest's last kernel is the one for the longest queries.
static llvm::Error compileFirst(StringRef source, bool isAssembled,
                                ColdTimes &times) {
  ::attn::CompileOptions options;
  options.target = "sm_90a";
  llvm::Expected<Lowered> lowered =
      lowerText(source, options, [](ModuleOp) {}, times);
  if (!lowered)
    return lowered.takeError();
  auto json = ::attn::emitManifest(*lowered->module, options);
  if (!json)
    return json.takeError();
  auto manifest = ::attn::Manifest::parse(*json);
  if (!manifest)
    return manifest.takeError();
  gpu::GPUModuleOp module = ::attn::getGPUModule(*lowered->module);
  for (auto function :
       llvm::make_early_inc_range(module.getBody()->getOps<LLVM::LLVMFuncOp>()))
    if (!function.isExternal() &&
        function.getName() != manifest->kernels.back().name)
      function.erase();
  return generateCode(module, options.target, isAssembled, times);
}

static void firstLaunch(benchmark::State &state,
                        const ::attn::AttentionSpec &spec) {
  const std::string source = llvm::cantFail(spec.print());
  const bool isAssembled = hasPtxas();
  ColdTimes times;
  for (auto _ : state) {
    if (llvm::Error error = compileFirst(source, isAssembled, times)) {
      state.SkipWithError(llvm::toString(std::move(error)).c_str());
      return;
    }
  }
  showTimes(state, times, isAssembled);
}

static void registerFirstLaunches() {
  const ::attn::CaptureSpec documents{
      "documents",
      ::attn::DType::I32,
      {::attn::kDynamicSize, ::attn::kDynamicSize}};
  struct Rule {
    StringRef name;
    mlir::attn::MaskMod mask;
    mlir::attn::ScoreMod score;
    std::vector<::attn::CaptureSpec> captures;
  };
  const Rule rules[] = {
      {"causal", mlir::attn::getCausalMask(), nullptr, {}},
      {"window", mlir::attn::getSlidingWindowMask(1023, 0), nullptr, {}},
      {"documents", mlir::attn::getDocumentMask(0, 0), nullptr, {documents}},
      {"softcap", nullptr, mlir::attn::getSoftcap(50), {}},
  };
  for (const Rule &rule : rules)
    for (int64_t dim : {64, 128}) {
      ::attn::AttentionSpec spec;
      spec.numQueryHeads = spec.numKVHeads = 16;
      spec.qkHeadDim = spec.vHeadDim = dim;
      spec.maskMod = rule.mask;
      spec.scoreMod = rule.score;
      spec.captures = rule.captures;
      std::string name = llvm::formatv("firstLaunch/{0}/D{1}", rule.name, dim);
      benchmark::RegisterBenchmark(name.c_str(), firstLaunch, spec)
          ->Unit(benchmark::kMillisecond);
    }
}

BENCHMARK_CAPTURE(compileOperator, fused_sm_80, "sm_80",
                  mlir::attn::Variant::Fused)
    ->Arg(64)
    ->Arg(128)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(compileOperator, naive_sm_80, "sm_80",
                  mlir::attn::Variant::Naive)
    ->Arg(64)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(compileOperator, fused_cpu, "cpu", mlir::attn::Variant::Fused)
    ->Arg(64)
    ->Unit(benchmark::kMillisecond);

int main(int argc, char **argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv))
    return 1;
  registerColdBenchmarks();
  registerFirstLaunches();
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
