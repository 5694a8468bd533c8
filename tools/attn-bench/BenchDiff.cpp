//===- BenchDiff.cpp - What changed between two benchmarks ----------------===//

#include "BenchDiff.h"
#include "attn/Runtime/TextTable.h"
#include "llvm/Support/FormatVariadic.h"

using namespace attn;

namespace {

/// How a backend's time on a case changed.
enum class Change { None, Faster, Slower, Lost, Gained, NeverRan };

} // namespace

static Change compare(const BenchResult &before, const BenchResult &after,
                      double tolerance) {
  if (before.samplesUs.empty())
    return after.samplesUs.empty() ? Change::NeverRan : Change::Gained;
  if (after.samplesUs.empty())
    return Change::Lost;
  const Distribution old = Distribution::of(before.samplesUs);
  const Distribution now = Distribution::of(after.samplesUs);
  if (now.low > old.high && now.median > old.median * (1 + tolerance))
    return Change::Slower;
  if (now.high < old.low && now.median < old.median / (1 + tolerance))
    return Change::Faster;
  return Change::None;
}

static llvm::StringRef describeChange(Change change) {
  switch (change) {
  case Change::None:
    return "";
  case Change::Faster:
    return "faster";
  case Change::Slower:
    return "SLOWER";
  case Change::Lost:
    return "NO LONGER RUNS";
  case Change::Gained:
    return "runs now";
  case Change::NeverRan:
    return "never ran";
  }
  llvm_unreachable("unknown change");
}

static std::string formatTime(const BenchResult &result) {
  if (result.samplesUs.empty())
    return "-";
  const Distribution time = Distribution::of(result.samplesUs);
  return llvm::formatv("{0:F1} ({1:F1} - {2:F1})", time.median, time.low,
                       time.high);
}

static std::string formatChange(const BenchResult &before,
                                const BenchResult &after) {
  if (before.samplesUs.empty() || after.samplesUs.empty())
    return "-";
  const double ratio = Distribution::of(after.samplesUs).median /
                       Distribution::of(before.samplesUs).median;
  return llvm::formatv("{0}{1:F1} %", ratio >= 1 ? "+" : "", 100 * (ratio - 1));
}

/// What only makes sense to compare if it is the same.
static void printDifferences(llvm::raw_ostream &os, const BenchFile &before,
                             const BenchFile &after) {
  auto check = [&](llvm::StringRef what, const std::string &old,
                   const std::string &now) {
    if (old != now)
      os << "note: another " << what << ": '" << old << "', then '" << now
         << "'\n";
  };
  check("device", before.device, after.device);
  check("target", before.target, after.target);
  if (before.isWarm != after.isWarm)
    os << "note: inputs may be in the cache in one of them only\n";
}

/// Names that are in `some` and not in `others`.
static void printMissing(llvm::raw_ostream &os, const BenchFile &some,
                         const BenchFile &others, llvm::StringRef where) {
  for (const BenchCase &benchCase : some.cases) {
    const BenchCase *other = others.find(benchCase.getName());
    for (const BenchResult &result : benchCase.results)
      if (!other || !other->find(result.backend))
        os << "only " << where << ": " << benchCase.getName() << ", "
           << result.backend << '\n';
  }
}

bool attn::printDiff(llvm::raw_ostream &os, const BenchFile &before,
                     const BenchFile &after, double tolerance) {
  printDifferences(os, before, after);
  TextTable table;
  table.addRow({"case", "backend", "before us (p10 - p90)",
                "after us (p10 - p90)", "change", ""});
  int64_t faster = 0, slower = 0, same = 0;
  for (const BenchCase &old : before.cases) {
    const BenchCase *now = after.find(old.getName());
    for (const BenchResult &result : old.results) {
      const BenchResult *other = now ? now->find(result.backend) : nullptr;
      if (!other)
        continue;
      const Change change = compare(result, *other, tolerance);
      slower += change == Change::Slower || change == Change::Lost;
      faster += change == Change::Faster || change == Change::Gained;
      same += change == Change::None || change == Change::NeverRan;
      table.addRow({old.getName(), result.backend, formatTime(result),
                    formatTime(*other), formatChange(result, *other),
                    describeChange(change).str()});
    }
  }
  table.print(os);
  printMissing(os, before, after, "before");
  printMissing(os, after, before, "after");
  os << llvm::formatv("{0} slower, {1} faster, {2} unchanged\n", slower, faster,
                      same);
  return slower == 0;
}
