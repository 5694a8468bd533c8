//===- attn-bench.cpp - Times backends on a grid of attentions ------------===//

#include "../Support/DeviceChoice.h"
#include "../Support/ShellQuoting.h"
#include "BenchDiff.h"
#include "BenchReport.h"
#include "BenchRunner.h"
#include "attn/Compiler/Version.h"
#include "attn/Profile/Findings.h"
#include "attn/Profile/Html.h"
#include "attn/Runtime/WholeFile.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/WithColor.h"
#include <chrono>

namespace cl = llvm::cl;
using namespace attn;

/// What --diff exits with if something is slower.
static constexpr int kRegression = 3;

static cl::OptionCategory category("attn-bench options");

static cl::list<std::string>
    shapes("shapes", cl::CommaSeparated,
           cl::desc("Batch, heads, length and head dimension, each but the "
                    "first perhaps with another number for the keys or values: "
                    "8x16x1024x64, 8x32:8x1:4096x128"),
           cl::value_desc("SHAPE,..."), cl::cat(category));
static cl::list<std::string>
    dtypes("dtypes", cl::CommaSeparated,
           cl::desc("Of q, k and v: f16, bf16, f32, f8E4M3FN, f8E5M2 (default "
                    "bf16)"),
           cl::value_desc("DTYPE,..."), cl::cat(category));
static cl::list<std::string>
    mods("mods", cl::CommaSeparated,
         cl::desc("Rules for masks and scores, several with + between them: "
                  "none, causal, causal-top-left, window=LEFT[:RIGHT], "
                  "prefix=LENGTH, dilated=RADIUS:STEP, alibi, softcap=CAP "
                  "(default none)"),
         cl::value_desc("MOD,..."), cl::cat(category));
static cl::list<std::string>
    backends("backends", cl::CommaSeparated,
             cl::desc("What is compared: naive, inplace, math, fused, cudnn "
                      "(docs/Backends.md; default all, on a CPU without "
                      "cudnn)"),
             cl::value_desc("BACKEND,..."), cl::cat(category));
static cl::opt<std::string>
    baseline("baseline",
             cl::desc("The backend that the others' times are divided by "
                      "(default: the first)"),
             cl::value_desc("BACKEND"), cl::cat(category));
static cl::opt<std::string>
    target("target",
           cl::desc("cpu, sm_80, sm_90a, or native: the GPU if there is one, "
                    "else the CPU (default native)"),
           cl::init("native"), cl::cat(category));
static cl::opt<int64_t>
    rounds("rounds",
           cl::desc("In each, every backend has one turn (default 20)"),
           cl::init(20), cl::cat(category));
static cl::opt<bool>
    warm("warm",
         cl::desc("Time with the same copy of the arguments each time, so that "
                  "they may be found in the cache"),
         cl::cat(category));
static cl::opt<bool> verify(
    "verify",
    cl::desc("Compare with a float64 reference; a wrong result is not timed"),
    cl::cat(category));
static cl::opt<std::string> jsonFile(
    "json",
    cl::desc("Where to write the results, after each case; what is there "
             "already is not measured again, so that a run that was "
             "interrupted, or whose grid grew, goes on"),
    cl::value_desc("FILE"), cl::cat(category));
static cl::opt<std::string>
    markdownFile("markdown", cl::desc("Where to write the table as Markdown"),
                 cl::value_desc("FILE.md"), cl::cat(category));
static cl::opt<std::string>
    htmlFile("html", cl::desc("Where to write a page with charts, in one file"),
             cl::value_desc("FILE.html"), cl::cat(category));
static cl::opt<bool>
    diff("diff",
         cl::desc("Compare two files that --json wrote, BEFORE and AFTER; "
                  "exits with 3 if something is slower"),
         cl::cat(category));
static cl::opt<double>
    tolerance("tolerance",
              cl::desc("With --diff: changes up to so many percent are none "
                       "(default 3)"),
              cl::init(3), cl::value_desc("PERCENT"), cl::cat(category));
static cl::list<std::string> files(cl::Positional,
                                   cl::desc("[BEFORE.json AFTER.json]"),
                                   cl::cat(category));

/// For whom reads a file.
static std::string commandLine;

//===----------------------------------------------------------------------===//
// Progress
//===----------------------------------------------------------------------===//

namespace {

/// A bar on a line of the terminal that goes away; elsewhere a line a case.
class Progress {
public:
  explicit Progress(size_t total) : total(total) {}
  ~Progress() { clear(); }

  void begin(const std::string &name);
  /// What is being done of the case.
  void show(llvm::StringRef text);
  void end();

private:
  void clear();
  std::string getTimeLeft() const;

  const bool isTerminal = llvm::errs().is_displayed();
  const size_t total;
  size_t done = 0;
  std::string name;
  const std::chrono::steady_clock::time_point start =
      std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point lastEnd = start;
};

} // namespace

void Progress::clear() {
  if (isTerminal)
    llvm::errs() << "\r\033[K";
}

/// As if all cases took the mean of those so far.
std::string Progress::getTimeLeft() const {
  if (done == 0)
    return "";
  using Microseconds = std::chrono::duration<double, std::micro>;
  const double each = Microseconds(lastEnd - start).count() / done;
  const double sinceThen =
      Microseconds(std::chrono::steady_clock::now() - lastEnd).count();
  return ", " +
         formatDuration(std::max(each * (total - done) - sinceThen, 0.0)) +
         " left";
}

void Progress::begin(const std::string &newName) {
  name = newName;
  if (!isTerminal)
    llvm::errs() << "attn-bench: case " << done + 1 << " of " << total
                 << getTimeLeft() << ": " << name << '\n';
}

void Progress::show(llvm::StringRef text) {
  if (!isTerminal)
    return;
  constexpr size_t kWidth = 24;
  const size_t filled = total == 0 ? kWidth : done * kWidth / total;
  std::string line = "[" + std::string(filled, '#') +
                     std::string(kWidth - filled, '.') + "] " +
                     std::to_string(done) + " of " + std::to_string(total) +
                     getTimeLeft() + "; " + name + ": " + text.str();
  // What wraps can't be cleared.
  if (const unsigned columns = llvm::sys::Process::StandardErrColumns())
    line.resize(std::min<size_t>(line.size(), columns - 1));
  clear();
  llvm::errs() << line;
}

void Progress::end() {
  ++done;
  lastEnd = std::chrono::steady_clock::now();
}

//===----------------------------------------------------------------------===//
// Measuring
//===----------------------------------------------------------------------===//

static llvm::Error checkOptions() {
  if (shapes.empty())
    return llvm::createStringError(
        "needs --shapes, such as --shapes=8x16x1024x64, or --diff");
  if (!files.empty())
    return llvm::createStringError("'" + files.front() +
                                   "': files are for --diff");
  if (rounds < 1)
    return llvm::createStringError("--rounds needs a positive number");
  if (htmlFile.empty())
    return llvm::Error::success();
  if (llvm::Error error = checkCanWriteHtml())
    return llvm::createStringError("--html: " +
                                   llvm::toString(std::move(error)));
  return llvm::Error::success();
}

static void setDefaults() {
  if (dtypes.empty())
    dtypes.push_back("bf16");
  if (mods.empty())
    mods.push_back("none");
}

/// Those that are named, or all that there can be on `device`.
static llvm::Expected<std::vector<Backend>>
chooseBackends(const Device &device) {
  std::vector<Backend> chosen;
  for (const std::string &name : backends) {
    llvm::Expected<Backend> backend = parseBackend(name);
    if (!backend)
      return backend.takeError();
    if (*backend == Backend::Auto)
      return llvm::createStringError(
          "--backends: 'auto' is one of the others; name it");
    if (llvm::is_contained(chosen, *backend))
      return llvm::createStringError("--backends: '" + name +
                                     "' is there twice");
    chosen.push_back(*backend);
  }
  if (chosen.empty())
    llvm::copy_if(getAllBackends(), std::back_inserter(chosen),
                  [&](Backend backend) {
                    return backend != Backend::Cudnn || device.isGPU();
                  });
  return chosen;
}

/// The first backend, unless one is given.
static llvm::Error setBaseline(BenchFile &file) {
  file.baseline =
      baseline.empty() ? file.backends.front() : std::string(baseline);
  if (llvm::is_contained(file.backends, file.baseline))
    return llvm::Error::success();
  return llvm::createStringError("--baseline: '" + baseline +
                                 "' is not one of the backends");
}

/// The head of a new file.
static BenchFile makeFile(const Device &device, llvm::StringRef realTarget,
                          llvm::ArrayRef<Backend> chosen) {
  BenchFile file;
  file.command = commandLine;
  file.date = llvm::formatv("{0:%Y-%m-%d}", std::chrono::system_clock::now());
  file.device = device.getName();
  file.target = realTarget.str();
  file.versions["compiler"] = getSourceHash().take_front(16).str();
  if (std::string driver = device.getDriverVersion(); !driver.empty())
    file.versions["driver for CUDA"] = driver;
  file.rounds = rounds;
  file.isWarm = warm;
  file.isVerified = verify;
  for (Backend backend : chosen)
    file.backends.push_back(stringifyBackend(backend).str());
  return file;
}

/// Results that were measured in another way must not stand side by side.
static llvm::Error checkSame(const BenchFile &old, const BenchFile &file) {
  auto refuse = [](const llvm::Twine &what) {
    return llvm::createStringError(
        "'" + jsonFile + "' is of " + what +
        "; give another file, or remove it to measure all again");
  };
  if (old.device != file.device || old.target != file.target)
    return refuse("another device or target: " + old.device + ", " +
                  old.target);
  if (old.versions != file.versions)
    return refuse("another build of the compiler, or another driver");
  if (old.rounds != file.rounds || old.isWarm != file.isWarm ||
      old.isVerified != file.isVerified)
    return refuse("another --rounds, --warm or --verify");
  return llvm::Error::success();
}

/// Takes over what an earlier run measured, in whatever order.
static llvm::Error resume(BenchFile &file) {
  if (jsonFile.empty() || !llvm::sys::fs::is_regular_file(jsonFile))
    return llvm::Error::success();
  llvm::Expected<BenchFile> old = readBenchFile(jsonFile);
  if (!old)
    return old.takeError();
  if (llvm::Error error = checkSame(*old, file))
    return error;
  file.cases = std::move(old->cases);
  return llvm::Error::success();
}

/// Whether all backends of this run took part in a case.
static bool isComplete(const BenchCase &benchCase, const BenchFile &file) {
  return llvm::all_of(file.backends, [&](const std::string &backend) {
    return benchCase.find(backend);
  });
}

static void put(BenchFile &file, BenchCase benchCase) {
  for (BenchCase &old : file.cases)
    if (old.getName() == benchCase.getName()) {
      old = std::move(benchCase);
      return;
    }
  file.cases.push_back(std::move(benchCase));
}

static llvm::Error write(const BenchFile &file) {
  if (jsonFile.empty())
    return llvm::Error::success();
  return writeWholeFile(
      jsonFile, [&](llvm::raw_ostream &os) { writeBenchFile(os, file); });
}

/// Measures what isn't in the file yet.
static llvm::Error measure(llvm::ArrayRef<GridCase> grid,
                           llvm::ArrayRef<Backend> chosen, Device &device,
                           BenchFile &file) {
  const BenchOptions options = {file.target, chosen.vec(), file.rounds,
                                file.isWarm, file.isVerified};
  BenchRunner runner(device, options);
  std::vector<const GridCase *> missing;
  for (const GridCase &gridCase : grid) {
    const BenchCase *old = file.find(gridCase.getName());
    if (!old || !isComplete(*old, file))
      missing.push_back(&gridCase);
  }
  Progress progress(missing.size());
  for (const GridCase *gridCase : missing) {
    progress.begin(gridCase->getName());
    llvm::Expected<BenchCase> result = runner.run(
        *gridCase, [&](llvm::StringRef text) { progress.show(text); });
    if (!result)
      return llvm::createStringError(gridCase->getName() + ": " +
                                     llvm::toString(result.takeError()));
    put(file, std::move(*result));
    if (llvm::Error error = write(file))
      return error;
    progress.end();
  }
  return llvm::Error::success();
}

static llvm::Error writeReports(const BenchFile &file) {
  printTable(llvm::outs(), file);
  // Also where all was measured before: the baseline may be another.
  if (llvm::Error error = write(file))
    return error;
  if (!markdownFile.empty())
    if (llvm::Error error =
            writeWholeFile(markdownFile, [&](llvm::raw_ostream &os) {
              writeMarkdown(os, file);
            }))
      return error;
  if (htmlFile.empty())
    return llvm::Error::success();
  return writeWholeFile(htmlFile,
                        [&](llvm::raw_ostream &os) { writeHtml(os, file); });
}

/// Before anything is measured, which may take hours.
static llvm::Error checkFolders() {
  for (llvm::StringRef file :
       {jsonFile.getValue(), markdownFile.getValue(), htmlFile.getValue()}) {
    if (file.empty())
      continue;
    llvm::StringRef folder = llvm::sys::path::parent_path(file);
    if (std::error_code error = llvm::sys::fs::access(
            folder.empty() ? "." : folder, llvm::sys::fs::AccessMode::Write))
      return llvm::createFileError(file, error);
  }
  return llvm::Error::success();
}

static bool isMeasured(const BenchCase &benchCase) {
  return llvm::any_of(benchCase.results, [](const BenchResult &result) {
    return !result.samplesUs.empty();
  });
}

static llvm::Error runGrid() {
  setDefaults();
  if (llvm::Error error = checkOptions())
    return error;
  if (llvm::Error error = checkFolders())
    return error;
  llvm::Expected<std::vector<GridCase>> grid = makeGrid({shapes, dtypes, mods});
  if (!grid)
    return grid.takeError();
  std::string realTarget = target;
  llvm::Expected<std::unique_ptr<Device>> device = createDevice(realTarget);
  if (!device)
    return device.takeError();
  auto chosen = chooseBackends(**device);
  if (!chosen)
    return chosen.takeError();
  BenchFile file = makeFile(**device, realTarget, *chosen);
  if (llvm::Error error = setBaseline(file))
    return error;
  if (llvm::Error error = resume(file))
    return error;
  llvm::Error error = measure(*grid, *chosen, **device, file);
  // Also of what was measured before an error.
  if (!file.cases.empty())
    error = llvm::joinErrors(std::move(error), writeReports(file));
  if (!error && llvm::none_of(file.cases, isMeasured))
    return llvm::createStringError(
        "nothing was measured: every backend refuses every case, as the table "
        "says");
  return error;
}

//===----------------------------------------------------------------------===//
// Main
//===----------------------------------------------------------------------===//

/// Returns whether nothing is slower.
static llvm::Expected<bool> runDiff() {
  if (files.size() != 2)
    return llvm::createStringError("--diff needs two files: BEFORE.json "
                                   "AFTER.json");
  if (tolerance < 0)
    return llvm::createStringError("--tolerance needs a nonnegative number");
  llvm::Expected<BenchFile> before = readBenchFile(files[0]);
  if (!before)
    return before.takeError();
  llvm::Expected<BenchFile> after = readBenchFile(files[1]);
  if (!after)
    return after.takeError();
  return printDiff(llvm::outs(), *before, *after, tolerance / 100);
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(
      argc, argv,
      "Times backends against each other on a grid of shapes, dtypes and "
      "rules\n");
  commandLine = joinForShell(llvm::ArrayRef<const char *>(argv, argc));
  auto fail = [](llvm::Error error) {
    llvm::WithColor::error(llvm::errs(), "attn-bench")
        << llvm::toString(std::move(error)) << '\n';
    return EXIT_FAILURE;
  };
  if (diff) {
    llvm::Expected<bool> isFine = runDiff();
    if (!isFine)
      return fail(isFine.takeError());
    return *isFine ? EXIT_SUCCESS : kRegression;
  }
  if (llvm::Error error = runGrid())
    return fail(std::move(error));
  return EXIT_SUCCESS;
}
