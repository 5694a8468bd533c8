//===- Profiler.h - Records what a region runs ------------------*- C++ -*-===//

#ifndef ATTN_PROFILE_PROFILER_H
#define ATTN_PROFILE_PROFILER_H

#include "attn/Profile/Profile.h"
#include "attn/Runtime/Device.h"
#include "attn/Runtime/Executable.h"
#include <memory>

namespace attn {

/// Records a region after the other:
///
///   Profiler profiler(device);
///   error = profiler.begin("decode", "sm_90a");
///   { auto span = profiler.time(HostActivity::Plan, "plan"); ... }
///   profiler.beginPhase("steady");
///   ...launches...
///   error = profiler.endPhase(/*calls=*/20);
///   region = profiler.end();
///
/// On a GPU with CUPTI everything that this process runs there is recorded,
/// whoever launches it; without CUPTI, what goes through getDevice(). On a CPU,
/// all that the device runs.
class Profiler {
public:
  /// `device` must outlive this.
  explicit Profiler(Device &device);
  ~Profiler();

  /// Does what the device does, and records it.
  Device &getDevice();

  /// Fails, and says what is missing, where only work through getDevice() is
  /// recorded.
  llvm::Error checkSeesAll() const;

  /// Starts a region; what was recorded since the last is dropped.
  llvm::Error begin(llvm::StringRef name, llvm::StringRef target);
  /// Ends it, once all its work is complete.
  llvm::Expected<RegionProfile> end();

  /// Times what the host does while it lives.
  class HostSpan {
  public:
    HostSpan(Profiler &profiler, HostActivity activity, llvm::StringRef name);
    ~HostSpan();
    HostSpan(const HostSpan &) = delete;

  private:
    Profiler &profiler;
    const HostActivity activity;
    const std::string name;
    const int64_t startNs;
  };

  void beginPhase(llvm::StringRef name);
  /// Waits for the work under way; `calls` are the repetitions that it was.
  llvm::Error endPhase(int64_t calls);

  /// The device, and the rates that are measured now. Clock and what limits it
  /// are those at the end of the phases so far.
  llvm::Expected<ProfileEnvironment> describeEnvironment();

private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

/// Adds what the manifest says of an invocation's kernels, by name.
void addFacts(RegionProfile &region, const Invocation &invocation);

/// For an invocation whose kernels skip tiles, after addFacts: leaves of their
/// FLOPs what the tiles do, or where those aren't known marks them as dense.
void addTileWork(RegionProfile &region, const Invocation &invocation,
                 const std::optional<TileWork> &tiles,
                 llvm::ArrayRef<int64_t> queryShape);

/// Read plus written by the best of several copies that are larger than the
/// cache. Nothing on a CPU.
llvm::Expected<std::optional<double>> measureBandwidth(Device &device);

/// FLOP/s of a kernel of nothing but 16-bit matrix products on random values.
/// Nothing on a CPU.
llvm::Expected<std::optional<double>> measureMatrixRate(Device &device);

/// That kernel for "sm_80" or "sm_90a", and the FLOPs of one of its blocks.
std::string getMatrixProbePTX(llvm::StringRef target);
int64_t getMatrixProbeFlopsPerBlock(llvm::StringRef target);

} // namespace attn

#endif // ATTN_PROFILE_PROFILER_H
