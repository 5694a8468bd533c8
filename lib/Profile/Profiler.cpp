//===- Profiler.cpp - Records what a region runs --------------------------===//

#include "attn/Profile/Profiler.h"
#include "Cupti.h"
#include "RecordingDevice.h"
#include "attn/Profile/MachineCode.h"
#include "attn/Runtime/CudnnKernel.h"
#include "attn/Runtime/HostWork.h"
#include "attn/Runtime/Launcher.h"
#include "attn/Runtime/Ptxas.h"
#include "llvm/ADT/STLExtras.h"
#include <map>
#include <mutex>

using namespace attn;

/// FP32 lanes of an SM (sm_80: 64, sm_86 and later: 128; CUDA C++ programming
/// guide, "Arithmetic instructions").
static int64_t getVectorLanes(llvm::StringRef arch) {
  return arch == "sm_80" ? 64 : 128;
}

namespace {

/// Records what a CPU has done.
class CpuObserver : public WorkObserver {
public:
  explicit CpuObserver(Recorder &recorder) : recorder(recorder) {}

  void onKernel(const Kernel &kernel, int64_t grid, TimePoint start,
                TimePoint end) override {
    LaunchConfig launch;
    launch.grid = {grid, 1, 1};
    launch.block = kernel.block;
    launch.cluster = kernel.cluster;
    add(DeviceActivity::Kernel, kernel.name, launch, 0, start, end);
  }
  void onCopy(int64_t bytes, TimePoint start, TimePoint end) override {
    add(DeviceActivity::Copy, "memcpy DtoD", std::nullopt, bytes, start, end);
  }
  void onMemset(int64_t bytes, TimePoint start, TimePoint end) override {
    add(DeviceActivity::Memset, "memset", std::nullopt, bytes, start, end);
  }

private:
  void add(DeviceActivity activity, llvm::StringRef name,
           const std::optional<LaunchConfig> &launch, int64_t bytes,
           TimePoint start, TimePoint end);

  Recorder &recorder;
};

/// Records what the runtime and the compiler do on the host.
class HostObserver : public HostWorkObserver {
public:
  explicit HostObserver(Recorder &recorder) : recorder(recorder) {}

  void onHostWork(HostWork work, llvm::StringRef detail, TimePoint start,
                  TimePoint end) override;
  void onLaunch(const LaunchedForward &forward) override;

  /// Forgets the launches so far: what is known of a region is its last phase.
  void beginPhase();
  /// Adds what the plans that were launched say of their kernels, and of a call
  /// if nothing else ran on the device in the phase.
  void addFacts(RegionProfile &region, const Phase &phase);

private:
  /// Of all launches of a kernel.
  struct Work {
    int64_t launches = 0;
    std::optional<int64_t> bytes = 0, flops = 0;
    int64_t grid = 0;

    void add(const Work &other);
  };

  /// What forwards have in common that skip the same tiles.
  struct Problem {
    /// Null: none is skipped.
    std::shared_ptr<const TileMapper> mapper;
    /// Of q and k; empty where they aren't of rank 4.
    std::vector<int64_t> queryShape, keyShape;

    static Problem of(const LaunchedForward &forward);
    std::optional<TileWork> map() const;
    bool operator<(const Problem &other) const {
      return std::tie(mapper, queryShape, keyShape) <
             std::tie(other.mapper, other.queryShape, other.keyShape);
    }
  };

  Recorder &recorder;
  std::mutex mutex;
  /// By name.
  std::map<Problem, std::map<std::string, Work>> works;
  int64_t minBytes = 0, maxIntermediateBytes = 0;
};

} // namespace

static HostActivity getActivity(HostWork work) {
  switch (work) {
  case HostWork::Lookup:
    return HostActivity::Lookup;
  case HostWork::Compile:
    return HostActivity::Compile;
  case HostWork::Load:
    return HostActivity::Load;
  case HostWork::Plan:
    return HostActivity::Plan;
  }
  llvm_unreachable("unknown work");
}

/// It has just ended, on a clock that may be another than the recorder's.
void HostObserver::onHostWork(HostWork work, llvm::StringRef detail,
                              TimePoint start, TimePoint end) {
  const int64_t endNs = recorder.now();
  recorder.add(getActivity(work), detail,
               endNs - (Recorder::toNs(end) - Recorder::toNs(start)), endNs);
}

static void add(std::optional<int64_t> &sum, std::optional<int64_t> value) {
  sum = sum && value ? std::optional(*sum + *value) : std::nullopt;
}

HostObserver::Problem
HostObserver::Problem::of(const LaunchedForward &forward) {
  Problem problem = {forward.tileMapper, {}, {}};
  if (!problem.mapper || forward.arguments.size() < 2 ||
      forward.arguments[0].shape.size() != 4 ||
      forward.arguments[1].shape.size() != 4)
    return problem;
  problem.queryShape = forward.arguments[0].shape.vec();
  problem.keyShape = forward.arguments[1].shape.vec();
  return problem;
}

std::optional<TileWork> HostObserver::Problem::map() const {
  if (!mapper || queryShape.empty())
    return std::nullopt;
  return (*mapper)(queryShape[2], keyShape[2]);
}

void HostObserver::Work::add(const Work &other) {
  launches += other.launches;
  ::add(bytes, other.bytes);
  ::add(flops, other.flops);
  grid = other.grid;
}

void HostObserver::onLaunch(const LaunchedForward &forward) {
  std::lock_guard<std::mutex> lock(mutex);
  const BoundPlan &plan = forward.plan;
  auto &kernels = works[Problem::of(forward)];
  for (const TimedStep &step : plan.steps)
    if (step.kind == Step::Kind::Launch &&
        !(step.isPrepass && forward.skipsPrepass))
      kernels[step.name].add({1, step.bytes, step.flops, step.grid});
  minBytes += plan.minBytes;
  maxIntermediateBytes =
      std::max(maxIntermediateBytes, plan.maxIntermediateBytes);
}

void HostObserver::beginPhase() {
  std::lock_guard<std::mutex> lock(mutex);
  works.clear();
  minBytes = maxIntermediateBytes = 0;
}

/// The launch is the work itself.
void CpuObserver::add(DeviceActivity activity, llvm::StringRef name,
                      const std::optional<LaunchConfig> &launch, int64_t bytes,
                      TimePoint start, TimePoint end) {
  DeviceRecord record = {};
  record.activity = activity;
  record.startNs = Recorder::toNs(start);
  record.endNs = Recorder::toNs(end);
  record.correlation = recorder.getNewCorrelation();
  record.bytes = bytes;
  recorder.add(HostActivity::Launch, name, record.startNs, record.endNs,
               record.correlation);
  recorder.add(record, name, launch);
}

struct Profiler::Impl {
  explicit Impl(Device &device)
      : device(device), recordingDevice(device, recorder), observer(recorder),
        hostObserver(recorder) {}

  llvm::Error startObserving();
  llvm::Error stopObserving();

  void observeClock();
  void addPaths();

  Device &device;
  Recorder recorder;
  RecordingDevice recordingDevice;
  CpuObserver observer;
  HostObserver hostObserver;
  bool isObserving = false;
  /// Null without CUPTI, for which there is a reason.
  std::unique_ptr<CuptiCollector> cupti;
  std::string whyNoCupti;
  std::string name, target;
  Phase phase;
  /// The lowest of all phases, and all reasons.
  std::optional<int64_t> clockMHz;
  std::vector<std::string> throttleReasons;
};

Profiler::Profiler(Device &device) : impl(std::make_unique<Impl>(device)) {
  if (!device.isGPU())
    return;
  llvm::Expected<std::unique_ptr<CuptiCollector>> cupti =
      CuptiCollector::create(impl->recorder);
  if (cupti)
    impl->cupti = std::move(*cupti);
  else
    impl->whyNoCupti = llvm::toString(cupti.takeError());
}

Profiler::~Profiler() { llvm::consumeError(impl->stopObserving()); }

llvm::Error Profiler::Impl::startObserving() {
  if (isObserving)
    return llvm::Error::success();
  if (!setHostWorkObserver(&hostObserver))
    return llvm::createStringError("a profile is being recorded already");
  if (llvm::Error error = device.setObserver(&observer)) {
    setHostWorkObserver(nullptr);
    return error;
  }
  isObserving = true;
  return llvm::Error::success();
}

llvm::Error Profiler::Impl::stopObserving() {
  if (!isObserving)
    return llvm::Error::success();
  isObserving = false;
  setHostWorkObserver(nullptr);
  return device.setObserver(nullptr);
}

llvm::Error Profiler::checkSeesAll() const {
  if (impl->whyNoCupti.empty())
    return llvm::Error::success();
  return llvm::createStringError(impl->whyNoCupti);
}

Device &Profiler::getDevice() { return impl->recordingDevice; }

llvm::Error Profiler::begin(llvm::StringRef name, llvm::StringRef target) {
  impl->name = name.str();
  impl->target = target.str();
  if (llvm::Error error = impl->device.synchronizeAll())
    return error;
  if (impl->cupti)
    if (llvm::Error error = impl->cupti->flush())
      return error;
  impl->recorder.take();
  impl->recordingDevice.setTiming(impl->device.isGPU() && !impl->cupti);
  return impl->startObserving();
}

//===----------------------------------------------------------------------===//
// Host
//===----------------------------------------------------------------------===//

Profiler::HostSpan::HostSpan(Profiler &profiler, HostActivity activity,
                             llvm::StringRef name)
    : profiler(profiler), activity(activity), name(name.str()),
      startNs(profiler.impl->recorder.now()) {}

Profiler::HostSpan::~HostSpan() {
  Recorder &recorder = profiler.impl->recorder;
  recorder.add(activity, name, startNs, recorder.now());
}

void Profiler::beginPhase(llvm::StringRef name) {
  impl->hostObserver.beginPhase();
  impl->phase = {name.str(), impl->recorder.now(), 0, 1};
}

/// While the device is busy: an idle one soon changes its clock.
void Profiler::Impl::observeClock() {
  if (std::optional<int64_t> clock = device.getClockMHz())
    clockMHz = std::min(clockMHz.value_or(*clock), *clock);
  for (std::string &reason : device.getClockLimits().reasons)
    if (!llvm::is_contained(throttleReasons, reason))
      throttleReasons.push_back(std::move(reason));
}

llvm::Error Profiler::endPhase(int64_t calls) {
  impl->observeClock();
  if (llvm::Error error = impl->recordingDevice.finishTiming())
    return error;
  impl->phase.endNs = impl->recorder.now();
  impl->phase.calls = calls;
  impl->recorder.addPhase(impl->phase);
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Regions
//===----------------------------------------------------------------------===//

/// The machine code of PTX, as ptxas makes it; what the driver makes of it is
/// known from CUPTI only.
static llvm::Expected<MatrixPaths> assemblePaths(llvm::StringRef ptx) {
  llvm::Expected<PtxasResult> assembled = runPtxas(ptx, getPTXTarget(ptx));
  if (!assembled)
    return assembled.takeError();
  return readMatrixPaths(assembled->cubin);
}

/// Matrix paths of the modules that went through the device.
void Profiler::Impl::addPaths() {
  for (const std::string &image : recordingDevice.takeImages()) {
    // CUPTI has shown what the driver made of it.
    const MatrixPaths inPTX = readMatrixPathsOfPTX(image);
    if (!inPTX.empty() && llvm::all_of(inPTX.keys(), [&](llvm::StringRef name) {
          return recorder.knowsPath(name);
        }))
      continue;
    llvm::StringRef source = "machine code";
    llvm::Expected<MatrixPaths> paths =
        isCubin(image) ? readMatrixPaths(image) : assemblePaths(image);
    if (!paths) {
      // No ptxas: PTX says it too.
      llvm::consumeError(paths.takeError());
      paths = inPTX;
      source = "PTX";
    }
    for (const auto &entry : *paths)
      recorder.setPath(entry.first(), entry.second, source);
  }
}

/// Where the code came from: the costliest of what was seen.
static llvm::StringRef getOrigin(const RegionProfile &region) {
  llvm::StringRef origin;
  for (const HostRecord &record : region.host) {
    if (record.activity == HostActivity::Compile)
      return "compiled";
    if (record.activity != HostActivity::Lookup)
      continue;
    if (region.names[record.name] == "disk hit")
      origin = "disk";
    else if (region.names[record.name] == "memory hit" && origin.empty())
      origin = "memory";
  }
  return origin;
}

llvm::Expected<RegionProfile> Profiler::end() {
  Impl &self = *impl;
  if (llvm::Error error = self.recordingDevice.finishTiming())
    return std::move(error);
  self.recordingDevice.setTiming(false);
  if (llvm::Error error = self.stopObserving())
    return std::move(error);
  if (self.cupti)
    if (llvm::Error error = self.cupti->flush())
      return std::move(error);
  if (self.device.isGPU())
    self.addPaths();
  RegionProfile region = self.recorder.take();
  self.hostObserver.addFacts(region, self.phase);
  region.origin = getOrigin(region).str();
  region.name = self.name;
  region.target = self.target;
  region.source = self.cupti            ? "cupti"
                  : self.device.isGPU() ? "events"
                                        : "host clock";
  if (!self.whyNoCupti.empty())
    region.notes.push_back(
        "times lie between events around each step, which adds a few "
        "microseconds to a short one, and other work is not seen: " +
        self.whyNoCupti);
  return region;
}

//===----------------------------------------------------------------------===//
// Environment
//===----------------------------------------------------------------------===//

static std::optional<MultiprocessorLimits>
copyLimits(const std::optional<SMLimits> &limits) {
  if (!limits)
    return std::nullopt;
  return MultiprocessorLimits{limits->maxThreads,
                              limits->maxBlocks,
                              limits->registers,
                              limits->sharedBytes,
                              limits->maxSharedBytesPerBlock,
                              limits->reservedSharedBytesPerBlock};
}

llvm::Expected<ProfileEnvironment> Profiler::describeEnvironment() {
  Device &device = impl->device;
  ProfileEnvironment environment;
  environment.device = device.getName();
  environment.isGPU = device.isGPU();
  environment.driver = device.getDriverVersion();
  environment.numSMs = device.getNumSMs();
  environment.cacheBytes = device.getCacheBytes();
  environment.limits = copyLimits(device.getSMLimits());
  if (std::optional<SMLimits> limits = device.getSMLimits())
    environment.arch = limits->arch.str();
  environment.clockMHz = impl->clockMHz;
  environment.maxClockMHz = device.getClockLimits().maxMHz;
  environment.throttleReasons = impl->throttleReasons;
  if (environment.isGPU && environment.maxClockMHz)
    environment.vectorFlopsPerSecond = 2.0 * getVectorLanes(environment.arch) *
                                       environment.numSMs *
                                       *environment.maxClockMHz * 1e6;
  llvm::Expected<std::optional<double>> bandwidth = measureBandwidth(device);
  if (!bandwidth)
    return bandwidth.takeError();
  environment.bandwidthBytesPerSecond = *bandwidth;
  llvm::Expected<std::optional<double>> rate = measureMatrixRate(device);
  if (!rate)
    return rate.takeError();
  environment.matrixFlopsPerSecond = *rate;
  return environment;
}

//===----------------------------------------------------------------------===//
// Facts
//===----------------------------------------------------------------------===//

/// On the device, a library's kernel has a name of the library's own: that of
/// the only one whose work isn't known.
static void nameLibraryKernel(RegionProfile &region) {
  const KernelFacts *library = region.getFacts(kCudnnKernelName);
  if (!library)
    return;
  std::optional<unsigned> unknown;
  for (const DeviceRecord &record : region.device) {
    const llvm::StringRef name = region.names[record.name];
    const KernelFacts *facts = region.getFacts(name);
    if (record.activity != DeviceActivity::Kernel || record.name == unknown ||
        (facts && facts->flops))
      continue;
    if (unknown)
      return;
    unknown = record.name;
  }
  if (!unknown)
    return;
  const KernelFacts work = *library;
  llvm::erase_if(region.facts, [](const KernelFacts &facts) {
    return facts.name == kCudnnKernelName;
  });
  KernelFacts &facts = region.getOrAddFacts(region.names[*unknown]);
  facts.bytes = work.bytes;
  facts.flops = work.flops;
  facts.isDense = work.isDense;
}

/// How unlike the work of the programs is where each has a tile of queries; a
/// persistent kernel evens it out.
static void addImbalance(KernelFacts &facts, const TileWork &tiles,
                         int64_t grid, llvm::ArrayRef<int64_t> queryShape) {
  if (grid == queryShape[0] * queryShape[1] * tiles.numQueryTiles)
    facts.workImbalance = tiles.imbalance;
}

void HostObserver::addFacts(RegionProfile &region, const Phase &phase) {
  std::map<std::string, Work> totals;
  int64_t launches = 0;
  for (const auto &[problem, kernels] : works) {
    const std::optional<TileWork> tiles = problem.map();
    for (const auto &[name, work] : kernels) {
      KernelFacts &facts = region.getOrAddFacts(name);
      Work counted = work;
      if (tiles && counted.flops)
        counted.flops = tiles->countVisited(*counted.flops);
      if (tiles)
        addImbalance(facts, *tiles, work.grid, problem.queryShape);
      facts.isDense |= problem.mapper && !tiles && work.flops > 0;
      totals[name].add(counted);
      launches += work.launches;
    }
    if (tiles && works.size() == 1)
      region.maskMap = tiles->map;
  }
  // Of one launch in the mean.
  for (const auto &[name, work] : totals) {
    KernelFacts &facts = region.getOrAddFacts(name);
    if (work.bytes)
      facts.bytes = *work.bytes / work.launches;
    if (work.flops)
      facts.flops = *work.flops / work.launches;
  }
  nameLibraryKernel(region);
  // Other kernels, or a graph's replay of what was launched once.
  const int64_t kernels =
      llvm::count_if(region.device, [&](const DeviceRecord &record) {
        return record.activity == DeviceActivity::Kernel &&
               record.startNs >= phase.startNs && record.endNs <= phase.endNs;
      });
  if (launches == 0 || launches != kernels)
    return;
  region.minBytes = minBytes / phase.calls;
  region.maxIntermediateBytes = maxIntermediateBytes;
}

/// Of one launch in the mean, where several steps have one name.
static std::optional<int64_t>
getMean(const Invocation &invocation, llvm::StringRef name,
        std::optional<int64_t> TimedStep::*field) {
  int64_t sum = 0, count = 0;
  for (const TimedStep &step : invocation.getSteps()) {
    if (step.name != name)
      continue;
    if (!(step.*field))
      return std::nullopt;
    sum += *(step.*field);
    ++count;
  }
  return sum / count;
}

void attn::addFacts(RegionProfile &region, const Invocation &invocation) {
  for (const TimedStep &step : invocation.getSteps()) {
    if (step.kind != Step::Kind::Launch)
      continue;
    KernelFacts &facts = region.getOrAddFacts(step.name);
    facts.bytes = getMean(invocation, step.name, &TimedStep::bytes);
    facts.flops = getMean(invocation, step.name, &TimedStep::flops);
  }
  nameLibraryKernel(region);
  region.minBytes = invocation.getMinBytes();
  region.maxIntermediateBytes = invocation.getMaxIntermediateBytes();
}

void attn::addTileWork(RegionProfile &region, const Invocation &invocation,
                       const std::optional<TileWork> &tiles,
                       llvm::ArrayRef<int64_t> queryShape) {
  for (KernelFacts &facts : region.facts) {
    facts.isDense = !tiles && facts.flops > 0;
    if (tiles && facts.flops)
      facts.flops = tiles->countVisited(*facts.flops);
  }
  if (!tiles)
    return;
  region.maskMap = tiles->map;
  for (const TimedStep &step : invocation.getSteps())
    for (KernelFacts &facts : region.facts)
      if (facts.name == step.name)
        addImbalance(facts, *tiles, step.grid, queryShape);
}
