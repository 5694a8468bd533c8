//===- Launcher.h - Launches on the caller's memory -------------*- C++ -*-===//

#ifndef ATTN_RUNTIME_LAUNCHER_H
#define ATTN_RUNTIME_LAUNCHER_H

#include "attn/Runtime/Executable.h"
#include "attn/Runtime/TileWork.h"
#include <memory>

namespace attn {

/// A tensor in memory of the device, or a scalar (rank 0) in host memory. All
/// of it belongs to the caller.
struct TensorView {
  DType dtype;
  llvm::ArrayRef<int64_t> shape;
  /// In elements.
  llvm::ArrayRef<int64_t> strides;
  void *data;
};

struct LaunchOptions {
  /// A promise that the tensors which a mask reads (captures) and the lengths
  /// of sequences hold what they held at the last launch on the same stream
  /// with tensors of the same shapes and strides. What that launch found out
  /// about them before the attention is used again, if they also lie at the
  /// same addresses and no other launch of the kernel came between on the
  /// stream. What follows from shapes alone is used again without such a
  /// promise.
  bool capturesUnchanged = false;
};

/// Enqueues forwards of an executable on tensors and streams of the caller.
/// Safe to call from many threads.
///
/// The first launch of given shapes and strides checks them and evaluates the
/// plan. Later ones only fill in addresses: they neither allocate nor wait.
///
/// A plan may need memory of its own: intermediates of an unfused variant, the
/// tile counter of a persistent kernel. Every stream has one such workspace,
/// as its launches run one after the other; where a plan needs more, the stream
/// is waited for and the workspace replaced. A launch that is being captured
/// gets a workspace that only its graph uses, kept as long as the launcher.
///
/// Offsets, lengths and pages of sequences (docs/Sequences.md) are checked on
/// the CPU. On a GPU that takes copying them and waiting for the stream: it is
/// done where the environment has ATTNC_CHECK_INPUTS=1.
class Launcher {
public:
  /// `executable` must outlive this.
  explicit Launcher(const Executable &executable);
  /// All launches and graphs must be complete.
  ~Launcher();

  /// For who observes launches of kernels that skip tiles; may be null. To be
  /// set before the first launch.
  void setTileMapper(TileMapper mapper);

  /// One tensor an argument of the manifest, in order. An UnsupportedLayout
  /// (TensorMaps.h) if the kernels can't access one where it lies.
  llvm::Error launch(Stream stream, llvm::ArrayRef<TensorView> arguments,
                     const LaunchOptions &options = {});

  /// How many of the plans for given shapes and strides are kept.
  static constexpr size_t kMaxPlans = 64;

private:
  struct Plan;
  struct Workspace;

  llvm::Expected<std::shared_ptr<Plan>>
  getPlan(llvm::ArrayRef<TensorView> arguments);
  llvm::Expected<Workspace *> getWorkspace(Stream stream);
  llvm::Error grow(Workspace &workspace, const BoundPlan &plan, Stream stream);
  llvm::Error checkSequences(const BoundPlan &plan, Stream stream,
                             llvm::ArrayRef<TensorView> arguments) const;
  llvm::Error enqueue(Plan &plan, const Workspace *workspace, Stream stream,
                      llvm::ArrayRef<TensorView> arguments, bool hasPrepass);

  struct State;
  const Executable &executable;
  std::unique_ptr<State> state;
};

} // namespace attn

#endif // ATTN_RUNTIME_LAUNCHER_H
