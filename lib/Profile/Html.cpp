//===- Html.cpp - Reports as one self-contained page ----------------------===//

#include "attn/Profile/Html.h"
#include "SummaryJSON.h"
#include "llvm/ADT/StringExtras.h"

using namespace attn;

//===----------------------------------------------------------------------===//
// What is built in
//===----------------------------------------------------------------------===//

// Bytes, as attnc_embed writes them.
static constexpr unsigned char kStyle[] = {
#include "page.css.inc"
};
static constexpr unsigned char kPageScript[] = {
#include "page.js.inc"
};
static constexpr unsigned char kProfileScript[] = {
#include "profile.js.inc"
};
#ifdef ATTNC_HAS_CHARTS
static constexpr unsigned char kCharts[] = {
#include "charts.js.inc"
};
static constexpr unsigned char kChartsLicense[] = {
#include "charts-license.inc"
};
#else
static constexpr unsigned char kCharts[] = {'\n'};
static constexpr unsigned char kChartsLicense[] = {'\n'};
#endif

static llvm::StringRef toString(llvm::ArrayRef<unsigned char> bytes) {
  return llvm::toStringRef(bytes);
}

llvm::Error attn::checkCanWriteHtml() {
#ifdef ATTNC_HAS_CHARTS
  return llvm::Error::success();
#else
  return llvm::createStringError(
      "this build can't draw charts: configuring it found no Chart.js; install "
      "it (Debian: apt-get install libjs-chart.js) or name its chart.min.js "
      "and its licence with -DATTNC_CHARTJS=FILE -DATTNC_CHARTJS_LICENSE=FILE, "
      "configure and build again");
#endif
}

//===----------------------------------------------------------------------===//
// Pages
//===----------------------------------------------------------------------===//

/// A page has no room for more; the tables count all.
static constexpr size_t kMaxRecords = 1000;

/// JSON in which nothing ends a <script>. A < is only ever in a string.
static void writeJSONForScript(llvm::raw_ostream &os, llvm::StringRef json) {
  for (char c : json)
    if (c == '<')
      os << "\\u003c";
    else
      os << c;
}

void attn::writeHtmlPage(llvm::raw_ostream &os, llvm::StringRef title,
                         llvm::StringRef script, llvm::StringRef json) {
  os << "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta "
        "charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, "
        "initial-scale=1\">\n"
        "<meta name=\"color-scheme\" content=\"light dark\">\n"
        // The page asks for nothing, not even for an icon.
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src "
        "'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
        "img-src data:\">\n"
        "<link rel=\"icon\" href=\"data:,\">\n<title>";
  llvm::printHTMLEscaped(title, os);
  os << "</title>\n<style>\n"
     << toString(kStyle) << "</style>\n</head>\n<body>\n"
     << "<main id=\"page\"></main>\n"
        "<noscript>This page draws itself with JavaScript; the numbers are "
        "also in the JSON below.</noscript>\n"
        "<script type=\"application/json\" id=\"data\">";
  writeJSONForScript(os, json);
  os << "</script>\n<footer><details><summary>Drawn with Chart.js; its "
        "licence</summary>\n<pre>";
  llvm::printHTMLEscaped(toString(kChartsLicense), os);
  os << "</pre></details></footer>\n<script>\n"
     << toString(kCharts) << "\n</script>\n<script>\n"
     << toString(kPageScript) << script << "</script>\n</body>\n</html>\n";
}

void attn::writeHtmlReport(llvm::raw_ostream &os, const ProfileFile &file,
                           const PrintOptions &options) {
  std::string json;
  llvm::raw_string_ostream stream(json);
  writeProfileForPage(stream, file, options, kMaxRecords);
  writeHtmlPage(os, "attnc profile: " + file.environment.device,
                toString(kProfileScript), json);
}
