//===- PTX.h - GPU modules to PTX and machine code --------------*- C++ -*-===//

#ifndef ATTN_TARGET_PTX_H
#define ATTN_TARGET_PTX_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "llvm/Support/Error.h"
#include <string>

namespace mlir::attn {

/// The PTX of a `gpu.module` in LLVM and NVVM dialect, made in process. The
/// module's context must know the LLVM translations (registerAttncDialects).
llvm::Expected<std::string> translateToPTX(gpu::GPUModuleOp module,
                                           llvm::StringRef target);

/// What ptxas made of a module.
struct AssembledPTX {
  std::string cubin;
  /// Registers, spills and shared memory, as `ptxas -v` prints them.
  std::string log;
};

/// Assembles PTX for `architecture` (sm_80, sm_90, ...) with the `ptxas` at
/// `ptxasPath`.
llvm::Expected<AssembledPTX> assemblePTX(llvm::StringRef ptx,
                                         llvm::StringRef architecture,
                                         llvm::StringRef ptxasPath);

} // namespace mlir::attn

#endif // ATTN_TARGET_PTX_H
