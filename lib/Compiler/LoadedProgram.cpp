//===- LoadedProgram.cpp - An entry point that takes any layout -----------===//

#include "attn/Compiler/LoadedProgram.h"
#include "Program.h"
#include "attn/Dialect/Attn/IR/AttnOps.h"
#include "attn/Runtime/TensorMaps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace attn;

LoadedProgram::LoadedProgram(mlir::ModuleOp module, CompileOptions options,
                             Device &device, std::optional<DiskCache> cache)
    : module(module.clone()), options(std::move(options)), device(device),
      cache(std::move(cache)) {}

LoadedProgram::~LoadedProgram() = default;

const Executable &LoadedProgram::getExecutable() const {
  return first->getExecutable();
}

llvm::Expected<std::unique_ptr<LoadedProgram>>
LoadedProgram::create(mlir::ModuleOp module, const CompileOptions &options,
                      Device &device, std::optional<DiskCache> cache) {
  std::unique_ptr<LoadedProgram> program(
      new LoadedProgram(module, options, device, std::move(cache)));
  auto first = program->load();
  if (!first)
    return first.takeError();
  program->first = std::move(*first);
  return program;
}

/// In the context of `module`, whose handlers are told what there is to say.
static llvm::Expected<LoweredModule> lowerHere(mlir::ModuleOp module,
                                               const CompileOptions &options) {
  LoweredModule result;
  mlir::ScopedDiagnosticHandler listener(module.getContext(),
                                         [&](mlir::Diagnostic &) {
                                           result.isStorable = false;
                                           return mlir::failure();
                                         });
  auto lowered = lower(module, options);
  if (!lowered)
    return lowered.takeError();
  result.module = std::move(*lowered);
  return result;
}

llvm::Expected<std::unique_ptr<Program>> LoadedProgram::load() const {
  ProgramSource source;
  llvm::raw_string_ostream(source.text) << *module;
  source.options = options;
  source.lower = [module = module.get(), options = options] {
    return lowerHere(module, options);
  };
  source.cache = cache;
  return Program::load(std::move(source), device);
}

/// At the operator, if the entry has one.
void LoadedProgram::remark(const llvm::Twine &reason) {
  mlir::Operation *where = *module;
  const Manifest &manifest = getExecutable().getManifest();
  module->lookupSymbol(manifest.entry)->walk([&](mlir::attn::AttentionOp op) {
    where = op;
  });
  mlir::emitRemark(where->getLoc())
      << reason << "; runs the kernel of sm_80 on " << manifest.target;
}

llvm::Expected<std::unique_ptr<Invocation>>
LoadedProgram::bind(llvm::ArrayRef<Tensor> arguments) {
  auto invocation = getExecutable().bind(arguments);
  if (invocation)
    return invocation;
  std::string reason;
  llvm::Error error = llvm::handleErrors(
      invocation.takeError(), [&](const UnsupportedLayout &unsupported) {
        reason = unsupported.getReason();
      });
  if (error)
    return std::move(error);
  options.avoidsTMA = true;
  if (!second) {
    auto loaded = load();
    if (!loaded)
      return llvm::createStringError(reason + "\n" +
                                     llvm::toString(loaded.takeError()));
    second = std::move(*loaded);
  }
  remark(reason);
  return second->getExecutable().bind(arguments);
}
