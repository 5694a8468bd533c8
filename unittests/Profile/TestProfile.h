//===- TestProfile.h - Profiles made by hand --------------------*- C++ -*-===//

#ifndef ATTN_UNITTESTS_PROFILE_TESTPROFILE_H
#define ATTN_UNITTESTS_PROFILE_TESTPROFILE_H

#include "attn/Profile/Profile.h"
#include "llvm/ADT/STLExtras.h"

namespace attn::test {

/// A card of round numbers with an H200's multiprocessors: 4 TB/s, 800 TFLOP/s,
/// so that the ridge lies at 200 FLOP a byte.
inline ProfileEnvironment makeCard() {
  ProfileEnvironment card;
  card.device = "Test GPU";
  card.isGPU = true;
  card.arch = "sm_90";
  card.driver = "13.0";
  card.versions = {{"attnc", "0.1.0"}};
  card.numSMs = 100;
  card.cacheBytes = 50 << 20;
  card.limits =
      MultiprocessorLimits{2048, 32, 65536, 228 << 10, 227 << 10, 1 << 10};
  card.clockMHz = 1980;
  card.maxClockMHz = 1980;
  card.bandwidthBytesPerSecond = 4e12;
  card.matrixFlopsPerSecond = 800e12;
  card.vectorFlopsPerSecond = 50e12;
  return card;
}

inline LaunchConfig makeLaunch(int64_t blocks, int64_t threads = 128,
                               int64_t registers = 64, int64_t shared = 0) {
  LaunchConfig launch;
  launch.grid = {blocks, 1, 1};
  launch.block = {threads, 1, 1};
  launch.registers = registers;
  launch.staticSharedBytes = 0;
  launch.dynamicSharedBytes = shared;
  launch.localBytes = 0;
  return launch;
}

/// Records one after the other on one stream; times are in microseconds.
class RegionBuilder {
public:
  explicit RegionBuilder(llvm::StringRef name = "fused") {
    region.name = name.str();
    region.target = "sm_90a";
    region.source = "cupti";
  }

  RegionBuilder &kernel(llvm::StringRef name, double us,
                        LaunchConfig launch = makeLaunch(1000)) {
    auto found = llvm::find(region.launches, launch);
    const unsigned index = found - region.launches.begin();
    if (found == region.launches.end())
      region.launches.push_back(launch);
    return add(DeviceActivity::Kernel, name, us, index, 0);
  }
  RegionBuilder &copy(llvm::StringRef name, double us, int64_t bytes) {
    return add(DeviceActivity::Copy, name, us, std::nullopt, bytes);
  }
  RegionBuilder &idle(double us) {
    nowNs += toNs(us);
    return *this;
  }
  /// Starts at the present time, which it doesn't advance.
  RegionBuilder &host(HostActivity activity, double us) {
    region.host.push_back({activity, getNameIndex(getName(activity)), nowNs,
                           nowNs + toNs(us), 7, 0});
    return *this;
  }
  RegionBuilder &facts(llvm::StringRef name, int64_t bytes, int64_t flops,
                       llvm::StringRef path = "HGMMA") {
    KernelFacts facts;
    facts.name = name.str();
    facts.bytes = bytes;
    facts.flops = flops;
    facts.path = path.str();
    facts.pathSource = "machine code";
    region.facts.push_back(std::move(facts));
    return *this;
  }
  /// From the end of the last phase to the present.
  RegionBuilder &phase(llvm::StringRef name, int64_t calls = 1) {
    const int64_t startNs =
        region.phases.empty() ? kOriginNs : region.phases.back().endNs;
    region.phases.push_back({name.str(), startNs, nowNs, calls});
    return *this;
  }

  RegionProfile region;

private:
  static constexpr int64_t kOriginNs = 1000;

  static int64_t toNs(double us) { return static_cast<int64_t>(us * 1000); }

  unsigned getNameIndex(llvm::StringRef name) {
    auto found = llvm::find(region.names, name);
    const unsigned index = found - region.names.begin();
    if (found == region.names.end())
      region.names.push_back(name.str());
    return index;
  }

  RegionBuilder &add(DeviceActivity activity, llvm::StringRef name, double us,
                     std::optional<unsigned> launch, int64_t bytes) {
    DeviceRecord record;
    record.activity = activity;
    record.name = getNameIndex(name);
    record.startNs = nowNs;
    record.endNs = nowNs += toNs(us);
    record.stream = 3;
    record.launch = launch;
    record.bytes = bytes;
    region.device.push_back(record);
    return *this;
  }

  int64_t nowNs = kOriginNs;
};

} // namespace attn::test

#endif // ATTN_UNITTESTS_PROFILE_TESTPROFILE_H
