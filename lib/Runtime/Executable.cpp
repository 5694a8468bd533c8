//===- Executable.cpp - A manifest and its code, ready to run -------------===//

#include "attn/Runtime/Executable.h"
#include "attn/Runtime/HostWork.h"
#include "attn/Runtime/SequenceChecks.h"
#include "attn/Runtime/TensorMaps.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"
#include <cassert>
#include <cstring>
#include <mutex>

using namespace attn;

/// As cuMemAlloc gives; keeps an argument's alignment in the host's memory
/// visible on the device (see getPlacementOffset).
static constexpr int64_t kArgumentAlignment = 256;

/// 128-bit loads, cp.async and TMA want this.
static constexpr int64_t kWideLoadAlignment = 16;

/// Memory that must pass between two uses of the same data for the cache not to
/// help.
static constexpr int64_t kCacheFactor = 2;

static constexpr uint8_t kPoison = 0xFF;

//===----------------------------------------------------------------------===//
// Executable
//===----------------------------------------------------------------------===//

KernelSource::~KernelSource() = default;

/// What is on the device, by part and kernel; null until it is loaded. A kernel
/// that is there stays as it is: whoever prepared it reads it without the lock.
struct Executable::Loaded {
  std::mutex mutex;
  std::vector<std::unique_ptr<LoadedModule>> modules;
  std::vector<std::unique_ptr<LoadedKernel>> kernels;
};

Executable::Executable(Manifest manifest, std::shared_ptr<KernelSource> source,
                       unsigned numParts, Device &device)
    : manifest(std::move(manifest)), source(std::move(source)), device(device),
      loaded(std::make_unique<Loaded>()) {
  loaded->modules.resize(numParts);
  loaded->kernels.resize(this->manifest.kernels.size());
}

Executable::~Executable() = default;

llvm::Expected<std::unique_ptr<Executable>>
Executable::create(Manifest manifest, const KernelCode &code, Device &device) {
  if (llvm::Error error = device.checkTarget(manifest.target))
    return std::move(error);
  llvm::Expected<std::unique_ptr<LoadedModule>> module =
      manifest.usesCudnn() ? device.loadCudnn() : device.load(code);
  if (!module)
    return module.takeError();
  std::unique_ptr<Executable> executable(new Executable(
      std::move(manifest), /*source=*/nullptr, /*numParts=*/1, device));
  if (llvm::Error error = executable->addModule(std::move(*module), /*part=*/0))
    return std::move(error);
  return executable;
}

llvm::Expected<std::unique_ptr<Executable>>
Executable::createLazily(Manifest manifest,
                         std::shared_ptr<KernelSource> source, Device &device) {
  if (llvm::Error error = device.checkTarget(manifest.target))
    return std::move(error);
  const unsigned numParts = source->getNumParts();
  return std::unique_ptr<Executable>(
      new Executable(std::move(manifest), std::move(source), numParts, device));
}

LoadedKernel &Executable::getKernel(unsigned index) const {
  assert(loaded->kernels[index] && "the kernel must be prepared");
  return *loaded->kernels[index];
}

/// Takes the kernels of `part` out of its module.
llvm::Error Executable::addModule(std::unique_ptr<LoadedModule> module,
                                  unsigned part) const {
  std::vector<std::pair<size_t, std::unique_ptr<LoadedKernel>>> kernels;
  for (auto [index, kernel] : llvm::enumerate(manifest.kernels)) {
    if (source && source->getPart(index) != part)
      continue;
    auto found = module->getKernel(kernel);
    if (!found)
      return found.takeError();
    kernels.emplace_back(index, std::move(*found));
  }
  loaded->modules[part] = std::move(module);
  for (auto &[index, kernel] : kernels)
    loaded->kernels[index] = std::move(kernel);
  return llvm::Error::success();
}

llvm::Error Executable::loadPart(unsigned part) const {
  for (bool isRemade = false;; isRemade = true) {
    HostWorkTimer timer(HostWork::Load);
    auto module = device.load({source->getImage(part), /*lookup=*/nullptr});
    llvm::Error error =
        module ? addModule(std::move(*module), part) : module.takeError();
    if (!error) {
      timer.finish(manifest.entry);
      // What is refused, too, may be right, on a device that has failed before.
      return isRemade ? source->make(part) : llvm::Error::success();
    }
    if (llvm::Error final = source->remake(part, std::move(error)))
      return final;
  }
}

llvm::Error Executable::prepare(llvm::ArrayRef<unsigned> kernels) const {
  if (!source)
    return llvm::Error::success();
  llvm::SmallSetVector<unsigned, 8> missing;
  {
    std::lock_guard<std::mutex> lock(loaded->mutex);
    for (unsigned kernel : kernels)
      if (!loaded->kernels[kernel])
        missing.insert(source->getPart(kernel));
  }
  if (missing.empty())
    return llvm::Error::success();
  // Without the lock: launches of what is loaded don't wait for it.
  if (llvm::Error error = source->make(missing.getArrayRef()))
    return error;
  std::lock_guard<std::mutex> lock(loaded->mutex);
  for (unsigned part : missing)
    if (!loaded->modules[part])
      if (llvm::Error error = loadPart(part))
        return error;
  return llvm::Error::success();
}

llvm::Error Executable::prepare(const BoundPlan &plan) const {
  llvm::SmallVector<unsigned, 8> kernels;
  for (const TimedStep &step : plan.steps)
    if (step.kind == Step::Kind::Launch)
      kernels.push_back(step.kernel);
  return prepare(kernels);
}

llvm::Error Executable::prepare() const {
  return prepare(
      llvm::to_vector(llvm::seq<unsigned>(0, manifest.kernels.size())));
}

llvm::Expected<std::unique_ptr<Invocation>>
Executable::bind(llvm::ArrayRef<Tensor> arguments) const {
  HostWorkTimer timer(HostWork::Plan);
  llvm::Expected<BoundPlan> plan =
      BoundPlan::create(manifest, device.getNumSMs(), arguments);
  if (!plan)
    return plan.takeError();
  timer.finish(manifest.entry);
  auto read = [&](unsigned argument) -> llvm::Expected<Tensor> {
    return arguments[argument];
  };
  if (llvm::Error error = checkSequences(manifest, *plan, read))
    return std::move(error);
  if (llvm::Error error = prepare(*plan))
    return std::move(error);
  auto arena = DeviceMemory::allocate(device, plan->arenaBytes);
  if (!arena)
    return arena.takeError();
  if (plan->zeroedBytes > 0)
    if (llvm::Error error = device.memset(
            arena->getAddress(), 0, plan->zeroedBytes, device.getOwnStream()))
      return std::move(error);
  std::unique_ptr<Invocation> invocation(
      new Invocation(*this, arguments, std::move(*plan)));
  invocation->arena = std::move(*arena);
  if (llvm::Error error = invocation->addArgumentSet())
    return std::move(error);
  return invocation;
}

llvm::Error Executable::run(llvm::ArrayRef<Tensor> arguments) const {
  auto invocation = bind(arguments);
  if (!invocation)
    return invocation.takeError();
  if (llvm::Error error = (*invocation)->run())
    return error;
  return (*invocation)->downloadOutputs();
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// Where in its 256-byte line an argument starts on the device: as misaligned
/// as it is in the caller's memory, so that what runs is what was given.
static int64_t getPlacementOffset(const Tensor &tensor) {
  const auto address = reinterpret_cast<uintptr_t>(tensor.getData());
  return address % kWideLoadAlignment;
}

static int64_t getPlacedBytes(const Tensor &tensor) {
  return llvm::alignTo(getPlacementOffset(tensor) + tensor.getFootprintBytes(),
                       kArgumentAlignment);
}

int64_t Invocation::getArgumentSetBytes() const {
  int64_t bytes = 0;
  for (auto [argument, tensor] :
       llvm::zip_equal(executable.getManifest().arguments, arguments))
    if (argument.isTensor)
      bytes += getPlacedBytes(tensor);
  return bytes;
}

llvm::Expected<Invocation::ArgumentSet> Invocation::placeArguments() const {
  ArgumentSet set;
  auto memory =
      DeviceMemory::allocate(executable.getDevice(), getArgumentSetBytes());
  if (!memory)
    return memory.takeError();
  set.memory = std::move(*memory);
  DeviceAddress next = set.memory.getAddress();
  for (auto [argument, tensor] :
       llvm::zip_equal(executable.getManifest().arguments, arguments)) {
    if (!argument.isTensor) {
      set.addresses.push_back(0);
      continue;
    }
    set.addresses.push_back(next + getPlacementOffset(tensor));
    next += getPlacedBytes(tensor);
  }
  return set;
}

llvm::Error Invocation::addArgumentSet() {
  llvm::Expected<ArgumentSet> set = placeArguments();
  if (!set)
    return set.takeError();
  // What can't be read needs no upload.
  if (llvm::Error error = setParameters(*set))
    return error;
  for (auto [argument, tensor, address] : llvm::zip_equal(
           executable.getManifest().arguments, arguments, set->addresses))
    // Outputs are uploaded as well: with strides, they may have gaps that the
    // download must give back as they were.
    if (argument.isTensor)
      if (llvm::Error error = executable.getDevice().upload(
              address, tensor.getData(), tensor.getFootprintBytes()))
        return error;
  argumentSets.push_back(std::move(*set));
  return llvm::Error::success();
}

llvm::Error Invocation::setParameters(ArgumentSet &set) const {
  for (const BoundPlan::StepTarget &target : plan.targets) {
    std::vector<uint64_t> &values = set.parameters.emplace_back();
    std::vector<EncodedTensorMap> &maps = set.tensorMaps.emplace_back();
    for (const BoundPlan::Parameter &parameter : target.parameters) {
      values.push_back(getValue(parameter, set));
      if (!parameter.map)
        continue;
      auto map =
          encodeTensorMap(executable.getDevice(), executable.getManifest(),
                          parameter, values.back());
      if (!map)
        return map.takeError();
      maps.push_back(*map);
    }
  }
  return llvm::Error::success();
}

uint64_t Invocation::getValue(const BoundPlan::Parameter &parameter,
                              const ArgumentSet &set) const {
  if (parameter.buffer)
    return resolve(*parameter.buffer, set);
  if (!parameter.scalar)
    return parameter.value;
  const Tensor &scalar = arguments[*parameter.scalar];
  return getScalarBits(scalar.getDType(), scalar.getData());
}

DeviceAddress Invocation::resolve(const BoundPlan::BufferRef &buffer,
                                  const ArgumentSet &set) const {
  const DeviceAddress base =
      buffer.argument ? set.addresses[*buffer.argument] : arena.getAddress();
  return base + buffer.offset;
}

std::vector<std::string> Invocation::getMisalignedArguments() const {
  std::vector<std::string> names;
  for (auto [argument, tensor] :
       llvm::zip_equal(executable.getManifest().arguments, arguments))
    if (argument.isTensor && getPlacementOffset(tensor) != 0)
      names.push_back(argument.name);
  return names;
}

llvm::Error Invocation::poisonOutputs() {
  for (auto [argument, tensor, address] :
       llvm::zip_equal(executable.getManifest().arguments, arguments,
                       argumentSets.front().addresses))
    if (argument.isOutput && tensor.getFootprintBytes() > 0)
      if (llvm::Error error = executable.getDevice().memset(
              address, kPoison, tensor.getFootprintBytes(),
              executable.getDevice().getOwnStream()))
        return error;
  return llvm::Error::success();
}

/// Copies the elements of `tensor`, and only those, out of `bytes`, which holds
/// its whole footprint.
static void scatter(llvm::ArrayRef<char> bytes, const Tensor &tensor) {
  const char *base = static_cast<const char *>(tensor.getData());
  const int64_t size = getByteSize(tensor.getDType());
  tensor.forEachElement([&](void *element) {
    const int64_t offset = static_cast<const char *>(element) - base;
    std::memcpy(element, bytes.data() + offset, size);
  });
}

llvm::Error Invocation::downloadOutputs() {
  Device &device = executable.getDevice();
  for (auto [argument, tensor, address] :
       llvm::zip_equal(executable.getManifest().arguments, arguments,
                       argumentSets.front().addresses)) {
    if (!argument.isOutput)
      continue;
    const int64_t bytes = tensor.getFootprintBytes();
    if (tensor.isRowMajor()) {
      if (llvm::Error error = device.download(tensor.getData(), address, bytes))
        return error;
      continue;
    }
    std::vector<char> staging(bytes);
    if (llvm::Error error = device.download(staging.data(), address, bytes))
      return error;
    scatter(staging, tensor);
  }
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Execution
//===----------------------------------------------------------------------===//

llvm::Error Invocation::enqueueStep(size_t index, ArgumentSet &set) {
  Device &device = executable.getDevice();
  const TimedStep &step = plan.steps[index];
  const BoundPlan::StepTarget &target = plan.targets[index];
  if (step.kind == Step::Kind::Copy)
    return device.copy(resolve(target.destination, set),
                       resolve(target.source, set), target.size,
                       device.getOwnStream());
  if (step.kind == Step::Kind::Memset)
    return device.memset(resolve(target.destination, set), target.fill,
                         target.size, device.getOwnStream());
  llvm::SmallVector<void *, 32> params;
  auto nextMap = set.tensorMaps[index].begin();
  for (auto [value, parameter] :
       llvm::zip_equal(set.parameters[index], target.parameters))
    params.push_back(parameter.map ? static_cast<void *>(&*nextMap++) : &value);
  return device.launch(executable.getKernel(step.kernel), step.grid, params,
                       device.getOwnStream());
}

llvm::Error Invocation::enqueueForward(ArgumentSet &set) {
  for (size_t i = 0; i < plan.steps.size(); ++i)
    if (llvm::Error error = enqueueStep(i, set))
      return error;
  return llvm::Error::success();
}

llvm::Error Invocation::run() {
  if (llvm::Error error = enqueueForward(argumentSets.front()))
    return error;
  return executable.getDevice().synchronize();
}

//===----------------------------------------------------------------------===//
// Profile
//===----------------------------------------------------------------------===//

llvm::Error Invocation::prepareArgumentSets(const ProfileOptions &options) {
  if (!options.rotateArguments)
    return llvm::Error::success();
  const int64_t setBytes = std::max<int64_t>(getArgumentSetBytes(), 1);
  const int64_t cacheBytes =
      kCacheFactor * executable.getDevice().getCacheBytes();
  // One more than covers the cache: the set in use doesn't count.
  const int64_t wanted =
      std::min<int64_t>(llvm::divideCeil(cacheBytes, setBytes) + 1,
                        options.repeat + options.warmup);
  while (int64_t(argumentSets.size()) < wanted)
    if (llvm::Error error = addArgumentSet())
      return error;
  return llvm::Error::success();
}

/// Turns consecutive events into microseconds between them.
static llvm::Error readSamples(Device &device,
                               llvm::ArrayRef<std::unique_ptr<Event>> events,
                               llvm::MutableArrayRef<double> samples) {
  for (size_t i = 0; i + 1 < events.size(); ++i) {
    llvm::Expected<double> elapsed =
        device.getElapsedMicroseconds(*events[i], *events[i + 1]);
    if (!elapsed)
      return elapsed.takeError();
    samples[i] = *elapsed;
  }
  return llvm::Error::success();
}

static llvm::Error recordNew(Device &device,
                             std::vector<std::unique_ptr<Event>> &events) {
  llvm::Expected<std::unique_ptr<Event>> event = device.createEvent();
  if (!event)
    return event.takeError();
  events.push_back(std::move(*event));
  return device.record(*events.back());
}

llvm::Error Invocation::profileSteps(const ProfileOptions &options,
                                     Profile &profile) {
  Device &device = executable.getDevice();
  // Everything is enqueued before anything is waited for: a GPU that is always
  // behind hides what a launch costs on the host.
  std::vector<std::vector<std::unique_ptr<Event>>> events(options.repeat);
  for (auto [repetition, row] : llvm::enumerate(events)) {
    ArgumentSet &set = argumentSets[repetition % argumentSets.size()];
    if (llvm::Error error = recordNew(device, row))
      return error;
    for (size_t i = 0; i < plan.steps.size(); ++i) {
      if (llvm::Error error = enqueueStep(i, set))
        return error;
      if (llvm::Error error = recordNew(device, row))
        return error;
    }
  }
  if (llvm::Error error = device.synchronize())
    return error;
  profile.stepSamples.assign(plan.steps.size(),
                             std::vector<double>(options.repeat));
  std::vector<double> samples(plan.steps.size());
  for (auto [repetition, row] : llvm::enumerate(events)) {
    if (llvm::Error error = readSamples(device, row, samples))
      return error;
    for (auto [step, sample] : llvm::zip_equal(profile.stepSamples, samples))
      step[repetition] = sample;
  }
  return llvm::Error::success();
}

llvm::Error Invocation::profileForwards(const ProfileOptions &options,
                                        Profile &profile) {
  Device &device = executable.getDevice();
  std::vector<std::unique_ptr<Event>> events;
  if (llvm::Error error = recordNew(device, events))
    return error;
  for (int64_t i = 0; i < options.repeat; ++i) {
    if (llvm::Error error =
            enqueueForward(argumentSets[i % argumentSets.size()]))
      return error;
    if (llvm::Error error = recordNew(device, events))
      return error;
  }
  if (llvm::Error error = device.synchronize())
    return error;
  profile.totalSamples.resize(options.repeat);
  return readSamples(device, events, profile.totalSamples);
}

llvm::Error Invocation::enqueueForwards(int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    if (llvm::Error error =
            enqueueForward(argumentSets[i % argumentSets.size()]))
      return error;
  return llvm::Error::success();
}

llvm::Error Invocation::warmUp(const ProfileOptions &options) {
  if (llvm::Error error = prepareArgumentSets(options))
    return error;
  if (llvm::Error error = enqueueForwards(options.warmup))
    return error;
  return executable.getDevice().synchronize();
}

llvm::Expected<Profile> Invocation::profile(const ProfileOptions &options) {
  if (llvm::Error error = prepareArgumentSets(options))
    return std::move(error);
  if (llvm::Error error = enqueueForwards(options.warmup))
    return std::move(error);
  Profile profile;
  profile.isWarm = !options.rotateArguments;
  if (llvm::Error error = profileSteps(options, profile))
    return std::move(error);
  if (llvm::Error error = profileForwards(options, profile))
    return std::move(error);
  return profile;
}
