//===- CudaDeviceTest.cpp - Plans on a GPU --------------------------------===//

#include "TestUtils.h"
#include "attn/Runtime/Executable.h"

using namespace attn;
using namespace attn::test;

/// (ptr x, ptr y, i32 n, f32 factor): y[i] = factor * x[i], 32 a block.
static const char kPtx[] = R"(
.version 7.0
.target sm_80
.address_size 64
.visible .entry scale(.param .u64 x, .param .u64 y, .param .u32 n,
                      .param .f32 factor) {
  .reg .pred %p;
  .reg .b64 %rd<4>;
  .reg .b32 %r<6>;
  .reg .f32 %f<4>;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %tid.x;
  mad.lo.u32 %r3, %r1, 32, %r2;
  ld.param.u32 %r4, [n];
  setp.ge.u32 %p, %r3, %r4;
  @%p bra done;
  ld.param.u64 %rd1, [x];
  ld.param.u64 %rd2, [y];
  mul.wide.u32 %rd3, %r3, 4;
  add.u64 %rd1, %rd1, %rd3;
  add.u64 %rd2, %rd2, %rd3;
  ld.global.f32 %f1, [%rd1];
  ld.param.f32 %f2, [factor];
  mul.f32 %f3, %f1, %f2;
  st.global.f32 [%rd2], %f3;
done:
  ret;
}
)";

static std::string makeManifest(int64_t sharedBytes) {
  return R"({"version": 1, "producer": {"attnc": "0", "llvm": "0"},
    "entry": "f", "variant": "fused", "target": "sm_80", "arguments": [
      {"name": "x", "kind": "tensor", "dtype": "f32", "shape": [null], "role": "input"},
      {"name": "factor", "kind": "scalar", "dtype": "f32", "role": "input"},
      {"name": "y", "kind": "tensor", "dtype": "f32", "shape": [null], "role": "output"}],
    "checks": [], "kernels": [
      {"name": "scale", "block": [32, 1, 1], "cluster": [1, 1, 1],
       "dynamic_smem_bytes": )" +
         std::to_string(sharedBytes) + R"(, "static_smem_bytes": 0}],
    "plan": [
      {"op": "alloc", "buffer": "t", "bytes": ["mul", 4, "x.dim0"]},
      {"op": "memset", "buffer": "t", "value": 0, "bytes": ["mul", 4, "x.dim0"]},
      {"op": "launch", "kernel": "scale", "grid": ["ceildiv", "x.dim0", 32],
       "args": [{"type": "ptr", "buffer": "x"}, {"type": "ptr", "buffer": "t"},
                {"type": "i32", "value": "x.dim0"}, {"type": "f32", "scalar": "factor"}],
       "bytes": ["mul", 8, "x.dim0"], "flops": "x.dim0"},
      {"op": "copy", "src": "t", "dst": "y", "bytes": ["mul", 4, "x.dim0"]}],
    "min_bytes": 0, "max_intermediate_bytes": 0})";
}

namespace {

class CudaDeviceTest : public testing::Test {
protected:
  void SetUp() override {
    llvm::Expected<std::unique_ptr<Device>> created = createCudaDevice();
    if (!created)
      GTEST_SKIP() << llvm::toString(created.takeError());
    device = std::move(*created);
  }

  llvm::Expected<std::unique_ptr<Executable>> load(int64_t sharedBytes) {
    return Executable::create(get(Manifest::parse(makeManifest(sharedBytes))),
                              {kPtx, nullptr}, *device);
  }

  std::unique_ptr<Device> device;
};

} // namespace

TEST_F(CudaDeviceTest, RunsAndProfiles) {
  // Above the 48 KB that a kernel may use without opting in.
  auto executable = get(load(/*sharedBytes=*/64 << 10));
  const int64_t size = 1000;
  Tensor x = get(Tensor::allocate(DType::F32, {size}));
  Tensor y = get(Tensor::allocate(DType::F32, {size}));
  std::vector<double> expected;
  for (int64_t i = 0; i < size; ++i) {
    static_cast<float *>(x.getData())[i] = i;
    expected.push_back(3.0 * i);
  }
  auto invocation =
      get(executable->bind({x, get(Tensor::scalar(DType::F32, 3)), y}));
  ASSERT_EQ(getError(invocation->poisonOutputs()), "");
  ASSERT_EQ(getError(invocation->run()), "");
  ASSERT_EQ(getError(invocation->downloadOutputs()), "");
  EXPECT_EQ(y.toDoubles(), expected);

  Profile profile = get(invocation->profile({}));
  EXPECT_EQ(profile.totalSamples.size(), 20u);
  ASSERT_EQ(profile.stepSamples.size(), 3u);
  EXPECT_GT(profile.totalSamples.front(), 0);
}

TEST_F(CudaDeviceTest, KnowsResources) {
  auto executable = get(load(/*sharedBytes=*/64 << 10));
  auto resources = executable->getKernel(0).getResources();
  ASSERT_TRUE(resources);
  EXPECT_GT(resources->registers, 0);
  EXPECT_EQ(resources->sharedBytes, 64 << 10);
  ASSERT_TRUE(resources->occupancy);
  EXPECT_EQ(resources->occupancy->limit, "shared memory");
  // The driver's count and our own computation agree.
  const bool isHopper = !llvm::errorToBool(device->checkTarget("sm_90"));
  auto limits = SMLimits::lookup(isHopper ? "sm_90" : "sm_80");
  EXPECT_EQ(resources->occupancy->blocksPerSM,
            computeOccupancy(*limits, {32, resources->registers, 64 << 10})
                .blocksPerSM);
}

TEST_F(CudaDeviceTest, RefusesWhatCannotRun) {
  EXPECT_TRUE(contains(getError(load(/*sharedBytes=*/1 << 20)),
                       "choose a smaller tile or fewer stages"));
  Manifest manifest = get(Manifest::parse(makeManifest(0)));
  EXPECT_TRUE(
      contains(getError(Executable::create(
                   manifest, {".version 7.0\nnonsense", nullptr}, *device)),
               "cuModuleLoadDataEx"));
  manifest.kernels[0].name = "other";
  EXPECT_TRUE(
      contains(getError(Executable::create(manifest, {kPtx, nullptr}, *device)),
               "kernel 'other'"));
  manifest.target = "sm_999";
  EXPECT_TRUE(
      contains(getError(Executable::create(manifest, {kPtx, nullptr}, *device)),
               "code for sm_999 does not run on"));
  EXPECT_TRUE(contains(getError(createCudaDevice(/*ordinal=*/1000)),
                       "there is no 1000"));
}
