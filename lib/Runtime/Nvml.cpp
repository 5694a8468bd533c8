//===- Nvml.cpp - What NVIDIA's management library knows ------------------===//

#include "Nvml.h"
#include "llvm/Support/DynamicLibrary.h"

// From nvml.h.
using NvmlDevice = struct NvmlDeviceOpaque *;
static constexpr int kNvmlSuccess = 0;
static constexpr int kNvmlClockSM = 1;
/// nvmlClocksThrottleReasons of what a user would want to know.
static constexpr std::pair<unsigned long long, const char *> kReasons[] = {
    {0x2, "application clocks"},
    {0x4, "power cap"},
    {0x8, "hardware slowdown"},
    {0x20, "thermal slowdown"},
    {0x40, "thermal slowdown by hardware"},
    {0x80, "power brake"}};

namespace {

/// The entry points; null where the library isn't there.
struct Library {
  int (*getHandle)(const char *pciBusId, NvmlDevice *device) = nullptr;
  int (*getClock)(NvmlDevice device, int type, unsigned *megahertz) = nullptr;
  int (*getMaxClock)(NvmlDevice device, int type,
                     unsigned *megahertz) = nullptr;
  int (*getReasons)(NvmlDevice device, unsigned long long *bits) = nullptr;

  Library() {
    auto library = llvm::sys::DynamicLibrary::getPermanentLibrary(
        "libnvidia-ml.so.1", /*Err=*/nullptr);
    if (!library.isValid())
      return;
    auto initialize =
        reinterpret_cast<int (*)()>(library.getAddressOfSymbol("nvmlInit_v2"));
    if (!initialize || initialize() != kNvmlSuccess)
      return;
    getHandle = reinterpret_cast<decltype(getHandle)>(
        library.getAddressOfSymbol("nvmlDeviceGetHandleByPciBusId_v2"));
    getClock = reinterpret_cast<decltype(getClock)>(
        library.getAddressOfSymbol("nvmlDeviceGetClockInfo"));
    getMaxClock = reinterpret_cast<decltype(getMaxClock)>(
        library.getAddressOfSymbol("nvmlDeviceGetMaxClockInfo"));
    getReasons =
        reinterpret_cast<decltype(getReasons)>(library.getAddressOfSymbol(
            "nvmlDeviceGetCurrentClocksThrottleReasons"));
  }

  static const Library &get() {
    static const Library library;
    return library;
  }

  std::optional<NvmlDevice> find(const char *pciBusId) const {
    NvmlDevice device;
    if (!getHandle || getHandle(pciBusId, &device) != kNvmlSuccess)
      return std::nullopt;
    return device;
  }
};

} // namespace

std::optional<int64_t> attn::getSMClockMHz(const char *pciBusId) {
  const Library &library = Library::get();
  const std::optional<NvmlDevice> device = library.find(pciBusId);
  unsigned megahertz;
  if (!device || !library.getClock ||
      library.getClock(*device, kNvmlClockSM, &megahertz) != kNvmlSuccess)
    return std::nullopt;
  return megahertz;
}

attn::ClockLimits attn::getClockLimits(const char *pciBusId) {
  const Library &library = Library::get();
  const std::optional<NvmlDevice> device = library.find(pciBusId);
  ClockLimits limits;
  if (!device)
    return limits;
  unsigned megahertz;
  if (library.getMaxClock &&
      library.getMaxClock(*device, kNvmlClockSM, &megahertz) == kNvmlSuccess)
    limits.maxMHz = megahertz;
  unsigned long long bits;
  if (library.getReasons && library.getReasons(*device, &bits) == kNvmlSuccess)
    for (auto [bit, reason] : kReasons)
      if (bits & bit)
        limits.reasons.push_back(reason);
  return limits;
}
