//===- Report.cpp - What ran, how long, how right -------------------------===//

#include "attn/Runtime/Report.h"
#include "attn/Runtime/TextTable.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include <cmath>

using namespace attn;

TimeStats attn::summarize(llvm::ArrayRef<double> samples) {
  assert(!samples.empty() && "no samples");
  std::vector<double> sorted(samples.begin(), samples.end());
  llvm::sort(sorted);
  const size_t middle = sorted.size() / 2;
  const double median = sorted.size() % 2
                            ? sorted[middle]
                            : (sorted[middle - 1] + sorted[middle]) / 2;
  return {median, sorted.front(), sorted.back()};
}

/// Between the two samples that are nearest.
static double getQuantile(llvm::ArrayRef<double> sorted, double fraction) {
  const double position = fraction * (sorted.size() - 1);
  const size_t below = static_cast<size_t>(position);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (position - below) * (sorted[above] - sorted[below]);
}

Distribution Distribution::of(std::vector<double> samples) {
  llvm::sort(samples);
  return {getQuantile(samples, 0.5), getQuantile(samples, 0.1),
          getQuantile(samples, 0.9)};
}

VariantReport VariantReport::failure(llvm::StringRef variant,
                                     llvm::StringRef target,
                                     llvm::Error error) {
  VariantReport report;
  report.variant = variant;
  report.target = target;
  report.status = "error";
  report.message = llvm::toString(std::move(error));
  return report;
}

/// A sum is known only if all its terms are.
static void addIfKnown(std::optional<int64_t> &sum,
                       std::optional<int64_t> term) {
  sum = sum && term ? std::optional(*sum + *term) : std::nullopt;
}

VariantReport VariantReport::create(const Executable &executable,
                                    const Invocation &invocation,
                                    const Profile *profile) {
  VariantReport report;
  report.variant = executable.getManifest().variant;
  report.target = executable.getManifest().target;
  report.kernelTarget = executable.getManifest().kernelTarget;
  report.minBytes = invocation.getMinBytes();
  report.maxIntermediateBytes = invocation.getMaxIntermediateBytes();

  llvm::StringMap<size_t> rows;
  std::vector<std::vector<double>> samples;
  for (auto [index, step] : llvm::enumerate(invocation.getSteps())) {
    auto [row, isNew] = rows.try_emplace(step.name, report.kernels.size());
    if (isNew) {
      KernelReport &kernel = report.kernels.emplace_back();
      kernel.name = step.name;
      kernel.kind = step.kind;
      if (step.kind == Step::Kind::Launch)
        kernel.resources = executable.getKernel(step.kernel).getResources();
      samples.emplace_back(
          profile ? profile->stepSamples[index].size() : size_t(0), 0.0);
    }
    KernelReport &kernel = report.kernels[row->second];
    ++kernel.calls;
    addIfKnown(kernel.bytes, step.bytes);
    addIfKnown(kernel.flops, step.flops);
    if (profile)
      for (auto [sum, sample] :
           llvm::zip_equal(samples[row->second], profile->stepSamples[index]))
        sum += sample;
  }
  if (!profile || profile->totalSamples.empty())
    return report;
  for (auto [kernel, sums] : llvm::zip_equal(report.kernels, samples))
    kernel.time = summarize(sums);
  report.time = summarize(profile->totalSamples);
  report.isWarm = profile->isWarm;
  return report;
}

//===----------------------------------------------------------------------===//
// JSON
//===----------------------------------------------------------------------===//

static llvm::StringRef getKindName(Step::Kind kind) {
  switch (kind) {
  case Step::Kind::Launch:
    return "kernel";
  case Step::Kind::Copy:
    return "copy";
  case Step::Kind::Memset:
    return "memset";
  case Step::Kind::Alloc:
  case Step::Kind::Free:
    break;
  }
  llvm_unreachable("takes no time");
}

/// JSON has no infinities: an error that isn't finite is null, and the status
/// and message tell.
static llvm::json::Value toJSON(std::optional<double> value) {
  if (!value || !std::isfinite(*value))
    return nullptr;
  return *value;
}

static llvm::json::Value toJSON(std::optional<int64_t> value) {
  if (!value)
    return nullptr;
  return *value;
}

static void writeTime(llvm::json::OStream &json,
                      const std::optional<TimeStats> &time) {
  auto get = [&](double TimeStats::*field) -> llvm::json::Value {
    return toJSON(time ? std::optional((*time).*field) : std::nullopt);
  };
  json.attribute("median_us", get(&TimeStats::median));
  json.attribute("min_us", get(&TimeStats::min));
  json.attribute("max_us", get(&TimeStats::max));
}

static void writeResources(llvm::json::OStream &json,
                           const KernelResources &resources) {
  json.attribute("registers", resources.registers);
  json.attribute("smem_bytes", resources.sharedBytes);
  json.attribute("local_bytes", resources.localBytes);
  if (!resources.occupancy)
    return;
  json.attribute("blocks_per_sm", resources.occupancy->blocksPerSM);
  json.attribute("occupancy", resources.occupancy->getFraction());
  json.attribute("occupancy_limit", resources.occupancy->limit);
}

static void writeKernel(llvm::json::OStream &json, const KernelReport &kernel) {
  json.object([&] {
    json.attribute("name", kernel.name);
    json.attribute("kind", getKindName(kernel.kind));
    json.attribute("calls", kernel.calls);
    writeTime(json, kernel.time);
    json.attribute("bytes", toJSON(kernel.bytes));
    json.attribute("flops", toJSON(kernel.flops));
    if (kernel.resources)
      writeResources(json, *kernel.resources);
  });
}

static void writeVariant(llvm::json::OStream &json,
                         const VariantReport &report) {
  json.object([&] {
    json.attribute("variant", report.variant);
    json.attribute("target", report.target);
    if (!report.kernelTarget.empty())
      json.attribute("kernel_target", report.kernelTarget);
    json.attribute("status", report.status);
    json.attribute("message", llvm::json::fixUTF8(report.message));
    json.attributeArray("kernels", [&] {
      for (const KernelReport &kernel : report.kernels)
        writeKernel(json, kernel);
    });
    writeTime(json, report.time);
    json.attribute("warm", report.isWarm);
    json.attribute("min_bytes", toJSON(report.minBytes));
    json.attribute("max_intermediate_bytes",
                   toJSON(report.maxIntermediateBytes));
    json.attribute("error", toJSON(report.error));
    json.attribute("max_abs_error", toJSON(report.maxAbsError));
    json.attribute("lse_error", toJSON(report.lseError));
    if (report.sampledRows)
      json.attribute("sampled_rows", *report.sampledRows);
  });
}

void attn::writeJSON(llvm::raw_ostream &os, const Report &report) {
  llvm::json::OStream json(os, /*IndentSize=*/2);
  json.object([&] {
    json.attribute("device", report.device);
    json.attributeObject("versions", [&] {
      for (const auto &[name, version] : report.versions)
        json.attribute(name, version);
    });
    json.attributeArray("variants", [&] {
      for (const VariantReport &variant : report.variants)
        writeVariant(json, variant);
    });
  });
  os << '\n';
}

//===----------------------------------------------------------------------===//
// Table
//===----------------------------------------------------------------------===//

static std::string formatOptional(std::optional<int64_t> bytes) {
  return bytes ? formatBytes(*bytes) : "-";
}

static std::string formatMicroseconds(double value) {
  return llvm::formatv("{0:F1}", value).str();
}

static std::string formatError(std::optional<double> value) {
  if (!value)
    return "-";
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.2e", *value);
  return text;
}

static std::array<std::string, 3>
formatTime(const std::optional<TimeStats> &time) {
  if (!time)
    return {"-", "-", "-"};
  return {formatMicroseconds(time->median), formatMicroseconds(time->min),
          formatMicroseconds(time->max)};
}

/// "5 kernels + 1 copy"
static std::string formatCounts(const VariantReport &report) {
  std::string text;
  for (Step::Kind kind :
       {Step::Kind::Launch, Step::Kind::Copy, Step::Kind::Memset}) {
    int64_t count = 0;
    for (const KernelReport &kernel : report.kernels)
      if (kernel.kind == kind)
        count += kernel.calls;
    if (count == 0)
      continue;
    llvm::StringRef plural = kind == Step::Kind::Copy ? "copies" : "";
    if (!text.empty())
      text += " + ";
    text += std::to_string(count) + " ";
    if (count > 1 && !plural.empty())
      text += plural;
    else
      text += getKindName(kind).str() + (count > 1 ? "s" : "");
  }
  return text.empty() ? "nothing to run" : text;
}

/// "sm_90a" or "sm_90a, kernels of sm_80"
static std::string formatTarget(const VariantReport &report) {
  if (report.kernelTarget.empty() || report.kernelTarget == report.target)
    return report.target;
  return report.target + ", kernels of " + report.kernelTarget;
}

static void addVariantRow(TextTable &table, const VariantReport &report) {
  if (report.status != "ok" && report.kernels.empty()) {
    table.addRow(
        {report.variant + " (" + report.target + "): " + report.status});
    return;
  }
  std::optional<int64_t> bytes = 0;
  for (const KernelReport &kernel : report.kernels)
    addIfKnown(bytes, kernel.bytes);
  auto [median, min, max] = formatTime(report.time);
  table.addRow(
      {report.variant + " (" + formatTarget(report) +
           "): " + formatCounts(report) + (report.isWarm ? ", warm" : ""),
       "", median, min, max, formatOptional(bytes),
       formatOptional(report.minBytes),
       formatOptional(report.maxIntermediateBytes), formatError(report.error)});
}

static void addKernelRows(TextTable &table, const VariantReport &report) {
  for (const KernelReport &kernel : report.kernels) {
    auto [median, min, max] = formatTime(kernel.time);
    table.addRow({"  " + kernel.name, std::to_string(kernel.calls), median, min,
                  max, formatOptional(kernel.bytes)});
  }
}

std::string attn::describe(const KernelResources &resources) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << resources.name << ": " << resources.registers << " registers, "
     << resources.sharedBytes << " bytes of shared memory, ";
  if (resources.spillStoreBytes)
    os << *resources.spillStoreBytes + resources.spillLoadBytes.value_or(0)
       << " bytes spilled";
  else
    os << resources.localBytes << " bytes of local memory";
  if (!resources.occupancy)
    return text;
  const Occupancy &occupancy = *resources.occupancy;
  os << "; " << occupancy.warpsPerSM << " of " << occupancy.maxWarpsPerSM
     << " warps an SM in " << occupancy.blocksPerSM << " blocks ("
     << llvm::format("%.1f", 100 * occupancy.getFraction())
     << " % computed occupancy, limited by " << occupancy.limit << ")";
  return text;
}

void attn::printTable(llvm::raw_ostream &os, const Report &report,
                      bool showsKernels) {
  os << report.device << '\n';
  TextTable table;
  table.addRow({"variant, kernels per call", showsKernels ? "calls" : "",
                "median us", "min us", "max us", "moved", "least",
                "intermediate", "error"});
  for (const VariantReport &variant : report.variants) {
    addVariantRow(table, variant);
    if (showsKernels)
      addKernelRows(table, variant);
  }
  table.print(os);
  for (const VariantReport &variant : report.variants)
    if (variant.sampledRows)
      os << variant.variant << ": error of " << *variant.sampledRows
         << " sampled rows\n";
  for (const VariantReport &variant : report.variants)
    for (const KernelReport &kernel : variant.kernels)
      if (showsKernels && kernel.resources)
        os << describe(*kernel.resources) << '\n';
  for (const VariantReport &variant : report.variants)
    if (!variant.message.empty())
      os << variant.variant << ": " << variant.message << '\n';
}
