//===- CpuJit.cpp - Kernels of LLVM dialect as host functions -------------===//

#include "attn/Compiler/CpuJit.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ExecutionEngine/Orc/CompileUtils.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/IR/Module.h"
#include "llvm/Object/ObjectFile.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/SubtargetFeature.h"

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

static Expected<orc::JITTargetMachineBuilder> getTarget() {
  InitializeNativeTarget();
  InitializeNativeTargetAsmPrinter();
  auto target = orc::JITTargetMachineBuilder::detectHost();
  if (target)
    target->setCodeGenOptLevel(CodeGenOptLevel::Default);
  return target;
}

std::string attn::getHostDescription() {
  SubtargetFeatures features;
  for (const auto &feature : sys::getHostCPUFeatures())
    features.AddFeature(feature.first(), feature.second);
  // The map's order is that of hashes, which may differ between processes.
  std::vector<std::string> sorted = features.getFeatures();
  sort(sorted);
  return (sys::getHostCPUName() + ":" + join(sorted, ",")).str();
}

Expected<std::string> attn::compileForHost(mlir::ModuleOp op) {
  auto target = getTarget();
  if (!target)
    return target.takeError();
  auto machine = target->createTargetMachine();
  if (!machine)
    return machine.takeError();

  mlir::registerBuiltinDialectTranslation(*op.getContext());
  mlir::registerLLVMDialectTranslation(*op.getContext());
  LLVMContext context;
  std::unique_ptr<Module> module = mlir::translateModuleToLLVMIR(op, context);
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
  auto object = orc::SimpleCompiler(**machine)(*module);
  if (!object)
    return object.takeError();
  return (*object)->getBuffer().str();
}

attn::CpuJit::CpuJit(std::unique_ptr<orc::LLJIT> jit) : jit(std::move(jit)) {}
attn::CpuJit::~CpuJit() = default;

Expected<std::unique_ptr<attn::CpuJit>>
attn::CpuJit::create(mlir::ModuleOp op) {
  Expected<std::string> object = compileForHost(op);
  return object ? load(*object) : object.takeError();
}

/// The functions that an object defines.
static Expected<std::vector<std::string>> getFunctionNames(StringRef bytes) {
  auto object =
      object::ObjectFile::createObjectFile(MemoryBufferRef(bytes, "attnc"));
  if (!object)
    return object.takeError();
  std::vector<std::string> names;
  for (const object::SymbolRef &symbol : (*object)->symbols()) {
    Expected<object::SymbolRef::Type> type = symbol.getType();
    if (!type)
      return type.takeError();
    Expected<uint32_t> flags = symbol.getFlags();
    if (!flags)
      return flags.takeError();
    if (*type != object::SymbolRef::ST_Function ||
        !(*flags & object::SymbolRef::SF_Global) ||
        (*flags & object::SymbolRef::SF_Undefined))
      continue;
    Expected<StringRef> name = symbol.getName();
    if (!name)
      return name.takeError();
    names.push_back(name->str());
  }
  return names;
}

Expected<std::unique_ptr<attn::CpuJit>> attn::CpuJit::load(StringRef object) {
  auto target = getTarget();
  if (!target)
    return target.takeError();
  Expected<std::vector<std::string>> names = getFunctionNames(object);
  if (!names)
    return names.takeError();
  auto jit = orc::LLJITBuilder()
                 .setJITTargetMachineBuilder(std::move(*target))
                 .create();
  if (!jit)
    return jit.takeError();
  if (Error error = (*jit)->addObjectFile(
          MemoryBuffer::getMemBufferCopy(object, "attnc")))
    return error;
  // Code is linked on the first look-up: do it here, where an error can be
  // reported.
  for (const std::string &name : *names)
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
