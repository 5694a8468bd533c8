//===- Explain.cpp - Why a backend is chosen, or can't be -----------------===//

#include "attn/Compiler/Explain.h"
#include "Diagnostics.h"
#include "attn/Compiler/Compiler.h"
#include "attn/Conversion/AttnToCudnn.h"
#include "attn/Runtime/CudnnKernel.h"
#include "attn/Runtime/TextTable.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace attn;
using Status = BackendVerdict::Status;

/// What expressions over the device are evaluated for where there is none: the
/// multiprocessors of an H200.
static constexpr int64_t kDefaultNumSMs = 132;

//===----------------------------------------------------------------------===//
// Measurements
//===----------------------------------------------------------------------===//

namespace {
enum class MaskKind { None, Causal, Window };

/// How fast fused is, as a multiple of cuDNN, for q and k of one length.
struct Measurement {
  llvm::StringLiteral target;
  MaskKind mask;
  int64_t headDim, length;
  double speedup;
};
} // namespace

// One H200, bf16, cuDNN 9.19: the tables of docs/Benchmarks.md.
static constexpr Measurement kMeasurements[] = {
    {"sm_80", MaskKind::None, 64, 2048, 0.73},
    {"sm_80", MaskKind::None, 64, 16384, 0.73},
    {"sm_80", MaskKind::None, 128, 2048, 0.55},
    {"sm_80", MaskKind::None, 128, 16384, 0.53},
    {"sm_80", MaskKind::Causal, 64, 2048, 0.73},
    {"sm_80", MaskKind::Causal, 64, 16384, 0.73},
    {"sm_80", MaskKind::Causal, 128, 2048, 0.60},
    {"sm_80", MaskKind::Causal, 128, 16384, 0.54},
    {"sm_90a", MaskKind::None, 64, 512, 1.14},
    {"sm_90a", MaskKind::None, 64, 2048, 1.20},
    {"sm_90a", MaskKind::None, 64, 8192, 1.27},
    {"sm_90a", MaskKind::None, 64, 16384, 1.28},
    {"sm_90a", MaskKind::None, 96, 2048, 1.39},
    {"sm_90a", MaskKind::None, 96, 16384, 1.42},
    {"sm_90a", MaskKind::None, 128, 512, 1.12},
    {"sm_90a", MaskKind::None, 128, 2048, 1.22},
    {"sm_90a", MaskKind::None, 128, 8192, 1.23},
    {"sm_90a", MaskKind::None, 128, 16384, 1.23},
    {"sm_90a", MaskKind::None, 192, 2048, 1.22},
    {"sm_90a", MaskKind::None, 192, 16384, 1.24},
    {"sm_90a", MaskKind::None, 256, 512, 1.12},
    {"sm_90a", MaskKind::None, 256, 2048, 1.16},
    {"sm_90a", MaskKind::None, 256, 16384, 1.17},
    {"sm_90a", MaskKind::Causal, 64, 512, 1.13},
    {"sm_90a", MaskKind::Causal, 64, 2048, 1.24},
    {"sm_90a", MaskKind::Causal, 64, 8192, 1.30},
    {"sm_90a", MaskKind::Causal, 64, 16384, 1.31},
    {"sm_90a", MaskKind::Causal, 96, 2048, 1.50},
    {"sm_90a", MaskKind::Causal, 96, 16384, 1.51},
    {"sm_90a", MaskKind::Causal, 128, 512, 1.15},
    {"sm_90a", MaskKind::Causal, 128, 2048, 1.33},
    {"sm_90a", MaskKind::Causal, 128, 8192, 1.39},
    {"sm_90a", MaskKind::Causal, 128, 16384, 1.40},
    {"sm_90a", MaskKind::Causal, 192, 2048, 1.23},
    {"sm_90a", MaskKind::Causal, 192, 16384, 1.23},
    {"sm_90a", MaskKind::Causal, 256, 512, 0.99},
    {"sm_90a", MaskKind::Causal, 256, 2048, 1.23},
    {"sm_90a", MaskKind::Causal, 256, 16384, 1.34},
    {"sm_90a", MaskKind::Window, 64, 16384, 1.20},
    {"sm_90a", MaskKind::Window, 128, 16384, 1.32}};

/// Of all batches.
static constexpr int64_t kMeasuredQueries = 16384;

/// Further from a measured length, nothing is said.
static constexpr int64_t kMaxLengthRatio = 2;

static llvm::StringRef stringify(MaskKind mask) {
  switch (mask) {
  case MaskKind::None:
    return "no mask";
  case MaskKind::Causal:
    return "causal";
  case MaskKind::Window:
    return "window";
  }
  llvm_unreachable("unknown mask");
}

/// What was measured of an operator that cuDNN serves; none for others.
static std::optional<MaskKind>
getMeasuredMask(const mlir::attn::CudnnAttention &attention) {
  if (attention.bias || attention.lengths)
    return std::nullopt;
  if (!attention.hasWindow())
    return MaskKind::None;
  if (!attention.left && attention.right == 0)
    return MaskKind::Causal;
  if (attention.left && attention.right == 0)
    return MaskKind::Window;
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// The engine
//===----------------------------------------------------------------------===//

namespace {

/// What a backend would run.
struct Candidate {
  Backend backend;
  Manifest manifest;
  /// With inputs: the plan for them, and all arguments.
  std::optional<BoundPlan> plan;
  std::vector<Tensor> arguments;

  /// Launches, if the plan is known, and copies beside them.
  int64_t countKernels() const;
  int64_t countCopies() const;
  /// "5 kernels and 1 copy"
  std::string describeSteps() const;
  std::optional<int64_t> getBytes() const;
};

class Explainer {
public:
  Explainer(mlir::ModuleOp module, const KernelOptions &options,
            llvm::ArrayRef<Tensor> inputs)
      : module(module), options(options), inputs(inputs) {}

  llvm::Expected<Explanation> run();

private:
  llvm::Error chooseDevice();
  llvm::Error findOperator();

  llvm::Expected<Candidate> consider(Backend backend);
  llvm::Error checkCudnn();
  llvm::Error askCudnn(const Candidate &candidate);
  llvm::Expected<Manifest> compile(Backend backend);
  llvm::Error bind(Candidate &candidate);

  std::string explainFused(const Candidate &fused);
  std::string explainUnfused(const Candidate &candidate);
  std::string explainCudnn();
  std::string explainServed(const Candidate &candidate);
  std::optional<int64_t> getLength(mlir::Value operand) const;
  const Measurement *findMeasurement();

  mlir::ModuleOp module;
  const KernelOptions &options;
  llvm::ArrayRef<Tensor> inputs;
  Explanation explanation;
  /// Null where there is none of the target.
  std::shared_ptr<Device> device;
  int64_t numSMs = kDefaultNumSMs;
  mlir::attn::AttentionOp op;
  /// Of fused, where it serves.
  std::optional<Candidate> fused;
};

} // namespace

static int64_t count(const BoundPlan &plan, Step::Kind kind) {
  return llvm::count_if(
      plan.steps, [&](const TimedStep &step) { return step.kind == kind; });
}

int64_t Candidate::countKernels() const {
  return plan ? count(*plan, Step::Kind::Launch) : manifest.kernels.size();
}

int64_t Candidate::countCopies() const {
  return plan ? count(*plan, Step::Kind::Copy) : 0;
}

std::string Candidate::describeSteps() const {
  auto describe = [](int64_t count, llvm::StringRef one, llvm::StringRef many) {
    return (llvm::Twine(count) + " " + (count == 1 ? one : many)).str();
  };
  std::string text = describe(countKernels(), "kernel", "kernels");
  if (const int64_t copies = countCopies())
    text += " and " + describe(copies, "copy", "copies");
  return text;
}

std::optional<int64_t> Candidate::getBytes() const {
  if (!plan)
    return std::nullopt;
  int64_t sum = 0;
  for (const TimedStep &step : plan->steps) {
    if (!step.bytes)
      return std::nullopt;
    sum += *step.bytes;
  }
  return sum;
}

/// The target that code is made for, and the device, if it is there.
llvm::Error Explainer::chooseDevice() {
  explanation.target = options.target;
  llvm::Expected<std::shared_ptr<Device>> found = getSharedDevice(options);
  if (!found && options.target == "native")
    return found.takeError();
  if (!found) {
    if (!mlir::attn::TargetInfo::lookup(options.target))
      return found.takeError();
    // Code can be made for a device that isn't here.
    llvm::consumeError(found.takeError());
    return llvm::Error::success();
  }
  if (options.target == "native")
    explanation.target = getBestTarget(**found).str();
  if (llvm::errorToBool((*found)->checkTarget(explanation.target)))
    return llvm::Error::success();
  device = std::move(*found);
  explanation.device = device->getName();
  numSMs = device->getNumSMs();
  return llvm::Error::success();
}

llvm::Expected<Manifest> Explainer::compile(Backend backend) {
  CompileOptions compileOptions;
  compileOptions.target = explanation.target;
  compileOptions.entry = options.entry;
  compileOptions.avoidsTMA = options.avoidsTMA;
  compileOptions.setBackend(backend);
  ErrorCollector errors(*module.getContext());
  auto lowered = lower(module, compileOptions);
  if (!lowered)
    return errors.takeError(llvm::toString(lowered.takeError()));
  llvm::Expected<std::string> manifest =
      emitManifest(**lowered, compileOptions);
  if (!manifest)
    return manifest.takeError();
  return Manifest::parse(*manifest);
}

/// Evaluates the plan for the inputs, with row-major outputs.
llvm::Error Explainer::bind(Candidate &candidate) {
  const Manifest &manifest = candidate.manifest;
  std::vector<llvm::SmallVector<int64_t, 4>> shapes;
  for (const Tensor &input : inputs)
    shapes.emplace_back(input.getShape());
  const size_t numInputs =
      llvm::count_if(manifest.arguments, [](const Argument &argument) {
        return !argument.isOutput;
      });
  if (shapes.size() != numInputs)
    return llvm::createStringError("'" + manifest.entry + "' takes " +
                                   llvm::Twine(numInputs) + " inputs, " +
                                   llvm::Twine(shapes.size()) + " were given");
  auto inferred = manifest.inferShapes(shapes);
  if (!inferred)
    return inferred.takeError();
  std::vector<Tensor> arguments;
  size_t next = 0;
  for (auto [argument, shape] : llvm::zip_equal(manifest.arguments, *inferred))
    arguments.push_back(argument.isOutput
                            ? Tensor::borrow(argument.dtype, shape,
                                             getRowMajorStrides(shape), nullptr)
                            : inputs[next++]);
  llvm::Expected<BoundPlan> plan =
      BoundPlan::create(manifest, numSMs, arguments);
  if (!plan)
    return plan.takeError();
  candidate.plan = std::move(*plan);
  candidate.arguments = std::move(arguments);
  return llvm::Error::success();
}

/// The conditions of lower() and convert-attn-to-cudnn, without their places.
llvm::Error Explainer::checkCudnn() {
  const auto *target = mlir::attn::TargetInfo::lookup(explanation.target);
  if (target && !target->isGPU)
    return llvm::createStringError("it needs a GPU, the target is " +
                                   target->name);
  const mlir::attn::CudnnMatch match =
      mlir::attn::matchCudnn(op->getParentOfType<mlir::func::FuncOp>());
  if (!match.unmet.empty())
    return llvm::createStringError(llvm::join(match.unmet, "; "));
  // Without the device, whether its library is there says nothing.
  return device ? attn::checkCudnn() : llvm::Error::success();
}

/// Whether the library takes these very sizes: it makes their plan.
llvm::Error Explainer::askCudnn(const Candidate &candidate) {
  auto executable = Executable::create(candidate.manifest, {}, *device);
  if (!executable)
    return executable.takeError();
  for (auto [step, target] :
       llvm::zip_equal(candidate.plan->steps, candidate.plan->targets)) {
    std::vector<uint64_t> values;
    for (const BoundPlan::Parameter &parameter : target.parameters)
      values.push_back(parameter.value);
    llvm::SmallVector<void *> params;
    for (uint64_t &value : values)
      params.push_back(&value);
    if (llvm::Error error =
            (*executable)->getKernel(step.kernel).prepare(params))
      return error;
  }
  return llvm::Error::success();
}

/// What a launch would run, or why it would be an error.
llvm::Expected<Candidate> Explainer::consider(Backend backend) {
  if (backend == Backend::Cudnn)
    if (llvm::Error error = checkCudnn())
      return std::move(error);
  llvm::Expected<Manifest> manifest = compile(backend);
  if (!manifest)
    return manifest.takeError();
  Candidate candidate{backend, std::move(*manifest), std::nullopt, {}};
  if (!inputs.empty())
    if (llvm::Error error = bind(candidate))
      return std::move(error);
  if (backend == Backend::Cudnn && device && candidate.plan)
    if (llvm::Error error = askCudnn(candidate))
      return std::move(error);
  return candidate;
}

//===----------------------------------------------------------------------===//
// Reasons
//===----------------------------------------------------------------------===//

std::string Explainer::explainFused(const Candidate &candidate) {
  std::string text = "no scores in memory";
  if (candidate.plan)
    text += ", " + candidate.describeSteps();
  if (std::optional<int64_t> bytes = candidate.getBytes())
    text += (candidate.countKernels() == 1 ? " that moves " : " that move ") +
            formatBytes(*bytes);
  if (candidate.manifest.kernelTarget != explanation.target)
    text += ", code of " + candidate.manifest.kernelTarget;
  return text;
}

std::string Explainer::explainUnfused(const Candidate &candidate) {
  const std::string kernels = candidate.describeSteps();
  std::optional<int64_t> bytes = candidate.getBytes();
  std::optional<int64_t> fusedBytes = fused ? fused->getBytes() : std::nullopt;
  if (!bytes || !fusedBytes || *fusedBytes == 0)
    return "slower by estimate: " + kernels +
           " that write the scores to memory, O(N^2) bytes; never chosen by "
           "auto";
  if (*bytes <= *fusedBytes)
    return llvm::formatv("{0} that move {1}, no more than fused; never chosen "
                         "by auto",
                         kernels, formatBytes(*bytes))
        .str();
  return llvm::formatv("slower by estimate: {0} that move {1}, {2:f1} times "
                       "the bytes of fused; never chosen by auto",
                       kernels, formatBytes(*bytes),
                       static_cast<double>(*bytes) / *fusedBytes)
      .str();
}

/// Of q or k, which fused is bound to; none where it isn't, or where the
/// operand is no argument.
std::optional<int64_t> Explainer::getLength(mlir::Value operand) const {
  auto argument = llvm::dyn_cast<mlir::BlockArgument>(operand);
  if (!argument || !fused || fused->arguments.empty())
    return std::nullopt;
  return fused->arguments[argument.getArgNumber()].getShape()[2];
}

/// The nearest in length, of the same kind.
const Measurement *Explainer::findMeasurement() {
  std::optional<MaskKind> mask =
      getMeasuredMask(mlir::attn::matchCudnn(op).attention);
  std::optional<int64_t> measured = getLength(op.getQ());
  if (!mask || !measured || measured != getLength(op.getK()) ||
      op.getQKHeadDim() != op.getVHeadDim())
    return nullptr;
  const int64_t length = *measured;
  const Measurement *nearest = nullptr;
  double nearestRatio = kMaxLengthRatio;
  for (const Measurement &measurement : kMeasurements) {
    if (measurement.target != fused->manifest.kernelTarget ||
        measurement.mask != *mask || measurement.headDim != op.getQKHeadDim())
      continue;
    const double ratio =
        static_cast<double>(std::max(length, measurement.length)) /
        std::max<int64_t>(1, std::min(length, measurement.length));
    if (ratio > nearestRatio)
      continue;
    nearest = &measurement;
    nearestRatio = ratio;
  }
  return nearest;
}

std::string Explainer::explainCudnn() {
  std::string text;
  if (const Measurement *nearest = findMeasurement()) {
    const bool isSlower = nearest->speedup >= 1;
    text = llvm::formatv(
        "{0} by estimate: {1:f2} times fused's time (measured on an H200, "
        "bf16, D={2} {3} B={4} N={5})",
        isSlower ? "slower" : "faster", nearest->speedup, nearest->headDim,
        stringify(nearest->mask), kMeasuredQueries / nearest->length,
        nearest->length);
  } else if (inputs.empty()) {
    text = "no estimate without the sizes";
  } else {
    text = "no estimate: nothing like it was measured";
  }
  text += "; chosen where it is named";
  if (!device)
    text += "; whether this problem is among those that the installed cuDNN "
            "takes is known on a GPU only";
  else
    text += " (version " + getCudnnVersion() + ")";
  return text;
}

std::string Explainer::explainServed(const Candidate &candidate) {
  switch (candidate.backend) {
  case Backend::Auto:
  case Backend::Fused:
    return explainFused(candidate);
  case Backend::Cudnn:
    return explainCudnn();
  case Backend::Naive:
  case Backend::Inplace:
  case Backend::Math:
    return explainUnfused(candidate);
  }
  llvm_unreachable("unknown backend");
}

/// Where the choice comes from.
static std::string describeChoice(const KernelOptions &options) {
  auto quote = [](Backend backend) {
    return ("'" + stringifyBackend(backend) + "'").str();
  };
  if (options.backend)
    return "backend " + quote(*options.backend);
  if (std::optional<Backend> scope = BackendScope::getCurrent())
    return "the scope's backend " + quote(*scope);
  return ("variant '" + mlir::attn::stringifyVariant(options.variant) + "'")
      .str();
}

llvm::Error Explainer::findOperator() {
  unsigned count = 0;
  module.walk([&](mlir::attn::AttentionOp found) {
    auto entry = found->getParentOfType<mlir::func::FuncOp>();
    if (!entry || (!options.entry.empty() && entry.getName() != options.entry))
      return;
    op = found;
    ++count;
  });
  if (count == 1) {
    explanation.entry =
        op->getParentOfType<mlir::func::FuncOp>().getName().str();
    return llvm::Error::success();
  }
  return llvm::createStringError(
      "backends are explained for one attn.attention, there are " +
      llvm::Twine(count) +
      (options.entry.empty() ? "; choose a function by its name" : ""));
}

llvm::Expected<Explanation> Explainer::run() {
  if (llvm::Error error = findOperator())
    return std::move(error);
  if (llvm::Error error = chooseDevice())
    return std::move(error);
  explanation.asked = describeChoice(options);
  const Backend asked = getBackend(options);
  // Others are compared with it.
  std::vector<Backend> order = {Backend::Fused};
  for (Backend backend : getAllBackends())
    if (backend != Backend::Fused)
      order.push_back(backend);
  for (Backend backend : order) {
    BackendVerdict verdict{backend, Status::Unserved, ""};
    llvm::Expected<Candidate> candidate = consider(backend);
    if (!candidate) {
      verdict.reason = llvm::toString(candidate.takeError());
    } else {
      verdict.status = backend == asked ? Status::Chosen : Status::Available;
      if (backend == Backend::Fused)
        fused = *candidate;
      verdict.reason = explainServed(*candidate);
    }
    explanation.verdicts.push_back(std::move(verdict));
  }
  auto chosen = llvm::find_if(explanation.verdicts, [](auto &verdict) {
    return verdict.status == Status::Chosen;
  });
  if (chosen != explanation.verdicts.end())
    std::rotate(explanation.verdicts.begin(), chosen, std::next(chosen));
  return std::move(explanation);
}

llvm::Expected<Explanation> attn::explain(mlir::ModuleOp module,
                                          const KernelOptions &options,
                                          const ExplainArguments &arguments) {
  return Explainer(module, options, arguments.inputs).run();
}

llvm::Expected<Explanation> attn::explain(llvm::StringRef text,
                                          const KernelOptions &options,
                                          const ExplainArguments &arguments) {
  mlir::DialectRegistry registry;
  mlir::attn::registerAttncDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  mlir::OwningOpRef<mlir::ModuleOp> module;
  {
    ErrorCollector errors(context, text);
    module = mlir::parseSourceString<mlir::ModuleOp>(text, &context,
                                                     options.sourceName);
    if (!module)
      return errors.takeError("the text can't be parsed");
  }
  return explain(*module, options, arguments);
}

llvm::Expected<Explanation> attn::explain(const AttentionSpec &spec,
                                          const KernelOptions &options,
                                          const ExplainArguments &arguments) {
  llvm::Expected<std::string> text = spec.print();
  if (!text)
    return text.takeError();
  KernelOptions named = options;
  named.sourceName = AttentionSpec::kSourceName;
  return explain(*text, named, arguments);
}

//===----------------------------------------------------------------------===//
// Output
//===----------------------------------------------------------------------===//

static llvm::StringRef stringify(Status status) {
  switch (status) {
  case Status::Chosen:
    return "chosen";
  case Status::Available:
    return "available";
  case Status::Unserved:
    return "can't";
  }
  llvm_unreachable("unknown status");
}

void attn::printExplanation(llvm::raw_ostream &os,
                            const Explanation &explanation) {
  os << "backends of '" << explanation.entry << "' on " << explanation.target
     << " ("
     << (explanation.device.empty() ? "no such device here"
                                    : explanation.device)
     << "), asked for: " << explanation.asked << '\n';
  for (const BackendVerdict &verdict : explanation.verdicts) {
    os << "  " << llvm::left_justify(stringifyBackend(verdict.backend), 8)
       << llvm::left_justify(stringify(verdict.status), 10);
    // A line for each, diagnostics of several lines included.
    llvm::SmallVector<llvm::StringRef> lines;
    llvm::StringRef(verdict.reason).split(lines, '\n');
    os << llvm::join(lines, " ") << '\n';
  }
}

void attn::writeExplanation(llvm::raw_ostream &os,
                            const Explanation &explanation) {
  llvm::json::OStream json(os, /*IndentSize=*/2);
  json.object([&] {
    json.attribute("entry", explanation.entry);
    json.attribute("target", explanation.target);
    json.attribute("device", explanation.device);
    json.attribute("asked", explanation.asked);
    json.attributeArray("backends", [&] {
      for (const BackendVerdict &verdict : explanation.verdicts)
        json.object([&] {
          json.attribute("backend", stringifyBackend(verdict.backend));
          json.attribute("status", stringify(verdict.status));
          json.attribute("reason", verdict.reason);
        });
    });
  });
  os << '\n';
}
