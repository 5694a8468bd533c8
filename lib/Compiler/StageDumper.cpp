//===- StageDumper.cpp - Writes the IR after every pass -------------------===//

#include "StageDumper.h"
#include "attn/Runtime/WholeFile.h"
#include "mlir/IR/Operation.h"
#include "mlir/Pass/Pass.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"

using namespace mlir;

void attn::StageDumper::runAfterPass(Pass *pass, Operation *op) {
  // Adaptors of nested pass managers have no name. What made one file fail
  // fails the next.
  if (pass->getArgument().empty() || error)
    return;
  while (Operation *parent = op->getParentOp())
    op = parent;
  llvm::SmallString<128> path(folder);
  llvm::sys::path::append(
      path, llvm::formatv("{0,0+2}-{1}.mlir", count++, pass->getArgument()));
  error = writeWholeFile(path, [&](llvm::raw_ostream &os) {
    op->print(os, OpPrintingFlags().useLocalScope().enableDebugInfo(false));
    os << '\n';
  });
}
