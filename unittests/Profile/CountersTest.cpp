//===- CountersTest.cpp - What a GPU's counters measured ------------------===//

#include "attn/Profile/Counters.h"
#include "TestProfile.h"
#include "attn/Profile/Summary.h"
#include <gtest/gtest.h>

using namespace attn;
using namespace attn::test;

static constexpr llvm::StringLiteral kHead =
    "==PROF== Connected to process 42 (attn-run)\n"
    "what the program says, \"quoted\"\n"
    "\"ID\",\"Process Name\",\"Kernel Name\",\"Grid Size\",\"Section Name\","
    "\"Metric Name\",\"Metric Unit\",\"Metric Value\"\n";

static std::string makeRow(llvm::StringRef kernel, llvm::StringRef metric,
                           llvm::StringRef unit, llvm::StringRef value) {
  return ("\"0\",\"attn-run\",\"" + kernel + "\",\"(8, 1, 1)\",\"\",\"" +
          metric + "\",\"" + unit + "\",\"" + value + "\"\n")
      .str();
}

static ProfileFile makeFile(llvm::StringRef kernel = "fused_attn") {
  RegionBuilder builder;
  builder.kernel(kernel, 100).copy("copy", 3, 8).phase("steady");
  ProfileFile file;
  file.environment = makeCard();
  file.regions.push_back(builder.region);
  return file;
}

static constexpr llvm::StringLiteral kOccupancy =
    "sm__warps_active.avg.pct_of_peak_sustained_active";

TEST(CountersTest, AddsMeansByKernel) {
  ProfileFile file = makeFile();
  const std::string text =
      kHead.str() + makeRow("fused_attn", kOccupancy, "%", "12.25") +
      makeRow("fused_attn", kOccupancy, "%", "12.75") +
      makeRow("fused_attn", "dram__bytes_read.sum", "byte", "1,234,000") +
      makeRow("fused_attn", "dram__bytes_write.sum", "Mbyte", "2") +
      makeRow("fused_attn",
              "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",
              "%", "61") +
      makeRow("fused_attn", "smsp__cycles_active.avg", "cycle", "n/a") +
      makeRow("another", kOccupancy, "%", "99") + "==PROF== Disconnected\n";
  ASSERT_FALSE(llvm::errorToBool(addCounters(file, text)));
  const RegionSummary summary = summarize(file.environment, file.regions[0]);
  const KernelSummary &kernel = *summary.getMainKernel();
  EXPECT_NEAR(*kernel.measuredOccupancy, 0.125, 1e-12);
  EXPECT_NEAR(*kernel.measuredBytes, 3234000, 1e-6);
  EXPECT_NEAR(*kernel.measuredMatrixFraction, 0.61, 1e-12);
  EXPECT_EQ(file.regions[0].facts.size(), 1u);
  // They are kept in a file.
  std::string saved;
  llvm::raw_string_ostream os(saved);
  writeProfile(os, file);
  const ProfileFile read = llvm::cantFail(parseProfile(saved));
  EXPECT_EQ(read.regions[0].facts[0].measuredOccupancy, 0.125);
  EXPECT_NEAR(*read.regions[0].facts[0].measuredBytes, 3234000, 1e-6);
}

TEST(CountersTest, FindsTemplatesByTheirName) {
  ProfileFile file = makeFile("void flash::kernel<64, true>(Params)");
  const std::string row = makeRow("kernel_of_another<1>", kOccupancy, "%", "3");
  ASSERT_FALSE(llvm::errorToBool(
      addCounters(file, kHead.str() + row +
                            makeRow("flash::kernel", kOccupancy, "%", "7"))));
  EXPECT_NEAR(*file.regions[0].facts[0].measuredOccupancy, 0.07, 1e-12);
  // Which of two it is can't be told.
  ProfileFile unsure = makeFile("void flash::kernel<64, true>(Params)");
  EXPECT_TRUE(llvm::errorToBool(addCounters(
      unsure, kHead.str() + makeRow("flash::kernel<1>", kOccupancy, "%", "7") +
                  makeRow("flash::kernel<2>", kOccupancy, "%", "8"))));
}

TEST(CountersTest, RefusesWhatItCantRead) {
  auto refuse = [](const std::string &text) {
    ProfileFile file = makeFile();
    return llvm::toString(addCounters(file, text));
  };
  EXPECT_EQ(refuse("==PROF== Connected\n"),
            "there is no table as `ncu --csv --metrics ...` writes it");
  EXPECT_EQ(refuse("==ERROR== ERR_NVGPUCTRPERM - no permission\n"),
            "there is no table, as ncu failed: ==ERROR== ERR_NVGPUCTRPERM - no "
            "permission");
  EXPECT_EQ(refuse(kHead.str() + makeRow("fused_attn", "x", "%", "1")),
            "the table has none of the metrics " + listCounterMetrics());
  EXPECT_EQ(refuse(kHead.str() + makeRow("other", kOccupancy, "%", "1")),
            "none of its kernels is in this profile; the first is 'other'");
  EXPECT_EQ(refuse(kHead.str() + makeRow("fused_attn", kOccupancy, "%", "1,5")),
            "line 4: '1,5' is no number; ncu's table must be made with "
            "LC_ALL=C");
  EXPECT_EQ(refuse(kHead.str() + makeRow("fused_attn", kOccupancy, "", "15")),
            "line 4: unknown unit ''; ncu's --print-units=base helps");
  EXPECT_EQ(refuse(kHead.str() + "\"0\",\"cut\n"),
            "line 4: a row has fewer cells than the table's head");
}
