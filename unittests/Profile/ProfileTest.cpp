//===- ProfileTest.cpp - Reading and writing profiles ---------------------===//

#include "TestProfile.h"
#include "attn/Profile/Print.h"
#include "llvm/Support/JSON.h"
#include <gtest/gtest.h>

using namespace attn;
using namespace attn::test;

static ProfileFile makeFile() {
  ProfileFile file;
  file.environment = makeCard();
  file.environment.throttleReasons = {"power cap"};
  file.command = "attn-run \"x\"";
  RegionBuilder builder;
  builder.host(HostActivity::Compile, 5).kernel("first", 10).phase("first");
  builder.host(HostActivity::Launch, 2)
      .kernel("attn", 20, makeLaunch(132, 384, 168, 200 << 10))
      .copy("copy a -> b", 5, 1000)
      .phase("steady", 1)
      .facts("attn", 1 << 20, 1 << 30);
  builder.region.facts[0].workImbalance = 1.5;
  builder.region.notes = {"a note"};
  builder.region.minBytes = 99;
  builder.region.maskMap =
      MaskMap{"two tiles", {"/.", "#/"}, "a scale", 1, 2, 1};
  builder.region.device.back().correlation = 17;
  file.regions.push_back(builder.region);
  return file;
}

static std::string write(const ProfileFile &file) {
  std::string text;
  llvm::raw_string_ostream os(text);
  writeProfile(os, file);
  return text;
}

TEST(ProfileTest, KeepsEverything) {
  const std::string text = write(makeFile());
  llvm::Expected<ProfileFile> read = parseProfile(text);
  ASSERT_TRUE(bool(read)) << llvm::toString(read.takeError());
  const RegionProfile &region = read->regions.front();
  EXPECT_EQ(read->command, "attn-run \"x\"");
  EXPECT_EQ(read->environment.limits->sharedBytes, 228 << 10);
  EXPECT_EQ(read->environment.throttleReasons,
            std::vector<std::string>{"power cap"});
  EXPECT_EQ(region.names, makeFile().regions.front().names);
  EXPECT_EQ(region.launches[1].block[0], 384);
  EXPECT_EQ(region.launches[1].dynamicSharedBytes, 200 << 10);
  EXPECT_EQ(region.device.back().correlation, 17);
  EXPECT_EQ(region.device.back().bytes, 1000);
  EXPECT_FALSE(region.device.back().launch);
  EXPECT_EQ(region.facts[0].workImbalance, 1.5);
  EXPECT_EQ(region.minBytes, 99);
  EXPECT_FALSE(region.maxIntermediateBytes);
  EXPECT_EQ(region.phases[1].name, "steady");
  ASSERT_TRUE(region.maskMap);
  EXPECT_EQ(region.maskMap->cells, (std::vector<std::string>{"/.", "#/"}));
  EXPECT_EQ(region.maskMap->scale, "a scale");
  EXPECT_EQ(region.maskMap->partial, 2);
  // All that was read is written again.
  EXPECT_EQ(write(*read), text);
}

TEST(ProfileTest, WritesGuessesAndComparison) {
  ProfileFile file;
  file.environment = makeCard();
  file.regions = {RegionBuilder("slow").kernel("a", 30).phase("steady").region,
                  RegionBuilder("fast").kernel("b", 10).phase("steady").region};
  auto guesses =
      parseExpectations("slow:kernels=1,fast:kernels=2,lost:copies=0");
  ASSERT_TRUE(bool(guesses)) << llvm::toString(guesses.takeError());
  std::string text;
  llvm::raw_string_ostream os(text);
  PrintOptions options;
  options.expectations = *guesses;
  options.baseline = "fast";
  writeProfile(os, file, options);
  llvm::Expected<llvm::json::Value> json = llvm::json::parse(text);
  ASSERT_TRUE(bool(json)) << llvm::toString(json.takeError());
  const llvm::json::Object &root = *json->getAsObject();
  const llvm::json::Object &comparison = *root.getObject("comparison");
  EXPECT_EQ(comparison.getString("baseline"), "fast");
  const llvm::json::Array &rows = *comparison.getArray("rows");
  EXPECT_EQ(rows[0].getAsObject()->getNumber("ratio"), 3);
  EXPECT_EQ(rows[1].getAsObject()->getNumber("us_per_call"), 10);
  const llvm::json::Array &checked = *(*root.getArray("regions"))[1]
                                          .getAsObject()
                                          ->getObject("summary")
                                          ->getArray("expectations");
  ASSERT_EQ(checked.size(), 1u);
  EXPECT_EQ(checked[0].getAsObject()->getBoolean("right"), false);
  EXPECT_EQ(checked[0].getAsObject()->getString("measured"), "1");
  const llvm::json::Array &notRun = *root.getArray("not_run");
  ASSERT_EQ(notRun.size(), 1u);
  EXPECT_EQ(notRun[0].getAsObject()->getString("text"), "lost:copies=0");
}

TEST(ProfileTest, TakesAnyKernelName) {
  ProfileFile file = makeFile();
  file.regions[0].names[0] = "a \"quoted\\ \xff name\n\x01";
  llvm::Expected<ProfileFile> read = parseProfile(write(file));
  ASSERT_TRUE(bool(read)) << llvm::toString(read.takeError());
  EXPECT_EQ(read->regions[0].names[0], "a \"quoted\\ \xEF\xBF\xBD name\n\x01");
}

/// The error after a piece of a good file's text is replaced.
static std::string getErrorAfter(llvm::StringRef piece,
                                 llvm::StringRef replacement) {
  std::string text = write(makeFile());
  const size_t position = text.find(piece.str());
  if (position == std::string::npos)
    return "no such piece: " + text;
  text.replace(position, piece.size(), replacement.str());
  llvm::Expected<ProfileFile> read = parseProfile(text);
  return read ? "" : llvm::toString(read.takeError());
}

TEST(ProfileTest, RefusesWhatCantBe) {
  EXPECT_EQ(getErrorAfter(R"(["kernel",3,)", R"(["kernel",5,)"),
            "expected an integer that is in range at "
            "profile.regions[0].device.rows[1][1]");
  EXPECT_EQ(getErrorAfter("31000,3,0,1,", "31000,3,0,2,"),
            "expected an integer that is in range at "
            "profile.regions[0].device.rows[1][6]");
  EXPECT_EQ(getErrorAfter("36000,3,17,null", "36000,-3,17,null"),
            "expected an integer that is in range at "
            "profile.regions[0].device.rows[2][4]");
  EXPECT_EQ(getErrorAfter(R"(["copy",4)", R"(["paste",4)"),
            "unknown kind at profile.regions[0].device.rows[2][0]");
  EXPECT_EQ(getErrorAfter("17,null,1000]", "17,null]"),
            "expected an array with one element a column at "
            "profile.regions[0].device.rows[2]");
  EXPECT_EQ(
      getErrorAfter(R"(["compile",0,1000,6000)", R"(["compile",0,1000,600)"),
      "ends before it starts at profile.regions[0].host.rows[0]");
  EXPECT_EQ(getErrorAfter(R"("calls":1}],"names")", R"("calls":0}],"names")"),
            "expected a positive number at profile.regions[0].phases[1].calls");
  EXPECT_EQ(getErrorAfter("[384,1,1]", "[384,0,1]"),
            "expected three positive sizes at "
            "profile.regions[0].launches[1].block");
  EXPECT_EQ(getErrorAfter(R"("max_threads":2048)", R"("max_threads":31)"),
            "expected 32 or more at profile.environment.limits.max_threads");
  // What isn't finite would be no JSON.
  EXPECT_EQ(getErrorAfter(R"("matrix_flops_per_s":8)",
                          R"("matrix_flops_per_s":1e-300,"x":8)"),
            "expected a positive number that can be measured at "
            "profile.environment.matrix_flops_per_s");
}

TEST(ProfileTest, RefusesWhatIsNoProfile) {
  auto getError = [](llvm::StringRef text) {
    llvm::Expected<ProfileFile> read = parseProfile(text);
    return read ? "" : llvm::toString(read.takeError());
  };
  EXPECT_NE(getError(""), "");
  EXPECT_EQ(getError("[]"), "expected object when parsing profile");
  EXPECT_EQ(getError("{}"), "missing value at profile.attnc_profile");
  EXPECT_EQ(getError(R"({"attnc_profile": 2})"),
            "this tool reads version 1 at profile.attnc_profile");
  EXPECT_EQ(getError(std::string(100000, '[')),
            "JSON nested deeper than 256 levels");
}
