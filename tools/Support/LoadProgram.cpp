//===- LoadProgram.cpp - Kernels whose refusal is a text ------------------===//

#include "LoadProgram.h"
#include "mlir/IR/Diagnostics.h"

using namespace attn;

llvm::Expected<std::unique_ptr<LoadedProgram>>
attn::loadProgram(mlir::ModuleOp module, const CompileOptions &options,
                  Device &device) {
  std::string firstError;
  mlir::ScopedDiagnosticHandler handler(
      module.getContext(), [&](mlir::Diagnostic &diagnostic) {
        if (firstError.empty() &&
            diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error)
          firstError = diagnostic.str();
        return mlir::success();
      });
  auto program = LoadedProgram::create(module, options, device);
  if (program || firstError.empty())
    return program;
  llvm::consumeError(program.takeError());
  return llvm::createStringError(firstError);
}
