//===- profile.cpp - Where the time of a program goes, from C++ -----------===//
//
// Records the unfused and the fused kernels on the CPU, and shows both; given a
// path, it also writes a page with charts there. On a GPU, kernels of other
// libraries would show beside them.
//
//===----------------------------------------------------------------------===//

#include "attn/Compiler/CompiledKernel.h"
#include "attn/Profile/Html.h"
#include "attn/Profile/Profiler.h"

using namespace attn;

static constexpr int64_t kHeads = 2, kLength = 64, kDim = 16, kCalls = 10;

/// Compiles a variant and launches it: the first call, and those that count.
static llvm::Error runVariant(Profiler &profiler, KernelOptions options,
                              const AttentionSpec &spec) {
  const int64_t size = kHeads * kLength * kDim;
  std::vector<float> q(size), k(size), v(size), o(size);
  const int64_t shape[] = {1, kHeads, kLength, kDim};
  const int64_t strides[] = {size, kLength * kDim, kDim, 1};
  auto view = [&](std::vector<float> &tensor) {
    return TensorView{DType::F32, shape, strides, tensor.data()};
  };
  const TensorView views[] = {view(q), view(k), view(v), view(o)};

  profiler.beginPhase("first");
  llvm::Expected<CompiledKernel> kernel =
      CompiledKernel::compile(spec, options);
  if (!kernel)
    return kernel.takeError();
  if (llvm::Error error = kernel->launch({}, views))
    return error;
  if (llvm::Error error = profiler.endPhase(/*calls=*/1))
    return error;

  profiler.beginPhase("steady");
  for (int64_t i = 0; i < kCalls; ++i)
    if (llvm::Error error = kernel->launch({}, views))
      return error;
  return profiler.endPhase(kCalls);
}

static llvm::Error writeReport(const char *path, const ProfileFile &file) {
  if (llvm::Error error = checkCanWriteHtml())
    return error;
  return llvm::writeToOutput(path, [&](llvm::raw_ostream &os) {
    writeHtmlReport(os, file, {});
    return llvm::Error::success();
  });
}

static llvm::Error run(const char *reportPath) {
  AttentionSpec spec;
  spec.dtype = DType::F32;
  spec.numQueryHeads = spec.numKVHeads = kHeads;
  spec.qkHeadDim = spec.vHeadDim = kDim;
  spec.maskMod = mlir::attn::getCausalMask();
  KernelOptions options;
  options.target = "cpu";
  llvm::Expected<std::shared_ptr<Device>> device = getSharedDevice(options);
  if (!device)
    return device.takeError();

  Profiler profiler(**device);
  ProfileFile file;
  for (auto variant :
       {mlir::attn::Variant::Naive, mlir::attn::Variant::Fused}) {
    options.variant = variant;
    if (llvm::Error error = profiler.begin(
            mlir::attn::stringifyVariant(variant), options.target))
      return error;
    if (llvm::Error error = runVariant(profiler, options, spec))
      return error;
    llvm::Expected<RegionProfile> region = profiler.end();
    if (!region)
      return region.takeError();
    file.regions.push_back(std::move(*region));
  }
  llvm::Expected<ProfileEnvironment> environment =
      profiler.describeEnvironment();
  if (!environment)
    return environment.takeError();
  file.environment = std::move(*environment);
  printProfile(llvm::outs(), file, {});
  return reportPath ? writeReport(reportPath, file) : llvm::Error::success();
}

int main(int argc, char **argv) {
  if (llvm::Error error = run(argc > 1 ? argv[1] : nullptr)) {
    llvm::errs() << llvm::toString(std::move(error)) << '\n';
    return EXIT_FAILURE;
  }
}
