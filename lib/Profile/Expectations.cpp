//===- Expectations.cpp - Guesses about a profile -------------------------===//

#include "attn/Profile/Expectations.h"
#include "attn/Profile/Findings.h"
#include "attn/Runtime/TextTable.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

using namespace attn;

//===----------------------------------------------------------------------===//
// Keys
//===----------------------------------------------------------------------===//

namespace {

/// What a key counts in.
enum class Unit { Count, Percent, Time, Bytes, Word };

struct Key {
  llvm::StringLiteral name;
  Unit unit;
  /// In Count, percent, microseconds or bytes.
  std::optional<double> (*getNumber)(const RegionSummary &summary) = nullptr;
  std::string (*getWord)(const RegionSummary &summary) = nullptr;
};

} // namespace

template <DeviceActivity activity>
static std::optional<double> getCount(const RegionSummary &summary) {
  return summary.getCountPerCall(activity);
}

static std::optional<double> toPercent(std::optional<double> fraction) {
  return fraction ? std::optional(100 * *fraction) : std::nullopt;
}

static std::optional<double> getOccupancy(const RegionSummary &summary) {
  const KernelSummary *kernel = summary.getMainKernel();
  if (!kernel || !kernel->occupancy)
    return std::nullopt;
  return 100 * kernel->occupancy->getFraction();
}

template <std::optional<double> KernelSummary::*field>
static std::optional<double> getFraction(const RegionSummary &summary) {
  const KernelSummary *kernel = summary.getMainKernel();
  return kernel ? toPercent(kernel->*field) : std::nullopt;
}

static std::optional<double> getRegisters(const RegionSummary &summary) {
  const KernelSummary *kernel = summary.getMainKernel();
  if (!kernel || !kernel->launch || !kernel->launch->registers)
    return std::nullopt;
  return *kernel->launch->registers;
}

static std::optional<double> getSharedBytes(const RegionSummary &summary) {
  const KernelSummary *kernel = summary.getMainKernel();
  if (!kernel || !kernel->launch)
    return std::nullopt;
  return kernel->launch->getSharedBytes();
}

/// A FLOP-free plan has neither kernel nor side.
static std::string getBound(const RegionSummary &summary) {
  const KernelSummary *kernel = summary.getMainKernel();
  return kernel && kernel->bound ? getName(*kernel->bound).str() : "";
}

static std::string getPath(const RegionSummary &summary) {
  const KernelSummary *kernel = summary.getMainKernel();
  return kernel ? kernel->path : "";
}

static constexpr Key kKeys[] = {
    {"kernels", Unit::Count, getCount<DeviceActivity::Kernel>},
    {"copies", Unit::Count, getCount<DeviceActivity::Copy>},
    {"memsets", Unit::Count, getCount<DeviceActivity::Memset>},
    {"time", Unit::Time,
     [](const RegionSummary &summary) -> std::optional<double> {
       return summary.getWallUsPerCall();
     }},
    {"device_time", Unit::Time,
     [](const RegionSummary &summary) -> std::optional<double> {
       return summary.busyUs / summary.calls;
     }},
    {"idle", Unit::Percent,
     [](const RegionSummary &summary) -> std::optional<double> {
       return summary.wallUs > 0 ? 100 * summary.idleUs / summary.wallUs : 0;
     }},
    {"bytes", Unit::Bytes,
     [](const RegionSummary &summary) { return summary.getBytesPerCall(); }},
    {"occupancy", Unit::Percent, getOccupancy},
    {"matrix", Unit::Percent, getFraction<&KernelSummary::matrixFraction>},
    {"bandwidth", Unit::Percent,
     getFraction<&KernelSummary::bandwidthFraction>},
    {"registers", Unit::Count, getRegisters},
    {"smem", Unit::Bytes, getSharedBytes},
    {"bound", Unit::Word, nullptr, getBound},
    {"path", Unit::Word, nullptr, getPath},
};

static const Key *lookupKey(llvm::StringRef name) {
  const auto *found =
      llvm::find_if(kKeys, [&](const Key &key) { return key.name == name; });
  return found == std::end(kKeys) ? nullptr : found;
}

//===----------------------------------------------------------------------===//
// Parsing
//===----------------------------------------------------------------------===//

static llvm::Error malformed(const Expectation &expectation,
                             const llvm::Twine &reason) {
  return llvm::createStringError("--expect: '" + expectation.text +
                                 "': " + reason);
}

static std::optional<double> lookupScale(Unit unit, llvm::StringRef suffix) {
  struct Scale {
    Unit unit;
    llvm::StringLiteral suffix;
    double factor;
  };
  static constexpr Scale kScales[] = {
      {Unit::Count, "", 1},       {Unit::Percent, "", 1},
      {Unit::Percent, "%", 1},    {Unit::Time, "ns", 1e-3},
      {Unit::Time, "us", 1},      {Unit::Time, "ms", 1e3},
      {Unit::Time, "s", 1e6},     {Unit::Bytes, "B", 1},
      {Unit::Bytes, "", 1},       {Unit::Bytes, "kB", 1e3},
      {Unit::Bytes, "MB", 1e6},   {Unit::Bytes, "GB", 1e9},
      {Unit::Bytes, "KiB", 1024}, {Unit::Bytes, "MiB", 1024 * 1024},
  };
  const auto *found = llvm::find_if(kScales, [&](const Scale &scale) {
    return scale.unit == unit && scale.suffix == suffix;
  });
  return found == std::end(kScales) ? std::nullopt
                                    : std::optional(found->factor);
}

static llvm::StringRef describe(Unit unit) {
  switch (unit) {
  case Unit::Count:
    return "a number";
  case Unit::Percent:
    return "a percentage such as 20 or 20%";
  case Unit::Time:
    return "a time such as 120us (ns, us, ms, s)";
  case Unit::Bytes:
    return "bytes such as 64KiB (B, kB, MB, GB, KiB, MiB)";
  case Unit::Word:
    return "a word";
  }
  llvm_unreachable("unknown unit");
}

/// Splits `text` at its comparison; the longer spellings come first.
static bool splitComparison(llvm::StringRef text, Expectation &expectation,
                            llvm::StringRef &value) {
  static constexpr std::pair<llvm::StringLiteral, Expectation::Comparison>
      kSpellings[] = {{"<=", Expectation::Comparison::LessEqual},
                      {">=", Expectation::Comparison::GreaterEqual},
                      {"==", Expectation::Comparison::Equal},
                      {"<", Expectation::Comparison::Less},
                      {">", Expectation::Comparison::Greater},
                      {"=", Expectation::Comparison::Equal}};
  const size_t position = text.find_first_of("<>=");
  if (position == llvm::StringRef::npos)
    return false;
  for (auto [spelling, comparison] : kSpellings) {
    value = text.substr(position);
    if (!value.consume_front(spelling))
      continue;
    expectation.key = text.take_front(position).trim().str();
    expectation.comparison = comparison;
    value = value.trim();
    return true;
  }
  llvm_unreachable("one of the characters is a spelling");
}

static llvm::Error parseNumber(Expectation &expectation, Unit unit,
                               llvm::StringRef value) {
  const llvm::StringRef number =
      value.take_while([](char c) { return llvm::isDigit(c) || c == '.'; });
  const std::optional<double> scale =
      lookupScale(unit, value.drop_front(number.size()).trim());
  // getAsDouble is true on failure.
  if (!scale || number.getAsDouble(expectation.number))
    return malformed(expectation, "'" + value + "' is not " + describe(unit));
  expectation.number *= *scale;
  return llvm::Error::success();
}

static llvm::Expected<Expectation> parseExpectation(llvm::StringRef text) {
  Expectation expectation;
  expectation.text = text.str();
  llvm::StringRef value;
  if (auto [region, rest] = text.split(':'); rest.size() > 0) {
    expectation.region = region.trim().str();
    text = rest;
  }
  if (!splitComparison(text, expectation, value))
    return malformed(expectation,
                     "expected KEY=VALUE, or another of < <= > >=");
  const Key *key = lookupKey(expectation.key);
  if (!key)
    return malformed(expectation,
                     "unknown key '" + expectation.key + "'; known are " +
                         llvm::join(llvm::map_range(kKeys,
                                                    [](const Key &known) {
                                                      return known.name.str();
                                                    }),
                                    ", "));
  if (key->unit != Unit::Word) {
    if (llvm::Error error = parseNumber(expectation, key->unit, value))
      return std::move(error);
    return expectation;
  }
  expectation.word = value.str();
  if (value.empty() || expectation.comparison != Expectation::Comparison::Equal)
    return malformed(expectation, "'" + expectation.key +
                                      "' is a word, which can only be =");
  // A mistyped one would only be wrong, after all has run.
  if (expectation.key == "bound" &&
      !value.equals_insensitive(getName(Bound::Compute)) &&
      !value.equals_insensitive(getName(Bound::Memory)))
    return malformed(expectation, "'bound' is compute or memory, not '" +
                                      expectation.word + "'");
  return expectation;
}

llvm::Expected<std::vector<Expectation>>
attn::parseExpectations(llvm::StringRef text) {
  std::vector<Expectation> expectations;
  llvm::SmallVector<llvm::StringRef> parts;
  text.split(parts, ',');
  for (llvm::StringRef part : parts) {
    llvm::Expected<Expectation> expectation = parseExpectation(part.trim());
    if (!expectation)
      return expectation.takeError();
    expectations.push_back(std::move(*expectation));
  }
  return expectations;
}

//===----------------------------------------------------------------------===//
// Checking
//===----------------------------------------------------------------------===//

static bool compare(double measured, Expectation::Comparison comparison,
                    double guess) {
  switch (comparison) {
  case Expectation::Comparison::Equal:
    // What is shown as equal is equal: occupancy 12.5 % is not 12 %, but a sum
    // of doubles isn't exact.
    return std::abs(measured - guess) <= 1e-9 * std::max(1.0, std::abs(guess));
  case Expectation::Comparison::Less:
    return measured < guess;
  case Expectation::Comparison::LessEqual:
    return measured <= guess;
  case Expectation::Comparison::Greater:
    return measured > guess;
  case Expectation::Comparison::GreaterEqual:
    return measured >= guess;
  }
  llvm_unreachable("unknown comparison");
}

static std::string formatValue(double value, Unit unit) {
  if (unit == Unit::Time)
    return formatDuration(value);
  if (unit == Unit::Bytes)
    return formatBytes(std::llround(value));
  std::string text = llvm::formatv("{0:F1}", value);
  if (llvm::StringRef(text).ends_with(".0"))
    text.resize(text.size() - 2);
  return unit == Unit::Percent ? text + " %" : text;
}

static CheckedExpectation check(const Expectation &expectation,
                                const RegionProfile &region,
                                const RegionSummary &summary) {
  const Key &key = *lookupKey(expectation.key);
  CheckedExpectation result = {&expectation, false,
                               "unknown on " + region.target};
  if (key.unit == Unit::Word) {
    const std::string word = key.getWord(summary);
    if (word.empty())
      return result;
    result.isRight = llvm::StringRef(word).equals_insensitive(expectation.word);
    result.measured = word;
    return result;
  }
  const std::optional<double> number = key.getNumber(summary);
  if (!number)
    return result;
  result.isRight = compare(*number, expectation.comparison, expectation.number);
  result.measured = formatValue(*number, key.unit);
  return result;
}

std::vector<CheckedExpectation>
attn::checkExpectations(llvm::ArrayRef<Expectation> expectations,
                        const RegionProfile &region,
                        const RegionSummary &summary) {
  std::vector<CheckedExpectation> results;
  for (const Expectation &expectation : expectations)
    if (expectation.region.empty() || expectation.region == region.name)
      results.push_back(check(expectation, region, summary));
  return results;
}

std::vector<const Expectation *>
attn::findNotRun(llvm::ArrayRef<Expectation> expectations,
                 llvm::ArrayRef<std::string> regions) {
  std::vector<const Expectation *> found;
  for (const Expectation &expectation : expectations)
    if (!expectation.region.empty() &&
        !llvm::is_contained(regions, expectation.region))
      found.push_back(&expectation);
  return found;
}

llvm::Error attn::checkRegionNames(llvm::ArrayRef<Expectation> expectations,
                                   llvm::ArrayRef<std::string> regions) {
  const auto unknown = findNotRun(expectations, regions);
  if (unknown.empty())
    return llvm::Error::success();
  return malformed(*unknown.front(),
                   "there is no region '" + unknown.front()->region +
                       "'; there are: " + llvm::join(regions, ", "));
}
