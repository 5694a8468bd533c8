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

static constexpr RegisterSplit kRegisterSplits[] = {
    {1, 40, 232}, {2, 40, 232}, {3, 32, 160}, {4, 32, 112}};

const RegisterSplit *RegisterSplit::lookup(int64_t warpgroups) {
  const auto *it = llvm::find_if(kRegisterSplits, [&](const auto &split) {
    return split.warpgroups == warpgroups;
  });
  return it == std::end(kRegisterSplits) ? nullptr : it;
}

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

/// The compute capability of "sm_90", "sm_100a" or "sm_120f", times 10.
static std::optional<unsigned> parseArchitecture(StringRef name) {
  unsigned number;
  if (!name.consume_front("sm_") || name.consumeInteger(10, number) ||
      !(name.empty() || name == "a" || name == "f"))
    return std::nullopt;
  return number;
}

std::string TargetInfo::explainUnknown(StringRef name, StringRef known) {
  constexpr unsigned kFirst = 80, kHopper = 90, kTensorMemory = 100;
  std::string text = ("unknown target '" + name + "'; ").str();
  std::optional<unsigned> architecture = parseArchitecture(name);
  if (!architecture || *architecture < kFirst)
    return text + "known are " + known.str();
  if (*architecture == kHopper)
    return text + "use sm_90a, whose kernels take the instructions that only "
                  "this architecture has";
  if (*architecture >= kTensorMemory)
    return text + "there are no kernels with its tcgen05 instructions yet; use "
                  "sm_80, whose PTX such a GPU runs";
  return text + "use sm_80, whose PTX such a GPU runs";
}

const TargetInfo *TargetInfo::lookupOrEmitError(StringRef name, Location loc) {
  if (const TargetInfo *info = lookup(name))
    return info;
  emitError(loc) << explainUnknown(name);
  return nullptr;
}
