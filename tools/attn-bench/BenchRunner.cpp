//===- BenchRunner.cpp - Times backends against each other ----------------===//

#include "BenchRunner.h"
#include "../Support/Arguments.h"
#include "../Support/LoadProgram.h"
#include "../Support/Verifier.h"
#include "attn/Runtime/EventTimer.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"
#include <chrono>
#include <cmath>

using namespace attn;

/// A turn takes at least this long, so that its ends don't matter.
static constexpr double kTurnUs = 5000;

/// Forwards of a turn, of kernels however short.
static constexpr int64_t kMaxForwards = 200;

/// A GPU's clock settles under load.
static constexpr std::chrono::milliseconds kHeatTime(250);

static mlir::DialectRegistry getDialects() {
  mlir::DialectRegistry registry;
  mlir::attn::registerAttncDialects(registry);
  return registry;
}

BenchRunner::BenchRunner(Device &device, const BenchOptions &options)
    : device(device), options(options),
      context(getDialects(), mlir::MLIRContext::Threading::DISABLED) {}

//===----------------------------------------------------------------------===//
// Contestants
//===----------------------------------------------------------------------===//

/// A backend with its kernels loaded and its arguments in place.
struct BenchRunner::Contestant {
  Backend backend;
  BenchResult result;
  std::unique_ptr<LoadedProgram> program;
  std::unique_ptr<Invocation> invocation;
  /// In a turn.
  int64_t numForwards = 1;
  /// After each turn, in MHz.
  std::vector<double> clocks;

  /// Whether it takes part.
  bool runs() const { return result.refusal.empty(); }
  llvm::Error load(mlir::ModuleOp module, const BenchOptions &options,
                   Device &device);
  llvm::Error start(llvm::ArrayRef<Tensor> arguments, const Verifier *verifier,
                    const BenchOptions &options);
  void describe();
  /// Microseconds of one of several forwards in a row.
  llvm::Expected<double> time(int64_t count);
};

llvm::Error BenchRunner::Contestant::load(mlir::ModuleOp module,
                                          const BenchOptions &options,
                                          Device &device) {
  CompileOptions compileOptions;
  compileOptions.usesCudnn = backend == Backend::Cudnn;
  compileOptions.variant =
      getVariant(backend).value_or(mlir::attn::Variant::Fused);
  compileOptions.target = options.target;
  auto loaded = loadProgram(module, compileOptions, device);
  if (!loaded)
    return loaded.takeError();
  program = std::move(*loaded);
  return llvm::Error::success();
}

/// What its steps add up to.
void BenchRunner::Contestant::describe() {
  result.kernelTarget = invocation->getExecutable().getManifest().kernelTarget;
  result.bytes = result.flops = 0;
  auto add = [](std::optional<int64_t> &sum, std::optional<int64_t> value) {
    sum = sum && value ? std::optional(*sum + *value) : std::nullopt;
  };
  for (const TimedStep &step : invocation->getSteps()) {
    result.kernels += step.kind == Step::Kind::Launch;
    add(result.bytes, step.bytes);
    // A copy computes nothing.
    if (step.kind == Step::Kind::Launch)
      add(result.flops, step.flops);
  }
}

/// Binds the arguments, runs a first forward, and looks at its results.
llvm::Error BenchRunner::Contestant::start(llvm::ArrayRef<Tensor> arguments,
                                           const Verifier *verifier,
                                           const BenchOptions &options) {
  auto bound = program->bind(arguments);
  if (!bound)
    return bound.takeError();
  invocation = std::move(*bound);
  describe();
  if (llvm::Error error = invocation->poisonOutputs())
    return error;
  if (llvm::Error error = invocation->run())
    return error;
  if (verifier) {
    if (llvm::Error error = invocation->downloadOutputs())
      return error;
    VariantReport report;
    verifier->check(arguments, report);
    result.error = report.error;
    if (report.status != "ok")
      return llvm::createStringError(report.message);
  }
  ProfileOptions profileOptions;
  profileOptions.repeat = kMaxForwards;
  profileOptions.rotateArguments = !options.isWarm;
  return invocation->warmUp(profileOptions);
}

llvm::Expected<double> BenchRunner::Contestant::time(int64_t count) {
  llvm::Expected<double> elapsed =
      timeByEvents(invocation->getExecutable().getDevice(),
                   [&] { return invocation->enqueueForwards(count); });
  if (!elapsed)
    return elapsed.takeError();
  return *elapsed / count;
}

//===----------------------------------------------------------------------===//
// Cases
//===----------------------------------------------------------------------===//

llvm::Error
BenchRunner::prepare(const GridCase &gridCase, mlir::ModuleOp module,
                     std::vector<Contestant> &contestants,
                     llvm::function_ref<void(llvm::StringRef)> show) {
  std::vector<Tensor> arguments;
  std::optional<Verifier> verifier;
  auto makeInputs = [&](const Manifest &manifest) -> llvm::Error {
    ArgumentSources sources;
    sources.shapes = gridCase.getInputShapes();
    auto made = makeArguments(manifest, sources);
    if (!made)
      return made.takeError();
    if (options.isVerified) {
      show("computing the float64 reference");
      auto created = Verifier::create(
          module.lookupSymbol<mlir::func::FuncOp>(manifest.entry), *made);
      if (!created)
        return created.takeError();
      verifier = std::move(*created);
    }
    arguments = std::move(*made);
    return llvm::Error::success();
  };
  for (Contestant &contestant : contestants) {
    show("compiling " + contestant.result.backend);
    llvm::Error refusal = contestant.load(module, options, device);
    if (!refusal && arguments.empty())
      refusal = makeInputs(contestant.program->getExecutable().getManifest());
    if (!refusal)
      refusal =
          contestant.start(arguments, verifier ? &*verifier : nullptr, options);
    if (!refusal)
      continue;
    contestant.result.refusal = llvm::toString(std::move(refusal));
    contestant.invocation.reset();
    // A kernel that faults leaves a device that runs nothing more.
    if (llvm::Error error = device.synchronize())
      return llvm::joinErrors(
          llvm::createStringError(contestant.result.backend + ": " +
                                  contestant.result.refusal),
          std::move(error));
  }
  return llvm::Error::success();
}

llvm::Error
BenchRunner::timeInTurns(llvm::MutableArrayRef<Contestant> contestants,
                         llvm::function_ref<void(llvm::StringRef)> show) {
  llvm::SmallVector<Contestant *> running;
  for (Contestant &contestant : contestants)
    if (contestant.runs())
      running.push_back(&contestant);
  for (Contestant *contestant : running) {
    llvm::Expected<double> us = contestant->time(1);
    if (!us)
      return us.takeError();
    contestant->numForwards = std::clamp<int64_t>(
        static_cast<int64_t>(kTurnUs / std::max(*us, 1e-3)), 1, kMaxForwards);
  }
  const auto start = std::chrono::steady_clock::now();
  const bool needsHeat = device.isGPU();
  // The round before the first one doesn't count.
  for (int64_t round = -1; round < options.rounds; ++round) {
    show("round " + std::to_string(std::max<int64_t>(round + 1, 0)) + " of " +
         std::to_string(options.rounds));
    for (size_t i = 0; i < running.size(); ++i) {
      // None always follows the same other.
      Contestant &contestant = *running[(i + round + 1) % running.size()];
      llvm::Expected<double> us = contestant.time(contestant.numForwards);
      if (!us)
        return us.takeError();
      if (round < 0)
        continue;
      contestant.result.samplesUs.push_back(*us);
      if (std::optional<int64_t> clock = device.getClockMHz())
        contestant.clocks.push_back(*clock);
    }
    if (round < 0 && needsHeat && !running.empty() &&
        std::chrono::steady_clock::now() - start < kHeatTime)
      --round;
  }
  for (Contestant *contestant : running)
    if (!contestant->clocks.empty())
      contestant->result.clockMHz =
          std::llround(Distribution::of(std::move(contestant->clocks)).median);
  return llvm::Error::success();
}

llvm::Expected<BenchCase>
BenchRunner::run(const GridCase &gridCase,
                 llvm::function_ref<void(llvm::StringRef)> show) {
  llvm::Expected<std::string> text = gridCase.spec.print();
  if (!text)
    return text.takeError();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(*text, &context);
  std::vector<Contestant> contestants(options.backends.size());
  for (auto [contestant, backend] :
       llvm::zip_equal(contestants, options.backends)) {
    contestant.backend = backend;
    contestant.result.backend = stringifyBackend(backend).str();
  }
  if (llvm::Error error = prepare(gridCase, *module, contestants, show))
    return std::move(error);
  if (llvm::Error error = timeInTurns(contestants, show))
    return std::move(error);
  BenchCase result = {gridCase.shape, gridCase.dtype, gridCase.mod, {}};
  for (Contestant &contestant : contestants)
    result.results.push_back(std::move(contestant.result));
  return result;
}
