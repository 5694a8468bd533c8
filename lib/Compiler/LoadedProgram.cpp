//===- LoadedProgram.cpp - An entry point that takes any layout -----------===//

#include "attn/Compiler/LoadedProgram.h"
#include "attn/Dialect/Attn/IR/AttnOps.h"
#include "attn/Runtime/TensorMaps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace attn;

llvm::Expected<std::unique_ptr<LoadedProgram>>
LoadedProgram::create(mlir::ModuleOp module, const CompileOptions &options,
                      Device &device) {
  std::unique_ptr<LoadedProgram> program(
      new LoadedProgram(module, options, device));
  if (llvm::Error error = program->load(program->first))
    return std::move(error);
  return program;
}

llvm::Error LoadedProgram::load(Loaded &loaded) const {
  llvm::Expected<CompiledProgram> program = compile(*module, options);
  if (!program)
    return program.takeError();
  llvm::Expected<Manifest> manifest = Manifest::parse(program->manifest);
  if (!manifest)
    return manifest.takeError();
  loaded.program = std::move(*program);
  KernelCode code;
  code.image = std::move(loaded.program.ptx);
  if (const CpuJit *cpu = loaded.program.cpu.get())
    code.lookup = [cpu](llvm::StringRef name) { return cpu->lookup(name); };
  auto executable = Executable::create(std::move(*manifest), code, device);
  if (!executable)
    return executable.takeError();
  loaded.executable = std::move(*executable);
  return llvm::Error::success();
}

/// At the operator, if the entry has one.
void LoadedProgram::remark(const llvm::Twine &reason) {
  mlir::Operation *where = *module;
  const Manifest &manifest = getExecutable().getManifest();
  module->lookupSymbol(manifest.entry)->walk([&](mlir::attn::AttentionOp op) {
    where = op;
  });
  mlir::emitRemark(where->getLoc())
      << reason << "; runs the kernel of sm_80 on " << manifest.target;
}

llvm::Expected<std::unique_ptr<Invocation>>
LoadedProgram::bind(llvm::ArrayRef<Tensor> arguments) {
  auto invocation = first.executable->bind(arguments);
  if (invocation)
    return invocation;
  std::string reason;
  llvm::Error error = llvm::handleErrors(
      invocation.takeError(), [&](const UnsupportedLayout &unsupported) {
        reason = unsupported.getReason();
      });
  if (error)
    return std::move(error);
  remark(reason);
  options.avoidsTMA = true;
  if (!second.executable)
    if (llvm::Error error = load(second))
      return std::move(error);
  return second.executable->bind(arguments);
}
