//===- attn-compile.cpp - Attention to kernels, on the command line -------===//

#include "../Support/RemarkFile.h"
#include "../Support/RepeatFilter.h"
#include "attn/Analysis/TileMap.h"
#include "attn/Compiler/Assembler.h"
#include "attn/Runtime/TensorFile.h"
#include "attn/Runtime/WholeFile.h"
#include "attn/Target/PTX.h"
#include "mlir/IR/AsmState.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/WithColor.h"

using namespace mlir;
namespace cl = llvm::cl;

namespace {
enum class Emit { MLIR, LLVMIR, PTX, Cubin, Manifest, MaskReport };

struct EmitKind {
  Emit kind;
  StringRef extension;
};
} // namespace

static cl::OptionCategory category("attn-compile options");

static cl::opt<std::string> inputFile(cl::Positional, cl::Required,
                                      cl::desc("FILE"), cl::cat(category));

static cl::opt<mlir::attn::Variant>
    variant("variant", cl::desc("Kernel sequence to make:"),
            cl::values(clEnumValN(mlir::attn::Variant::Naive, "naive",
                                  "matmul, scale, copy, mask, softmax, matmul"),
                       clEnumValN(mlir::attn::Variant::Inplace, "inplace",
                                  "as naive, with the mask applied in place"),
                       clEnumValN(mlir::attn::Variant::Math, "math",
                                  "the reference sequence in f32"),
                       clEnumValN(mlir::attn::Variant::Fused, "fused",
                                  "one kernel (default)")),
            cl::init(mlir::attn::Variant::Fused), cl::cat(category));

static cl::opt<std::string>
    target("target",
           cl::desc("cpu (default), sm_80, sm_90a, or native: what this "
                    "machine runs"),
           cl::init("cpu"), cl::cat(category));

static cl::opt<std::string>
    entry("entry", cl::desc("Function to compile, where there are several"),
          cl::value_desc("NAME"), cl::cat(category));

static cl::list<Emit>
    emits("emit", cl::CommaSeparated,
          cl::desc("What to write, comma-separated; several make -o a stem:"),
          cl::values(clEnumValN(Emit::MLIR, "mlir",
                                "the last MLIR before translation (default)"),
                     clEnumValN(Emit::LLVMIR, "llvm", "LLVM IR"),
                     clEnumValN(Emit::PTX, "ptx", "PTX (GPU targets)"),
                     clEnumValN(Emit::Cubin, "cubin",
                                "machine code (GPU targets; needs ptxas)"),
                     clEnumValN(Emit::Manifest, "manifest",
                                "the plan that the runtime executes, as JSON"),
                     clEnumValN(Emit::MaskReport, "mask-report",
                                "which tiles the fused kernel skips, as text, "
                                "or a picture for -o FILE.svg; alone")),
          cl::cat(category));

static cl::opt<std::string> output("o", cl::desc("Output file, - for stdout"),
                                   cl::value_desc("OUT"), cl::init("-"),
                                   cl::cat(category));

static cl::opt<std::string>
    lengths("lengths",
            cl::desc("Query and key length of a mask-report (default: the "
                     "operator's, or 1024x1024)"),
            cl::value_desc("NQxNK"), cl::cat(category));

static cl::opt<unsigned> batch("batch", cl::desc("Batch of a mask-report"),
                               cl::init(0), cl::cat(category));

static cl::opt<unsigned> head("head", cl::desc("Head of a mask-report"),
                              cl::init(0), cl::cat(category));

static cl::list<std::string> inputs(
    "inputs", cl::CommaSeparated,
    cl::desc("What the mask of a mask-report reads (captures, lengths of a "
             "cache), by attn.name: files of one array, or one .safetensors"),
    cl::value_desc("NAME=FILE.npy,..."), cl::cat(category));

static cl::opt<std::string>
    dumpStages("dump-stages",
               cl::desc("Write the IR after every pass into this folder"),
               cl::value_desc("DIR"), cl::cat(category));

static cl::opt<std::string>
    remarksFile("remarks",
                cl::desc("Where to write the remarks and warnings of passes, "
                         "and of ptxas where it runs, as YAML for "
                         "llvm-remarkutil; they are printed all the same"),
                cl::value_desc("FILE"), cl::cat(category));

static cl::opt<bool>
    werrorPerf("Werror-perf",
               cl::desc("Refuse kernels that ptxas spills registers of, or "
                        "expects to run slowly (GPU targets; needs ptxas)"),
               cl::cat(category));

static StringRef getExtension(Emit emit) {
  switch (emit) {
  case Emit::MLIR:
    return ".mlir";
  case Emit::LLVMIR:
    return ".ll";
  case Emit::PTX:
    return ".ptx";
  case Emit::Cubin:
    return ".cubin";
  case Emit::Manifest:
    return ".json";
  case Emit::MaskReport:
    break;
  }
  llvm_unreachable("no form of a lowered module");
}

static llvm::Expected<std::string> emitLLVMIR(ModuleOp lowered) {
  llvm::LLVMContext context;
  Operation *source = lowered;
  if (gpu::GPUModuleOp gpuModule = ::attn::getGPUModule(lowered))
    source = gpuModule;
  std::unique_ptr<llvm::Module> module =
      translateModuleToLLVMIR(source, context, "attnc");
  if (!module)
    return llvm::createStringError("translation to LLVM IR failed");
  std::string text;
  llvm::raw_string_ostream os(text);
  module->print(os, nullptr);
  return text;
}

namespace {
/// The forms of one lowered module.
class Emitter {
public:
  Emitter(ModuleOp lowered, const ::attn::CompileOptions &options)
      : lowered(lowered), options(options) {}

  /// Generates code where `kinds` need it, once for all of them.
  llvm::Error generate(ArrayRef<Emit> kinds);

  llvm::Expected<std::string> emit(Emit kind);

private:
  ModuleOp lowered;
  const ::attn::CompileOptions &options;
  std::string ptx, cubin;
};
} // namespace

llvm::Error Emitter::generate(ArrayRef<Emit> kinds) {
  const bool isAssembled = werrorPerf || llvm::is_contained(kinds, Emit::Cubin);
  if (!isAssembled && !llvm::is_contained(kinds, Emit::PTX))
    return llvm::Error::success();
  auto text =
      mlir::attn::translateToPTX(::attn::getGPUModule(lowered), options.target);
  if (!text)
    return text.takeError();
  ptx = std::move(*text);
  if (!isAssembled)
    return llvm::Error::success();
  auto assembled = ::attn::assemble(lowered, ptx, options, {werrorPerf});
  if (!assembled)
    return assembled.takeError();
  cubin = std::move(assembled->cubin);
  return llvm::Error::success();
}

llvm::Expected<std::string> Emitter::emit(Emit kind) {
  switch (kind) {
  case Emit::MLIR: {
    std::string text;
    llvm::raw_string_ostream os(text);
    lowered.print(os);
    return text;
  }
  case Emit::LLVMIR:
    return emitLLVMIR(lowered);
  case Emit::PTX:
    return ptx;
  case Emit::Cubin:
    return cubin;
  case Emit::Manifest: {
    auto text = ::attn::emitManifest(lowered, options);
    if (!text)
      return text.takeError();
    return *text + "\n";
  }
  case Emit::MaskReport:
    break;
  }
  llvm_unreachable("no form of a lowered module");
}

static llvm::Error writeFile(StringRef path, StringRef text) {
  return ::attn::writeWholeFile(path,
                                [&](llvm::raw_ostream &os) { os << text; });
}

/// Reads NQxNK into `options`.
static llvm::Error parseLengths(StringRef text,
                                ::attn::TileMapOptions &options) {
  auto [query, key] = text.split('x');
  unsigned numQueries, numKeys;
  if (!llvm::to_integer(query, numQueries, 10) ||
      !llvm::to_integer(key, numKeys, 10))
    return llvm::createStringError(
        "--lengths takes two lengths, e.g. 1024x4096, not '" + text + "'");
  options.queryLength = numQueries;
  options.keyLength = numKeys;
  return llvm::Error::success();
}

/// Reads --inputs into `tensors`.
static llvm::Error readInputs(llvm::StringMap<::attn::Tensor> &tensors) {
  if (inputs.size() == 1 && StringRef(inputs[0]).ends_with(".safetensors")) {
    auto file = ::attn::readSafetensors(inputs[0]);
    if (!file)
      return file.takeError();
    tensors = std::move(*file);
    return llvm::Error::success();
  }
  for (StringRef input : inputs) {
    auto [name, path] = input.split('=');
    if (path.empty())
      return llvm::createStringError(
          "--inputs takes NAME=FILE.npy,... or one .safetensors, not '" +
          input + "'");
    auto tensor = ::attn::readNpy(path);
    if (!tensor)
      return tensor.takeError();
    if (!tensors.try_emplace(name, std::move(*tensor)).second)
      return llvm::createStringError("--inputs gives '" + name + "' twice");
  }
  return llvm::Error::success();
}

static llvm::Error writeMaskReport(ModuleOp module,
                                   const ::attn::CompileOptions &options) {
  ::attn::TileMapOptions mapOptions;
  if (lengths.getNumOccurrences())
    if (llvm::Error error = parseLengths(lengths, mapOptions))
      return error;
  mapOptions.batch = batch;
  mapOptions.head = head;
  if (llvm::Error error = readInputs(mapOptions.inputs))
    return error;
  auto map = ::attn::mapTiles(module, options, mapOptions);
  if (!map)
    return map.takeError();
  std::string text;
  llvm::raw_string_ostream os(text);
  if (StringRef(output).ends_with(".svg"))
    map->printSVG(os);
  else
    map->print(os);
  return writeFile(output, text);
}

/// Everything is made before anything is written, and each file is written
/// whole or not at all.
static llvm::Error compile(ModuleOp module,
                           const ::attn::CompileOptions &options,
                           ArrayRef<Emit> kinds) {
  if (kinds.front() == Emit::MaskReport)
    return writeMaskReport(module, options);
  auto lowered = ::attn::lower(module, options);
  if (!lowered)
    return lowered.takeError();
  Emitter emitter(**lowered, options);
  if (llvm::Error error = emitter.generate(kinds))
    return error;
  SmallVector<std::pair<std::string, std::string>> files;
  for (Emit kind : kinds) {
    auto text = emitter.emit(kind);
    if (!text)
      return text.takeError();
    std::string path = output;
    if (kinds.size() > 1)
      path += getExtension(kind);
    files.emplace_back(path, std::move(*text));
  }
  for (auto &[path, text] : files)
    if (llvm::Error error = writeFile(path, text))
      return error;
  return llvm::Error::success();
}

static llvm::Error run(ModuleOp module, ArrayRef<Emit> kinds) {
  ::attn::CompileOptions options;
  options.variant = variant;
  options.target = target;
  options.entry = entry;
  options.dumpStages = dumpStages;
  if (remarksFile.empty())
    return compile(module, options, kinds);
  module.getContext()->disableMultithreading();
  ::attn::RemarkFile remarks(module);
  options.onPass = [&](StringRef pass) {
    remarks.setSource(pass.empty() ? "ptxas" : pass);
  };
  if (llvm::Error error = compile(module, options, kinds))
    return error;
  return remarks.write(remarksFile);
}

/// Options of a mask-report belong to one, and it takes no others.
static llvm::Error checkMaskReport(ArrayRef<Emit> kinds) {
  if (!llvm::is_contained(kinds, Emit::MaskReport)) {
    if (lengths.getNumOccurrences() || batch.getNumOccurrences() ||
        head.getNumOccurrences() || inputs.getNumOccurrences())
      return llvm::createStringError("--lengths, --batch, --head and --inputs "
                                     "are about --emit=mask-report");
    return llvm::Error::success();
  }
  if (kinds.size() > 1)
    return llvm::createStringError(
        "--emit=mask-report goes with no other form; run it alone");
  if (variant != mlir::attn::Variant::Fused || werrorPerf ||
      dumpStages.getNumOccurrences())
    return llvm::createStringError(
        "--emit=mask-report is about the fused kernel before code generation; "
        "leave out --variant, --dump-stages and -Werror-perf");
  return llvm::Error::success();
}

static llvm::Error checkArguments(ArrayRef<Emit> kinds) {
  target = mlir::attn::resolveTarget(target, "attn-compile");
  const auto *info = mlir::attn::TargetInfo::lookup(target);
  if (!info)
    return llvm::createStringError(mlir::attn::TargetInfo::explainUnknown(
        target, "native, " + mlir::attn::TargetInfo::getAllNames()));
  for (Emit kind : kinds)
    if ((kind == Emit::PTX || kind == Emit::Cubin) && !info->isGPU)
      return llvm::createStringError(
          "target %s has no %s; choose a GPU target, e.g. --target=sm_80",
          target.c_str(), kind == Emit::PTX ? "ptx" : "cubin");
  if (werrorPerf && !info->isGPU)
    return llvm::createStringError(
        "-Werror-perf is about GPU targets, e.g. --target=sm_80");
  if (llvm::Error error = checkMaskReport(kinds))
    return error;
  if (kinds.size() > 1 && output == "-")
    return llvm::createStringError(
        "several emits need -o STEM; each file gets its own extension");
  return llvm::Error::success();
}

static int fail(llvm::Error error) {
  llvm::logAllUnhandledErrors(
      std::move(error), llvm::WithColor::error(llvm::errs(), "attn-compile"));
  return 1;
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(
      argc, argv, "Compiles an attn.attention operator to kernels\n");
  SmallVector<Emit> kinds(emits.begin(), emits.end());
  if (kinds.empty())
    kinds.push_back(Emit::MLIR);
  if (llvm::Error error = checkArguments(kinds))
    return fail(std::move(error));

  std::string message;
  auto file = openInputFile(inputFile, &message);
  if (!file)
    return fail(llvm::createStringError(message));
  llvm::SourceMgr sourceMgr;
  sourceMgr.AddNewSourceBuffer(std::move(file), llvm::SMLoc());
  DialectRegistry registry;
  mlir::attn::registerAttncDialects(registry);
  MLIRContext context(registry);
  context.printOpOnDiagnostic(false);
  SourceMgrDiagnosticHandler handler(sourceMgr, &context);
  ::attn::RepeatFilter filter(&context);
  OwningOpRef<ModuleOp> module =
      parseSourceFile<ModuleOp>(sourceMgr, ParserConfig(&context));
  if (!module)
    return EXIT_FAILURE;
  // A diagnostic says more than the error that follows it.
  bool isDiagnosed = false;
  ScopedDiagnosticHandler errorWatcher(&context, [&](Diagnostic &diagnostic) {
    isDiagnosed |= diagnostic.getSeverity() == DiagnosticSeverity::Error;
    return failure();
  });
  llvm::Error error = run(*module, kinds);
  if (!error)
    return EXIT_SUCCESS;
  if (!isDiagnosed)
    return fail(std::move(error));
  llvm::consumeError(std::move(error));
  return EXIT_FAILURE;
}
