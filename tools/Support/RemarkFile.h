//===- RemarkFile.h - What the compiler says, for other tools ---*- C++ -*-===//

#ifndef ATTN_TOOLS_SUPPORT_REMARKFILE_H
#define ATTN_TOOLS_SUPPORT_REMARKFILE_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/Error.h"

namespace attn {

/// Collects the remarks and warnings of passes and of ptxas while it lives;
/// they are printed all the same.
class RemarkFile {
public:
  /// `module` is the one that is compiled. Its context must be single-threaded,
  /// so that a remark comes while the pass that makes it runs.
  explicit RemarkFile(mlir::ModuleOp module);

  /// Of what comes from now on: a pass's argument, or "ptxas".
  void setSource(llvm::StringRef name) { source = name.str(); }

  /// In LLVM's YAML format of remark files, as llvm-remarkutil reads it.
  llvm::Error write(llvm::StringRef path) const;

private:
  struct Entry {
    std::string source, function, file, text;
    unsigned line, column;
    bool isWarning;
  };

  void add(mlir::Diagnostic &diagnostic);

  /// Of the module's functions, to tell in which one a line is.
  std::vector<std::pair<unsigned, std::string>> functionsByLine;
  std::string source = "attnc";
  std::vector<Entry> entries;
  mlir::ScopedDiagnosticHandler handler;
};

} // namespace attn

#endif // ATTN_TOOLS_SUPPORT_REMARKFILE_H
