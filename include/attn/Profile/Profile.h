//===- Profile.h - What a profiled run leaves behind ------------*- C++ -*-===//
//
// The records of a run and the facts that explain them. All that is shown of a
// run (tables, findings, guesses, traces) is computed from this, so that a
// saved file says the same as the run did. The schema is docs/Profile.md.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PROFILE_PROFILE_H
#define ATTN_PROFILE_PROFILE_H

#include "attn/Runtime/Occupancy.h"
#include "attn/Runtime/TileWork.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"
#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace attn {

/// What the device does.
enum class DeviceActivity { Kernel, Copy, Upload, Download, Memset };
/// "kernel", "copy", ...
llvm::StringRef getName(DeviceActivity activity);

/// What the host does.
enum class HostActivity { Lookup, Compile, Load, Plan, Launch, Wait };
llvm::StringRef getName(HostActivity activity);

/// How a kernel was launched and what it takes of a multiprocessor. Registers
/// and memory are unknown on a CPU.
struct LaunchConfig {
  std::array<int64_t, 3> grid = {1, 1, 1};
  std::array<int64_t, 3> block = {1, 1, 1};
  std::array<int64_t, 3> cluster = {1, 1, 1};
  std::optional<int64_t> registers;
  std::optional<int64_t> staticSharedBytes;
  std::optional<int64_t> dynamicSharedBytes;
  /// Of one thread.
  std::optional<int64_t> localBytes;

  int64_t getNumBlocks() const { return grid[0] * grid[1] * grid[2]; }
  int64_t getThreadsPerBlock() const { return block[0] * block[1] * block[2]; }
  /// Static and dynamic, where both are known.
  std::optional<int64_t> getSharedBytes() const;
  bool operator==(const LaunchConfig &other) const;
};

/// Times are nanoseconds of one clock, the same for host and device.
struct DeviceRecord {
  DeviceActivity activity;
  /// In RegionProfile::names.
  unsigned name;
  int64_t startNs;
  int64_t endNs;
  int64_t stream = 0;
  /// The launch's HostRecord has the same; 0: unknown.
  int64_t correlation = 0;
  /// Kernel: in RegionProfile::launches.
  std::optional<unsigned> launch;
  /// Copied or set.
  int64_t bytes = 0;
};

struct HostRecord {
  HostActivity activity;
  unsigned name;
  int64_t startNs;
  int64_t endNs;
  int64_t thread = 0;
  int64_t correlation = 0;
};

/// What is known of a kernel beside its records. Bytes and FLOPs are analytic,
/// of one launch.
struct KernelFacts {
  std::string name;
  std::optional<int64_t> bytes;
  std::optional<int64_t> flops;
  /// Whether the FLOPs are of the whole products although the kernel may skip
  /// what a mask hides: how much that is isn't known.
  bool isDense = false;
  /// The unit that multiplies: "HGMMA", "QGMMA", "HMMA", ..., "FFMA", or "none"
  /// without any; empty: unknown.
  std::string path;
  /// "machine code", "PTX" or "name".
  std::string pathSource;
  /// The longest program's work over the mean.
  std::optional<double> workImbalance;
  /// By counters, in a run of their own (Counters.h): of one launch, bytes of
  /// the device's memory, warps of those that an SM holds, and the share of
  /// time in which the matrix units work.
  std::optional<double> measuredBytes = std::nullopt;
  std::optional<double> measuredOccupancy = std::nullopt;
  std::optional<double> measuredMatrixFraction = std::nullopt;
};

/// A span of the timeline. The one named "steady" is what is reported; "first",
/// and "compile" where that is apart, are the first call with all before it.
struct Phase {
  std::string name;
  int64_t startNs;
  int64_t endNs;
  /// Forwards, or repetitions of the region.
  int64_t calls = 1;
};

/// One region: a variant of an operator, or whatever ran in a scope.
struct RegionProfile {
  std::string name;
  std::string target;
  /// What timed the device: "cupti", "events" or "host clock".
  std::string source;
  std::vector<std::string> notes;
  /// Whether the calls may have found their inputs in the cache.
  bool isWarm = false;
  /// Where the code came from: "compiled", "memory" or "disk"; empty: unknown.
  std::string origin;
  std::vector<Phase> phases;
  /// Demangled and whole.
  std::vector<std::string> names;
  std::vector<LaunchConfig> launches;
  std::vector<DeviceRecord> device;
  std::vector<HostRecord> host;
  std::vector<KernelFacts> facts;
  /// The fewest bytes that a call can move, and its largest intermediate.
  std::optional<int64_t> minBytes;
  std::optional<int64_t> maxIntermediateBytes;
  std::optional<MaskMap> maskMap;

  const KernelFacts *getFacts(llvm::StringRef kernel) const;
  KernelFacts &getOrAddFacts(llvm::StringRef kernel);
};

/// What one multiprocessor holds; SMLimits that owns its name.
struct MultiprocessorLimits {
  int64_t maxThreads;
  int64_t maxBlocks;
  int64_t registers;
  int64_t sharedBytes;
  int64_t maxSharedBytesPerBlock;
  int64_t reservedSharedBytesPerBlock;
};

struct ProfileEnvironment {
  std::string device;
  bool isGPU = false;
  /// "sm_90"; empty on a CPU.
  std::string arch;
  std::string driver;
  /// {"attnc", "0.1.0"}, ...
  std::map<std::string, std::string> versions;
  int64_t numSMs = 0;
  int64_t cacheBytes = 0;
  std::optional<MultiprocessorLimits> limits;
  /// At the end of the run, when the device is still busy or was just now.
  std::optional<int64_t> clockMHz;
  std::optional<int64_t> maxClockMHz;
  /// Why the clock was below its maximum: "power cap", ...
  std::vector<std::string> throttleReasons;
  /// Read plus written by the best of several large copies.
  std::optional<double> bandwidthBytesPerSecond;
  /// Of a loop of nothing but 16-bit matrix products.
  std::optional<double> matrixFlopsPerSecond;
  /// Of FP32 multiply-adds at the greatest clock, computed.
  std::optional<double> vectorFlopsPerSecond;
};

struct ProfileFile {
  ProfileEnvironment environment;
  /// The command that made it.
  std::string command;
  std::vector<RegionProfile> regions;

  std::vector<std::string> getRegionNames() const;
};

/// Of one launch under an opt-in to all shared memory; nothing where the
/// multiprocessor's limits or what the kernel takes are unknown.
std::optional<Occupancy> computeOccupancy(const ProfileEnvironment &environment,
                                          const LaunchConfig &launch);

/// Errors start with the JSON path of the problem.
llvm::Expected<ProfileFile> parseProfile(llvm::StringRef text);

/// Also writes a summary of each region, for those who read the file by other
/// means; reading ignores it.
void writeProfile(llvm::raw_ostream &os, const ProfileFile &file);

} // namespace attn

#endif // ATTN_PROFILE_PROFILE_H
