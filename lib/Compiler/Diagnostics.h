//===- Diagnostics.h - Diagnostics as one llvm::Error -----------*- C++ -*-===//

#ifndef ATTN_LIB_COMPILER_DIAGNOSTICS_H
#define ATTN_LIB_COMPILER_DIAGNOSTICS_H

#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/Error.h"

namespace attn {

/// Takes a context's diagnostics for as long as it lives, and keeps the errors.
class ErrorCollector {
public:
  /// `source` is the text that is compiled, which the user may never have seen:
  /// errors show the lines that they are about.
  explicit ErrorCollector(mlir::MLIRContext &context,
                          llvm::StringRef source = "");

  /// All different errors and their notes as "file:line:column: error: text",
  /// each on a line; `otherwise` if there are none.
  llvm::Error takeError(const llvm::Twine &otherwise);

private:
  std::string text;
  mlir::ScopedDiagnosticHandler handler;
};

} // namespace attn

#endif // ATTN_LIB_COMPILER_DIAGNOSTICS_H
