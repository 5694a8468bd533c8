//===- DeviceChoice.h - The device that --target means ----------*- C++ -*-===//

#ifndef ATTN_TOOLS_SUPPORT_DEVICECHOICE_H
#define ATTN_TOOLS_SUPPORT_DEVICECHOICE_H

#include "attn/Runtime/Device.h"
#include "mlir/IR/BuiltinOps.h"

namespace attn {

/// The device for --target, whose "native" this replaces by a real target: the
/// best that the GPU runs and that serves all of `module`, or the CPU if there
/// is no GPU.
llvm::Expected<std::unique_ptr<Device>> createDevice(mlir::ModuleOp module,
                                                     std::string &target);

} // namespace attn

#endif // ATTN_TOOLS_SUPPORT_DEVICECHOICE_H
