//===- Replay.cpp - Launches on objects of a Python package ---------------===//
//
// Tensors are read by DLPack's C exchange API, without a capsule each. Nothing
// of Python is linked: its few functions are those of the process.
//
//===----------------------------------------------------------------------===//

#include "Common.h"
#include "DLPack.h"
#include "Views.h"
#include "llvm/ADT/STLExtras.h"
#include <cstdarg>
#include <dlfcn.h>

using namespace attn;
using namespace attn::capi;
using namespace attn::dlpack;

namespace {

/// Lets other threads run Python while it lives.
class WithoutGIL {
public:
  WithoutGIL() : state(getFunctions().save()) {}
  ~WithoutGIL() { getFunctions().restore(state); }

  static bool isAvailable() {
    return getFunctions().save && getFunctions().restore;
  }

private:
  struct Functions {
    void *(*save)();
    void (*restore)(void *);
  };
  static const Functions &getFunctions() {
    static const Functions functions = {
        reinterpret_cast<void *(*)()>(dlsym(RTLD_DEFAULT, "PyEval_SaveThread")),
        reinterpret_cast<void (*)(void *)>(
            dlsym(RTLD_DEFAULT, "PyEval_RestoreThread"))};
    return functions;
  }

  void *state;
};

/// What a tensor must be like.
class Layout {
public:
  explicit Layout(const DLTensor &tensor)
      : device(tensor.device), dtype(tensor.dtype),
        shape(tensor.shape, tensor.shape + tensor.rank) {
    if (tensor.strides)
      strides.assign(tensor.strides, tensor.strides + tensor.rank);
  }

  bool matches(const DLTensor &tensor) const {
    return tensor.device.type == device.type && tensor.device.id == device.id &&
           tensor.dtype.code == dtype.code && tensor.dtype.bits == dtype.bits &&
           tensor.dtype.lanes == dtype.lanes &&
           size_t(tensor.rank) == shape.size() &&
           std::equal(shape.begin(), shape.end(), tensor.shape) &&
           (tensor.strides
                ? strides.size() == shape.size() &&
                      std::equal(strides.begin(), strides.end(), tensor.strides)
                : strides.empty());
  }

  DLDevice getDevice() const { return device; }

private:
  DLDevice device;
  DLDataType dtype;
  llvm::SmallVector<int64_t, 4> shape, strides;
};

} // namespace

struct attnc_replay {
  const CompiledKernel kernel;
  const ExchangeAPI &api;
  /// One an argument; the views point into them.
  std::vector<DLTensor> tensors;
  std::vector<llvm::SmallVector<int64_t, 8>> sizes;
  std::vector<Layout> layouts;
  Views views;
};

/// Copies the descriptors, whose shapes and strides are the caller's.
static llvm::Error addTensors(attnc_replay &replay, const attnc_kernel &kernel,
                              llvm::ArrayRef<const void *> tensors) {
  const Manifest &manifest = kernel.kernel.getManifest();
  if (tensors.size() != manifest.arguments.size())
    return llvm::createStringError("'" + manifest.entry + "' takes " +
                                   llvm::Twine(manifest.arguments.size()) +
                                   " arguments, " +
                                   llvm::Twine(tensors.size()) + " were given");
  for (auto [argument, pointer] :
       llvm::zip_equal(manifest.arguments, tensors)) {
    auto given = getTensor("argument '" + argument.name + "'", pointer);
    if (!given)
      return given.takeError();
    const DLTensor &tensor = **given;
    auto &sizes =
        replay.sizes.emplace_back(tensor.shape, tensor.shape + tensor.rank);
    if (tensor.strides)
      sizes.append(tensor.strides, tensor.strides + tensor.rank);
    replay.tensors.push_back(tensor);
  }
  for (auto [argument, tensor, sizes] :
       llvm::zip_equal(manifest.arguments, replay.tensors, replay.sizes)) {
    tensor.shape = sizes.data();
    if (tensor.strides)
      tensor.strides = sizes.data() + tensor.rank;
    if (llvm::Error error =
            replay.views.add(kernel, argument, &tensor, std::nullopt))
      return error;
  }
  return llvm::Error::success();
}

static llvm::Expected<std::unique_ptr<attnc_replay>>
createReplay(const attnc_kernel *kernel, const void *exchange_api,
             llvm::ArrayRef<const void *> tensors,
             llvm::ArrayRef<const void *> objects) {
  const auto *api = static_cast<const ExchangeAPI *>(exchange_api);
  if (!api || api->version.major != kExchangeMajorVersion)
    return llvm::createStringError(
        "a DLPack exchange API of version %u is needed", kExchangeMajorVersion);
  if (!api->readTensor || !api->getCurrentStream)
    return llvm::createStringError(
        "the DLPack exchange API doesn't describe tensors without owning them");
  if (!WithoutGIL::isAvailable())
    return llvm::createStringError("this process doesn't run Python");
  auto replay = std::unique_ptr<attnc_replay>(
      new attnc_replay{kernel->kernel, *api, {}, {}, {}, {}});
  if (llvm::Error error = addTensors(*replay, *kernel, tensors))
    return std::move(error);
  for (auto [index, object] : llvm::enumerate(objects)) {
    auto tensor = getTensor("object " + llvm::Twine(index), object);
    if (!tensor)
      return tensor.takeError();
    replay->layouts.emplace_back(**tensor);
  }
  return replay;
}

attnc_replay *attnc_replay_create(const attnc_kernel *kernel,
                                  const void *exchange_api,
                                  const void *const *tensors,
                                  const void *const *objects,
                                  size_t num_tensors) {
  if (!isGiven(kernel, "kernel") || !isGiven(tensors, "tensors"))
    return nullptr;
  auto replay = createReplay(kernel, exchange_api, {tensors, num_tensors},
                             {objects ? objects : tensors, num_tensors});
  if (replay)
    return replay->release();
  keep(replay.takeError());
  return nullptr;
}

void attnc_replay_release(attnc_replay *replay) { delete replay; }

static llvm::Error launch(const attnc_replay &replay, Stream stream,
                          llvm::ArrayRef<TensorView> views, unsigned flags) {
  LaunchOptions options;
  options.capturesUnchanged = flags & ATTNC_CAPTURES_UNCHANGED;
  WithoutGIL others;
  return replay.kernel.launch(stream, views, options);
}

int attnc_replay_launch(const attnc_replay *replay, void *stream,
                        unsigned flags, ...) {
  if (!isGiven(replay, "replay"))
    return -1;
  llvm::SmallVector<TensorView, 8> views(replay->views.get());
  va_list objects;
  va_start(objects, flags);
  int status = 0;
  for (auto [view, layout] : llvm::zip_equal(views, replay->layouts)) {
    DLTensor tensor;
    // An exception of Python's says why not.
    if (replay->api.readTensor(va_arg(objects, void *), &tensor))
      status = -1;
    else if (!layout.matches(tensor))
      status = 1;
    if (status)
      break;
    view.data = static_cast<char *>(tensor.data) + tensor.byteOffset;
  }
  va_end(objects);
  if (status)
    return status;
  const DLDevice device = replay->layouts.back().getDevice();
  if ((flags & ATTNC_CURRENT_STREAM) && device.type != kDLCPU &&
      replay->api.getCurrentStream(device.type, device.id, &stream))
    return -1;
  return report(launch(*replay, {stream}, views, flags));
}
