//===- CpuJit.cpp - Kernels of LLVM dialect as host functions -------------===//

#include "attn/Compiler/CpuJit.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"

using namespace llvm;

/// The kernels are loops that need no inlining, vectorisation or unrolling, so
/// these passes do all that matters, in a fraction of the time of -O2.
static constexpr StringLiteral kPasses =
    "function(early-cse,simplifycfg,instcombine<no-verify-fixpoint>,"
    "loop-mssa(licm),early-cse)";

static Error optimize(Module &module, TargetMachine &machine) {
  PassBuilder passes(&machine);
  LoopAnalysisManager loops;
  FunctionAnalysisManager functions;
  CGSCCAnalysisManager sccs;
  ModuleAnalysisManager modules;
  passes.registerModuleAnalyses(modules);
  passes.registerCGSCCAnalyses(sccs);
  passes.registerFunctionAnalyses(functions);
  passes.registerLoopAnalyses(loops);
  passes.crossRegisterProxies(loops, functions, sccs, modules);
  ModulePassManager pipeline;
  if (Error error = passes.parsePassPipeline(pipeline, kPasses))
    return error;
  pipeline.run(module, modules);
  return Error::success();
}

attn::CpuJit::CpuJit(std::unique_ptr<orc::LLJIT> jit) : jit(std::move(jit)) {}
attn::CpuJit::~CpuJit() = default;

Expected<std::unique_ptr<attn::CpuJit>>
attn::CpuJit::create(mlir::ModuleOp op) {
  InitializeNativeTarget();
  InitializeNativeTargetAsmPrinter();
  auto target = orc::JITTargetMachineBuilder::detectHost();
  if (!target)
    return target.takeError();
  target->setCodeGenOptLevel(CodeGenOptLevel::Default);
  auto machine = target->createTargetMachine();
  if (!machine)
    return machine.takeError();

  mlir::registerBuiltinDialectTranslation(*op.getContext());
  mlir::registerLLVMDialectTranslation(*op.getContext());
  auto context = std::make_unique<LLVMContext>();
  std::unique_ptr<Module> module = mlir::translateModuleToLLVMIR(op, *context);
  if (!module)
    return createStringError("the module isn't LLVM dialect that can be "
                             "translated to LLVM IR");
  module->setDataLayout((*machine)->createDataLayout());
  module->setTargetTriple((*machine)->getTargetTriple());
  // Some CPUs' scheduling models prefer 256 bits where 512 are faster for
  // chains of FMA.
  for (Function &function : *module)
    function.addFnAttr("prefer-vector-width", "512");
  if (Error error = optimize(*module, **machine))
    return error;
  std::vector<std::string> names;
  for (Function &function : *module)
    if (!function.isDeclaration())
      names.push_back(function.getName().str());

  auto jit = orc::LLJITBuilder()
                 .setJITTargetMachineBuilder(std::move(*target))
                 .create();
  if (!jit)
    return jit.takeError();
  if (Error error = (*jit)->addIRModule(
          orc::ThreadSafeModule(std::move(module), std::move(context))))
    return error;
  // Machine code is made on the first look-up: do it here, where an error can
  // be reported.
  for (const std::string &name : names)
    if (auto address = (*jit)->lookup(name); !address)
      return address.takeError();
  return std::unique_ptr<CpuJit>(new CpuJit(std::move(*jit)));
}

void *attn::CpuJit::lookup(StringRef name) const {
  Expected<orc::ExecutorAddr> address = jit->lookup(name);
  if (address)
    return address->toPtr<void *>();
  consumeError(address.takeError());
  return nullptr;
}
