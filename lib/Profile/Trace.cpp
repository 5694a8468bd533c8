//===- Trace.cpp - A profile for Perfetto or chrome://tracing -------------===//
//
// The format is "Trace Event Format" of Chromium's catapult project.
//
//===----------------------------------------------------------------------===//

#include "attn/Profile/Trace.h"
#include "attn/Profile/Summary.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"

using namespace attn;
namespace json = llvm::json;

namespace {

/// Thread ids of the lanes of a process, in the order they are shown. Real
/// thread ids and stream handles are in the names.
constexpr int64_t kPhaseLane = 0;
constexpr int64_t kFirstHostLane = 1;
constexpr int64_t kFirstStreamLane = 1000;

/// Numbers lanes by what they show, in the order of appearance.
class Lanes {
public:
  explicit Lanes(int64_t first) : next(first) {}
  int64_t get(int64_t key) {
    auto [lane, isNew] = lanes.try_emplace(key, next);
    next += isNew;
    return lane->second;
  }
  const std::map<int64_t, int64_t> &all() const { return lanes; }

private:
  std::map<int64_t, int64_t> lanes;
  int64_t next;
};

/// Writes the events of one region.
class RegionWriter {
public:
  RegionWriter(json::OStream &os, const ProfileEnvironment &environment,
               const RegionProfile &region, int64_t process, int64_t firstFlow)
      : os(os), environment(environment), region(region), process(process),
        nextFlow(firstFlow), originNs(getOrigin()) {}

  /// Lane names and phases, which are never left out.
  void writeFrame();
  /// Records in the order of time while `hasRoom`; returns how many are left
  /// out.
  size_t writeRecords(llvm::function_ref<bool()> hasRoom);

  int64_t getNextFlow() const { return nextFlow; }

private:
  int64_t getOrigin() const;
  void event(llvm::StringRef phase, llvm::StringRef name, int64_t lane,
             int64_t ns, llvm::function_ref<void()> more);
  void metadata(llvm::StringRef what, int64_t lane, llvm::StringRef key,
                json::Value value);
  void span(llvm::StringRef name, llvm::StringRef category, int64_t lane,
            int64_t startNs, int64_t endNs, llvm::function_ref<void()> args);
  void flow(llvm::StringRef phase, int64_t correlation, int64_t lane,
            int64_t ns);
  void counter(llvm::StringRef name, int64_t ns, double value);
  void write(const HostRecord &record);
  void write(const DeviceRecord &record);
  void writeLaunch(const LaunchConfig &launch);
  void numberFlows();
  void attributeUs(llvm::StringRef key, int64_t ns);

  json::OStream &os;
  const ProfileEnvironment &environment;
  const RegionProfile &region;
  const int64_t process;
  int64_t nextFlow;
  const int64_t originNs;
  Lanes hostLanes{kFirstHostLane};
  Lanes streamLanes{kFirstStreamLane};
  /// By correlation, of launches that have both ends.
  llvm::DenseMap<int64_t, int64_t> flows;
};

} // namespace

/// A trace starts at 0.
int64_t RegionWriter::getOrigin() const {
  std::optional<int64_t> origin;
  auto include = [&](const auto &records) {
    for (const auto &record : records)
      origin = std::min(origin.value_or(record.startNs), record.startNs);
  };
  include(region.phases);
  include(region.host);
  include(region.device);
  return origin.value_or(0);
}

/// Microseconds with all nanoseconds, which a double would round.
void RegionWriter::attributeUs(llvm::StringRef key, int64_t ns) {
  std::string text;
  llvm::raw_string_ostream(text)
      << ns / 1000 << '.' << llvm::format("%03d", int(ns % 1000));
  os.attributeBegin(key);
  os.rawValue(text);
  os.attributeEnd();
}

void RegionWriter::event(llvm::StringRef phase, llvm::StringRef name,
                         int64_t lane, int64_t ns,
                         llvm::function_ref<void()> more) {
  os.object([&] {
    os.attribute("ph", phase);
    os.attribute("name", json::fixUTF8(name));
    os.attribute("pid", process);
    os.attribute("tid", lane);
    attributeUs("ts", ns - originNs);
    more();
  });
}

void RegionWriter::metadata(llvm::StringRef what, int64_t lane,
                            llvm::StringRef key, json::Value value) {
  event("M", what, lane, originNs, [&] {
    os.attributeObject("args", [&] { os.attribute(key, std::move(value)); });
  });
}

void RegionWriter::span(llvm::StringRef name, llvm::StringRef category,
                        int64_t lane, int64_t startNs, int64_t endNs,
                        llvm::function_ref<void()> args) {
  event("X", name, lane, startNs, [&] {
    os.attribute("cat", category);
    attributeUs("dur", endNs - startNs);
    os.attributeObject("args", args);
  });
}

void RegionWriter::flow(llvm::StringRef phase, int64_t correlation,
                        int64_t lane, int64_t ns) {
  auto found = flows.find(correlation);
  if (found == flows.end())
    return;
  event(phase, "launch", lane, ns, [&] {
    os.attribute("cat", "launch");
    os.attribute("id", found->second);
    // To the slice around this time, not to the next one.
    if (phase == "f")
      os.attribute("bp", "e");
  });
}

void RegionWriter::counter(llvm::StringRef name, int64_t ns, double value) {
  event("C", name, kPhaseLane, ns, [&] {
    os.attributeObject("args", [&] { os.attribute("value", value); });
  });
}

void RegionWriter::write(const HostRecord &record) {
  const int64_t lane = hostLanes.get(record.thread);
  span(region.names[record.name], getName(record.activity), lane,
       record.startNs, record.endNs,
       [&] { os.attribute("activity", getName(record.activity)); });
  flow("s", record.correlation, lane, record.startNs);
}

void RegionWriter::writeLaunch(const LaunchConfig &launch) {
  os.attribute("grid", json::Array(launch.grid));
  os.attribute("block", json::Array(launch.block));
  os.attribute("cluster", json::Array(launch.cluster));
  if (launch.registers)
    os.attribute("registers", *launch.registers);
  if (launch.getSharedBytes())
    os.attribute("smem_bytes", *launch.getSharedBytes());
  if (std::optional<Occupancy> occupancy =
          computeOccupancy(environment, launch)) {
    os.attribute("computed_occupancy_percent", 100 * occupancy->getFraction());
    os.attribute("occupancy_limit", occupancy->limit);
  }
}

void RegionWriter::write(const DeviceRecord &record) {
  const int64_t lane = streamLanes.get(record.stream);
  const std::string &name = region.names[record.name];
  const KernelFacts *facts = region.getFacts(name);
  span(name, getName(record.activity), lane, record.startNs, record.endNs, [&] {
    if (record.launch)
      writeLaunch(region.launches[*record.launch]);
    if (record.bytes > 0)
      os.attribute("bytes", record.bytes);
    if (facts && facts->bytes)
      os.attribute("analytic_bytes", *facts->bytes);
    if (facts && facts->flops)
      os.attribute("analytic_flops", *facts->flops);
    if (facts && !facts->path.empty())
      os.attribute("matrix_path", facts->path);
  });
  flow("f", record.correlation, lane, record.startNs);
  const std::optional<int64_t> bytes =
      facts ? facts->bytes : std::optional<int64_t>(record.bytes);
  if (!bytes || *bytes == 0 || record.endNs == record.startNs)
    return;
  counter("GB/s (analytic)", record.startNs,
          double(*bytes) / (record.endNs - record.startNs));
  counter("GB/s (analytic)", record.endNs, 0);
}

/// An arrow needs both its ends.
void RegionWriter::numberFlows() {
  llvm::DenseSet<int64_t> launched;
  for (const DeviceRecord &record : region.device)
    launched.insert(record.correlation);
  for (const HostRecord &record : region.host)
    if (record.correlation != 0 && launched.contains(record.correlation))
      flows.try_emplace(record.correlation, nextFlow++);
}

void RegionWriter::writeFrame() {
  for (const HostRecord &record : region.host)
    hostLanes.get(record.thread);
  for (const DeviceRecord &record : region.device)
    streamLanes.get(record.stream);
  metadata("process_name", kPhaseLane, "name",
           json::fixUTF8(region.name + " (" + region.target + ", " +
                         environment.device + ", times by " + region.source +
                         ")"));
  metadata("process_sort_index", kPhaseLane, "sort_index", process);
  auto nameLane = [&](int64_t lane, const std::string &name) {
    metadata("thread_name", lane, "name", name);
    metadata("thread_sort_index", lane, "sort_index", lane);
  };
  nameLane(kPhaseLane, "phases");
  for (auto [thread, lane] : hostLanes.all())
    nameLane(lane, "host thread " + std::to_string(thread));
  for (auto [stream, lane] : streamLanes.all())
    nameLane(lane, (environment.isGPU ? "GPU stream " : "CPU device ") +
                       std::to_string(stream));
  for (const Phase &phase : region.phases)
    span(phase.name, "phase", kPhaseLane, phase.startNs, phase.endNs,
         [&] { os.attribute("calls", phase.calls); });
}

size_t RegionWriter::writeRecords(llvm::function_ref<bool()> hasRoom) {
  numberFlows();
  auto sortByStart = [](const auto &records) {
    std::vector<const typename std::decay_t<decltype(records)>::value_type *>
        sorted;
    for (const auto &record : records)
      sorted.push_back(&record);
    llvm::sort(sorted, [](const auto *a, const auto *b) {
      return std::pair(a->startNs, a) < std::pair(b->startNs, b);
    });
    return sorted;
  };
  const auto host = sortByStart(region.host);
  const auto device = sortByStart(region.device);
  size_t nextHost = 0, nextDevice = 0;
  while ((nextHost < host.size() || nextDevice < device.size()) && hasRoom()) {
    const bool isHost =
        nextDevice == device.size() ||
        (nextHost < host.size() &&
         host[nextHost]->startNs <= device[nextDevice]->startNs);
    if (isHost)
      write(*host[nextHost++]);
    else
      write(*device[nextDevice++]);
  }
  return host.size() - nextHost + device.size() - nextDevice;
}

/// What a reader of the trace alone needs to know.
static void writeEnvironment(json::OStream &os, const ProfileFile &file,
                             size_t leftOut) {
  const ProfileEnvironment &environment = file.environment;
  os.attributeObject("otherData", [&] {
    os.attribute("device", json::fixUTF8(environment.device));
    os.attribute("driver", environment.driver);
    os.attribute("command", json::fixUTF8(file.command));
    for (const auto &[name, version] : environment.versions)
      os.attribute(json::fixUTF8("version " + name), json::fixUTF8(version));
    os.attribute("records_left_out", int64_t(leftOut));
  });
}

void attn::writeTrace(llvm::raw_ostream &stream, const ProfileFile &file,
                      const TraceOptions &options) {
  const uint64_t start = stream.tell();
  json::OStream os(stream);
  auto hasRoom = [&] { return stream.tell() - start < options.maxBytes; };
  size_t leftOut = 0;
  os.object([&] {
    os.attribute("displayTimeUnit", "ns");
    os.attributeArray("traceEvents", [&] {
      int64_t process = 1, flow = 1;
      for (const RegionProfile &region : file.regions) {
        RegionWriter writer(os, file.environment, region, process++, flow);
        writer.writeFrame();
        leftOut += writer.writeRecords(hasRoom);
        flow = writer.getNextFlow();
      }
    });
    writeEnvironment(os, file, leftOut);
  });
  stream << '\n';
}
