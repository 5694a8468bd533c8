//===- LoadedProgram.h - An entry point that takes any layout ---*- C++ -*-===//

#ifndef ATTN_COMPILER_LOADEDPROGRAM_H
#define ATTN_COMPILER_LOADEDPROGRAM_H

#include "attn/Compiler/Compiler.h"
#include "attn/Runtime/DiskCache.h"
#include "attn/Runtime/Executable.h"

namespace attn {

class Program;

/// An entry point that is compiled and loaded. Arguments that TMA can't read
/// where they lie get other kernels, which are compiled when the first such
/// come.
class LoadedProgram {
public:
  /// The context of `module` and the device must outlive the result. With
  /// `cache`, code is taken from there and kept there, unless the compiler has
  /// something to say: then it says it each time.
  static llvm::Expected<std::unique_ptr<LoadedProgram>>
  create(mlir::ModuleOp module, const CompileOptions &options, Device &device,
         std::optional<DiskCache> cache = std::nullopt);
  ~LoadedProgram();

  /// The first choice, which may refuse a layout.
  const Executable &getExecutable() const;

  /// Executable::bind of the kernels that can read `arguments`. A remark at the
  /// operator says which argument doesn't get the first choice. The result must
  /// not outlive this.
  llvm::Expected<std::unique_ptr<Invocation>>
  bind(llvm::ArrayRef<Tensor> arguments);

private:
  LoadedProgram(mlir::ModuleOp module, CompileOptions options, Device &device,
                std::optional<DiskCache> cache);

  llvm::Expected<std::unique_ptr<Program>> load() const;
  void remark(const llvm::Twine &reason);

  mlir::OwningOpRef<mlir::ModuleOp> module;
  CompileOptions options;
  Device &device;
  const std::optional<DiskCache> cache;
  std::unique_ptr<Program> first;
  /// The kernels without TMA; null until they are needed.
  std::unique_ptr<Program> second;
};

} // namespace attn

#endif // ATTN_COMPILER_LOADEDPROGRAM_H
