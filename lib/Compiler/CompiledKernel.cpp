//===- CompiledKernel.cpp - Compile once, launch often --------------------===//

#include "attn/Compiler/CompiledKernel.h"
#include "Diagnostics.h"
#include "GpuCode.h"
#include "attn/Compiler/Compiler.h"
#include "attn/Compiler/TileWork.h"
#include "attn/Compiler/Version.h"
#include "attn/Runtime/HostWork.h"
#include "attn/Runtime/Ptxas.h"
#include "attn/Runtime/TensorMaps.h"
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

static CompileOptions getCompileOptions(const KernelOptions &options,
                                        const Device &device) {
  CompileOptions result;
  result.setBackend(getBackend(options));
  result.entry = options.entry;
  result.avoidsTMA = options.avoidsTMA;
  result.target =
      options.target == "native" ? getBestTarget(device).str() : options.target;
  return result;
}

/// In a context of its own. The error holds the diagnostics.
static llvm::Expected<LoweredModule> lowerText(llvm::StringRef text,
                                               const CompileOptions &options) {
  mlir::DialectRegistry registry;
  mlir::attn::registerAttncDialects(registry);
  LoweredModule result;
  // One small module: starting threads costs more than they save.
  result.context = std::make_unique<mlir::MLIRContext>(
      registry, mlir::MLIRContext::Threading::DISABLED);
  ErrorCollector errors(*result.context);
  auto module = mlir::parseSourceString<mlir::ModuleOp>(
      text, result.context.get(), kSourceName);
  if (!module)
    return errors.takeError("the text can't be parsed");
  auto lowered = lower(*module, options);
  if (!lowered)
    return errors.takeError(llvm::toString(lowered.takeError()));
  result.module = std::move(*lowered);
  return result;
}

//===----------------------------------------------------------------------===//
// Loading
//===----------------------------------------------------------------------===//

struct CompiledKernel::Impl {
  static llvm::Expected<std::shared_ptr<Impl>>
  create(llvm::StringRef text, const KernelOptions &options);

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

private:
  std::shared_ptr<GpuCode> makeGpuCode(const Manifest &manifest) const;
  llvm::Error load(const CachedModule &module, LoweredModule lowered);
  llvm::Error loadCode(Manifest manifest, const CachedModule &module,
                       LoweredModule lowered);
  llvm::Error loadFromDisk();
  llvm::Error compileText();
  void reportCacheFailure(llvm::Error error) const;

  /// Empty without a cache.
  std::string key;
};

void CompiledKernel::Impl::reportCacheFailure(llvm::Error error) const {
  if (!error)
    return;
  const std::string reason = llvm::toString(std::move(error));
  if (options.onCacheFailure)
    options.onCacheFailure(reason);
}

/// It may outlive this.
std::shared_ptr<GpuCode>
CompiledKernel::Impl::makeGpuCode(const Manifest &manifest) const {
  const CompileOptions compileOptions = getCompileOptions(options, *device);
  GpuCode::Options codeOptions;
  codeOptions.target = compileOptions.target;
  codeOptions.lower = [text = text, compileOptions] {
    return lowerText(text, compileOptions);
  };
  if (!key.empty())
    codeOptions.store = [cache = *options.cache, key = key,
                         manifest = manifestText](auto images) {
      return cache.store(key, {manifest, std::move(images)});
    };
  codeOptions.onStoreFailure = options.onCacheFailure;
  codeOptions.continuesInBackground = true;
  return std::make_shared<GpuCode>(manifest, std::move(codeOptions));
}

llvm::Error CompiledKernel::Impl::loadCode(Manifest manifest,
                                           const CachedModule &module,
                                           LoweredModule lowered) {
  auto keep =
      [&](llvm::Expected<std::unique_ptr<Executable>> created) -> llvm::Error {
    if (!created)
      return created.takeError();
    executable = std::move(*created);
    return llvm::Error::success();
  };
  // The device loads what cuDNN brings.
  if (manifest.usesCudnn())
    return keep(Executable::create(std::move(manifest), KernelCode(), *device));
  if (device->isGPU()) {
    std::shared_ptr<GpuCode> code = makeGpuCode(manifest);
    if (lowered.module)
      code->setLowered(std::move(lowered));
    else if (!code->setImages(module.images))
      return llvm::createStringError("the images are another manifest's");
    return keep(Executable::createLazily(std::move(manifest), code, *device));
  }
  if (module.images.size() != 1)
    return llvm::createStringError("the CPU takes one object");
  auto jit = CpuJit::load(module.images.front());
  if (!jit)
    return jit.takeError();
  cpu = std::move(*jit);
  KernelCode code;
  code.lookup = [jit = cpu.get()](llvm::StringRef name) {
    return jit->lookup(name);
  };
  return keep(Executable::create(std::move(manifest), code, *device));
}

/// With `lowered`, a GPU's code is made of it, else `module` has it.
llvm::Error CompiledKernel::Impl::load(const CachedModule &module,
                                       LoweredModule lowered) {
  llvm::Expected<Manifest> manifest = Manifest::parse(module.manifest);
  if (!manifest)
    return manifest.takeError();
  manifestText = module.manifest;
  if (llvm::Error error =
          loadCode(std::move(*manifest), module, std::move(lowered)))
    return error;
  launcher = std::make_unique<Launcher>(*executable);
  launcher->setTileMapper(makeTileMapper(text, executable->getManifest()));
  return llvm::Error::success();
}

/// Fails where there is nothing, or nothing of use.
llvm::Error CompiledKernel::Impl::loadFromDisk() {
  HostWorkTimer timer(HostWork::Lookup);
  std::optional<CachedModule> found = options.cache->lookup(key);
  timer.finish(found ? "disk hit" : "miss");
  if (!found)
    return llvm::createStringError("it isn't in the cache");
  origin = Origin::Disk;
  return load(*found, {});
}

/// A GPU's code is made and stored when it is needed.
llvm::Error CompiledKernel::Impl::compileText() {
  origin = Origin::Compiled;
  HostWorkTimer timer(HostWork::Compile);
  const CompileOptions compileOptions = getCompileOptions(options, *device);
  llvm::Expected<LoweredModule> lowered = lowerText(text, compileOptions);
  if (!lowered)
    return lowered.takeError();
  llvm::Expected<std::string> manifest =
      emitManifest(*lowered->module, compileOptions);
  if (!manifest)
    return manifest.takeError();
  CachedModule module{std::move(*manifest), {}};
  if (!device->isGPU()) {
    llvm::Expected<std::string> object = compileForHost(*lowered->module);
    if (!object)
      return object.takeError();
    module.images.push_back(std::move(*object));
  }
  timer.finish(stringifyBackend(getBackend(options)));
  if (llvm::Error error = load(module, std::move(*lowered)))
    return error;
  if (!device->isGPU() && !key.empty())
    reportCacheFailure(options.cache->store(key, module));
  return llvm::Error::success();
}

llvm::Expected<std::shared_ptr<CompiledKernel::Impl>>
CompiledKernel::Impl::create(llvm::StringRef text,
                             const KernelOptions &options) {
  llvm::Expected<std::shared_ptr<Device>> device = getSharedDevice(options);
  if (!device)
    return device.takeError();
  auto impl = std::make_shared<Impl>();
  impl->device = std::move(*device);
  impl->text = text;
  impl->options = options;
  impl->options.backend = getBackend(options);
  // What is made of a call of cuDNN is no longer than its text.
  if (options.cache && impl->options.backend != Backend::Cudnn) {
    impl->key = getCacheKey(text, options, *impl->device);
    llvm::Error error = impl->loadFromDisk();
    if (!error)
      return impl;
    llvm::consumeError(std::move(error));
  }
  if (llvm::Error error = impl->compileText())
    return std::move(error);
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

llvm::Error CompiledKernel::prepare() const {
  return impl->executable->prepare();
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
