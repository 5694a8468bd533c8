//===- Compiler.h - From a module to runnable kernels -----------*- C++ -*-===//

#ifndef ATTN_COMPILER_COMPILER_H
#define ATTN_COMPILER_COMPILER_H

#include "attn/Compiler/Backend.h"
#include "attn/Compiler/CpuJit.h"
#include "attn/Runtime/Tensor.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace mlir::tile {
class TileMap;
} // namespace mlir::tile

namespace attn {

struct CompileOptions {
  /// Sets `variant` and `usesCudnn`.
  void setBackend(Backend backend) {
    usesCudnn = backend == Backend::Cudnn;
    variant = getVariant(backend).value_or(mlir::attn::Variant::Fused);
  }

  mlir::attn::Variant variant = mlir::attn::Variant::Fused;
  /// A name of the target table: "cpu", "sm_80" or "sm_90a".
  std::string target = "cpu";
  /// Where `target` has its own, take the fused kernels of sm_80: they read
  /// tensors of any base and strides.
  bool avoidsTMA = false;
  /// A call of cuDNN instead of kernels of our own, of whatever variant.
  bool usesCudnn = false;
  /// The entry function; empty takes the only one, or the only one that holds
  /// an attn.attention.
  std::string entry;
  /// Folder that gets the IR after every pass as NN-<pass>.mlir; empty for
  /// none. Switches the context's multithreading off.
  std::string dumpStages;
  /// Told the argument of each pass that begins, and "" behind the last one.
  /// The context must be single-threaded.
  std::function<void(llvm::StringRef)> onPass;
};

/// Of a lowered module: the target whose kernels it holds, if it is another
/// than the one it is for.
constexpr llvm::StringLiteral kKernelTargetAttrName = "attn.kernel_target";

/// Clones `module`, keeps its entry function and lowers it to LLVM dialect.
/// What is wrong with the input is reported through the context's diagnostics
/// with its location; the error only says that lowering failed.
llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>
lower(mlir::ModuleOp module, const CompileOptions &options);

/// What a tile map is made for; lengths that aren't given are the operator's,
/// or 1024.
struct TileMapOptions {
  std::optional<int64_t> queryLength, keyLength;
  int64_t batch = 0, head = 0;
  /// What the mask reads, by the names of the entry's arguments.
  llvm::StringMap<Tensor> inputs;
  /// Where tiles are listed when the kernel runs, a map takes evaluating the
  /// mask for every query and key: up to so many pairs of them.
  int64_t maxPairs = int64_t(1) << 26;
};

/// Which tiles the fused kernel of the module's one attention skips. Errors are
/// reported as those of lower().
llvm::Expected<mlir::tile::TileMap> mapTiles(mlir::ModuleOp module,
                                             const CompileOptions &options,
                                             const TileMapOptions &mapOptions);

/// The kernels of a module that was lowered for a GPU; null on the CPU.
mlir::gpu::GPUModuleOp getGPUModule(mlir::ModuleOp lowered);

/// The manifest (docs/Manifest.md) of a lowered module, as JSON.
llvm::Expected<std::string> emitManifest(mlir::ModuleOp lowered,
                                         const CompileOptions &options);

/// A program that the runtime can run.
struct CompiledProgram {
  std::string manifest;
  /// The kernels as PTX; empty on the CPU, and where cuDNN brings them.
  std::string ptx;
  /// The kernels as machine code; null on a GPU.
  std::unique_ptr<CpuJit> cpu;
};

/// lower, emitManifest and code generation for the target.
llvm::Expected<CompiledProgram> compile(mlir::ModuleOp module,
                                        const CompileOptions &options);

} // namespace attn

#endif // ATTN_COMPILER_COMPILER_H
