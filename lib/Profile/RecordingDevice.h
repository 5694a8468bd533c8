//===- RecordingDevice.h - Records what goes through it ---------*- C++ -*-===//

#ifndef ATTN_LIB_PROFILE_RECORDINGDEVICE_H
#define ATTN_LIB_PROFILE_RECORDINGDEVICE_H

#include "Recorder.h"
#include "attn/Runtime/Device.h"
#include <deque>
#include <functional>

namespace attn {

/// A device that does what another does, and keeps the kernels' machine code
/// and, where nothing better does, the times between events.
class RecordingDevice : public Device {
public:
  RecordingDevice(Device &device, Recorder &recorder)
      : device(device), recorder(recorder) {}

  /// Whether work is timed here from now on.
  void setTiming(bool enabled);
  /// Waits for the work under way, and gives its times to the recorder.
  llvm::Error finishTiming();
  /// PTX or cubins of the modules that were loaded since the last call.
  std::vector<std::string> takeImages() { return std::move(images); }

  std::string getName() const override { return device.getName(); }
  bool isGPU() const override { return device.isGPU(); }
  int64_t getCacheBytes() const override { return device.getCacheBytes(); }
  int64_t getNumSMs() const override { return device.getNumSMs(); }
  std::optional<int64_t> getClockMHz() const override {
    return device.getClockMHz();
  }
  ClockLimits getClockLimits() const override {
    return device.getClockLimits();
  }
  std::optional<SMLimits> getSMLimits() const override {
    return device.getSMLimits();
  }
  std::string getDriverVersion() const override {
    return device.getDriverVersion();
  }
  llvm::Error checkTarget(llvm::StringRef target) const override {
    return device.checkTarget(target);
  }
  llvm::Expected<std::unique_ptr<LoadedModule>>
  load(const KernelCode &code) override;
  llvm::Expected<std::unique_ptr<LoadedModule>> loadCudnn() override;
  llvm::Expected<DeviceAddress> allocate(int64_t bytes) override {
    return device.allocate(bytes);
  }
  void free(DeviceAddress address) override { device.free(address); }
  llvm::Error upload(DeviceAddress dst, const void *src,
                     int64_t bytes) override {
    return device.upload(dst, src, bytes);
  }
  llvm::Error download(void *dst, DeviceAddress src, int64_t bytes) override {
    return device.download(dst, src, bytes);
  }
  llvm::Error encodeTensorMap(DeviceAddress address,
                              const TensorMapShape &shape,
                              EncodedTensorMap &map) override {
    return device.encodeTensorMap(address, shape, map);
  }
  Stream getOwnStream() const override { return device.getOwnStream(); }
  llvm::Expected<uint64_t> getStreamId(Stream stream) const override {
    return device.getStreamId(stream);
  }
  llvm::Expected<bool> isCapturing(Stream stream) const override {
    return device.isCapturing(stream);
  }
  llvm::Error copy(DeviceAddress dst, DeviceAddress src, int64_t bytes,
                   Stream stream) override;
  llvm::Error memset(DeviceAddress dst, uint8_t value, int64_t bytes,
                     Stream stream) override;
  llvm::Error launch(LoadedKernel &kernel, int64_t grid,
                     llvm::MutableArrayRef<void *> params,
                     Stream stream) override;
  llvm::Expected<std::unique_ptr<Event>> createEvent() override {
    return device.createEvent();
  }
  llvm::Error record(Event &event) override { return device.record(event); }
  llvm::Error synchronize(Stream stream) override;
  llvm::Error synchronizeAll() override { return device.synchronizeAll(); }
  llvm::Error setObserver(WorkObserver *observer) override {
    return device.setObserver(observer);
  }
  llvm::Expected<double> getElapsedMicroseconds(Event &start,
                                                Event &end) override {
    return device.getElapsedMicroseconds(start, end);
  }

private:
  /// Work that lies between two events.
  struct Pending {
    DeviceRecord record;
    std::string name;
    std::optional<LaunchConfig> launch;
    std::unique_ptr<Event> start, end;
  };

  /// Does `work`, which `record` describes, and times it.
  llvm::Error timed(DeviceRecord record, llvm::StringRef name,
                    const std::optional<LaunchConfig> &launch, Stream stream,
                    llvm::function_ref<llvm::Error()> work);
  llvm::Error timedByEvents(DeviceRecord record, llvm::StringRef name,
                            const std::optional<LaunchConfig> &launch,
                            llvm::function_ref<llvm::Error()> work);
  llvm::Expected<std::unique_ptr<Event>> recordEvent();

  Device &device;
  Recorder &recorder;
  bool isTiming = false;
  std::vector<std::string> images;
  std::vector<Pending> pending;
};

} // namespace attn

#endif // ATTN_LIB_PROFILE_RECORDINGDEVICE_H
