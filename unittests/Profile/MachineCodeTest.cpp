//===- MachineCodeTest.cpp - Which unit a kernel multiplies with ----------===//

#include "attn/Profile/MachineCode.h"
#include "attn/Profile/Profiler.h"
#include "attn/Runtime/Ptxas.h"
#include "llvm/Object/ELF.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FormatVariadic.h"
#include <gtest/gtest.h>

using namespace attn;

/// A kernel of one operation on what it loads.
static std::string makePTX(llvm::StringRef target, llvm::StringRef operation) {
  return llvm::formatv(R"(.version 8.0
.target {0}
.address_size 64
.visible .entry kernel(.param .u64 p) {{
  .reg .b64 %p;
  .reg .b32 %r<4>;
  .reg .f32 %f<4>;
  .reg .f64 %d<4>;
  ld.param.u64 %p, [p];
  ld.global.b32 %r0, [%p];
  ld.global.b32 %r1, [%p+4];
  ld.global.f32 %f0, [%p+8];
  ld.global.f64 %d0, [%p+16];
  {1}
  st.global.f32 [%p], %f0;
  st.global.f64 [%p+16], %d0;
  st.global.b32 [%p+4], %r0;
  ret;
}
)",
                       target, operation);
}

/// The path in ptxas's machine code; skips the test without ptxas.
static std::string getPath(const std::string &ptx, llvm::StringRef kernel,
                           bool &isSkipped) {
  llvm::Expected<PtxasResult> assembled = runPtxas(ptx, getPTXTarget(ptx));
  if (!assembled) {
    isSkipped = !findPtxas();
    return llvm::toString(assembled.takeError());
  }
  EXPECT_TRUE(isCubin(assembled->cubin));
  llvm::Expected<MatrixPaths> paths = readMatrixPaths(assembled->cubin);
  if (!paths)
    return llvm::toString(paths.takeError());
  EXPECT_EQ(paths->size(), 1u);
  return paths->lookup(kernel);
}

class MachineCodeTest : public testing::Test {
protected:
  void SetUp() override {
    llvm::Expected<std::string> ptxas = findPtxas();
    if (!ptxas)
      GTEST_SKIP() << llvm::toString(ptxas.takeError());
  }

  void expectPath(llvm::StringRef target, llvm::StringRef operation,
                  llvm::StringRef path) {
    bool isSkipped = false;
    EXPECT_EQ(getPath(makePTX(target, operation), "kernel", isSkipped), path)
        << operation.str();
  }
};

TEST_F(MachineCodeTest, ReadsThePathFromMachineCode) {
  for (const char *target : {"sm_80", "sm_90a"}) {
    expectPath(target, "add.f32 %f0, %f0, %f0;", "none");
    expectPath(target, "fma.rn.f32 %f0, %f0, %f0, %f0;", "FFMA");
    expectPath(target,
               "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 "
               "{%f0, %f1, %f2, %f3}, {%r0, %r1}, {%r0}, "
               "{%f0, %f0, %f0, %f0};",
               "HMMA");
    expectPath(target,
               "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 "
               "{%d0, %d1}, {%d0}, {%d0}, {%d0, %d0};",
               "DMMA");
    expectPath(target,
               "mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 "
               "{%r0, %r1, %r2, %r3}, {%r0, %r1}, {%r0}, "
               "{%r0, %r0, %r0, %r0};",
               "IMMA");
  }
  const std::string wgmma = "wgmma.fence.sync.aligned;\n"
                            "wgmma.mma_async.sync.aligned.m64n8k{0} "
                            "{%f0, %f1, %f2, %f3}, %p, %p, 1, 1, 1{1};\n"
                            "wgmma.commit_group.sync.aligned;\n"
                            "wgmma.wait_group.sync.aligned 0;";
  auto format = [&](const char *shapeAndTypes, const char *more) {
    std::string text = wgmma;
    text.replace(text.find("{0}"), 3, shapeAndTypes);
    text.replace(text.find("{1}"), 3, more);
    return text;
  };
  expectPath("sm_90a", format("16.f32.f16.f16", ", 0, 0"), "HGMMA");
  expectPath("sm_90a", format("32.f32.e4m3.e4m3", ""), "QGMMA");
}

TEST_F(MachineCodeTest, ProbesMultiplyOnTheMatrixUnits) {
  bool isSkipped = false;
  EXPECT_EQ(getPath(getMatrixProbePTX("sm_80"), "attn_matrix_probe", isSkipped),
            "HMMA");
  EXPECT_EQ(
      getPath(getMatrixProbePTX("sm_90a"), "attn_matrix_probe", isSkipped),
      "HGMMA");
  for (const char *target : {"sm_80", "sm_90a"}) {
    llvm::Expected<PtxasResult> probe =
        runPtxas(getMatrixProbePTX(target), target);
    ASSERT_TRUE(bool(probe)) << llvm::toString(probe.takeError());
    EXPECT_TRUE(probe->performanceLosses.empty()) << probe->log;
    EXPECT_EQ(probe->kernels.at(0).spillStoreBytes, 0);
  }
}

/// The lowest 9 bits of a kernel's instructions, which say what they do.
static std::vector<uint64_t> readOpcodes(llvm::StringRef cubin,
                                         llvm::StringRef kernel) {
  std::vector<uint64_t> opcodes;
  auto elf = llvm::cantFail(
      llvm::object::ELFFile<llvm::object::ELF64LE>::create(cubin));
  for (const auto &section : llvm::cantFail(elf.sections())) {
    if (llvm::cantFail(elf.getSectionName(section)) !=
        (".text." + kernel).str())
      continue;
    llvm::ArrayRef<uint8_t> code =
        llvm::cantFail(elf.getSectionContents(section));
    for (; code.size() >= 16; code = code.drop_front(16))
      opcodes.push_back(llvm::support::endian::read64le(code.data()) & 0x1FF);
  }
  return opcodes;
}

/// All products that are counted must be in the loop: on an H200, a loop of
/// which ptxas had moved them out once showed 14889 TFLOP/s.
TEST_F(MachineCodeTest, ProbesKeepTheirLoop) {
  constexpr uint64_t kBranch = 0x147, kHMMA = 0x03C, kHGMMA = 0x1F0;
  for (auto [target, product] :
       {std::pair("sm_80", kHMMA), std::pair("sm_90a", kHGMMA)}) {
    const PtxasResult probe =
        llvm::cantFail(runPtxas(getMatrixProbePTX(target), target));
    const std::vector<uint64_t> opcodes =
        readOpcodes(probe.cubin, "attn_matrix_probe");
    EXPECT_EQ(llvm::count(opcodes, product), 8) << target;
    auto last = llvm::find(llvm::reverse(opcodes), product).base();
    auto branch = std::find(last, opcodes.end(), kBranch);
    EXPECT_LE(branch - last, 4) << target;
  }
}

TEST(MatrixPathTest, ReadsPTX) {
  const MatrixPaths paths = readMatrixPathsOfPTX(
      getMatrixProbePTX("sm_90a") + makePTX("sm_90a", "fma.rn.f32 %f0;"));
  EXPECT_EQ(paths.lookup("attn_matrix_probe"), "HGMMA");
  EXPECT_EQ(paths.lookup("kernel"), "FFMA");
  EXPECT_EQ(readMatrixPathsOfPTX(
                makePTX("sm_90a", "wgmma.mma_async.sync.aligned.m64n8k32.f32."
                                  "e4m3.e4m3 {%f0}, %p, %p, 1, 1, 1;"))
                .lookup("kernel"),
            "QGMMA");
  EXPECT_EQ(getPTXTarget(getMatrixProbePTX("sm_80")), "sm_80");
  EXPECT_TRUE(readMatrixPathsOfPTX("no PTX").empty());
}

TEST(MatrixPathTest, RefusesWhatIsNoCubin) {
  auto refuses = [](llvm::StringRef image) {
    llvm::Expected<MatrixPaths> paths = readMatrixPaths(image);
    llvm::consumeError(paths.takeError());
    return !paths;
  };
  EXPECT_TRUE(refuses(""));
  EXPECT_TRUE(refuses("\x7f"
                      "ELF"));
  EXPECT_TRUE(refuses(std::string(1000, '\0')));
  EXPECT_FALSE(isCubin(".version 8.0"));
}
