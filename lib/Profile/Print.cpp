//===- Print.cpp - A profile on a terminal --------------------------------===//

#include "attn/Profile/Print.h"
#include "attn/Profile/Findings.h"
#include "attn/Runtime/TextTable.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

using namespace attn;

//===----------------------------------------------------------------------===//
// Cells
//===----------------------------------------------------------------------===//

static std::string formatUs(double microseconds) {
  return llvm::formatv("{0:F1}", microseconds);
}

static std::string formatPercent(std::optional<double> fraction) {
  return fraction ? llvm::formatv("{0:F1} %", 100 * *fraction).str() : "-";
}

static std::string formatSizes(const std::array<int64_t, 3> &sizes) {
  std::string text = std::to_string(sizes[0]);
  if (sizes[1] != 1 || sizes[2] != 1)
    text += "x" + std::to_string(sizes[1]);
  if (sizes[2] != 1)
    text += "x" + std::to_string(sizes[2]);
  return text;
}

template <typename T>
static std::string formatOptional(std::optional<T> value) {
  return value ? std::to_string(*value) : "-";
}

/// "8", "0.5"
static std::string formatCount(double count) {
  return count == std::floor(count) ? std::to_string(std::llround(count))
                                    : llvm::formatv("{0:F1}", count).str();
}

/// "1024+65536"
static std::string formatShared(const LaunchConfig &launch) {
  if (!launch.getSharedBytes())
    return "-";
  return std::to_string(*launch.staticSharedBytes) + "+" +
         std::to_string(*launch.dynamicSharedBytes);
}

static std::string formatFlops(const KernelSummary &kernel) {
  if (!kernel.flops)
    return "-";
  return attn::formatFlops(*kernel.flops) + (kernel.isDense ? " (dense)" : "");
}

static std::string formatPath(const KernelSummary &kernel) {
  if (kernel.path.empty())
    return "-";
  return kernel.path + (kernel.pathSource == "name" ? " (by name)" : "");
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

namespace {

/// What stands for a kernel in a table. Names of templates run to thousands of
/// characters: those get a number, and are written out below.
class Labels {
public:
  explicit Labels(const RegionSummary &summary);
  std::string get(const KernelSummary &kernel) const {
    return labels.lookup(kernel.name);
  }
  void printLongNames(llvm::raw_ostream &os) const;

private:
  static constexpr size_t kMaxLength = 64;

  llvm::StringMap<std::string> labels;
  std::vector<std::string> longNames;
};

} // namespace

Labels::Labels(const RegionSummary &summary) {
  for (const KernelSummary &kernel : summary.kernels) {
    auto [entry, isNew] = labels.try_emplace(kernel.name, kernel.name);
    if (!isNew || kernel.name.size() <= kMaxLength)
      continue;
    longNames.push_back(kernel.name);
    entry->second = kernel.name.substr(0, kMaxLength - 8) + "... [" +
                    std::to_string(longNames.size()) + "]";
  }
}

void Labels::printLongNames(llvm::raw_ostream &os) const {
  for (auto [index, name] : llvm::enumerate(longNames))
    os << "  [" << index + 1 << "] " << name << '\n';
}

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

using Row = std::vector<std::string>;

/// Without columns of which nothing is known, as those of a GPU's rates on a
/// CPU. The first row holds the titles.
static void printKnown(llvm::raw_ostream &os, llvm::ArrayRef<Row> rows) {
  auto isKnown = [&](size_t column) {
    return llvm::any_of(rows.drop_front(),
                        [&](const Row &row) { return row[column] != "-"; });
  };
  const auto columns = llvm::to_vector(llvm::make_filter_range(
      llvm::seq<size_t>(0, rows.front().size()), isKnown));
  TextTable table;
  for (const Row &row : rows) {
    Row cells;
    for (size_t column : columns)
      cells.push_back(row[column]);
    table.addRow(std::move(cells));
  }
  table.print(os);
}

static void printTimes(llvm::raw_ostream &os, const RegionSummary &summary,
                       const Labels &labels) {
  std::vector<Row> rows;
  rows.push_back({"  name", "calls", "median us", "min us", "max us",
                  "total us", "of wall", "moved", "of bandwidth", "FLOP",
                  "of matrix rate", "bound"});
  for (const KernelSummary &kernel : summary.kernels)
    rows.push_back(
        {"  " + labels.get(kernel), std::to_string(kernel.calls),
         formatUs(kernel.time.median), formatUs(kernel.time.min),
         formatUs(kernel.time.max), formatUs(kernel.totalUs),
         formatPercent(kernel.totalUs / std::max(summary.wallUs, 1e-3)),
         kernel.bytes ? formatBytes(*kernel.bytes) : "-",
         formatPercent(kernel.bandwidthFraction), formatFlops(kernel),
         formatPercent(kernel.matrixFraction),
         kernel.bound ? getName(*kernel.bound).str() : "-"});
  printKnown(os, rows);
  if (llvm::any_of(summary.kernels,
                   [](const KernelSummary &kernel) { return kernel.isDense; }))
    os << "  (dense): the whole products; what the kernel skips of them isn't "
          "known\n";
}

/// A GPU's: what each kernel takes of a multiprocessor.
static void printResources(llvm::raw_ostream &os, const RegionSummary &summary,
                           const Labels &labels) {
  std::vector<Row> rows;
  rows.push_back({"  kernel", "grid", "block", "cluster", "registers",
                  "smem static+dynamic", "local", "blocks/SM", "limited by",
                  "occupancy*", "measured", "waves", "path", "matrix units",
                  "DRAM"});
  for (const KernelSummary &kernel : summary.kernels) {
    if (!kernel.launch)
      continue;
    const LaunchConfig &launch = *kernel.launch;
    const std::optional<Occupancy> &occupancy = kernel.occupancy;
    rows.push_back(
        {"  " + labels.get(kernel), formatSizes(launch.grid),
         formatSizes(launch.block), formatSizes(launch.cluster),
         formatOptional(launch.registers), formatShared(launch),
         formatOptional(launch.localBytes),
         occupancy ? std::to_string(occupancy->blocksPerSM) : "-",
         occupancy ? occupancy->limit.str() : "-",
         formatPercent(occupancy ? std::optional(occupancy->getFraction())
                                 : std::nullopt),
         formatPercent(kernel.measuredOccupancy),
         kernel.waves ? llvm::formatv("{0:F2}", *kernel.waves).str() : "-",
         formatPath(kernel), formatPercent(kernel.measuredMatrixFraction),
         kernel.measuredBytes ? formatBytes(std::llround(*kernel.measuredBytes))
                              : "-"});
  }
  if (rows.size() == 1)
    return;
  printKnown(os, rows);
  os << "  * computed, with shared memory opted in to\n";
  if (llvm::any_of(summary.kernels, [](const KernelSummary &kernel) {
        return kernel.measuredOccupancy || kernel.measuredMatrixFraction ||
               kernel.measuredBytes;
      }))
    os << "  by counters, in a run of their own: measured occupancy, how long "
          "the matrix units worked, bytes of the device's memory\n";
}

static void printTotals(llvm::raw_ostream &os, const RegionSummary &summary) {
  std::map<DeviceActivity, double> totals;
  for (const KernelSummary &kernel : summary.kernels)
    totals[kernel.activity] += kernel.totalUs;
  os << "  wall " << formatUs(summary.wallUs) << " us =";
  for (auto [activity, total] : totals)
    os << ' ' << getName(activity) << ' ' << formatUs(total) << " +";
  os << " idle " << formatUs(summary.idleUs);
  if (summary.overlapUs >= 0.05)
    os << " - side by side " << formatUs(summary.overlapUs);
  os << llvm::formatv("; {0} calls of {1}\n", summary.calls,
                      formatDuration(summary.getWallUsPerCall()));
}

static std::string describeOrigin(llvm::StringRef origin) {
  return origin == "compiled" ? "compiled" : ("from " + origin).str();
}

static void printHost(llvm::raw_ostream &os, const RegionProfile &region,
                      const RegionSummary &summary, bool isGPU) {
  llvm::SmallVector<std::string> parts, before;
  for (const auto &[activity, host] : summary.host)
    // A CPU's launch is the kernel itself.
    if (isGPU || activity != HostActivity::Launch)
      parts.push_back(llvm::formatv("{0} {1} x {2}", getName(activity),
                                    host.count, formatDuration(host.medianUs)));
  for (HostActivity activity : {HostActivity::Lookup, HostActivity::Compile,
                                HostActivity::Load, HostActivity::Plan})
    if (auto found = summary.setup.find(activity); found != summary.setup.end())
      before.push_back(llvm::formatv("{0} {1}", getName(activity),
                                     formatDuration(found->second.totalUs)));
  if (summary.firstCallUs)
    before.push_back("first call " + formatDuration(*summary.firstCallUs));
  if (!region.origin.empty())
    before.push_back("code " + describeOrigin(region.origin));
  if (!parts.empty())
    os << "  host: " << llvm::join(parts, ", ") << '\n';
  if (!before.empty())
    os << "  before that: " << llvm::join(before, ", ") << '\n';
}

static void printEnvironment(llvm::raw_ostream &os, const ProfileFile &file) {
  const ProfileEnvironment &environment = file.environment;
  os << environment.device;
  if (!environment.arch.empty())
    os << ", " << environment.arch;
  if (environment.isGPU)
    os << ", " << environment.numSMs << " SMs";
  if (!environment.driver.empty())
    os << ", driver for CUDA " << environment.driver;
  if (environment.clockMHz && environment.maxClockMHz)
    os << ", " << *environment.clockMHz << " of " << *environment.maxClockMHz
       << " MHz";
  os << '\n';
  if (!file.command.empty())
    os << "  made by: " << file.command << '\n';
  os << "  bytes moved and FLOPs are analytic\n";
  if (environment.bandwidthBytesPerSecond)
    os << llvm::formatv("  measured: copies {0:F2} TB/s read and written",
                        *environment.bandwidthBytesPerSecond / 1e12);
  if (environment.matrixFlopsPerSecond)
    os << llvm::formatv(", 16-bit matrix products {0:F0} TFLOP/s",
                        *environment.matrixFlopsPerSecond / 1e12);
  if (environment.bandwidthBytesPerSecond)
    os << '\n';
}

//===----------------------------------------------------------------------===//
// Regions
//===----------------------------------------------------------------------===//

static void printFindings(llvm::raw_ostream &os,
                          const ProfileEnvironment &environment,
                          const RegionProfile &region, int64_t layers) {
  for (const Finding &finding : explain(environment, region))
    os << "  [" << finding.rule << "] " << format(finding, layers) << '\n';
}

/// Returns how many guesses were wrong.
static size_t printGuesses(llvm::raw_ostream &os,
                           llvm::ArrayRef<CheckedExpectation> guesses) {
  TextTable table;
  for (const CheckedExpectation &guess : guesses)
    table.addRow({"  " + guess.expectation->text, guess.measured,
                  guess.isRight ? "right" : "wrong"});
  table.print(os);
  return llvm::count_if(
      guesses, [](const CheckedExpectation &guess) { return !guess.isRight; });
}

/// Returns how many guesses were wrong.
static size_t printRegion(llvm::raw_ostream &os, const ProfileFile &file,
                          const RegionProfile &region,
                          const PrintOptions &options) {
  const RegionSummary summary = summarize(file.environment, region);
  os << '\n' << region.name;
  if (!region.target.empty())
    os << " (" << region.target << ")";
  os << ": times by " << region.source << (region.isWarm ? ", warm" : "")
     << '\n';
  for (const std::string &note : region.notes)
    os << "  note: " << note << '\n';
  const Labels labels(summary);
  if (summary.kernels.empty())
    os << "  nothing was seen on the device\n";
  else
    printTimes(os, summary, labels);
  if (!summary.kernels.empty() && file.environment.isGPU)
    printResources(os, summary, labels);
  labels.printLongNames(os);
  printTotals(os, summary);
  printHost(os, region, summary, file.environment.isGPU);
  printFindings(os, file.environment, region, options.layers);
  return printGuesses(os,
                      checkExpectations(options.expectations, region, summary));
}

/// The regions side by side, against one of them.
static void printComparison(llvm::raw_ostream &os, const ProfileFile &file,
                            llvm::StringRef baseline) {
  const Comparison comparison = compareRegions(file, baseline);
  std::vector<Row> rows;
  rows.push_back({"region", "us a call", "of " + comparison.baseline, "spread*",
                  "kernels", "copies", "moved", "idle", "main kernel", "path"});
  for (const Comparison::Row &row : comparison.rows) {
    const RegionSummary &summary = row.summary;
    const KernelSummary *kernel = summary.getMainKernel();
    const Labels labels(summary);
    const std::optional<double> bytes = summary.getBytesPerCall();
    const double wallUs = std::max(summary.wallUs, 1e-3);
    rows.push_back(
        {row.region->name, formatUs(summary.getWallUsPerCall()),
         row.ratio ? llvm::formatv("{0:F2} x", *row.ratio).str() : "-",
         formatPercent(summary.getSpread()),
         formatCount(summary.getCountPerCall(DeviceActivity::Kernel)),
         formatCount(summary.getCountPerCall(DeviceActivity::Copy)),
         bytes ? formatBytes(std::llround(*bytes)) : "-",
         formatPercent(summary.idleUs / wallUs),
         kernel ? labels.get(*kernel) : "-",
         kernel ? formatPath(*kernel) : "-"});
  }
  os << '\n';
  printKnown(os, rows);
  if (llvm::any_of(comparison.rows, [](const Comparison::Row &row) {
        return row.summary.getSpread();
      }))
    os << "* of the calls, (p90 - p10) / median\n";
}

//===----------------------------------------------------------------------===//
// Text for a terminal
//===----------------------------------------------------------------------===//

/// Names may hold anything. Line breaks would tear tables apart, and a terminal
/// obeys other control characters.
static void clean(std::string &text) {
  for (char &c : text)
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f')
      c = ' ';
}

static void clean(ProfileFile &file) {
  clean(file.environment.device);
  clean(file.command);
  for (RegionProfile &region : file.regions) {
    clean(region.name);
    for (std::string &note : region.notes)
      clean(note);
    for (std::string &name : region.names)
      clean(name);
    for (KernelFacts &facts : region.facts)
      clean(facts.name);
  }
}

bool attn::printProfile(llvm::raw_ostream &os, const ProfileFile &original,
                        const PrintOptions &given) {
  ProfileFile file = original;
  clean(file);
  PrintOptions options = given;
  clean(options.baseline);
  std::vector<Expectation> expectations = given.expectations.vec();
  for (Expectation &expectation : expectations) {
    clean(expectation.region);
    clean(expectation.text);
  }
  options.expectations = expectations;
  printEnvironment(os, file);
  size_t wrong = 0;
  for (const RegionProfile &region : file.regions)
    wrong += printRegion(os, file, region, options);
  if (file.regions.size() > 1)
    printComparison(os, file, options.baseline);
  // Of a region that didn't run, nothing was measured.
  for (const Expectation *guess :
       findNotRun(options.expectations, file.getRegionNames())) {
    os << "  " << guess->text << "  '" << guess->region
       << "' didn't run  wrong\n";
    ++wrong;
  }
  if (!options.expectations.empty())
    os << "guesses: "
       << (wrong == 0 ? "all right" : std::to_string(wrong) + " wrong") << '\n';
  return wrong == 0;
}
