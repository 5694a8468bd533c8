//===- InputModule.cpp - The module that a tool reads ---------------------===//

#include "InputModule.h"
#include "attn/Pipelines/Pipelines.h"
#include "mlir/Parser/Parser.h"

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
  module = mlir::parseSourceFile<mlir::ModuleOp>(path, sources, &context);
}
