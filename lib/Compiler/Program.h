//===- Program.h - An entry point that is compiled and loaded ---*- C++ -*-===//

#ifndef ATTN_LIB_COMPILER_PROGRAM_H
#define ATTN_LIB_COMPILER_PROGRAM_H

#include "GpuCode.h"
#include "attn/Compiler/Compiler.h"
#include "attn/Runtime/DiskCache.h"

namespace attn {

/// What a program is made of.
struct ProgramSource {
  /// Everything that the code depends on beside `options` and the device. It is
  /// text as it was given, not as it would be printed: a hit needs no parser.
  std::string text;
  CompileOptions options;
  /// Lowers the entry point with `options`. It is called when nothing is found
  /// on disk, and again, from any thread, where a kernel is needed that isn't.
  std::function<llvm::Expected<LoweredModule>()> lower;
  /// Where to look for code and to keep it.
  std::optional<DiskCache> cache;
  /// Told why nothing is kept. May be null.
  std::function<void(llvm::StringRef reason)> onCacheFailure;
  /// See GpuCode.
  bool continuesInBackground = false;
};

class Program {
public:
  /// From disk, or compiled. The device must outlive the result.
  static llvm::Expected<std::unique_ptr<Program>> load(ProgramSource source,
                                                       Device &device);

  const Executable &getExecutable() const { return *executable; }
  const std::string &getManifestText() const { return manifestText; }
  bool isFromDisk() const { return fromDisk; }

private:
  Program(ProgramSource source, Device &device)
      : source(std::move(source)), device(device) {}

  llvm::Error loadFromDisk();
  llvm::Error compile();
  llvm::Error loadModule(const CachedModule &module, LoweredModule lowered);
  llvm::Error loadCode(Manifest manifest, const CachedModule &module,
                       LoweredModule lowered);
  std::shared_ptr<GpuCode> makeGpuCode(const Manifest &manifest) const;

  const ProgramSource source;
  Device &device;
  /// Empty where nothing is kept.
  std::string key;
  std::string manifestText;
  bool fromDisk = false;
  // In the order in which they need each other.
  std::unique_ptr<CpuJit> cpu;
  std::unique_ptr<Executable> executable;
};

} // namespace attn

#endif // ATTN_LIB_COMPILER_PROGRAM_H
