//===- StageDumper.h - Writes the IR after every pass -----------*- C++ -*-===//

#ifndef ATTN_LIB_COMPILER_STAGEDUMPER_H
#define ATTN_LIB_COMPILER_STAGEDUMPER_H

#include "mlir/Pass/PassInstrumentation.h"
#include "llvm/Support/Error.h"
#include <string>

namespace attn {

/// Writes the module after every pass to `folder`/NN-<pass>.mlir.
class StageDumper : public mlir::PassInstrumentation {
public:
  /// `error` must outlive the pass manager; it gets what couldn't be written.
  StageDumper(std::string folder, llvm::Error &error)
      : folder(std::move(folder)), error(error) {}

  void runAfterPass(mlir::Pass *pass, mlir::Operation *op) override;

private:
  std::string folder;
  llvm::Error &error;
  unsigned count = 0;
};

} // namespace attn

#endif // ATTN_LIB_COMPILER_STAGEDUMPER_H
