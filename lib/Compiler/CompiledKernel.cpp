//===- CompiledKernel.cpp - Compile once, launch often --------------------===//

#include "attn/Compiler/CompiledKernel.h"
#include "Diagnostics.h"
#include "Program.h"
#include "attn/Compiler/TileWork.h"
#include "attn/Runtime/HostWork.h"
#include "attn/Runtime/TensorMaps.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringMap.h"
#include <deque>
#include <map>
#include <mutex>

using namespace attn;

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

/// In a context of its own. The error holds the diagnostics, which call the
/// text `name`.
static llvm::Expected<LoweredModule> lowerText(llvm::StringRef text,
                                               llvm::StringRef name,
                                               const CompileOptions &options) {
  mlir::DialectRegistry registry;
  mlir::attn::registerAttncDialects(registry);
  LoweredModule result;
  // One small module: starting threads costs more than they save.
  result.context = std::make_unique<mlir::MLIRContext>(
      registry, mlir::MLIRContext::Threading::DISABLED);
  ErrorCollector errors(*result.context, text);
  auto module =
      mlir::parseSourceString<mlir::ModuleOp>(text, result.context.get(), name);
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
  std::unique_ptr<Program> program;
  std::unique_ptr<Launcher> launcher;

  /// The kernel for tensors that `launcher` refuses with `error`.
  llvm::Expected<Impl *> getSecond(llvm::Error error);

  /// What this was compiled from.
  std::string text;
  KernelOptions options;
  std::mutex secondMutex;
  std::shared_ptr<Impl> second;
};

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
  ProgramSource source;
  source.text = text;
  source.options = getCompileOptions(options, *impl->device);
  source.lower = [text = impl->text, name = options.sourceName,
                  options = source.options] {
    return lowerText(text, name, options);
  };
  source.cache = options.cache;
  source.onCacheFailure = options.onCacheFailure;
  source.continuesInBackground = true;
  auto program = Program::load(std::move(source), *impl->device);
  if (!program)
    return program.takeError();
  impl->program = std::move(*program);
  const Executable &executable = impl->program->getExecutable();
  impl->launcher = std::make_unique<Launcher>(executable);
  impl->launcher->setTileMapper(
      makeTileMapper(impl->text, executable.getManifest()));
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
  KernelOptions named = options;
  named.sourceName = AttentionSpec::kSourceName;
  return compile(*text, named);
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
  KernelOptions withoutTMA = options;
  withoutTMA.avoidsTMA = true;
  llvm::Expected<CompiledKernel> kernel = compile(text, withoutTMA);
  if (!kernel)
    return llvm::createStringError(reason + "\n" +
                                   llvm::toString(kernel.takeError()));
  if (options.onSecondKernel)
    options.onSecondKernel(reason);
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
  return impl->program->getExecutable().prepare();
}

const Manifest &CompiledKernel::getManifest() const {
  return impl->program->getExecutable().getManifest();
}

const std::string &CompiledKernel::getManifestText() const {
  return impl->program->getManifestText();
}

Device &CompiledKernel::getDevice() const { return *impl->device; }

CompiledKernel::Origin CompiledKernel::getOrigin() const {
  return impl->program->isFromDisk() ? Origin::Disk : Origin::Compiled;
}
