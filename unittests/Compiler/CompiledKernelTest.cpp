//===- CompiledKernelTest.cpp - Compile once, launch often ----------------===//

#include "attn/Compiler/CompiledKernel.h"
#include "TestUtils.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include <atomic>
#include <cmath>
#include <fstream>
#include <thread>

using namespace attn;
using namespace attn::test;
namespace fs = llvm::sys::fs;

namespace {

constexpr int64_t kHeads = 2, kDim = 8;

/// f32 tensors [1, 2, n, 8] and what attention makes of them.
struct Problem {
  explicit Problem(int64_t length, unsigned seed = 0)
      : length(length), shape{1, kHeads, length, kDim},
        strides{kHeads * length * kDim, length * kDim, kDim, 1},
        lseShape{1, kHeads, length}, lseStrides{kHeads * length, length, 1} {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    for (auto *tensor : {&q, &k, &v}) {
      tensor->resize(kHeads * length * kDim);
      for (float &value : *tensor)
        value = normal(random);
    }
    o.assign(q.size(), NAN);
    lse.assign(kHeads * length, NAN);
  }

  std::vector<TensorView> getViews(bool withLse = false) {
    std::vector<TensorView> views;
    for (auto *tensor : {&q, &k, &v, &o})
      views.push_back({DType::F32, shape, strides, tensor->data()});
    if (withLse)
      views.push_back({DType::F32, lseShape, lseStrides, lse.data()});
    return views;
  }

  /// The largest error against float64 of causal attention.
  double getError(bool withLse = false) const {
    double worst = 0;
    for (int64_t row = 0; row < kHeads * length; ++row) {
      const int64_t head = row / length, last = row % length;
      double sum = 0, expected[kDim] = {};
      for (int64_t j = 0; j <= last; ++j) {
        double score = 0;
        for (int64_t d = 0; d < kDim; ++d)
          score += double(q[row * kDim + d]) *
                   k[(head * length + j) * kDim + d] / std::sqrt(kDim);
        sum += std::exp(score);
        for (int64_t d = 0; d < kDim; ++d)
          expected[d] += std::exp(score) * v[(head * length + j) * kDim + d];
      }
      for (int64_t d = 0; d < kDim; ++d)
        worst =
            std::fmax(worst, std::fabs(o[row * kDim + d] - expected[d] / sum));
      if (withLse)
        worst = std::fmax(worst, std::fabs(lse[row] - std::log(sum)));
    }
    return worst;
  }

  int64_t length;
  int64_t shape[4], strides[4], lseShape[3], lseStrides[3];
  std::vector<float> q, k, v, o, lse;
};

AttentionSpec getCausal() {
  AttentionSpec spec;
  spec.dtype = DType::F32;
  spec.numQueryHeads = spec.numKVHeads = kHeads;
  spec.qkHeadDim = spec.vHeadDim = kDim;
  spec.maskMod = mlir::attn::getCausalMask();
  return spec;
}

class CompiledKernelTest : public testing::Test {
protected:
  CompiledKernelTest() {
    llvm::SmallString<128> path;
    EXPECT_FALSE(fs::createUniqueDirectory("attnc-kernels", path));
    folder = path.str().str();
    options.target = "cpu";
    options.cache = DiskCache(folder);
  }
  ~CompiledKernelTest() override { fs::remove_directories(folder); }

  /// Text that no other test compiles, so that it isn't in memory.
  std::string getUniqueText() {
    static int number = 0;
    return get(getCausal().print()) + "// " + std::to_string(++number);
  }

  std::string folder;
  KernelOptions options;
};

} // namespace

TEST_F(CompiledKernelTest, ComputesAttentionInEveryVariant) {
  AttentionSpec spec = getCausal();
  spec.returnLse = true;
  for (mlir::attn::Variant variant : mlir::attn::getAllVariants()) {
    options.variant = variant;
    CompiledKernel kernel = get(CompiledKernel::compile(spec, options));
    for (int64_t length : {1, 37, 300, 5}) {
      Problem problem(length);
      ASSERT_EQ(getError(kernel.launch({}, problem.getViews(true))), "");
      EXPECT_LT(problem.getError(true), 1e-5);
    }
  }
}

TEST_F(CompiledKernelTest, FindsKernelsInMemoryAndOnDisk) {
  const std::string text = getUniqueText();
  CompiledKernel first = get(CompiledKernel::compile(text, options));
  EXPECT_EQ(first.getOrigin(), CompiledKernel::Origin::Compiled);
  EXPECT_EQ(get(options.cache->list()).size(), 1u);
  CompiledKernel second = get(CompiledKernel::compile(text, options));
  EXPECT_EQ(&first.getManifest(), &second.getManifest());

  // Others push it out of memory.
  KernelOptions uncached = options;
  uncached.cache.reset();
  for (size_t i = 0; i < CompiledKernel::kMaxInMemory; ++i)
    llvm::consumeError(
        CompiledKernel::compile("no kernel " + std::to_string(i), uncached)
            .takeError());
  CompiledKernel third = get(CompiledKernel::compile(text, options));
  EXPECT_EQ(third.getOrigin(), CompiledKernel::Origin::Disk);
  for (CompiledKernel *kernel : {&first, &third}) {
    Problem problem(50);
    ASSERT_EQ(getError(kernel->launch({}, problem.getViews())), "");
    EXPECT_LT(problem.getError(), 1e-5);
  }
}

TEST_F(CompiledKernelTest, CompilesAgainWhatIsDamagedOrUseless) {
  const std::string text = getUniqueText();
  KernelOptions other = options;
  // Each is in memory under another entry, though the same code.
  CompiledKernel first = get(CompiledKernel::compile(text, options));
  const std::string key = get(options.cache->list())[0].key;
  auto recompile = [&] {
    for (size_t i = 0; i < CompiledKernel::kMaxInMemory; ++i)
      llvm::consumeError(
          CompiledKernel::compile("none " + std::to_string(i), other)
              .takeError());
    return get(CompiledKernel::compile(text, options)).getOrigin();
  };
  EXPECT_EQ(recompile(), CompiledKernel::Origin::Disk);
  {
    std::ofstream(folder + "/" + key + ".attnc", std::ios::app) << "more";
  }
  EXPECT_EQ(recompile(), CompiledKernel::Origin::Compiled);
  EXPECT_EQ(recompile(), CompiledKernel::Origin::Disk);
  ASSERT_EQ(getError(options.cache->store(key, {"no manifest", {""}})), "");
  EXPECT_EQ(recompile(), CompiledKernel::Origin::Compiled);
  // It has replaced what was useless.
  EXPECT_EQ(recompile(), CompiledKernel::Origin::Disk);
}

TEST_F(CompiledKernelTest, SaysWhyTheCacheFails) {
  {
    std::ofstream(folder + "/file") << "no folder";
  }
  options.cache = DiskCache(folder + "/file");
  std::string reason;
  options.onCacheFailure = [&](llvm::StringRef text) { reason = text; };
  CompiledKernel kernel =
      get(CompiledKernel::compile(getUniqueText(), options));
  EXPECT_TRUE(contains(reason, folder + "/file"));
  Problem problem(10);
  ASSERT_EQ(getError(kernel.launch({}, problem.getViews())), "");
  EXPECT_LT(problem.getError(), 1e-5);
}

TEST_F(CompiledKernelTest, ThreadsCompileAndLaunchSideBySide) {
  const std::string texts[] = {getUniqueText(), getUniqueText()};
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (unsigned thread = 0; thread < 8; ++thread)
    threads.emplace_back([&, thread] {
      for (int i = 0; i < 20; ++i) {
        auto kernel = CompiledKernel::compile(texts[(thread + i) % 2], options);
        Problem problem(1 + (7 * i + thread) % 40, thread);
        wrong += !kernel ||
                 !getError(kernel->launch({}, problem.getViews())).empty() ||
                 !(problem.getError() < 1e-5);
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(wrong, 0);
  // Each was compiled once.
  EXPECT_EQ(get(options.cache->list()).size(), 2u);
}

TEST_F(CompiledKernelTest, ErrorsSayWhere) {
  EXPECT_TRUE(contains(getError(CompiledKernel::compile("func.func", options)),
                       "<module text>:1:"));
  EXPECT_TRUE(contains(getError(CompiledKernel::compile("module {}", options)),
                       "has no function to compile"));
  AttentionSpec spec = getCausal();
  spec.qkHeadDim = 577;
  const std::string error = getError(CompiledKernel::compile(spec, options));
  EXPECT_TRUE(contains(error, "error: "));
  EXPECT_TRUE(
      contains(error, "head dimension 577 of q and k is not supported"));
  EXPECT_TRUE(contains(error, "note: "));
  EXPECT_TRUE(contains(error, "<AttentionSpec>:"));
  EXPECT_TRUE(contains(error, "attn.attention ins("));
  options.sourceName = "rules.mlir";
  EXPECT_TRUE(contains(getError(CompiledKernel::compile("func.func", options)),
                       "rules.mlir:1:"));
  options.target = "sm_12";
  EXPECT_TRUE(contains(getError(CompiledKernel::compile(getCausal(), options)),
                       "unknown target 'sm_12'; known are native, "));
  options.target = "cpu";
  options.device = -1;
  EXPECT_TRUE(contains(getError(CompiledKernel::compile(getCausal(), options)),
                       "there is no device -1"));
}

TEST_F(CompiledKernelTest, RefusesTensorsThatDontFit) {
  CompiledKernel kernel = get(CompiledKernel::compile(getCausal(), options));
  Problem problem(4), longer(5);
  std::vector<TensorView> views = problem.getViews();
  views[0].dtype = DType::F16;
  EXPECT_TRUE(contains(getError(kernel.launch({}, views)),
                       "argument 'q': needs ?x2x?x8xf32, got 1x2x4x8xf16"));
  views = problem.getViews();
  views[2] = longer.getViews()[2];
  EXPECT_NE(getError(kernel.launch({}, views)), "");
  views.pop_back();
  EXPECT_TRUE(contains(getError(kernel.launch({}, views)),
                       "takes 4 arguments, 3 were given"));
}
