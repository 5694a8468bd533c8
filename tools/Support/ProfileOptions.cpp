//===- ProfileOptions.cpp - Options of tools that show a profile ----------===//

#include "ProfileOptions.h"
#include "attn/Profile/Html.h"
#include "attn/Profile/Trace.h"
#include "attn/Runtime/WholeFile.h"

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

llvm::Error ShowProfileOptions::checkReport() const {
  if (reportFile.empty())
    return llvm::Error::success();
  if (llvm::Error error = checkCanWriteHtml())
    return llvm::createStringError("--report: " +
                                   llvm::toString(std::move(error)));
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

PrintOptions ShowProfileOptions::get() const {
  PrintOptions options;
  options.expectations = expectations;
  options.layers = layers;
  options.baseline = baseline;
  return options;
}

llvm::Expected<bool> ShowProfileOptions::show(const ProfileFile &file) const {
  if (llvm::Error error = checkRegionNames(expectations, file))
    return std::move(error);
  if (llvm::Error error = checkBaseline(baseline, file))
    return std::move(error);
  const bool allRight = printProfile(llvm::outs(), file, get());
  if (!traceFile.empty())
    if (llvm::Error error = writeWholeFile(
            traceFile, [&](llvm::raw_ostream &os) { writeTrace(os, file); }))
      return std::move(error);
  if (!reportFile.empty())
    if (llvm::Error error =
            writeWholeFile(reportFile, [&](llvm::raw_ostream &os) {
              writeHtmlReport(os, file, get());
            }))
      return std::move(error);
  return allRight;
}
