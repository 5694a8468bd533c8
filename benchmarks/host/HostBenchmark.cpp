//===- HostBenchmark.cpp - What a call costs on the host ------------------===//
//
// On a device that does nothing, so that only our own work is timed: on a GPU,
// the driver's cuLaunchKernel comes on top.
//
//===----------------------------------------------------------------------===//

#include "attn/Compiler/CompiledKernel.h"
#include "attn/Compiler/Compiler.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FileSystem.h"
#include <benchmark/benchmark.h>

using namespace attn;

namespace {

constexpr int64_t kHeads = 16, kLength = 1024, kDim = 64;

struct NoKernel : LoadedKernel {};

struct NoModule : LoadedModule {
  llvm::Expected<std::unique_ptr<LoadedKernel>>
  getKernel(const Kernel &) override {
    return std::make_unique<NoKernel>();
  }
};

/// A GPU of infinite speed.
class NoDevice : public Device {
public:
  std::string getName() const override { return "none"; }
  bool isGPU() const override { return true; }
  int64_t getCacheBytes() const override { return 0; }
  int64_t getNumSMs() const override { return 132; }
  llvm::Error checkTarget(llvm::StringRef) const override {
    return llvm::Error::success();
  }
  llvm::Expected<std::unique_ptr<LoadedModule>>
  load(const KernelCode &) override {
    return std::make_unique<NoModule>();
  }
  llvm::Expected<DeviceAddress> allocate(int64_t) override { return 256; }
  void free(DeviceAddress) override {}
  llvm::Error upload(DeviceAddress, const void *, int64_t) override {
    return llvm::Error::success();
  }
  llvm::Error download(void *, DeviceAddress, int64_t) override {
    return llvm::Error::success();
  }
  llvm::Error encodeTensorMap(DeviceAddress, const TensorMapShape &,
                              EncodedTensorMap &) override {
    return llvm::Error::success();
  }
  llvm::Error copy(DeviceAddress, DeviceAddress, int64_t, Stream) override {
    return llvm::Error::success();
  }
  llvm::Error memset(DeviceAddress, uint8_t, int64_t, Stream) override {
    return llvm::Error::success();
  }
  llvm::Error launch(LoadedKernel &, int64_t,
                     llvm::MutableArrayRef<void *> params, Stream) override {
    benchmark::DoNotOptimize(params.data());
    return llvm::Error::success();
  }
  llvm::Expected<std::unique_ptr<Event>> createEvent() override {
    return std::make_unique<Event>();
  }
  llvm::Error record(Event &) override { return llvm::Error::success(); }
  llvm::Error synchronize(Stream) override { return llvm::Error::success(); }
  llvm::Expected<double> getElapsedMicroseconds(Event &, Event &) override {
    return 0;
  }
};

AttentionSpec getSpec() {
  AttentionSpec spec;
  spec.numQueryHeads = spec.numKVHeads = kHeads;
  spec.qkHeadDim = spec.vHeadDim = kDim;
  spec.maskMod = mlir::attn::getCausalMask();
  return spec;
}

} // namespace

/// Launches of one shape by a plan of `target`.
static void launch(benchmark::State &state, const char *target) {
  mlir::DialectRegistry registry;
  mlir::attn::registerAttncDialects(registry);
  mlir::MLIRContext context(registry);
  auto module = mlir::parseSourceString<mlir::ModuleOp>(
      llvm::cantFail(getSpec().print()), &context);
  CompileOptions options;
  options.target = target;
  auto lowered = llvm::cantFail(lower(*module, options));
  auto manifest = llvm::cantFail(
      Manifest::parse(llvm::cantFail(emitManifest(*lowered, options))));
  NoDevice device;
  auto executable =
      llvm::cantFail(Executable::create(std::move(manifest), {}, device));
  Launcher launcher(*executable);

  const int64_t shape[] = {1, kHeads, kLength, kDim};
  const int64_t strides[] = {kHeads * kLength * kDim, kLength * kDim, kDim, 1};
  std::vector<TensorView> views;
  for (intptr_t i = 1; i <= 4; ++i)
    views.push_back(
        {DType::BF16, shape, strides, reinterpret_cast<void *>(i << 32)});
  for (auto _ : state)
    llvm::cantFail(launcher.launch({}, views));
}
BENCHMARK_CAPTURE(launch, sm_80, "sm_80");
BENCHMARK_CAPTURE(launch, sm_90a, "sm_90a");

static KernelOptions getCpuOptions() {
  KernelOptions options;
  options.target = "cpu";
  options.cache.reset();
  return options;
}

/// compile() of text that this process has compiled.
static void findInMemory(benchmark::State &state) {
  const std::string text = llvm::cantFail(getSpec().print());
  const KernelOptions options = getCpuOptions();
  for (auto _ : state)
    benchmark::DoNotOptimize(
        llvm::cantFail(CompiledKernel::compile(text, options)));
}
BENCHMARK(findInMemory);

/// compile() of text that another process has compiled, the CPU's linking
/// included.
static void findOnDisk(benchmark::State &state) {
  llvm::SmallString<128> folder;
  if (llvm::sys::fs::createUniqueDirectory("attnc-host", folder))
    return state.SkipWithError("no folder");
  KernelOptions options = getCpuOptions();
  options.cache.emplace(folder.str().str());
  const std::string text = llvm::cantFail(getSpec().print());
  llvm::cantFail(CompiledKernel::compile(text, options));
  for (auto _ : state) {
    state.PauseTiming();
    // Out of memory.
    for (size_t i = 0; i < CompiledKernel::kMaxInMemory; ++i) {
      KernelOptions none = getCpuOptions();
      none.target = "none" + std::to_string(i);
      llvm::consumeError(CompiledKernel::compile("", none).takeError());
    }
    state.ResumeTiming();
    llvm::cantFail(CompiledKernel::compile(text, options));
  }
  llvm::sys::fs::remove_directories(folder);
}
BENCHMARK(findOnDisk)->Unit(benchmark::kMillisecond);

BENCHMARK_MAIN();
