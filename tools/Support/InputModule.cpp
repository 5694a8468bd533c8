//===- InputModule.cpp - The module that a tool reads ---------------------===//

#include "InputModule.h"
#include "attn/Pipelines/Pipelines.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Support/FileUtilities.h"
#include "llvm/Support/WithColor.h"

using namespace attn;

static mlir::DialectRegistry getDialects() {
  mlir::DialectRegistry registry;
  mlir::attn::registerAttncDialects(registry);
  return registry;
}

// One small module: starting threads costs more than they save.
InputModule::InputModule(llvm::StringRef path)
    : context(getDialects(), mlir::MLIRContext::Threading::DISABLED),
      handler(sources, &context), filter(&context) {
  context.printOpOnDiagnostic(false);
  std::string message;
  std::unique_ptr<llvm::MemoryBuffer> file =
      mlir::openInputFile(path, &message);
  if (!file) {
    llvm::WithColor::error() << message << '\n';
    return;
  }
  sources.AddNewSourceBuffer(std::move(file), llvm::SMLoc());
  module = mlir::parseSourceFile<mlir::ModuleOp>(sources, &context);
}
