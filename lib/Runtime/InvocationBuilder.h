//===- InvocationBuilder.h - From a plan to known sizes ---------*- C++ -*-===//

#ifndef ATTN_LIB_RUNTIME_INVOCATIONBUILDER_H
#define ATTN_LIB_RUNTIME_INVOCATIONBUILDER_H

#include "attn/Runtime/Executable.h"

namespace attn {

/// Checks the bindings of an Invocation and evaluates the plan into its steps.
class InvocationBuilder {
public:
  InvocationBuilder(const Executable &executable, Invocation &invocation)
      : manifest(executable.getManifest()), invocation(invocation),
        numSMs(executable.getDevice().getNumSMs()),
        buffers(manifest.buffers.size()) {}

  llvm::Error build();

  /// The memory that the plan's allocations take.
  int64_t getArenaBytes() const { return arenaBytes; }
  /// How much of its start must be zero before the first run.
  int64_t getZeroedBytes() const { return zeroedBytes; }

private:
  /// Where a buffer lies and how large it is, once that is known.
  struct PlacedBuffer {
    Invocation::BufferRef ref;
    int64_t bytes = 0;
    bool isLive = false;
  };

  llvm::Error checkBindings() const;
  llvm::Error checkBinding(const Argument &argument,
                           const Tensor &tensor) const;
  llvm::Error runChecks() const;
  void placeArguments();
  llvm::Error placeZeroedBuffers();
  llvm::Error addStep(const Step &step);
  llvm::Error addAlloc(const Step &step);
  llvm::Error addLaunch(const Step &step);
  llvm::Error addTransfer(const Step &step);
  llvm::Error addParameter(const KernelArgument &argument,
                           Invocation::StepTarget &target) const;

  llvm::Expected<TensorMapShape>
  evaluateTensorMap(const TensorMapRecipe &recipe) const;
  llvm::Expected<int64_t> evaluate(const Expr &expr) const;
  llvm::Expected<int64_t> evaluateSize(const Expr &expr,
                                       const llvm::Twine &what) const;
  /// Of Alloc and Free.
  bool isZeroed(const Step &step) const {
    return manifest.buffers[step.buffer].isZeroed;
  }
  int64_t findFreeOffset(int64_t bytes) const;

  const Manifest &manifest;
  Invocation &invocation;
  const int64_t numSMs;
  /// Parallel to Manifest::buffers.
  std::vector<PlacedBuffer> buffers;
  int64_t arenaBytes = 0;
  int64_t zeroedBytes = 0;
};

} // namespace attn

#endif // ATTN_LIB_RUNTIME_INVOCATIONBUILDER_H
