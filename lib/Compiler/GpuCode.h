//===- GpuCode.h - GPU kernels made when they are needed --------*- C++ -*-===//

#ifndef ATTN_LIB_COMPILER_GPUCODE_H
#define ATTN_LIB_COMPILER_GPUCODE_H

#include "attn/Runtime/Executable.h"
#include "attn/Target/PTX.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include <atomic>
#include <functional>
#include <mutex>

namespace attn {

/// A module that lower() made, and the context in which it lives, unless that
/// is the caller's.
struct LoweredModule {
  std::unique_ptr<mlir::MLIRContext> context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  /// Whether its code may be found on disk by who compiles it next; false where
  /// that would miss what was said of it.
  bool isStorable = true;
};

/// Machine code of an entry point's kernels. A fused operator has one for each
/// of several lengths, of which a program may need one: those are made one by
/// one, when they are asked for. Other variants launch all that they have,
/// which is one part.
class GpuCode : public KernelSource,
                public std::enable_shared_from_this<GpuCode> {
public:
  struct Options {
    std::string target;
    /// Lowers the entry point, if that isn't done or its result isn't there any
    /// more.
    std::function<llvm::Expected<LoweredModule>()> lower;
    /// Keeps the images, by part, when there are more of them than before;
    /// empty ones aren't made yet. May be null.
    std::function<llvm::Error(std::vector<std::string> images)> store;
    /// Told why `store` failed, on a thread that asked for code. May be null.
    std::function<void(llvm::StringRef reason)> onStoreFailure;
    /// A thread goes on with the other parts when the first are made.
    bool continuesInBackground = false;
  };

  explicit GpuCode(const Manifest &manifest, Options options);

  /// Before anything is asked for: what `lower` would give.
  void setLowered(LoweredModule module);
  /// Before anything is asked for: images that were stored. False if they
  /// aren't those of this manifest.
  bool setImages(std::vector<std::string> images);

  unsigned getNumParts() const override { return parts.size(); }
  unsigned getPart(unsigned kernel) const override;
  llvm::Error make(llvm::ArrayRef<unsigned> wanted) override;
  std::string getImage(unsigned part) const override;
  llvm::Error remake(unsigned part, llvm::Error refusal) override;

private:
  /// What an image is, and so what comes next if the device refuses it.
  enum class Form { None, Stored, Assembled, PTX };

  struct Part {
    /// Held while it is made: only then, `image` and `form` change.
    std::mutex making;
    /// Of `image` and `form`, never held for long.
    mutable std::mutex mutex;
    std::string image;
    Form form = Form::None;
  };

  bool isMade(unsigned part) const;
  llvm::SmallVector<unsigned> getMissing(llvm::ArrayRef<unsigned> wanted) const;
  void takeApart(LoweredModule module);
  llvm::Expected<mlir::attn::DeviceIR> translate(unsigned part);
  llvm::Error makePart(Part &part, bool isAssembled);
  llvm::Error makeSideBySide(llvm::ArrayRef<unsigned> missing);
  llvm::Error storeNew();
  void continueInBackground();
  void makeRest(const std::atomic<bool> &isStopping);

  const Options options;
  /// Of the kernels, in the manifest's order.
  std::vector<std::string> names;
  const std::string variant;
  std::vector<Part> parts;
  std::atomic<bool> isContinued = false;

  /// Of `lowered` and `modules`: one thread at a time uses the context.
  std::mutex loweredMutex;
  LoweredModule lowered;
  /// By part; empty until it is lowered, and again when all parts are made.
  std::vector<mlir::gpu::GPUModuleOp> modules;

  std::mutex storeMutex;
  size_t numStored = 0;
};

} // namespace attn

#endif // ATTN_LIB_COMPILER_GPUCODE_H
