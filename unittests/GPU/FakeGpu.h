//===- FakeGpu.h - A device and an assembler for tests ----------*- C++ -*-===//

#ifndef ATTN_UNITTESTS_GPU_FAKEGPU_H
#define ATTN_UNITTESTS_GPU_FAKEGPU_H

#include "attn/Runtime/Device.h"
#include "llvm/Support/FileSystem.h"
#include "gtest/gtest.h"

namespace attn::test {

/// Loads and launches as if it were a GPU of compute capability 9.0.
class FakeGpu : public Device {
public:
  std::string getName() const override { return "fake"; }
  bool isGPU() const override { return true; }
  int64_t getCacheBytes() const override { return 0; }
  int64_t getNumSMs() const override { return 2; }
  llvm::Error checkTarget(llvm::StringRef) const override {
    return llvm::Error::success();
  }

  llvm::Expected<std::unique_ptr<LoadedModule>>
  load(const KernelCode &code) override {
    if (refuses && refuses(code.image))
      return llvm::createStringError("refused by the driver");
    images.push_back(code.image);
    return std::make_unique<FakeModule>();
  }
  llvm::Expected<DeviceAddress> allocate(int64_t bytes) override {
    return host->allocate(bytes);
  }
  void free(DeviceAddress address) override { host->free(address); }
  llvm::Error upload(DeviceAddress dst, const void *src,
                     int64_t bytes) override {
    return host->upload(dst, src, bytes);
  }
  llvm::Error download(void *dst, DeviceAddress src, int64_t bytes) override {
    return host->download(dst, src, bytes);
  }
  llvm::Error encodeTensorMap(DeviceAddress, const TensorMapShape &shape,
                              EncodedTensorMap &) override {
    maps.push_back(shape);
    if (refusesMaps)
      return llvm::createStringError("refused by the driver");
    return llvm::Error::success();
  }
  llvm::Error copy(DeviceAddress dst, DeviceAddress src, int64_t bytes,
                   Stream stream) override {
    return host->copy(dst, src, bytes, stream);
  }
  llvm::Error memset(DeviceAddress dst, uint8_t value, int64_t bytes,
                     Stream stream) override {
    return host->memset(dst, value, bytes, stream);
  }
  llvm::Expected<std::unique_ptr<LoadedModule>> loadCudnn() override {
    if (!hasCudnn)
      return Device::loadCudnn();
    return std::make_unique<FakeModule>();
  }
  llvm::Error launch(LoadedKernel &, int64_t grid,
                     llvm::MutableArrayRef<void *> params, Stream) override {
    lastGrid = grid;
    lastParams.clear();
    for (const void *param : params)
      lastParams.push_back(*static_cast<const uint64_t *>(param));
    return llvm::Error::success();
  }
  llvm::Expected<std::unique_ptr<Event>> createEvent() override {
    return host->createEvent();
  }
  llvm::Error record(Event &event) override { return host->record(event); }
  llvm::Error synchronize(Stream stream) override {
    return host->synchronize(stream);
  }
  llvm::Expected<double> getElapsedMicroseconds(Event &start,
                                                Event &end) override {
    return host->getElapsedMicroseconds(start, end);
  }

  /// What was loaded.
  std::vector<std::string> images;
  /// Whether an image can't be loaded; may be empty.
  std::function<bool(llvm::StringRef image)> refuses;
  std::vector<TensorMapShape> maps;
  bool refusesMaps = false;
  bool hasCudnn = false;
  int64_t lastGrid = 0;
  /// Of the last launch; less than 8 bytes are the lower ones.
  std::vector<uint64_t> lastParams;

private:
  struct FakeModule : LoadedModule {
    llvm::Expected<std::unique_ptr<LoadedKernel>>
    getKernel(const Kernel &) override {
      return std::make_unique<LoadedKernel>();
    }
  };

  std::unique_ptr<Device> host = createCpuDevice();
};

/// What FakePtxas puts in front of its input.
constexpr llvm::StringLiteral kAssembled = "assembled\n";

/// Instead of ptxas: puts a line in front of its input.
class FakePtxas {
public:
  FakePtxas() {
    int fd;
    EXPECT_FALSE(llvm::sys::fs::createTemporaryFile("ptxas", "sh", fd, path));
    llvm::raw_fd_ostream os(fd, /*shouldClose=*/true);
    os << "#!/bin/sh\n"
          "while [ $# -gt 0 ]; do\n"
          "  [ \"$1\" = -o ] && out=$2 && in=$3\n"
          "  shift\n"
          "done\n"
          "(echo assembled; cat \"$in\") > \"$out\"\n";
    os.close();
    EXPECT_FALSE(llvm::sys::fs::setPermissions(path, llvm::sys::fs::owner_all));
    setenv("ATTNC_PTXAS", path.c_str(), /*overwrite=*/1);
  }
  ~FakePtxas() {
    unsetenv("ATTNC_PTXAS");
    remove();
  }
  void remove() { llvm::sys::fs::remove(path); }

private:
  llvm::SmallString<128> path;
};

} // namespace attn::test

#endif // ATTN_UNITTESTS_GPU_FAKEGPU_H
