//===- AttentionBench.cpp - Fused attention against OpenBLAS --------------===//
//
// Times the fused CPU kernel and, for f32, the unfused sequence on OpenBLAS on
// the same inputs, and compares their outputs. Unset OPENBLAS_CORETYPE.
//
//===----------------------------------------------------------------------===//

#include "Unfused.h"
#include "attn/Compiler/CpuJit.h"
#include "attn/Pipelines/Pipelines.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/raw_ostream.h"
#include <atomic>
#include <chrono>
#include <cmath>
#include <ctime>
#include <functional>
#include <random>
#include <thread>

using namespace llvm;

static cl::opt<int64_t> heads("heads", cl::init(8), cl::desc("Heads (B = 1)"));
static cl::opt<int64_t> length("n", cl::init(2048), cl::desc("Nq = Nk"));
static cl::opt<int64_t> headDim("d", cl::init(64), cl::desc("Head dimension"));
static cl::opt<std::string> dtype("dtype", cl::init("f32"),
                                  cl::desc("f32, f16 or bf16"));
static cl::opt<bool> causal("causal", cl::desc("Causal mask"));
static cl::opt<int64_t> blockM("block-m", cl::init(64), cl::desc("Query tile"));
static cl::opt<int64_t> blockN("block-n", cl::init(64), cl::desc("Key tile"));
static cl::opt<int> numThreads("num-threads", cl::init(2), cl::desc("Threads"));
static cl::opt<int> repeat("repeat", cl::init(7), cl::desc("Timed runs"));

static double millisecondsOf(function_ref<void()> work) {
  auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(
             std::chrono::steady_clock::now() - start)
      .count();
}

/// Medians, in ms, of `repeat` runs after one that isn't counted. The CPU time
/// of all threads tells what a busy machine hides.
struct Timing {
  double wall, cpu;
};

static Timing medianOf(function_ref<void()> work) {
  work();
  std::vector<double> wall, cpu;
  for (int i = 0; i < repeat; ++i) {
    std::clock_t start = std::clock();
    wall.push_back(millisecondsOf(work));
    cpu.push_back(1e3 * (std::clock() - start) / CLOCKS_PER_SEC);
  }
  llvm::sort(wall);
  llvm::sort(cpu);
  return {wall[repeat / 2], cpu[repeat / 2]};
}

static void print(const char *what, Timing time, double flops) {
  outs() << format("%-8s %8.2f ms, %6.1f GFLOP/s; %8.2f ms of CPU, %6.1f "
                   "GFLOP/s a thread\n",
                   what, time.wall, flops / time.wall / 1e6, time.cpu,
                   flops / time.cpu / 1e6);
}

/// Runs `work(id)` for every id below `count`; threads draw ids.
static void parallelFor(int64_t count, const std::function<void(int)> &work) {
  std::atomic<int64_t> next{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < numThreads; ++i)
    threads.emplace_back([&] {
      for (int64_t id; (id = next++) < count;)
        work(id);
    });
  for (std::thread &thread : threads)
    thread.join();
}

static std::string getSource() {
  std::string tensor =
      formatv("tensor<?x{0}x?x{1}x{2}>", heads, headDim, dtype);
  std::string mask = R"(
    mask_mod (%b: i32, %h: i32, %i: i32, %j: i32) {
      %visible = arith.cmpi sle, %j, %i : i32
      attn.yield %visible : i1
    })";
  return formatv(
      R"(func.func @attention(%q: {0}, %k: {0}, %v: {0}, %o: {0}) -> {0} {{
  %r = attn.attention ins(%q, %k, %v : {0}, {0}, {0}) outs(%o : {0})
    {{schedule = #attn.schedule<block_m = {2}, block_n = {3}, num_stages = 1, num_warps = 1>} {1}
    -> {0}
  return %r : {0}
})",
      tensor, causal ? mask : "", blockM, blockN);
}

int main(int argc, char **argv) {
  InitLLVM init(argc, argv);
  cl::ParseCommandLineOptions(argc, argv, "Fused attention on the CPU\n");

  mlir::DialectRegistry registry;
  mlir::attn::registerAttncDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  auto module = mlir::parseSourceString<mlir::ModuleOp>(getSource(), &context);
  mlir::PassManager pm(&context);
  mlir::attn::buildAttnPipeline(pm, mlir::attn::Variant::Fused,
                                *mlir::attn::TargetInfo::lookup("cpu"));
  bool compiled = false;
  double passes =
      millisecondsOf([&] { compiled = module && succeeded(pm.run(*module)); });
  if (!compiled)
    return 1;
  ExitOnError exitOnError("attn-bench-cpu: ");
  std::unique_ptr<attn::CpuJit> jit;
  std::string name = formatv("fused_attn_cpu_{0}_d{1}", dtype, headDim).str();
  void *address = nullptr;
  double machineCode = millisecondsOf([&] {
    jit = exitOnError(attn::CpuJit::create(*module));
    address = jit->lookup(name);
  });
  outs() << format("compile: %.1f ms passes, %.1f ms LLVM\n", passes,
                   machineCode);

  int64_t bytes = dtype == "f32" ? 4 : 2;
  int64_t headSize = length * headDim, size = heads * headSize;
  std::vector<std::vector<float>> tensors(4, std::vector<float>(size));
  std::mt19937 generator(1);
  std::normal_distribution<float> normal;
  for (auto &tensor : MutableArrayRef(tensors).take_front(3))
    for (float &value : tensor)
      // 16-bit types see the bits of floats: finite values, wrong numbers.
      value = bytes == 4 ? normal(generator) : 0.5f;

  struct Memory {
    void *data;
    int32_t batch = 1, rows;
    int64_t strides[3];
  };
  std::vector<Memory> memory;
  std::vector<void *> params;
  for (auto &tensor : tensors)
    memory.push_back(
        {tensor.data(), 1, int32_t(length), {size, headSize, headDim}});
  for (Memory &m : memory)
    params.insert(params.end(), {&m.data, &m.batch, &m.rows, &m.strides[0],
                                 &m.strides[1], &m.strides[2]});
  auto *kernel = reinterpret_cast<void (*)(void **, int32_t)>(address);
  int64_t grid = heads * divideCeil(length, blockM);
  Timing fused = medianOf(
      [&] { parallelFor(grid, [&](int id) { kernel(params.data(), id); }); });
  double flops = 4.0 * heads * length * length * headDim / (causal ? 2 : 1);
  print("fused", fused, flops);
  if (bytes != 4)
    return 0;

  setSingleThreadedBlas();
  std::vector<float> output(size), scores(heads * length * length);
  Timing unfused = medianOf([&] {
    parallelFor(heads, [&](int head) {
      int64_t at = head * headSize;
      runUnfusedHead(&tensors[0][at], &tensors[1][at], &tensors[2][at],
                     &output[at], &scores[head * length * length], length,
                     headDim, causal);
    });
  });
  double error = 0;
  for (auto [a, b] : zip(output, tensors[3]))
    error = std::max<double>(error, std::abs(a - b));
  print("unfused", unfused, flops);
  outs() << format("fused is %.2f times as fast as OpenBLAS; largest "
                   "difference %.1e\n",
                   unfused.wall / fused.wall, error);
}
