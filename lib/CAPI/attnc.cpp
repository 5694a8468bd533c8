//===- attnc.cpp - The compiler and its kernels from C --------------------===//

#include "attn-c/attnc.h"
#include "Common.h"
#include "DLPack.h"
#include "Views.h"
#include "llvm/ADT/STLExtras.h"
#include <cstring>

using namespace attn;
using namespace attn::capi;
using namespace attn::dlpack;

static std::string &getLastError() {
  static thread_local std::string text;
  return text;
}

void capi::keep(llvm::Error error) {
  getLastError() = llvm::toString(std::move(error));
}

int capi::report(llvm::Error error) {
  if (!error)
    return 0;
  keep(std::move(error));
  return -1;
}

bool capi::isGiven(const void *pointer, const char *name) {
  if (pointer)
    return true;
  keep(llvm::createStringError("'%s' is missing (null)", name));
  return false;
}

std::string &capi::getText() {
  static thread_local std::string text;
  text.clear();
  return text;
}

const char *attnc_version(void) { return ATTNC_VERSION; }

const char *attnc_last_error(void) { return getLastError().c_str(); }

//===----------------------------------------------------------------------===//
// Compiling
//===----------------------------------------------------------------------===//

llvm::Expected<KernelOptions> capi::getOptions(const attnc_options *caller) {
  attnc_options given = {};
  // One that wasn't set would leave all that was out.
  if (caller && caller->size < sizeof(caller->size))
    return llvm::createStringError("attnc_options::size is " +
                                   llvm::Twine(caller->size) +
                                   "; set it to sizeof(attnc_options)");
  if (caller)
    std::memcpy(&given, caller, std::min(caller->size, sizeof(given)));
  KernelOptions options;
  if (given.variant) {
    auto variant = mlir::attn::symbolizeVariant(given.variant);
    if (!variant)
      return llvm::createStringError(
          llvm::Twine("unknown variant '") + given.variant +
          "'; known are naive, inplace, math and fused");
    options.variant = *variant;
  }
  if (given.target)
    options.target = given.target;
  if (given.entry)
    options.entry = given.entry;
  options.device = given.device;
  if (given.backend) {
    llvm::Expected<Backend> backend = parseBackend(given.backend);
    if (!backend)
      return backend.takeError();
    options.backend = *backend;
  }
  if (given.cache_dir) {
    options.cache.reset();
    if (llvm::StringRef(given.cache_dir) != "off")
      options.cache.emplace(given.cache_dir);
  }
  if (given.on_remark) {
    auto tell = [given](const llvm::Twine &text) {
      given.on_remark(given.remark_context, text.str().c_str());
    };
    options.onCacheFailure = [tell](llvm::StringRef reason) {
      tell("the compiled kernel isn't kept: " + reason);
    };
    options.onSecondKernel = [tell](llvm::StringRef reason) {
      tell(reason + "; another kernel is compiled, sm_80's, which is slower");
    };
  }
  return options;
}

static llvm::Expected<attnc_kernel *> compile(llvm::StringRef text,
                                              const attnc_options *caller) {
  llvm::Expected<KernelOptions> options = getOptions(caller);
  if (!options)
    return options.takeError();
  llvm::Expected<CompiledKernel> kernel =
      CompiledKernel::compile(text, *options);
  if (!kernel)
    return kernel.takeError();
  return new attnc_kernel{*kernel, options->device,
                          kernel->getDevice().getName()};
}

attnc_kernel *attnc_compile(const char *text, size_t length,
                            const attnc_options *options) {
  if (!isGiven(text, "text"))
    return nullptr;
  llvm::Expected<attnc_kernel *> kernel =
      compile(llvm::StringRef(text, length), options);
  if (kernel)
    return *kernel;
  keep(kernel.takeError());
  return nullptr;
}

void attnc_release(attnc_kernel *kernel) { delete kernel; }

const char *attnc_manifest(const attnc_kernel *kernel) {
  if (!isGiven(kernel, "kernel"))
    return nullptr;
  return kernel->kernel.getManifestText().c_str();
}

const char *attnc_device_name(const attnc_kernel *kernel) {
  if (!isGiven(kernel, "kernel"))
    return nullptr;
  return kernel->deviceName.c_str();
}

int attnc_prepare(const attnc_kernel *kernel) {
  if (!isGiven(kernel, "kernel"))
    return -1;
  return report(kernel->kernel.prepare());
}

//===----------------------------------------------------------------------===//
// Launching
//===----------------------------------------------------------------------===//

/// `data`: where the tensors' data lies, if not where they say.
static llvm::Error launch(const attnc_kernel *kernel, Stream stream,
                          llvm::ArrayRef<const void *> tensors,
                          void *const *data, unsigned flags) {
  if (flags & ~unsigned(ATTNC_CAPTURES_UNCHANGED))
    return llvm::createStringError("unknown flags of a launch: " +
                                   llvm::Twine(flags));
  const Manifest &manifest = kernel->kernel.getManifest();
  if (tensors.size() != manifest.arguments.size())
    return llvm::createStringError("'" + manifest.entry + "' takes " +
                                   llvm::Twine(manifest.arguments.size()) +
                                   " arguments, " +
                                   llvm::Twine(tensors.size()) + " were given");
  Views views;
  for (auto [index, argument] : llvm::enumerate(manifest.arguments))
    if (llvm::Error error =
            views.add(*kernel, argument, tensors[index],
                      data ? std::optional<void *>(data[index]) : std::nullopt))
      return error;
  LaunchOptions options;
  options.capturesUnchanged = flags & ATTNC_CAPTURES_UNCHANGED;
  return kernel->kernel.launch(stream, views.get(), options);
}

int attnc_launch(const attnc_kernel *kernel, void *stream,
                 const void *const *tensors, size_t num_tensors) {
  return attnc_launch_with(kernel, stream, tensors, nullptr, num_tensors, 0);
}

int attnc_launch_at(const attnc_kernel *kernel, void *stream,
                    const void *const *tensors, void *const *data,
                    size_t num_tensors) {
  return attnc_launch_with(kernel, stream, tensors, data, num_tensors, 0);
}

int attnc_launch_with(const attnc_kernel *kernel, void *stream,
                      const void *const *tensors, void *const *data,
                      size_t num_tensors, unsigned flags) {
  if (!isGiven(kernel, "kernel") || !isGiven(tensors, "tensors"))
    return -1;
  return report(launch(kernel, {stream}, {tensors, num_tensors}, data, flags));
}

static llvm::Expected<llvm::SmallVector<int64_t, 4>>
getOutputShape(const Manifest &manifest, llvm::ArrayRef<const void *> inputs,
               size_t output) {
  llvm::SmallVector<unsigned> outputs;
  for (auto [index, argument] : llvm::enumerate(manifest.arguments))
    if (argument.isOutput)
      outputs.push_back(index);
  if (output >= outputs.size())
    return llvm::createStringError("'" + manifest.entry + "' has " +
                                   llvm::Twine(outputs.size()) + " outputs");
  if (inputs.size() + outputs.size() != manifest.arguments.size())
    return llvm::createStringError(
        "'" + manifest.entry + "' takes " +
        llvm::Twine(manifest.arguments.size() - outputs.size()) + " inputs, " +
        llvm::Twine(inputs.size()) + " were given");
  std::vector<llvm::SmallVector<int64_t, 4>> shapes;
  for (auto [index, input] : llvm::enumerate(inputs)) {
    auto tensor = getTensor("input " + llvm::Twine(index), input);
    if (!tensor)
      return tensor.takeError();
    shapes.emplace_back((*tensor)->shape, (*tensor)->shape + (*tensor)->rank);
  }
  auto inferred = manifest.inferShapes(shapes);
  if (!inferred)
    return inferred.takeError();
  return (*inferred)[outputs[output]];
}

int attnc_output_shape(const attnc_kernel *kernel, const void *const *inputs,
                       size_t num_inputs, size_t output, int64_t *sizes,
                       size_t capacity) {
  if (!isGiven(kernel, "kernel") ||
      (num_inputs && !isGiven(inputs, "inputs")) ||
      (capacity && !isGiven(sizes, "sizes")))
    return -1;
  auto shape = getOutputShape(kernel->kernel.getManifest(),
                              {inputs, num_inputs}, output);
  if (!shape) {
    keep(shape.takeError());
    return -1;
  }
  llvm::copy(llvm::ArrayRef(*shape).take_front(capacity), sizes);
  return shape->size();
}
