//===- Nvml.cpp - What NVIDIA's management library knows ------------------===//

#include "Nvml.h"
#include "llvm/Support/DynamicLibrary.h"

// From nvml.h.
using NvmlDevice = struct NvmlDeviceOpaque *;
static constexpr int kNvmlSuccess = 0;
static constexpr int kNvmlClockSM = 1;

namespace {

/// The entry points; null where the library isn't there.
struct Library {
  int (*getHandle)(const char *pciBusId, NvmlDevice *device) = nullptr;
  int (*getClock)(NvmlDevice device, int type, unsigned *megahertz) = nullptr;

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
  }
};

} // namespace

std::optional<int64_t> attn::getSMClockMHz(const char *pciBusId) {
  static const Library library;
  NvmlDevice device;
  unsigned megahertz;
  if (!library.getHandle || !library.getClock ||
      library.getHandle(pciBusId, &device) != kNvmlSuccess ||
      library.getClock(device, kNvmlClockSM, &megahertz) != kNvmlSuccess)
    return std::nullopt;
  return megahertz;
}
