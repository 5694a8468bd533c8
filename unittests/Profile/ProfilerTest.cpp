//===- ProfilerTest.cpp - Records what a region runs ----------------------===//

#include "attn/Profile/Profiler.h"
#include "attn/Profile/Summary.h"
#include "attn/Runtime/CudnnKernel.h"
#include "attn/Runtime/HostWork.h"
#include <gtest/gtest.h>

using namespace attn;

namespace {

/// A kernel that takes a millisecond or more.
void spin(void *const *, int32_t) {
  const auto end =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(1);
  while (std::chrono::steady_clock::now() < end)
    ;
}

class ProfilerTest : public testing::Test {
protected:
  void SetUp() override {
    KernelCode code;
    code.lookup = [](llvm::StringRef name) -> void * {
      return name == "spin" ? reinterpret_cast<void *>(&spin) : nullptr;
    };
    module = llvm::cantFail(profiler.getDevice().load(code));
    Kernel info = {};
    info.name = "spin";
    info.block = {1, 1, 1};
    info.cluster = {1, 1, 1};
    kernel = llvm::cantFail(module->getKernel(info));
  }

  void launch() {
    llvm::cantFail(profiler.getDevice().launch(*kernel, /*grid=*/1, {}, {}));
  }

  std::unique_ptr<Device> device = createCpuDevice();
  Profiler profiler{*device};
  std::unique_ptr<LoadedModule> module;
  std::unique_ptr<LoadedKernel> kernel;
};

} // namespace

TEST_F(ProfilerTest, RecordsWhatGoesThroughTheDevice) {
  // Before a region, nothing is recorded.
  launch();
  llvm::cantFail(profiler.begin("region", "cpu"));
  profiler.beginPhase("first");
  {
    Profiler::HostSpan span(profiler, HostActivity::Compile, "compile");
    launch();
  }
  llvm::cantFail(profiler.endPhase(1));
  profiler.beginPhase("steady");
  char from[64] = {}, to[64] = {};
  for (int call = 0; call < 2; ++call) {
    launch();
    llvm::cantFail(profiler.getDevice().copy(
        reinterpret_cast<DeviceAddress>(to),
        reinterpret_cast<DeviceAddress>(from), sizeof(to), {}));
  }
  llvm::cantFail(profiler.endPhase(2));
  const RegionProfile region = llvm::cantFail(profiler.end());
  EXPECT_EQ(region.name, "region");
  EXPECT_EQ(region.source, "host clock");
  ASSERT_EQ(region.device.size(), 5u);
  ASSERT_EQ(region.launches.size(), 1u);
  EXPECT_EQ(region.launches[0].grid[0], 1);
  EXPECT_EQ(region.device[2].activity, DeviceActivity::Copy);
  EXPECT_EQ(region.device[2].bytes, 64);
  // Each has its launch.
  std::set<int64_t> correlations;
  for (const DeviceRecord &record : region.device)
    correlations.insert(record.correlation);
  EXPECT_EQ(correlations.size(), 5u);

  const RegionSummary summary = summarize({}, region);
  EXPECT_EQ(summary.getCountPerCall(DeviceActivity::Kernel), 1);
  EXPECT_EQ(summary.getCountPerCall(DeviceActivity::Copy), 1);
  EXPECT_GE(summary.busyUs, 2000);
  EXPECT_GE(summary.wallUs, summary.busyUs);
  EXPECT_GE(*summary.firstCallUs, 1000);
  EXPECT_GE(summary.setup.at(HostActivity::Compile).totalUs, 1000);
  // The file can be read again.
  std::string text;
  llvm::raw_string_ostream os(text);
  writeProfile(os, {{}, "", {region}});
  EXPECT_TRUE(bool(parseProfile(text)));
}

TEST_F(ProfilerTest, StartsEachRegionAfresh) {
  for (int i = 0; i < 2; ++i) {
    llvm::cantFail(profiler.begin("region", "cpu"));
    launch();
    EXPECT_EQ(llvm::cantFail(profiler.end()).device.size(), 1u);
    launch();
  }
}

TEST_F(ProfilerTest, KnowsTheWorkOfALibrarysKernel) {
  BoundPlan plan;
  TimedStep step = {};
  step.kind = Step::Kind::Launch;
  step.name = kCudnnKernelName.str();
  step.bytes = 10, step.flops = 20;
  plan.steps.push_back(step);
  // On the device it has another name.
  auto record = [&](int launches) {
    llvm::cantFail(profiler.begin("region", "cpu"));
    profiler.beginPhase("steady");
    getHostWorkObserver()->onLaunch(plan, /*skipsPrepass=*/false);
    for (int i = 0; i < launches; ++i)
      launch();
    llvm::cantFail(profiler.endPhase(1));
    return llvm::cantFail(profiler.end());
  };
  const RegionProfile region = record(/*launches=*/1);
  ASSERT_TRUE(region.getFacts("spin"));
  EXPECT_EQ(region.getFacts("spin")->bytes, 10);
  EXPECT_EQ(region.getFacts("spin")->flops, 20);
  EXPECT_FALSE(region.getFacts(kCudnnKernelName));
  // Nothing ran: nothing is renamed.
  EXPECT_TRUE(record(/*launches=*/0).getFacts(kCudnnKernelName));
}

TEST_F(ProfilerTest, DescribesACpu) {
  const ProfileEnvironment environment =
      llvm::cantFail(profiler.describeEnvironment());
  EXPECT_EQ(environment.device, device->getName());
  EXPECT_EQ(environment.numSMs, device->getNumSMs());
  EXPECT_FALSE(environment.isGPU);
  // Known of GPUs only.
  EXPECT_FALSE(environment.limits);
  EXPECT_FALSE(environment.bandwidthBytesPerSecond);
  EXPECT_FALSE(environment.matrixFlopsPerSecond);
}
