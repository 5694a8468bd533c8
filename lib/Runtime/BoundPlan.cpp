//===- BoundPlan.cpp - A plan with all its sizes known --------------------===//

#include "attn/Runtime/BoundPlan.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"
#include <cstring>
#include <limits>

using namespace attn;

/// As cuMemAlloc gives.
static constexpr int64_t kBufferAlignment = 256;

/// Of the strides of a tensor map, in bytes.
static constexpr int64_t kStrideAlignment = 16;

/// Far more than any machine has; keeps sums of sizes from overflowing.
static constexpr int64_t kMaxBufferBytes = int64_t(1) << 50;

namespace {

/// Checks arguments and evaluates a plan for them.
class PlanBinder {
public:
  PlanBinder(const Manifest &manifest, int64_t numSMs,
             llvm::ArrayRef<Tensor> arguments)
      : manifest(manifest), numSMs(numSMs), arguments(arguments),
        buffers(manifest.buffers.size()) {}

  llvm::Expected<BoundPlan> bind();

private:
  /// Where a buffer lies and how large it is, once that is known.
  struct PlacedBuffer {
    BoundPlan::BufferRef ref;
    int64_t bytes = 0;
    bool isLive = false;
  };

  llvm::Error checkBindings() const;
  llvm::Error checkBinding(const Argument &argument,
                           const Tensor &tensor) const;
  llvm::Error runChecks() const;
  /// The tensors' sizes.
  std::string describeArguments() const;
  llvm::Error evaluateSequenceLimits();
  void placeArguments();
  llvm::Error placeZeroedBuffers();
  llvm::Error addStep(const Step &step);
  llvm::Error addAlloc(const Step &step);
  llvm::Error addLaunch(const Step &step);
  llvm::Error addTransfer(const Step &step);
  llvm::Expected<BoundPlan::Parameter>
  getParameter(const KernelArgument &argument) const;

  llvm::Expected<TensorMapShape>
  evaluateTensorMap(const TensorMapRecipe &recipe) const;
  llvm::Expected<int64_t> evaluate(const Expr &expr) const;
  llvm::Expected<int64_t> evaluateSize(const Expr &expr,
                                       const llvm::Twine &what) const;
  /// Of Alloc and Free.
  bool isZeroed(const Step &step) const {
    return manifest.buffers[step.buffer].isZeroed;
  }
  int64_t findFreeOffset(int64_t bytes) const;

  const Manifest &manifest;
  const int64_t numSMs;
  llvm::ArrayRef<Tensor> arguments;
  /// Parallel to Manifest::buffers.
  std::vector<PlacedBuffer> buffers;
  BoundPlan plan;
};

} // namespace

llvm::Expected<BoundPlan> PlanBinder::bind() {
  if (llvm::Error error = checkBindings())
    return std::move(error);
  if (llvm::Error error = runChecks())
    return std::move(error);
  if (llvm::Error error = evaluateSequenceLimits())
    return std::move(error);
  placeArguments();
  if (llvm::Error error = placeZeroedBuffers())
    return std::move(error);
  for (const Step &step : manifest.plan)
    if (llvm::Error error = addStep(step))
      return std::move(error);
  llvm::Expected<int64_t> minBytes =
      evaluateSize(manifest.minBytes, "min_bytes");
  if (!minBytes)
    return minBytes.takeError();
  llvm::Expected<int64_t> maxIntermediateBytes =
      evaluateSize(manifest.maxIntermediateBytes, "max_intermediate_bytes");
  if (!maxIntermediateBytes)
    return maxIntermediateBytes.takeError();
  plan.minBytes = *minBytes;
  plan.maxIntermediateBytes = *maxIntermediateBytes;
  return std::move(plan);
}

//===----------------------------------------------------------------------===//
// Bindings
//===----------------------------------------------------------------------===//

llvm::Error PlanBinder::checkBindings() const {
  if (arguments.size() != manifest.arguments.size())
    return llvm::createStringError(
        "'" + manifest.entry + "' takes " +
        llvm::Twine(manifest.arguments.size()) + " arguments, " +
        llvm::Twine(arguments.size()) + " were given");
  for (auto [argument, tensor] : llvm::zip_equal(manifest.arguments, arguments))
    if (llvm::Error error = checkBinding(argument, tensor))
      return llvm::createStringError("argument '" + argument.name +
                                     "': " + llvm::toString(std::move(error)));
  return llvm::Error::success();
}

llvm::Error PlanBinder::checkBinding(const Argument &argument,
                                     const Tensor &tensor) const {
  if (!argument.accepts(tensor.getDType(), tensor.getShape()))
    return llvm::createStringError("needs " + argument.getTypeString() +
                                   ", got " + tensor.getTypeString());
  int64_t last = 0;
  for (auto [dim, size, stride] :
       llvm::enumerate(tensor.getShape(), tensor.getStrides())) {
    if (size < 0 || stride < 0)
      return llvm::createStringError(
          "dimension " + llvm::Twine(dim) +
          " has a negative size or stride; copy it first");
    if (argument.isOutput && size > 1 && stride == 0)
      return llvm::createStringError("dimension " + llvm::Twine(dim) +
                                     " has a stride of 0, but an output needs "
                                     "memory for each element");
    int64_t extent;
    if (llvm::MulOverflow<int64_t>(std::max<int64_t>(size - 1, 0), stride,
                                   extent) ||
        extent > kMaxBufferBytes - last)
      return llvm::createStringError("its extent overflows");
    last += extent;
  }
  if (tensor.getRank() > 0 && tensor.getShape().back() > 1 &&
      tensor.getStrides().back() != 1)
    return llvm::createStringError("the innermost stride is " +
                                   llvm::Twine(tensor.getStrides().back()) +
                                   ", needed is 1; make it contiguous first");
  return llvm::Error::success();
}

llvm::Error PlanBinder::runChecks() const {
  for (const Check &check : manifest.checks) {
    llvm::Expected<int64_t> holds = evaluate(check.condition);
    if (!holds)
      return holds.takeError();
    if (*holds == 0)
      return llvm::createStringError("'" + manifest.entry +
                                     "': " + check.message + " (" +
                                     describeArguments() + ")");
  }
  return llvm::Error::success();
}

std::string PlanBinder::describeArguments() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::ListSeparator separator;
  for (auto [argument, tensor] : llvm::zip_equal(manifest.arguments, arguments))
    if (argument.isTensor)
      os << separator << argument.name << ": " << tensor.getTypeString();
  return text;
}

llvm::Error PlanBinder::evaluateSequenceLimits() {
  for (const SequenceCheck &check : manifest.sequences) {
    BoundPlan::SequenceLimits &limits = plan.sequenceLimits.emplace_back();
    for (auto [expr, value] : {std::pair(&check.qRows, &limits.qRows),
                               {&check.kBatches, &limits.kBatches},
                               {&check.kRows, &limits.kRows}}) {
      llvm::Expected<int64_t> size = evaluateSize(*expr, "a size");
      if (!size)
        return size.takeError();
      *value = *size;
    }
  }
  return llvm::Error::success();
}

void PlanBinder::placeArguments() {
  for (auto [placed, buffer] : llvm::zip_equal(buffers, manifest.buffers)) {
    if (!buffer.argument)
      continue;
    placed.ref.argument = buffer.argument;
    placed.bytes = arguments[*buffer.argument].getFootprintBytes();
    placed.isLive = true;
  }
}

/// At the start of the arena, for as long as the plan is used: what another
/// buffer left there would not be zero in the next run.
llvm::Error PlanBinder::placeZeroedBuffers() {
  for (const Step &step : manifest.plan)
    if (step.kind == Step::Kind::Alloc && isZeroed(step))
      if (llvm::Error error = addAlloc(step))
        return error;
  plan.zeroedBytes = plan.arenaBytes;
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Plan
//===----------------------------------------------------------------------===//

llvm::Expected<int64_t> PlanBinder::evaluate(const Expr &expr) const {
  return expr.evaluate([&](const Symbol &symbol) {
    if (symbol.kind == Symbol::Kind::NumSMs)
      return numSMs;
    const Tensor &tensor = arguments[symbol.argument];
    return symbol.kind == Symbol::Kind::Dim ? tensor.getShape()[symbol.dim]
                                            : tensor.getStrides()[symbol.dim];
  });
}

llvm::Expected<int64_t>
PlanBinder::evaluateSize(const Expr &expr, const llvm::Twine &what) const {
  llvm::Expected<int64_t> size = evaluate(expr);
  if (size && *size < 0)
    return llvm::createStringError(what +
                                   " is negative: " + llvm::Twine(*size));
  return size;
}

llvm::Error PlanBinder::addStep(const Step &step) {
  switch (step.kind) {
  case Step::Kind::Alloc:
    return isZeroed(step) ? llvm::Error::success() : addAlloc(step);
  case Step::Kind::Free:
    buffers[step.buffer].isLive = isZeroed(step);
    return llvm::Error::success();
  case Step::Kind::Launch:
    return addLaunch(step);
  case Step::Kind::Copy:
  case Step::Kind::Memset:
    return addTransfer(step);
  }
  llvm_unreachable("unknown step");
}

int64_t PlanBinder::findFreeOffset(int64_t bytes) const {
  std::vector<std::pair<int64_t, int64_t>> taken;
  for (const PlacedBuffer &buffer : buffers)
    if (buffer.isLive && !buffer.ref.argument)
      taken.emplace_back(buffer.ref.offset, buffer.ref.offset + buffer.bytes);
  llvm::sort(taken);
  int64_t offset = 0;
  for (auto [begin, end] : taken) {
    if (begin - offset >= bytes)
      break;
    offset = std::max<int64_t>(offset, llvm::alignTo(end, kBufferAlignment));
  }
  return offset;
}

llvm::Error PlanBinder::addAlloc(const Step &step) {
  llvm::Expected<int64_t> bytes = evaluateSize(*step.bytes, "an allocation");
  if (!bytes)
    return bytes.takeError();
  const llvm::StringRef name = manifest.buffers[step.buffer].name;
  const int64_t offset = findFreeOffset(*bytes);
  if (*bytes > kMaxBufferBytes || offset > kMaxBufferBytes)
    return llvm::createStringError("no memory for '" + name +
                                   "': " + llvm::Twine(*bytes) + " bytes");
  buffers[step.buffer] = {{std::nullopt, offset}, *bytes, /*isLive=*/true};
  plan.arenaBytes = std::max(plan.arenaBytes, offset + *bytes);
  return llvm::Error::success();
}

llvm::Error PlanBinder::addTransfer(const Step &step) {
  const bool isCopy = step.kind == Step::Kind::Copy;
  const std::string &name = manifest.buffers[step.buffer].name;
  TimedStep timed;
  timed.kind = step.kind;
  timed.name =
      isCopy ? "copy " + manifest.buffers[step.source].name + " -> " + name
             : "memset " + name;
  llvm::Expected<int64_t> bytes = evaluateSize(*step.bytes, timed.name);
  if (!bytes)
    return bytes.takeError();
  const PlacedBuffer &destination = buffers[step.buffer];
  if (*bytes > destination.bytes ||
      (isCopy && *bytes > buffers[step.source].bytes))
    return llvm::createStringError("'" + timed.name + "' of " +
                                   llvm::Twine(*bytes) +
                                   " bytes leaves its buffers");
  if (*bytes == 0)
    return llvm::Error::success();
  timed.bytes = isCopy ? 2 * *bytes : *bytes;

  BoundPlan::StepTarget target;
  target.destination = destination.ref;
  if (isCopy)
    target.source = buffers[step.source].ref;
  target.size = *bytes;
  target.fill = step.fill;
  plan.steps.push_back(std::move(timed));
  plan.targets.push_back(std::move(target));
  return llvm::Error::success();
}

llvm::Error PlanBinder::addLaunch(const Step &step) {
  const Kernel &kernel = manifest.kernels[step.kernel];
  TimedStep timed;
  timed.kind = step.kind;
  timed.name = kernel.name;
  timed.kernel = step.kernel;
  timed.isPrepass = step.isPrepass;
  llvm::Expected<int64_t> grid =
      evaluateSize(step.grid, "the grid of kernel '" + kernel.name + "'");
  if (!grid)
    return grid.takeError();
  // Often one of several kernels that are each for some sizes.
  if (*grid == 0)
    return llvm::Error::success();
  timed.grid = *grid;
  for (auto [expr, value] : {std::pair(&step.bytes, &timed.bytes),
                             std::pair(&step.flops, &timed.flops)}) {
    if (!*expr)
      continue;
    llvm::Expected<int64_t> size =
        evaluateSize(**expr, "the cost of kernel '" + kernel.name + "'");
    if (!size)
      return size.takeError();
    *value = *size;
  }
  if (timed.grid > std::numeric_limits<int32_t>::max())
    return llvm::createStringError("kernel '" + kernel.name + "' needs " +
                                   llvm::Twine(timed.grid) +
                                   " programs, at most 2^31 - 1 can run");
  BoundPlan::StepTarget target;
  for (const KernelArgument &argument : step.arguments) {
    llvm::Expected<BoundPlan::Parameter> parameter = getParameter(argument);
    if (!parameter)
      return llvm::createStringError("kernel '" + kernel.name + "', argument " +
                                     llvm::Twine(target.parameters.size()) +
                                     ": " +
                                     llvm::toString(parameter.takeError()));
    target.parameters.push_back(std::move(*parameter));
  }
  plan.steps.push_back(std::move(timed));
  plan.targets.push_back(std::move(target));
  return llvm::Error::success();
}

llvm::Expected<TensorMapShape>
PlanBinder::evaluateTensorMap(const TensorMapRecipe &recipe) const {
  TensorMapShape shape;
  shape.dtype = recipe.dtype;
  shape.box.assign(recipe.box.begin(), recipe.box.end());
  for (const Expr &expr : recipe.dims) {
    llvm::Expected<int64_t> size = evaluateSize(expr, "a dimension");
    if (!size)
      return size.takeError();
    // Nothing is loaded from an empty tensor, but its map must be valid.
    shape.dims.push_back(std::max<int64_t>(*size, 1));
  }
  for (auto [expr, size] :
       llvm::zip_equal(recipe.strides, llvm::drop_begin(shape.dims))) {
    llvm::Expected<int64_t> stride = evaluateSize(expr, "a stride");
    if (!stride)
      return stride.takeError();
    // The stride of a single element says nothing: take one that is aligned.
    shape.strides.push_back(size == 1 ? shape.dims[0] * kStrideAlignment
                                      : *stride * getByteSize(recipe.dtype));
  }
  if (recipe.lead) {
    llvm::Expected<int64_t> lead = evaluateSize(*recipe.lead, "a lead");
    if (!lead)
      return lead.takeError();
    shape.leadBytes = *lead * getByteSize(recipe.dtype);
  }
  return shape;
}

llvm::Expected<BoundPlan::Parameter>
PlanBinder::getParameter(const KernelArgument &argument) const {
  BoundPlan::Parameter parameter;
  if (argument.kind == KernelArgument::Kind::Scalar) {
    parameter.scalar = argument.argument;
    return parameter;
  }
  if (argument.tensorMap) {
    llvm::Expected<TensorMapShape> shape =
        evaluateTensorMap(*argument.tensorMap);
    if (!shape)
      return shape.takeError();
    parameter.map = std::move(*shape);
  }
  llvm::Expected<int64_t> result = evaluate(argument.value);
  if (!result)
    return result.takeError();
  // Little endian: the low bytes of a 64-bit value are the 32-bit one.
  parameter.value = *result;
  if (argument.kind == KernelArgument::Kind::I32 && !llvm::isInt<32>(*result))
    return llvm::createStringError(llvm::Twine(*result) +
                                   " does not fit in 32 bits");
  if (argument.kind == KernelArgument::Kind::Pointer || parameter.map) {
    const PlacedBuffer &placed = buffers[argument.buffer];
    if (*result < 0 || *result > placed.bytes)
      return llvm::createStringError("offset " + llvm::Twine(*result) +
                                     " leaves the buffer");
    parameter.buffer = placed.ref;
    parameter.buffer->offset += *result;
  }
  return parameter;
}

llvm::Expected<BoundPlan> BoundPlan::create(const Manifest &manifest,
                                            int64_t numSMs,
                                            llvm::ArrayRef<Tensor> arguments) {
  return PlanBinder(manifest, numSMs, arguments).bind();
}

uint64_t attn::getScalarBits(DType dtype, const void *data) {
  // Little endian: the low bytes of a 64-bit value are the narrower one.
  uint64_t bits = 0;
  std::memcpy(&bits, data, getByteSize(dtype));
  return bits;
}
