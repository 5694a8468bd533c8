//===- TargetInfo.cpp - What a target can do and hold ---------------------===//

#include "attn/Target/TargetInfo.h"
#include "mlir/IR/Location.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::attn;

// Shared memory and registers: CUDA C++ Programming Guide, "Compute
// Capabilities" (compute capability 8.0: 164 KB an SM, 163 KB a block).
static constexpr TargetInfo kTargets[] = {
    {"cpu", /*isGPU=*/false, /*maxSharedBytes=*/0, /*maxRegisters=*/0},
    {"sm_80", /*isGPU=*/true, /*maxSharedBytes=*/163 * 1024,
     /*maxRegisters=*/255},
};

const TargetInfo *TargetInfo::lookup(StringRef name) {
  const auto *it = llvm::find_if(
      kTargets, [&](const TargetInfo &info) { return info.name == name; });
  return it == std::end(kTargets) ? nullptr : it;
}

std::string TargetInfo::getAllNames() {
  return llvm::join(
      llvm::map_range(kTargets, [](const TargetInfo &t) { return t.name; }),
      ", ");
}

const TargetInfo *TargetInfo::lookupOrEmitError(StringRef name, Location loc) {
  if (const TargetInfo *info = lookup(name))
    return info;
  emitError(loc) << "unknown target '" << name << "'; known are "
                 << getAllNames();
  return nullptr;
}
