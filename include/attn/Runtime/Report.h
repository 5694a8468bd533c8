//===- Report.h - What ran, how long, how right -----------------*- C++ -*-===//

#ifndef ATTN_RUNTIME_REPORT_H
#define ATTN_RUNTIME_REPORT_H

#include "attn/Runtime/Executable.h"
#include "llvm/Support/raw_ostream.h"

namespace attn {

/// Microseconds.
struct TimeStats {
  double median;
  double min;
  double max;
};

/// `samples` has one element or more.
TimeStats summarize(llvm::ArrayRef<double> samples);

/// Of samples, in their unit.
struct Distribution {
  double median, low, high;

  /// The median with the first and the last tenth; `samples` isn't empty.
  static Distribution of(std::vector<double> samples);
  /// (high - low) / median
  double getSpread() const { return (high - low) / median; }
};

/// All steps of one name in a forward, taken together.
struct KernelReport {
  std::string name;
  Step::Kind kind;
  /// The rest is per forward: sums over the calls.
  int64_t calls = 0;
  std::optional<int64_t> bytes = 0;
  std::optional<int64_t> flops = 0;
  std::optional<TimeStats> time;
  std::optional<KernelResources> resources;
};

/// What is not known is absent.
struct VariantReport {
  std::string variant;
  std::string target;
  /// As in the manifest; empty if it isn't known.
  std::string kernelTarget;
  /// "ok", or "error" with a message.
  std::string status = "ok";
  std::string message;
  std::vector<KernelReport> kernels;
  std::optional<TimeStats> time;
  bool isWarm = false;
  std::optional<int64_t> minBytes;
  std::optional<int64_t> maxIntermediateBytes;
  /// Relative Frobenius norm against float64.
  std::optional<double> error;
  std::optional<double> maxAbsError;
  std::optional<double> lseError;
  /// Rows of the outputs that the errors are taken over, if not all.
  std::optional<int64_t> sampledRows;

  /// A report that holds only why the variant did not run.
  static VariantReport failure(llvm::StringRef variant, llvm::StringRef target,
                               llvm::Error error);

  /// What an invocation runs; `profile`, if given, says how long.
  static VariantReport create(const Executable &executable,
                              const Invocation &invocation,
                              const Profile *profile);
};

struct Report {
  std::string device;
  /// Such as {"attnc", "0.1.0"}.
  std::vector<std::pair<std::string, std::string>> versions;
  std::vector<VariantReport> variants;
};

/// What `attn-run --json` writes; the schema is docs/Report.md.
void writeJSON(llvm::raw_ostream &os, const Report &report);

/// One line on registers, shared memory, spills and occupancy.
std::string describe(const KernelResources &resources);

/// For a terminal: a row a variant, and below it, unless a profile shows them,
/// one a kernel.
void printTable(llvm::raw_ostream &os, const Report &report,
                bool showsKernels = true);

} // namespace attn

#endif // ATTN_RUNTIME_REPORT_H
