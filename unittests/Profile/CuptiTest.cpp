//===- CuptiTest.cpp - Reading CUPTI's records ----------------------------===//

#include "../../lib/Profile/Cupti.h"
#include "llvm/ADT/STLExtras.h"
#include <cstdlib>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace attn;

TEST(CuptiTest, ReadsRecords) {
  // The library is loaded once a process.
  setenv("ATTNC_CUPTI", FAKE_CUPTI, /*overwrite=*/1);
  Recorder recorder;
  std::unique_ptr<CuptiCollector> collector =
      llvm::cantFail(CuptiCollector::create(recorder));
  // A process has one.
  EXPECT_EQ(llvm::toString(CuptiCollector::create(recorder).takeError()),
            "a profile is being recorded already");
  // Host and device have one clock.
  EXPECT_LT(recorder.now(), 2000);
  llvm::cantFail(collector->flush());
  const RegionProfile region = recorder.take();
  EXPECT_THAT(region.notes, testing::ElementsAre("CUPTI dropped 3 records"));

  ASSERT_EQ(region.device.size(), 4u);
  const DeviceRecord &upload = region.device[0];
  EXPECT_EQ(upload.activity, DeviceActivity::Upload);
  EXPECT_EQ(upload.startNs, 2050);
  EXPECT_EQ(upload.endNs, 2150);
  EXPECT_EQ(upload.bytes, 4096);
  EXPECT_EQ(upload.stream, 7);
  EXPECT_EQ(region.device[1].activity, DeviceActivity::Memset);
  EXPECT_EQ(region.device[1].bytes, 64);
  EXPECT_EQ(region.device[2].activity, DeviceActivity::Copy);
  EXPECT_EQ(region.names[region.device[2].name], "memcpy DtoD");

  const DeviceRecord &kernel = region.device[3];
  EXPECT_EQ(kernel.activity, DeviceActivity::Kernel);
  EXPECT_EQ(region.names[kernel.name], "void kernel<float>(float*)");
  const LaunchConfig &launch = region.launches[*kernel.launch];
  EXPECT_EQ(launch.getNumBlocks(), 20);
  EXPECT_EQ(launch.getThreadsPerBlock(), 128);
  EXPECT_THAT(launch.cluster, testing::Each(1));
  EXPECT_EQ(launch.registers, 255);
  EXPECT_EQ(launch.getSharedBytes(), 65552);
  EXPECT_EQ(launch.localBytes, 8);

  // Only calls that launched something: the kernel's (the outer one of two)
  // and the upload's.
  ASSERT_EQ(region.host.size(), 2u);
  const HostRecord &call =
      *llvm::find_if(region.host, [](const HostRecord &record) {
        return record.correlation == 4;
      });
  EXPECT_EQ(region.names[call.name], "cudaLaunch");
  EXPECT_EQ(call.startNs, 2300);
  EXPECT_EQ(call.endNs, 2360);
  EXPECT_EQ(call.thread, 42);

  // The next can come when this one has gone.
  collector.reset();
  Recorder second;
  EXPECT_TRUE(bool(CuptiCollector::create(second)));
}
