//===- ReportTest.cpp - JSON and table ------------------------------------===//

#include "attn/Runtime/Report.h"
#include "TestUtils.h"
#include "llvm/Support/JSON.h"
#include <limits>

using namespace attn;
using namespace attn::test;

static Report makeReport() {
  Report report;
  report.device = "Test GPU";
  report.versions = {{"attnc", "0.1.0"}};
  VariantReport naive;
  naive.variant = "naive";
  naive.target = "sm_80";
  KernelReport qk;
  qk.name = "naive_qk_s16816_bf16";
  qk.kind = Step::Kind::Launch;
  qk.calls = 2;
  qk.bytes = 1500000;
  qk.flops = 10;
  qk.time = TimeStats{2, 1, 3};
  KernelReport copy;
  copy.name = "copy a -> b";
  copy.kind = Step::Kind::Copy;
  copy.calls = 1;
  naive.kernels = {qk, copy};
  naive.time = TimeStats{20, 10, 30};
  naive.minBytes = 1000;
  naive.maxIntermediateBytes = 2000000000;
  naive.error = 0.00214;
  naive.maxAbsError = std::numeric_limits<double>::infinity();
  report.variants.push_back(std::move(naive));
  report.variants.push_back(VariantReport::failure(
      "fused", "sm_80", llvm::createStringError("no GPU")));
  return report;
}

TEST(ReportTest, Summarizes) {
  TimeStats odd = summarize({3, 1, 2});
  EXPECT_EQ(odd.median, 2);
  EXPECT_EQ(odd.min, 1);
  EXPECT_EQ(odd.max, 3);
  EXPECT_EQ(summarize({4, 1, 3, 2}).median, 2.5);
}

TEST(ReportTest, WritesTheSchema) {
  std::string text;
  llvm::raw_string_ostream os(text);
  writeJSON(os, makeReport());
  llvm::json::Value json = get(llvm::json::parse(text));
  const llvm::json::Object &root = *json.getAsObject();
  EXPECT_EQ(root.getString("device"), "Test GPU");
  EXPECT_EQ(root.getObject("versions")->getString("attnc"), "0.1.0");
  const llvm::json::Array &variants = *root.getArray("variants");
  ASSERT_EQ(variants.size(), 2u);

  const llvm::json::Object &naive = *variants[0].getAsObject();
  EXPECT_EQ(naive.getString("variant"), "naive");
  EXPECT_EQ(naive.getString("target"), "sm_80");
  EXPECT_EQ(naive.getString("status"), "ok");
  EXPECT_EQ(naive.getNumber("median_us"), 20);
  EXPECT_EQ(naive.getNumber("min_us"), 10);
  EXPECT_EQ(naive.getNumber("max_us"), 30);
  EXPECT_EQ(naive.getInteger("min_bytes"), 1000);
  EXPECT_EQ(naive.getInteger("max_intermediate_bytes"), 2000000000);
  EXPECT_EQ(naive.getNumber("error"), 0.00214);
  // Known but infinite, and unknown.
  EXPECT_TRUE(naive.getNull("max_abs_error"));
  EXPECT_TRUE(naive.getNull("lse_error"));

  const llvm::json::Object &qk = *(*naive.getArray("kernels"))[0].getAsObject();
  EXPECT_EQ(qk.getString("name"), "naive_qk_s16816_bf16");
  EXPECT_EQ(qk.getString("kind"), "kernel");
  EXPECT_EQ(qk.getInteger("calls"), 2);
  EXPECT_EQ(qk.getNumber("median_us"), 2);
  EXPECT_EQ(qk.getInteger("bytes"), 1500000);
  EXPECT_EQ(qk.getInteger("flops"), 10);
  const llvm::json::Object &copy =
      *(*naive.getArray("kernels"))[1].getAsObject();
  EXPECT_EQ(copy.getString("kind"), "copy");
  EXPECT_TRUE(copy.getNull("median_us"));

  const llvm::json::Object &fused = *variants[1].getAsObject();
  EXPECT_EQ(fused.getString("status"), "error");
  EXPECT_EQ(fused.getString("message"), "no GPU");
  EXPECT_TRUE(fused.getNull("median_us"));
  EXPECT_TRUE(fused.getNull("min_bytes"));
}

TEST(ReportTest, DescribesResources) {
  KernelResources resources;
  resources.name = "fused";
  resources.registers = 255;
  resources.sharedBytes = 49152;
  resources.localBytes = 8;
  EXPECT_EQ(describe(resources), "fused: 255 registers, 49152 bytes of shared "
                                 "memory, 8 bytes of local memory");
  resources.spillStoreBytes = 0;
  resources.spillLoadBytes = 0;
  resources.occupancy = Occupancy{2, 8, 64, "registers"};
  EXPECT_EQ(describe(resources),
            "fused: 255 registers, 49152 bytes of shared memory, 0 bytes "
            "spilled; 8 of 64 warps an SM in 2 blocks (12.5 % computed "
            "occupancy, limited by registers)");
}

TEST(ReportTest, PrintsATable) {
  std::string text;
  llvm::raw_string_ostream os(text);
  printTable(os, makeReport());
  EXPECT_TRUE(contains(text, "naive (sm_80): 2 kernels + 1 copy"));
  EXPECT_TRUE(contains(text, "naive_qk_s16816_bf16"));
  EXPECT_TRUE(contains(text, "1.5 MB"));
  EXPECT_TRUE(contains(text, "2.0 GB"));
  EXPECT_TRUE(contains(text, "2.14e-03"));
  EXPECT_TRUE(contains(text, "fused: no GPU"));
}

TEST(ReportTest, SaysWhoseKernelsRan) {
  Report report = makeReport();
  report.variants[0].target = "sm_90a";
  report.variants[0].kernelTarget = "sm_80";
  std::string table, json;
  llvm::raw_string_ostream tableStream(table), jsonStream(json);
  printTable(tableStream, report);
  writeJSON(jsonStream, report);
  EXPECT_TRUE(contains(table, "naive (sm_90a, kernels of sm_80): 2 kernels"));
  EXPECT_TRUE(contains(json, "\"kernel_target\": \"sm_80\""));
}
