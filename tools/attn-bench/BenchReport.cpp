//===- BenchReport.cpp - Tables and pages of a benchmark ------------------===//

#include "BenchReport.h"
#include "attn/Profile/Findings.h"
#include "attn/Profile/Html.h"
#include "attn/Runtime/TextTable.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

using namespace attn;

static constexpr unsigned char kScript[] = {
#include "bench.js.inc"
};

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

static std::vector<std::string> getColumns(const BenchFile &file) {
  std::vector<std::string> columns = {"shape",     "dtype",
                                      "mod",       "backend",
                                      "median us", "of " + file.baseline,
                                      "spread",    "dense FLOP/s",
                                      "moved",     "kernels"};
  if (file.isVerified)
    columns.push_back("error");
  return columns;
}

static std::vector<std::string> getCells(const BenchFile &file,
                                         const BenchCase &benchCase,
                                         const BenchResult &result) {
  std::vector<std::string> cells = {benchCase.shape, benchCase.dtype,
                                    benchCase.mod, result.backend};
  if (result.samplesUs.empty()) {
    cells.resize(getColumns(file).size(), "-");
    return cells;
  }
  const Distribution time = Distribution::of(result.samplesUs);
  const std::optional<double> ratio = file.getRatio(benchCase, result);
  const std::optional<int64_t> flops = benchCase.getUsefulFlops();
  cells.push_back(llvm::formatv("{0:F1}", time.median));
  cells.push_back(ratio ? llvm::formatv("{0:F2} x", *ratio).str() : "-");
  cells.push_back(llvm::formatv("{0:F1} %", 100 * time.getSpread()));
  cells.push_back(flops ? formatFlops(std::llround(*flops / time.median * 1e6))
                        : "-");
  cells.push_back(result.bytes ? formatBytes(*result.bytes) : "-");
  cells.push_back(std::to_string(result.kernels));
  if (file.isVerified)
    cells.push_back(result.error ? llvm::formatv("{0:e2}", *result.error).str()
                                 : "-");
  return cells;
}

static std::string describeRun(const BenchFile &file) {
  return llvm::formatv(
      "{0}, {1}, {2}; {3} rounds in turns, {4}; ratio: the median of the "
      "rounds'; spread: (p90 - p10) / median; "
      "dense: both products in full, whatever the mask hides",
      file.device, file.target, file.date, file.rounds,
      file.isWarm ? "inputs may be in the cache" : "inputs not in the cache");
}

/// Why there are no times: each reason once, with the cases it is given for.
static std::vector<std::string> getRefusals(const BenchFile &file) {
  using Reason = std::pair<std::string, std::string>;
  llvm::MapVector<Reason, std::vector<std::string>, std::map<Reason, unsigned>>
      reasons;
  for (const BenchCase &benchCase : file.cases)
    for (const BenchResult &result : benchCase.results)
      if (!result.refusal.empty())
        reasons[{result.backend, result.refusal}].push_back(
            benchCase.getName());
  std::vector<std::string> lines;
  for (const auto &[reason, names] : reasons) {
    std::string more;
    if (names.size() > 1)
      more = ", and " + std::to_string(names.size() - 1) + " more";
    lines.push_back(reason.first + " (" + names.front() + more +
                    "): " + reason.second);
  }
  return lines;
}

//===----------------------------------------------------------------------===//
// Formats
//===----------------------------------------------------------------------===//

void attn::printTable(llvm::raw_ostream &os, const BenchFile &file) {
  os << describeRun(file) << '\n';
  TextTable table;
  table.addRow(getColumns(file));
  for (const BenchCase &benchCase : file.cases)
    for (const BenchResult &result : benchCase.results)
      table.addRow(getCells(file, benchCase, result));
  table.print(os);
  for (const std::string &line : getRefusals(file))
    os << "  " << line << '\n';
}

/// Of a table's cell.
static std::string escapeMarkdown(llvm::StringRef text) {
  std::string escaped;
  for (char c : text) {
    if (c == '|' || c == '\\')
      escaped += '\\';
    escaped += c == '\n' ? ' ' : c;
  }
  return escaped;
}

static void writeMarkdownRow(llvm::raw_ostream &os,
                             llvm::ArrayRef<std::string> cells) {
  for (const std::string &cell : cells)
    os << "| " << escapeMarkdown(cell) << ' ';
  os << "|\n";
}

void attn::writeMarkdown(llvm::raw_ostream &os, const BenchFile &file) {
  os << describeRun(file) << ".\n\n```\n" << file.command << "\n```\n\n";
  const std::vector<std::string> columns = getColumns(file);
  writeMarkdownRow(os, columns);
  // What is no number stands on the left.
  for (size_t i = 0; i < columns.size(); ++i)
    os << (i < 4 ? "|---" : "|---:");
  os << "|\n";
  for (const BenchCase &benchCase : file.cases)
    for (const BenchResult &result : benchCase.results)
      writeMarkdownRow(os, getCells(file, benchCase, result));
  const std::vector<std::string> refusals = getRefusals(file);
  if (!refusals.empty())
    os << '\n';
  for (const std::string &line : refusals)
    os << "- " << escapeMarkdown(line) << '\n';
}

void attn::writeHtml(llvm::raw_ostream &os, const BenchFile &file) {
  std::string json;
  llvm::raw_string_ostream stream(json);
  writeBenchFile(stream, file);
  writeHtmlPage(os, "attnc benchmark: " + file.device,
                llvm::toStringRef(llvm::ArrayRef(kScript)), json);
}
