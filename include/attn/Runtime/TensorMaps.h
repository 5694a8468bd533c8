//===- TensorMaps.h - What TMA must know of an argument ---------*- C++ -*-===//

#ifndef ATTN_RUNTIME_TENSORMAPS_H
#define ATTN_RUNTIME_TENSORMAPS_H

#include "attn/Runtime/BoundPlan.h"

namespace attn {

/// The refusal of arguments that a kernel's TMA can't access where they lie;
/// kernels without TMA may.
class UnsupportedLayout : public llvm::ErrorInfo<UnsupportedLayout> {
public:
  static char ID;

  explicit UnsupportedLayout(std::string reason) : reason(std::move(reason)) {}

  /// Which argument, and why; without advice.
  const std::string &getReason() const { return reason; }

  void log(llvm::raw_ostream &os) const override;
  std::error_code convertToErrorCode() const override {
    return llvm::inconvertibleErrorCode();
  }

private:
  std::string reason;
};

/// Encodes the tensor map of `parameter`, whose memory is at `address`. Fails
/// with an UnsupportedLayout.
llvm::Expected<EncodedTensorMap>
encodeTensorMap(Device &device, const Manifest &manifest,
                const BoundPlan::Parameter &parameter, DeviceAddress address);

} // namespace attn

#endif // ATTN_RUNTIME_TENSORMAPS_H
