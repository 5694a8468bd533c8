//===- CompileBenchmark.cpp - Time from one operator to PTX ---------------===//
//
// Usage: attn-compile-benchmark [Google Benchmark flags]
//
//===----------------------------------------------------------------------===//

#include "attn/Compiler/Compiler.h"
#include "mlir/IR/AsmState.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FormatVariadic.h"
#include <benchmark/benchmark.h>

using namespace mlir;

/// Causal attention on bf16, as examples/causal.mlir.
static std::string getSource(int64_t headDim) {
  std::string type = llvm::formatv("tensor<?x16x?x{0}xbf16>", headDim);
  return llvm::formatv(R"(
    func.func @causal(%q: {0}, %k: {0}, %v: {0}, %o: {0}) -> {0} {{
      %r = attn.attention ins(%q, %k, %v : {0}, {0}, {0}) outs(%o : {0})
        mask_mod (%b: i32, %h: i32, %q_idx: i32, %kv_idx: i32) {{
          %q_len = attn.q_len : i32
          %kv_len = attn.kv_len : i32
          %shift = arith.subi %kv_len, %q_len : i32
          %last = arith.addi %q_idx, %shift : i32
          %visible = arith.cmpi sle, %kv_idx, %last : i32
          attn.yield %visible : i1
        } -> {0}
      return %r : {0}
    })",
                       type);
}

/// Parse, lower and generate code, in a context that is already warm: what a
/// JIT pays for one more operator.
static void compileOperator(benchmark::State &state, StringRef target,
                            mlir::attn::Variant variant) {
  DialectRegistry registry;
  mlir::attn::registerAttncDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  std::string source = getSource(state.range(0));
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

BENCHMARK_MAIN();
