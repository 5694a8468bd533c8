//===- ProfileOptions.cpp - Options of tools that show a profile ----------===//

#include "ProfileOptions.h"
#include "WholeFile.h"
#include "attn/Profile/Trace.h"

using namespace attn;

llvm::Error ShowProfileOptions::parse() {
  // A tool may run several command lines.
  expectations.clear();
  if (expect.getNumOccurrences() == 0)
    return llvm::Error::success();
  llvm::Expected<std::vector<Expectation>> parsed = parseExpectations(expect);
  if (!parsed)
    return parsed.takeError();
  expectations = std::move(*parsed);
  return llvm::Error::success();
}

static llvm::Error checkBaseline(llvm::StringRef baseline,
                                 const ProfileFile &file) {
  if (baseline.empty() ||
      llvm::any_of(file.regions, [&](const RegionProfile &region) {
        return region.name == baseline;
      }))
    return llvm::Error::success();
  return llvm::createStringError("--baseline: there is no region '" + baseline +
                                 "' in this profile");
}

llvm::Expected<bool> ShowProfileOptions::show(const ProfileFile &file) const {
  if (llvm::Error error = checkRegionNames(expectations, file))
    return std::move(error);
  if (llvm::Error error = checkBaseline(baseline, file))
    return std::move(error);
  PrintOptions options;
  options.expectations = expectations;
  options.layers = layers;
  options.baseline = baseline;
  const bool allRight = printProfile(llvm::outs(), file, options);
  if (traceFile.empty())
    return allRight;
  if (llvm::Error error = writeWholeFile(
          traceFile, [&](llvm::raw_ostream &os) { writeTrace(os, file); }))
    return std::move(error);
  return allRight;
}
