//===- LauncherTest.cpp - Launches on the caller's memory -----------------===//

#include "attn/Runtime/Launcher.h"
#include "TestUtils.h"
#include <atomic>
#include <cstdlib>
#include <new>
#include <thread>

using namespace attn;
using namespace attn::test;

/// Of this thread, by any operator new, where no sanitizer has its own.
static thread_local int64_t numAllocations = 0;

#if LLVM_ADDRESS_SANITIZER_BUILD || LLVM_THREAD_SANITIZER_BUILD
static constexpr bool kCountsAllocations = false;
#else
static constexpr bool kCountsAllocations = true;

void *operator new(size_t size) {
  ++numAllocations;
  if (void *memory = std::malloc(size))
    return memory;
  abort();
}
void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, size_t) noexcept { std::free(memory); }
#endif

template <typename T>
static T param(void **params, int index) {
  return *static_cast<T *>(params[index]);
}

/// (ptr x, ptr t, i32 n, f32 factor): t = factor * x.
static void scale(void **params, int32_t) {
  for (int32_t i = 0; i < param<int32_t>(params, 2); ++i)
    param<float *>(params, 1)[i] =
        param<float>(params, 3) * param<float *>(params, 0)[i];
}

/// (ptr counter, ptr t, i32 n): adds the counter, which should be zero.
static void addCounter(void **params, int32_t) {
  for (int32_t i = 0; i < param<int32_t>(params, 2); ++i)
    param<float *>(params, 1)[i] += param<int32_t *>(params, 0)[0];
}

/// y = factor * x + counter, through a temporary that another one overwrites.
static const char kManifest[] = R"(
  {"version": 1, "producer": {"attnc": "0", "llvm": "0"},
   "entry": "f", "variant": "naive", "target": "cpu",
   "arguments": [
     {"name": "x", "kind": "tensor", "dtype": "f32", "shape": [null], "role": "input"},
     {"name": "factor", "kind": "scalar", "dtype": "f32", "role": "input"},
     {"name": "y", "kind": "tensor", "dtype": "f32", "shape": [null], "role": "output"}],
   "checks": [{"expr": ["eq", "x.dim0", "y.dim0"], "message": "x and y differ in length"}],
   "kernels": [
     {"name": "scale", "block": [1, 1, 1], "cluster": [1, 1, 1],
      "dynamic_smem_bytes": 0, "static_smem_bytes": 0},
     {"name": "add_counter", "block": [1, 1, 1], "cluster": [1, 1, 1],
      "dynamic_smem_bytes": 0, "static_smem_bytes": 0}],
   "plan": [
     {"op": "alloc", "buffer": "counter", "bytes": 4, "zeroed": true},
     {"op": "alloc", "buffer": "t", "bytes": ["mul", 4, "x.dim0"]},
     {"op": "memset", "buffer": "t", "value": 255, "bytes": ["mul", 4, "x.dim0"]},
     {"op": "launch", "kernel": "scale", "grid": 1,
      "args": [{"type": "ptr", "buffer": "x"}, {"type": "ptr", "buffer": "t"},
               {"type": "i32", "value": "x.dim0"}, {"type": "f32", "scalar": "factor"}]},
     {"op": "launch", "kernel": "add_counter", "grid": 1,
      "args": [{"type": "ptr", "buffer": "counter"}, {"type": "ptr", "buffer": "t"},
               {"type": "i32", "value": "x.dim0"}]},
     {"op": "copy", "src": "t", "dst": "y", "bytes": ["mul", 4, "x.dim0"]},
     {"op": "free", "buffer": "counter"}],
   "min_bytes": 8, "max_intermediate_bytes": 24})";

namespace {

/// x, factor and y with the memory that they view.
struct Arguments {
  explicit Arguments(int64_t size, float factor = 2)
      : shape(size), x(size), factor(factor), y(size, NAN) {
    for (int64_t i = 0; i < size; ++i)
      x[i] = i;
  }
  std::vector<TensorView> get() {
    return {{DType::F32, shape, stride, x.data()},
            {DType::F32, {}, {}, &factor},
            {DType::F32, shape, stride, y.data()}};
  }
  bool isRight() const {
    for (size_t i = 0; i < x.size(); ++i)
      if (y[i] != factor * x[i])
        return false;
    return true;
  }

  int64_t shape;
  int64_t stride = 1;
  std::vector<float> x;
  float factor;
  std::vector<float> y;
};

class LauncherTest : public testing::Test {
protected:
  std::unique_ptr<Device> device = createCpuDevice();
  std::unique_ptr<Executable> executable =
      get(Executable::create(get(Manifest::parse(kManifest)),
                             {"",
                              [](llvm::StringRef name) -> void * {
                                return reinterpret_cast<void *>(
                                    name == "scale" ? &scale : &addCounter);
                              }},
                             *device));
  Launcher launcher{*executable};
};

} // namespace

TEST_F(LauncherTest, ServesEveryShapeAndScalar) {
  // Growing and shrinking: the counter's memory is never a temporary's.
  for (int64_t size : {3, 1000, 0, 2, 5000, 1000}) {
    Arguments arguments(size, size + 1);
    ASSERT_EQ(getError(launcher.launch({}, arguments.get())), "");
    EXPECT_TRUE(arguments.isRight()) << size;
  }
}

TEST_F(LauncherTest, ServesMorePlansThanItKeeps) {
  for (int round = 0; round < 2; ++round)
    for (int64_t size = 1; size <= int64_t(2 * Launcher::kMaxPlans); ++size) {
      Arguments arguments(size);
      ASSERT_EQ(getError(launcher.launch({}, arguments.get())), "");
      EXPECT_TRUE(arguments.isRight()) << size;
    }
}

TEST_F(LauncherTest, DoesNotAllocateOnceItKnowsTheShape) {
  if (!kCountsAllocations)
    GTEST_SKIP() << "the sanitizer's operator new doesn't count";
  Arguments first(100), second(100, 3);
  ASSERT_EQ(getError(launcher.launch({}, first.get())), "");
  const std::vector<TensorView> views = second.get();
  const int64_t before = numAllocations;
  llvm::Error error = launcher.launch({}, views);
  const int64_t after = numAllocations;
  ASSERT_EQ(getError(std::move(error)), "");
  EXPECT_EQ(before, after);
  EXPECT_TRUE(second.isRight());
}

TEST_F(LauncherTest, ManyThreads) {
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 8; ++thread)
    threads.emplace_back([&, thread] {
      for (int64_t i = 0; i < 200; ++i) {
        Arguments arguments(1 + (17 * i + thread) % 300, thread);
        llvm::Error error = launcher.launch({}, arguments.get());
        wrong += bool(error) || !arguments.isRight();
        llvm::consumeError(std::move(error));
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(LauncherTest, RefusesWhatTheManifestRefuses) {
  auto launch = [&](auto change) {
    Arguments arguments(4);
    std::vector<TensorView> views = arguments.get();
    change(views);
    return getError(launcher.launch({}, views));
  };
  using Views = std::vector<TensorView>;
  const int64_t five = 5, two = 2;
  EXPECT_TRUE(contains(launch([](Views &views) { views.pop_back(); }),
                       "'f' takes 3 arguments, 2 were given"));
  EXPECT_TRUE(
      contains(launch([](Views &views) { views[0].dtype = DType::F16; }),
               "argument 'x': needs ?xf32, got 4xf16"));
  EXPECT_TRUE(contains(launch([&](Views &views) { views[2].shape = five; }),
                       "x and y differ in length"));
  EXPECT_TRUE(contains(launch([&](Views &views) { views[0].strides = two; }),
                       "the innermost stride is 2"));
  EXPECT_TRUE(contains(launch([](Views &views) { views[0].strides = {}; }),
                       "1 sizes, but 0 strides"));
  EXPECT_TRUE(contains(launch([](Views &views) { views[0].data = nullptr; }),
                       "argument 'x' has no memory"));
  EXPECT_TRUE(contains(launch([](Views &views) { views[1].data = nullptr; }),
                       "argument 'factor' has no memory"));
  EXPECT_TRUE(contains(launch([](Views &views) {
                         views[0].data = static_cast<char *>(views[0].data) + 1;
                       }),
                       "its address is no multiple of 4"));
}

TEST_F(LauncherTest, RefusesOutputsInTheMemoryOfInputs) {
  Arguments arguments(8);
  std::vector<TensorView> views = arguments.get();
  const int64_t four = 4, none = 0, zero = 0;
  views[0].shape = views[2].shape = four;
  for (int offset : {0, 1, 3}) {
    views[2].data = arguments.x.data() + offset;
    EXPECT_TRUE(contains(getError(launcher.launch({}, views)),
                         "argument 'y' lies in the memory of 'x'"))
        << offset;
  }
  views[2].data = arguments.x.data() + 4;
  EXPECT_EQ(getError(launcher.launch({}, views)), "");
  EXPECT_EQ(arguments.x[7], 6);
  // Without elements, nothing is overwritten.
  views[0].shape = views[2].shape = none;
  views[2].data = arguments.x.data();
  EXPECT_EQ(getError(launcher.launch({}, views)), "");
  views = arguments.get();
  views[2].strides = zero;
  EXPECT_TRUE(contains(getError(launcher.launch({}, views)),
                       "'y': dimension 0 has a stride of 0"));
}

TEST_F(LauncherTest, TakesAnEmptyTensorWithoutMemory) {
  Arguments arguments(0);
  std::vector<TensorView> views = arguments.get();
  views[0].data = views[2].data = nullptr;
  EXPECT_EQ(getError(launcher.launch({}, views)), "");
}

static int numPrepasses = 0;

/// (ptr x, ptr first): what a pre-pass finds out is the first element.
static void findFirst(void **params, int32_t) {
  ++numPrepasses;
  *param<float *>(params, 1) = *param<float *>(params, 0);
}

/// (ptr first, ptr y, i32 n): y = first.
static void fillWithFirst(void **params, int32_t) {
  for (int32_t i = 0; i < param<int32_t>(params, 2); ++i)
    param<float *>(params, 1)[i] = *param<float *>(params, 0);
}

static const char kPrepassManifest[] = R"(
  {"version": 1, "producer": {"attnc": "0", "llvm": "0"},
   "entry": "f", "variant": "fused", "target": "cpu",
   "arguments": [
     {"name": "x", "kind": "tensor", "dtype": "f32", "shape": [null], "role": "input"},
     {"name": "y", "kind": "tensor", "dtype": "f32", "shape": [null], "role": "output"}],
   "checks": [],
   "kernels": [
     {"name": "find", "block": [1, 1, 1], "cluster": [1, 1, 1],
      "dynamic_smem_bytes": 0, "static_smem_bytes": 0},
     {"name": "fill", "block": [1, 1, 1], "cluster": [1, 1, 1],
      "dynamic_smem_bytes": 0, "static_smem_bytes": 0}],
   "plan": [
     {"op": "alloc", "buffer": "first", "bytes": 4},
     {"op": "launch", "kernel": "find", "grid": 1, "prepass": true,
      "args": [{"type": "ptr", "buffer": "x"}, {"type": "ptr", "buffer": "first"}]},
     {"op": "launch", "kernel": "fill", "grid": 1,
      "args": [{"type": "ptr", "buffer": "first"}, {"type": "ptr", "buffer": "y"},
               {"type": "i32", "value": "y.dim0"}]}],
   "min_bytes": 8, "max_intermediate_bytes": 4})";

/// A manifest with the kernels above.
static std::unique_ptr<Executable> createPrepass(llvm::StringRef manifest,
                                                 Device &device) {
  return get(Executable::create(get(Manifest::parse(manifest)),
                                {"",
                                 [](llvm::StringRef name) -> void * {
                                   return reinterpret_cast<void *>(
                                       name == "find" ? &findFirst
                                                      : &fillWithFirst);
                                 }},
                                device));
}

TEST(LauncherPrepassTest, RunsWhereSomethingMayHaveChanged) {
  std::unique_ptr<Device> device = createCpuDevice();
  std::unique_ptr<Executable> executable =
      createPrepass(kPrepassManifest, *device);
  Launcher launcher(*executable);
  float x[] = {3, 4}, other[] = {5, 6}, y[4];
  /// Whether a launch runs the pre-pass; y must be right in any case.
  auto runsPrepass = [&](float *input, int64_t size, bool unchanged) {
    const int before = numPrepasses;
    const int64_t inputSize = 2, stride = 1;
    const TensorView views[] = {{DType::F32, inputSize, stride, input},
                                {DType::F32, size, stride, y}};
    EXPECT_EQ(getError(launcher.launch({}, views, {unchanged})), "");
    EXPECT_EQ(y[size - 1], input[0]);
    return numPrepasses != before;
  };
  EXPECT_TRUE(runsPrepass(x, 2, true)) << "the first time";
  EXPECT_FALSE(runsPrepass(x, 2, true));
  EXPECT_FALSE(runsPrepass(x, 2, true));
  x[0] = 7;
  EXPECT_TRUE(runsPrepass(x, 2, false));
  EXPECT_FALSE(runsPrepass(x, 2, true));
  EXPECT_TRUE(runsPrepass(other, 2, true)) << "another address";
  EXPECT_TRUE(runsPrepass(x, 2, true)) << "another address";
  EXPECT_TRUE(runsPrepass(x, 3, true)) << "another shape";
  EXPECT_TRUE(runsPrepass(x, 2, true)) << "another shape between";
}

TEST(LauncherPrepassTest, RunsOnceWithoutArguments) {
  // Finds out what it left itself.
  std::string manifest = kPrepassManifest;
  const std::string from = R"({"type": "ptr", "buffer": "x"}, )";
  manifest.replace(manifest.find(from), from.size(),
                   R"({"type": "ptr", "buffer": "first"}, )");
  std::unique_ptr<Device> device = createCpuDevice();
  std::unique_ptr<Executable> executable = createPrepass(manifest, *device);
  Launcher launcher(*executable);
  float x[2] = {}, other[2] = {}, y[4];
  auto runsPrepass = [&](float *input, int64_t size) {
    const int before = numPrepasses;
    const int64_t inputSize = 2, stride = 1;
    const TensorView views[] = {{DType::F32, inputSize, stride, input},
                                {DType::F32, size, stride, y}};
    EXPECT_EQ(getError(launcher.launch({}, views)), "");
    return numPrepasses != before;
  };
  EXPECT_TRUE(runsPrepass(x, 2)) << "the first time";
  EXPECT_FALSE(runsPrepass(x, 2));
  EXPECT_FALSE(runsPrepass(other, 2)) << "nothing reads it";
  EXPECT_TRUE(runsPrepass(x, 3)) << "another shape";
  EXPECT_TRUE(runsPrepass(x, 2)) << "another shape between";
}
