//===- CpuJit.h - Kernels of LLVM dialect as host functions -----*- C++ -*-===//

#ifndef ATTN_COMPILER_CPUJIT_H
#define ATTN_COMPILER_CPUJIT_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <memory>

namespace llvm::orc {
class LLJIT;
} // namespace llvm::orc

namespace mlir {
class ModuleOp;
} // namespace mlir

namespace attn {

/// Machine code for this CPU, in memory as long as this object lives.
class CpuJit {
public:
  /// Compiles every function of `module`, which holds LLVM dialect only.
  static llvm::Expected<std::unique_ptr<CpuJit>> create(mlir::ModuleOp module);
  ~CpuJit();

  /// The address of the function called `name`, or null.
  void *lookup(llvm::StringRef name) const;

private:
  explicit CpuJit(std::unique_ptr<llvm::orc::LLJIT> jit);

  std::unique_ptr<llvm::orc::LLJIT> jit;
};

} // namespace attn

#endif // ATTN_COMPILER_CPUJIT_H
