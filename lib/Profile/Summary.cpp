//===- Summary.cpp - Totals of a profiled region --------------------------===//

#include "attn/Profile/Summary.h"
#include "llvm/ADT/STLExtras.h"

using namespace attn;

static constexpr llvm::StringLiteral kSteadyPhase = "steady";
static constexpr llvm::StringLiteral kFirstPhase = "first";
static constexpr llvm::StringLiteral kCompilePhase = "compile";

/// FLOPs a byte that only products reach; softmax and the like stay below 3.
static constexpr double kProductIntensity = 8;

static double toUs(int64_t ns) { return ns / 1e3; }

llvm::StringRef attn::getName(Bound bound) {
  return bound == Bound::Compute ? "compute" : "memory";
}

//===----------------------------------------------------------------------===//
// Phases
//===----------------------------------------------------------------------===//

static const Phase *findPhase(const RegionProfile &region,
                              llvm::StringRef name) {
  auto found = llvm::find_if(
      region.phases, [&](const Phase &phase) { return phase.name == name; });
  return found == region.phases.end() ? nullptr : &*found;
}

/// From the first record's start to the last one's end.
static Phase getExtent(const RegionProfile &region) {
  Phase extent = {"all", 0, 0, 1};
  bool isFirst = true;
  auto include = [&](int64_t startNs, int64_t endNs) {
    extent.startNs = isFirst ? startNs : std::min(extent.startNs, startNs);
    extent.endNs = isFirst ? endNs : std::max(extent.endNs, endNs);
    isFirst = false;
  };
  for (const DeviceRecord &record : region.device)
    include(record.startNs, record.endNs);
  for (const HostRecord &record : region.host)
    include(record.startNs, record.endNs);
  return extent;
}

Phase attn::getSteadyPhase(const RegionProfile &region) {
  const Phase *steady = findPhase(region, kSteadyPhase);
  return steady ? *steady : getExtent(region);
}

/// A record that starts in a phase belongs to it.
template <typename Record>
static bool isIn(const Record &record, const Phase &phase) {
  return record.startNs >= phase.startNs && record.startNs < phase.endNs;
}

//===----------------------------------------------------------------------===//
// Matrix paths
//===----------------------------------------------------------------------===//

llvm::StringRef attn::guessMatrixPath(llvm::StringRef kernelName) {
  // Substrings that CUTLASS, cuBLAS, cuDNN, FlashAttention and our own kernels
  // put into their names; the first that is there decides.
  static constexpr std::pair<llvm::StringLiteral, llvm::StringLiteral>
      kHints[] = {
          {"wgmma_f8", "QGMMA"},
          {"wgmma", "HGMMA"},
          {"sm90_xmma", "HGMMA"},
          {"_s64x", "HGMMA"},
          {"FlashAttnFwdSm90", "HGMMA"},
          {"s16816", "HMMA"},
          {"s1688", "HMMA"},
          {"h16816", "HMMA"},
          {"tensorop", "HMMA"},
          {"fmha_cutlassF", "HMMA"},
          {"flash_fwd_kernel", "HMMA"},
          {"sgemm", "FFMA"},
      };
  for (auto [hint, path] : kHints)
    if (kernelName.contains(hint))
      return path;
  return "";
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

bool KernelSummary::isProduct() const {
  // A softmax multiplies on the CUDA cores too.
  if (!path.empty() && path != "none" && path != "FFMA")
    return true;
  return flops && bytes && *bytes > 0 && *flops >= kProductIntensity * *bytes;
}

namespace {

/// Gathers the records of a phase by kernel.
class Aggregator {
public:
  Aggregator(const ProfileEnvironment &environment, const RegionProfile &region)
      : environment(environment), region(region) {}

  void add(const DeviceRecord &record);
  std::vector<KernelSummary> finish();

private:
  void addFacts(KernelSummary &kernel) const;
  void addRoofline(KernelSummary &kernel) const;

  /// Activity, name and launch.
  using Key = std::tuple<DeviceActivity, unsigned, std::optional<unsigned>>;

  const ProfileEnvironment &environment;
  const RegionProfile &region;
  std::map<Key, std::vector<double>> samples;
  std::map<Key, int64_t> bytes;
};

} // namespace

void Aggregator::add(const DeviceRecord &record) {
  const Key key(record.activity, record.name, record.launch);
  samples[key].push_back(toUs(record.endNs - record.startNs));
  bytes[key] += record.bytes;
}

void Aggregator::addFacts(KernelSummary &kernel) const {
  const KernelFacts *facts = region.getFacts(kernel.name);
  if (facts) {
    kernel.bytes = facts->bytes;
    kernel.flops = facts->flops;
    kernel.isDense = facts->isDense;
    kernel.path = facts->path;
    kernel.pathSource = facts->pathSource;
    kernel.workImbalance = facts->workImbalance;
    kernel.measuredBytes = facts->measuredBytes;
    kernel.measuredOccupancy = facts->measuredOccupancy;
    kernel.measuredMatrixFraction = facts->measuredMatrixFraction;
  }
  if (!kernel.path.empty() || !environment.isGPU)
    return;
  kernel.path = guessMatrixPath(kernel.name);
  if (!kernel.path.empty())
    kernel.pathSource = "name";
}

/// Products of 8 bits run at twice the rate of 16 (NVIDIA's data sheets of
/// sm_80, int8, and sm_90).
static std::optional<double>
getMatrixRate(const ProfileEnvironment &environment, llvm::StringRef path) {
  const bool is8Bit = path == "QGMMA" || path == "IGMMA" || path == "IMMA";
  if (!environment.matrixFlopsPerSecond)
    return std::nullopt;
  return (is8Bit ? 2 : 1) * *environment.matrixFlopsPerSecond;
}

void Aggregator::addRoofline(KernelSummary &kernel) const {
  if (kernel.time.median <= 0)
    return;
  const double seconds = kernel.time.median * 1e-6;
  const std::optional<double> bandwidth = environment.bandwidthBytesPerSecond;
  // What multiplies on the CUDA cores can't reach the matrix units' rate.
  const std::optional<double> matrixRate =
      getMatrixRate(environment, kernel.path);
  const std::optional<double> rate =
      kernel.path == "FFMA" ? environment.vectorFlopsPerSecond : matrixRate;
  if (bandwidth && kernel.bytes)
    kernel.bandwidthFraction = *kernel.bytes / seconds / *bandwidth;
  if (matrixRate && kernel.flops && *kernel.flops > 0)
    kernel.matrixFraction = *kernel.flops / seconds / *matrixRate;
  if (bandwidth && rate && kernel.bytes && kernel.flops)
    kernel.bound = *kernel.flops / *rate > *kernel.bytes / *bandwidth
                       ? Bound::Compute
                       : Bound::Memory;
}

std::vector<KernelSummary> Aggregator::finish() {
  std::vector<KernelSummary> kernels;
  for (auto &[key, times] : samples) {
    auto [activity, name, launch] = key;
    KernelSummary &kernel = kernels.emplace_back();
    kernel.activity = activity;
    kernel.name = region.names[name];
    kernel.calls = times.size();
    for (double time : times)
      kernel.totalUs += time;
    kernel.time = attn::summarize(times);
    if (activity != DeviceActivity::Kernel) {
      // A copy on the device reads as much as it writes.
      const int64_t factor = activity == DeviceActivity::Copy ? 2 : 1;
      kernel.bytes = factor * bytes[key] / kernel.calls;
    }
    if (launch) {
      kernel.launch = region.launches[*launch];
      kernel.occupancy = computeOccupancy(environment, *kernel.launch);
      const int64_t blocksPerSM =
          kernel.occupancy ? kernel.occupancy->blocksPerSM : 0;
      if (blocksPerSM > 0 && environment.numSMs > 0)
        kernel.waves = double(kernel.launch->getNumBlocks()) /
                       (blocksPerSM * environment.numSMs);
    }
    if (activity == DeviceActivity::Kernel)
      addFacts(kernel);
    // Uploads and downloads cross the bus, whose rate isn't measured.
    if (activity == DeviceActivity::Kernel || activity == DeviceActivity::Copy)
      addRoofline(kernel);
  }
  llvm::sort(kernels, [](const KernelSummary &a, const KernelSummary &b) {
    return std::tie(b.totalUs, a.name) < std::tie(a.totalUs, b.name);
  });
  return kernels;
}

//===----------------------------------------------------------------------===//
// Regions
//===----------------------------------------------------------------------===//

/// How long at least one of the spans covers.
static int64_t getCoveredNs(std::vector<std::pair<int64_t, int64_t>> spans) {
  llvm::sort(spans);
  int64_t covered = 0, reached = 0;
  for (auto [start, end] : spans) {
    covered += std::max<int64_t>(0, end - std::max(start, reached));
    reached = std::max(reached, end);
  }
  return covered;
}

static std::map<HostActivity, HostSummary>
summarizeHost(const std::map<HostActivity, std::vector<double>> &samples) {
  std::map<HostActivity, HostSummary> summaries;
  for (const auto &[activity, times] : samples) {
    HostSummary &summary = summaries[activity];
    summary.count = times.size();
    for (double time : times)
      summary.totalUs += time;
    summary.medianUs = attn::summarize(times).median;
  }
  return summaries;
}

/// How long the calls of a phase took, if each runs the same on the device.
static std::optional<Distribution>
getCallTimes(std::vector<const DeviceRecord *> records, int64_t calls) {
  // Fewer have no spread.
  if (calls < 3 || records.empty() || records.size() % calls != 0)
    return std::nullopt;
  llvm::sort(records, [](const DeviceRecord *a, const DeviceRecord *b) {
    return std::tuple(a->startNs, a->stream, a->endNs) <
           std::tuple(b->startNs, b->stream, b->endNs);
  });
  const size_t perCall = records.size() / calls;
  int64_t endNs = 0;
  for (auto [index, record] : llvm::enumerate(records)) {
    if (record->name != records[index % perCall]->name)
      return std::nullopt;
    endNs = std::max(endNs, record->endNs);
  }
  std::vector<double> times;
  for (int64_t call = 0; call < calls; ++call) {
    const int64_t nextNs =
        call + 1 < calls ? records[(call + 1) * perCall]->startNs : endNs;
    times.push_back(toUs(nextNs - records[call * perCall]->startNs));
  }
  return Distribution::of(std::move(times));
}

/// The device's side of `phase`.
static void addDevice(RegionSummary &summary,
                      const ProfileEnvironment &environment,
                      const RegionProfile &region, const Phase &phase) {
  Aggregator aggregator(environment, region);
  std::vector<std::pair<int64_t, int64_t>> spans;
  std::vector<const DeviceRecord *> records;
  for (const DeviceRecord &record : region.device) {
    if (!isIn(record, phase))
      continue;
    records.push_back(&record);
    aggregator.add(record);
    spans.emplace_back(record.startNs, record.endNs);
  }
  summary.kernels = aggregator.finish();
  summary.callUs = getCallTimes(std::move(records), phase.calls);
  double total = 0;
  for (const KernelSummary &kernel : summary.kernels)
    total += kernel.totalUs;
  // The clocks of host and device differ by less than a record, which may make
  // the device end after the host has seen it end.
  summary.busyUs = toUs(getCoveredNs(std::move(spans)));
  summary.wallUs = std::max(toUs(phase.endNs - phase.startNs), summary.busyUs);
  summary.overlapUs = total - summary.busyUs;
  summary.idleUs = summary.wallUs - summary.busyUs;
}

RegionSummary attn::summarize(const ProfileEnvironment &environment,
                              const RegionProfile &region) {
  const Phase phase = getSteadyPhase(region);
  RegionSummary summary;
  summary.calls = phase.calls;
  addDevice(summary, environment, region, phase);

  std::map<HostActivity, std::vector<double>> steady, setup;
  for (const HostRecord &record : region.host) {
    const double time = toUs(record.endNs - record.startNs);
    if (isIn(record, phase))
      steady[record.activity].push_back(time);
    else if (record.startNs < phase.startNs)
      setup[record.activity].push_back(time);
  }
  summary.host = summarizeHost(steady);
  summary.setup = summarizeHost(setup);
  if (const Phase *first = findPhase(region, kFirstPhase)) {
    summary.firstCallUs = toUs(first->endNs - first->startNs) / first->calls;
    // Inputs may have been made in between.
    if (const Phase *compile = findPhase(region, kCompilePhase))
      *summary.firstCallUs += toUs(compile->endNs - compile->startNs);
  }
  return summary;
}

std::optional<double> RegionSummary::getSpread() const {
  if (!callUs || callUs->median <= 0)
    return std::nullopt;
  return callUs->getSpread();
}

double RegionSummary::getCountPerCall(DeviceActivity activity) const {
  int64_t count = 0;
  for (const KernelSummary &kernel : kernels)
    if (kernel.activity == activity)
      count += kernel.calls;
  return double(count) / calls;
}

std::optional<double> RegionSummary::getBytesPerCall() const {
  // Where nothing was seen, nothing is known.
  if (kernels.empty())
    return std::nullopt;
  double total = 0;
  for (const KernelSummary &kernel : kernels) {
    if (!kernel.bytes)
      return std::nullopt;
    total += double(*kernel.bytes) * kernel.calls;
  }
  return total / calls;
}

const KernelSummary *RegionSummary::getMainKernel() const {
  auto found = llvm::find_if(kernels, [](const KernelSummary &kernel) {
    return kernel.activity == DeviceActivity::Kernel;
  });
  return found == kernels.end() ? nullptr : &*found;
}

Comparison attn::compareRegions(const ProfileFile &file,
                                llvm::StringRef baseline) {
  Comparison comparison;
  size_t base = 0;
  for (auto [index, region] : llvm::enumerate(file.regions)) {
    comparison.rows.push_back(
        {&region, summarize(file.environment, region), std::nullopt});
    if (region.name == baseline)
      base = index;
  }
  if (comparison.rows.empty())
    return comparison;
  comparison.baseline = file.regions[base].name;
  const double baseUs = comparison.rows[base].summary.getWallUsPerCall();
  for (Comparison::Row &row : comparison.rows)
    if (baseUs > 0)
      row.ratio = row.summary.getWallUsPerCall() / baseUs;
  return comparison;
}
