//===- LoadedProgram.h - An entry point that takes any layout ---*- C++ -*-===//

#ifndef ATTN_COMPILER_LOADEDPROGRAM_H
#define ATTN_COMPILER_LOADEDPROGRAM_H

#include "attn/Compiler/Compiler.h"
#include "attn/Runtime/Executable.h"

namespace attn {

/// An entry point that is compiled and loaded. Arguments that TMA can't read
/// where they lie get other kernels, which are compiled when the first such
/// come.
class LoadedProgram {
public:
  /// The context of `module` and the device must outlive the result.
  static llvm::Expected<std::unique_ptr<LoadedProgram>>
  create(mlir::ModuleOp module, const CompileOptions &options, Device &device);

  /// The first choice, which may refuse a layout.
  const Executable &getExecutable() const { return *first.executable; }

  /// Executable::bind of the kernels that can read `arguments`. A remark at the
  /// operator says which argument doesn't get the first choice. The result must
  /// not outlive this.
  llvm::Expected<std::unique_ptr<Invocation>>
  bind(llvm::ArrayRef<Tensor> arguments);

private:
  struct Loaded {
    /// Holds the code of CPU kernels.
    CompiledProgram program;
    std::unique_ptr<Executable> executable;
  };

  LoadedProgram(mlir::ModuleOp module, CompileOptions options, Device &device)
      : module(module.clone()), options(std::move(options)), device(device) {}

  llvm::Error load(Loaded &loaded) const;
  void remark(const llvm::Twine &reason);

  mlir::OwningOpRef<mlir::ModuleOp> module;
  CompileOptions options;
  Device &device;
  Loaded first;
  /// The kernels without TMA; empty until they are needed.
  Loaded second;
};

} // namespace attn

#endif // ATTN_COMPILER_LOADEDPROGRAM_H
