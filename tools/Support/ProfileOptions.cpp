//===- ProfileOptions.cpp - Options of tools that show a profile ----------===//

#include "ProfileOptions.h"
#include "attn/Profile/Html.h"
#include "attn/Profile/Trace.h"
#include "attn/Runtime/WholeFile.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

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

llvm::Error
ShowProfileOptions::checkRegions(llvm::ArrayRef<std::string> regions) const {
  if (llvm::Error error = checkRegionNames(expectations, regions))
    return error;
  if (baseline.empty() || llvm::is_contained(regions, baseline))
    return llvm::Error::success();
  return llvm::createStringError("--baseline: there is no region '" + baseline +
                                 "'; there are: " + llvm::join(regions, ", "));
}

PrintOptions ShowProfileOptions::get() const {
  PrintOptions options;
  options.expectations = expectations;
  options.layers = layers;
  options.baseline = baseline;
  return options;
}

llvm::Expected<bool> ShowProfileOptions::show(const ProfileFile &file) const {
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
