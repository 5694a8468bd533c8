//===- ExecutableTest.cpp - Plans on the CPU ------------------------------===//

#include "attn/Runtime/Executable.h"
#include "TestUtils.h"
#include <atomic>
#include <cmath>
#include <set>

using namespace attn;
using namespace attn::test;

//===----------------------------------------------------------------------===//
// Kernels, in the ABI of docs/Manifest.md
//===----------------------------------------------------------------------===//

template <typename T>
static T param(void **params, int index) {
  return *static_cast<T *>(params[index]);
}

/// (ptr x, ptr y, i32 columns, i64 stride_x, f32 factor): row `row` of
/// y[rows, columns] is factor times that of x.
static void scaleRow(void **params, int32_t row) {
  const float *x = param<float *>(params, 0) + row * param<int64_t>(params, 3);
  const int32_t columns = param<int32_t>(params, 2);
  float *y = param<float *>(params, 1) + int64_t(row) * columns;
  for (int32_t i = 0; i < columns; ++i)
    y[i] = param<float>(params, 4) * x[i];
}

/// (ptr counters): adds 1 to the counter of each program.
static void countPrograms(void **params, int32_t id) {
  param<float *>(params, 0)[id] += 1;
}

/// (ptr counter, ptr y): y[0] is the counter, which stays as it is.
static void readCounter(void **params, int32_t) {
  *param<float *>(params, 1) = *param<int32_t *>(params, 0);
}

static KernelCode getCode() {
  return {"", [](llvm::StringRef name) -> void * {
            if (name == "scale_row")
              return reinterpret_cast<void *>(&scaleRow);
            if (name == "count")
              return reinterpret_cast<void *>(&countPrograms);
            if (name == "read_counter")
              return reinterpret_cast<void *>(&readCounter);
            return nullptr;
          }};
}

//===----------------------------------------------------------------------===//
// Manifests
//===----------------------------------------------------------------------===//

static std::string makeManifest(const std::string &arguments,
                                const std::string &plan,
                                const std::string &checks = "") {
  return R"({"version": 1, "producer": {"attnc": "0", "llvm": "0"},
    "entry": "f", "variant": "naive", "target": "cpu",
    "arguments": [)" +
         arguments + R"(], "checks": [)" + checks + R"(], "kernels": [
      {"name": "scale_row", "block": [1, 1, 1], "cluster": [1, 1, 1],
       "dynamic_smem_bytes": 0, "static_smem_bytes": 0},
      {"name": "count", "block": [1, 1, 1], "cluster": [1, 1, 1],
       "dynamic_smem_bytes": 0, "static_smem_bytes": 0},
      {"name": "read_counter", "block": [1, 1, 1], "cluster": [1, 1, 1],
       "dynamic_smem_bytes": 0, "static_smem_bytes": 0}],
    "plan": [)" +
         plan + R"(], "min_bytes": 8, "max_intermediate_bytes": 24})";
}

/// y = factor * x through a temporary and a copy.
static const char kScaleArguments[] = R"(
  {"name": "x", "kind": "tensor", "dtype": "f32", "shape": [null, null], "role": "input"},
  {"name": "factor", "kind": "scalar", "dtype": "f32", "role": "input"},
  {"name": "y", "kind": "tensor", "dtype": "f32", "shape": [null, null], "role": "output"})";
static const char kScalePlan[] = R"(
  {"op": "alloc", "buffer": "t", "bytes": ["mul", 4, "y.dim0", "y.dim1"]},
  {"op": "launch", "kernel": "scale_row", "grid": "x.dim0",
   "args": [{"type": "ptr", "buffer": "x"}, {"type": "ptr", "buffer": "t"},
            {"type": "i32", "value": "x.dim1"}, {"type": "i64", "value": "x.stride0"},
            {"type": "f32", "scalar": "factor"}],
   "bytes": ["mul", 8, "x.dim0", "x.dim1"], "flops": ["mul", "x.dim0", "x.dim1"]},
  {"op": "copy", "src": "t", "dst": "y", "bytes": ["mul", 4, "y.dim0", "y.dim1"]},
  {"op": "free", "buffer": "t"})";
static const char kScaleChecks[] =
    R"({"expr": ["eq", "x.dim1", "y.dim1"], "message": "x and y have different widths"})";

namespace {

class ExecutableTest : public testing::Test {
protected:
  std::unique_ptr<Executable> load(const std::string &manifest) {
    return get(
        Executable::create(get(Manifest::parse(manifest)), getCode(), *device));
  }
  std::unique_ptr<Executable> loadScale() {
    return load(makeManifest(kScaleArguments, kScalePlan, kScaleChecks));
  }
  Tensor factor = get(Tensor::scalar(DType::F32, 2));
  std::unique_ptr<Device> device = createCpuDevice();
};

} // namespace

TEST_F(ExecutableTest, RunsAPlan) {
  float x[6] = {1, 2, 3, 4, 5, 6};
  Tensor y = get(Tensor::allocate(DType::F32, {2, 3}));
  ASSERT_EQ(getError(loadScale()->run(
                {Tensor::borrow(DType::F32, {2, 3}, {3, 1}, x), factor, y})),
            "");
  EXPECT_EQ(y.toDoubles(), (std::vector<double>{2, 4, 6, 8, 10, 12}));
}

TEST_F(ExecutableTest, PassesStrides) {
  float x[8] = {1, 2, -1, -1, 3, 4, -1, -1};
  Tensor y = get(Tensor::allocate(DType::F32, {2, 2}));
  ASSERT_EQ(getError(loadScale()->run(
                {Tensor::borrow(DType::F32, {2, 2}, {4, 1}, x), factor, y})),
            "");
  EXPECT_EQ(y.toDoubles(), (std::vector<double>{2, 4, 6, 8}));
}

TEST_F(ExecutableTest, BroadcastsWithStrideZero) {
  float x[2] = {1, 2};
  Tensor y = get(Tensor::allocate(DType::F32, {2, 2}));
  ASSERT_EQ(getError(loadScale()->run(
                {Tensor::borrow(DType::F32, {2, 2}, {0, 1}, x), factor, y})),
            "");
  EXPECT_EQ(y.toDoubles(), (std::vector<double>{2, 4, 2, 4}));
}

TEST_F(ExecutableTest, DownloadKeepsTheGapsOfStridedOutputs) {
  const std::string plan =
      R"({"op": "memset", "buffer": "y", "value": 0, "bytes": 28})";
  auto executable = load(makeManifest(kScaleArguments, plan));
  float x[4] = {}, y[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  ASSERT_EQ(getError(executable->run(
                {Tensor::borrow(DType::F32, {2, 2}, {2, 1}, x), factor,
                 Tensor::borrow(DType::F32, {2, 3}, {4, 1}, y)})),
            "");
  EXPECT_EQ(std::vector<float>(y, y + 8),
            (std::vector<float>{0, 0, 0, 4, 0, 0, 0, 8}));
}

TEST_F(ExecutableTest, RunsEachProgramOnce) {
  const std::string arguments = R"(
    {"name": "c", "kind": "tensor", "dtype": "f32", "shape": [null], "role": "output"})";
  const std::string plan = R"(
    {"op": "memset", "buffer": "c", "value": 0, "bytes": ["mul", 4, "c.dim0"]},
    {"op": "launch", "kernel": "count", "grid": "c.dim0",
     "args": [{"type": "ptr", "buffer": "c"}], "bytes": 0, "flops": 0})";
  auto executable = load(makeManifest(arguments, plan));
  for (int64_t size : {0, 1, 2, 100000}) {
    Tensor counters = get(Tensor::allocate(DType::F32, {size}));
    ASSERT_EQ(getError(executable->run({counters})), "");
    EXPECT_EQ(counters.toDoubles(), std::vector<double>(size, 1.0));
  }
}

TEST_F(ExecutableTest, PlansKnowTheDevice) {
  const std::string arguments = R"(
    {"name": "c", "kind": "tensor", "dtype": "f32", "shape": [null], "role": "output"})";
  const std::string plan = R"(
    {"op": "launch", "kernel": "count", "grid": ["min", "num_sms", "c.dim0"],
     "args": [{"type": "ptr", "buffer": "c"}]})";
  auto executable = load(makeManifest(arguments, plan));
  ASSERT_GT(device->getNumSMs(), 0);
  for (int64_t size : {int64_t(1), device->getNumSMs() + 1}) {
    auto invocation =
        get(executable->bind({get(Tensor::allocate(DType::F32, {size}))}));
    EXPECT_EQ(invocation->getSteps()[0].grid,
              std::min(size, device->getNumSMs()));
  }
}

TEST_F(ExecutableTest, ZeroedMemoryIsNeverShared) {
  // What the other buffers hold, before the counter's life and after it, isn't
  // seen in it, in the first run or in a later one.
  const std::string plan = R"(
    {"op": "alloc", "buffer": "a", "bytes": 24},
    {"op": "memset", "buffer": "a", "value": 255, "bytes": 24},
    {"op": "free", "buffer": "a"},
    {"op": "alloc", "buffer": "counter", "bytes": 4, "zeroed": true},
    {"op": "launch", "kernel": "read_counter", "grid": 1,
     "args": [{"type": "ptr", "buffer": "counter"}, {"type": "ptr", "buffer": "y"}]},
    {"op": "free", "buffer": "counter"},
    {"op": "alloc", "buffer": "b", "bytes": 24},
    {"op": "memset", "buffer": "b", "value": 255, "bytes": 24})";
  auto executable = load(makeManifest(kScaleArguments, plan));
  Tensor x = get(Tensor::allocate(DType::F32, {1, 1}));
  Tensor y = get(Tensor::allocate(DType::F32, {1, 1}));
  // The second binding finds the memory of the first, in use until then.
  for (int binding = 0; binding < 2; ++binding) {
    auto invocation = get(executable->bind({x, factor, y}));
    for (int run = 0; run < 2; ++run) {
      ASSERT_EQ(getError(invocation->poisonOutputs()), "");
      ASSERT_EQ(getError(invocation->run()), "");
      ASSERT_EQ(getError(invocation->downloadOutputs()), "");
      EXPECT_EQ(y.toDoubles(), std::vector<double>{0});
    }
  }
}

TEST_F(ExecutableTest, EmptyGridIsSkipped) {
  Tensor x = get(Tensor::allocate(DType::F32, {0, 3}));
  Tensor y = get(Tensor::allocate(DType::F32, {0, 3}));
  auto executable = loadScale();
  auto invocation = get(executable->bind({x, factor, y}));
  EXPECT_TRUE(invocation->getSteps().empty());
  EXPECT_EQ(getError(invocation->run()), "");
}

TEST_F(ExecutableTest, RefusesWrongBindings) {
  auto executable = loadScale();
  Tensor x = get(Tensor::allocate(DType::F32, {2, 3}));
  auto expectError = [&](std::vector<Tensor> arguments, const char *message) {
    EXPECT_TRUE(contains(getError(executable->run(arguments)), message));
  };
  expectError({x}, "'f' takes 3 arguments, 1 were given");
  expectError({get(Tensor::allocate(DType::F16, {2, 3})), factor, x},
              "argument 'x': needs ?x?xf32, got 2x3xf16");
  expectError({get(Tensor::allocate(DType::F32, {6})), factor, x},
              "argument 'x': needs ?x?xf32, got 6xf32");
  expectError({x, x, x}, "argument 'factor': needs f32, got 2x3xf32");
  expectError({x, factor, get(Tensor::allocate(DType::F32, {2, 4}))},
              "x and y have different widths");
  float data[6];
  expectError({Tensor::borrow(DType::F32, {2, 3}, {1, 2}, data), factor, x},
              "innermost stride is 2, needed is 1");
  expectError({Tensor::borrow(DType::F32, {2, 3}, {-3, 1}, data), factor, x},
              "negative size or stride");
  expectError({Tensor::borrow(DType::F32, {2, 3}, {int64_t(1) << 62, 1}, data),
               factor, x},
              "extent overflows");
}

TEST_F(ExecutableTest, RefusesStepsThatLeaveTheirBuffers) {
  auto run = [&](const std::string &plan) {
    Tensor x = get(Tensor::allocate(DType::F32, {2, 3}));
    return getError(
        load(makeManifest(kScaleArguments, plan))->run({x, factor, x}));
  };
  EXPECT_TRUE(contains(
      run(R"({"op": "memset", "buffer": "y", "value": 0, "bytes": 25})"),
      "'memset y' of 25 bytes leaves its buffers"));
  EXPECT_TRUE(
      contains(run(R"({"op": "copy", "src": "x", "dst": "y", "bytes": 25})"),
               "'copy x -> y' of 25 bytes leaves its buffers"));
  EXPECT_TRUE(
      contains(run(R"({"op": "alloc", "buffer": "t", "bytes": ["sub", 0, 1]})"),
               "an allocation is negative: -1"));
  EXPECT_TRUE(contains(
      run(R"({"op": "alloc", "buffer": "t", "bytes": 4611686018427387904})"),
      "no memory for 't'"));
  auto launch = [&](const std::string &grid, const std::string &argument) {
    return run(R"({"op": "launch", "kernel": "count", "grid": )" + grid +
               R"(, "args": [)" + argument + R"(], "bytes": 0, "flops": 0})");
  };
  EXPECT_TRUE(contains(
      launch("1", R"({"type": "ptr", "buffer": "y", "offset_bytes": 25})"),
      "kernel 'count', argument 0: offset 25 leaves the buffer"));
  EXPECT_TRUE(contains(launch("1", R"({"type": "i32", "value": 2147483648})"),
                       "2147483648 does not fit in 32 bits"));
  EXPECT_TRUE(contains(launch("2147483648", ""), "at most 2^31 - 1 can run"));
  EXPECT_TRUE(contains(launch("[\"floordiv\", 1, 0]", ""), "by zero"));
}

TEST_F(ExecutableTest, RefusesCodeThatDoesNotFit) {
  const std::string manifest = makeManifest(kScaleArguments, kScalePlan);
  KernelCode empty = {"", [](llvm::StringRef) -> void * { return nullptr; }};
  EXPECT_TRUE(contains(getError(Executable::create(
                           get(Manifest::parse(manifest)), empty, *device)),
                       "the code has no kernel 'scale_row'"));
  EXPECT_TRUE(contains(
      getError(Executable::create(get(Manifest::parse(manifest)), {}, *device)),
      "no CPU code was given"));
  std::string gpuManifest = manifest;
  gpuManifest.replace(gpuManifest.find("\"cpu\""), 5, "\"sm_80\"");
  EXPECT_TRUE(
      contains(getError(Executable::create(get(Manifest::parse(gpuManifest)),
                                           getCode(), *device)),
               "code for sm_80 does not run on the CPU"));
}

TEST_F(ExecutableTest, LiveAllocationsDoNotOverlap) {
  // a and b live together, c takes a's place; the copies show who is where.
  const std::string plan = R"(
    {"op": "alloc", "buffer": "a", "bytes": 24},
    {"op": "alloc", "buffer": "b", "bytes": 24},
    {"op": "memset", "buffer": "a", "value": 0, "bytes": 24},
    {"op": "copy", "src": "x", "dst": "b", "bytes": 24},
    {"op": "free", "buffer": "a"},
    {"op": "alloc", "buffer": "c", "bytes": 24},
    {"op": "memset", "buffer": "c", "value": 0, "bytes": 24},
    {"op": "copy", "src": "b", "dst": "y", "bytes": 24})";
  float x[6] = {1, 2, 3, 4, 5, 6};
  Tensor y = get(Tensor::allocate(DType::F32, {2, 3}));
  ASSERT_EQ(getError(load(makeManifest(kScaleArguments, plan))
                         ->run({Tensor::borrow(DType::F32, {2, 3}, {3, 1}, x),
                                factor, y})),
            "");
  EXPECT_EQ(y.toDoubles(), (std::vector<double>{1, 2, 3, 4, 5, 6}));
}

TEST_F(ExecutableTest, PoisonShowsWhatIsNotWritten) {
  auto executable = load(makeManifest(
      kScaleArguments,
      R"({"op": "memset", "buffer": "y", "value": 0, "bytes": 4})"));
  Tensor x = get(Tensor::allocate(DType::F32, {1, 1}));
  Tensor y = get(Tensor::allocate(DType::F32, {1, 2}));
  auto invocation = get(executable->bind({x, factor, y}));
  ASSERT_EQ(getError(invocation->poisonOutputs()), "");
  ASSERT_EQ(getError(invocation->run()), "");
  ASSERT_EQ(getError(invocation->downloadOutputs()), "");
  EXPECT_EQ(y.toDoubles()[0], 0);
  EXPECT_TRUE(std::isnan(y.toDoubles()[1]));
}

TEST_F(ExecutableTest, ReportsMisalignedTensors) {
  alignas(64) float data[8] = {};
  auto executable = loadScale();
  Tensor y = get(Tensor::allocate(DType::F32, {2, 3}));
  auto invocation = get(executable->bind(
      {Tensor::borrow(DType::F32, {2, 3}, {3, 1}, data + 1), factor, y}));
  EXPECT_EQ(invocation->getMisalignedArguments(),
            std::vector<std::string>{"x"});
}

TEST_F(ExecutableTest, Profiles) {
  auto executable = loadScale();
  Tensor x = get(Tensor::allocate(DType::F32, {2, 3}));
  Tensor y = get(Tensor::allocate(DType::F32, {2, 3}));
  auto invocation = get(executable->bind({x, factor, y}));
  ASSERT_EQ(invocation->getSteps().size(), 2u);
  EXPECT_EQ(invocation->getSteps()[0].name, "scale_row");
  EXPECT_EQ(invocation->getSteps()[0].bytes, 48);
  EXPECT_EQ(invocation->getSteps()[0].flops, 6);
  EXPECT_EQ(invocation->getSteps()[1].name, "copy t -> y");
  EXPECT_EQ(invocation->getSteps()[1].bytes, 48);
  for (bool rotate : {false, true}) {
    ProfileOptions options;
    options.repeat = 5;
    options.rotateArguments = rotate;
    Profile profile = get(invocation->profile(options));
    EXPECT_EQ(profile.isWarm, !rotate);
    EXPECT_EQ(profile.totalSamples.size(), 5u);
    ASSERT_EQ(profile.stepSamples.size(), 2u);
    for (const std::vector<double> &samples : profile.stepSamples) {
      EXPECT_EQ(samples.size(), 5u);
      for (double sample : samples)
        EXPECT_GE(sample, 0);
    }
  }
}
