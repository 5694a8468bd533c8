//===- attn-run.cpp - Runs, checks and times an attention operator --------===//

#include "../Support/CommonOptions.h"
#include "../Support/DeviceChoice.h"
#include "../Support/InputModule.h"
#include "../Support/ProfileOptions.h"
#include "../Support/RemarkFile.h"
#include "../Support/ShellQuoting.h"
#include "../Support/Verifier.h"
#include "attn/Compiler/Explain.h"
#include "attn/Compiler/LoadedProgram.h"
#include "attn/Compiler/TileWork.h"
#include "attn/Profile/Profiler.h"
#include "attn/Runtime/Report.h"
#include "attn/Runtime/TensorFile.h"
#include "attn/Runtime/WholeFile.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/StringSaver.h"
#include "llvm/Support/WithColor.h"
#include <iostream>

namespace cl = llvm::cl;
using namespace attn;

static cl::OptionCategory category("attn-run options");

static CommonOptions common(category);
static cl::opt<std::string>
    variantName("variant",
                cl::desc("naive, inplace, math, fused, or all (default fused)"),
                cl::init("fused"), cl::cat(category));
static cl::list<std::string> backendNames(
    "backend", cl::CommaSeparated,
    cl::desc("Whose code, instead of a --variant: auto, fused, naive, inplace, "
             "math, cudnn, several of them, or all (docs/Backends.md). One "
             "that is named and can't serve the operator is an error; of all, "
             "those that can't say why"),
    cl::value_desc("NAME,..."), cl::cat(category));
static cl::opt<bool> explainBackends(
    "explain",
    cl::desc("Say of each backend whether it serves the operator, and why or "
             "why not, instead of running it; --json writes it to a file"),
    cl::cat(category));
static cl::opt<std::string>
    entryName("entry", cl::desc("Function to run, if there are several"),
              cl::cat(category));
static cl::opt<uint64_t> seed("seed", cl::desc("Of the random inputs"),
                              cl::init(0), cl::cat(category));
static cl::list<std::string>
    outputs("outputs", cl::CommaSeparated,
            cl::desc("Where to write the outputs, as .npy"),
            cl::value_desc("FILE,..."), cl::cat(category));
static cl::opt<bool> verify("verify",
                            cl::desc("Compare with a float64 reference"),
                            cl::cat(category));
static cl::opt<int64_t>
    repeat("repeat",
           cl::desc("Timed forwards, after 3 to warm up (default 20; 0: run "
                    "once, without timing)"),
           cl::init(20), cl::cat(category));
static cl::opt<bool>
    warm("warm",
         cl::desc("Time with the same copy of the arguments each time, so that "
                  "they may be found in the cache"),
         cl::cat(category));
static cl::opt<std::string> jsonFile("json",
                                     cl::desc("Where to write the report"),
                                     cl::value_desc("FILE"), cl::cat(category));
static cl::opt<std::string>
    remarksFile("remarks",
                cl::desc("Where to write the remarks and warnings of passes, "
                         "as YAML for llvm-remarkutil; they are printed all "
                         "the same"),
                cl::value_desc("FILE"), cl::cat(category));
static cl::opt<std::string> profileFile(
    "profile",
    cl::desc("Record what runs, show it kernel by kernel and explain it; with "
             "FILE, also save it for attn-prof (docs/Profile.md)"),
    cl::value_desc("FILE"), cl::ValueOptional, cl::cat(category));
static ShowProfileOptions showOptions(category);

/// For whom reads a profile.
static std::string commandLine;

namespace {

/// Says what is being done, on a line of the terminal that goes away.
class Progress {
public:
  ~Progress() { clear(); }
  void show(const llvm::Twine &text) {
    if (!llvm::errs().is_displayed())
      return;
    clear();
    llvm::errs() << "attn-run: " << text;
  }
  void clear() {
    if (llvm::errs().is_displayed())
      llvm::errs() << "\r\033[K";
  }
};

/// Runs the variants of one module one after the other, on the same arguments.
class Runner {
public:
  /// With a profiler, everything is recorded; `device` is the profiler's.
  /// With `remarks`, what the compiler says goes there too.
  Runner(mlir::ModuleOp module, Device &device, std::string target,
         Profiler *profiler, RemarkFile *remarks)
      : module(module), device(device), target(std::move(target)),
        profiler(profiler), remarks(remarks) {}

  /// Errors are those that concern every variant; a variant's own are in its
  /// report.
  llvm::Expected<VariantReport> run(Backend backend);

  const Report &getReport() const { return report; }
  Report &getReport() { return report; }
  /// Of the backends that ran; empty before.
  std::vector<Tensor> getInputs() const { return inputs; }
  std::vector<RegionProfile> takeProfiles() { return std::move(profiles); }

private:
  llvm::Expected<std::unique_ptr<LoadedProgram>> load(Backend backend,
                                                      std::string &diagnosed);
  llvm::Error prepare(const Manifest &manifest);
  llvm::Expected<VariantReport> execute(LoadedProgram &program);
  llvm::Expected<std::unique_ptr<Invocation>> runFirst(LoadedProgram &program);
  llvm::Error recordProfile(Invocation &invocation);
  void addTiles(RegionProfile &region, const Invocation &invocation);
  llvm::Error writeOutputs(const Manifest &manifest) const;

  mlir::ModuleOp module;
  Device &device;
  std::string target;
  Profiler *profiler;
  RemarkFile *remarks;
  std::vector<RegionProfile> profiles;
  Progress progress;
  Report report;
  std::vector<Tensor> arguments, inputs;
  std::optional<Verifier> verifier;
};

} // namespace

/// "file:line:column: message"
static std::string format(mlir::Diagnostic &diagnostic) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (auto location = llvm::dyn_cast<mlir::FileLineColLoc>(
          mlir::LocationAttr(diagnostic.getLocation())))
    os << location.getFilename().getValue() << ':' << location.getLine() << ':'
       << location.getColumn() << ": ";
  os << diagnostic;
  return text;
}

/// `firstError` gets the text of the first diagnostic for the report; the
/// handler below this one prints it as well, with the source line.
llvm::Expected<std::unique_ptr<LoadedProgram>>
Runner::load(Backend backend, std::string &firstError) {
  mlir::ScopedDiagnosticHandler handler(
      module.getContext(), [&](mlir::Diagnostic &diagnostic) {
        progress.clear();
        if (firstError.empty() &&
            diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error)
          firstError = format(diagnostic);
        return mlir::failure();
      });
  CompileOptions options;
  options.setBackend(backend);
  options.target = target;
  options.entry = entryName;
  if (remarks)
    options.onPass = [&](llvm::StringRef pass) {
      remarks->setSource(pass.empty() ? "attnc" : pass);
    };
  return LoadedProgram::create(module, options, device,
                               DiskCache::getDefault());
}

/// Before anything runs, so that no output is written for a call that fails.
static llvm::Error checkOutputCount(const Manifest &manifest) {
  const size_t count =
      llvm::count_if(manifest.arguments, [](const Argument &argument) {
        return argument.isOutput;
      });
  if (outputs.size() <= count)
    return llvm::Error::success();
  return llvm::createStringError("--outputs: no output is left for '" +
                                 outputs[count] + "'");
}

llvm::Error Runner::prepare(const Manifest &manifest) {
  if (!arguments.empty())
    return llvm::Error::success();
  if (llvm::Error error = checkOutputCount(manifest))
    return error;
  progress.show("preparing the inputs");
  auto made = makeArguments(manifest, common.getSources(seed));
  if (!made)
    return made.takeError();
  arguments = std::move(*made);
  for (auto [argument, tensor] : llvm::zip_equal(manifest.arguments, arguments))
    if (!argument.isOutput)
      inputs.push_back(tensor);
  report.versions = {{"attnc", manifest.attncVersion},
                     {"llvm", manifest.llvmVersion}};
  if (!verify)
    return llvm::Error::success();
  progress.show("computing the float64 reference");
  auto entry = module.lookupSymbol<mlir::func::FuncOp>(manifest.entry);
  llvm::Expected<Verifier> created = Verifier::create(entry, arguments);
  if (!created)
    return created.takeError();
  verifier = std::move(*created);
  return llvm::Error::success();
}

llvm::Error Runner::writeOutputs(const Manifest &manifest) const {
  llvm::ArrayRef<std::string> paths(outputs);
  for (auto [argument, tensor] :
       llvm::zip_equal(manifest.arguments, arguments)) {
    if (!argument.isOutput || paths.empty())
      continue;
    if (llvm::Error error = writeNpy(paths.front(), tensor))
      return error;
    paths = paths.drop_front();
  }
  return llvm::Error::success();
}

/// Binds the arguments and runs one forward, whose outputs are checked.
llvm::Expected<std::unique_ptr<Invocation>>
Runner::runFirst(LoadedProgram &program) {
  if (profiler)
    profiler->beginPhase("first");
  auto invocation = program.bind(arguments);
  if (!invocation)
    return invocation.takeError();
  if (llvm::Error error = (*invocation)->poisonOutputs())
    return std::move(error);
  if (llvm::Error error = (*invocation)->run())
    return std::move(error);
  if (profiler)
    if (llvm::Error error = profiler->endPhase(/*calls=*/1))
      return std::move(error);
  if (llvm::Error error = (*invocation)->downloadOutputs())
    return std::move(error);
  return invocation;
}

static ProfileOptions getProfileOptions() {
  ProfileOptions options;
  options.repeat = repeat;
  options.rotateArguments = !warm;
  return options;
}

/// What a fused kernel or cuDNN's leaves out of the work; attn-run has the data
/// that a mask reads.
void Runner::addTiles(RegionProfile &region, const Invocation &invocation) {
  const Manifest &manifest = invocation.getExecutable().getManifest();
  const bool isFused = manifest.variant ==
                       mlir::attn::stringifyVariant(mlir::attn::Variant::Fused);
  if (!isFused && !manifest.usesCudnn())
    return;
  std::optional<TileWork> tiles;
  // Results are arguments, too.
  const llvm::ArrayRef<int64_t> query = arguments[0].getShape();
  const llvm::ArrayRef<int64_t> key = arguments[1].getShape();
  if (query.size() == 4 && key.size() == 4) {
    TileMapOptions options;
    options.queryLength = query[2];
    options.keyLength = key[2];
    for (auto [argument, tensor] :
         llvm::zip_equal(manifest.arguments, arguments))
      if (argument.isTensor)
        options.inputs.try_emplace(argument.name, tensor);
    tiles = getTileWork(module, manifest, options);
  }
  addTileWork(region, invocation, tiles, query);
}

llvm::Error Runner::recordProfile(Invocation &invocation) {
  const ProfileOptions options = getProfileOptions();
  if (llvm::Error error = invocation.warmUp(options))
    return error;
  profiler->beginPhase("steady");
  if (llvm::Error error = invocation.enqueueForwards(options.repeat))
    return error;
  if (llvm::Error error = profiler->endPhase(options.repeat))
    return error;
  llvm::Expected<RegionProfile> region = profiler->end();
  if (!region)
    return region.takeError();
  addFacts(*region, invocation);
  addTiles(*region, invocation);
  region->isWarm = warm;
  profiles.push_back(std::move(*region));
  return llvm::Error::success();
}

llvm::Expected<VariantReport> Runner::execute(LoadedProgram &program) {
  auto invocation = runFirst(program);
  if (!invocation)
    return invocation.takeError();
  if (profiler)
    if (llvm::Error error = recordProfile(**invocation))
      return std::move(error);
  std::optional<Profile> profile;
  if (repeat > 0) {
    llvm::Expected<Profile> measured =
        (*invocation)->profile(getProfileOptions());
    if (!measured)
      return measured.takeError();
    profile = std::move(*measured);
  }
  VariantReport result =
      VariantReport::create((*invocation)->getExecutable(), **invocation,
                            profile ? &*profile : nullptr);
  if (verifier)
    verifier->check(arguments, result);
  return result;
}

llvm::Expected<VariantReport> Runner::run(Backend backend) {
  const llvm::StringRef name = stringifyBackend(backend);
  auto fail = [&](llvm::Error error) {
    return VariantReport::failure(name, target, std::move(error));
  };
  // What fails without a diagnostic.
  auto printAndFail = [&](llvm::Error error) {
    VariantReport failure = fail(std::move(error));
    progress.clear();
    llvm::WithColor::error(llvm::errs(), "attn-run")
        << name << ": " << failure.message << '\n';
    return failure;
  };
  progress.show("compiling " + name + " for " + target);
  if (profiler) {
    if (llvm::Error error = profiler->begin(name, target))
      return std::move(error);
    profiler->beginPhase("compile");
  }
  std::string diagnosed;
  auto program = load(backend, diagnosed);
  if (!program && diagnosed.empty())
    return printAndFail(program.takeError());
  if (!program) {
    llvm::consumeError(program.takeError());
    return fail(llvm::createStringError(diagnosed));
  }
  if (profiler)
    if (llvm::Error error = profiler->endPhase(/*calls=*/1))
      return std::move(error);
  // Inputs and the reference are no part of a call.
  const Manifest &manifest = (*program)->getExecutable().getManifest();
  if (llvm::Error error = prepare(manifest))
    return std::move(error);

  progress.show("running " + name + " on " + device.getName());
  llvm::Expected<VariantReport> result = execute(**program);
  if (!result)
    return printAndFail(result.takeError());
  if (result->status == "ok" && !outputs.empty())
    if (llvm::Error error = writeOutputs(manifest))
      return std::move(error);
  return result;
}

//===----------------------------------------------------------------------===//
// Main
//===----------------------------------------------------------------------===//

/// Whether those that can't serve the operator are only listed.
static bool areAllBackends() {
  return backendNames.size() == 1 && backendNames.front() == "all";
}

static llvm::Expected<std::vector<Backend>> parseBackends() {
  if (areAllBackends())
    return getAllBackends().vec();
  std::vector<Backend> backends;
  for (const std::string &name : backendNames) {
    llvm::Expected<Backend> backend = parseBackend(name);
    if (!backend)
      return llvm::createStringError(llvm::toString(backend.takeError()) +
                                     ", and all");
    const Backend served =
        *backend == Backend::Auto ? Backend::Fused : *backend;
    if (llvm::is_contained(backends, served))
      return llvm::createStringError("--backend: '" + name +
                                     "' is there twice");
    backends.push_back(served);
  }
  return backends;
}

static llvm::Expected<std::vector<Backend>> parseVariants() {
  std::vector<Backend> all;
  for (mlir::attn::Variant variant : mlir::attn::getAllVariants())
    all.push_back(getBackend(variant));
  if (variantName == "all")
    return all;
  if (auto variant = mlir::attn::symbolizeVariant(variantName))
    return std::vector<Backend>{getBackend(*variant)};
  return llvm::createStringError("unknown variant '" + variantName +
                                 "'; known are naive, inplace, math, fused "
                                 "and all");
}

static llvm::Expected<std::vector<Backend>> chooseBackends() {
  auto backends = backendNames.empty() ? parseVariants() : parseBackends();
  if (backends && backends->size() > 1 && !outputs.empty())
    return llvm::createStringError(
        backendNames.empty() ? "--outputs needs one --variant, not all of them"
                             : "--outputs needs one --backend");
  return backends;
}

static bool isProfiling() { return profileFile.getNumOccurrences() > 0; }

/// What is wrong with the options, before anything runs.
static llvm::Error checkOptions() {
  if (variantName.getNumOccurrences() > 0 && !backendNames.empty())
    return llvm::createStringError(
        "--variant and --backend say the same thing; give one of them");
  if (repeat < 0)
    return llvm::createStringError("--repeat needs a nonnegative number");
  if (isProfiling() && repeat == 0)
    return llvm::createStringError("--profile needs a --repeat above 0");
  if (!isProfiling() && showOptions.isUsed())
    return llvm::createStringError(
        "--expect, --layers, --baseline, --trace and --report need --profile");
  if (explainBackends &&
      (isProfiling() || verify || !outputs.empty() || !remarksFile.empty()))
    return llvm::createStringError(
        "--explain runs nothing; --profile, --verify, --outputs and --remarks "
        "are for another command without it");
  return showOptions.checkReport();
}

/// Whether guesses and baseline are about what will be recorded.
static llvm::Error checkRegions(llvm::ArrayRef<Backend> backends) {
  std::vector<std::string> names;
  for (Backend backend : backends)
    names.push_back(stringifyBackend(backend).str());
  return showOptions.checkRegions(names);
}

/// Shows what was recorded, and saves it.
static llvm::Expected<bool> finishProfile(Profiler &profiler, Runner &runner) {
  ProfileFile file;
  file.regions = runner.takeProfiles();
  llvm::Expected<ProfileEnvironment> environment =
      profiler.describeEnvironment();
  if (!environment)
    return environment.takeError();
  file.environment = std::move(*environment);
  for (const auto &[name, version] : runner.getReport().versions)
    file.environment.versions[name] = version;
  file.command = commandLine;
  llvm::outs() << '\n';
  llvm::Expected<bool> allRight = showOptions.show(file);
  if (!allRight || profileFile.empty())
    return allRight;
  if (llvm::Error error =
          writeWholeFile(profileFile, [&](llvm::raw_ostream &os) {
            writeProfile(os, file, showOptions.get());
          }))
    return std::move(error);
  return allRight;
}

/// The status of a backend that is one of all and can't serve the operator.
static constexpr llvm::StringLiteral kUnserved = "not served";

/// The inputs of --shapes or --inputs, without their data; none where there are
/// no such options.
static llvm::Expected<std::vector<Tensor>>
makeInputSizes(mlir::ModuleOp module) {
  ArgumentSources sources = common.getSources(seed);
  sources.isWithoutData = true;
  if (sources.files.empty() && sources.shapes.empty())
    return std::vector<Tensor>();
  // The arguments are the same whatever is made of the operator, if anything.
  mlir::ScopedDiagnosticHandler silence(
      module.getContext(), [](mlir::Diagnostic &) { return mlir::success(); });
  for (mlir::attn::Variant variant : mlir::attn::getAllVariants()) {
    CompileOptions options;
    options.variant = variant;
    options.entry = entryName;
    auto lowered = lower(module, options);
    if (!lowered) {
      llvm::consumeError(lowered.takeError());
      continue;
    }
    llvm::Expected<std::string> text = emitManifest(**lowered, options);
    if (!text)
      return text.takeError();
    llvm::Expected<Manifest> manifest = Manifest::parse(*text);
    if (!manifest)
      return manifest.takeError();
    return makeInputs(*manifest, sources);
  }
  return std::vector<Tensor>();
}

/// `asked`: which --variant or --backend names, if any does.
static llvm::Expected<Explanation> explainModule(mlir::ModuleOp module,
                                                 Backend asked,
                                                 std::vector<Tensor> inputs) {
  KernelOptions options;
  options.target = common.target;
  options.entry = entryName;
  const bool isNamed =
      !backendNames.empty() || variantName.getNumOccurrences() > 0;
  options.backend = isNamed ? asked : Backend::Auto;
  return explain(module, options, {std::move(inputs)});
}

/// Why cuDNN can't serve the operator; empty if it can.
static llvm::Expected<std::string> findUnserved(mlir::ModuleOp module,
                                                std::vector<Tensor> inputs) {
  auto explanation = explainModule(module, Backend::Cudnn, std::move(inputs));
  if (!explanation)
    return explanation.takeError();
  for (const BackendVerdict &verdict : explanation->verdicts)
    if (verdict.backend == Backend::Cudnn &&
        verdict.status == BackendVerdict::Status::Unserved)
      return verdict.reason;
  return "";
}

/// Returns an exit status: a failure if what is asked for can't serve.
static llvm::Expected<int> runExplain(mlir::ModuleOp module, Backend asked) {
  llvm::Expected<std::vector<Tensor>> inputs = makeInputSizes(module);
  if (!inputs)
    return inputs.takeError();
  auto explanation = explainModule(module, asked, std::move(*inputs));
  if (!explanation)
    return explanation.takeError();
  printExplanation(llvm::outs(), *explanation);
  if (!jsonFile.empty())
    if (llvm::Error error =
            writeWholeFile(jsonFile, [&](llvm::raw_ostream &os) {
              writeExplanation(os, *explanation);
            }))
      return std::move(error);
  return explanation->verdicts.front().status == BackendVerdict::Status::Chosen
             ? EXIT_SUCCESS
             : EXIT_FAILURE;
}

/// Returns an exit status.
static llvm::Expected<int> runVariants(mlir::ModuleOp module,
                                       llvm::ArrayRef<Backend> backends) {
  std::string target = common.target;
  llvm::Expected<std::unique_ptr<Device>> device = createDevice(target);
  if (!device)
    return device.takeError();

  std::optional<Profiler> profiler;
  if (isProfiling())
    profiler.emplace(**device);
  std::optional<RemarkFile> remarks;
  if (!remarksFile.empty())
    remarks.emplace(module);
  Runner runner(module, profiler ? profiler->getDevice() : **device, target,
                profiler ? &*profiler : nullptr, remarks ? &*remarks : nullptr);
  Report &report = runner.getReport();
  report.device = (*device)->getName();
  for (Backend backend : backends) {
    if (areAllBackends() && backend == Backend::Cudnn) {
      auto reason = findUnserved(module, runner.getInputs());
      if (!reason)
        return reason.takeError();
      if (!reason->empty()) {
        report.variants.push_back(
            VariantReport::failure(stringifyBackend(backend), target,
                                   llvm::createStringError(*reason)));
        report.variants.back().status = kUnserved;
        continue;
      }
    }
    llvm::Expected<VariantReport> result = runner.run(backend);
    if (!result)
      return result.takeError();
    report.variants.push_back(std::move(*result));
  }
  printTable(llvm::outs(), report, /*showsKernels=*/!profiler);
  if (!jsonFile.empty())
    if (llvm::Error error = writeWholeFile(
            jsonFile, [&](llvm::raw_ostream &os) { writeJSON(os, report); }))
      return std::move(error);
  if (remarks)
    if (llvm::Error error = remarks->write(remarksFile))
      return std::move(error);
  const bool allRan =
      llvm::all_of(report.variants, [](const VariantReport &variant) {
        return variant.status == "ok" || variant.status == kUnserved;
      });
  if (!profiler)
    return allRan ? EXIT_SUCCESS : EXIT_FAILURE;
  llvm::Expected<bool> allRight = finishProfile(*profiler, runner);
  if (!allRight)
    return allRight.takeError();
  if (!allRan)
    return EXIT_FAILURE;
  return *allRight ? EXIT_SUCCESS : kWrongGuess;
}

/// Returns an exit status.
static int runCommand(llvm::ArrayRef<const char *> arguments) {
  if (!cl::ParseCommandLineOptions(
          arguments.size(), arguments.data(),
          "Runs, checks and times an attention operator\n\n"
          "attn-run --commands does so for each line of its standard input, a "
          "command line's\narguments, and ends what it says with `attn-run: "
          "exit status N`. The device stays\ninitialised between them.\n",
          &llvm::errs()))
    return EXIT_FAILURE;
  auto fail = [](llvm::Error error, int code) {
    llvm::WithColor::error(llvm::errs(), "attn-run")
        << llvm::toString(std::move(error)) << '\n';
    return code;
  };
  commandLine = joinForShell(arguments);
  if (llvm::Error error = showOptions.parse())
    return fail(std::move(error), kMalformedOption);
  if (llvm::Error error = checkOptions())
    return fail(std::move(error), EXIT_FAILURE);
  auto backends = chooseBackends();
  if (!backends)
    return fail(backends.takeError(), EXIT_FAILURE);
  if (llvm::Error error = checkRegions(*backends))
    return fail(std::move(error), kMalformedOption);
  InputModule input(common.inputFile);
  mlir::ModuleOp module = input.get();
  if (!module)
    return EXIT_FAILURE;
  llvm::Expected<int> status = explainBackends
                                   ? runExplain(module, backends->front())
                                   : runVariants(module, *backends);
  if (!status)
    return fail(status.takeError(), EXIT_FAILURE);
  return *status;
}

/// Runs a command line for each line of the standard input.
static void runCommands(const char *tool) {
  std::unique_ptr<Device> device;
  for (std::string line; std::getline(std::cin, line);) {
    llvm::BumpPtrAllocator allocator;
    llvm::StringSaver saver(allocator);
    llvm::SmallVector<const char *> arguments = {tool};
    cl::TokenizeGNUCommandLine(line, saver, arguments);
    cl::ResetAllOptionOccurrences();
    const int status = runCommand(arguments);
    llvm::outs() << "attn-run: exit status " << status << '\n';
    llvm::outs().flush();
    if (device)
      continue;
    // Another owner of the context, so that the next command finds it.
    std::string target = common.target;
    if (auto created = createDevice(target))
      device = std::move(*created);
    else
      llvm::consumeError(created.takeError());
  }
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  cl::HideUnrelatedOptions(category);
  if (argc == 2 && llvm::StringRef(argv[1]) == "--commands") {
    runCommands(argv[0]);
    return EXIT_SUCCESS;
  }
  return runCommand(llvm::ArrayRef<const char *>(argv, argc));
}
