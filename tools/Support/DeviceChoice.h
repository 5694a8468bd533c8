//===- DeviceChoice.h - The device that --target means ----------*- C++ -*-===//

#ifndef ATTN_TOOLS_SUPPORT_DEVICECHOICE_H
#define ATTN_TOOLS_SUPPORT_DEVICECHOICE_H

#include "attn/Runtime/Device.h"

namespace attn {

/// The device for --target, whose "native" this replaces by a real target.
llvm::Expected<std::unique_ptr<Device>> createDevice(std::string &target);

} // namespace attn

#endif // ATTN_TOOLS_SUPPORT_DEVICECHOICE_H
