//===- CompiledKernel.cpp - Compile once, launch often --------------------===//

#include "attn/Compiler/CompiledKernel.h"
#include "Diagnostics.h"
#include "attn/Compiler/Compiler.h"
#include "attn/Compiler/TileWork.h"
#include "attn/Compiler/Version.h"
#include "attn/Runtime/HostWork.h"
#include "attn/Runtime/Ptxas.h"
#include "attn/Runtime/TensorMaps.h"
#include "attn/Target/PTX.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include <deque>
#include <map>
#include <mutex>

using namespace attn;

/// In diagnostics.
static constexpr llvm::StringLiteral kSourceName = "kernel.mlir";

//===----------------------------------------------------------------------===//
// Devices and targets
//===----------------------------------------------------------------------===//

static constexpr int kCpu = -1;

/// The device of all kernels on GPU `ordinal`, or on the CPU: one primary
/// context or thread pool a process.
static llvm::Expected<std::shared_ptr<Device>> findDevice(int ordinal) {
  // Never destroyed: at exit the CUDA driver may be gone already.
  static std::mutex &mutex = *new std::mutex;
  static auto &devices = *new std::map<int, std::shared_ptr<Device>>;
  std::lock_guard<std::mutex> lock(mutex);
  std::shared_ptr<Device> &device = devices[ordinal];
  if (device)
    return device;
  if (ordinal == kCpu) {
    device = createCpuDevice();
    return device;
  }
  auto created = createCudaDevice(ordinal);
  if (!created)
    return created.takeError();
  device = std::move(*created);
  return device;
}

llvm::Expected<std::shared_ptr<Device>>
attn::getSharedDevice(const KernelOptions &options) {
  if (options.device < 0)
    return llvm::createStringError("there is no device " +
                                   llvm::Twine(options.device));
  if (options.target == "cpu")
    return findDevice(kCpu);
  if (options.target != "native") {
    if (!mlir::attn::TargetInfo::lookup(options.target))
      return llvm::createStringError(mlir::attn::TargetInfo::explainUnknown(
          options.target, "native, " + mlir::attn::TargetInfo::getAllNames()));
    return findDevice(options.device);
  }
  llvm::Expected<std::shared_ptr<Device>> gpu = findDevice(options.device);
  if (gpu || options.device != 0)
    return gpu;
  llvm::consumeError(gpu.takeError());
  return findDevice(kCpu);
}

//===----------------------------------------------------------------------===//
// Compiling
//===----------------------------------------------------------------------===//

Backend attn::getBackend(const KernelOptions &options) {
  const std::optional<Backend> named =
      options.backend ? options.backend : BackendScope::getCurrent();
  if (named == Backend::Auto)
    return Backend::Fused;
  return named.value_or(getBackend(options.variant));
}

/// The assembler as it is now, or "" for none: another one makes other code.
static std::string describePtxas() {
  llvm::Expected<std::string> path = findPtxas();
  if (!path) {
    llvm::consumeError(path.takeError());
    return "";
  }
  llvm::sys::fs::file_status status;
  if (llvm::sys::fs::status(*path, status))
    return *path;
  return llvm::formatv("{0}:{1}:{2}", *path, status.getSize(),
                       status.getLastModificationTime().time_since_epoch())
      .str();
}

/// Everything that the code depends on. It is the text as it was given, not as
/// it would be printed: a hit needs no parser.
static std::string getCacheKey(llvm::StringRef text,
                               const KernelOptions &options,
                               const Device &device) {
  const std::string toolchain =
      device.isGPU() ? describePtxas() : getHostDescription();
  return DiskCache::getKey({getSourceHash(), LLVM_VERSION_STRING, text,
                            options.target, options.entry,
                            stringifyBackend(getBackend(options)),
                            device.isGPU() ? device.getName() : "cpu",
                            toolchain, options.avoidsTMA ? "no TMA" : ""});
}

/// PTX as machine code; itself where there is no assembler or where it fails,
/// so that the driver's own says why.
static std::string assembleIfPossible(std::string ptx, llvm::StringRef target) {
  llvm::Expected<PtxasResult> result = runPtxas(ptx, target);
  if (result)
    return std::move(result->cubin);
  llvm::consumeError(result.takeError());
  return ptx;
}

namespace {
/// One compilation.
struct Compilation {
  CachedModule module;
  /// GPU: what `module` was assembled from.
  std::string ptx;
};
} // namespace

static llvm::Expected<Compilation>
compileModule(mlir::ModuleOp module, const CompileOptions &options) {
  auto lowered = lower(module, options);
  if (!lowered)
    return lowered.takeError();
  llvm::Expected<std::string> manifest = emitManifest(**lowered, options);
  if (!manifest)
    return manifest.takeError();
  Compilation result;
  result.module.manifest = std::move(*manifest);
  if (options.usesCudnn)
    return result;
  if (auto gpuModule = getGPUModule(**lowered)) {
    llvm::Expected<std::string> ptx =
        mlir::attn::translateToPTX(gpuModule, options.target);
    if (!ptx)
      return ptx.takeError();
    result.ptx = std::move(*ptx);
    result.module.image = assembleIfPossible(result.ptx, options.target);
    return result;
  }
  llvm::Expected<std::string> object = compileForHost(**lowered);
  if (!object)
    return object.takeError();
  result.module.image = std::move(*object);
  return result;
}

static llvm::Expected<Compilation> compileText(llvm::StringRef text,
                                               const KernelOptions &options,
                                               const Device &device) {
  mlir::DialectRegistry registry;
  mlir::attn::registerAttncDialects(registry);
  // One small module: starting threads costs more than they save.
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  ErrorCollector errors(context);
  auto module =
      mlir::parseSourceString<mlir::ModuleOp>(text, &context, kSourceName);
  if (!module)
    return errors.takeError("the text can't be parsed");
  CompileOptions compileOptions;
  compileOptions.setBackend(getBackend(options));
  compileOptions.entry = options.entry;
  compileOptions.avoidsTMA = options.avoidsTMA;
  compileOptions.target =
      options.target == "native" ? getBestTarget(device).str() : options.target;
  llvm::Expected<Compilation> result = compileModule(*module, compileOptions);
  if (result)
    return result;
  return errors.takeError(llvm::toString(result.takeError()));
}

//===----------------------------------------------------------------------===//
// Loading
//===----------------------------------------------------------------------===//

struct CompiledKernel::Impl {
  static llvm::Expected<std::shared_ptr<Impl>>
  create(llvm::StringRef text, const KernelOptions &options);
  static llvm::Expected<std::shared_ptr<Impl>>
  load(const CachedModule &module, std::shared_ptr<Device> device,
       Origin origin);

  // In the order in which they need each other.
  std::shared_ptr<Device> device;
  std::unique_ptr<CpuJit> cpu;
  std::unique_ptr<Executable> executable;
  std::unique_ptr<Launcher> launcher;
  std::string manifestText;
  Origin origin = Origin::Compiled;

  /// The kernel for tensors that `launcher` refuses with `error`.
  llvm::Expected<Impl *> getSecond(llvm::Error error);

  /// What this was compiled from.
  std::string text;
  KernelOptions options;
  std::mutex secondMutex;
  std::shared_ptr<Impl> second;
};

llvm::Expected<std::shared_ptr<CompiledKernel::Impl>>
CompiledKernel::Impl::load(const CachedModule &module,
                           std::shared_ptr<Device> device, Origin origin) {
  llvm::Expected<Manifest> manifest = Manifest::parse(module.manifest);
  if (!manifest)
    return manifest.takeError();
  auto impl = std::make_shared<Impl>();
  impl->device = std::move(device);
  impl->origin = origin;
  impl->manifestText = module.manifest;
  KernelCode code;
  if (manifest->usesCudnn()) {
    // The device loads it.
  } else if (impl->device->isGPU()) {
    code.image = module.image;
  } else {
    auto cpu = CpuJit::load(module.image);
    if (!cpu)
      return cpu.takeError();
    impl->cpu = std::move(*cpu);
    code.lookup = [jit = impl->cpu.get()](llvm::StringRef name) {
      return jit->lookup(name);
    };
  }
  auto executable =
      Executable::create(std::move(*manifest), code, *impl->device);
  if (!executable)
    return executable.takeError();
  impl->executable = std::move(*executable);
  impl->launcher = std::make_unique<Launcher>(*impl->executable);
  return impl;
}

llvm::Expected<std::shared_ptr<CompiledKernel::Impl>>
CompiledKernel::Impl::create(llvm::StringRef text,
                             const KernelOptions &options) {
  llvm::Expected<std::shared_ptr<Device>> device = getSharedDevice(options);
  if (!device)
    return device.takeError();
  std::string key;
  // What is made of a call of cuDNN is no longer than its text.
  const bool isCached = options.cache && getBackend(options) != Backend::Cudnn;
  if (isCached) {
    HostWorkTimer timer(HostWork::Lookup);
    key = getCacheKey(text, options, **device);
    std::optional<CachedModule> found = options.cache->lookup(key);
    timer.finish(found ? "disk hit" : "miss");
    if (found) {
      auto impl = load(*found, *device, Origin::Disk);
      if (impl)
        return impl;
      // Whole, but of no use: compile it again.
      llvm::consumeError(impl.takeError());
    }
  }
  HostWorkTimer timer(HostWork::Compile);
  llvm::Expected<Compilation> compiled = compileText(text, options, **device);
  if (!compiled)
    return compiled.takeError();
  timer.finish(stringifyBackend(getBackend(options)));
  auto impl = load(compiled->module, *device, Origin::Compiled);
  if (!impl && compiled->module.image != compiled->ptx &&
      !compiled->ptx.empty()) {
    // An assembler that is newer than the driver; the driver has its own.
    llvm::consumeError(impl.takeError());
    compiled->module.image = std::move(compiled->ptx);
    impl = load(compiled->module, *device, Origin::Compiled);
  }
  if (!impl || !isCached)
    return impl;
  if (llvm::Error error = options.cache->store(key, compiled->module)) {
    const std::string reason = llvm::toString(std::move(error));
    if (options.onCacheFailure)
      options.onCacheFailure(reason);
  }
  return impl;
}

//===----------------------------------------------------------------------===//
// Kernels in memory
//===----------------------------------------------------------------------===//

/// The kernels of this process by text and options. Threads that want the same
/// one wait for the first of them to compile it.
struct CompiledKernel::MemoryCache {
  struct Slot {
    std::mutex mutex;
    std::shared_ptr<Impl> impl;
  };

  /// Never destroyed: at exit the CUDA driver may be gone already.
  static MemoryCache &get() {
    static auto &cache = *new MemoryCache;
    return cache;
  }

  std::shared_ptr<Slot> getSlot(llvm::StringRef key) {
    std::lock_guard<std::mutex> lock(mutex);
    auto [entry, isNew] = slots.try_emplace(key);
    if (!isNew)
      return entry->second;
    entry->second = std::make_shared<Slot>();
    std::shared_ptr<Slot> slot = entry->second;
    order.push_back(key.str());
    if (order.size() > kMaxInMemory) {
      slots.erase(order.front());
      order.pop_front();
    }
    return slot;
  }

private:
  std::mutex mutex;
  llvm::StringMap<std::shared_ptr<Slot>> slots;
  /// The keys, oldest first.
  std::deque<std::string> order;
};

llvm::Expected<CompiledKernel>
CompiledKernel::compile(llvm::StringRef text, const KernelOptions &options) {
  HostWorkTimer timer(HostWork::Lookup);
  const Backend backend = getBackend(options);
  // No name has a zero byte.
  llvm::SmallString<128> key;
  llvm::raw_svector_ostream(key)
      << options.target << '\0' << options.entry << '\0'
      << stringifyBackend(backend) << '\0' << options.device << '\0'
      << options.avoidsTMA << '\0' << text;
  std::shared_ptr<MemoryCache::Slot> slot = MemoryCache::get().getSlot(key);
  std::lock_guard<std::mutex> lock(slot->mutex);
  if (slot->impl) {
    timer.finish("memory hit");
  } else {
    auto impl = Impl::create(text, options);
    if (!impl)
      return impl.takeError();
    slot->impl = std::move(*impl);
    slot->impl->text = text;
    slot->impl->options = options;
    slot->impl->options.backend = backend;
    slot->impl->launcher->setTileMapper(
        makeTileMapper(text.str(), slot->impl->executable->getManifest()));
  }
  return CompiledKernel(slot->impl);
}

llvm::Expected<CompiledKernel>
CompiledKernel::compile(const AttentionSpec &spec,
                        const KernelOptions &options) {
  llvm::Expected<std::string> text = spec.print();
  if (!text)
    return text.takeError();
  return compile(*text, options);
}

llvm::Expected<CompiledKernel::Impl *>
CompiledKernel::Impl::getSecond(llvm::Error error) {
  std::string reason;
  llvm::handleAllErrors(std::move(error), [&](const UnsupportedLayout &layout) {
    reason = layout.getReason();
  });
  std::lock_guard<std::mutex> lock(secondMutex);
  if (second)
    return second.get();
  if (options.onSecondKernel)
    options.onSecondKernel(reason);
  KernelOptions withoutTMA = options;
  withoutTMA.avoidsTMA = true;
  llvm::Expected<CompiledKernel> kernel = compile(text, withoutTMA);
  if (!kernel)
    return kernel.takeError();
  second = kernel->impl;
  return second.get();
}

llvm::Error CompiledKernel::launch(Stream stream,
                                   llvm::ArrayRef<TensorView> arguments,
                                   const LaunchOptions &options) const {
  llvm::Error error = impl->launcher->launch(stream, arguments, options);
  if (!error.isA<UnsupportedLayout>() || impl->options.avoidsTMA)
    return error;
  llvm::Expected<Impl *> second = impl->getSecond(std::move(error));
  if (!second)
    return second.takeError();
  return (*second)->launcher->launch(stream, arguments, options);
}

const Manifest &CompiledKernel::getManifest() const {
  return impl->executable->getManifest();
}

const std::string &CompiledKernel::getManifestText() const {
  return impl->manifestText;
}

Device &CompiledKernel::getDevice() const { return *impl->device; }

CompiledKernel::Origin CompiledKernel::getOrigin() const {
  return impl->origin;
}
