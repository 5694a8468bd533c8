//===- CpuDevice.cpp - Kernels on all cores of this machine ---------------===//

#include "attn/Runtime/Device.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/ThreadPool.h"
#include "llvm/TargetParser/Host.h"
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

using namespace attn;

namespace {

/// The kernel ABI of docs/Manifest.md.
using KernelFunction = void (*)(void **params, int32_t programId);

constexpr size_t kAlignment = 256;

struct CpuKernel : LoadedKernel {
  CpuKernel(KernelFunction function, const Kernel &kernel)
      : function(function), kernel(kernel) {}
  KernelFunction function;
  Kernel kernel;
};

struct CpuModule : LoadedModule {
  explicit CpuModule(const KernelCode &code) : lookup(code.lookup) {}

  llvm::Expected<std::unique_ptr<LoadedKernel>>
  getKernel(const Kernel &kernel) override {
    void *address = lookup(kernel.name);
    if (!address)
      return llvm::createStringError("the code has no kernel '" + kernel.name +
                                     "'");
    return std::make_unique<CpuKernel>(
        reinterpret_cast<KernelFunction>(address), kernel);
  }

  std::function<void *(llvm::StringRef)> lookup;
};

struct CpuEvent : Event {
  std::chrono::steady_clock::time_point time;
};

/// Everything is complete when the call returns, so that events are just the
/// time of day.
class CpuDevice : public Device {
public:
  CpuDevice() : pool(llvm::hardware_concurrency()) {}

  std::string getName() const override {
    return (llvm::sys::getHostCPUName() + ", " +
            llvm::Twine(pool.getMaxConcurrency()) + " threads")
        .str();
  }
  bool isGPU() const override { return false; }
  int64_t getCacheBytes() const override {
    return std::max<int64_t>(sysconf(_SC_LEVEL3_CACHE_SIZE), 0);
  }
  int64_t getNumSMs() const override { return pool.getMaxConcurrency(); }
  llvm::Error checkTarget(llvm::StringRef target) const override {
    if (target == "cpu")
      return llvm::Error::success();
    return llvm::createStringError("code for " + target +
                                   " does not run on the CPU");
  }

  llvm::Expected<std::unique_ptr<LoadedModule>>
  load(const KernelCode &code) override {
    if (!code.lookup)
      return llvm::createStringError("no CPU code was given");
    return std::make_unique<CpuModule>(code);
  }

  llvm::Expected<DeviceAddress> allocate(int64_t bytes) override {
    void *memory = std::aligned_alloc(
        kAlignment, llvm::alignTo(std::max<uint64_t>(bytes, 1), kAlignment));
    if (!memory)
      return llvm::createStringError("no memory for " + llvm::Twine(bytes) +
                                     " bytes");
    return reinterpret_cast<DeviceAddress>(memory);
  }
  void free(DeviceAddress address) override { std::free(toPointer(address)); }

  llvm::Error upload(DeviceAddress dst, const void *src,
                     int64_t bytes) override {
    if (bytes != 0)
      std::memcpy(toPointer(dst), src, bytes);
    return llvm::Error::success();
  }
  llvm::Error download(void *dst, DeviceAddress src, int64_t bytes) override {
    if (bytes != 0)
      std::memcpy(dst, toPointer(src), bytes);
    return llvm::Error::success();
  }
  llvm::Error copy(DeviceAddress dst, DeviceAddress src, int64_t bytes,
                   Stream) override {
    const auto start = std::chrono::steady_clock::now();
    std::memcpy(toPointer(dst), toPointer(src), bytes);
    if (WorkObserver *current = observer)
      current->onCopy(bytes, start, std::chrono::steady_clock::now());
    return llvm::Error::success();
  }
  llvm::Error memset(DeviceAddress dst, uint8_t value, int64_t bytes,
                     Stream) override {
    const auto start = std::chrono::steady_clock::now();
    std::memset(toPointer(dst), value, bytes);
    if (WorkObserver *current = observer)
      current->onMemset(bytes, start, std::chrono::steady_clock::now());
    return llvm::Error::success();
  }

  llvm::Error setObserver(WorkObserver *newObserver) override {
    WorkObserver *none = nullptr;
    if (!newObserver)
      observer = nullptr;
    else if (!observer.compare_exchange_strong(none, newObserver))
      return llvm::createStringError(
          "the CPU's work is being observed already");
    return llvm::Error::success();
  }

  llvm::Error launch(LoadedKernel &kernel, int64_t grid,
                     llvm::MutableArrayRef<void *> params, Stream) override;

  llvm::Expected<std::unique_ptr<Event>> createEvent() override {
    return std::make_unique<CpuEvent>();
  }
  llvm::Error record(Event &event) override {
    static_cast<CpuEvent &>(event).time = std::chrono::steady_clock::now();
    return llvm::Error::success();
  }
  llvm::Error synchronize(Stream) override { return llvm::Error::success(); }
  llvm::Expected<double> getElapsedMicroseconds(Event &start,
                                                Event &end) override {
    return std::chrono::duration<double, std::micro>(
               static_cast<CpuEvent &>(end).time -
               static_cast<CpuEvent &>(start).time)
        .count();
  }

private:
  static void *toPointer(DeviceAddress address) {
    return reinterpret_cast<void *>(address);
  }

  llvm::DefaultThreadPool pool;
  std::atomic<WorkObserver *> observer = nullptr;
};

} // namespace

llvm::Error CpuDevice::launch(LoadedKernel &kernel, int64_t grid,
                              llvm::MutableArrayRef<void *> params, Stream) {
  const auto &cpuKernel = static_cast<CpuKernel &>(kernel);
  const KernelFunction function = cpuKernel.function;
  const auto start = std::chrono::steady_clock::now();
  // Programs differ in length (causal masks), so each thread takes the next one
  // when it is done with its last. The counter counts in 64 bits since every
  // thread steps once past the end.
  std::atomic<int64_t> next = 0;
  auto drain = [&] {
    for (int64_t id = next++; id < grid; id = next++)
      function(params.data(), static_cast<int32_t>(id));
  };
  const int64_t helpers = std::min<int64_t>(pool.getMaxConcurrency(), grid) - 1;
  for (int64_t i = 0; i < helpers; ++i)
    pool.async(drain);
  drain();
  pool.wait();
  if (WorkObserver *current = observer)
    current->onKernel(cpuKernel.kernel, grid, start,
                      std::chrono::steady_clock::now());
  return llvm::Error::success();
}

std::unique_ptr<Device> attn::createCpuDevice() {
  return std::make_unique<CpuDevice>();
}
