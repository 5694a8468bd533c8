//===- attn-fuzz.cpp - Random operators through parser and passes ---------===//
//
// Whatever text comes in, the compiler must not crash, must not refuse without
// a diagnostic, and must print what it parses in a form that it parses back.
// On a crash, the stack trace shows the seed and the text.
//
//===----------------------------------------------------------------------===//

#include "Generator.h"
#include "attn/Pipelines/Pipelines.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/PrettyStackTrace.h"

using mlir::ModuleOp;
using mlir::OwningOpRef;

static llvm::cl::opt<uint64_t> numInputs("n", llvm::cl::desc("Inputs to try"),
                                         llvm::cl::init(1000));
static llvm::cl::opt<uint64_t>
    firstSeed("seed", llvm::cl::desc("Seed of the first input"),
              llvm::cl::init(0));
static llvm::cl::opt<unsigned> pipelineEvery(
    "pipeline-every",
    llvm::cl::desc("Run a whole pipeline on one of so many inputs (the others "
                   "are parsed, verified, printed and canonicalized)"),
    llvm::cl::init(64));

namespace {
/// Shows the input that is being worked on if the process crashes.
struct CurrentInput : llvm::PrettyStackTraceEntry {
  CurrentInput(uint64_t seed, llvm::StringRef stage, llvm::StringRef text)
      : seed(seed), stage(stage), text(text) {}
  void print(llvm::raw_ostream &os) const override {
    os << "attn-fuzz -n 1 -seed " << seed << " (" << stage << "):\n" << text;
  }
  uint64_t seed;
  llvm::StringRef stage, text;
};

class Fuzzer {
public:
  Fuzzer();

  /// Returns false and says why if the input shows a defect.
  bool run(uint64_t seed);

  uint64_t numParsed = 0, numLowered = 0, numRefused = 0;

private:
  /// Parses without printing diagnostics; whether there was an error.
  OwningOpRef<ModuleOp> parse(llvm::StringRef text);
  bool checkRoundTrip(ModuleOp module, uint64_t seed);
  bool runPipeline(ModuleOp module, llvm::StringRef pipeline, uint64_t seed);
  bool lower(ModuleOp module, attn::Random &random, uint64_t seed);
  bool fail(uint64_t seed, const llvm::Twine &why, llvm::StringRef text);

  mlir::MLIRContext context;
  uint64_t numErrors = 0;
};
} // namespace

/// Tensors to tile kernels, and tile kernels on: between them, the text is
/// mutated again.
static constexpr llvm::StringLiteral kToTile =
    "func.func(attn-insert-checks,attn-select-schedule),attn-bufferize,"
    "convert-attn-to-tile";
static constexpr llvm::StringLiteral kFromTile =
    "convert-host-to-plan,tile.kernel(tile-split-kv-ranges,tile-lower-kv-loop,"
    "tile-rewrite-masks,tile-expand-online-softmax,tile-lower-math,"
    "canonicalize,cse),convert-tile-to-vector";

static std::string toText(mlir::Operation *op) {
  std::string text;
  llvm::raw_string_ostream os(text);
  op->print(os);
  return text;
}

static mlir::DialectRegistry makeRegistry() {
  mlir::DialectRegistry registry;
  mlir::attn::registerAttncDialects(registry);
  return registry;
}

Fuzzer::Fuzzer()
    : context(makeRegistry(), mlir::MLIRContext::Threading::DISABLED) {
  context.loadAllAvailableDialects();
  context.getDiagEngine().registerHandler([&](mlir::Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error)
      ++numErrors;
  });
}

bool Fuzzer::fail(uint64_t seed, const llvm::Twine &why, llvm::StringRef text) {
  llvm::errs() << "attn-fuzz: " << why << "\n  attn-fuzz -n 1 -seed " << seed
               << " -pipeline-every=" << pipelineEvery << "\n"
               << text;
  return false;
}

OwningOpRef<ModuleOp> Fuzzer::parse(llvm::StringRef text) {
  return mlir::parseSourceString<ModuleOp>(text, &context);
}

bool Fuzzer::checkRoundTrip(ModuleOp module, uint64_t seed) {
  std::string once = toText(module);
  OwningOpRef<ModuleOp> again = parse(once);
  if (!again)
    return fail(seed, "the printed module doesn't parse", once);
  if (toText(*again) != once)
    return fail(seed, "printing twice gives two texts", once);
  return true;
}

bool Fuzzer::runPipeline(ModuleOp module, llvm::StringRef pipeline,
                         uint64_t seed) {
  std::string text = toText(module);
  CurrentInput current(seed, pipeline, text);
  mlir::PassManager pm(&context);
  if (failed(mlir::parsePassPipeline(pipeline, pm)))
    return fail(seed, "no such pipeline: " + pipeline, "");
  uint64_t before = numErrors;
  if (succeeded(pm.run(module))) {
    ++numLowered;
    return true;
  }
  ++numRefused;
  if (numErrors == before)
    return fail(seed, "refused without a diagnostic by " + pipeline, text);
  return true;
}

bool Fuzzer::lower(ModuleOp module, attn::Random &random, uint64_t seed) {
  if (random.percent(10))
    return runPipeline(module, "attn-cudnn", seed);
  if (random.percent(50)) {
    llvm::StringRef variant =
        mlir::attn::stringifyVariant(random.pick(mlir::attn::getAllVariants()));
    llvm::StringRef target = random.pick({"cpu", "sm_80", "sm_90a"});
    return runPipeline(
        module, ("attn-" + variant + "{target=" + target + "}").str(), seed);
  }
  uint64_t refused = numRefused;
  if (!runPipeline(module, kToTile, seed))
    return false;
  if (numRefused != refused)
    return true;
  std::string text = toText(module);
  for (int i = 0; i < 8; ++i) {
    std::string changed = attn::mutate(text, random);
    CurrentInput current(seed, "parse", changed);
    if (OwningOpRef<ModuleOp> tile = parse(changed)) {
      ++numParsed;
      if (!runPipeline(*tile, kFromTile, seed))
        return false;
    }
  }
  return true;
}

bool Fuzzer::run(uint64_t seed) {
  attn::Random random(seed);
  std::string text = attn::generateAttention(random);
  bool isMutated = random.percent(60);
  if (isMutated)
    text = attn::mutate(text, random);
  CurrentInput current(seed, "parse", text);
  OwningOpRef<ModuleOp> module = parse(text);
  if (!module)
    return isMutated || fail(seed, "a valid operator doesn't parse", text);
  ++numParsed;
  if (!checkRoundTrip(*module, seed) ||
      !runPipeline(*module, "canonicalize,cse", seed))
    return false;
  if (random.below(pipelineEvery) != 0)
    return true;
  return lower(*module, random, seed);
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  mlir::registerTransformsPasses();
  mlir::attn::registerAttncPasses();
  llvm::cl::ParseCommandLineOptions(argc, argv, "attnc fuzzer\n");
  if (pipelineEvery == 0) {
    llvm::errs() << "attn-fuzz: -pipeline-every must be at least 1\n";
    return 1;
  }
  Fuzzer fuzzer;
  for (uint64_t i = 0; i < numInputs; ++i)
    if (!fuzzer.run(firstSeed + i))
      return 1;
  llvm::outs() << "attn-fuzz: " << numInputs << " inputs from seed "
               << firstSeed << ": " << fuzzer.numParsed << " parsed, "
               << fuzzer.numLowered << " pipelines succeeded, "
               << fuzzer.numRefused << " refused with a diagnostic\n";
  return 0;
}
