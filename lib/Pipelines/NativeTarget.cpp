//===- NativeTarget.cpp - What this machine runs --------------------------===//

#include "attn/Pipelines/Pipelines.h"
#include "attn/Runtime/Device.h"

std::string mlir::attn::resolveTarget(StringRef name, StringRef user) {
  std::string target = name.str();
  if (name != "native")
    return target;
  std::unique_ptr<::attn::Device> device = ::attn::createNativeDevice(target);
  llvm::errs() << user << ": native is " << target << " (" << device->getName()
               << ")\n";
  return target;
}
