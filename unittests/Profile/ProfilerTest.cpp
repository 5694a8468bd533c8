//===- ProfilerTest.cpp - Records what a region runs ----------------------===//

#include "attn/Profile/Profiler.h"
#include "attn/Profile/Summary.h"
#include "attn/Runtime/CudnnKernel.h"
#include "attn/Runtime/HostWork.h"
#include "attn/Runtime/Launcher.h"
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
    getHostWorkObserver()->onLaunch({plan, {}});
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

TEST_F(ProfilerTest, CountsWhatIsNotSkipped) {
  BoundPlan plan;
  TimedStep step = {};
  step.kind = Step::Kind::Launch;
  step.name = "spin";
  step.grid = 12;
  step.bytes = 10, step.flops = 800;
  plan.steps.push_back(step);
  // Of 4 tiles, as many as `length` says are skipped; none says that it isn't
  // known.
  auto mapper = std::make_shared<const TileMapper>(
      [](int64_t length, int64_t) -> std::optional<TileWork> {
        if (length == 0)
          return std::nullopt;
        TileWork work;
        work.map.skipped = length, work.map.full = 4 - length;
        work.numQueryTiles = 2, work.imbalance = 1.5;
        return work;
      });
  auto record = [&](llvm::ArrayRef<int64_t> lengths) {
    llvm::cantFail(profiler.begin("region", "cpu"));
    profiler.beginPhase("steady");
    for (int64_t length : lengths) {
      const int64_t shape[] = {2, 3, length, 8}, strides[] = {1, 1, 1, 1};
      const TensorView view = {DType::F32, shape, strides, nullptr};
      getHostWorkObserver()->onLaunch({plan, {view, view}, false, mapper});
    }
    llvm::cantFail(profiler.endPhase(1));
    return llvm::cantFail(profiler.end());
  };
  const RegionProfile one = record({1, 1});
  EXPECT_EQ(one.getFacts("spin")->flops, 600);
  EXPECT_FALSE(one.getFacts("spin")->isDense);
  EXPECT_EQ(one.getFacts("spin")->workImbalance, 1.5);
  ASSERT_TRUE(one.maskMap);
  EXPECT_EQ(one.maskMap->skipped, 1);
  // Of one launch in the mean; of several lengths there is no one map.
  const RegionProfile several = record({1, 3});
  EXPECT_EQ(several.getFacts("spin")->flops, 400);
  EXPECT_FALSE(several.maskMap);
  const RegionProfile unknown = record({0});
  EXPECT_EQ(unknown.getFacts("spin")->flops, 800);
  EXPECT_TRUE(unknown.getFacts("spin")->isDense);
  // Kernels that skip nothing have none.
  mapper = nullptr;
  EXPECT_FALSE(record({1}).getFacts("spin")->isDense);
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
