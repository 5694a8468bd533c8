//===- BoundPlan.h - A plan with all its sizes known ------------*- C++ -*-===//

#ifndef ATTN_RUNTIME_BOUNDPLAN_H
#define ATTN_RUNTIME_BOUNDPLAN_H

#include "attn/Runtime/Device.h"
#include "attn/Runtime/Manifest.h"
#include "attn/Runtime/Tensor.h"

namespace attn {

/// A step of the plan that takes time, with its sizes known.
struct TimedStep {
  Step::Kind kind;
  /// The kernel's name, "copy SRC -> DST" or "memset BUFFER".
  std::string name;
  /// Launch: index in Manifest::kernels.
  unsigned kernel = 0;
  int64_t grid = 0;
  /// Read and written, if known. A copy counts its size twice.
  std::optional<int64_t> bytes;
  std::optional<int64_t> flops;
  /// See Step.
  bool isPrepass = false;
};

/// The plan of a manifest for arguments of certain shapes and strides. It
/// holds no addresses and no scalars, so that it serves any tensors like those
/// it was made for.
struct BoundPlan {
  /// An address relative to a tensor argument's or, without one, to the plan's
  /// own memory.
  struct BufferRef {
    std::optional<unsigned> argument;
    int64_t offset = 0;
  };

  /// Of a kernel: an address, a tensor map of the memory there, the value of a
  /// scalar argument, or a constant.
  struct Parameter {
    std::optional<BufferRef> buffer;
    std::optional<TensorMapShape> map;
    std::optional<unsigned> scalar;
    uint64_t value = 0;
  };

  /// What `steps` does not need to show.
  struct StepTarget {
    BufferRef destination;
    BufferRef source;
    int64_t size = 0;
    uint8_t fill = 0;
    std::vector<Parameter> parameters;
  };

  /// Refuses arguments that the manifest or its checks don't allow. Reads the
  /// shapes and strides of `arguments`, one an argument of the manifest, never
  /// their data. `numSMs` is that of the device.
  static llvm::Expected<BoundPlan> create(const Manifest &manifest,
                                          int64_t numSMs,
                                          llvm::ArrayRef<Tensor> arguments);

  /// The steps that take time, in order; launches of an empty grid don't.
  std::vector<TimedStep> steps;
  /// Of the manifest's sequences, in order.
  struct SequenceLimits {
    int64_t qRows, kBatches, kRows;
  };
  std::vector<SequenceLimits> sequenceLimits;
  /// Parallel to `steps`.
  std::vector<StepTarget> targets;
  int64_t minBytes = 0;
  int64_t maxIntermediateBytes = 0;
  /// The plan's own memory, and how much of its start must be zero before the
  /// first run; each run leaves it zero.
  int64_t arenaBytes = 0;
  int64_t zeroedBytes = 0;
};

/// The bits of a rank-0 tensor as a kernel parameter.
uint64_t getScalarBits(DType dtype, const void *data);

} // namespace attn

#endif // ATTN_RUNTIME_BOUNDPLAN_H
