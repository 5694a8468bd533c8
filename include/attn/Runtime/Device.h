//===- Device.h - What runs kernels -----------------------------*- C++ -*-===//

#ifndef ATTN_RUNTIME_DEVICE_H
#define ATTN_RUNTIME_DEVICE_H

#include "attn/Runtime/Manifest.h"
#include "attn/Runtime/Occupancy.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace attn {

/// An address in a device's memory.
using DeviceAddress = uint64_t;

/// A queue of work that is done in order: a CUstream of the device's primary
/// context, of which null is the legacy default stream. The CPU has none: there
/// all work is done when a call returns.
struct Stream {
  void *handle = nullptr;
};

/// A tensor map, ready to be passed to a kernel by value.
struct alignas(64) EncodedTensorMap {
  char bytes[128];
};

/// A TensorMapRecipe with its values.
struct TensorMapShape {
  DType dtype;
  llvm::SmallVector<uint64_t, 5> dims;
  /// In bytes, from the second dimension.
  llvm::SmallVector<uint64_t, 4> strides;
  llvm::SmallVector<uint32_t, 5> box;
  uint64_t leadBytes = 0;
};

/// Where a device finds the kernels of a manifest.
struct KernelCode {
  /// GPU: PTX text, or the image of a cubin.
  std::string image;
  /// CPU: the address of the function `name`, or null.
  std::function<void *(llvm::StringRef name)> lookup;
};

/// A kernel that is loaded and ready to launch. Lives as long as its module.
class LoadedKernel {
public:
  virtual ~LoadedKernel();

  /// Registers, shared memory and occupancy, where the device has such.
  virtual std::optional<KernelResources> getResources() const {
    return std::nullopt;
  }

  /// What a launch with such parameters does only once; fails where it would.
  /// Addresses aren't looked at.
  virtual llvm::Error prepare(llvm::ArrayRef<void *>) {
    return llvm::Error::success();
  }
};

class LoadedModule {
public:
  virtual ~LoadedModule();

  virtual llvm::Expected<std::unique_ptr<LoadedKernel>>
  getKernel(const Kernel &kernel) = 0;
};

/// A point in the device's stream of work.
class Event {
public:
  virtual ~Event();
};

/// Is told of work once it is done, by a device whose calls return only then.
class WorkObserver {
public:
  using TimePoint = std::chrono::steady_clock::time_point;

  virtual ~WorkObserver();
  virtual void onKernel(const Kernel &kernel, int64_t grid, TimePoint start,
                        TimePoint end) = 0;
  virtual void onCopy(int64_t bytes, TimePoint start, TimePoint end) = 0;
  virtual void onMemset(int64_t bytes, TimePoint start, TimePoint end) = 0;
};

/// What holds the clock of the multiprocessors.
struct ClockLimits {
  std::optional<int64_t> maxMHz;
  /// Why the clock is below it now, such as "power cap".
  std::vector<std::string> reasons;
};

/// Runs kernels. Work on the device's own stream runs in the order of the
/// calls, which must not come from several threads at once. All else is safe to
/// call from any thread.
class Device {
public:
  virtual ~Device();

  /// "NVIDIA H200", or the name of the CPU.
  virtual std::string getName() const = 0;
  virtual bool isGPU() const = 0;
  /// Bytes of the last-level cache.
  virtual int64_t getCacheBytes() const = 0;
  /// How many blocks run side by side, one each: the multiprocessors of a GPU,
  /// the worker threads of a CPU.
  virtual int64_t getNumSMs() const = 0;
  /// The present clock of the multiprocessors in MHz, if it is known.
  virtual std::optional<int64_t> getClockMHz() const { return std::nullopt; }
  virtual ClockLimits getClockLimits() const { return {}; }
  /// Of a GPU.
  virtual std::optional<SMLimits> getSMLimits() const { return std::nullopt; }
  /// "13.0": what CUDA the driver supports; empty on a CPU.
  virtual std::string getDriverVersion() const { return ""; }
  /// Whether code for `target` runs here; else an error that says why not.
  virtual llvm::Error checkTarget(llvm::StringRef target) const = 0;

  virtual llvm::Expected<std::unique_ptr<LoadedModule>>
  load(const KernelCode &code) = 0;
  /// The kernels that cuDNN brings (CudnnKernel.h); an error that says why it
  /// can't be called.
  virtual llvm::Expected<std::unique_ptr<LoadedModule>> loadCudnn();

  /// Memory aligned to 256 bytes.
  virtual llvm::Expected<DeviceAddress> allocate(int64_t bytes) = 0;
  virtual void free(DeviceAddress address) = 0;

  /// From and to host memory; these wait for the work that is under way.
  virtual llvm::Error upload(DeviceAddress dst, const void *src,
                             int64_t bytes) = 0;
  virtual llvm::Error download(void *dst, DeviceAddress src, int64_t bytes) = 0;

  /// Encodes a tensor map of the memory at `address`.
  virtual llvm::Error encodeTensorMap(DeviceAddress address,
                                      const TensorMapShape &shape,
                                      EncodedTensorMap &map);

  /// The one that uploads, downloads and events use.
  virtual Stream getOwnStream() const { return {}; }
  /// A number that no other stream of this process has or had.
  virtual llvm::Expected<uint64_t> getStreamId(Stream) const { return 0; }
  /// Whether what is enqueued now is recorded into a graph instead of run.
  virtual llvm::Expected<bool> isCapturing(Stream) const { return false; }

  // The rest is enqueued and may not be complete on return.

  virtual llvm::Error copy(DeviceAddress dst, DeviceAddress src, int64_t bytes,
                           Stream stream) = 0;
  virtual llvm::Error memset(DeviceAddress dst, uint8_t value, int64_t bytes,
                             Stream stream) = 0;
  /// `params[i]` points to the value of the i-th parameter, which is read
  /// before this returns.
  virtual llvm::Error launch(LoadedKernel &kernel, int64_t grid,
                             llvm::MutableArrayRef<void *> params,
                             Stream stream) = 0;

  virtual llvm::Expected<std::unique_ptr<Event>> createEvent() = 0;
  virtual llvm::Error record(Event &event) = 0;
  /// Waits for all work of the stream; reports what went wrong in it.
  virtual llvm::Error synchronize(Stream stream) = 0;
  llvm::Error synchronize() { return synchronize(getOwnStream()); }
  /// For all work of this process on the device, whoever enqueued it.
  virtual llvm::Error synchronizeAll() { return synchronize(); }

  /// The CPU: tells `observer` of all work from now on; null: nobody. There can
  /// be one, which must outlive the work. A GPU's driver is asked instead.
  virtual llvm::Error setObserver(WorkObserver *) {
    return llvm::Error::success();
  }
  /// Between two recorded and completed events.
  virtual llvm::Expected<double> getElapsedMicroseconds(Event &start,
                                                        Event &end) = 0;
};

/// Frees its memory when it goes.
class DeviceMemory {
public:
  DeviceMemory() = default;
  DeviceMemory(DeviceMemory &&other);
  DeviceMemory &operator=(DeviceMemory &&other);
  ~DeviceMemory();

  static llvm::Expected<DeviceMemory> allocate(Device &device, int64_t bytes);

  DeviceAddress getAddress() const { return address; }

private:
  Device *device = nullptr;
  DeviceAddress address = 0;
};

/// All cores of this machine.
std::unique_ptr<Device> createCpuDevice();

/// The target whose code `device` runs best. A GPU that is too old for any is
/// refused when the code is loaded.
llvm::StringRef getBestTarget(const Device &device);

/// The device that "native" means: the GPU if there is one, else the CPU.
/// `target` becomes the best that it runs.
std::unique_ptr<Device> createNativeDevice(std::string &target);

/// The `ordinal`-th GPU that the CUDA driver shows. The error says what is
/// missing: no driver, a driver that is too old, or no GPU.
llvm::Expected<std::unique_ptr<Device>> createCudaDevice(int ordinal = 0);

} // namespace attn

#endif // ATTN_RUNTIME_DEVICE_H
