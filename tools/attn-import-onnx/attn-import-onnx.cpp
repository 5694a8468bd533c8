//===- attn-import-onnx.cpp - ONNX Attention nodes to attn ----------------===//

#include "attn/Conversion/ImportOnnx.h"
#include "attn/Runtime/WholeFile.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Support/FileUtilities.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/WithColor.h"

using namespace mlir;
namespace cl = llvm::cl;

static cl::OptionCategory category("attn-import-onnx options");

static cl::opt<std::string>
    inputFile(cl::Positional, cl::Required,
              cl::desc("MODEL.onnx (protobuf's text form: .textproto, .pbtxt "
                       "or .prototxt)"),
              cl::cat(category));
static cl::opt<std::string> output("o", cl::desc("Output file, - for stdout"),
                                   cl::value_desc("FILE.mlir"), cl::init("-"),
                                   cl::cat(category));
static cl::opt<std::string>
    nodeName("node", cl::desc("Import only the node of this name"),
             cl::value_desc("NAME"), cl::cat(category));
static cl::opt<bool>
    extract("extract",
            cl::desc("Import the Attention nodes of a model that has other "
                     "operators, and leave those out"),
            cl::cat(category));

/// "attn-import-onnx: error: MODEL.onnx: node 'attn': text"
static void print(Diagnostic &diagnostic) {
  const bool isNote = diagnostic.getSeverity() == DiagnosticSeverity::Note;
  const bool isError = diagnostic.getSeverity() == DiagnosticSeverity::Error;
  llvm::raw_ostream &os =
      isNote    ? llvm::WithColor::note(llvm::errs(), "attn-import-onnx")
      : isError ? llvm::WithColor::error(llvm::errs(), "attn-import-onnx")
                : llvm::WithColor::warning(llvm::errs(), "attn-import-onnx");
  os << inputFile << ": ";
  if (auto node = dyn_cast<NameLoc>(LocationAttr(diagnostic.getLocation())))
    os << "node '" << node.getName().getValue() << "': ";
  os << diagnostic << '\n';
  for (Diagnostic &note : diagnostic.getNotes())
    print(note);
}

static LogicalResult run() {
  std::string message;
  std::unique_ptr<llvm::MemoryBuffer> file = openInputFile(inputFile, &message);
  if (!file) {
    llvm::WithColor::error(llvm::errs(), "attn-import-onnx") << message << '\n';
    return failure();
  }
  MLIRContext context(MLIRContext::Threading::DISABLED);
  context.getDiagEngine().registerHandler(print);
  mlir::attn::ImportOnnxOptions options;
  options.node = nodeName;
  options.extract = extract;
  OwningOpRef<ModuleOp> module =
      mlir::attn::importOnnx(*file, context, options);
  if (!module)
    return failure();
  // Written only now, so that nothing is left of a model that is refused.
  llvm::Error error = ::attn::writeWholeFile(
      output, [&](llvm::raw_ostream &os) { os << *module << '\n'; });
  if (!error)
    return success();
  llvm::WithColor::error(llvm::errs(), "attn-import-onnx")
      << llvm::toString(std::move(error)) << '\n';
  return failure();
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(
      argc, argv,
      "Turns the Attention nodes of an ONNX model into attn functions\n");
  return succeeded(run()) ? EXIT_SUCCESS : EXIT_FAILURE;
}
