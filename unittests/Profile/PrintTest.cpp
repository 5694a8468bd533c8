//===- PrintTest.cpp - A profile on a terminal ----------------------------===//

#include "attn/Profile/Print.h"
#include "TestProfile.h"
#include "llvm/ADT/StringExtras.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace attn;
using namespace attn::test;
using testing::HasSubstr;

static std::string print(const RegionBuilder &builder) {
  ProfileFile file;
  file.environment = makeCard();
  file.regions.push_back(builder.region);
  std::string text;
  llvm::raw_string_ostream os(text);
  printProfile(os, file, {});
  return text;
}

TEST(PrintTest, LongNamesAreTold) {
  // They differ at their ends only.
  const std::string common = "void kernel<" + std::string(500, 'x');
  RegionBuilder builder;
  builder.kernel(common + "1>()", 20).kernel(common + "2>()", 10);
  const std::string text = print(builder);
  EXPECT_THAT(text, HasSubstr("... [1]  "));
  EXPECT_THAT(text, HasSubstr("... [2]  "));
  EXPECT_THAT(text, HasSubstr("  [1] " + common + "1>()\n"));
  EXPECT_THAT(text, HasSubstr("  [2] " + common + "2>()\n"));
  // The tables stay readable.
  llvm::SmallVector<llvm::StringRef> lines;
  llvm::StringRef(text).split(lines, '\n');
  for (llvm::StringRef line : lines)
    if (line.contains("... ["))
      EXPECT_LT(line.size(), 200u);
}

TEST(PrintTest, GuessesAboutWhatDidNotRunAreWrong) {
  ProfileFile file;
  file.environment = makeCard();
  file.regions.push_back(RegionBuilder().kernel("k", 1).phase("steady").region);
  const std::vector<Expectation> guesses =
      llvm::cantFail(parseExpectations("fused:kernels=1,cudnn:kernels=1"));
  PrintOptions options;
  options.expectations = guesses;
  std::string text;
  llvm::raw_string_ostream os(text);
  EXPECT_FALSE(printProfile(os, file, options));
  EXPECT_THAT(text, testing::HasSubstr("cudnn:kernels=1  'cudnn' didn't run  "
                                       "wrong\nguesses: 1 wrong\n"));
}

TEST(PrintTest, KeepsNamesInTheirLines) {
  RegionBuilder builder("a\nb");
  builder.kernel("kernel<\"\x1b[31m\n\t\">", 20);
  const std::string text = print(builder);
  EXPECT_THAT(text, HasSubstr("a b (sm_90a)"));
  EXPECT_THAT(text, HasSubstr("  kernel<\" [31m  \">  "));
  EXPECT_FALSE(llvm::StringRef(text).contains('\x1b'));
}

TEST(PrintTest, SaysThatNothingWasSeen) {
  EXPECT_THAT(print(RegionBuilder("empty")),
              HasSubstr("empty (sm_90a): times by cupti\n"
                        "  nothing was seen on the device\n"));
}
