//===- Occupancy.cpp - How many blocks fit on a multiprocessor ------------===//

#include "attn/Runtime/Occupancy.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>

using namespace attn;

// CUDA C++ programming guide, "Technical specifications per compute
// capability"; granularities from CUDA's cuda_occupancy.h.
static constexpr int64_t kWarpSize = 32;
static constexpr int64_t kRegistersPerWarpUnit = 256;
static constexpr int64_t kSharedBytesUnit = 128;
static constexpr int64_t kMaxRegistersPerThread = 255;
static constexpr int64_t kMaxThreadsPerBlock = 1024;
/// Warps are spread over 4 partitions, each with a quarter of the registers.
static constexpr int64_t kPartitions = 4;

static constexpr SMLimits kTable[] = {
    // arch, threads, blocks, registers, shared, shared a block, reserved
    {"sm_80", 2048, 32, 65536, 164 << 10, 163 << 10, 1 << 10},
    {"sm_86", 1536, 16, 65536, 100 << 10, 99 << 10, 1 << 10},
    {"sm_89", 1536, 24, 65536, 100 << 10, 99 << 10, 1 << 10},
    {"sm_90", 2048, 32, 65536, 228 << 10, 227 << 10, 1 << 10},
};

std::optional<SMLimits> SMLimits::lookup(llvm::StringRef arch) {
  // The architecture-specific "a" is about instructions, not capacity.
  arch.consume_back("a");
  const auto *found = llvm::find_if(
      kTable, [&](const SMLimits &limits) { return limits.arch == arch; });
  if (found == std::end(kTable))
    return std::nullopt;
  return *found;
}

static int64_t getBlocksByRegisters(const SMLimits &limits, int64_t warps,
                                    int64_t registersPerThread) {
  if (registersPerThread > kMaxRegistersPerThread)
    return 0;
  const int64_t perWarp =
      llvm::alignTo(std::max<int64_t>(registersPerThread, 1) * kWarpSize,
                    kRegistersPerWarpUnit);
  const int64_t warpsPerPartition = limits.registers / kPartitions / perWarp;
  return warpsPerPartition * kPartitions / warps;
}

static int64_t getBlocksBySharedMemory(const SMLimits &limits, int64_t bytes) {
  if (bytes > limits.maxSharedBytesPerBlock)
    return 0;
  const int64_t allocated = llvm::alignTo(
      bytes + limits.reservedSharedBytesPerBlock, kSharedBytesUnit);
  return allocated == 0 ? limits.maxBlocks : limits.sharedBytes / allocated;
}

Occupancy attn::computeOccupancy(const SMLimits &limits,
                                 const BlockDemand &demand) {
  const int64_t warps =
      llvm::divideCeil(std::max<int64_t>(demand.threads, 1), kWarpSize);
  const int64_t maxWarps = limits.maxThreads / kWarpSize;
  struct Candidate {
    int64_t blocks;
    llvm::StringRef name;
  };
  const Candidate candidates[] = {
      {getBlocksByRegisters(limits, warps, demand.registersPerThread),
       "registers"},
      {getBlocksBySharedMemory(limits, demand.sharedBytes), "shared memory"},
      {demand.threads > kMaxThreadsPerBlock ? 0 : maxWarps / warps, "threads"},
      {limits.maxBlocks, "blocks"},
  };
  const Candidate &tightest =
      *std::min_element(std::begin(candidates), std::end(candidates),
                        [](const Candidate &a, const Candidate &b) {
                          return a.blocks < b.blocks;
                        });
  return {tightest.blocks, tightest.blocks * warps, maxWarps, tightest.name};
}
