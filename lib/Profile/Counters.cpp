//===- Counters.cpp - What a GPU's counters measured ----------------------===//
//
// Counters need replaying each kernel and a permission that few users have, so
// they are left to NVIDIA's ncu, in a run of its own.
//
//===----------------------------------------------------------------------===//

#include "attn/Profile/Counters.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/LineIterator.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace attn;

//===----------------------------------------------------------------------===//
// Metrics
//===----------------------------------------------------------------------===//

namespace {

struct Metric {
  llvm::StringLiteral name;
  /// What values of several metrics that have the same field add up to.
  std::optional<double> KernelFacts::*field;
};

} // namespace

static constexpr Metric kMetrics[] = {
    {"sm__warps_active.avg.pct_of_peak_sustained_active",
     &KernelFacts::measuredOccupancy},
    {"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",
     &KernelFacts::measuredMatrixFraction},
    {"dram__bytes.sum", &KernelFacts::measuredBytes},
    {"dram__bytes_read.sum", &KernelFacts::measuredBytes},
    {"dram__bytes_write.sum", &KernelFacts::measuredBytes},
};

std::string attn::listCounterMetrics() {
  return llvm::join(
      llvm::map_range(kMetrics,
                      [](const Metric &metric) { return metric.name.str(); }),
      ", ");
}

/// What a unit of ncu is in that of the field: a fraction or bytes.
static std::optional<double> getFactor(llvm::StringRef unit) {
  static constexpr std::pair<llvm::StringLiteral, double> kUnits[] = {
      {"%", 0.01},    {"byte", 1},    {"Kbyte", 1e3},
      {"Mbyte", 1e6}, {"Gbyte", 1e9}, {"Tbyte", 1e12},
  };
  const auto *found = llvm::find_if(
      kUnits, [&](const auto &known) { return known.first == unit; });
  return found == std::end(kUnits) ? std::nullopt
                                   : std::optional(found->second);
}

/// "1,234.5": thousands are apart. In a locale whose decimals are behind a
/// comma it can't be read.
static std::optional<double> parseNumber(llvm::StringRef text) {
  llvm::SmallVector<llvm::StringRef> groups;
  text.split(groups, ',');
  for (llvm::StringRef group : llvm::drop_begin(groups))
    if (group.take_until([](char c) { return c == '.'; }).size() != 3)
      return std::nullopt;
  double number;
  // getAsDouble is true on failure.
  if (llvm::StringRef(llvm::join(groups, "")).getAsDouble(number) || number < 0)
    return std::nullopt;
  return number;
}

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

/// The cells of a line, in which quotes are doubled.
static std::vector<std::string> splitLine(llvm::StringRef line) {
  std::vector<std::string> cells(1);
  bool isQuoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '"' && isQuoted && line.substr(i + 1).starts_with("\""))
      cells.back() += line[++i];
    else if (c == '"')
      isQuoted = !isQuoted;
    else if (c == ',' && !isQuoted)
      cells.emplace_back();
    else
      cells.back() += c;
  }
  return cells;
}

namespace {

/// Sums and numbers of the values of one metric.
struct Mean {
  double sum = 0;
  int64_t count = 0;
};

/// By metric.
using Means = std::array<Mean, std::size(kMetrics)>;

/// By kernel.
using Measurements = std::map<std::string, Means>;

class TableReader {
public:
  llvm::Expected<Measurements> read(llvm::StringRef text);

private:
  /// Whether the line is the table's head.
  bool readHead(llvm::ArrayRef<std::string> cells);
  llvm::Error readRow(llvm::ArrayRef<std::string> cells, int64_t line);

  static constexpr llvm::StringLiteral kColumns[] = {
      "Kernel Name", "Metric Name", "Metric Unit", "Metric Value"};

  /// Where kColumns are; empty before the head.
  llvm::SmallVector<size_t> columns;
  Measurements measurements;
};

} // namespace

bool TableReader::readHead(llvm::ArrayRef<std::string> cells) {
  llvm::SmallVector<size_t> found;
  for (llvm::StringRef column : kColumns) {
    const auto *cell = llvm::find(cells, column);
    if (cell == cells.end())
      return false;
    found.push_back(cell - cells.begin());
  }
  columns = std::move(found);
  return true;
}

llvm::Error TableReader::readRow(llvm::ArrayRef<std::string> cells,
                                 int64_t line) {
  auto refuse = [&](const llvm::Twine &reason) {
    return llvm::createStringError("line " + llvm::Twine(line) + ": " + reason);
  };
  if (llvm::any_of(columns,
                   [&](size_t column) { return column >= cells.size(); }))
    return refuse("a row has fewer cells than the table's head");
  const auto *metric = llvm::find_if(kMetrics, [&](const Metric &known) {
    return known.name == cells[columns[1]];
  });
  if (metric == std::end(kMetrics))
    return llvm::Error::success();
  const std::string &unit = cells[columns[2]], &value = cells[columns[3]];
  const std::optional<double> factor = getFactor(unit);
  if (!factor)
    return refuse("unknown unit '" + unit +
                  "'; ncu's --print-units=base helps");
  const std::optional<double> number = parseNumber(value);
  if (!number)
    return refuse("'" + value +
                  "' is no number; ncu's table must be made with LC_ALL=C");
  Mean &mean = measurements[cells[columns[0]]][metric - std::begin(kMetrics)];
  mean.sum += *number * *factor;
  ++mean.count;
  return llvm::Error::success();
}

llvm::Expected<Measurements> TableReader::read(llvm::StringRef text) {
  llvm::StringRef firstError;
  const auto buffer = llvm::MemoryBuffer::getMemBuffer(text, "", false);
  for (llvm::line_iterator line(*buffer); !line.is_at_eof(); ++line) {
    if (line->starts_with("==ERROR==") && firstError.empty())
      firstError = line->trim();
    // What ncu and the program say stands between.
    if (!line->starts_with("\""))
      continue;
    const std::vector<std::string> cells = splitLine(line->rtrim('\r'));
    if (readHead(cells) || columns.empty())
      continue;
    if (llvm::Error error = readRow(cells, line.line_number()))
      return std::move(error);
  }
  if (columns.empty())
    return llvm::createStringError(
        firstError.empty()
            ? "there is no table as `ncu --csv --metrics ...` writes it"
            : "there is no table, as ncu failed: " + firstError.str());
  if (measurements.empty())
    return llvm::createStringError("the table has none of the metrics " +
                                   listCounterMetrics());
  return std::move(measurements);
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

/// A function's name without what its templates and parameters are, which ncu
/// and CUPTI don't write alike.
static llvm::StringRef getBaseName(llvm::StringRef name) {
  name.consume_front("void ");
  return name.take_until([](char c) { return c == '<' || c == '('; });
}

/// Those of the name, or without any the only one of its base name.
static const Means *lookup(const Measurements &measurements,
                           llvm::StringRef kernel) {
  auto exact = measurements.find(kernel.str());
  if (exact != measurements.end())
    return &exact->second;
  const Means *found = nullptr;
  for (const auto &[name, means] : measurements) {
    if (getBaseName(name) != getBaseName(kernel))
      continue;
    if (found)
      return nullptr;
    found = &means;
  }
  return found;
}

llvm::Error attn::addCounters(ProfileFile &file, llvm::StringRef text) {
  llvm::Expected<Measurements> measurements = TableReader().read(text);
  if (!measurements)
    return measurements.takeError();
  bool isAnyKnown = false;
  for (RegionProfile &region : file.regions) {
    llvm::SmallDenseSet<unsigned> seen;
    for (const DeviceRecord &record : region.device) {
      if (record.activity != DeviceActivity::Kernel ||
          !seen.insert(record.name).second)
        continue;
      const std::string &name = region.names[record.name];
      const Means *means = lookup(*measurements, name);
      if (!means)
        continue;
      isAnyKnown = true;
      KernelFacts &facts = region.getOrAddFacts(name);
      for (const Metric &metric : kMetrics)
        facts.*metric.field = std::nullopt;
      for (auto [metric, mean] : llvm::zip_equal(kMetrics, *means))
        if (mean.count > 0)
          facts.*metric.field =
              (facts.*metric.field).value_or(0) + mean.sum / mean.count;
    }
  }
  if (isAnyKnown)
    return llvm::Error::success();
  return llvm::createStringError(
      "none of its kernels is in this profile; the first is '" +
      measurements->begin()->first + "'");
}
