//===- CompileBenchmark.cpp - Time from one operator to its code ----------===//
//
// Usage: attn-compile-benchmark [Google Benchmark flags]
//
// compileOperator: to PTX, in a warm context.
// compileCold: every row of sm_90a's schedule table to machine code, in a new
// context, split into the parts of the compiler.
//
//===----------------------------------------------------------------------===//

#include "attn/Compiler/Compiler.h"
#include "attn/Runtime/Ptxas.h"
#include "attn/Target/PTX.h"
#include "attn/Target/ScheduleTable.h"
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

/// From text to machine code, if ptxas is there, in a context of its own.
static llvm::Error compileRow(const mlir::attn::ScheduleRow &row,
                              StringRef source, bool isAssembled,
                              ColdTimes &times) {
  times.mlir.start();
  DialectRegistry registry;
  mlir::attn::registerAttncDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  auto module = parseSourceString<ModuleOp>(source, ParserConfig(&context));
  module->walk([&](mlir::attn::AttentionOp op) {
    op.setScheduleAttr(row.getSchedule(op));
  });
  ::attn::CompileOptions options;
  options.target = row.target.str();
  auto lowered = ::attn::lower(*module, options);
  if (!lowered)
    return lowered.takeError();
  times.mlir.stop();

  times.llvm.start();
  auto ptx = mlir::attn::translateToPTX(::attn::getGPUModule(**lowered),
                                        options.target);
  if (!ptx)
    return ptx.takeError();
  times.llvm.stop();

  if (!isAssembled)
    return llvm::Error::success();
  times.ptxas.start();
  auto assembled = ::attn::runPtxas(*ptx, options.target);
  if (!assembled)
    return assembled.takeError();
  times.ptxas.stop();
  return llvm::Error::success();
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
  state.counters["mlir_ms"] = times.mlir.getAverage();
  state.counters["llvm_ms"] = times.llvm.getAverage();
  if (isAssembled)
    state.counters["ptxas_ms"] = times.ptxas.getAverage();
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
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
