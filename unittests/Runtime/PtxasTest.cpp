//===- PtxasTest.cpp - Assembling and reading resources -------------------===//

#include "attn/Runtime/Ptxas.h"
#include "TestUtils.h"
#include "attn/Runtime/Manifest.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdlib>

using namespace attn;
using namespace attn::test;

TEST(PtxasTest, ReadsTheLog) {
  const PtxasLog log = parsePtxasLog(
      R"(ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'fused' for 'sm_80'
ptxas info    : Function properties for fused
    16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers, 2048 bytes smem, 400 bytes cmem[0]
ptxas info    : Compile time = 12.3 ms
ptxas info    : Compiling entry function 'naive' for 'sm_80'
ptxas info    : Function properties for naive
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 40 registers, 360 bytes cmem[0]
)");
  const std::vector<KernelResources> &kernels = log.kernels;
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_EQ(kernels[0].name, "fused");
  EXPECT_EQ(kernels[0].registers, 255);
  EXPECT_EQ(kernels[0].sharedBytes, 2048);
  EXPECT_EQ(kernels[0].localBytes, 16);
  EXPECT_EQ(kernels[0].spillStoreBytes, 8);
  EXPECT_EQ(kernels[0].spillLoadBytes, 12);
  EXPECT_EQ(kernels[1].name, "naive");
  EXPECT_EQ(kernels[1].registers, 40);
  EXPECT_EQ(kernels[1].sharedBytes, 0);
  EXPECT_TRUE(log.performanceLosses.empty());
}

TEST(PtxasTest, ReadsPerformanceLosses) {
  const PtxasLog log = parsePtxasLog(
      R"(ptxas info    : (C7512) Potential Performance Loss: wgmma.mma_async instructions are serialized due to insufficient register resources for the function 'fused'
ptxas info    : (C7505) Potential Performance Loss: 'setmaxnreg' ignored to maintain minimum register requirements.
ptxas info    : Compiling entry function 'fused' for 'sm_90a'
ptxas info    : Used 168 registers
)");
  ASSERT_EQ(log.performanceLosses.size(), 2u);
  EXPECT_EQ(log.performanceLosses[0].kernel, "fused");
  EXPECT_EQ(log.performanceLosses[0].text,
            "(C7512) wgmma.mma_async instructions are serialized due to "
            "insufficient register resources for the function 'fused'");
  EXPECT_EQ(log.performanceLosses[1].kernel, "");
  EXPECT_EQ(log.performanceLosses[1].text,
            "(C7505) 'setmaxnreg' ignored to maintain minimum register "
            "requirements.");
  ASSERT_EQ(log.kernels.size(), 1u);
  EXPECT_EQ(log.kernels[0].registers, 168);
}

TEST(PtxasTest, IgnoresWhatIsNotALog) {
  for (const char *text : {"", "Used many registers\nregisters"}) {
    EXPECT_TRUE(parsePtxasLog(text).kernels.empty());
    EXPECT_TRUE(parsePtxasLog(text).performanceLosses.empty());
  }
}

TEST(PtxasTest, AddsDynamicSharedMemoryAndOccupancy) {
  KernelResources resources;
  resources.name = "fused";
  resources.registers = 255;
  resources.sharedBytes = 1024;
  Kernel kernel = {"fused", {128, 1, 1}, {1, 1, 1}, 48 << 10, 1024, ""};
  completeResources(resources, kernel, "sm_80");
  EXPECT_EQ(resources.sharedBytes, 49 << 10);
  ASSERT_TRUE(resources.occupancy);
  EXPECT_EQ(resources.occupancy->blocksPerSM, 2);
  EXPECT_EQ(resources.occupancy->limit, "registers");
}

TEST(PtxasTest, SaysWhereItLooked) {
  setenv("ATTNC_PTXAS", "/nonexistent/ptxas", /*overwrite=*/1);
  EXPECT_TRUE(contains(getError(findPtxas()), "/nonexistent/ptxas"));
  unsetenv("ATTNC_PTXAS");
}

TEST(PtxasTest, GoesWithoutThreadsWhereNoneAreKnown) {
  // As CUDA 12.0's: refuses the option, else copies its input.
  llvm::SmallString<128> path;
  int fd;
  ASSERT_FALSE(llvm::sys::fs::createTemporaryFile("ptxas", "sh", fd, path));
  llvm::FileRemover remover(path);
  {
    llvm::raw_fd_ostream os(fd, /*shouldClose=*/true);
    os << R"(#!/bin/sh
for arg; do
  [ "$arg" = --split-compile ] && echo "Unknown option 'split-compile'" && exit 1
done
cp "$6" "$5"
)";
  }
  ASSERT_FALSE(llvm::sys::fs::setPermissions(path, llvm::sys::fs::owner_all));
  setenv("ATTNC_PTXAS", path.c_str(), /*overwrite=*/1);
  EXPECT_EQ(get(runPtxas("some code", "sm_80")).cubin, "some code");
  unsetenv("ATTNC_PTXAS");
}

static const char kPtx[] = R"(
.version 7.0
.target sm_80
.address_size 64
.visible .entry store(.param .u64 p) {
  .shared .align 4 .b8 buffer[512];
  .reg .b64 %rd<2>;
  .reg .b32 %r<3>;
  ld.param.u64 %rd1, [p];
  mov.u32 %r1, %tid.x;
  st.shared.u32 [buffer], %r1;
  bar.sync 0;
  ld.shared.u32 %r2, [buffer];
  st.global.u32 [%rd1], %r2;
  ret;
}
)";

TEST(PtxasTest, Assembles) {
  llvm::Expected<std::string> ptxas = findPtxas();
  if (!ptxas)
    GTEST_SKIP() << llvm::toString(ptxas.takeError());
  PtxasResult result = get(runPtxas(kPtx, "sm_80"));
  EXPECT_TRUE(llvm::StringRef(result.cubin)
                  .starts_with("\x7f"
                               "ELF"));
  ASSERT_EQ(result.kernels.size(), 1u);
  EXPECT_EQ(result.kernels[0].name, "store");
  EXPECT_GT(result.kernels[0].registers, 0);
  EXPECT_EQ(result.kernels[0].sharedBytes, 512);
  EXPECT_EQ(result.kernels[0].spillStoreBytes, 0);
  EXPECT_TRUE(
      contains(getError(runPtxas("nonsense", "sm_80")), "failed for sm_80"));
}
