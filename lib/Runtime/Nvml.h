//===- Nvml.h - What NVIDIA's management library knows ----------*- C++ -*-===//

#ifndef ATTN_LIB_RUNTIME_NVML_H
#define ATTN_LIB_RUNTIME_NVML_H

#include "attn/Runtime/Device.h"
#include <cstdint>
#include <optional>

namespace attn {

/// The present clock of the multiprocessors in MHz, of the GPU at a PCI bus ID
/// as the CUDA driver writes it. Absent where the library is missing or says
/// nothing.
std::optional<int64_t> getSMClockMHz(const char *pciBusId);

/// The greatest clock, and why the present one is below it.
ClockLimits getClockLimits(const char *pciBusId);

} // namespace attn

#endif // ATTN_LIB_RUNTIME_NVML_H
