//===- Tuner.cpp - Compiles, checks and times schedules -------------------===//

#include "Tuner.h"
#include "../Support/LoadProgram.h"
#include "Candidates.h"
#include "attn/Runtime/Compare.h"
#include "attn/Runtime/Report.h"
#include <chrono>
#include <condition_variable>
#include <thread>

using namespace attn;
using mlir::attn::ScheduleAttr;

/// Forwards of the screening, which only has to find the finalists.
static constexpr int64_t kScreeningRepeat = 5;

/// A kernel that takes longer than this hangs.
static constexpr std::chrono::seconds kWatchdogLimit(60);

namespace {

/// Ends the process if what goes on while it lives takes too long: nothing
/// else stops a kernel that waits forever.
class Watchdog {
public:
  explicit Watchdog(std::string what)
      : thread([this, what = std::move(what)] { watch(what); }) {}
  ~Watchdog() {
    {
      std::lock_guard<std::mutex> lock(mutex);
      isDone = true;
    }
    done.notify_one();
    thread.join();
  }

private:
  void watch(const std::string &what) {
    std::unique_lock<std::mutex> lock(mutex);
    if (done.wait_for(lock, kWatchdogLimit, [&] { return isDone; }))
      return;
    llvm::errs() << "\nattn-tune: error: " << what << " has not finished in "
                 << kWatchdogLimit.count() << " s; it hangs\n";
    std::_Exit(EXIT_FAILURE);
  }

  std::mutex mutex;
  std::condition_variable done;
  bool isDone = false;
  std::thread thread;
};

} // namespace

static llvm::Expected<Tensor> copyTensor(const Tensor &tensor) {
  return Tensor::copyOf(
      tensor.getDType(), tensor.getShape(),
      llvm::StringRef(static_cast<const char *>(tensor.getData()),
                      tensor.getFootprintBytes()));
}

Spread Spread::of(std::vector<double> samples) {
  assert(!samples.empty() && "no samples");
  llvm::sort(samples);
  auto quantile = [&](double fraction) {
    const double position = fraction * (samples.size() - 1);
    const size_t below = static_cast<size_t>(position);
    const size_t above = std::min(below + 1, samples.size() - 1);
    return samples[below] +
           (position - below) * (samples[above] - samples[below]);
  };
  return {quantile(0.5), quantile(0.25), quantile(0.75),
          int64_t(samples.size())};
}

llvm::Expected<std::unique_ptr<Tuner>>
Tuner::create(mlir::attn::AttentionOp op, llvm::ArrayRef<Tensor> arguments,
              Device &device, const TuneOptions &options) {
  llvm::Expected<Verifier> verifier =
      Verifier::create(op->getParentOfType<mlir::func::FuncOp>(), arguments);
  if (!verifier)
    return verifier.takeError();
  return std::unique_ptr<Tuner>(
      new Tuner(op, arguments, device, options, std::move(*verifier)));
}

llvm::Error Tuner::load(ScheduleAttr schedule, Loaded &loaded) {
  op.setScheduleAttr(schedule);
  op.removeShortSchedulesAttr();
  CompileOptions compileOptions;
  compileOptions.target = options.target;
  compileOptions.entry = options.entry;
  auto program = loadProgram(op->getParentOfType<mlir::ModuleOp>(),
                             compileOptions, device);
  if (!program)
    return program.takeError();
  loaded.program = std::move(*program);
  return llvm::Error::success();
}

llvm::Error Tuner::runOnce(Invocation &invocation) {
  if (llvm::Error error = invocation.poisonOutputs())
    return error;
  if (llvm::Error error = invocation.run())
    return error;
  return invocation.downloadOutputs();
}

/// Against float64, in a sample of the rows if there are many.
llvm::Error Tuner::check(TuneResult &result) {
  VariantReport report;
  verifier.check(arguments, report);
  result.error = report.error;
  if (report.status != "ok")
    return llvm::createStringError(report.message);
  return llvm::Error::success();
}

/// In all rows, against the first candidate, whose own results set the
/// expectation.
llvm::Error Tuner::compareWithFirst(const Manifest &manifest) {
  std::vector<Tensor> outputs;
  for (auto [argument, tensor] : llvm::zip_equal(manifest.arguments, arguments))
    if (argument.isOutput)
      outputs.push_back(tensor);
  if (firstOutputs.empty()) {
    for (const Tensor &output : outputs) {
      llvm::Expected<Tensor> copy = copyTensor(output);
      if (!copy)
        return copy.takeError();
      firstOutputs.push_back(std::move(*copy));
    }
    return llvm::Error::success();
  }
  // That of the shortest of the inputs' types.
  double tolerance = 0;
  for (const Tensor &tensor : arguments)
    tolerance = std::max(tolerance, getTolerance(tensor.getDType()));
  for (auto [output, first] : llvm::zip_equal(outputs, firstOutputs)) {
    const double distance = compare(output, first).relative;
    if (!(distance <= tolerance))
      return llvm::createStringError(
          "its result differs from the first schedule's by %.2e", distance);
  }
  return llvm::Error::success();
}

llvm::Expected<std::vector<double>> Tuner::time(Invocation &invocation,
                                                int64_t repeat) {
  ProfileOptions profileOptions;
  profileOptions.repeat = repeat;
  profileOptions.warmup = 1;
  // As kernels are compared elsewhere: on the same arguments each time.
  profileOptions.rotateArguments = false;
  llvm::Expected<Profile> profile = invocation.profile(profileOptions);
  if (!profile)
    return profile.takeError();
  return std::move(profile->totalSamples);
}

/// To the kernels of the schedule, or not at all.
llvm::Error Tuner::bind(Loaded &loaded) {
  auto invocation = loaded.program->getExecutable().bind(arguments);
  if (!invocation)
    return invocation.takeError();
  loaded.invocation = std::move(*invocation);
  return llvm::Error::success();
}

/// Of the kernel that computes the attention.
static std::optional<KernelResources>
getResources(const Invocation &invocation) {
  for (const TimedStep &step : invocation.getSteps())
    if (step.kind == Step::Kind::Launch && !step.isPrepass)
      return invocation.getExecutable().getKernel(step.kernel).getResources();
  return std::nullopt;
}

llvm::Error Tuner::screen(TuneResult &result, Loaded &loaded) {
  if (llvm::Error error = load(result.schedule, loaded))
    return error;
  if (llvm::Error error = bind(loaded))
    return error;
  result.resources = getResources(*loaded.invocation);
  Watchdog watchdog("'" + describe(result.schedule) + "'");
  if (llvm::Error error = runOnce(*loaded.invocation))
    return error;
  if (llvm::Error error = check(result))
    return error;
  if (llvm::Error error =
          compareWithFirst(loaded.program->getExecutable().getManifest()))
    return error;
  llvm::Expected<std::vector<double>> samples =
      time(*loaded.invocation, kScreeningRepeat);
  if (!samples)
    return samples.takeError();
  result.screening = Spread::of(std::move(*samples));
  // Many candidates would not fit in the device's memory together.
  loaded.invocation.reset();
  return llvm::Error::success();
}

llvm::Error Tuner::timeFinalists(llvm::ArrayRef<TuneResult *> results,
                                 llvm::ArrayRef<Loaded *> loaded) {
  for (Loaded *candidate : loaded)
    if (llvm::Error error = bind(*candidate))
      return error;
  std::vector<std::vector<double>> samples(results.size());
  std::vector<std::vector<int64_t>> clocks(results.size());
  // A round to heat the device comes first and doesn't count.
  for (int64_t round = -1; round < options.rounds; ++round) {
    progress("round " + llvm::Twine(round + 1) + " of " +
             llvm::Twine(options.rounds));
    for (size_t i = 0; i < results.size(); ++i) {
      // No candidate always follows the same other.
      const size_t turn = (i + round + 1) % results.size();
      Watchdog watchdog("'" + describe(results[turn]->schedule) + "'");
      auto times = time(*loaded[turn]->invocation, options.repeat);
      if (!times)
        return times.takeError();
      if (round < 0)
        continue;
      llvm::append_range(samples[turn], *times);
      if (std::optional<int64_t> clock = device.getClockMHz())
        clocks[turn].push_back(*clock);
    }
  }
  for (auto [result, times, speeds] :
       llvm::zip_equal(results, samples, clocks)) {
    result->time = Spread::of(std::move(times));
    llvm::sort(speeds);
    if (!speeds.empty())
      result->clockMHz = speeds[speeds.size() / 2];
  }
  return llvm::Error::success();
}

llvm::Expected<std::vector<TuneResult>>
Tuner::tune(llvm::ArrayRef<ScheduleAttr> candidates) {
  std::vector<TuneResult> results(candidates.size());
  std::vector<Loaded> loaded(candidates.size());
  for (auto [index, schedule] : llvm::enumerate(candidates)) {
    progress("candidate " + llvm::Twine(index + 1) + " of " +
             llvm::Twine(candidates.size()) + ": " + describe(schedule));
    TuneResult &result = results[index];
    result.schedule = schedule;
    llvm::Error error = screen(result, loaded[index]);
    if (!error)
      continue;
    // A kernel that faults leaves a device that runs nothing more.
    llvm::Error deviceError = device.synchronize();
    if (index == 0 || deviceError) {
      llvm::consumeError(std::move(deviceError));
      return llvm::createStringError("'" + describe(schedule) +
                                     "': " + llvm::toString(std::move(error)));
    }
    result.refusal = llvm::toString(std::move(error));
    loaded[index] = {};
  }

  std::vector<size_t> order;
  for (size_t i = 1; i < results.size(); ++i)
    if (results[i].refusal.empty())
      order.push_back(i);
  llvm::sort(order, [&](size_t a, size_t b) {
    return results[a].screening->median < results[b].screening->median;
  });
  // The first candidate is always one of the finalists.
  order.insert(order.begin(), 0);
  order.resize(std::min<size_t>(order.size(), options.finalists));
  std::vector<TuneResult *> finalists;
  std::vector<Loaded *> loadedFinalists;
  for (size_t i : order) {
    finalists.push_back(&results[i]);
    loadedFinalists.push_back(&loaded[i]);
  }
  if (llvm::Error error = timeFinalists(finalists, loadedFinalists))
    return std::move(error);
  return results;
}
