//===- Launcher.cpp - Launches on the caller's memory ---------------------===//

#include "attn/Runtime/Launcher.h"
#include "attn/Runtime/HostWork.h"
#include "attn/Runtime/SequenceChecks.h"
#include "attn/Runtime/TensorMaps.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/Process.h"
#include <map>
#include <mutex>

using namespace attn;

/// Everything that a plan depends on: dtypes, shapes and strides.
using Signature = llvm::SmallVector<int64_t, 64>;

/// Of buffers in a plan's memory.
static constexpr int64_t kBufferAlignment = 256;

/// Where in a plan's memory that starts which need not be zero.
static int64_t getScratchStart(const BoundPlan &plan) {
  return llvm::alignTo(plan.zeroedBytes, kBufferAlignment);
}

namespace {
/// How much memory an argument is, from its first element to its last one.
struct Footprint {
  /// 0 without elements.
  int64_t bytes;
  /// Whether there is nothing of others in between.
  bool isDense;
};
} // namespace

struct Launcher::Plan {
  Signature signature;
  BoundPlan bound;
  /// Of each argument.
  std::vector<Footprint> footprints;

  /// The tensor maps of the last launch, in the order of the plan, and the
  /// addresses that they are of: callers tend to come back with the same
  /// tensors, and encoding costs more than copying.
  std::mutex mapsMutex;
  llvm::SmallVector<DeviceAddress, 8> mapAddresses;
  llvm::SmallVector<EncodedTensorMap, 4> maps;
};

/// Memory of the plans that run on one stream.
struct Launcher::Workspace {
  /// Held while a forward is enqueued, so that those of several threads don't
  /// mix.
  std::mutex mutex;
  /// Zero between forwards, whatever their shapes; so it shares nothing with
  /// `scratch`.
  DeviceMemory zeroed;
  int64_t zeroedBytes = 0;
  DeviceMemory scratch;
  int64_t scratchBytes = 0;
  /// The plan that ran last, and the addresses that its pre-pass read: what it
  /// found out is in `scratch`.
  std::shared_ptr<Plan> lastPlan;
  llvm::SmallVector<DeviceAddress, 8> lastRead;
};

struct Launcher::State {
  std::mutex mutex;
  /// Most recently used first.
  std::vector<std::shared_ptr<Plan>> plans;
  /// By stream.
  std::map<uint64_t, std::unique_ptr<Workspace>> workspaces;
  std::vector<std::unique_ptr<Workspace>> capturedWorkspaces;
  /// Zeroing goes through the device's own stream, which takes one thread.
  std::mutex zeroingMutex;
  bool checksSequences = false;
  std::shared_ptr<const TileMapper> tileMapper;
};

/// Whether `name` is set to something else than 0.
static bool isSetInEnvironment(llvm::StringRef name) {
  const std::optional<std::string> value = llvm::sys::Process::GetEnv(name);
  return value && !value->empty() && *value != "0";
}

Launcher::Launcher(const Executable &executable)
    : executable(executable), state(std::make_unique<State>()) {
  state->checksSequences = !executable.getManifest().sequences.empty() &&
                           (!executable.getDevice().isGPU() ||
                            isSetInEnvironment("ATTNC_CHECK_INPUTS"));
}

Launcher::~Launcher() = default;

void Launcher::setTileMapper(TileMapper mapper) {
  if (mapper)
    state->tileMapper = std::make_shared<const TileMapper>(std::move(mapper));
}

//===----------------------------------------------------------------------===//
// Plans
//===----------------------------------------------------------------------===//

static Signature getSignature(llvm::ArrayRef<TensorView> arguments) {
  Signature signature;
  for (const TensorView &argument : arguments) {
    signature.push_back(static_cast<int64_t>(argument.dtype));
    signature.push_back(argument.shape.size());
    signature.append(argument.shape.begin(), argument.shape.end());
    signature.append(argument.strides.begin(), argument.strides.end());
  }
  return signature;
}

static llvm::Expected<std::vector<Tensor>>
getTensors(const Manifest &manifest, llvm::ArrayRef<TensorView> views) {
  std::vector<Tensor> tensors;
  for (auto [index, view] : llvm::enumerate(views)) {
    if (view.shape.size() != view.strides.size())
      return llvm::createStringError(
          "'" + manifest.entry + "', argument " + llvm::Twine(index) + ": " +
          llvm::Twine(view.shape.size()) + " sizes, but " +
          llvm::Twine(view.strides.size()) + " strides");
    tensors.push_back(
        Tensor::borrow(view.dtype, view.shape, view.strides, view.data));
  }
  return tensors;
}

llvm::Expected<std::shared_ptr<Launcher::Plan>>
Launcher::getPlan(llvm::ArrayRef<TensorView> arguments) {
  const Signature signature = getSignature(arguments);
  auto isWanted = [&](const std::shared_ptr<Plan> &plan) {
    return plan->signature == signature;
  };
  {
    std::lock_guard<std::mutex> lock(state->mutex);
    auto found = llvm::find_if(state->plans, isWanted);
    if (found != state->plans.end()) {
      std::rotate(state->plans.begin(), found, found + 1);
      return state->plans.front();
    }
  }
  HostWorkTimer timer(HostWork::Plan);
  const Manifest &manifest = executable.getManifest();
  llvm::Expected<std::vector<Tensor>> tensors = getTensors(manifest, arguments);
  if (!tensors)
    return tensors.takeError();
  llvm::Expected<BoundPlan> bound =
      BoundPlan::create(manifest, executable.getDevice().getNumSMs(), *tensors);
  if (!bound)
    return bound.takeError();
  auto plan = std::make_shared<Plan>();
  plan->signature = signature;
  plan->bound = std::move(*bound);
  for (const Tensor &tensor : *tensors) {
    const int64_t bytes = tensor.getFootprintBytes();
    const int64_t elementBytes =
        tensor.getNumElements() * getByteSize(tensor.getDType());
    plan->footprints.push_back({bytes, bytes == elementBytes});
  }
  timer.finish(manifest.entry);
  if (llvm::Error error = executable.prepare(plan->bound))
    return std::move(error);

  std::lock_guard<std::mutex> lock(state->mutex);
  // Another thread may have made it meanwhile; then there are two, which is no
  // harm. Threads that use an evicted plan hold on to it.
  state->plans.insert(state->plans.begin(), plan);
  if (state->plans.size() > kMaxPlans)
    state->plans.pop_back();
  return plan;
}

//===----------------------------------------------------------------------===//
// Workspaces
//===----------------------------------------------------------------------===//

llvm::Expected<Launcher::Workspace *> Launcher::getWorkspace(Stream stream) {
  Device &device = executable.getDevice();
  llvm::Expected<bool> isCapturing = device.isCapturing(stream);
  if (!isCapturing)
    return isCapturing.takeError();
  if (*isCapturing) {
    std::lock_guard<std::mutex> lock(state->mutex);
    state->capturedWorkspaces.push_back(std::make_unique<Workspace>());
    return state->capturedWorkspaces.back().get();
  }
  llvm::Expected<uint64_t> id = device.getStreamId(stream);
  if (!id)
    return id.takeError();
  std::lock_guard<std::mutex> lock(state->mutex);
  std::unique_ptr<Workspace> &workspace = state->workspaces[*id];
  if (!workspace)
    workspace = std::make_unique<Workspace>();
  return workspace.get();
}

llvm::Error Launcher::grow(Workspace &workspace, const BoundPlan &plan,
                           Stream stream) {
  Device &device = executable.getDevice();
  const int64_t scratchBytes = plan.arenaBytes - getScratchStart(plan);
  const bool growsZeroed = plan.zeroedBytes > workspace.zeroedBytes;
  const bool growsScratch = scratchBytes > workspace.scratchBytes;
  if (!growsZeroed && !growsScratch)
    return llvm::Error::success();
  // Work under way may use what is about to be freed. A workspace without
  // memory has none; the only kind that a capturing stream, which can't be
  // waited for, is given.
  if (workspace.zeroedBytes > 0 || workspace.scratchBytes > 0)
    if (llvm::Error error = device.synchronize(stream))
      return error;
  if (growsZeroed) {
    auto memory = DeviceMemory::allocate(device, plan.zeroedBytes);
    if (!memory)
      return memory.takeError();
    std::lock_guard<std::mutex> lock(state->zeroingMutex);
    if (llvm::Error error = device.memset(
            memory->getAddress(), 0, plan.zeroedBytes, device.getOwnStream()))
      return error;
    if (llvm::Error error = device.synchronize())
      return error;
    workspace.zeroed = std::move(*memory);
    workspace.zeroedBytes = plan.zeroedBytes;
  }
  if (growsScratch) {
    auto memory = DeviceMemory::allocate(device, scratchBytes);
    if (!memory)
      return memory.takeError();
    workspace.scratch = std::move(*memory);
    workspace.scratchBytes = scratchBytes;
    workspace.lastPlan = nullptr;
  }
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Launch
//===----------------------------------------------------------------------===//

namespace {
/// Turns the references of a plan into addresses and values.
struct Resolver {
  const BoundPlan &plan;
  llvm::ArrayRef<TensorView> arguments;
  DeviceAddress zeroed;
  DeviceAddress scratch;

  DeviceAddress getAddress(const BoundPlan::BufferRef &buffer) const {
    if (buffer.argument)
      return reinterpret_cast<DeviceAddress>(arguments[*buffer.argument].data) +
             buffer.offset;
    return buffer.offset < plan.zeroedBytes
               ? zeroed + buffer.offset
               : scratch + (buffer.offset - getScratchStart(plan));
  }

  uint64_t getValue(const BoundPlan::Parameter &parameter) const {
    if (parameter.buffer)
      return getAddress(*parameter.buffer);
    if (!parameter.scalar)
      return parameter.value;
    const TensorView &scalar = arguments[*parameter.scalar];
    return getScalarBits(scalar.dtype, scalar.data);
  }
};
} // namespace

/// The tensor maps of all launches of a plan, encoded anew only where addresses
/// differ from the last time.
static llvm::Error
getTensorMaps(const Executable &executable, const Resolver &resolver,
              llvm::SmallVectorImpl<DeviceAddress> &lastAddresses,
              llvm::SmallVectorImpl<EncodedTensorMap> &lastMaps,
              llvm::SmallVectorImpl<EncodedTensorMap> &maps) {
  llvm::SmallVector<DeviceAddress, 8> addresses;
  for (const BoundPlan::StepTarget &target : resolver.plan.targets)
    for (const BoundPlan::Parameter &parameter : target.parameters)
      if (parameter.map)
        addresses.push_back(resolver.getAddress(*parameter.buffer));
  if (addresses != lastAddresses) {
    lastAddresses.clear();
    lastMaps.resize(addresses.size());
    auto next = lastMaps.begin();
    for (const BoundPlan::StepTarget &target : resolver.plan.targets)
      for (const BoundPlan::Parameter &parameter : target.parameters)
        if (parameter.map) {
          auto map = encodeTensorMap(executable.getDevice(),
                                     executable.getManifest(), parameter,
                                     resolver.getAddress(*parameter.buffer));
          if (!map)
            return map.takeError();
          *next++ = *map;
        }
    lastAddresses = addresses;
  }
  maps.assign(lastMaps.begin(), lastMaps.end());
  return llvm::Error::success();
}

llvm::Error Launcher::enqueue(Plan &plan, const Workspace *workspace,
                              Stream stream,
                              llvm::ArrayRef<TensorView> arguments,
                              bool hasPrepass) {
  Device &device = executable.getDevice();
  const Resolver resolver{plan.bound, arguments,
                          workspace ? workspace->zeroed.getAddress() : 0,
                          workspace ? workspace->scratch.getAddress() : 0};
  llvm::SmallVector<EncodedTensorMap, 4> maps;
  {
    std::lock_guard<std::mutex> lock(plan.mapsMutex);
    if (llvm::Error error = getTensorMaps(executable, resolver,
                                          plan.mapAddresses, plan.maps, maps))
      return error;
  }
  auto nextMap = maps.begin();
  for (auto [step, target] :
       llvm::zip_equal(plan.bound.steps, plan.bound.targets)) {
    if (step.isPrepass && hasPrepass)
      continue;
    if (step.kind == Step::Kind::Launch) {
      llvm::SmallVector<uint64_t, 48> values;
      llvm::SmallVector<void *, 48> params;
      values.reserve(target.parameters.size());
      for (const BoundPlan::Parameter &parameter : target.parameters) {
        if (parameter.map) {
          params.push_back(&*nextMap++);
          continue;
        }
        values.push_back(resolver.getValue(parameter));
        params.push_back(&values.back());
      }
      if (llvm::Error error = device.launch(executable.getKernel(step.kernel),
                                            step.grid, params, stream))
        return error;
      continue;
    }
    const DeviceAddress destination = resolver.getAddress(target.destination);
    if (llvm::Error error =
            step.kind == Step::Kind::Copy
                ? device.copy(destination, resolver.getAddress(target.source),
                              target.size, stream)
                : device.memset(destination, target.fill, target.size, stream))
      return error;
  }
  if (HostWorkObserver *observer = getHostWorkObserver())
    observer->onLaunch({plan.bound, arguments, /*skipsPrepass=*/hasPrepass,
                        state->tileMapper});
  return llvm::Error::success();
}

/// Whether an element of one is surely one of the other, too. Of tensors that
/// interleave, only those are found that begin with the same element.
static bool overlap(const TensorView &a, const Footprint &aFootprint,
                    const TensorView &b, const Footprint &bFootprint) {
  const auto aBegin = reinterpret_cast<uintptr_t>(a.data);
  const auto bBegin = reinterpret_cast<uintptr_t>(b.data);
  if (aFootprint.bytes == 0 || bFootprint.bytes == 0 ||
      aBegin >= bBegin + bFootprint.bytes ||
      bBegin >= aBegin + aFootprint.bytes)
    return false;
  return aBegin == bBegin || (aFootprint.isDense && bFootprint.isDense);
}

/// Kernels read inputs while they write outputs.
static llvm::Error checkOverlaps(const Manifest &manifest,
                                 llvm::ArrayRef<Footprint> footprints,
                                 llvm::ArrayRef<TensorView> arguments) {
  for (unsigned output = 0; output < arguments.size(); ++output) {
    if (!manifest.arguments[output].isOutput)
      continue;
    for (unsigned other = 0; other < arguments.size(); ++other)
      if (other != output && manifest.arguments[other].isTensor &&
          overlap(arguments[output], footprints[output], arguments[other],
                  footprints[other]))
        return llvm::createStringError(
            "argument '" + manifest.arguments[output].name +
            "' lies in the memory of '" + manifest.arguments[other].name +
            "'; an output needs its own");
  }
  return llvm::Error::success();
}

/// Of addresses, which no plan knows.
static llvm::Error checkAddresses(const Manifest &manifest,
                                  llvm::ArrayRef<Footprint> footprints,
                                  llvm::ArrayRef<TensorView> arguments) {
  for (auto [argument, view, footprint] :
       llvm::zip_equal(manifest.arguments, arguments, footprints)) {
    if (footprint.bytes > 0 && !view.data)
      return llvm::createStringError("argument '" + argument.name +
                                     "' has no memory: its address is null");
    const auto address = reinterpret_cast<uintptr_t>(view.data);
    if (argument.isTensor && address % getByteSize(argument.dtype) != 0)
      return llvm::createStringError("argument '" + argument.name +
                                     "': its address is no multiple of " +
                                     llvm::Twine(getByteSize(argument.dtype)) +
                                     ", the size of an element");
  }
  return checkOverlaps(manifest, footprints, arguments);
}

/// Whether what the plan's pre-pass finds out follows from the plan alone.
static bool readsNoArguments(const BoundPlan &plan) {
  for (auto [step, target] : llvm::zip_equal(plan.steps, plan.targets))
    if (step.isPrepass &&
        llvm::any_of(target.parameters, [](const BoundPlan::Parameter &param) {
          return param.scalar || (param.buffer && param.buffer->argument);
        }))
      return false;
  return true;
}

/// Where the tensors lie that the plan's pre-pass reads.
static llvm::SmallVector<DeviceAddress, 8>
getPrepassAddresses(const BoundPlan &plan,
                    llvm::ArrayRef<TensorView> arguments) {
  llvm::SmallVector<DeviceAddress, 8> addresses;
  for (auto [step, target] : llvm::zip_equal(plan.steps, plan.targets))
    if (step.isPrepass)
      for (const BoundPlan::Parameter &parameter : target.parameters)
        if (parameter.buffer && parameter.buffer->argument)
          addresses.push_back(reinterpret_cast<DeviceAddress>(
              arguments[*parameter.buffer->argument].data));
  return addresses;
}

llvm::Error
Launcher::checkSequences(const BoundPlan &plan, Stream stream,
                         llvm::ArrayRef<TensorView> arguments) const {
  Device &device = executable.getDevice();
  llvm::Expected<bool> isCapturing = device.isCapturing(stream);
  if (!isCapturing)
    return isCapturing.takeError();
  if (*isCapturing)
    return llvm::createStringError(
        "ATTNC_CHECK_INPUTS can't check a launch that is being captured");
  // What computes the numbers may still be under way.
  if (llvm::Error error = device.synchronize(stream))
    return error;
  auto read = [&](unsigned argument) -> llvm::Expected<Tensor> {
    const TensorView &view = arguments[argument];
    const Tensor there =
        Tensor::borrow(view.dtype, view.shape, view.strides, view.data);
    const int64_t count = there.getFootprintBytes() / getByteSize(view.dtype);
    llvm::Expected<Tensor> here = Tensor::allocate(view.dtype, {count});
    if (!here)
      return here.takeError();
    if (llvm::Error error = device.download(
            here->getData(), reinterpret_cast<DeviceAddress>(view.data),
            there.getFootprintBytes()))
      return std::move(error);
    return here->withView(view.shape, view.strides);
  };
  return attn::checkSequences(executable.getManifest(), plan, read);
}

llvm::Error Launcher::launch(Stream stream,
                             llvm::ArrayRef<TensorView> arguments,
                             const LaunchOptions &options) {
  llvm::Expected<std::shared_ptr<Plan>> plan = getPlan(arguments);
  if (!plan)
    return plan.takeError();
  if (llvm::Error error = checkAddresses(executable.getManifest(),
                                         (*plan)->footprints, arguments))
    return error;
  const BoundPlan &bound = (*plan)->bound;
  if (state->checksSequences)
    if (llvm::Error error = checkSequences(bound, stream, arguments))
      return error;
  if (bound.arenaBytes == 0)
    return enqueue(**plan, nullptr, stream, arguments, /*hasPrepass=*/false);
  llvm::Expected<Workspace *> workspace = getWorkspace(stream);
  if (!workspace)
    return workspace.takeError();
  std::lock_guard<std::mutex> lock((*workspace)->mutex);
  if (llvm::Error error = grow(**workspace, bound, stream))
    return error;
  llvm::SmallVector<DeviceAddress, 8> read =
      getPrepassAddresses(bound, arguments);
  const bool isUnchanged = options.capturesUnchanged || readsNoArguments(bound);
  const bool hasPrepass = isUnchanged && (*workspace)->lastPlan == *plan &&
                          (*workspace)->lastRead == read;
  // Until all is enqueued, nothing is known.
  (*workspace)->lastPlan = nullptr;
  if (llvm::Error error =
          enqueue(**plan, *workspace, stream, arguments, hasPrepass))
    return error;
  (*workspace)->lastPlan = *plan;
  (*workspace)->lastRead = std::move(read);
  return llvm::Error::success();
}
