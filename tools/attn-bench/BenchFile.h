//===- BenchFile.h - What a benchmark measured ------------------*- C++ -*-===//
//
// The schema is docs/Benchmarks.md.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TOOLS_ATTNBENCH_BENCHFILE_H
#define ATTN_TOOLS_ATTNBENCH_BENCHFILE_H

#include "attn/Runtime/Report.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace attn {

/// One backend on one case.
struct BenchResult {
  std::string backend;
  /// Whose kernels ran: "sm_80" may serve sm_90a.
  std::string kernelTarget;
  /// Why it didn't run, or is wrong; empty if all is well.
  std::string refusal;
  /// Microseconds of a forward, one a round. Samples of the same round of
  /// several backends were taken one after the other.
  std::vector<double> samplesUs;
  /// Of a forward; bytes and FLOPs are analytic.
  int64_t kernels = 0;
  std::optional<int64_t> bytes, flops;
  /// Median of the multiprocessors' clock, read after each turn.
  std::optional<int64_t> clockMHz;
  /// Relative Frobenius norm against float64.
  std::optional<double> error;
};

struct BenchCase {
  std::string shape, dtype, mod;
  std::vector<BenchResult> results;

  std::string getName() const { return shape + " " + dtype + " " + mod; }
  const BenchResult *find(llvm::StringRef backend) const;
  /// FLOPs that a forward needs: the least that any backend computes.
  std::optional<int64_t> getUsefulFlops() const;
};

struct BenchFile {
  /// What made it, and when it began.
  std::string command, date;
  std::string device, target;
  std::map<std::string, std::string> versions;
  int64_t rounds = 0;
  /// Whether forwards may have found their inputs in the cache.
  bool isWarm = false;
  bool isVerified = false;
  std::vector<std::string> backends;
  std::string baseline;
  std::vector<BenchCase> cases;

  const BenchCase *find(llvm::StringRef name) const;
  /// The time over the baseline's: the median over the rounds. Nothing where
  /// one of them has no time.
  std::optional<double> getRatio(const BenchCase &benchCase,
                                 const BenchResult &result) const;
};

/// Errors start with the JSON path of the problem.
llvm::Expected<BenchFile> parseBenchFile(llvm::StringRef text);
llvm::Expected<BenchFile> readBenchFile(llvm::StringRef path);

void writeBenchFile(llvm::raw_ostream &os, const BenchFile &file);

} // namespace attn

#endif // ATTN_TOOLS_ATTNBENCH_BENCHFILE_H
