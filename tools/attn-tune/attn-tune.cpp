//===- attn-tune.cpp - Searches for a faster schedule ---------------------===//

#include "../Support/CommonOptions.h"
#include "../Support/DeviceChoice.h"
#include "../Support/InputModule.h"
#include "Candidates.h"
#include "TuneReport.h"
#include "attn/Dialect/Attn/IR/AttnSupport.h"
#include "attn/Runtime/WholeFile.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/WithColor.h"

namespace cl = llvm::cl;
using namespace attn;
using mlir::attn::AttentionOp;
using mlir::attn::DecodeRow;
using mlir::attn::ScheduleAttr;
using mlir::attn::ScheduleRow;
using mlir::attn::TargetInfo;

static cl::OptionCategory category("attn-tune options");

static CommonOptions common(category);
static cl::opt<std::string>
    entryName("entry", cl::desc("Function to tune, if there are several"),
              cl::cat(category));
static cl::opt<unsigned> distance(
    "distance",
    cl::desc("In how many parameters a candidate may differ from the table's "
             "schedule, or from the operator's own (default 1)"),
    cl::init(1), cl::cat(category));
static cl::opt<int64_t>
    finalists("finalists",
              cl::desc("Candidates that are timed in turns after a short look "
                       "at all (default 6)"),
              cl::init(6), cl::cat(category));
static cl::opt<int64_t> rounds("rounds",
                               cl::desc("Turns of each finalist (default 10)"),
                               cl::init(10), cl::cat(category));
static cl::opt<int64_t> repeat("repeat",
                               cl::desc("Timed forwards a turn (default 10)"),
                               cl::init(10), cl::cat(category));
static cl::opt<bool>
    dryRun("dry-run",
           cl::desc("Only list the candidates; needs no device and no sizes"),
           cl::cat(category));
static cl::opt<std::string> jsonFile("json",
                                     cl::desc("Where to write the results"),
                                     cl::value_desc("FILE"), cl::cat(category));

/// The one attn.attention of the entry.
static llvm::Expected<AttentionOp> findAttention(mlir::ModuleOp module) {
  llvm::SmallVector<AttentionOp> ops;
  for (auto func : module.getOps<mlir::func::FuncOp>())
    if (entryName.empty() || func.getName() == entryName)
      func.walk([&](AttentionOp op) { ops.push_back(op); });
  if (ops.size() == 1)
    return ops.front();
  return llvm::createStringError(
      "needs a function with one attn.attention, there are " +
      llvm::Twine(ops.size()) + "; choose a function with --entry");
}

/// The row for sequences of `qLen` queries.
static llvm::Expected<ScheduleRow>
findRow(AttentionOp op, const TargetInfo &target, int64_t qLen) {
  for (const ScheduleRow *row : mlir::attn::lookupRows(op, target))
    if (qLen <= row->maxQLen)
      return *row;
  return llvm::createStringError("the schedule table has no row for the "
                                 "operator on " +
                                 target.name);
}

/// The schedule that an operator without one gets for `qLen` queries; `row`
/// is for those that aren't few.
static ScheduleAttr getTableSchedule(AttentionOp op, const TargetInfo &target,
                                     const ScheduleRow &row, int64_t qLen) {
  for (const DecodeRow *few : mlir::attn::lookupDecodeRows(op, target))
    if (qLen <= few->getMaxQLen(op))
      return few->getSchedule(op);
  return row.getSchedule(op);
}

namespace {

/// One run of the tool on one operator.
class TuneTool {
public:
  TuneTool(AttentionOp op, const TargetInfo &target, Device *device)
      : op(op), target(target), device(device) {}

  llvm::Error listCandidates();
  llvm::Error tune();

private:
  /// The schedules to try; the one to beat comes first.
  llvm::Expected<llvm::SmallVector<ScheduleAttr>>
  chooseCandidates(const ScheduleRow &row, int64_t qLen);
  /// The arguments' tensors, and the report's head.
  llvm::Error prepare();
  int64_t getQueryLength() const;

  AttentionOp op;
  const TargetInfo &target;
  Device *device;
  std::vector<Tensor> arguments;
  TuneReport report;
};

} // namespace

static void showProgress(const llvm::Twine &text) {
  if (llvm::errs().is_displayed())
    llvm::errs() << "\r\033[Kattn-tune: " << text;
}

llvm::Expected<llvm::SmallVector<ScheduleAttr>>
TuneTool::chooseCandidates(const ScheduleRow &row, int64_t qLen) {
  ScheduleAttr base = op.getScheduleAttr();
  if (!base)
    base = getTableSchedule(op, target, row, qLen);
  if (mlir::failed(mlir::attn::verifySchedule(op, base, target)))
    return llvm::createStringError("can't use the operator's schedule");
  return getCandidates(op, target, base, distance);
}

llvm::Error TuneTool::listCandidates() {
  const int64_t qLen =
      llvm::cast<mlir::ShapedType>(op.getQ().getType()).getDimSize(2);
  const int64_t longest =
      mlir::ShapedType::isDynamic(qLen) ? mlir::attn::kAnyLength : qLen;
  llvm::Expected<ScheduleRow> row = findRow(op, target, longest);
  if (!row)
    return row.takeError();
  auto candidates = chooseCandidates(*row, longest);
  if (!candidates)
    return candidates.takeError();
  for (ScheduleAttr schedule : *candidates)
    llvm::outs() << schedule << '\n';
  return llvm::Error::success();
}

llvm::Error TuneTool::prepare() {
  CompileOptions options;
  options.target = target.name.str();
  options.entry = op->getParentOfType<mlir::func::FuncOp>().getName().str();
  llvm::Expected<CompiledProgram> program =
      compile(op->getParentOfType<mlir::ModuleOp>(), options);
  if (!program)
    return program.takeError();
  llvm::Expected<Manifest> manifest = Manifest::parse(program->manifest);
  if (!manifest)
    return manifest.takeError();
  auto made = makeArguments(*manifest, common.getSources(/*seed=*/0));
  if (!made)
    return made.takeError();
  arguments = std::move(*made);
  report.device = device->getName();
  report.attncVersion = manifest->attncVersion;
  for (auto [argument, tensor] :
       llvm::zip_equal(manifest->arguments, arguments))
    if (!argument.isOutput)
      report.inputs.push_back(argument.name + " " + tensor.getTypeString());
  return llvm::Error::success();
}

/// Of an operator on the entry's own arguments, as the tuner checks.
int64_t TuneTool::getQueryLength() const {
  AttentionOp attention = op;
  auto q = llvm::cast<mlir::BlockArgument>(attention.getQ());
  return arguments[q.getArgNumber()].getShape()[2];
}

llvm::Error TuneTool::tune() {
  if (llvm::Error error = prepare())
    return error;
  TuneOptions options;
  options.entry = op->getParentOfType<mlir::func::FuncOp>().getName().str();
  options.target = target.name.str();
  options.finalists = finalists;
  options.rounds = rounds;
  options.repeat = repeat;
  showProgress("computing the float64 reference");
  auto tuner = Tuner::create(op, arguments, *device, options);
  if (!tuner)
    return tuner.takeError();
  llvm::Expected<ScheduleRow> row = findRow(op, target, getQueryLength());
  if (!row)
    return row.takeError();
  report.row = *row;
  // What is measured is this head dimension and kind of mask.
  report.row.maxHeadDim = std::max(op.getQKHeadDim(), op.getVHeadDim());
  report.row.mask = mlir::attn::getMaskKind(op);
  report.row.captures = mlir::attn::getCaptureKind(op);
  auto candidates = chooseCandidates(*row, getQueryLength());
  if (!candidates)
    return candidates.takeError();
  (*tuner)->progress = showProgress;
  auto results = (*tuner)->tune(*candidates);
  if (llvm::errs().is_displayed())
    llvm::errs() << "\r\033[K";
  if (!results)
    return results.takeError();
  report.results = std::move(*results);
  printReport(llvm::outs(), report);
  if (jsonFile.empty())
    return llvm::Error::success();
  return writeWholeFile(jsonFile,
                        [&](llvm::raw_ostream &os) { writeJSON(os, report); });
}

static llvm::Error checkOptions() {
  if (finalists < 1 || rounds < 1 || repeat < 1)
    return llvm::createStringError(
        "--finalists, --rounds and --repeat need positive numbers");
  return llvm::Error::success();
}

static llvm::Error run(mlir::ModuleOp module) {
  if (llvm::Error error = checkOptions())
    return error;
  llvm::Expected<AttentionOp> op = findAttention(module);
  if (!op)
    return op.takeError();
  std::string name = common.target;
  std::unique_ptr<Device> device;
  if (!dryRun || name == "native") {
    llvm::Expected<std::unique_ptr<Device>> created = createDevice(name);
    if (!created)
      return created.takeError();
    device = std::move(*created);
  }
  const TargetInfo *target = TargetInfo::lookup(name);
  if (!target)
    return llvm::createStringError(TargetInfo::explainUnknown(
        name, "native, " + TargetInfo::getAllNames()));
  if (mlir::failed(mlir::attn::verifySupported(*op)))
    return llvm::createStringError("can't compile the operator");
  const TargetInfo &kernels =
      mlir::attn::getKernelTarget((*op)->getParentOfType<mlir::func::FuncOp>(),
                                  mlir::attn::Variant::Fused, *target);
  if (&kernels != target)
    llvm::errs() << "attn-tune: " << mlir::attn::getUnserved(*op, *target)
                 << " runs the kernel of " << kernels.name << " on "
                 << target->name << "\n";
  TuneTool tool(*op, kernels, device.get());
  return dryRun ? tool.listCandidates() : tool.tune();
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(
      argc, argv,
      "Searches for a schedule of an attention operator that is faster than "
      "the table's\n");

  InputModule input(common.inputFile);
  mlir::ModuleOp module = input.get();
  if (!module)
    return EXIT_FAILURE;
  // A diagnostic says more than the error that follows it.
  bool isDiagnosed = false;
  mlir::ScopedDiagnosticHandler errorWatcher(
      &input.getContext(), [&](mlir::Diagnostic &diagnostic) {
        isDiagnosed |=
            diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error;
        return mlir::failure();
      });
  llvm::Error error = run(module);
  if (!error)
    return EXIT_SUCCESS;
  const std::string message = llvm::toString(std::move(error));
  if (!isDiagnosed)
    llvm::WithColor::error(llvm::errs(), "attn-tune") << message << '\n';
  return EXIT_FAILURE;
}
