//===- GpuCodeTest.cpp - GPU kernels made when they are needed ------------===//

#include "../../lib/Compiler/GpuCode.h"
#include "../Runtime/TestUtils.h"
#include "FakeGpu.h"
#include "attn/Compiler/AttentionSpec.h"
#include "attn/Compiler/Compiler.h"
#include "attn/Runtime/Launcher.h"
#include "mlir/Parser/Parser.h"
#include <future>
#include <thread>

using namespace attn;
using namespace attn::test;

namespace {

constexpr int64_t kHeads = 2, kHeadDim = 64;

class GpuCodeTest : public testing::Test {
protected:
  GpuCodeTest() {
    AttentionSpec spec;
    spec.numQueryHeads = spec.numKVHeads = kHeads;
    spec.qkHeadDim = spec.vHeadDim = kHeadDim;
    text = get(spec.print());
    compileOptions.target = "sm_90a";
    manifest = get(emitManifest(*get(lowerText()).module, compileOptions));
  }

  llvm::Expected<LoweredModule> lowerText() {
    ++numLowered;
    mlir::DialectRegistry registry;
    mlir::attn::registerAttncDialects(registry);
    LoweredModule result;
    result.context = std::make_unique<mlir::MLIRContext>(
        registry, mlir::MLIRContext::Threading::DISABLED);
    auto module = mlir::parseSourceString<mlir::ModuleOp>(
        text, result.context.get(), "kernel.mlir");
    auto lowered = lower(*module, compileOptions);
    if (!lowered)
      return lowered.takeError();
    result.module = std::move(*lowered);
    return result;
  }

  GpuCode::Options getOptions() {
    GpuCode::Options options;
    options.target = compileOptions.target;
    options.lower = [this] { return lowerText(); };
    options.store = [this](std::vector<std::string> images) {
      stored.push_back(std::move(images));
      return llvm::Error::success();
    };
    return options;
  }

  std::shared_ptr<GpuCode> make(GpuCode::Options options) {
    return std::make_shared<GpuCode>(get(Manifest::parse(manifest)),
                                     std::move(options));
  }

  std::unique_ptr<Executable> load(std::shared_ptr<GpuCode> code) {
    return get(Executable::createLazily(get(Manifest::parse(manifest)),
                                        std::move(code), device));
  }

  /// Launches on queries of such a length.
  std::string launch(const Executable &executable, int64_t length) {
    Launcher launcher(executable);
    const int64_t shape[] = {1, kHeads, length, kHeadDim};
    const int64_t strides[] = {kHeads * length * kHeadDim, length * kHeadDim,
                               kHeadDim, 1};
    std::vector<TensorView> views;
    for (intptr_t i = 1; i <= 4; ++i)
      views.push_back(
          {DType::BF16, shape, strides, reinterpret_cast<void *>(i << 32)});
    return getError(launcher.launch({}, views));
  }

  /// A launch, and the background's work behind it.
  std::unique_ptr<Executable> loadAndComplete() {
    std::promise<void> completed;
    GpuCode::Options options = getOptions();
    options.continuesInBackground = true;
    options.store = [&](const std::vector<std::string> &images) {
      if (count(images) == images.size())
        completed.set_value();
      return llvm::Error::success();
    };
    auto executable = load(make(std::move(options)));
    EXPECT_EQ(launch(*executable, 500), "");
    EXPECT_EQ(completed.get_future().wait_for(std::chrono::minutes(2)),
              std::future_status::ready);
    return executable;
  }

  /// The entries of what was loaded, in order.
  std::vector<std::string> getLoaded() const {
    std::vector<std::string> names;
    for (llvm::StringRef image : device.images)
      for (size_t at = 0;
           (at = image.find(".entry ", at)) != llvm::StringRef::npos;)
        names.push_back(image.substr(at += 7)
                            .take_until([](char c) { return c == '('; })
                            .str());
    return names;
  }

  static size_t count(const std::vector<std::string> &images) {
    return llvm::count_if(images, [](auto &image) { return !image.empty(); });
  }

  FakePtxas ptxas;
  FakeGpu device;
  std::string text, manifest;
  CompileOptions compileOptions;
  std::atomic<int> numLowered = 0;
  /// What was given to be kept, each time.
  std::vector<std::vector<std::string>> stored;
};

} // namespace

TEST_F(GpuCodeTest, MakesWhatALaunchNeeds) {
  auto code = make(getOptions());
  auto executable = load(code);
  EXPECT_TRUE(device.images.empty());
  EXPECT_EQ(launch(*executable, 500), "");
  EXPECT_EQ(getLoaded(),
            (std::vector<std::string>{"fused_attn_wgmma_bf16_d64"}));
  EXPECT_TRUE(llvm::StringRef(device.images[0]).starts_with(kAssembled));
  ASSERT_EQ(stored.size(), 1u);
  EXPECT_EQ(count(stored[0]), 1u);

  // Again, and of other lengths of the same kernel: nothing.
  EXPECT_EQ(launch(*executable, 500), "");
  EXPECT_EQ(launch(*executable, 700), "");
  EXPECT_EQ(device.images.size(), 1u);

  // One query has a kernel of its own, for which nothing is lowered again.
  EXPECT_EQ(launch(*executable, 1), "");
  EXPECT_EQ(device.images.size(), 2u);
  EXPECT_TRUE(contains(getLoaded()[1], "decode"));
  EXPECT_EQ(numLowered, 2);

  EXPECT_EQ(getError(executable->prepare()), "");
  EXPECT_EQ(device.images.size(), code->getNumParts());
  EXPECT_EQ(count(stored.back()), code->getNumParts());
  // The kernels of the manifest, each once.
  std::vector<std::string> loaded = getLoaded(), expected;
  for (const Kernel &kernel : executable->getManifest().kernels)
    expected.push_back(kernel.name);
  llvm::sort(loaded);
  llvm::sort(expected);
  EXPECT_EQ(loaded, expected);
}

TEST_F(GpuCodeTest, CompletesWhatWasStored) {
  EXPECT_EQ(launch(*load(make(getOptions())), 500), "");
  device.images.clear();
  numLowered = 0;

  auto code = make(getOptions());
  ASSERT_TRUE(code->setImages(stored[0]));
  auto executable = load(code);
  EXPECT_EQ(launch(*executable, 500), "");
  EXPECT_EQ(numLowered, 0);
  EXPECT_EQ(stored.size(), 1u);
  EXPECT_EQ(launch(*executable, 1), "");
  EXPECT_EQ(numLowered, 1);
  EXPECT_EQ(device.images.size(), 2u);
  EXPECT_EQ(count(stored.back()), 2u);

  EXPECT_FALSE(make(getOptions())->setImages({"one too few"}));
}

TEST_F(GpuCodeTest, LeavesToTheDriverWhatItRefuses) {
  device.refuses = [](llvm::StringRef image) {
    return image.starts_with(kAssembled) || image == "useless";
  };
  auto code = make(getOptions());
  // What the disk has is made anew first.
  ASSERT_TRUE(code->setImages(
      std::vector<std::string>(code->getNumParts(), "useless")));
  auto executable = load(code);
  EXPECT_EQ(launch(*executable, 500), "");
  ASSERT_EQ(device.images.size(), 1u);
  EXPECT_TRUE(contains(device.images[0], ".target sm_90a"));
  EXPECT_FALSE(llvm::StringRef(device.images[0]).starts_with(kAssembled));
  // It has replaced what was useless.
  EXPECT_TRUE(llvm::is_contained(stored.back(), device.images[0]));

  device.refuses = [](llvm::StringRef) { return true; };
  EXPECT_EQ(launch(*executable, 1), "refused by the driver");
  device.refuses = nullptr;
  EXPECT_EQ(launch(*executable, 1), "");
}

TEST_F(GpuCodeTest, GoesOnInTheBackground) {
  auto executable = loadAndComplete();
  // It is loaded by who needs it.
  EXPECT_EQ(device.images.size(), 1u);
  EXPECT_EQ(launch(*executable, 1), "");
  EXPECT_EQ(device.images.size(), 2u);
}

/// In a process of its own: it ends, whatever is under way.
TEST_F(GpuCodeTest, ExitsWhileTheBackgroundWorks) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto launchAndExit = [&] {
    GpuCode::Options options = getOptions();
    options.continuesInBackground = true;
    auto executable = load(make(std::move(options)));
    const bool isRight = launch(*executable, 500).empty();
    ptxas.remove();
    std::exit(isRight ? 0 : 1);
  };
  EXPECT_EXIT(launchAndExit(), testing::ExitedWithCode(0), "");
}

/// In a process that hasn't compiled yet, code that comes from elsewhere and
/// isn't all there: the thread would be older than what compiling uses.
TEST_F(GpuCodeTest, LetsNoThreadBeTheFirstToCompile) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto launchStored = [&] {
    GpuCode::Options options = getOptions();
    options.continuesInBackground = true;
    auto code = make(std::move(options));
    std::vector<std::string> images(code->getNumParts());
    // Of long queries.
    images.back() = kAssembled;
    const bool isTaken = code->setImages(std::move(images));
    auto executable = load(code);
    const bool isRight = launch(*executable, 500).empty();
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    // In the constructor.
    std::exit(isTaken && isRight && numLowered == 1 ? 0 : 1);
  };
  EXPECT_EXIT(launchStored(), testing::ExitedWithCode(0), "");
}

/// A child that was forked has no such thread, and waits for none.
TEST_F(GpuCodeTest, ForkedProcessesExit) {
  GTEST_FLAG_SET(death_test_style, "fast");
  auto executable = loadAndComplete();
  // Until the thread waits for more.
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_EXIT(std::exit(0), testing::ExitedWithCode(0), "");
}

TEST_F(GpuCodeTest, SaysWhyNothingIsStored) {
  std::string reason;
  GpuCode::Options options = getOptions();
  options.store = [](auto) { return llvm::createStringError("disk full"); };
  options.onStoreFailure = [&](llvm::StringRef text) { reason = text; };
  EXPECT_EQ(launch(*load(make(std::move(options))), 500), "");
  EXPECT_EQ(reason, "disk full");
}

TEST_F(GpuCodeTest, ThreadsWaitForOneAnother) {
  auto executable = load(make(getOptions()));
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int i = 0; i < 6; ++i)
    threads.emplace_back(
        [&, i] { wrong += launch(*executable, i % 2 ? 500 : 1) != ""; });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(device.images.size(), 2u);
  EXPECT_EQ(numLowered, 2);
}
