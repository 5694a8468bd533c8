//===- LoadedProgramTest.cpp - Which kernels serve which layouts ----------===//

#include "attn/Compiler/LoadedProgram.h"
#include "../Runtime/TestUtils.h"
#include "FakeGpu.h"
#include "attn/Compiler/CompiledKernel.h"
#include "attn/Runtime/CudnnKernel.h"
#include "attn/Runtime/Launcher.h"
#include "attn/Runtime/Random.h"
#include "attn/Runtime/TensorMaps.h"
#include "mlir/Parser/Parser.h"
#include <cmath>

using namespace attn;
using namespace attn::test;

namespace {

/// A [2, 2, n, 64] tensor with gaps between rows, in zeroed memory that starts
/// `offset` elements past a multiple of 64 bytes.
struct View {
  int64_t offset = 0;
  int64_t rowStride = 64;
};

// As many queries as take a kernel with tensor maps.
constexpr int64_t kBatch = 2, kHeads = 2, kHeadDim = 64, kLength = 200;

class LoadedProgramTest : public testing::Test {
protected:
  LoadedProgramTest() {
    mlir::DialectRegistry registry;
    mlir::attn::registerAttncDialects(registry);
    context.appendDialectRegistry(registry);
    context.getDiagEngine().registerHandler([&](mlir::Diagnostic &diagnostic) {
      messages += diagnostic.str() + "\n";
      return mlir::success();
    });
  }

  static std::string getText(llvm::StringRef element = "bf16") {
    std::string text = R"mlir(
!t = tensor<?x2x?x64x$T>
func.func @f(%q: !t {attn.name = "q"}, %k: !t {attn.name = "k"},
             %v: !t {attn.name = "v"}, %o: !t {attn.name = "o"}) -> !t {
  %r = attn.attention ins(%q, %k, %v : !t, !t, !t) outs(%o : !t) -> !t
  return %r : !t
})mlir";
    for (size_t at; (at = text.find("$T")) != std::string::npos;)
      text.replace(at, 2, element.str());
    return text;
  }

  std::unique_ptr<LoadedProgram> load(Device &device,
                                      llvm::StringRef element = "bf16",
                                      Backend backend = Backend::Fused) {
    auto module =
        mlir::parseSourceString<mlir::ModuleOp>(getText(element), &context);
    CompileOptions options;
    options.target = "sm_90a";
    options.setBackend(backend);
    return get(LoadedProgram::create(*module, options, device));
  }

  Tensor make(int64_t batch, int64_t length, const View &view,
              uint64_t stream = 0) {
    const int64_t headStride = length * view.rowStride;
    Tensor storage = get(Tensor::allocate(
        DType::BF16, {view.offset + batch * kHeads * headStride}));
    Tensor tensor = Tensor::borrow(
        DType::BF16, {batch, kHeads, length, kHeadDim},
        {kHeads * headStride, headStride, view.rowStride, 1},
        static_cast<char *>(storage.getData()) + 2 * view.offset);
    fillNormal(tensor, /*seed=*/1, stream);
    storages.push_back(storage);
    return tensor;
  }

  /// Whose kernels run on tensors of which one has the layout `odd`.
  std::string bind(LoadedProgram &program, int oddIndex, const View &odd,
                   int64_t batch = kBatch) {
    messages.clear();
    std::vector<Tensor> arguments;
    for (int i = 0; i < 4; ++i)
      arguments.push_back(make(batch, kLength, i == oddIndex ? odd : View()));
    auto invocation = get(program.bind(arguments));
    return invocation->getExecutable().getManifest().kernelTarget;
  }

  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};
  std::string messages;
  std::vector<Tensor> storages;
};

} // namespace

TEST_F(LoadedProgramTest, TakesWhatReadsTheLayout) {
  FakePtxas ptxas;
  FakeGpu device;
  auto program = load(device);
  EXPECT_EQ(bind(*program, 0, {}), "sm_90a");
  EXPECT_EQ(bind(*program, 0, {/*offset=*/8, /*rowStride=*/72}), "sm_90a");
  EXPECT_EQ(messages, "");
  ASSERT_EQ(device.images.size(), 1u);
  EXPECT_TRUE(contains(device.images[0], "wgmma"));

  EXPECT_EQ(bind(*program, 1, {/*offset=*/4}), "sm_80");
  EXPECT_EQ(messages, "TMA can't access argument 'k': its base lies 8 bytes "
                      "past a multiple of 16 bytes; runs the kernel of sm_80 "
                      "on sm_90a\n");
  EXPECT_EQ(bind(*program, 2, {/*offset=*/0, /*rowStride=*/65}), "sm_80");
  EXPECT_TRUE(contains(messages, "argument 'v': the stride of dimension 2 is "
                                 "130 bytes, no multiple of 16"));
  // Compiled once, when it was first needed.
  ASSERT_EQ(device.images.size(), 2u);
  EXPECT_FALSE(llvm::StringRef(device.images[1]).contains("wgmma"));
  EXPECT_TRUE(contains(device.images[1], ".target sm_90a"));
  // Others still get the first choice.
  EXPECT_EQ(bind(*program, 0, {}), "sm_90a");
}

TEST_F(LoadedProgramTest, ChecksWhateverHasATensorMap) {
  FakeGpu device;
  auto program = load(device);
  EXPECT_EQ(bind(*program, 0, {}), "sm_90a");
  // Q, K and V, and O where it is stored by TMA.
  const bool storesByTMA = device.maps.size() == 4;
  for (int argument = 0; argument < 3 + storesByTMA; ++argument) {
    EXPECT_EQ(bind(*program, argument, {/*offset=*/1}), "sm_80") << argument;
    EXPECT_EQ(bind(*program, argument, {0, /*rowStride=*/68}), "sm_80")
        << argument;
  }
  device.refusesMaps = true;
  EXPECT_EQ(bind(*program, 0, {}), "sm_80");
  EXPECT_TRUE(contains(messages, "refused by the driver"));
}

TEST_F(LoadedProgramTest, StrideOfOneElementSaysNothing) {
  FakeGpu device;
  auto program = load(device);
  std::vector<Tensor> arguments;
  for (int i = 0; i < 4; ++i) {
    Tensor tensor = make(/*batch=*/1, kLength, {});
    arguments.push_back(tensor.withView({1, kHeads, kLength, kHeadDim},
                                        {7, kLength * kHeadDim, kHeadDim, 1}));
  }
  auto invocation = get(program->bind(arguments));
  EXPECT_EQ(invocation->getExecutable().getManifest().kernelTarget, "sm_90a");
  for (const TensorMapShape &map : device.maps)
    for (uint64_t stride : map.strides)
      EXPECT_EQ(stride % 16, 0u);
}

TEST_F(LoadedProgramTest, F32RunsTheKernelsOfSM80) {
  FakeGpu device;
  auto program = load(device, "f32");
  const Manifest &manifest = program->getExecutable().getManifest();
  EXPECT_EQ(manifest.target, "sm_90a");
  EXPECT_EQ(manifest.kernelTarget, "sm_80");
  EXPECT_TRUE(contains(messages, "'f32' runs the kernel of sm_80 on sm_90a"));
}

TEST_F(LoadedProgramTest, CallsCudnnWithSizesAndStrides) {
  FakeGpu device;
  device.hasCudnn = true;
  auto program = load(device, "bf16", Backend::Cudnn);
  EXPECT_TRUE(device.images.empty());
  std::vector<Tensor> arguments;
  for (int i = 0; i < 4; ++i)
    arguments.push_back(make(kBatch, kLength + (i == 1 || i == 2), {0, 72}));
  auto invocation = get(program->bind(arguments));
  ASSERT_FALSE(invocation->run());
  EXPECT_EQ(device.lastGrid, 1);
  const std::vector<uint64_t> &params = device.lastParams;
  ASSERT_EQ(params.size(), CudnnNumParameters + 4u * 8);
  auto getI32 = [&](size_t index) {
    return static_cast<int32_t>(params[index]);
  };
  EXPECT_EQ(getI32(CudnnDType), static_cast<int32_t>(DType::BF16));
  EXPECT_EQ(getI32(CudnnFlags), 0);
  EXPECT_EQ(getI32(CudnnLeft), kCudnnUnbounded);
  EXPECT_EQ(getI32(CudnnRight), kCudnnUnbounded);
  EXPECT_EQ(llvm::bit_cast<float>(getI32(CudnnScale)), 0.125f);
  for (int i = 0; i < 4; ++i) {
    // Behind the address.
    const size_t first = CudnnNumParameters + 8 * i + 1;
    const int64_t length = kLength + (i == 1 || i == 2);
    const int32_t sizes[] = {kBatch, kHeads, static_cast<int32_t>(length),
                             kHeadDim};
    for (int dim = 0; dim < 4; ++dim)
      EXPECT_EQ(getI32(first + dim), sizes[dim]) << i;
    EXPECT_EQ(params[first + 4], uint64_t(kHeads * length * 72));
    EXPECT_EQ(params[first + 5], uint64_t(length * 72));
    EXPECT_EQ(params[first + 6], 72u);
  }
}

TEST_F(LoadedProgramTest, SaysWhereThereIsNoCudnn) {
  FakeGpu device;
  auto module = mlir::parseSourceString<mlir::ModuleOp>(getText(), &context);
  CompileOptions options;
  options.target = "sm_90a";
  options.setBackend(Backend::Cudnn);
  EXPECT_EQ(getError(LoadedProgram::create(*module, options, device)),
            "cuDNN needs a GPU, this is fake");
}

TEST_F(LoadedProgramTest, LauncherRefusesTheLayout) {
  FakeGpu device;
  auto program = load(device);
  Launcher launcher(program->getExecutable());
  auto launch = [&](const View &odd) {
    std::vector<Tensor> tensors;
    std::vector<TensorView> views;
    for (int i = 0; i < 4; ++i)
      tensors.push_back(make(kBatch, kLength, i == 2 ? odd : View()));
    for (const Tensor &tensor : tensors)
      views.push_back({tensor.getDType(), tensor.getShape(),
                       tensor.getStrides(), tensor.getData()});
    return launcher.launch({}, views);
  };
  EXPECT_EQ(getError(launch({})), "");
  llvm::Error error = launch({/*offset=*/1});
  EXPECT_TRUE(error.isA<UnsupportedLayout>());
  EXPECT_EQ(getError(std::move(error)),
            "TMA can't access argument 'v': its base lies 2 bytes past a "
            "multiple of 16 bytes; copy it to aligned memory, or compile for "
            "sm_80");
  EXPECT_EQ(getError(launch({})), "");
}

TEST_F(LoadedProgramTest, OtherErrorsStay) {
  FakeGpu device;
  auto program = load(device);
  EXPECT_TRUE(contains(getError(program->bind({})), "takes 4 arguments"));
}

/// On a GPU: tensors of odd layouts against the same values in rows.
TEST_F(LoadedProgramTest, LayoutDoesNotChangeTheResult) {
  auto device = createCudaDevice();
  if (!device)
    GTEST_SKIP() << llvm::toString(device.takeError());
  if (llvm::Error error = (*device)->checkTarget("sm_90a"))
    GTEST_SKIP() << llvm::toString(std::move(error));
  auto program = load(**device);
  auto run = [&](const View &view) {
    std::vector<Tensor> arguments;
    for (int i = 0; i < 4; ++i)
      arguments.push_back(make(kBatch, 200, view, /*stream=*/i));
    auto invocation = get(program->bind(arguments));
    EXPECT_EQ(getError(invocation->poisonOutputs()), "");
    EXPECT_EQ(getError(invocation->run()), "");
    EXPECT_EQ(getError(invocation->downloadOutputs()), "");
    return arguments[3].toDoubles();
  };
  const std::vector<double> want = run({});
  for (const View &view :
       {View{1, 64}, View{0, 65}, View{3, 71}, View{8, 72}}) {
    const std::vector<double> got = run(view);
    for (size_t i = 0; i < want.size(); ++i)
      ASSERT_NEAR(got[i], want[i], 2e-2 * (1 + std::abs(want[i]))) << i;
  }
}

/// The same through the API for memory of the caller.
TEST_F(LoadedProgramTest, CompiledKernelTakesAnyLayout) {
  auto found = createCudaDevice();
  if (!found)
    GTEST_SKIP() << llvm::toString(found.takeError());
  Device &device = **found;
  if (llvm::Error error = device.checkTarget("sm_90a"))
    GTEST_SKIP() << llvm::toString(std::move(error));
  std::string reason;
  KernelOptions options;
  options.target = "sm_90a";
  options.cache.reset();
  options.onSecondKernel = [&](llvm::StringRef text) { reason += text; };
  CompiledKernel kernel = get(CompiledKernel::compile(getText(), options));
  auto run = [&](const View &view) {
    std::vector<Tensor> tensors;
    std::vector<DeviceMemory> memory;
    std::vector<TensorView> views;
    // The views point into them.
    tensors.reserve(4);
    for (int i = 0; i < 4; ++i) {
      const Tensor &tensor =
          tensors.emplace_back(make(kBatch, 200, view, /*stream=*/i));
      const int64_t bytes = 2 * view.offset + tensor.getFootprintBytes();
      const DeviceAddress address =
          memory.emplace_back(get(DeviceMemory::allocate(device, bytes)))
              .getAddress() +
          2 * view.offset;
      EXPECT_EQ(getError(device.upload(address, tensor.getData(),
                                       tensor.getFootprintBytes())),
                "");
      views.push_back({tensor.getDType(), tensors.back().getShape(),
                       tensors.back().getStrides(),
                       reinterpret_cast<void *>(address)});
    }
    EXPECT_EQ(getError(kernel.launch({}, views)), "");
    EXPECT_EQ(getError(kernel.getDevice().synchronize(Stream{})), "");
    EXPECT_EQ(
        getError(device.download(tensors[3].getData(),
                                 reinterpret_cast<DeviceAddress>(views[3].data),
                                 tensors[3].getFootprintBytes())),
        "");
    return tensors[3].toDoubles();
  };
  const std::vector<double> want = run({});
  EXPECT_EQ(reason, "");
  const std::vector<double> got = run({/*offset=*/1});
  EXPECT_TRUE(contains(reason, "its base lies 2 bytes past"));
  for (size_t i = 0; i < want.size(); ++i)
    ASSERT_NEAR(got[i], want[i], 2e-2 * (1 + std::abs(want[i]))) << i;
}
