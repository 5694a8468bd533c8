//===- SummaryTest.cpp - Totals of a profiled region ----------------------===//

#include "attn/Profile/Summary.h"
#include "TestProfile.h"
#include <gtest/gtest.h>

using namespace attn;
using namespace attn::test;

TEST(SummaryTest, TotalsAddUpToTheWallTime) {
  RegionBuilder builder;
  builder.host(HostActivity::Compile, 100).kernel("a", 500).phase("first");
  for (int call = 0; call < 2; ++call)
    builder.host(HostActivity::Launch, 3 + call)
        .idle(4)
        .kernel("a", 10 + 10 * call)
        .copy("c", 5, 4000)
        .kernel("b", 20);
  builder.phase("steady", 2);
  const RegionSummary summary = summarize(makeCard(), builder.region);
  EXPECT_EQ(summary.calls, 2);
  EXPECT_NEAR(summary.wallUs, 88, 1e-9);
  EXPECT_NEAR(summary.busyUs, 80, 1e-9);
  EXPECT_NEAR(summary.idleUs, 8, 1e-9);
  EXPECT_NEAR(summary.overlapUs, 0, 1e-9);
  EXPECT_EQ(summary.getCountPerCall(DeviceActivity::Kernel), 2);
  EXPECT_EQ(summary.getCountPerCall(DeviceActivity::Copy), 1);
  // The greatest total first; the first call's launch isn't in it.
  ASSERT_EQ(summary.kernels.size(), 3u);
  EXPECT_EQ(summary.kernels[0].name, "b");
  EXPECT_EQ(summary.kernels[1].name, "a");
  EXPECT_NEAR(summary.kernels[1].time.median, 15, 1e-9);
  EXPECT_NEAR(summary.kernels[1].time.max, 20, 1e-9);
  EXPECT_NEAR(summary.kernels[1].totalUs, 30, 1e-9);
  // A copy reads what it writes.
  EXPECT_EQ(summary.kernels[2].bytes, 8000);
  EXPECT_NEAR(*summary.firstCallUs, 500, 1e-9);
  EXPECT_EQ(summary.host.at(HostActivity::Launch).count, 2);
  EXPECT_NEAR(summary.host.at(HostActivity::Launch).medianUs, 3.5, 1e-9);
  EXPECT_NEAR(summary.setup.at(HostActivity::Compile).totalUs, 100, 1e-9);
  EXPECT_FALSE(summary.host.count(HostActivity::Compile));
}

TEST(SummaryTest, CountsWhatRunsSideBySideOnce) {
  RegionBuilder builder;
  builder.kernel("a", 10).kernel("b", 10);
  // b starts with a, on another stream.
  builder.region.device[1].stream = 4;
  builder.region.device[1].startNs = builder.region.device[0].startNs;
  const RegionSummary summary = summarize(makeCard(), builder.region);
  EXPECT_NEAR(summary.wallUs, 20, 1e-9);
  EXPECT_NEAR(summary.busyUs, 20, 1e-9);
  EXPECT_NEAR(summary.overlapUs, 10, 1e-9);
  EXPECT_NEAR(summary.idleUs, 0, 1e-9);
}

TEST(SummaryTest, SeparatesLaunchesOfOneName) {
  RegionBuilder builder;
  builder.kernel("a", 10, makeLaunch(1)).kernel("a", 20, makeLaunch(2));
  EXPECT_EQ(summarize(makeCard(), builder.region).kernels.size(), 2u);
}

TEST(SummaryTest, FindsTheSideOfTheRoofline) {
  auto getBound = [](int64_t bytes, int64_t flops, llvm::StringRef path) {
    RegionBuilder builder;
    builder.kernel("k", 100).facts("k", bytes, flops, path);
    return summarize(makeCard(), builder.region).kernels.front();
  };
  // The ridge lies at 800e12 / 4e12 = 200 FLOP a byte.
  KernelSummary below = getBound(100000000, 19900000000, "HGMMA");
  EXPECT_EQ(below.bound, Bound::Memory);
  EXPECT_NEAR(*below.bandwidthFraction, 0.25, 1e-12);
  EXPECT_NEAR(*below.matrixFraction, 0.24875, 1e-12);
  EXPECT_EQ(getBound(100000000, 20100000000, "HGMMA").bound, Bound::Compute);
  // 8 bits at twice the rate: 400.
  EXPECT_EQ(getBound(100000000, 39900000000, "QGMMA").bound, Bound::Memory);
  EXPECT_NEAR(*getBound(100000000, 40000000000, "QGMMA").matrixFraction, 0.25,
              1e-12);
  // Off the matrix units at 50e12 / 4e12 = 12.5.
  EXPECT_EQ(getBound(100000000, 1300000000, "FFMA").bound, Bound::Compute);
  EXPECT_EQ(getBound(100000000, 1200000000, "FFMA").bound, Bound::Memory);
}

TEST(SummaryTest, DoesNotGuessRates) {
  RegionBuilder builder;
  builder.kernel("k", 100).facts("k", 1000, 1000);
  ProfileEnvironment card = makeCard();
  card.matrixFlopsPerSecond.reset();
  const RegionSummary summary = summarize(card, builder.region);
  EXPECT_FALSE(summary.kernels[0].bound);
  EXPECT_FALSE(summary.kernels[0].matrixFraction);
  EXPECT_TRUE(summary.kernels[0].bandwidthFraction);
}

TEST(SummaryTest, ComputesOccupancyWithTheOptInLimit) {
  RegionBuilder builder;
  // 128 threads of 255 registers: 2 blocks of 4 warps, 8 of 64 warps, 13 % in
  // the published table of FlashAttention-2; 64 KB of shared memory is more
  // than the default limit.
  builder.kernel("flash", 100, makeLaunch(400, 128, 255, 64 << 10));
  const KernelSummary kernel =
      summarize(makeCard(), builder.region).kernels.front();
  EXPECT_EQ(kernel.occupancy->blocksPerSM, 2);
  EXPECT_EQ(kernel.occupancy->getFraction(), 0.125);
  EXPECT_EQ(kernel.occupancy->limit, "registers");
  EXPECT_NEAR(*kernel.waves, 2, 1e-12);
}

TEST(SummaryTest, GuessesThePathFromTheName) {
  EXPECT_EQ(guessMatrixPath("ampere_bf16_s16816gemm_bf16_128x128_tn"), "HMMA");
  EXPECT_EQ(guessMatrixPath("volta_sgemm_128x64_tn"), "FFMA");
  EXPECT_EQ(guessMatrixPath("sm80_xmma_fprop_tensorop"), "HMMA");
  EXPECT_EQ(guessMatrixPath("fused_attn_wgmma_bf16_d64"), "HGMMA");
  EXPECT_EQ(guessMatrixPath("fused_attn_wgmma_f8E4M3FN_d64"), "QGMMA");
  EXPECT_EQ(guessMatrixPath("elementwise_kernel"), "");
  RegionBuilder builder;
  builder.kernel("volta_sgemm_128x64_tn", 1);
  const KernelSummary kernel =
      summarize(makeCard(), builder.region).kernels.front();
  EXPECT_EQ(kernel.path, "FFMA");
  EXPECT_EQ(kernel.pathSource, "name");
}

TEST(SummaryTest, LeavesInputsOutOfTheFirstCall) {
  RegionBuilder builder;
  builder.idle(300).phase("compile").idle(1000).phase("inputs");
  builder.kernel("k", 20).phase("first").kernel("k", 10).phase("steady");
  EXPECT_NEAR(*summarize(makeCard(), builder.region).firstCallUs, 320, 1e-9);
}

TEST(SummaryTest, TellsCallsApart) {
  // From the start of a call to that of the next: 30, 40, ..., 80.
  RegionBuilder builder;
  for (int call = 0; call < 6; ++call)
    builder.kernel("qk", 10).kernel("pv", 15).idle(5 + 10 * call);
  builder.phase("steady", 6);
  const RegionSummary summary = summarize(makeCard(), builder.region);
  ASSERT_TRUE(summary.callUs);
  // The last one has nothing behind it: 30, 40, 50, 60, 70, 25.
  EXPECT_NEAR(summary.callUs->median, 45, 1e-9);
  EXPECT_NEAR(summary.callUs->low, 27.5, 1e-9);
  EXPECT_NEAR(summary.callUs->high, 65, 1e-9);
  EXPECT_NEAR(*summary.getSpread(), 37.5 / 45, 1e-9);

  // Calls that don't run the same have no boundaries.
  builder.region.phases.back().calls = 4;
  EXPECT_FALSE(summarize(makeCard(), builder.region).callUs);
  builder.region.phases.back().calls = 6;
  std::swap(builder.region.device[2].name, builder.region.device[3].name);
  EXPECT_FALSE(summarize(makeCard(), builder.region).callUs);
  // Two have no spread.
  RegionBuilder two;
  two.kernel("k", 10).kernel("k", 12).phase("steady", 2);
  EXPECT_FALSE(summarize(makeCard(), two.region).getSpread());
}

TEST(SummaryTest, TakesEmptyRegions) {
  const RegionSummary summary = summarize(makeCard(), RegionProfile());
  EXPECT_EQ(summary.wallUs, 0);
  EXPECT_TRUE(summary.kernels.empty());
  EXPECT_FALSE(summary.getMainKernel());
}
