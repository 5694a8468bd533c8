//===- Diagnostics.h - Diagnostics as one llvm::Error -----------*- C++ -*-===//

#ifndef ATTN_LIB_COMPILER_DIAGNOSTICS_H
#define ATTN_LIB_COMPILER_DIAGNOSTICS_H

#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/Error.h"

namespace attn {

/// Takes a context's diagnostics for as long as it lives, and keeps the errors.
class ErrorCollector {
public:
  explicit ErrorCollector(mlir::MLIRContext &context);

  /// All errors with their notes, one "file:line:column: error: text" a line;
  /// `otherwise` if there are none.
  llvm::Error takeError(const llvm::Twine &otherwise);

private:
  std::string text;
  mlir::ScopedDiagnosticHandler handler;
};

} // namespace attn

#endif // ATTN_LIB_COMPILER_DIAGNOSTICS_H
