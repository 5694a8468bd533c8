//===- TensorMaps.cpp - What TMA must know of an argument -----------------===//

#include "attn/Runtime/TensorMaps.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace attn;

// What tensor maps can hold (CUDA driver API, cuTensorMapEncodeTiled).
static constexpr uint64_t kAlignment = 16;
static constexpr uint64_t kMaxStride = uint64_t(1) << 40;

char UnsupportedLayout::ID = 0;

void UnsupportedLayout::log(llvm::raw_ostream &os) const {
  os << reason << "; copy it to aligned memory, or compile for sm_80";
}

/// What keeps TMA from memory; empty if nothing does.
static std::string findObstacle(DeviceAddress address,
                                const TensorMapShape &map) {
  if (const uint64_t rest = address % kAlignment)
    return llvm::formatv("its base lies {0} bytes past a multiple of {1} bytes",
                         rest, kAlignment);
  for (auto [index, stride] : llvm::enumerate(map.strides)) {
    // A map with a lead has the rows' stride once more, last.
    const size_t rank = map.strides.size() + (map.leadBytes == 0 ? 1 : 0);
    const size_t dim = rank - 2 - index;
    if (stride % kAlignment != 0)
      return llvm::formatv("the stride of dimension {0} is {1} bytes, no "
                           "multiple of {2}",
                           dim, stride, kAlignment);
    if (stride >= kMaxStride)
      return llvm::formatv("the stride of dimension {0} is {1} bytes, which is "
                           "2^40 or more",
                           dim, stride);
  }
  return "";
}

llvm::Expected<EncodedTensorMap>
attn::encodeTensorMap(Device &device, const Manifest &manifest,
                      const BoundPlan::Parameter &parameter,
                      DeviceAddress address) {
  std::string obstacle = findObstacle(address, *parameter.map);
  if (obstacle.empty()) {
    EncodedTensorMap map;
    llvm::Error error = device.encodeTensorMap(
        address - parameter.map->leadBytes, *parameter.map, map);
    if (!error)
      return map;
    obstacle = llvm::toString(std::move(error));
  }
  const std::optional<unsigned> argument = parameter.buffer->argument;
  const std::string name =
      argument ? "argument '" + manifest.arguments[*argument].name + "'"
               : "a temporary";
  return llvm::make_error<UnsupportedLayout>("TMA can't access " + name + ": " +
                                             obstacle);
}
