//===- CudaDevice.cpp - Kernels on an NVIDIA GPU --------------------------===//

#include "CudaDriver.h"
#include "Cudnn.h"
#include "GpuKernel.h"
#include "Nvml.h"
#include "attn/Runtime/Device.h"
#include "llvm/Support/MathExtras.h"
#include <mutex>

using namespace attn;
using namespace attn::cuda;

/// Of the log that the driver's PTX compiler writes.
static constexpr size_t kLogBytes = 16 << 10;

static constexpr int64_t kWarpSize = 32;

/// Percent of the L1 that shared memory may take.
static constexpr int kMaxSharedCarveout = 100;

static CUstream toCUstream(Stream stream) {
  return static_cast<CUstream>(stream.handle);
}

namespace {

/// The GPU as everything that runs on it sees it, in its primary context.
struct GpuContext {
  const Driver &driver;
  CUcontext context;
  CUstream stream;
  SMLimits limits;

  llvm::Error check(CUresult result, llvm::StringRef call) const {
    return driver.check(result, call);
  }
};

class CudaKernel : public GpuKernel {
public:
  explicit CudaKernel(const GpuContext &gpu) : gpu(gpu) {}

  /// Opts in to the shared memory that `kernel` asks for, and reads what the
  /// driver knows of the function.
  static llvm::Expected<std::unique_ptr<LoadedKernel>>
  create(const GpuContext &gpu, CUfunction function, const Kernel &kernel);

  std::optional<KernelResources> getResources() const override {
    return resources;
  }
  llvm::Error launch(int64_t grid, llvm::MutableArrayRef<void *> params,
                     Stream stream) override;

private:
  llvm::Error optInToSharedMemory();
  llvm::Error readResources();

  const GpuContext &gpu;
  CUfunction function = nullptr;
  Kernel kernel;
  KernelResources resources;
};

class CudaModule : public LoadedModule {
public:
  CudaModule(const GpuContext &gpu, CUmodule module)
      : gpu(gpu), module(module) {}
  ~CudaModule() override {
    ScopedContext scope(gpu.driver, gpu.context);
    gpu.driver.ModuleUnload(module);
  }

  llvm::Expected<std::unique_ptr<LoadedKernel>>
  getKernel(const Kernel &kernel) override;

private:
  const GpuContext &gpu;
  CUmodule module;
};

class CudaEvent : public Event {
public:
  CudaEvent(const GpuContext &gpu, CUevent event) : event(event), gpu(gpu) {}
  ~CudaEvent() override {
    ScopedContext scope(gpu.driver, gpu.context);
    gpu.driver.EventDestroy(event);
  }
  const CUevent event;

private:
  const GpuContext &gpu;
};

class CudaDevice : public Device {
public:
  static llvm::Expected<std::unique_ptr<Device>> create(const Driver &driver,
                                                        int ordinal);
  ~CudaDevice() override {
    {
      ScopedContext scope(gpu.driver, gpu.context);
      cudnn.reset();
      gpu.driver.StreamDestroy(gpu.stream);
    }
    gpu.driver.DevicePrimaryCtxRelease(device);
  }

  std::string getName() const override { return name; }
  bool isGPU() const override { return true; }
  int64_t getCacheBytes() const override { return cacheBytes; }
  int64_t getNumSMs() const override { return numSMs; }
  std::optional<int64_t> getClockMHz() const override {
    return getSMClockMHz(pciBusId.c_str());
  }
  ClockLimits getClockLimits() const override {
    return attn::getClockLimits(pciBusId.c_str());
  }
  std::optional<SMLimits> getSMLimits() const override { return gpu.limits; }
  std::string getDriverVersion() const override {
    int version = 0;
    if (gpu.driver.DriverGetVersion(&version) != CUDA_SUCCESS)
      return "";
    return std::to_string(version / 1000) + "." +
           std::to_string(version % 1000 / 10);
  }
  llvm::Error checkTarget(llvm::StringRef target) const override;

  llvm::Expected<std::unique_ptr<LoadedModule>>
  load(const KernelCode &code) override;
  llvm::Expected<std::unique_ptr<LoadedModule>> loadCudnn() override;

  llvm::Expected<DeviceAddress> allocate(int64_t bytes) override;
  void free(DeviceAddress address) override {
    ScopedContext scope(gpu.driver, gpu.context);
    ScopedRelaxedCapture relaxed(gpu.driver);
    gpu.driver.MemFree(address);
  }

  llvm::Error upload(DeviceAddress dst, const void *src,
                     int64_t bytes) override;
  llvm::Error download(void *dst, DeviceAddress src, int64_t bytes) override;
  Stream getOwnStream() const override { return {gpu.stream}; }
  llvm::Expected<uint64_t> getStreamId(Stream stream) const override;
  llvm::Expected<bool> isCapturing(Stream stream) const override;

  llvm::Error copy(DeviceAddress dst, DeviceAddress src, int64_t bytes,
                   Stream stream) override;
  llvm::Error memset(DeviceAddress dst, uint8_t value, int64_t bytes,
                     Stream stream) override;
  llvm::Error encodeTensorMap(DeviceAddress address,
                              const TensorMapShape &shape,
                              EncodedTensorMap &map) override;
  llvm::Error launch(LoadedKernel &kernel, int64_t grid,
                     llvm::MutableArrayRef<void *> params,
                     Stream stream) override;

  llvm::Expected<std::unique_ptr<Event>> createEvent() override;
  llvm::Error record(Event &event) override;
  llvm::Error synchronize(Stream stream) override;
  llvm::Error synchronizeAll() override {
    ScopedContext scope(gpu.driver, gpu.context);
    return gpu.check(gpu.driver.CtxSynchronize(), "cuCtxSynchronize");
  }
  llvm::Expected<double> getElapsedMicroseconds(Event &start,
                                                Event &end) override;

private:
  CudaDevice(const Driver &driver, CUdevice device, CUcontext context)
      : gpu{driver, context, nullptr, {}}, device(device) {}

  llvm::Error initialize();
  llvm::Expected<int> getAttribute(CUdevice_attribute attribute) const;
  llvm::Error readAttributes();

  GpuContext gpu;
  CUdevice device;
  std::string name;
  std::string pciBusId;
  std::string arch;
  int computeCapability = 0;
  int64_t cacheBytes = 0;
  int64_t numSMs = 0;
  std::mutex cudnnMutex;
  /// Once it is asked for.
  std::unique_ptr<CudnnContext> cudnn;
};

} // namespace

//===----------------------------------------------------------------------===//
// Modules and kernels
//===----------------------------------------------------------------------===//

llvm::Error CudaKernel::optInToSharedMemory() {
  const int64_t bytes = kernel.dynamicSharedBytes;
  if (bytes == 0)
    return llvm::Error::success();
  const int64_t available =
      gpu.limits.maxSharedBytesPerBlock - kernel.staticSharedBytes;
  if (bytes > available)
    return llvm::createStringError(
        "kernel '" + kernel.name + "' needs " + llvm::Twine(bytes) +
        " bytes of dynamic shared memory, this GPU has " +
        llvm::Twine(available) + ": choose a smaller tile or fewer stages");
  if (llvm::Error error = gpu.check(
          gpu.driver.FuncSetAttribute(
              function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
              static_cast<int>(bytes)),
          "cuFuncSetAttribute"))
    return error;
  return gpu.check(gpu.driver.FuncSetAttribute(
                       function,
                       CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
                       kMaxSharedCarveout),
                   "cuFuncSetAttribute");
}

llvm::Error CudaKernel::readResources() {
  auto getAttribute = [&](CUfunction_attribute attribute, int &value) {
    return gpu.check(gpu.driver.FuncGetAttribute(&value, attribute, function),
                     "cuFuncGetAttribute");
  };
  int registers, staticBytes, localBytes, blocks;
  if (llvm::Error error = getAttribute(CU_FUNC_ATTRIBUTE_NUM_REGS, registers))
    return error;
  if (llvm::Error error =
          getAttribute(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, staticBytes))
    return error;
  if (llvm::Error error =
          getAttribute(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, localBytes))
    return error;
  const int64_t threads = kernel.getThreadsPerBlock();
  if (llvm::Error error =
          gpu.check(gpu.driver.OccupancyMaxActiveBlocksPerMultiprocessor(
                        &blocks, function, static_cast<int>(threads),
                        kernel.dynamicSharedBytes),
                    "cuOccupancyMaxActiveBlocksPerMultiprocessor"))
    return error;

  resources.name = kernel.name;
  resources.registers = registers;
  resources.sharedBytes = staticBytes + kernel.dynamicSharedBytes;
  resources.localBytes = localBytes;
  // The driver knows how many blocks fit, our own computation why no more do.
  Occupancy occupancy =
      computeOccupancy(gpu.limits, {threads, registers, resources.sharedBytes});
  occupancy.blocksPerSM = blocks;
  occupancy.warpsPerSM = blocks * llvm::divideCeil(threads, kWarpSize);
  resources.occupancy = occupancy;
  return llvm::Error::success();
}

llvm::Expected<std::unique_ptr<LoadedKernel>>
CudaKernel::create(const GpuContext &gpu, CUfunction function,
                   const Kernel &kernel) {
  auto loaded = std::make_unique<CudaKernel>(gpu);
  loaded->function = function;
  loaded->kernel = kernel;
  if (llvm::Error error = loaded->optInToSharedMemory())
    return std::move(error);
  if (llvm::Error error = loaded->readResources())
    return std::move(error);
  return loaded;
}

llvm::Error CudaKernel::launch(int64_t grid,
                               llvm::MutableArrayRef<void *> params,
                               Stream stream) {
  return gpu.check(gpu.driver.LaunchKernel(
                       function, grid, 1, 1, kernel.block[0], kernel.block[1],
                       kernel.block[2], kernel.dynamicSharedBytes,
                       toCUstream(stream), params.data(), /*extra=*/nullptr),
                   "launch of '" + kernel.name + "'");
}

llvm::Expected<std::unique_ptr<LoadedKernel>>
CudaModule::getKernel(const Kernel &kernel) {
  if (kernel.cluster != std::array<int64_t, 3>{1, 1, 1})
    return llvm::createStringError("kernel '" + kernel.name +
                                   "': clusters are not supported yet");
  ScopedContext scope(gpu.driver, gpu.context);
  CUfunction function;
  if (llvm::Error error = gpu.check(
          gpu.driver.ModuleGetFunction(&function, module, kernel.name.c_str()),
          "kernel '" + kernel.name + "': cuModuleGetFunction"))
    return std::move(error);
  return CudaKernel::create(gpu, function, kernel);
}

llvm::Expected<std::unique_ptr<LoadedModule>>
CudaDevice::load(const KernelCode &code) {
  if (code.image.empty())
    return llvm::createStringError("no GPU code was given");
  ScopedContext scope(gpu.driver, gpu.context);
  ScopedRelaxedCapture relaxed(gpu.driver);
  std::string log(kLogBytes, '\0');
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER,
                            CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void *values[] = {log.data(), reinterpret_cast<void *>(log.size())};
  CUmodule module;
  // std::string ends PTX text with the zero that the driver looks for.
  const CUresult result = gpu.driver.ModuleLoadDataEx(
      &module, code.image.c_str(), std::size(options), options, values);
  if (result == CUDA_SUCCESS)
    return std::make_unique<CudaModule>(gpu, module);
  std::string message = llvm::toString(gpu.check(result, "cuModuleLoadDataEx"));
  if (result == CUDA_ERROR_UNSUPPORTED_PTX_VERSION)
    message += ": the driver is too old for this PTX";
  const llvm::StringRef text = llvm::StringRef(log.c_str()).trim();
  return llvm::createStringError(message +
                                 (text.empty() ? "" : "\n" + text.str()));
}

llvm::Expected<std::unique_ptr<LoadedModule>> CudaDevice::loadCudnn() {
  ScopedContext scope(gpu.driver, gpu.context);
  ScopedRelaxedCapture relaxed(gpu.driver);
  std::lock_guard<std::mutex> lock(cudnnMutex);
  if (!cudnn) {
    auto created = CudnnContext::create(gpu.driver, gpu.context);
    if (!created)
      return created.takeError();
    cudnn = std::move(*created);
  }
  return createCudnnModule(*cudnn, *this);
}

//===----------------------------------------------------------------------===//
// Device
//===----------------------------------------------------------------------===//

llvm::Expected<std::unique_ptr<Device>> CudaDevice::create(const Driver &driver,
                                                           int ordinal) {
  int count = 0;
  if (llvm::Error error =
          driver.check(driver.DeviceGetCount(&count), "cuDeviceGetCount"))
    return std::move(error);
  if (ordinal >= count)
    return llvm::createStringError("the CUDA driver shows " +
                                   llvm::Twine(count) + " GPUs, there is no " +
                                   llvm::Twine(ordinal));
  CUdevice device;
  if (llvm::Error error =
          driver.check(driver.DeviceGet(&device, ordinal), "cuDeviceGet"))
    return std::move(error);
  CUcontext context;
  if (llvm::Error error =
          driver.check(driver.DevicePrimaryCtxRetain(&context, device),
                       "cuDevicePrimaryCtxRetain"))
    return std::move(error);
  std::unique_ptr<CudaDevice> result(new CudaDevice(driver, device, context));
  if (llvm::Error error = result->initialize())
    return std::move(error);
  return result;
}

llvm::Error CudaDevice::initialize() {
  ScopedContext scope(gpu.driver, gpu.context);
  char buffer[256] = "";
  if (llvm::Error error = gpu.check(
          gpu.driver.DeviceGetName(buffer, sizeof(buffer) - 1, device),
          "cuDeviceGetName"))
    return error;
  name = buffer;
  if (llvm::Error error = gpu.check(
          gpu.driver.DeviceGetPCIBusId(buffer, sizeof(buffer) - 1, device),
          "cuDeviceGetPCIBusId"))
    return error;
  pciBusId = buffer;
  if (llvm::Error error = readAttributes())
    return error;
  return gpu.check(gpu.driver.StreamCreate(&gpu.stream, CU_STREAM_NON_BLOCKING),
                   "cuStreamCreate");
}

llvm::Expected<int>
CudaDevice::getAttribute(CUdevice_attribute attribute) const {
  int value = 0;
  if (llvm::Error error =
          gpu.check(gpu.driver.DeviceGetAttribute(&value, attribute, device),
                    "cuDeviceGetAttribute"))
    return std::move(error);
  return value;
}

llvm::Error CudaDevice::readAttributes() {
  int64_t major = 0, minor = 0;
  const std::pair<CUdevice_attribute, int64_t *> wanted[] = {
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &major},
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &minor},
      {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, &cacheBytes},
      {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &numSMs},
      {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR,
       &gpu.limits.maxThreads},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR,
       &gpu.limits.maxBlocks},
      {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR,
       &gpu.limits.registers},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR,
       &gpu.limits.sharedBytes},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
       &gpu.limits.maxSharedBytesPerBlock},
      {CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK,
       &gpu.limits.reservedSharedBytesPerBlock},
  };
  for (auto [attribute, value] : wanted) {
    llvm::Expected<int> result = getAttribute(attribute);
    if (!result)
      return result.takeError();
    *value = *result;
  }
  computeCapability = static_cast<int>(major * 10 + minor);
  arch = "sm_" + std::to_string(computeCapability);
  gpu.limits.arch = arch;
  return llvm::Error::success();
}

llvm::Error CudaDevice::checkTarget(llvm::StringRef target) const {
  llvm::StringRef number = target;
  int needed = 0;
  const bool isGpuTarget = number.consume_front("sm_");
  // "sm_90a" runs on sm_90 only.
  const bool isSpecific = number.consume_back("a");
  if (!isGpuTarget || number.getAsInteger(10, needed))
    return llvm::createStringError("code for " + target +
                                   " does not run on a GPU");
  if (isSpecific ? computeCapability == needed : computeCapability >= needed)
    return llvm::Error::success();
  return llvm::createStringError("code for " + target + " does not run on " +
                                 name + ", which is " + arch);
}

llvm::Expected<DeviceAddress> CudaDevice::allocate(int64_t bytes) {
  ScopedContext scope(gpu.driver, gpu.context);
  ScopedRelaxedCapture relaxed(gpu.driver);
  CUdeviceptr address;
  if (llvm::Error error =
          gpu.check(gpu.driver.MemAlloc(&address, std::max<int64_t>(bytes, 1)),
                    "cuMemAlloc of " + std::to_string(bytes) + " bytes"))
    return std::move(error);
  return address;
}

llvm::Error CudaDevice::upload(DeviceAddress dst, const void *src,
                               int64_t bytes) {
  if (bytes == 0)
    return llvm::Error::success();
  ScopedContext scope(gpu.driver, gpu.context);
  if (llvm::Error error =
          gpu.check(gpu.driver.MemcpyHtoDAsync(dst, src, bytes, gpu.stream),
                    "cuMemcpyHtoDAsync"))
    return error;
  return gpu.check(gpu.driver.StreamSynchronize(gpu.stream),
                   "cuStreamSynchronize");
}

llvm::Error CudaDevice::download(void *dst, DeviceAddress src, int64_t bytes) {
  if (bytes == 0)
    return llvm::Error::success();
  ScopedContext scope(gpu.driver, gpu.context);
  if (llvm::Error error =
          gpu.check(gpu.driver.MemcpyDtoHAsync(dst, src, bytes, gpu.stream),
                    "cuMemcpyDtoHAsync"))
    return error;
  return gpu.check(gpu.driver.StreamSynchronize(gpu.stream),
                   "cuStreamSynchronize");
}

llvm::Expected<uint64_t> CudaDevice::getStreamId(Stream stream) const {
  // Before CUDA 12 there is but the handle, which may come again after its
  // stream is destroyed.
  if (!gpu.driver.StreamGetId)
    return reinterpret_cast<uintptr_t>(stream.handle);
  ScopedContext scope(gpu.driver, gpu.context);
  unsigned long long id = 0;
  if (llvm::Error error = gpu.check(
          gpu.driver.StreamGetId(toCUstream(stream), &id), "cuStreamGetId"))
    return std::move(error);
  return id;
}

llvm::Expected<bool> CudaDevice::isCapturing(Stream stream) const {
  ScopedContext scope(gpu.driver, gpu.context);
  int status = 0;
  if (llvm::Error error =
          gpu.check(gpu.driver.StreamIsCapturing(toCUstream(stream), &status),
                    "cuStreamIsCapturing"))
    return std::move(error);
  return status != CU_STREAM_CAPTURE_STATUS_NONE;
}

llvm::Error CudaDevice::copy(DeviceAddress dst, DeviceAddress src,
                             int64_t bytes, Stream stream) {
  if (bytes == 0)
    return llvm::Error::success();
  ScopedContext scope(gpu.driver, gpu.context);
  return gpu.check(
      gpu.driver.MemcpyDtoDAsync(dst, src, bytes, toCUstream(stream)),
      "cuMemcpyDtoDAsync");
}

llvm::Error CudaDevice::memset(DeviceAddress dst, uint8_t value, int64_t bytes,
                               Stream stream) {
  if (bytes == 0)
    return llvm::Error::success();
  ScopedContext scope(gpu.driver, gpu.context);
  return gpu.check(
      gpu.driver.MemsetD8Async(dst, value, bytes, toCUstream(stream)),
      "cuMemsetD8Async");
}

/// Copies don't compute: the type is a matter of bytes.
static int getTensorMapDataType(DType dtype) {
  switch (getByteSize(dtype)) {
  case 1:
    return CU_TENSOR_MAP_DATA_TYPE_UINT8;
  case 4:
    return CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
  default:
    return dtype == DType::BF16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
                                : CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
  }
}

/// As wide as a row of the box.
static int getTensorMapSwizzle(const TensorMapShape &shape) {
  switch (shape.box.front() * getByteSize(shape.dtype)) {
  case 32:
    return CU_TENSOR_MAP_SWIZZLE_32B;
  case 64:
    return CU_TENSOR_MAP_SWIZZLE_64B;
  default:
    return CU_TENSOR_MAP_SWIZZLE_128B;
  }
}

llvm::Error CudaDevice::encodeTensorMap(DeviceAddress address,
                                        const TensorMapShape &shape,
                                        EncodedTensorMap &map) {
  if (!gpu.driver.TensorMapEncodeTiled)
    return llvm::createStringError(
        "the CUDA driver is too old: it has no cuTensorMapEncodeTiled");
  const llvm::SmallVector<uint32_t, 5> elementStrides(shape.dims.size(), 1);
  ScopedContext scope(gpu.driver, gpu.context);
  return gpu.check(
      gpu.driver.TensorMapEncodeTiled(
          &map, getTensorMapDataType(shape.dtype), shape.dims.size(),
          reinterpret_cast<void *>(address), shape.dims.data(),
          shape.strides.data(), shape.box.data(), elementStrides.data(),
          CU_TENSOR_MAP_INTERLEAVE_NONE, getTensorMapSwizzle(shape),
          CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
          CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
      "cuTensorMapEncodeTiled");
}

llvm::Error CudaDevice::launch(LoadedKernel &loaded, int64_t grid,
                               llvm::MutableArrayRef<void *> params,
                               Stream stream) {
  ScopedContext scope(gpu.driver, gpu.context);
  return static_cast<GpuKernel &>(loaded).launch(grid, params, stream);
}

llvm::Expected<std::unique_ptr<Event>> CudaDevice::createEvent() {
  ScopedContext scope(gpu.driver, gpu.context);
  CUevent event;
  if (llvm::Error error =
          gpu.check(gpu.driver.EventCreate(&event, 0), "cuEventCreate"))
    return std::move(error);
  return std::make_unique<CudaEvent>(gpu, event);
}

llvm::Error CudaDevice::record(Event &event) {
  ScopedContext scope(gpu.driver, gpu.context);
  return gpu.check(
      gpu.driver.EventRecord(static_cast<CudaEvent &>(event).event, gpu.stream),
      "cuEventRecord");
}

llvm::Error CudaDevice::synchronize(Stream stream) {
  ScopedContext scope(gpu.driver, gpu.context);
  ScopedRelaxedCapture relaxed(gpu.driver);
  return gpu.check(gpu.driver.StreamSynchronize(toCUstream(stream)),
                   "cuStreamSynchronize");
}

llvm::Expected<double> CudaDevice::getElapsedMicroseconds(Event &start,
                                                          Event &end) {
  ScopedContext scope(gpu.driver, gpu.context);
  float milliseconds = 0;
  if (llvm::Error error =
          gpu.check(gpu.driver.EventElapsedTime(
                        &milliseconds, static_cast<CudaEvent &>(start).event,
                        static_cast<CudaEvent &>(end).event),
                    "cuEventElapsedTime"))
    return std::move(error);
  return 1e3 * milliseconds;
}

llvm::Expected<std::unique_ptr<Device>> attn::createCudaDevice(int ordinal) {
  llvm::Expected<const Driver *> driver = Driver::get();
  if (!driver)
    return driver.takeError();
  return CudaDevice::create(**driver, ordinal);
}
