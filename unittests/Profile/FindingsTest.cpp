//===- FindingsTest.cpp - What a profile means ----------------------------===//
//
// Each rule: a profile where it fires and one beside it where it must not.
//
//===----------------------------------------------------------------------===//

#include "attn/Profile/Findings.h"
#include "TestProfile.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace attn;
using namespace attn::test;
using testing::HasSubstr;

static std::optional<Finding> find(llvm::StringRef rule,
                                   const RegionBuilder &builder,
                                   ProfileEnvironment card = makeCard()) {
  for (Finding &finding : explain(card, builder.region))
    if (finding.rule == rule)
      return finding;
  return std::nullopt;
}

static bool fires(llvm::StringRef rule, const RegionBuilder &builder,
                  ProfileEnvironment card = makeCard()) {
  return find(rule, builder, std::move(card)).has_value();
}

TEST(FindingsTest, NamesAreUnique) {
  llvm::StringSet<> names;
  for (const FindingRule &rule : getFindingRules())
    EXPECT_TRUE(names.insert(rule.name).second);
}

TEST(FindingsTest, AreDocumented) {
  auto docs = llvm::MemoryBuffer::getFile(PROFILE_DOCS);
  ASSERT_TRUE(bool(docs));
  for (const FindingRule &rule : getFindingRules())
    EXPECT_TRUE((*docs)->getBuffer().contains(
        llvm::formatv("| `{0}` | {1} |\n", rule.name, rule.summary).str()))
        << rule.name.str();
}

TEST(FindingsTest, HiddenCopy) {
  RegionBuilder naive;
  for (int call = 0; call < 2; ++call)
    naive.kernel("scale", 10)
        .copy("copy t1 -> t2", 30, 1 << 20)
        .kernel("mask", 60);
  naive.phase("steady", 2);
  std::optional<Finding> finding = find("hidden-copy", naive);
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->text, HasSubstr("'copy t1 -> t2' runs once a call "
                                       "and takes 30.0 us, 30 % of"));
  EXPECT_THAT(finding->text, HasSubstr("made for 'mask'"));
  EXPECT_NEAR(*finding->costUs, 30, 1e-9);
  EXPECT_THAT(format(*finding, 32), HasSubstr("In 32 layers: 960 us."));
  EXPECT_EQ(format(*finding, 0), finding->text);

  // The table has the whole name.
  RegionBuilder templates;
  templates.copy(std::string(5000, 'x'), 30, 1 << 20).phase("steady");
  finding = find("hidden-copy", templates);
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->text,
              HasSubstr("Hidden copy: '" + std::string(97, 'x') + "...' runs"));

  RegionBuilder inplace;
  inplace.kernel("scale", 10).kernel("mask", 60).phase("steady");
  EXPECT_FALSE(fires("hidden-copy", inplace));
}

TEST(FindingsTest, CopyForSeveralKernelsNamesNone) {
  RegionBuilder builder;
  builder.copy("c", 1, 8).kernel("a", 1).copy("c", 1, 8).kernel("b", 1);
  EXPECT_THAT(find("hidden-copy", builder)->text,
              testing::Not(HasSubstr("made for")));
}

TEST(FindingsTest, Fp32Product) {
  RegionBuilder math;
  math.kernel("math_qk", 1000).facts("math_qk", 1 << 20, 80000000000, "FFMA");
  std::optional<Finding> finding = find("fp32-product", math);
  ASSERT_TRUE(finding);
  // 80 GFLOP at 800 TFLOP/s.
  EXPECT_THAT(finding->text, HasSubstr("80.0 GFLOP in 100 us"));
  EXPECT_NEAR(*finding->costUs, 900, 1e-6);

  RegionBuilder matrix;
  matrix.kernel("qk", 1000).facts("qk", 1 << 20, 80000000000, "HMMA");
  EXPECT_FALSE(fires("fp32-product", matrix));
  // A softmax uses FFMA and has nothing to do on the matrix units.
  RegionBuilder softmax;
  softmax.kernel("softmax", 1000).facts("softmax", 1 << 20, 3 << 20, "FFMA");
  EXPECT_FALSE(fires("fp32-product", softmax));
  // Of a foreign kernel nothing but its name is known.
  RegionBuilder foreign;
  foreign.kernel("volta_sgemm_128x64_tn", 1000);
  EXPECT_THAT(find("fp32-product", foreign)->text,
              HasSubstr("read from its name"));
}

TEST(FindingsTest, MaskRebuilt) {
  RegionBuilder math;
  for (int call = 0; call < 3; ++call)
    math.kernel("math_mask_ones_i1", 2)
        .kernel("math_mask_rule_i1", 3)
        .kernel("math_add_mask_f32", 50);
  math.phase("steady", 3);
  std::optional<Finding> finding = find("mask-rebuilt", math);
  ASSERT_TRUE(finding);
  EXPECT_NEAR(*finding->costUs, 5, 1e-9);
  EXPECT_THAT(finding->text, testing::Not(HasSubstr("math_add_mask")));

  // Once for many calls is no rebuilding.
  RegionBuilder once;
  once.kernel("math_mask_ones_i1", 2).kernel("x", 1).kernel("x", 1);
  once.phase("steady", 2);
  EXPECT_FALSE(fires("mask-rebuilt", once));
}

TEST(FindingsTest, ScoreMatrix) {
  auto make = [](int64_t moved, int64_t intermediate) {
    RegionBuilder builder;
    builder.kernel("qk", 100).facts("qk", moved, 1000);
    builder.region.minBytes = 4000000;
    builder.region.maxIntermediateBytes = intermediate;
    return builder;
  };
  std::optional<Finding> finding =
      find("score-matrix", make(84000000, 16777216));
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->text, HasSubstr("a call moves 84.0 MB, a fused kernel "
                                       "4.0 MB, 21 times less"));
  // 80 MB at 4 TB/s.
  EXPECT_NEAR(*finding->costUs, 20, 1e-9);
  EXPECT_FALSE(fires("score-matrix", make(4000000, 0)));
  // Partial results of a split kernel.
  EXPECT_FALSE(fires("score-matrix", make(5000000, 500000)));
  // Where the bandwidth isn't known, the cost is in bytes.
  ProfileEnvironment cpu = makeCard();
  cpu.bandwidthBytesPerSecond = std::nullopt;
  finding = find("score-matrix", make(84000000, 16777216), cpu);
  ASSERT_TRUE(finding);
  EXPECT_FALSE(finding->costUs);
  EXPECT_EQ(finding->costBytes, 80000000);
  EXPECT_THAT(format(*finding, 32), HasSubstr("In 32 layers: 2.6 GB."));
  EXPECT_THAT(format(*finding, 1), HasSubstr("In 1 layer: 80.0 MB."));
  // Nothing must move where there are no queries.
  RegionBuilder empty = make(84000000, 16777216);
  empty.region.minBytes = 0;
  EXPECT_FALSE(fires("score-matrix", empty));
}

TEST(FindingsTest, LaunchBound) {
  auto make = [](double kernelUs, double idleUs) {
    RegionBuilder builder;
    for (int i = 0; i < 10; ++i)
      builder.host(HostActivity::Launch, 4).kernel("k", kernelUs).idle(idleUs);
    return builder.phase("steady");
  };
  std::optional<Finding> finding = find("launch-bound", make(2, 3));
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->text, HasSubstr("10 kernels a call of 2.00 us each, and "
                                       "nothing runs in 60 % of the time. A "
                                       "launch takes 4.00 us"));
  EXPECT_NEAR(*finding->costUs, 30, 1e-9);
  EXPECT_FALSE(fires("launch-bound", make(2, 0.1)));
  EXPECT_FALSE(fires("launch-bound", make(100, 60)));
}

/// FlashAttention-2's 13 % at a speed that is a share of the card's.
static RegionBuilder makeFlash(double us) {
  RegionBuilder builder;
  // 80 GFLOP are 100 us of 800 TFLOP/s, 40 MB 10 us of 4 TB/s.
  builder.kernel("flash", us, makeLaunch(1000, 128, 255, 40 << 10))
      .facts("flash", 40000000, 80000000000, "HMMA");
  return builder;
}

TEST(FindingsTest, LowOccupancyThatIsFine) {
  std::optional<Finding> finding = find("low-occupancy-fine", makeFlash(200));
  ASSERT_TRUE(finding);
  EXPECT_THAT(
      finding->text,
      HasSubstr("'flash' has 12.5 % (computed): 2 blocks of 128 threads "
                "an SM, limited by registers (255 a thread)"));
  EXPECT_THAT(finding->text, HasSubstr("50 % of the matrix rate and 5.0 % of "
                                       "the bandwidth"));
  EXPECT_FALSE(fires("low-occupancy", makeFlash(200)));
  EXPECT_FALSE(fires("low-occupancy-fine", makeFlash(1000)));
  // In between nothing is claimed.
  EXPECT_FALSE(fires("low-occupancy-fine", makeFlash(400)));
  EXPECT_FALSE(fires("low-occupancy", makeFlash(400)));
  // The half of FLOPs that a mask hides reaches no rate.
  RegionBuilder dense = makeFlash(200);
  dense.region.facts[0].isDense = true;
  EXPECT_FALSE(fires("low-occupancy-fine", dense));
}

TEST(FindingsTest, LowOccupancyThatIsNot) {
  EXPECT_TRUE(fires("low-occupancy", makeFlash(1000)));
  // Nothing to compare with.
  ProfileEnvironment card = makeCard();
  card.matrixFlopsPerSecond.reset();
  EXPECT_FALSE(fires("low-occupancy", makeFlash(1000), card));
  // 8 blocks of 8 warps: full.
  RegionBuilder full;
  full.kernel("flash", 1000, makeLaunch(1000, 256, 32))
      .facts("flash", 40000000, 80000000000, "HMMA");
  EXPECT_FALSE(fires("low-occupancy", full));
}

TEST(FindingsTest, ZeroOccupancy) {
  auto make = [](int64_t shared) {
    RegionBuilder builder;
    builder.kernel("cutlass", 100, makeLaunch(1000, 128, 128, shared));
    return builder;
  };
  std::optional<Finding> finding = find("zero-occupancy", make(52 << 10));
  ASSERT_TRUE(finding);
  // 4 blocks by shared memory and by registers, 4 warps each.
  EXPECT_THAT(finding->text, HasSubstr("takes 52 KiB of shared memory. It opts "
                                       "in to more, and 4 blocks fit on an "
                                       "SM: 25 %"));
  EXPECT_FALSE(fires("zero-occupancy", make(48 << 10)));
}

TEST(FindingsTest, LocalMemory) {
  LaunchConfig launch = makeLaunch(1000);
  RegionBuilder clean;
  clean.kernel("k", 10, launch);
  EXPECT_FALSE(fires("local-memory", clean));
  launch.localBytes = 16;
  RegionBuilder spilled;
  spilled.kernel("k", 10, launch);
  EXPECT_TRUE(fires("local-memory", spilled));
}

TEST(FindingsTest, FirstCall) {
  auto make = [](double firstUs) {
    RegionBuilder builder;
    builder.host(HostActivity::Compile, firstUs / 2).idle(firstUs);
    builder.phase("first").kernel("k", 100).kernel("k", 100);
    return builder.phase("steady", 2);
  };
  std::optional<Finding> finding = find("first-call", make(50000));
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->text, HasSubstr("it took 50.0 ms, 500 times a later "
                                       "one (compile 25.0 ms)."));
  EXPECT_THAT(format(*finding, 32),
              HasSubstr("In 32 layers of one shape: 49.9 ms, once."));
  EXPECT_FALSE(fires("first-call", make(250)));
  // Of no queries.
  RegionBuilder empty;
  empty.idle(50000).phase("first").idle(0.05).phase("steady");
  EXPECT_FALSE(fires("first-call", empty));
}

TEST(FindingsTest, PlanningPerCall) {
  auto make = [](int plans) {
    RegionBuilder builder;
    for (int call = 0; call < 4; ++call) {
      if (call < plans)
        builder.host(HostActivity::Plan, 200);
      builder.idle(200).kernel("k", 50);
    }
    return builder.phase("steady", 4);
  };
  std::optional<Finding> finding = find("planning", make(4));
  ASSERT_TRUE(finding);
  EXPECT_NEAR(*finding->costUs, 200, 1e-9);
  EXPECT_FALSE(fires("planning", make(1)));
}

TEST(FindingsTest, Waves) {
  // 4 blocks of 512 threads an SM, 400 at once.
  auto make = [](int64_t blocks) {
    RegionBuilder builder;
    builder.kernel("k", 100, makeLaunch(blocks, 512, 32));
    return builder;
  };
  std::optional<Finding> finding = find("waves", make(440));
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->text, HasSubstr("440 blocks, 400 fit at once: 1.10 "
                                       "waves take as long as 2"));
  EXPECT_NEAR(*finding->costUs, 45, 1e-9);
  EXPECT_FALSE(fires("waves", make(400)));
  EXPECT_FALSE(fires("waves", make(720)));
  // A persistent kernel's one block an SM.
  EXPECT_FALSE(fires("waves", make(100)));
  EXPECT_THAT(find("waves", make(25))->text,
              HasSubstr("25 blocks for 100 multiprocessors"));
}

TEST(FindingsTest, Imbalance) {
  auto make = [](double imbalance, int64_t blocks) {
    RegionBuilder builder;
    builder.kernel("causal", 100, makeLaunch(blocks, 512, 32))
        .facts("causal", 1000, 1000);
    builder.region.facts[0].workImbalance = imbalance;
    return builder;
  };
  std::optional<Finding> finding = find("imbalance", make(2, 400));
  ASSERT_TRUE(finding);
  // One wave: all blocks wait for one that takes twice the mean.
  EXPECT_NEAR(*finding->costUs, 50, 1e-9);
  EXPECT_FALSE(fires("imbalance", make(1.1, 400)));
  EXPECT_FALSE(fires("imbalance", make(2, 4000)));
}

TEST(FindingsTest, Clock) {
  RegionBuilder builder;
  builder.kernel("k", 100);
  EXPECT_FALSE(fires("clock", builder));
  ProfileEnvironment card = makeCard();
  card.clockMHz = 1500;
  card.throttleReasons = {"power cap"};
  std::optional<Finding> finding = find("clock", builder, card);
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->text, HasSubstr("1500 of 1980 MHz (power cap)"));
  EXPECT_NEAR(*finding->costUs, 100 * (1 - 1500 / 1980.0), 1e-9);
  // A reason that has no effect costs nothing that could be told.
  card.clockMHz = 1980;
  EXPECT_FALSE(find("clock", builder, card)->costUs);
}

TEST(FindingsTest, UnseenWork) {
  auto make = [](double idleUs) {
    RegionBuilder builder;
    return builder.kernel("k", 100).idle(idleUs).phase("steady");
  };
  ProfileEnvironment cpu = makeCard();
  cpu.isGPU = false;
  std::optional<Finding> finding = find("unseen-work", make(300), cpu);
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->text, HasSubstr("75 % of the time is called idle"));
  EXPECT_FALSE(fires("unseen-work", make(10), cpu));
  // A launch, beside next to nothing.
  RegionBuilder empty;
  EXPECT_FALSE(
      fires("unseen-work", empty.kernel("k", 2).idle(5).phase("steady"), cpu));
  // CUPTI sees all.
  EXPECT_FALSE(fires("unseen-work", make(300)));
}

TEST(FindingsTest, FormatsDurations) {
  EXPECT_EQ(formatDuration(0), "0.00 ns");
  EXPECT_EQ(formatDuration(0.5), "500 ns");
  EXPECT_EQ(formatDuration(9.994), "9.99 us");
  EXPECT_EQ(formatDuration(94), "94.0 us");
  EXPECT_EQ(formatDuration(1500), "1.50 ms");
  EXPECT_EQ(formatDuration(2e6), "2.00 s");
}

TEST(FindingsTest, FormatsFlops) {
  EXPECT_EQ(formatFlops(0), "0");
  EXPECT_EQ(formatFlops(999), "999");
  EXPECT_EQ(formatFlops(4900000), "4.90 M");
  EXPECT_EQ(formatFlops(34359738368), "34.4 G");
}
