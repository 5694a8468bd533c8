//===- Program.cpp - An entry point that is compiled and loaded -----------===//

#include "Program.h"
#include "attn/Compiler/Version.h"
#include "attn/Runtime/HostWork.h"
#include "attn/Runtime/Ptxas.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"

using namespace attn;

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

static std::string getKey(const ProgramSource &source, const Device &device) {
  const std::string toolchain =
      device.isGPU() ? describePtxas() : getHostDescription();
  const CompileOptions &options = source.options;
  return DiskCache::getKey({getSourceHash(), LLVM_VERSION_STRING, source.text,
                            options.target, options.entry,
                            mlir::attn::stringifyVariant(options.variant),
                            device.isGPU() ? device.getName() : "cpu",
                            toolchain, options.avoidsTMA ? "no TMA" : ""});
}

/// Fails where there is nothing, or nothing of use.
llvm::Error Program::loadFromDisk() {
  HostWorkTimer timer(HostWork::Lookup);
  std::optional<CachedModule> found = source.cache->lookup(key);
  timer.finish(found ? "disk hit" : "miss");
  if (!found)
    return llvm::createStringError("it isn't in the cache");
  return loadModule(*found, {});
}

/// A GPU's code is made and stored when it is needed.
llvm::Error Program::compile() {
  HostWorkTimer timer(HostWork::Compile);
  llvm::Expected<LoweredModule> lowered = source.lower();
  if (!lowered)
    return lowered.takeError();
  if (!lowered->isStorable)
    key.clear();
  llvm::Expected<std::string> manifest =
      emitManifest(*lowered->module, source.options);
  if (!manifest)
    return manifest.takeError();
  CachedModule module{std::move(*manifest), {}};
  if (!device.isGPU()) {
    llvm::Expected<std::string> object = compileForHost(*lowered->module);
    if (!object)
      return object.takeError();
    module.images.push_back(std::move(*object));
  }
  timer.finish(source.options.usesCudnn
                   ? stringifyBackend(Backend::Cudnn)
                   : mlir::attn::stringifyVariant(source.options.variant));
  if (llvm::Error error = loadModule(module, std::move(*lowered)))
    return error;
  if (device.isGPU() || key.empty())
    return llvm::Error::success();
  if (llvm::Error error = source.cache->store(key, module)) {
    const std::string reason = llvm::toString(std::move(error));
    if (source.onCacheFailure)
      source.onCacheFailure(reason);
  }
  return llvm::Error::success();
}

/// With `lowered`, a GPU's code is made of it, else `module` has it.
llvm::Error Program::loadModule(const CachedModule &module,
                                LoweredModule lowered) {
  llvm::Expected<Manifest> manifest = Manifest::parse(module.manifest);
  if (!manifest)
    return manifest.takeError();
  manifestText = module.manifest;
  return loadCode(std::move(*manifest), module, std::move(lowered));
}

/// It may outlive this.
std::shared_ptr<GpuCode> Program::makeGpuCode(const Manifest &manifest) const {
  GpuCode::Options options;
  options.target = source.options.target;
  options.lower = source.lower;
  if (!key.empty())
    options.store = [cache = *source.cache, key = key,
                     manifest = manifestText](auto images) {
      return cache.store(key, {manifest, std::move(images)});
    };
  options.onStoreFailure = source.onCacheFailure;
  options.continuesInBackground = source.continuesInBackground;
  return std::make_shared<GpuCode>(manifest, std::move(options));
}

llvm::Error Program::loadCode(Manifest manifest, const CachedModule &module,
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
    return keep(Executable::create(std::move(manifest), KernelCode(), device));
  if (device.isGPU()) {
    std::shared_ptr<GpuCode> code = makeGpuCode(manifest);
    if (lowered.module)
      code->setLowered(std::move(lowered));
    else if (!code->setImages(module.images))
      return llvm::createStringError("the images are another manifest's");
    return keep(Executable::createLazily(std::move(manifest), code, device));
  }
  if (module.images.size() != 1)
    return llvm::createStringError("the CPU takes one object");
  HostWorkTimer timer(HostWork::Load);
  auto jit = CpuJit::load(module.images.front());
  if (!jit)
    return jit.takeError();
  cpu = std::move(*jit);
  KernelCode code;
  code.lookup = [jit = cpu.get()](llvm::StringRef name) {
    return jit->lookup(name);
  };
  // The object is linked when its first kernel is looked up.
  if (llvm::Error error =
          keep(Executable::create(std::move(manifest), code, device)))
    return error;
  timer.finish(executable->getManifest().entry);
  return llvm::Error::success();
}

llvm::Expected<std::unique_ptr<Program>> Program::load(ProgramSource source,
                                                       Device &device) {
  std::unique_ptr<Program> program(new Program(std::move(source), device));
  // What is made of a call of cuDNN is no longer than its text.
  if (program->source.cache && !program->source.options.usesCudnn) {
    program->key = getKey(program->source, device);
    llvm::Error error = program->loadFromDisk();
    program->fromDisk = !error;
    if (program->fromDisk)
      return program;
    llvm::consumeError(std::move(error));
  }
  if (llvm::Error error = program->compile())
    return std::move(error);
  return program;
}
