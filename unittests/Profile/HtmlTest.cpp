//===- HtmlTest.cpp - Reports as pages ------------------------------------===//

#include "attn/Profile/Html.h"
#include "TestProfile.h"
#include "llvm/Support/JSON.h"
#include <gtest/gtest.h>

using namespace attn;
using namespace attn::test;
namespace json = llvm::json;

static ProfileFile makeFile(int64_t launches, llvm::StringRef kernel = "attn") {
  ProfileFile file;
  file.environment = makeCard();
  RegionBuilder builder;
  builder.kernel("first", 10).phase("first");
  for (int64_t i = 0; i < launches; ++i)
    builder.host(HostActivity::Launch, 2).kernel(kernel, 3);
  builder.phase("steady", launches);
  file.regions.push_back(builder.region);
  return file;
}

static std::string write(const ProfileFile &file) {
  std::string text;
  llvm::raw_string_ostream os(text);
  writeHtmlReport(os, file, PrintOptions());
  return text;
}

/// The JSON that the page's numbers are read from.
static json::Object readData(llvm::StringRef page) {
  llvm::StringRef text =
      page.split("<script type=\"application/json\" id=\"data\">").second;
  llvm::Expected<json::Value> data = json::parse(text.split("</script>").first);
  if (data)
    return *data->getAsObject();
  ADD_FAILURE() << llvm::toString(data.takeError());
  return {};
}

TEST(HtmlTest, HoldsTheProfile) {
  const std::string page = write(makeFile(3));
  const json::Object data = readData(page);
  const json::Object &region = *(*data.getArray("regions"))[0].getAsObject();
  EXPECT_EQ(region.getString("name"), "fused");
  EXPECT_EQ(region.getObject("summary")->getInteger("calls"), 3);
  // The steady phase's only.
  EXPECT_EQ(region.getObject("device")->getArray("rows")->size(), 3u);
}

TEST(HtmlTest, IsBounded) {
  constexpr int64_t kLaunches = 100000;
  const std::string page = write(makeFile(kLaunches));
  EXPECT_LT(page.size(), size_t(1) << 20);
  const json::Object data = readData(page);
  const json::Object &region = *(*data.getArray("regions"))[0].getAsObject();
  EXPECT_EQ(region.getObject("device")->getArray("rows")->size(), 1000u);
  // What is counted is all.
  const json::Array &kernels =
      *region.getObject("summary")->getArray("kernels");
  EXPECT_EQ(kernels[0].getAsObject()->getInteger("calls"), kLaunches);
}

TEST(HtmlTest, TakesAnyName) {
  const llvm::StringRef name = "</script><script>alert(1)</script><!-- \"'\\";
  ProfileFile file = makeFile(1, name);
  file.environment.device = "<b>card</b> & co";
  const std::string page = write(file);
  const json::Object data = readData(page);
  const json::Object &region = *(*data.getArray("regions"))[0].getAsObject();
  EXPECT_EQ((*region.getArray("names"))[2], json::Value(name));
  EXPECT_EQ(llvm::StringRef(page).count("alert(1)</script"), 0u);
  EXPECT_TRUE(llvm::StringRef(page).contains(
      "<title>attnc profile: &lt;b&gt;card&lt;/b&gt; &amp; co</title>"));
}
