//===- LaunchBenchmark.cpp - What a launch costs the host on a GPU --------===//
//
// Usage: attn-launch-benchmark [--target=sm_90a] [--json=FILE]
//
// Our launches beside the driver's own: of an empty kernel, without and with
// parameters as large as tensor maps, and of our kernel with its parameters
// ready. Each launch is timed by itself; the GPU is waited for between batches,
// so that no launch waits for a full queue.
//
//===----------------------------------------------------------------------===//

#include "../../lib/Runtime/CudaDriver.h"
#include "attn/Compiler/CompiledKernel.h"
#include "attn/Compiler/Compiler.h"
#include "attn/Runtime/TensorMaps.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/JSON.h"
#include <chrono>

namespace cl = llvm::cl;
using namespace attn;
using namespace attn::cuda;

static cl::OptionCategory category("attn-launch-benchmark options");
static cl::opt<std::string>
    targetName("target",
               cl::desc("sm_80, sm_90a, or native: the best that "
                        "the GPU runs (the default)"),
               cl::init("native"), cl::cat(category));
static cl::opt<std::string> jsonFile("json",
                                     cl::desc("Where to write the times"),
                                     cl::value_desc("FILE"), cl::cat(category));

// So little work that the GPU keeps up, and so many queries that the kernel is
// the one with tensor maps, where the target has such.
static constexpr int64_t kHeads = 2, kLength = 256, kDim = 64;
static constexpr int kBatches = 200, kLaunchesPerBatch = 100;
/// Of tensors, which are taken in turns.
static constexpr int kNumSets = 4;

static constexpr char kEmptyKernels[] = R"(
.version 7.0
.target sm_80
.address_size 64
.visible .entry empty() { ret; }
.visible .entry with_maps(
  .param .align 64 .b8 a[128], .param .align 64 .b8 b[128],
  .param .align 64 .b8 c[128], .param .align 64 .b8 d[128]) { ret; }
)";

namespace {

using Work = llvm::function_ref<llvm::Error(int turn)>;

struct Times {
  llvm::StringRef streamName;
  std::string name;
  double medianUs, p99Us;
};

/// A launch as the driver takes it.
struct DriverLaunch {
  CUfunction function;
  int64_t grid = 1, threads = 32, sharedBytes = 0;
  std::vector<uint64_t> values;
  std::vector<EncodedTensorMap> maps;
  std::vector<void *> params;
};

class Bench {
public:
  static llvm::Expected<std::unique_ptr<Bench>> create();

  llvm::Error run();
  llvm::ArrayRef<Times> getTimes() const { return times; }

private:
  llvm::Error time(const llvm::Twine &name, Stream stream, Work work);
  llvm::Error timeEmptyKernels(Stream stream);
  llvm::Error timeOurKernel(Stream stream);
  llvm::Error allocate();
  llvm::Expected<CUfunction> load(const char *image, const char *name);
  llvm::Expected<DriverLaunch> bind();
  llvm::Error launch(DriverLaunch &launch, Stream stream);
  std::vector<TensorView> getViews(int set) const;

  const Driver *driver = nullptr;
  std::string text;
  std::optional<CompiledKernel> kernel;
  std::vector<DeviceMemory> memory;
  DeviceMemory arena;
  /// Of what is timed now.
  llvm::StringRef streamName;
  std::vector<Times> times;
};

} // namespace

llvm::Expected<std::unique_ptr<Bench>> Bench::create() {
  auto bench = std::make_unique<Bench>();
  llvm::Expected<const Driver *> driver = Driver::get();
  if (!driver)
    return driver.takeError();
  bench->driver = *driver;
  AttentionSpec spec;
  spec.numQueryHeads = spec.numKVHeads = kHeads;
  spec.qkHeadDim = spec.vHeadDim = kDim;
  spec.maskMod = mlir::attn::getCausalMask();
  llvm::Expected<std::string> text = spec.print();
  if (!text)
    return text.takeError();
  bench->text = std::move(*text);
  KernelOptions options;
  options.target = targetName;
  options.cache.reset();
  auto kernel = CompiledKernel::compile(bench->text, options);
  if (!kernel)
    return kernel.takeError();
  if (!kernel->getDevice().isGPU())
    return llvm::createStringError("there is no GPU");
  bench->kernel = std::move(*kernel);
  // Nothing shall go on in the background.
  if (llvm::Error error = bench->kernel->prepare())
    return std::move(error);
  if (llvm::Error error = bench->allocate())
    return std::move(error);
  return bench;
}

llvm::Error Bench::allocate() {
  Device &device = kernel->getDevice();
  const int64_t bytes = kHeads * kLength * kDim * getByteSize(DType::BF16);
  for (int i = 0; i < 4 * kNumSets; ++i) {
    auto tensor = DeviceMemory::allocate(device, bytes);
    if (!tensor)
      return tensor.takeError();
    if (llvm::Error error = device.memset(tensor->getAddress(), 0, bytes,
                                          device.getOwnStream()))
      return error;
    memory.push_back(std::move(*tensor));
  }
  return device.synchronize();
}

std::vector<TensorView> Bench::getViews(int set) const {
  static const int64_t shape[] = {1, kHeads, kLength, kDim};
  static const int64_t strides[] = {kHeads * kLength * kDim, kLength * kDim,
                                    kDim, 1};
  std::vector<TensorView> views;
  for (int i = 0; i < 4; ++i)
    views.push_back(
        {DType::BF16, shape, strides,
         reinterpret_cast<void *>(memory[4 * set + i].getAddress())});
  return views;
}

//===----------------------------------------------------------------------===//
// The driver's launches
//===----------------------------------------------------------------------===//

llvm::Expected<CUfunction> Bench::load(const char *image, const char *name) {
  CUmodule module;
  if (llvm::Error error = driver->check(
          driver->ModuleLoadDataEx(&module, image, 0, nullptr, nullptr),
          "cuModuleLoadDataEx"))
    return std::move(error);
  CUfunction function;
  if (llvm::Error error =
          driver->check(driver->ModuleGetFunction(&function, module, name),
                        "cuModuleGetFunction"))
    return std::move(error);
  return function;
}

llvm::Error Bench::launch(DriverLaunch &launch, Stream stream) {
  return driver->check(
      driver->LaunchKernel(launch.function, launch.grid, 1, 1, launch.threads,
                           1, 1, launch.sharedBytes,
                           static_cast<CUstream>(stream.handle),
                           launch.params.data(), nullptr),
      "cuLaunchKernel");
}

/// Our kernel, loaded once more, with the parameters of the first tensors.
llvm::Expected<DriverLaunch> Bench::bind() {
  Device &device = kernel->getDevice();
  const Manifest &manifest = kernel->getManifest();
  mlir::DialectRegistry registry;
  mlir::attn::registerAttncDialects(registry);
  mlir::MLIRContext context(registry);
  CompileOptions options;
  options.target = manifest.target;
  auto program = compile(
      *mlir::parseSourceString<mlir::ModuleOp>(text, &context), options);
  if (!program)
    return program.takeError();

  const std::vector<TensorView> views = getViews(/*set=*/0);
  std::vector<Tensor> tensors;
  for (const TensorView &view : views)
    tensors.push_back(
        Tensor::borrow(view.dtype, view.shape, view.strides, view.data));
  auto plan = BoundPlan::create(manifest, device.getNumSMs(), tensors);
  if (!plan)
    return plan.takeError();
  if (plan->steps.size() != 1)
    return llvm::createStringError("the plan has several steps");
  auto workspace = DeviceMemory::allocate(device, plan->arenaBytes);
  if (!workspace)
    return workspace.takeError();
  arena = std::move(*workspace);
  if (llvm::Error error = device.memset(arena.getAddress(), 0, plan->arenaBytes,
                                        device.getOwnStream()))
    return std::move(error);

  const Kernel &info = manifest.kernels[plan->steps[0].kernel];
  auto function = load(program->ptx.c_str(), info.name.c_str());
  if (!function)
    return function.takeError();
  if (llvm::Error error = driver->check(
          driver->FuncSetAttribute(
              *function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
              info.dynamicSharedBytes),
          "cuFuncSetAttribute"))
    return std::move(error);
  DriverLaunch result;
  result.function = *function;
  result.grid = plan->steps[0].grid;
  result.threads = info.getThreadsPerBlock();
  result.sharedBytes = info.dynamicSharedBytes;
  const auto &parameters = plan->targets[0].parameters;
  result.values.reserve(parameters.size());
  result.maps.reserve(parameters.size());
  for (const BoundPlan::Parameter &parameter : parameters) {
    uint64_t value = parameter.value;
    if (const auto &buffer = parameter.buffer)
      value =
          buffer->offset +
          (buffer->argument
               ? reinterpret_cast<DeviceAddress>(views[*buffer->argument].data)
               : arena.getAddress());
    if (!parameter.map) {
      result.params.push_back(&result.values.emplace_back(value));
      continue;
    }
    auto map = encodeTensorMap(device, manifest, parameter, value);
    if (!map)
      return map.takeError();
    result.params.push_back(&result.maps.emplace_back(*map));
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Timing
//===----------------------------------------------------------------------===//

llvm::Error Bench::time(const llvm::Twine &name, Stream stream, Work work) {
  using Clock = std::chrono::steady_clock;
  Device &device = kernel->getDevice();
  std::vector<double> samples;
  // The first batch warms up.
  for (int batch = 0; batch <= kBatches; ++batch) {
    for (int turn = 0; turn < kLaunchesPerBatch; ++turn) {
      const Clock::time_point start = Clock::now();
      if (llvm::Error error = work(turn))
        return error;
      const std::chrono::duration<double, std::micro> took =
          Clock::now() - start;
      if (batch > 0)
        samples.push_back(took.count());
    }
    if (llvm::Error error = device.synchronize(stream))
      return error;
  }
  llvm::sort(samples);
  const Times &result = times.emplace_back(
      Times{streamName, name.str(), samples[samples.size() / 2],
            samples[samples.size() * 99 / 100]});
  llvm::outs() << llvm::formatv("{0,-64} {1,7:F2} {2,7:F2}\n", result.name,
                                result.medianUs, result.p99Us);
  return llvm::Error::success();
}

llvm::Error Bench::timeEmptyKernels(Stream stream) {
  EncodedTensorMap map = {};
  for (auto [name, count] :
       {std::pair("empty", 0), std::pair("with_maps", 4)}) {
    auto function = load(kEmptyKernels, name);
    if (!function)
      return function.takeError();
    DriverLaunch empty;
    empty.function = *function;
    empty.params.assign(count, &map);
    const char *about = count ? ", 4 parameters of 128 bytes" : "";
    if (llvm::Error error =
            time(llvm::Twine("cuLaunchKernel, empty kernel") + about, stream,
                 [&](int) { return launch(empty, stream); }))
      return error;
  }
  return llvm::Error::success();
}

llvm::Error Bench::timeOurKernel(Stream stream) {
  auto bound = bind();
  if (!bound)
    return bound.takeError();
  if (llvm::Error error =
          time("cuLaunchKernel, our kernel, " +
                   llvm::Twine(bound->values.size()) + " numbers and " +
                   llvm::Twine(bound->maps.size()) + " tensor maps",
               stream, [&](int) { return launch(*bound, stream); }))
    return error;
  std::vector<std::vector<TensorView>> sets;
  for (int set = 0; set < kNumSets; ++set)
    sets.push_back(getViews(set));
  if (llvm::Error error =
          time("CompiledKernel::launch, the same tensors", stream,
               [&](int) { return kernel->launch(stream, sets[0]); }))
    return error;
  return time(
      "CompiledKernel::launch, other tensors each time", stream,
      [&](int turn) { return kernel->launch(stream, sets[turn % kNumSets]); });
}

llvm::Error Bench::run() {
  CUdevice ordinal;
  CUcontext context;
  if (llvm::Error error =
          driver->check(driver->DeviceGet(&ordinal, 0), "cuDeviceGet"))
    return error;
  if (llvm::Error error =
          driver->check(driver->DevicePrimaryCtxRetain(&context, ordinal),
                        "cuDevicePrimaryCtxRetain"))
    return error;
  // As in a program that uses the CUDA runtime, or torch.
  ScopedContext scope(*driver, context);
  const Stream own = kernel->getDevice().getOwnStream();
  for (auto [name, stream] :
       {std::pair("a stream of its own", own),
        std::pair("the legacy default stream", Stream{})}) {
    streamName = name;
    llvm::outs() << llvm::formatv("{0,-64}  median     p99\n",
                                  "us of host time, " + streamName);
    if (llvm::Error error = timeEmptyKernels(stream))
      return error;
    if (llvm::Error error = timeOurKernel(stream))
      return error;
  }
  return llvm::Error::success();
}

static llvm::Error writeTimes(llvm::ArrayRef<Times> times) {
  std::error_code code;
  llvm::raw_fd_ostream os(jsonFile, code);
  if (code)
    return llvm::createFileError(jsonFile, code);
  llvm::json::OStream json(os, 1);
  json.array([&] {
    for (const Times &entry : times)
      json.object([&] {
        json.attribute("stream", entry.streamName);
        json.attribute("name", entry.name);
        json.attribute("median_us", entry.medianUs);
        json.attribute("p99_us", entry.p99Us);
      });
  });
  return llvm::Error::success();
}

static llvm::Error runAll() {
  auto bench = Bench::create();
  if (!bench)
    return bench.takeError();
  if (llvm::Error error = (*bench)->run())
    return error;
  return jsonFile.empty() ? llvm::Error::success()
                          : writeTimes((*bench)->getTimes());
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(argc, argv,
                              "Times launches on a GPU, on the host's side\n");
  llvm::ExitOnError exitOnError("attn-launch-benchmark: ");
  exitOnError(runAll());
  return 0;
}
