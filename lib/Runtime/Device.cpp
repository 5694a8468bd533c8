//===- Device.cpp - What runs kernels -------------------------------------===//

#include "attn/Runtime/Device.h"
#include <utility>

using namespace attn;

LoadedKernel::~LoadedKernel() = default;
LoadedModule::~LoadedModule() = default;
Event::~Event() = default;
WorkObserver::~WorkObserver() = default;
Device::~Device() = default;

llvm::Error Device::encodeTensorMap(DeviceAddress, const TensorMapShape &,
                                    EncodedTensorMap &) {
  return llvm::createStringError(getName() + " has no tensor maps");
}

llvm::Expected<std::unique_ptr<LoadedModule>> Device::loadCudnn() {
  return llvm::createStringError("cuDNN needs a GPU, this is " + getName());
}

llvm::StringRef attn::getBestTarget(const Device &device) {
  if (!device.isGPU())
    return "cpu";
  return llvm::errorToBool(device.checkTarget("sm_90a")) ? "sm_80" : "sm_90a";
}

std::unique_ptr<Device> attn::createNativeDevice(std::string &target) {
  llvm::Expected<std::unique_ptr<Device>> gpu = createCudaDevice();
  std::unique_ptr<Device> device;
  if (gpu)
    device = std::move(*gpu);
  else {
    llvm::consumeError(gpu.takeError());
    device = createCpuDevice();
  }
  target = getBestTarget(*device);
  return device;
}

DeviceMemory::DeviceMemory(DeviceMemory &&other)
    : device(std::exchange(other.device, nullptr)),
      address(std::exchange(other.address, 0)) {}

DeviceMemory &DeviceMemory::operator=(DeviceMemory &&other) {
  std::swap(device, other.device);
  std::swap(address, other.address);
  return *this;
}

DeviceMemory::~DeviceMemory() {
  if (device)
    device->free(address);
}

llvm::Expected<DeviceMemory> DeviceMemory::allocate(Device &device,
                                                    int64_t bytes) {
  llvm::Expected<DeviceAddress> address = device.allocate(bytes);
  if (!address)
    return address.takeError();
  DeviceMemory memory;
  memory.device = &device;
  memory.address = *address;
  return memory;
}
