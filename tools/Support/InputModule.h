//===- InputModule.h - The module that a tool reads -------------*- C++ -*-===//

#ifndef ATTN_TOOLS_SUPPORT_INPUTMODULE_H
#define ATTN_TOOLS_SUPPORT_INPUTMODULE_H

#include "RepeatFilter.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/SourceMgr.h"

namespace attn {

/// A module parsed from a file, in a context that prints its diagnostics with
/// the line that they are about.
class InputModule {
public:
  explicit InputModule(llvm::StringRef path);

  /// Null after an error, which has been printed.
  mlir::ModuleOp get() { return module.get(); }
  mlir::MLIRContext &getContext() { return context; }

private:
  mlir::MLIRContext context;
  llvm::SourceMgr sources;
  mlir::SourceMgrDiagnosticHandler handler;
  RepeatFilter filter;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

} // namespace attn

#endif // ATTN_TOOLS_SUPPORT_INPUTMODULE_H
