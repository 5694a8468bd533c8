//===- CpuJit.h - Kernels of LLVM dialect as host functions -----*- C++ -*-===//

#ifndef ATTN_COMPILER_CPUJIT_H
#define ATTN_COMPILER_CPUJIT_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <memory>
#include <string>

namespace llvm::orc {
class LLJIT;
} // namespace llvm::orc

namespace mlir {
class ModuleOp;
} // namespace mlir

namespace attn {

/// The functions of `module`, which holds LLVM dialect only, as a relocatable
/// object for this CPU.
llvm::Expected<std::string> compileForHost(mlir::ModuleOp module);

/// What an object that compileForHost makes depends on beside the module: the
/// CPU's name and features.
std::string getHostDescription();

/// Machine code for this CPU, in memory as long as this object lives.
class CpuJit {
public:
  /// Compiles every function of `module`, which holds LLVM dialect only.
  static llvm::Expected<std::unique_ptr<CpuJit>> create(mlir::ModuleOp module);
  /// Links what compileForHost made.
  static llvm::Expected<std::unique_ptr<CpuJit>> load(llvm::StringRef object);
  ~CpuJit();

  /// The address of the function called `name`, or null.
  void *lookup(llvm::StringRef name) const;

private:
  explicit CpuJit(std::unique_ptr<llvm::orc::LLJIT> jit);

  std::unique_ptr<llvm::orc::LLJIT> jit;
};

} // namespace attn

#endif // ATTN_COMPILER_CPUJIT_H
