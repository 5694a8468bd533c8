//===- Pipelines.h - From attn.attention to LLVM dialect --------*- C++ -*-===//
//
// The pipelines that attn-opt, attn-compile and the JIT share: what the lit
// tests run is what ships.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PIPELINES_PIPELINES_H
#define ATTN_PIPELINES_PIPELINES_H

#include "attn/Target/TargetInfo.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"

namespace mlir::attn {

/// The kernel sequences that one operator can become.
enum class Variant { Naive, Inplace, Math, Fused };

/// "naive", "inplace", "math", "fused".
StringRef stringifyVariant(Variant variant);
std::optional<Variant> symbolizeVariant(StringRef name);
ArrayRef<Variant> getAllVariants();

struct AttnPipelineOptions : PassPipelineOptions<AttnPipelineOptions> {
  Option<std::string> target{*this, "target",
                             llvm::cl::desc("cpu, sm_80, sm_90a, or native: "
                                            "what this machine runs"),
                             llvm::cl::init("cpu")};
};

/// `name`, or for "native" the best target that this machine runs, which it
/// says on stderr in the name of `user`.
std::string resolveTarget(StringRef name, StringRef user);

/// The target whose kernels `variant` of `entry` gets on a machine of `target`:
/// those of sm_80 serve where there are none with warp roles.
const TargetInfo &getKernelTarget(func::FuncOp entry, Variant variant,
                                  const TargetInfo &target);

/// From a module with one entry function on tensors to LLVM dialect: kernels,
/// and the module attribute `attn.plan`. `target` must have the kernels (see
/// getKernelTarget).
void buildAttnPipeline(OpPassManager &pm, Variant variant,
                       const TargetInfo &target);

/// The part of the fused pipeline that ends with the ranges of key tiles that
/// each kernel skips, or visits without the mask.
void buildKVRangesPipeline(OpPassManager &pm, const TargetInfo &target);

/// From a module with one entry function on tensors to the module attribute
/// `attn.plan` and a kernel that cuDNN brings.
void buildCudnnPipeline(OpPassManager &pm);

/// Registers `attn-naive`, `attn-inplace`, `attn-math`, `attn-fused` and
/// `attn-cudnn`, and every pass of the project.
void registerAttncPasses();

/// Registers every dialect and external model that the pipelines need.
void registerAttncDialects(DialectRegistry &registry);

} // namespace mlir::attn

#endif // ATTN_PIPELINES_PIPELINES_H
