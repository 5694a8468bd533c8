//===- PTX.cpp - GPU modules to PTX ---------------------------------------===//

#include "attn/Target/PTX.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/OptBisect.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/LICM.h"
#include "llvm/Transforms/Scalar/LoopPassManager.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"
#include "llvm/Transforms/Utils/LCSSA.h"
#include "llvm/Transforms/Utils/LoopSimplify.h"
#include <mutex>

using namespace mlir;

static llvm::Error makeError(const llvm::Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

static llvm::Expected<std::unique_ptr<llvm::TargetMachine>>
createTargetMachine(llvm::StringRef architecture) {
  static std::once_flag initialized;
  std::call_once(initialized, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
  llvm::Triple triple("nvptx64-nvidia-cuda");
  std::string error;
  const llvm::Target *target =
      llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return makeError("LLVM was built without the NVPTX target: " + error);
  // PTX 8.0 is what CUDA 12.0's drivers and later take.
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
      triple, architecture, "+ptx80", llvm::TargetOptions(), std::nullopt,
      std::nullopt, llvm::CodeGenOptLevel::Default));
}

namespace {
/// Leaves out IR passes of the code generator that cost more than all its
/// others and find nothing: the lowering has already factored the addresses.
class CodeGenPassGate : public llvm::OptPassGate {
public:
  bool isEnabled() const override { return true; }
  bool shouldRunPass(llvm::StringRef name, llvm::StringRef) const override {
    return !llvm::is_contained(kSkipped, name);
  }

private:
  static constexpr llvm::StringLiteral kSkipped[] = {
      "slsr",
      "nary-reassociate",
      "early-cse",
      "separate-const-offset-from-gep",
      "consthoist",
      "speculative-execution",
      "mergeicmps",
      "load-store-vectorizer",
      "sroa",
      "infer-address-spaces",
      "expand-memcmp",
      "Loop Strength Reduction",
      "Canonicalize Freeze Instructions in Loops"};
};
} // namespace

/// The lowering emits straight, scalar code, once for every element: only
/// common subexpressions and loop invariants are left to find.
static void optimize(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::PassBuilder builder(&machine);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager sccs;
  llvm::ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(sccs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, sccs, modules);

  llvm::FunctionPassManager passes;
  passes.addPass(llvm::SimplifyCFGPass());
  passes.addPass(llvm::EarlyCSEPass());
  passes.addPass(llvm::createFunctionToLoopPassAdaptor(
      llvm::LICMPass(llvm::LICMOptions()), /*UseMemorySSA=*/true));
  for (llvm::Function &function : module)
    if (!function.isDeclaration())
      passes.run(function, functions);
}

struct attn::DeviceIR::Impl {
  std::unique_ptr<llvm::TargetMachine> machine;
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module;
};

attn::DeviceIR::DeviceIR(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}
attn::DeviceIR::DeviceIR(DeviceIR &&) = default;
attn::DeviceIR::~DeviceIR() = default;

llvm::Expected<attn::DeviceIR>
attn::DeviceIR::translate(gpu::GPUModuleOp module, llvm::StringRef target) {
  auto impl = std::make_unique<Impl>();
  auto machine = createTargetMachine(target);
  if (!machine)
    return machine.takeError();
  impl->machine = std::move(*machine);
  impl->module = translateModuleToLLVMIR(module, impl->context);
  if (!impl->module)
    return makeError("the GPU module doesn't translate to LLVM IR");
  impl->module->setTargetTriple(impl->machine->getTargetTriple());
  impl->module->setDataLayout(impl->machine->createDataLayout());
  return DeviceIR(std::move(impl));
}

llvm::Expected<std::string> attn::DeviceIR::emitPTX() && {
  optimize(*impl->module, *impl->machine);
  CodeGenPassGate gate;
  impl->context.setOptPassGate(gate);
  llvm::SmallString<0> ptx;
  llvm::raw_svector_ostream stream(ptx);
  llvm::legacy::PassManager passes;
  if (impl->machine->addPassesToEmitFile(passes, stream, nullptr,
                                         llvm::CodeGenFileType::AssemblyFile))
    return makeError("LLVM can't emit PTX");
  passes.run(*impl->module);
  return std::string(ptx);
}

llvm::Expected<std::string> attn::translateToPTX(gpu::GPUModuleOp module,
                                                 llvm::StringRef target) {
  llvm::Expected<DeviceIR> ir = DeviceIR::translate(module, target);
  if (!ir)
    return ir.takeError();
  return std::move(*ir).emitPTX();
}
