//===- Profile.cpp - Reading and writing profiles -------------------------===//

#include "attn/Profile/Profile.h"
#include "SummaryJSON.h"
#include "attn/Runtime/JSONUtils.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>
#include <limits>

using namespace attn;
namespace json = llvm::json;

static constexpr int64_t kVersion = 1;

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

static constexpr llvm::StringLiteral kDeviceActivities[] = {
    "kernel", "copy", "upload", "download", "memset"};
static constexpr llvm::StringLiteral kHostActivities[] = {
    "lookup", "compile", "load", "plan", "launch", "wait"};

llvm::StringRef attn::getName(DeviceActivity activity) {
  return kDeviceActivities[static_cast<unsigned>(activity)];
}

llvm::StringRef attn::getName(HostActivity activity) {
  return kHostActivities[static_cast<unsigned>(activity)];
}

//===----------------------------------------------------------------------===//
// Queries
//===----------------------------------------------------------------------===//

std::optional<int64_t> LaunchConfig::getSharedBytes() const {
  if (!staticSharedBytes || !dynamicSharedBytes)
    return std::nullopt;
  return *staticSharedBytes + *dynamicSharedBytes;
}

bool LaunchConfig::operator==(const LaunchConfig &other) const {
  return grid == other.grid && block == other.block &&
         cluster == other.cluster && registers == other.registers &&
         staticSharedBytes == other.staticSharedBytes &&
         dynamicSharedBytes == other.dynamicSharedBytes &&
         localBytes == other.localBytes;
}

const KernelFacts *RegionProfile::getFacts(llvm::StringRef kernel) const {
  auto found = llvm::find_if(
      facts, [&](const KernelFacts &entry) { return entry.name == kernel; });
  return found == facts.end() ? nullptr : &*found;
}

KernelFacts &RegionProfile::getOrAddFacts(llvm::StringRef kernel) {
  auto found = llvm::find_if(
      facts, [&](const KernelFacts &entry) { return entry.name == kernel; });
  if (found != facts.end())
    return *found;
  KernelFacts &added = facts.emplace_back();
  added.name = kernel.str();
  return added;
}

std::vector<std::string> ProfileFile::getRegionNames() const {
  std::vector<std::string> names;
  for (const RegionProfile &region : regions)
    names.push_back(region.name);
  return names;
}

std::optional<Occupancy>
attn::computeOccupancy(const ProfileEnvironment &environment,
                       const LaunchConfig &launch) {
  if (!environment.limits || !launch.registers || !launch.getSharedBytes())
    return std::nullopt;
  const MultiprocessorLimits &limits = *environment.limits;
  return computeOccupancy(SMLimits{environment.arch, limits.maxThreads,
                                   limits.maxBlocks, limits.registers,
                                   limits.sharedBytes,
                                   limits.maxSharedBytesPerBlock,
                                   limits.reservedSharedBytesPerBlock},
                          {launch.getThreadsPerBlock(), *launch.registers,
                           *launch.getSharedBytes()});
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

namespace attn {

namespace {
/// For the mapper, which looks in this namespace for what reads a type.
struct Sizes {
  std::array<int64_t, 3> &array;
};

bool fromJSON(const json::Value &value, Sizes &sizes, json::Path path) {
  std::vector<int64_t> elements;
  if (!json::fromJSON(value, elements, path))
    return false;
  if (elements.size() != 3 || llvm::any_of(elements, [](int64_t size) {
        return size < 1 || size > std::numeric_limits<uint32_t>::max();
      })) {
    path.report("expected three positive sizes");
    return false;
  }
  llvm::copy(elements, sizes.array.begin());
  return true;
}

/// Bytes and the like.
struct Count {
  std::optional<int64_t> &value;
};

bool fromJSON(const json::Value &value, Count &count, json::Path path) {
  if (!json::fromJSON(value, count.value, path))
    return false;
  if (!count.value || *count.value >= 0)
    return true;
  path.report("expected a number that isn't negative");
  return false;
}
} // namespace

static bool fromJSON(const json::Value &value, LaunchConfig &launch,
                     json::Path path) {
  json::ObjectMapper mapper(value, path);
  Sizes grid{launch.grid}, block{launch.block}, cluster{launch.cluster};
  Count registers{launch.registers}, staticShared{launch.staticSharedBytes},
      dynamicShared{launch.dynamicSharedBytes}, local{launch.localBytes};
  return mapper && mapper.map("grid", grid) && mapper.map("block", block) &&
         mapper.map("cluster", cluster) &&
         mapper.mapOptional("registers", registers) &&
         mapper.mapOptional("static_smem_bytes", staticShared) &&
         mapper.mapOptional("dynamic_smem_bytes", dynamicShared) &&
         mapper.mapOptional("local_bytes", local);
}

/// Maps a number that others are divided by or multiplied with: what is far
/// from anything measured gives infinities, which JSON can't hold.
static bool mapMeasured(json::ObjectMapper &mapper, llvm::StringLiteral field,
                        std::optional<double> &result, json::Path path) {
  constexpr double kLeast = 1e-9, kMost = 1e30;
  if (!mapper.map(field, result))
    return false;
  if (!result || (*result >= kLeast && *result <= kMost))
    return true;
  path.field(field).report("expected a positive number that can be measured");
  return false;
}

static bool fromJSON(const json::Value &value, KernelFacts &facts,
                     json::Path path) {
  json::ObjectMapper mapper(value, path);
  Count bytes{facts.bytes}, flops{facts.flops};
  return mapper && mapper.map("name", facts.name) &&
         mapper.mapOptional("bytes", bytes) &&
         mapper.mapOptional("flops", flops) &&
         mapper.mapOptional("dense", facts.isDense) &&
         mapper.mapOptional("path", facts.path) &&
         mapper.mapOptional("path_source", facts.pathSource) &&
         mapMeasured(mapper, "work_imbalance", facts.workImbalance, path) &&
         mapper.map("measured_bytes", facts.measuredBytes) &&
         mapper.map("measured_occupancy", facts.measuredOccupancy) &&
         mapper.map("measured_matrix", facts.measuredMatrixFraction);
}

/// Whether a span is one; reports at `path` if it isn't.
static bool checkSpan(int64_t startNs, int64_t endNs, json::Path path) {
  if (startNs >= 0 && startNs <= endNs)
    return true;
  path.report("ends before it starts");
  return false;
}

static bool fromJSON(const json::Value &value, Phase &phase, json::Path path) {
  json::ObjectMapper mapper(value, path);
  if (!mapper || !mapper.map("name", phase.name) ||
      !mapper.map("start_ns", phase.startNs) ||
      !mapper.map("end_ns", phase.endNs) || !mapper.map("calls", phase.calls) ||
      !checkSpan(phase.startNs, phase.endNs, path))
    return false;
  if (phase.calls >= 1)
    return true;
  path.field("calls").report("expected a positive number");
  return false;
}

static bool fromJSON(const json::Value &value, MaskMap &map, json::Path path) {
  json::ObjectMapper mapper(value, path);
  return mapper && mapper.map("title", map.title) &&
         mapper.map("scale", map.scale) && mapper.map("cells", map.cells) &&
         mapper.map("skipped", map.skipped) &&
         mapper.map("partial", map.partial) && mapper.map("full", map.full);
}

static bool fromJSON(const json::Value &value, MultiprocessorLimits &limits,
                     json::Path path) {
  json::ObjectMapper mapper(value, path);
  if (!mapper || !mapper.map("max_threads", limits.maxThreads) ||
      !mapper.map("max_blocks", limits.maxBlocks) ||
      !mapper.map("registers", limits.registers) ||
      !mapper.map("smem_bytes", limits.sharedBytes) ||
      !mapper.map("max_smem_bytes_per_block", limits.maxSharedBytesPerBlock) ||
      !mapper.map("reserved_smem_bytes_per_block",
                  limits.reservedSharedBytesPerBlock))
    return false;
  // A warp, at least.
  if (limits.maxThreads >= 32)
    return true;
  path.field("max_threads").report("expected 32 or more");
  return false;
}

static bool fromJSON(const json::Value &value, ProfileEnvironment &environment,
                     json::Path path) {
  json::ObjectMapper mapper(value, path);
  return mapper && mapper.map("device", environment.device) &&
         mapper.map("is_gpu", environment.isGPU) &&
         mapper.mapOptional("arch", environment.arch) &&
         mapper.mapOptional("driver", environment.driver) &&
         mapper.mapOptional("versions", environment.versions) &&
         mapper.map("num_sms", environment.numSMs) &&
         mapper.map("cache_bytes", environment.cacheBytes) &&
         mapper.map("limits", environment.limits) &&
         mapper.map("clock_mhz", environment.clockMHz) &&
         mapper.map("max_clock_mhz", environment.maxClockMHz) &&
         mapper.mapOptional("throttle_reasons", environment.throttleReasons) &&
         mapMeasured(mapper, "bandwidth_bytes_per_s",
                     environment.bandwidthBytesPerSecond, path) &&
         mapMeasured(mapper, "matrix_flops_per_s",
                     environment.matrixFlopsPerSecond, path) &&
         mapMeasured(mapper, "vector_flops_per_s",
                     environment.vectorFlopsPerSecond, path);
}

} // namespace attn

namespace {

/// A record as an array: {"kind", name, start, end, ...}.
class Row {
public:
  Row(const json::Value &value, json::Path path, size_t size) : path(path) {
    array = value.getAsArray();
    if (array && array->size() == size)
      return;
    array = nullptr;
    path.report("expected an array with one element a column");
  }

  explicit operator bool() const { return array; }

  /// An integer of [0, limit).
  template <typename T>
  bool map(size_t column, T &result,
           int64_t limit = std::numeric_limits<int64_t>::max()) const {
    std::optional<int64_t> integer = (*array)[column].getAsInteger();
    if (!integer || *integer < 0 || *integer >= limit) {
      path.index(column).report("expected an integer that is in range");
      return false;
    }
    result = static_cast<T>(*integer);
    return true;
  }

  template <typename T>
  bool mapName(size_t column, T &result,
               llvm::ArrayRef<llvm::StringLiteral> known) const {
    std::optional<llvm::StringRef> text = (*array)[column].getAsString();
    const auto *found = text ? llvm::find(known, *text) : known.end();
    if (found == known.end()) {
      path.index(column).report("unknown kind");
      return false;
    }
    result = static_cast<T>(found - known.begin());
    return true;
  }

  bool isNull(size_t column) const {
    return (*array)[column].kind() == json::Value::Null;
  }

private:
  json::Path path;
  const json::Array *array;
};

} // namespace

static constexpr llvm::StringLiteral kDeviceColumns[] = {
    "kind",   "name",        "start_ns", "end_ns",
    "stream", "correlation", "launch",   "bytes"};
static constexpr llvm::StringLiteral kHostColumns[] = {
    "kind", "name", "start_ns", "end_ns", "thread", "correlation"};

static bool readRecord(const json::Value &value, const RegionProfile &region,
                       DeviceRecord &record, json::Path path) {
  Row row(value, path, std::size(kDeviceColumns));
  if (!row || !row.mapName(0, record.activity, kDeviceActivities) ||
      !row.map(1, record.name, region.names.size()) ||
      !row.map(2, record.startNs) || !row.map(3, record.endNs) ||
      !checkSpan(record.startNs, record.endNs, path) ||
      !row.map(4, record.stream) || !row.map(5, record.correlation) ||
      !row.map(7, record.bytes))
    return false;
  if (row.isNull(6))
    return true;
  record.launch = 0;
  return row.map(6, *record.launch, region.launches.size());
}

static bool readRecord(const json::Value &value, const RegionProfile &region,
                       HostRecord &record, json::Path path) {
  Row row(value, path, std::size(kHostColumns));
  return row && row.mapName(0, record.activity, kHostActivities) &&
         row.map(1, record.name, region.names.size()) &&
         row.map(2, record.startNs) && row.map(3, record.endNs) &&
         checkSpan(record.startNs, record.endNs, path) &&
         row.map(4, record.thread) && row.map(5, record.correlation);
}

template <typename Record>
static bool readRecords(const json::Object &object, llvm::StringRef field,
                        const RegionProfile &region,
                        std::vector<Record> &records, json::Path path) {
  const json::Object *table = object.getObject(field);
  const json::Array *rows = table ? table->getArray("rows") : nullptr;
  if (!rows) {
    path.field(field).report("expected an object with rows");
    return false;
  }
  records.resize(rows->size());
  // A path points to its parent.
  const json::Path tablePath = path.field(field);
  const json::Path rowsPath = tablePath.field("rows");
  for (auto [index, row] : llvm::enumerate(*rows))
    if (!readRecord(row, region, records[index], rowsPath.index(index)))
      return false;
  return true;
}

namespace attn {

static bool fromJSON(const json::Value &value, RegionProfile &region,
                     json::Path path) {
  json::ObjectMapper mapper(value, path);
  Count minBytes{region.minBytes},
      intermediateBytes{region.maxIntermediateBytes};
  return mapper && mapper.map("name", region.name) &&
         mapper.mapOptional("target", region.target) &&
         mapper.map("source", region.source) &&
         mapper.mapOptional("notes", region.notes) &&
         mapper.mapOptional("warm", region.isWarm) &&
         mapper.mapOptional("origin", region.origin) &&
         mapper.map("phases", region.phases) &&
         mapper.map("names", region.names) &&
         mapper.map("launches", region.launches) &&
         mapper.mapOptional("facts", region.facts) &&
         mapper.mapOptional("min_bytes", minBytes) &&
         mapper.mapOptional("max_intermediate_bytes", intermediateBytes) &&
         mapper.map("mask_map", region.maskMap) &&
         readRecords(*value.getAsObject(), "device", region, region.device,
                     path) &&
         readRecords(*value.getAsObject(), "host", region, region.host, path);
}

static bool fromJSON(const json::Value &value, ProfileFile &file,
                     json::Path path) {
  json::ObjectMapper mapper(value, path);
  int64_t version;
  if (!mapper || !mapper.map("attnc_profile", version))
    return false;
  if (version != kVersion) {
    path.field("attnc_profile").report("this tool reads version 1");
    return false;
  }
  return mapper.map("environment", file.environment) &&
         mapper.mapOptional("command", file.command) &&
         mapper.map("regions", file.regions);
}

} // namespace attn

llvm::Expected<ProfileFile> attn::parseProfile(llvm::StringRef text) {
  llvm::Expected<json::Value> value = parseUntrustedJSON(text);
  if (!value)
    return value.takeError();
  json::Path::Root root("profile");
  ProfileFile file;
  if (!fromJSON(*value, file, root))
    return root.getError();
  return file;
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

template <typename T>
static json::Value toJSON(const std::optional<T> &value) {
  if (!value)
    return nullptr;
  return json::Value(*value);
}

static json::Array toJSON(const std::array<int64_t, 3> &sizes) {
  return json::Array(sizes);
}

static void write(json::OStream &os, const LaunchConfig &launch) {
  os.object([&] {
    os.attribute("grid", toJSON(launch.grid));
    os.attribute("block", toJSON(launch.block));
    os.attribute("cluster", toJSON(launch.cluster));
    os.attribute("registers", toJSON(launch.registers));
    os.attribute("static_smem_bytes", toJSON(launch.staticSharedBytes));
    os.attribute("dynamic_smem_bytes", toJSON(launch.dynamicSharedBytes));
    os.attribute("local_bytes", toJSON(launch.localBytes));
  });
}

static void write(json::OStream &os, const KernelFacts &facts) {
  os.object([&] {
    os.attribute("name", json::fixUTF8(facts.name));
    os.attribute("bytes", toJSON(facts.bytes));
    os.attribute("flops", toJSON(facts.flops));
    os.attribute("dense", facts.isDense);
    os.attribute("path", facts.path);
    os.attribute("path_source", facts.pathSource);
    os.attribute("work_imbalance", toJSON(facts.workImbalance));
    if (facts.measuredBytes)
      os.attribute("measured_bytes", *facts.measuredBytes);
    if (facts.measuredOccupancy)
      os.attribute("measured_occupancy", *facts.measuredOccupancy);
    if (facts.measuredMatrixFraction)
      os.attribute("measured_matrix", *facts.measuredMatrixFraction);
  });
}

static void write(json::OStream &os, const Phase &phase) {
  os.object([&] {
    os.attribute("name", json::fixUTF8(phase.name));
    os.attribute("start_ns", phase.startNs);
    os.attribute("end_ns", phase.endNs);
    os.attribute("calls", phase.calls);
  });
}

static void write(json::OStream &os, const DeviceRecord &record) {
  os.value(json::Array{getName(record.activity), record.name, record.startNs,
                       record.endNs, record.stream, record.correlation,
                       toJSON(record.launch), record.bytes});
}

static void write(json::OStream &os, const HostRecord &record) {
  os.value(json::Array{getName(record.activity), record.name, record.startNs,
                       record.endNs, record.thread, record.correlation});
}

template <typename Range>
static void writeArray(json::OStream &os, llvm::StringRef key,
                       const Range &range) {
  os.attributeArray(key, [&] {
    for (const auto &element : range)
      write(os, element);
  });
}

static void writeStrings(json::OStream &os, llvm::StringRef key,
                         llvm::ArrayRef<std::string> strings) {
  os.attributeArray(key, [&] {
    for (const std::string &text : strings)
      os.value(json::fixUTF8(text));
  });
}

static void write(json::OStream &os, const MaskMap &map) {
  os.object([&] {
    os.attribute("title", json::fixUTF8(map.title));
    os.attribute("scale", json::fixUTF8(map.scale));
    writeStrings(os, "cells", map.cells);
    os.attribute("skipped", map.skipped);
    os.attribute("partial", map.partial);
    os.attribute("full", map.full);
  });
}

template <typename Record>
static void writeRecords(json::OStream &os, llvm::StringRef key,
                         llvm::ArrayRef<llvm::StringLiteral> columns,
                         llvm::ArrayRef<Record> records) {
  os.attributeObject(key, [&] {
    os.attribute("columns", json::Array(columns));
    writeArray(os, "rows", records);
  });
}

/// The first `maxRecords` of a phase, in the order of time.
template <typename Record>
static std::vector<Record> takeFirst(const std::vector<Record> &records,
                                     const Phase &phase, size_t maxRecords) {
  std::vector<Record> taken;
  for (const Record &record : records)
    if (record.startNs >= phase.startNs && record.startNs < phase.endNs)
      taken.push_back(record);
  // What holds others comes before them.
  llvm::sort(taken, [](const Record &a, const Record &b) {
    return std::pair(a.startNs, b.endNs) < std::pair(b.startNs, a.endNs);
  });
  if (taken.size() > maxRecords)
    taken.erase(taken.begin() + maxRecords, taken.end());
  return taken;
}

namespace {

/// How the file of a profile is written.
struct WriteOptions {
  PrintOptions print;
  /// All records, unless there is a limit for those of the steady phase.
  std::optional<size_t> maxRecords;
};

} // namespace

static void writeAllRecords(json::OStream &os, const RegionProfile &region,
                            std::optional<size_t> maxRecords) {
  if (!maxRecords) {
    writeRecords<DeviceRecord>(os, "device", kDeviceColumns, region.device);
    writeRecords<HostRecord>(os, "host", kHostColumns, region.host);
    return;
  }
  const Phase phase = getSteadyPhase(region);
  writeRecords<DeviceRecord>(os, "device", kDeviceColumns,
                             takeFirst(region.device, phase, *maxRecords));
  writeRecords<HostRecord>(os, "host", kHostColumns,
                           takeFirst(region.host, phase, *maxRecords));
}

static void write(json::OStream &os, const ProfileEnvironment &environment,
                  const RegionProfile &region, const WriteOptions &options) {
  os.object([&] {
    os.attribute("name", json::fixUTF8(region.name));
    os.attribute("target", region.target);
    os.attribute("source", region.source);
    writeStrings(os, "notes", region.notes);
    os.attribute("warm", region.isWarm);
    os.attribute("origin", region.origin);
    os.attribute("min_bytes", toJSON(region.minBytes));
    os.attribute("max_intermediate_bytes", toJSON(region.maxIntermediateBytes));
    writeArray(os, "phases", region.phases);
    writeStrings(os, "names", region.names);
    writeArray(os, "launches", region.launches);
    writeArray(os, "facts", region.facts);
    os.attributeBegin("summary");
    writeSummary(os, environment, region, options.print);
    os.attributeEnd();
    if (region.maskMap) {
      os.attributeBegin("mask_map");
      write(os, *region.maskMap);
      os.attributeEnd();
    }
    writeAllRecords(os, region, options.maxRecords);
  });
}

static void write(json::OStream &os, const MultiprocessorLimits &limits) {
  os.object([&] {
    os.attribute("max_threads", limits.maxThreads);
    os.attribute("max_blocks", limits.maxBlocks);
    os.attribute("registers", limits.registers);
    os.attribute("smem_bytes", limits.sharedBytes);
    os.attribute("max_smem_bytes_per_block", limits.maxSharedBytesPerBlock);
    os.attribute("reserved_smem_bytes_per_block",
                 limits.reservedSharedBytesPerBlock);
  });
}

static void write(json::OStream &os, const ProfileEnvironment &environment) {
  os.object([&] {
    os.attribute("device", json::fixUTF8(environment.device));
    os.attribute("is_gpu", environment.isGPU);
    os.attribute("arch", environment.arch);
    os.attribute("driver", environment.driver);
    os.attributeObject("versions", [&] {
      for (const auto &[name, version] : environment.versions)
        os.attribute(json::fixUTF8(name), json::fixUTF8(version));
    });
    os.attribute("num_sms", environment.numSMs);
    os.attribute("cache_bytes", environment.cacheBytes);
    if (environment.limits) {
      os.attributeBegin("limits");
      write(os, *environment.limits);
      os.attributeEnd();
    }
    os.attribute("clock_mhz", toJSON(environment.clockMHz));
    os.attribute("max_clock_mhz", toJSON(environment.maxClockMHz));
    writeStrings(os, "throttle_reasons", environment.throttleReasons);
    os.attribute("bandwidth_bytes_per_s",
                 toJSON(environment.bandwidthBytesPerSecond));
    os.attribute("matrix_flops_per_s",
                 toJSON(environment.matrixFlopsPerSecond));
    os.attribute("vector_flops_per_s",
                 toJSON(environment.vectorFlopsPerSecond));
  });
}

static void write(llvm::raw_ostream &stream, const ProfileFile &file,
                  const WriteOptions &options) {
  json::OStream os(stream);
  os.object([&] {
    os.attribute("attnc_profile", kVersion);
    os.attribute("command", json::fixUTF8(file.command));
    os.attributeBegin("environment");
    write(os, file.environment);
    os.attributeEnd();
    os.attributeArray("regions", [&] {
      for (const RegionProfile &region : file.regions)
        write(os, file.environment, region, options);
    });
    os.attributeArray("not_run", [&] {
      for (const Expectation *guess :
           findNotRun(options.print.expectations, file.getRegionNames()))
        os.value(json::Object{{"text", json::fixUTF8(guess->text)},
                              {"region", json::fixUTF8(guess->region)}});
    });
    os.attributeBegin("comparison");
    writeComparison(os, compareRegions(file, options.print.baseline));
    os.attributeEnd();
  });
  stream << '\n';
}

void attn::writeProfile(llvm::raw_ostream &os, const ProfileFile &file) {
  write(os, file, WriteOptions());
}

void attn::writeProfile(llvm::raw_ostream &os, const ProfileFile &file,
                        const PrintOptions &options) {
  write(os, file, {options, std::nullopt});
}

void attn::writeProfileForPage(llvm::raw_ostream &os, const ProfileFile &file,
                               const PrintOptions &options, size_t maxRecords) {
  write(os, file, {options, maxRecords});
}
