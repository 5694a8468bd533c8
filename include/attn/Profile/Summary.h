//===- Summary.h - Totals of a profiled region ------------------*- C++ -*-===//

#ifndef ATTN_PROFILE_SUMMARY_H
#define ATTN_PROFILE_SUMMARY_H

#include "attn/Profile/Profile.h"
#include "attn/Runtime/Report.h"

namespace attn {

/// The side of the roofline that a kernel's intensity (FLOPs a byte) is on.
enum class Bound { Compute, Memory };
llvm::StringRef getName(Bound bound);

/// All launches of one name and configuration in the steady phase.
struct KernelSummary {
  DeviceActivity activity;
  std::string name;
  /// In the whole phase, and of one launch.
  int64_t calls = 0;
  double totalUs = 0;
  TimeStats time;
  std::optional<LaunchConfig> launch;
  std::optional<Occupancy> occupancy;
  /// How many times the grid fills the device.
  std::optional<double> waves;
  /// Of one launch, analytic; of copies, read plus written.
  std::optional<int64_t> bytes;
  std::optional<int64_t> flops;
  /// See KernelFacts.
  bool isDense = false;
  /// Of the card's measured rates, at the median time.
  std::optional<double> bandwidthFraction;
  std::optional<double> matrixFraction;
  std::string path;
  std::string pathSource;
  std::optional<double> workImbalance;
  std::optional<Bound> bound;
  /// See KernelFacts.
  std::optional<double> measuredBytes, measuredOccupancy;
  std::optional<double> measuredMatrixFraction;

  /// Whether matrix products are what it computes, or a part of it.
  bool isProduct() const;
};

struct HostSummary {
  int64_t count = 0;
  double totalUs = 0;
  double medianUs = 0;
};

/// Of the steady phase. wall = the kernels' totals - overlap + idle.
struct RegionSummary {
  int64_t calls = 1;
  double wallUs = 0;
  /// Time with something on the device.
  double busyUs = 0;
  /// Counted more than once in the totals, as several ran at once.
  double overlapUs = 0;
  double idleUs = 0;
  /// Greatest total first.
  std::vector<KernelSummary> kernels;
  std::map<HostActivity, HostSummary> host;
  /// Of the whole region: what came before the steady phase.
  std::map<HostActivity, HostSummary> setup;
  std::optional<double> firstCallUs;
  /// Of one call, from its start on the device to the next one's; nothing where
  /// calls can't be told apart.
  std::optional<Distribution> callUs;

  double getWallUsPerCall() const { return wallUs / calls; }
  /// Of the calls, (p90 - p10) / median.
  std::optional<double> getSpread() const;
  /// Launches of one kind a call.
  double getCountPerCall(DeviceActivity activity) const;
  /// Bytes that kernels and copies move a call, if known of all.
  std::optional<double> getBytesPerCall() const;
  /// The kernel that takes the most time; null without any.
  const KernelSummary *getMainKernel() const;
};

RegionSummary summarize(const ProfileEnvironment &environment,
                        const RegionProfile &region);

/// The regions of a file side by side, against one of them.
struct Comparison {
  struct Row {
    const RegionProfile *region;
    RegionSummary summary;
    /// Wall time a call over the baseline's, if that took any.
    std::optional<double> ratio;
  };

  std::string baseline;
  std::vector<Row> rows;
};

/// `baseline` names a region; empty: the first.
Comparison compareRegions(const ProfileFile &file, llvm::StringRef baseline);

/// The steady phase, or all that was recorded where there is none.
Phase getSteadyPhase(const RegionProfile &region);

/// The matrix path that the name of a foreign kernel gives away; empty where it
/// doesn't.
llvm::StringRef guessMatrixPath(llvm::StringRef kernelName);

} // namespace attn

#endif // ATTN_PROFILE_SUMMARY_H
