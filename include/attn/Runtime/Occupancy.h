//===- Occupancy.h - How many blocks fit on a multiprocessor ----*- C++ -*-===//

#ifndef ATTN_RUNTIME_OCCUPANCY_H
#define ATTN_RUNTIME_OCCUPANCY_H

#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>
#include <string>

namespace attn {

/// What one multiprocessor (SM) of an architecture holds.
struct SMLimits {
  /// "sm_80"
  llvm::StringRef arch;
  int64_t maxThreads;
  int64_t maxBlocks;
  int64_t registers;
  int64_t sharedBytes;
  /// Opt-in limit of one block.
  int64_t maxSharedBytesPerBlock;
  /// Taken by the system from each block's share.
  int64_t reservedSharedBytesPerBlock;

  /// The limits of `arch` ("sm_80", "sm_90a"), if they are in the table.
  static std::optional<SMLimits> lookup(llvm::StringRef arch);
};

/// What a kernel asks of an SM, per block.
struct BlockDemand {
  int64_t threads;
  int64_t registersPerThread;
  /// Static and dynamic.
  int64_t sharedBytes;
};

struct Occupancy {
  /// 0 if the kernel can't be launched.
  int64_t blocksPerSM;
  int64_t warpsPerSM;
  int64_t maxWarpsPerSM;
  /// The resource that runs out first: "registers", "shared memory", "threads"
  /// or "blocks".
  llvm::StringRef limit;

  double getFraction() const {
    return static_cast<double>(warpsPerSM) / maxWarpsPerSM;
  }
};

/// Theoretical occupancy, computed from the limits, with shared memory carved
/// out to its maximum as the runtime asks for.
Occupancy computeOccupancy(const SMLimits &limits, const BlockDemand &demand);

/// Where a kernel's registers and shared memory go.
struct KernelResources {
  std::string name;
  int64_t registers = 0;
  /// Static and dynamic.
  int64_t sharedBytes = 0;
  /// Thread-local memory in bytes: register spills and local arrays.
  int64_t localBytes = 0;
  /// Of spills alone; known from ptxas only.
  std::optional<int64_t> spillStoreBytes;
  std::optional<int64_t> spillLoadBytes;
  std::optional<Occupancy> occupancy;
};

} // namespace attn

#endif // ATTN_RUNTIME_OCCUPANCY_H
