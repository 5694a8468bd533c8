//===- CudaDriver.cpp - The driver's entry points, by dlopen --------------===//

#include "CudaDriver.h"
#include "attn/Runtime/LibrarySymbol.h"

using namespace attn::cuda;

/// PTX 7.0, the first with sm_80, came with CUDA 11.0.
static constexpr int kMinDriverVersion = 11000;

static std::string formatVersion(int version) {
  return (llvm::Twine(version / 1000) + "." + llvm::Twine(version % 1000 / 10))
      .str();
}

/// Fills `driver` from libcuda.
static llvm::Error loadSymbols(Driver &driver) {
  std::string reason;
  llvm::sys::DynamicLibrary library =
      llvm::sys::DynamicLibrary::getPermanentLibrary("libcuda.so.1", &reason);
  if (!library.isValid())
    return llvm::createStringError(
        "no CUDA driver on this machine: install NVIDIA's driver, or use the "
        "target cpu (" +
        reason + ")");
#define ATTN_CUDA_LOAD(name, symbol, ...)                                      \
  if (llvm::Error error =                                                      \
          attn::loadSymbol(library, "the CUDA driver", symbol, driver.name))   \
    return error;
  ATTN_CUDA_FUNCTIONS(ATTN_CUDA_LOAD)
#undef ATTN_CUDA_LOAD
  driver.TensorMapEncodeTiled =
      reinterpret_cast<decltype(driver.TensorMapEncodeTiled)>(
          library.getAddressOfSymbol("cuTensorMapEncodeTiled"));
  driver.StreamGetId = reinterpret_cast<decltype(driver.StreamGetId)>(
      library.getAddressOfSymbol("cuStreamGetId"));
  return llvm::Error::success();
}

static llvm::Error initialize(Driver &driver) {
  if (llvm::Error error = loadSymbols(driver))
    return error;
  const CUresult result = driver.Init(0);
  if (result == CUDA_ERROR_NO_DEVICE)
    return llvm::createStringError("the CUDA driver finds no GPU");
  if (llvm::Error error = driver.check(result, "cuInit"))
    return error;
  int version = 0;
  if (llvm::Error error =
          driver.check(driver.DriverGetVersion(&version), "cuDriverGetVersion"))
    return error;
  if (version < kMinDriverVersion)
    return llvm::createStringError(
        "the CUDA driver is too old: it supports CUDA " +
        formatVersion(version) + ", needed is " +
        formatVersion(kMinDriverVersion) + " or later");
  return llvm::Error::success();
}

llvm::Expected<const Driver *> Driver::get() {
  // Once a process; the message is kept, as an Error can be taken only once.
  struct State {
    Driver driver;
    std::string failure;
    State() { failure = llvm::toString(initialize(driver)); }
  };
  static const State state;
  if (!state.failure.empty())
    return llvm::createStringError(state.failure);
  return &state.driver;
}

llvm::Error Driver::check(CUresult result, llvm::StringRef call) const {
  if (result == CUDA_SUCCESS)
    return llvm::Error::success();
  const char *name = nullptr, *text = nullptr;
  if (GetErrorName(result, &name) != CUDA_SUCCESS ||
      GetErrorString(result, &text) != CUDA_SUCCESS)
    return llvm::createStringError(call + ": error " + llvm::Twine(result));
  return llvm::createStringError(call + ": " + text + " (" + name + ")");
}
