//===- ProfileOptions.h - Options of tools that show a profile --*- C++ -*-===//

#ifndef ATTN_TOOLS_SUPPORT_PROFILEOPTIONS_H
#define ATTN_TOOLS_SUPPORT_PROFILEOPTIONS_H

#include "attn/Profile/Print.h"
#include "llvm/Support/CommandLine.h"

namespace attn {

/// What a tool exits with.
constexpr int kMalformedOption = 2;
constexpr int kWrongGuess = 3;

/// How a profile is shown and what is guessed about it.
class ShowProfileOptions {
public:
  explicit ShowProfileOptions(llvm::cl::OptionCategory &category)
      : expect("expect",
               llvm::cl::desc(
                   "Guesses such as kernels=1,copies=0,bound=compute,"
                   "occupancy<20,time<120us,path=HGMMA, marked right or wrong; "
                   "a wrong one exits with 3. REGION:KEY=VALUE is for one "
                   "region (docs/Profile.md lists the keys)"),
               llvm::cl::value_desc("GUESS,..."), llvm::cl::cat(category)),
        layers("layers",
               llvm::cl::desc("Add what each finding costs in a model of that "
                              "many layers"),
               llvm::cl::value_desc("N"), llvm::cl::init(0),
               llvm::cl::cat(category)),
        baseline("baseline",
                 llvm::cl::desc("The region that others are compared with "
                                "(default: the first)"),
                 llvm::cl::value_desc("REGION"), llvm::cl::cat(category)),
        traceFile("trace",
                  llvm::cl::desc("Where to write a trace for Perfetto or "
                                 "chrome://tracing"),
                  llvm::cl::value_desc("FILE"), llvm::cl::cat(category)),
        reportFile("report",
                   llvm::cl::desc("Where to write the report: a page with "
                                  "charts, in one file"),
                   llvm::cl::value_desc("FILE.html"), llvm::cl::cat(category)) {
  }

  /// Parses --expect; call it before anything is run.
  llvm::Error parse();

  /// Whether --report can be done; call it before anything is run.
  llvm::Error checkReport() const;

  /// Whether --expect and --baseline name regions that there will be; call it
  /// before anything is run.
  llvm::Error checkRegions(llvm::ArrayRef<std::string> regions) const;

  /// Prints the profile and writes trace and report. Returns whether all
  /// guesses were right.
  llvm::Expected<bool> show(const ProfileFile &file) const;

  /// Whether one of the options that only make sense with a profile is given.
  bool isUsed() const {
    return !expect.empty() || layers > 0 || !baseline.empty() ||
           !traceFile.empty() || !reportFile.empty();
  }

  /// How the profile is to be shown.
  PrintOptions get() const;

private:
  llvm::cl::opt<std::string> expect;
  llvm::cl::opt<unsigned> layers;
  llvm::cl::opt<std::string> baseline, traceFile, reportFile;
  std::vector<Expectation> expectations;
};

} // namespace attn

#endif // ATTN_TOOLS_SUPPORT_PROFILEOPTIONS_H
