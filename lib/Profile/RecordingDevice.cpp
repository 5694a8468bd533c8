//===- RecordingDevice.cpp - Records what goes through it -----------------===//

#include "RecordingDevice.h"

using namespace attn;

namespace {

class RecordingKernel : public LoadedKernel {
public:
  RecordingKernel(std::unique_ptr<LoadedKernel> kernel, const Kernel &info)
      : kernel(std::move(kernel)), info(info) {}

  std::optional<KernelResources> getResources() const override {
    return kernel->getResources();
  }

  LaunchConfig getLaunch(int64_t grid) const;

  const std::unique_ptr<LoadedKernel> kernel;
  const Kernel info;
};

class RecordingModule : public LoadedModule {
public:
  explicit RecordingModule(std::unique_ptr<LoadedModule> module)
      : module(std::move(module)) {}

  llvm::Expected<std::unique_ptr<LoadedKernel>>
  getKernel(const Kernel &kernel) override {
    llvm::Expected<std::unique_ptr<LoadedKernel>> loaded =
        module->getKernel(kernel);
    if (!loaded)
      return loaded.takeError();
    return std::make_unique<RecordingKernel>(std::move(*loaded), kernel);
  }

private:
  const std::unique_ptr<LoadedModule> module;
};

} // namespace

LaunchConfig RecordingKernel::getLaunch(int64_t grid) const {
  LaunchConfig launch;
  launch.grid = {grid, 1, 1};
  launch.block = info.block;
  launch.cluster = info.cluster;
  if (std::optional<KernelResources> resources = kernel->getResources()) {
    launch.registers = resources->registers;
    launch.staticSharedBytes = resources->sharedBytes - info.dynamicSharedBytes;
    launch.dynamicSharedBytes = info.dynamicSharedBytes;
    launch.localBytes = resources->localBytes;
  }
  return launch;
}

llvm::Expected<std::unique_ptr<LoadedModule>>
RecordingDevice::load(const KernelCode &code) {
  llvm::Expected<std::unique_ptr<LoadedModule>> module = device.load(code);
  if (!module)
    return module.takeError();
  if (!code.image.empty())
    images.push_back(code.image);
  return std::make_unique<RecordingModule>(std::move(*module));
}

llvm::Expected<std::unique_ptr<LoadedModule>> RecordingDevice::loadCudnn() {
  llvm::Expected<std::unique_ptr<LoadedModule>> module = device.loadCudnn();
  if (!module)
    return module.takeError();
  return std::make_unique<RecordingModule>(std::move(*module));
}

//===----------------------------------------------------------------------===//
// Timing
//===----------------------------------------------------------------------===//

void RecordingDevice::setTiming(bool enabled) { isTiming = enabled; }

llvm::Expected<std::unique_ptr<Event>> RecordingDevice::recordEvent() {
  llvm::Expected<std::unique_ptr<Event>> event = device.createEvent();
  if (!event)
    return event.takeError();
  if (llvm::Error error = device.record(**event))
    return std::move(error);
  return event;
}

llvm::Error
RecordingDevice::timedByEvents(DeviceRecord record, llvm::StringRef name,
                               const std::optional<LaunchConfig> &launch,
                               llvm::function_ref<llvm::Error()> work) {
  llvm::Expected<std::unique_ptr<Event>> start = recordEvent();
  if (!start)
    return start.takeError();
  if (llvm::Error error = work())
    return error;
  llvm::Expected<std::unique_ptr<Event>> end = recordEvent();
  if (!end)
    return end.takeError();
  pending.push_back(
      {record, name.str(), launch, std::move(*start), std::move(*end)});
  return llvm::Error::success();
}

llvm::Error RecordingDevice::timed(DeviceRecord record, llvm::StringRef name,
                                   const std::optional<LaunchConfig> &launch,
                                   Stream stream,
                                   llvm::function_ref<llvm::Error()> work) {
  if (!isTiming)
    return work();
  if (stream.handle != device.getOwnStream().handle) {
    recorder.addNote("work on other streams than the device's own is timed by "
                     "CUPTI only");
    return work();
  }
  record.correlation = recorder.getNewCorrelation();
  const int64_t startNs = recorder.now();
  if (llvm::Error error = timedByEvents(record, name, launch, work))
    return error;
  recorder.add(HostActivity::Launch, name, startNs, recorder.now(),
               record.correlation);
  return llvm::Error::success();
}

llvm::Error RecordingDevice::finishTiming() {
  const int64_t startNs = recorder.now();
  if (llvm::Error error = device.synchronizeAll())
    return error;
  if (pending.empty())
    return llvm::Error::success();
  // Places the events on the host's clock: what is recorded on an idle device
  // happens now.
  llvm::Expected<std::unique_ptr<Event>> reference = recordEvent();
  if (!reference)
    return reference.takeError();
  if (llvm::Error error = device.synchronize())
    return error;
  const int64_t referenceNs = recorder.now();
  recorder.add(HostActivity::Wait, "synchronize", startNs, referenceNs);
  for (Pending &work : pending) {
    llvm::Expected<double> toReference =
        device.getElapsedMicroseconds(*work.start, **reference);
    if (!toReference)
      return toReference.takeError();
    llvm::Expected<double> duration =
        device.getElapsedMicroseconds(*work.start, *work.end);
    if (!duration)
      return duration.takeError();
    work.record.startNs =
        referenceNs - static_cast<int64_t>(*toReference * 1e3);
    work.record.endNs =
        work.record.startNs + static_cast<int64_t>(*duration * 1e3);
    recorder.add(work.record, work.name, work.launch);
  }
  pending.clear();
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Work
//===----------------------------------------------------------------------===//

static DeviceRecord makeRecord(DeviceActivity activity, int64_t bytes = 0) {
  DeviceRecord record = {};
  record.activity = activity;
  record.bytes = bytes;
  return record;
}

llvm::Error RecordingDevice::copy(DeviceAddress dst, DeviceAddress src,
                                  int64_t bytes, Stream stream) {
  return timed(makeRecord(DeviceActivity::Copy, bytes), "memcpy DtoD",
               std::nullopt, stream,
               [&] { return device.copy(dst, src, bytes, stream); });
}

llvm::Error RecordingDevice::memset(DeviceAddress dst, uint8_t value,
                                    int64_t bytes, Stream stream) {
  return timed(makeRecord(DeviceActivity::Memset, bytes), "memset",
               std::nullopt, stream,
               [&] { return device.memset(dst, value, bytes, stream); });
}

llvm::Error RecordingDevice::launch(LoadedKernel &kernel, int64_t grid,
                                    llvm::MutableArrayRef<void *> params,
                                    Stream stream) {
  auto &recording = static_cast<RecordingKernel &>(kernel);
  return timed(makeRecord(DeviceActivity::Kernel), recording.info.name,
               recording.getLaunch(grid), stream, [&] {
                 return device.launch(*recording.kernel, grid, params, stream);
               });
}

llvm::Error RecordingDevice::synchronize(Stream stream) {
  const int64_t startNs = recorder.now();
  llvm::Error error = device.synchronize(stream);
  if (isTiming)
    recorder.add(HostActivity::Wait, "synchronize", startNs, recorder.now());
  return error;
}
