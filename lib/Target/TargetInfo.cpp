//===- TargetInfo.cpp - What a target can do and hold ---------------------===//

#include "attn/Target/TargetInfo.h"
#include "mlir/IR/Location.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::attn;

// Shared memory: CUDA C++ Programming Guide, "Compute Capabilities" (compute
// capability 8.0: 163 KB a block; 9.0: 227 KB).
// clang-format off
static constexpr TargetInfo kTargets[] = {
    // name      isGPU  hasWarpRoles  columnGranule  maxSharedBytes
    {"cpu",      false, false,        1,             0},
    {"sm_80",    true,  false,        16,            163 * 1024},
    {"sm_90a",   true,  true,         16,            227 * 1024},
};
// clang-format on

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
