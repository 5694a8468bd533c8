//===- ExpectationsTest.cpp - Guesses about a profile ---------------------===//

#include "attn/Profile/Expectations.h"
#include "TestProfile.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace attn;
using namespace attn::test;

/// One call: 5 us of copy and 95 us of a kernel at 100 % of the matrix rate.
static RegionBuilder makeRegion() {
  RegionBuilder builder;
  builder.copy("copy", 5, 1000)
      .kernel("attn", 95, makeLaunch(100, 384, 168, 200 << 10))
      .facts("attn", 1000000, 76000000000);
  return builder.phase("steady");
}

/// Whether one guess is right, and the value beside it.
static std::pair<bool, std::string>
check(llvm::StringRef guess, const ProfileEnvironment &card = makeCard()) {
  auto expectations = parseExpectations(guess);
  if (!expectations)
    return {false, llvm::toString(expectations.takeError())};
  const RegionProfile region = makeRegion().region;
  auto results =
      checkExpectations(*expectations, region, summarize(card, region));
  if (results.size() != 1)
    return {false, std::to_string(results.size()) + " results"};
  return {results[0].isRight, results[0].measured};
}

using Result = std::pair<bool, std::string>;

TEST(ExpectationsTest, ChecksEveryKey) {
  EXPECT_EQ(check("kernels=1"), Result(true, "1"));
  EXPECT_EQ(check("kernels=2"), Result(false, "1"));
  EXPECT_EQ(check("copies=0"), Result(false, "1"));
  EXPECT_EQ(check("memsets=0"), Result(true, "0"));
  EXPECT_EQ(check("time<101us"), Result(true, "100 us"));
  EXPECT_EQ(check("time<=100us"), Result(true, "100 us"));
  EXPECT_EQ(check("time<100us"), Result(false, "100 us"));
  EXPECT_EQ(check("time > 0.09 ms"), Result(true, "100 us"));
  EXPECT_EQ(check("device_time>=100000ns"), Result(true, "100 us"));
  EXPECT_EQ(check("idle<1%"), Result(true, "0 %"));
  // The kernel's and the copy's, read and written.
  EXPECT_EQ(check("bytes=1002kB"), Result(true, "1.0 MB"));
  // 12 of 64 warps.
  EXPECT_EQ(check("occupancy<20"), Result(true, "18.8 %"));
  EXPECT_EQ(check("occupancy=18.75%"), Result(true, "18.8 %"));
  EXPECT_EQ(check("matrix>=99"), Result(true, "100 %"));
  EXPECT_EQ(check("bandwidth<1"), Result(true, "0.3 %"));
  EXPECT_EQ(check("registers=168"), Result(true, "168"));
  EXPECT_EQ(check("smem=200KiB"), Result(true, "204.8 kB"));
  EXPECT_EQ(check("bound=compute"), Result(true, "compute"));
  EXPECT_EQ(check("bound=memory"), Result(false, "compute"));
  EXPECT_EQ(check("path=hgmma"), Result(true, "HGMMA"));
  EXPECT_EQ(check("path=HMMA"), Result(false, "HGMMA"));
}

TEST(ExpectationsTest, WhatIsUnknownIsWrong) {
  ProfileEnvironment card = makeCard();
  card.matrixFlopsPerSecond.reset();
  EXPECT_EQ(check("matrix<100", card), Result(false, "unknown on sm_90a"));
  EXPECT_EQ(check("bound=compute", card), Result(false, "unknown on sm_90a"));
}

TEST(ExpectationsTest, IsForOneRegion) {
  EXPECT_EQ(check("fused:kernels=1"), Result(true, "1"));
  EXPECT_EQ(check("naive:kernels=1"), Result(false, "0 results"));
  auto named = parseExpectations("fused:kernels=1,nave:kernels=1");
  ASSERT_TRUE(bool(named));
  EXPECT_EQ(llvm::toString(checkRegionNames(*named, {"naive", "fused"})),
            "--expect: 'nave:kernels=1': there is no region 'nave'; there "
            "are: naive, fused");
}

TEST(ExpectationsTest, RefusesWhatIsMalformed) {
  EXPECT_EQ(check("kernels").second,
            "--expect: 'kernels': expected KEY=VALUE, or another of < <= > >=");
  EXPECT_EQ(check("").second,
            "--expect: '': expected KEY=VALUE, or another of < <= > >=");
  EXPECT_THAT(check("kernel=1").second,
              testing::HasSubstr("unknown key 'kernel'; known are kernels, "));
  EXPECT_EQ(check("time<120").second,
            "--expect: 'time<120': '120' is not a time such as 120us (ns, us, "
            "ms, s)");
  EXPECT_THAT(check("kernels=one").second, testing::HasSubstr("a number"));
  EXPECT_THAT(check("kernels=1us").second, testing::HasSubstr("a number"));
  EXPECT_THAT(check("kernels=-1").second, testing::HasSubstr("a number"));
  EXPECT_THAT(check("kernels=1.2.3").second, testing::HasSubstr("a number"));
  EXPECT_EQ(check("bound<compute").second,
            "--expect: 'bound<compute': 'bound' is a word, which can only be "
            "=");
  EXPECT_EQ(check("bound=memroy").second,
            "--expect: 'bound=memroy': 'bound' is compute or memory, not "
            "'memroy'");
  EXPECT_THAT(check("path=").second, testing::HasSubstr("is a word"));
  EXPECT_THAT(check("kernels=1,").second, testing::HasSubstr("''"));
}
