//===- CudnnTest.cpp - cuDNN where there is none --------------------------===//

#include "TestUtils.h"
#include "attn/Runtime/CudnnKernel.h"
#include "attn/Runtime/Device.h"
#include <cstdlib>

using namespace attn;
using namespace attn::test;

// The library is looked for once a process: the only test that does so.
TEST(CudnnTest, SaysWhatIsMissing) {
  setenv("ATTNC_CUDNN", "/none/libcudnn.so.9", /*overwrite=*/1);
  const std::string error = getError(checkCudnn());
  // A build without cudnn-frontend says that before it looks.
  EXPECT_TRUE(contains(error, "this build of attnc is without cuDNN") ||
              contains(error, "set ATTNC_CUDNN to its path (torch brings one "
                              "in nvidia/cudnn/lib) (/none/libcudnn.so.9"))
      << error;
  // As often as it is asked.
  EXPECT_EQ(getError(checkCudnn()), error);
  EXPECT_EQ(getCudnnVersion(), "");
}

TEST(CudnnTest, NeedsAGPU) {
  EXPECT_TRUE(contains(getError(createCpuDevice()->loadCudnn()),
                       "cuDNN needs a GPU, this is "));
}
