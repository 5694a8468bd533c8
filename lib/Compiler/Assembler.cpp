//===- Assembler.cpp - PTX to machine code, with ptxas's remarks ----------===//

#include "attn/Compiler/Assembler.h"
#include "attn/Runtime/Manifest.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace {
/// Says at the kernels of a module what ptxas says of them.
class Reporter {
public:
  Reporter(ModuleOp lowered, ArrayRef<::attn::Kernel> kernels,
           mlir::attn::Variant variant, bool werrorPerf)
      : lowered(lowered), kernels(kernels), variant(variant),
        werrorPerf(werrorPerf) {
    lowered.walk([&](LLVM::LLVMFuncOp function) {
      locations.try_emplace(function.getName(), function.getLoc());
    });
  }

  void report(const ::attn::PtxasResult &result) {
    for (const ::attn::KernelResources &resources : result.kernels) {
      remarkResources(resources);
      if (resources.spillStoreBytes.value_or(0) > 0 ||
          resources.spillLoadBytes.value_or(0) > 0)
        complainOfSpills(resources);
    }
    for (const ::attn::PtxasMessage &message : result.performanceLosses)
      complain(message.kernel) << "ptxas: " << message.text;
  }

  /// At the kernel that the messages of ptxas name, if they name one.
  void reportFailure(StringRef messages) {
    const auto *kernel =
        llvm::find_if(kernels, [&](const ::attn::Kernel &kernel) {
          return messages.contains(kernel.name);
        });
    emitError(getLocation(kernel == kernels.end() ? "" : kernel->name))
        << messages.rtrim();
  }

  bool hasErrors() const { return isRefused; }

private:
  Location getLocation(StringRef kernel) {
    auto found = locations.find(kernel);
    return found == locations.end() ? lowered.getLoc() : found->second;
  }

  InFlightDiagnostic complain(StringRef kernel) {
    isRefused |= werrorPerf;
    const Location location = getLocation(kernel);
    return werrorPerf ? emitError(location) : emitWarning(location);
  }

  /// Of the manifest; null if the plan doesn't launch it.
  const ::attn::Kernel *lookup(StringRef name) const {
    const auto *kernel =
        llvm::find_if(kernels, [&](const ::attn::Kernel &kernel) {
          return kernel.name == name;
        });
    return kernel == kernels.end() ? nullptr : kernel;
  }

  void complainOfSpills(const ::attn::KernelResources &resources) {
    InFlightDiagnostic complaint = complain(resources.name);
    complaint << "'" << resources.name << "' spills registers to memory: "
              << resources.spillStoreBytes.value_or(0) << " bytes stored and "
              << resources.spillLoadBytes.value_or(0)
              << " loaded by each thread";
    // Unfused kernels have no schedule to change.
    if (variant == mlir::attn::Variant::Fused)
      complaint << "; lower block_n or block_m";
  }

  void remarkResources(const ::attn::KernelResources &resources) {
    InFlightDiagnostic remark = emitRemark(getLocation(resources.name));
    remark << resources.name << ": ";
    if (const ::attn::Kernel *kernel = lookup(resources.name))
      remark << kernel->getThreadsPerBlock() << " threads, ";
    remark << resources.registers << " registers, "
           << resources.spillStoreBytes.value_or(0) << " bytes spilled, "
           << resources.sharedBytes << " bytes of shared memory";
    if (const auto &occupancy = resources.occupancy)
      remark << "; " << occupancy->blocksPerSM
             << (occupancy->blocksPerSM == 1 ? " block" : " blocks")
             << " an SM (" << occupancy->warpsPerSM << " of "
             << occupancy->maxWarpsPerSM << " warps), limited by "
             << occupancy->limit;
  }

  ModuleOp lowered;
  ArrayRef<::attn::Kernel> kernels;
  const mlir::attn::Variant variant;
  const bool werrorPerf;
  llvm::StringMap<Location> locations;
  bool isRefused = false;
};
} // namespace

namespace attn {

llvm::Expected<PtxasResult> assemble(ModuleOp lowered, llvm::StringRef ptx,
                                     const CompileOptions &compileOptions,
                                     const AssembleOptions &options) {
  llvm::Expected<std::string> json = emitManifest(lowered, compileOptions);
  if (!json)
    return json.takeError();
  llvm::Expected<Manifest> manifest = Manifest::parse(*json);
  if (!manifest)
    return manifest.takeError();
  llvm::Expected<std::string> ptxas = findPtxas();
  if (!ptxas)
    return ptxas.takeError();
  Reporter reporter(lowered, manifest->kernels, compileOptions.variant,
                    options.werrorPerf);
  llvm::Expected<PtxasResult> result = runPtxas(ptx, compileOptions.target);
  if (!result) {
    reporter.reportFailure(llvm::toString(result.takeError()));
    return llvm::createStringError("ptxas refuses the kernels");
  }
  completeResources(result->kernels, manifest->kernels, compileOptions.target);
  reporter.report(*result);
  if (reporter.hasErrors())
    return llvm::createStringError("ptxas expects the kernels to run slowly");
  return result;
}

} // namespace attn
