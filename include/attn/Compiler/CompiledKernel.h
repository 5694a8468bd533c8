//===- CompiledKernel.h - Compile once, launch often ------------*- C++ -*-===//

#ifndef ATTN_COMPILER_COMPILEDKERNEL_H
#define ATTN_COMPILER_COMPILEDKERNEL_H

#include "attn/Compiler/AttentionSpec.h"
#include "attn/Compiler/Backend.h"
#include "attn/Runtime/DiskCache.h"
#include "attn/Runtime/Launcher.h"

namespace attn {

struct KernelOptions {
  /// Whose code. None: that of the thread's BackendScope, else `variant`.
  std::optional<Backend> backend;
  mlir::attn::Variant variant = mlir::attn::Variant::Fused;
  /// "cpu", "sm_80", "sm_90a", or "native": the best that the GPU runs, or
  /// the CPU where there is no GPU.
  std::string target = "native";
  /// The entry function, where MLIR text has several.
  std::string entry;
  /// What errors call the MLIR text: the name of its file, if it is from one.
  std::string sourceName = "<module text>";
  /// The GPU, as the CUDA driver numbers them.
  int device = 0;
  /// None: nothing is read from or written to disk.
  std::optional<DiskCache> cache = DiskCache::getDefault();
  /// Told why a kernel that was compiled couldn't be written to the cache.
  std::function<void(llvm::StringRef)> onCacheFailure;
  /// Where the target has its own, take the fused kernels of sm_80: they access
  /// tensors of any base and strides.
  bool avoidsTMA = false;
  /// Told which argument TMA can't access, when such come for the first time
  /// and a second kernel is compiled without it.
  std::function<void(llvm::StringRef)> onSecondKernel;
};

/// The backend that a kernel compiled now, on this thread, has; never Auto.
Backend getBackend(const KernelOptions &options);

/// The device of all kernels that are compiled with such options: one a GPU
/// and process, and one CPU.
llvm::Expected<std::shared_ptr<Device>>
getSharedDevice(const KernelOptions &options);

/// A compiled kernel (or kernel sequence). A handle: copies are the same
/// kernel, which lives as long as one of them. Everything may be called from
/// any thread.
///
/// The process keeps the kernels that were compiled last, so that compiling the
/// same again is a look-up; the disk cache keeps them beyond the process.
class CompiledKernel {
public:
  /// `text` is a module with one entry function. The error holds the
  /// diagnostics with the lines that they are about.
  static llvm::Expected<CompiledKernel>
  compile(llvm::StringRef text, const KernelOptions &options = {});
  static llvm::Expected<CompiledKernel>
  compile(const AttentionSpec &spec, const KernelOptions &options = {});

  /// Enqueues one forward on memory and a stream of the caller, one tensor an
  /// argument of the manifest; see Launcher. On the CPU it is complete on
  /// return. May be captured into a graph; the kernel must outlive it.
  ///
  /// A GPU's machine code is made by the first launch that needs it: a fused
  /// operator has kernels for several lengths, and a launch waits for its own.
  /// After the first launch, a thread of the process goes on with the others.
  ///
  /// Tensors that TMA can't access where they lie get another kernel, which
  /// the first such launch compiles.
  llvm::Error launch(Stream stream, llvm::ArrayRef<TensorView> arguments,
                     const LaunchOptions &options = {}) const;

  /// Makes and loads the code of all kernels now, so that no launch will wait
  /// for it. May be called again, which does nothing.
  llvm::Error prepare() const;

  const Manifest &getManifest() const;
  /// As JSON.
  const std::string &getManifestText() const;
  Device &getDevice() const;

  /// Where the code came from when it was loaded into this process.
  enum class Origin { Compiled, Disk };
  Origin getOrigin() const;

  /// The kernels that are kept in memory; more than that replaces the oldest.
  static constexpr size_t kMaxInMemory = 256;

private:
  struct Impl;
  struct MemoryCache;
  explicit CompiledKernel(std::shared_ptr<Impl> impl) : impl(std::move(impl)) {}

  std::shared_ptr<Impl> impl;
};

} // namespace attn

#endif // ATTN_COMPILER_COMPILEDKERNEL_H
