//===- PTX.h - GPU modules to PTX -------------------------------*- C++ -*-===//

#ifndef ATTN_TARGET_PTX_H
#define ATTN_TARGET_PTX_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "llvm/Support/Error.h"
#include <memory>
#include <string>

namespace mlir::attn {

/// A `gpu.module` as LLVM IR, apart from all that it was made of: any thread
/// may go on with it.
class DeviceIR {
public:
  /// From LLVM and NVVM dialect; the context must know the LLVM translations
  /// (registerAttncDialects).
  static llvm::Expected<DeviceIR> translate(gpu::GPUModuleOp module,
                                            llvm::StringRef target);
  DeviceIR(DeviceIR &&);
  ~DeviceIR();

  llvm::Expected<std::string> emitPTX() &&;

private:
  struct Impl;
  explicit DeviceIR(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl;
};

/// The PTX of a `gpu.module`, made in process.
llvm::Expected<std::string> translateToPTX(gpu::GPUModuleOp module,
                                           llvm::StringRef target);

} // namespace mlir::attn

#endif // ATTN_TARGET_PTX_H
