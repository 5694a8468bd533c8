//===- PTX.h - GPU modules to PTX -------------------------------*- C++ -*-===//

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

} // namespace mlir::attn

#endif // ATTN_TARGET_PTX_H
