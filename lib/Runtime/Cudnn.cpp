//===- Cudnn.cpp - Kernels that cuDNN brings ------------------------------===//

#include "Cudnn.h"
#include "CudnnGraph.h"
#include "GpuKernel.h"
#include "attn/Runtime/HostWork.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include <deque>
#include <dlfcn.h>
#include <map>
#include <vector>

using namespace attn;

/// The first whose frontend knows what we ask for.
static constexpr size_t kMinVersion = 90000;

/// Of a kernel that are kept.
static constexpr size_t kMaxPlans = 64;

/// Of addresses, and of the strides of 16-bit tensors: what cuDNN is told.
static constexpr int64_t kAlignment = 16;

//===----------------------------------------------------------------------===//
// The library
//===----------------------------------------------------------------------===//

static llvm::SmallVector<std::string> getCudaFolders() {
  llvm::SmallVector<std::string> folders;
  for (const char *variable : {"CUDA_HOME", "CUDA_PATH"})
    if (std::optional<std::string> root = llvm::sys::Process::GetEnv(variable))
      for (const char *folder : {"/lib64/", "/lib/"})
        folders.push_back(*root + folder);
  folders.push_back("/usr/local/cuda/lib64/");
  folders.push_back("/usr/local/cuda/lib/");
  return folders;
}

/// The first of `candidates` that a loader takes.
static void *openFirst(llvm::ArrayRef<std::string> candidates) {
  for (const std::string &candidate : candidates)
    if (void *library = dlopen(candidate.c_str(), RTLD_NOW | RTLD_GLOBAL))
      return library;
  return nullptr;
}

/// cudnn-frontend looks the CUDA runtime up by its name, which a loader finds
/// where that is loaded already.
static void openCudaRuntime(void *cudnn) {
  const std::string name = cudnn::getRuntimeName();
  llvm::SmallVector<std::string> candidates = {name};
  // Beside cuDNN, in Python's packages.
  Dl_info info;
  if (void *symbol = dlsym(cudnn, "cudnnGetVersion"); dladdr(symbol, &info)) {
    const llvm::StringRef folder = llvm::sys::path::parent_path(info.dli_fname);
    for (const char *place :
         {"/", "/../../cu13/lib/", "/../../cuda_runtime/lib/"})
      candidates.push_back((folder + place + name).str());
  }
  for (const std::string &folder : getCudaFolders())
    candidates.push_back(folder + name);
  openFirst(candidates);
}

static std::string loadCudnn() {
  if (std::string missing = cudnn::getMissingSupport(); !missing.empty())
    return missing;
  llvm::SmallVector<std::string> candidates;
  if (std::optional<std::string> path =
          llvm::sys::Process::GetEnv("ATTNC_CUDNN")) {
    candidates = {*path};
  } else {
    candidates = {"libcudnn.so.9"};
    for (const std::string &folder : getCudaFolders())
      candidates.push_back(folder + "libcudnn.so.9");
  }
  void *library = openFirst(candidates);
  if (!library) {
    const char *reason = dlerror();
    return std::string("libcudnn.so.9 was not found: set ATTNC_CUDNN to its "
                       "path (torch brings one in nvidia/cudnn/lib) (") +
           (reason ? reason : "") + ")";
  }
  if (!dlsym(library, "cudnnGetVersion"))
    return candidates.front() + " is not cuDNN";
  openCudaRuntime(library);
  cudnn::setLibrary(library);
  const size_t version = cudnn::getVersion();
  if (version < kMinVersion)
    return "cuDNN is too old: its version is " + std::to_string(version) +
           ", needed is " + std::to_string(kMinVersion) + " or later";
  return "";
}

/// Empty if cuDNN is there.
static const std::string &getLoadFailure() {
  // Once a process.
  static const std::string failure = loadCudnn();
  return failure;
}

llvm::Error attn::checkCudnn() {
  const std::string &failure = getLoadFailure();
  return failure.empty() ? llvm::Error::success()
                         : llvm::createStringError(failure);
}

std::string attn::getCudnnVersion() {
  if (!getLoadFailure().empty())
    return "";
  const size_t version = cudnn::getVersion();
  return std::to_string(version / 10000) + "." +
         std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

llvm::Expected<std::unique_ptr<CudnnContext>>
CudnnContext::create(const cuda::Driver &driver, cuda::CUcontext context) {
  if (llvm::Error error = checkCudnn())
    return std::move(error);
  std::string error;
  void *handle = cudnn::createHandle(error);
  if (!handle)
    return llvm::createStringError("cuDNN: " + error);
  return std::unique_ptr<CudnnContext>(
      new CudnnContext(driver, context, handle));
}

CudnnContext::~CudnnContext() { cudnn::destroyHandle(handle); }

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

namespace {

/// What one call asks for.
struct Call {
  cudnn::Problem problem;
  cudnn::Addresses addresses;
};

/// Reads the parameters that CudnnKernel.h lists.
class ParameterReader {
public:
  explicit ParameterReader(llvm::ArrayRef<void *> params) : params(params) {}

  /// Whether there are as many as the flags say.
  bool isComplete() const;
  Call read();
  /// All values but the addresses, as bytes: what a plan depends on.
  llvm::StringRef getKey() const { return key; }

private:
  template <typename T>
  T next() {
    const T value = *static_cast<const T *>(params[position++]);
    key.append(
        llvm::StringRef(reinterpret_cast<const char *>(&value), sizeof(value)));
    return value;
  }
  void *nextAddress() {
    return *static_cast<void *const *>(params[position++]);
  }
  /// With `rank` sizes; trailing ones of 1 are added.
  void *readTensor(unsigned rank, cudnn::TensorShape &shape);

  llvm::ArrayRef<void *> params;
  size_t position = 0;
  llvm::SmallString<512> key;
};

/// One attention; plans are made for the sizes and strides that come.
class CudnnKernel : public GpuKernel {
public:
  CudnnKernel(CudnnContext &context, Device &device)
      : context(context), device(device) {}
  ~CudnnKernel() override;

  llvm::Error launch(int64_t grid, llvm::MutableArrayRef<void *> params,
                     Stream stream) override;
  llvm::Error prepare(llvm::ArrayRef<void *> params) override;

private:
  struct Plan {
    std::unique_ptr<cudnn::Graph> graph;
    /// As many queries as there are, for each batch: cuDNN wants them where
    /// keys have lengths.
    DeviceMemory queryLengths;
    /// By stream: launches on one run one after the other.
    std::map<uint64_t, DeviceMemory> workspaces;
    /// Of captured launches, a workspace each.
    std::vector<DeviceMemory> capturedWorkspaces;
    /// Graphs that hold it may be replayed as long as the kernel lives.
    bool isCaptured = false;
  };

  llvm::Expected<Plan *>
  getPlan(llvm::StringRef key, const cudnn::Problem &problem, bool isCapturing);
  llvm::Expected<std::unique_ptr<Plan>> makePlan(const cudnn::Problem &problem);
  llvm::Error evictPlan();
  llvm::Expected<DeviceAddress> getWorkspace(Plan &plan, Stream stream,
                                             bool isCapturing);
  llvm::Error fillOutputs(const Call &call, Stream stream);

  CudnnContext &context;
  Device &device;
  // With the context's mutex:
  llvm::StringMap<std::unique_ptr<Plan>> plans;
  /// The keys, oldest first.
  std::deque<std::string> order;
  /// Evicted, but captured.
  std::vector<std::unique_ptr<Plan>> captured;
};

class CudnnModule : public LoadedModule {
public:
  CudnnModule(CudnnContext &context, Device &device)
      : context(context), device(device) {}

  llvm::Expected<std::unique_ptr<LoadedKernel>>
  getKernel(const Kernel &kernel) override;

private:
  CudnnContext &context;
  Device &device;
};

} // namespace

void *ParameterReader::readTensor(unsigned rank, cudnn::TensorShape &shape) {
  void *address = nextAddress();
  shape.sizes.fill(1);
  shape.strides.fill(1);
  for (unsigned dim = 0; dim < rank; ++dim)
    shape.sizes[dim] = next<int32_t>();
  for (unsigned dim = 0; dim + 1 < rank; ++dim)
    shape.strides[dim] = next<int64_t>();
  return address;
}

bool ParameterReader::isComplete() const {
  if (params.size() < CudnnNumParameters)
    return false;
  const int32_t flags = *static_cast<const int32_t *>(params[CudnnFlags]);
  // An address, sizes, and one stride less.
  auto count = [](unsigned rank) { return 2 * rank; };
  return params.size() == CudnnNumParameters + 4 * count(4) +
                              (flags & CudnnHasLse ? count(3) : 0) +
                              (flags & CudnnHasBias ? count(4) : 0) +
                              (flags & CudnnHasLengths ? count(1) : 0);
}

Call ParameterReader::read() {
  int32_t values[CudnnNumParameters];
  for (int32_t &value : values)
    value = next<int32_t>();
  auto getBound = [&](CudnnParameter parameter) {
    return values[parameter] == kCudnnUnbounded
               ? std::nullopt
               : std::optional<int32_t>(values[parameter]);
  };
  const int32_t flags = values[CudnnFlags];
  Call call = {};
  cudnn::Problem &problem = call.problem;
  problem.dtype = static_cast<DType>(values[CudnnDType]);
  problem.biasDType = static_cast<DType>(values[CudnnBiasDType]);
  problem.scale = llvm::bit_cast<float>(values[CudnnScale]);
  problem.left = getBound(CudnnLeft);
  problem.right = getBound(CudnnRight);
  problem.isBottomRight = flags & CudnnBottomRight;
  call.addresses.q = readTensor(4, problem.q);
  call.addresses.k = readTensor(4, problem.k);
  call.addresses.v = readTensor(4, problem.v);
  call.addresses.o = readTensor(4, problem.o);
  if (flags & CudnnHasLse)
    call.addresses.lse = readTensor(3, problem.lse.emplace());
  if (flags & CudnnHasBias) {
    cudnn::TensorShape &bias = problem.bias.emplace();
    call.addresses.bias = readTensor(4, bias);
    // It may be larger than what is read of it.
    bias.sizes = {flags & CudnnBiasOfAllBatches ? 1 : problem.q.sizes[0],
                  flags & CudnnBiasOfAllHeads ? 1 : problem.q.sizes[1],
                  problem.q.sizes[2], problem.k.sizes[2]};
  }
  problem.hasLengths = flags & CudnnHasLengths;
  if (problem.hasLengths) {
    cudnn::TensorShape shape;
    call.addresses.keyLengths = readTensor(1, shape);
  }
  return call;
}

static llvm::Error getAlignmentError(llvm::StringRef name,
                                     const llvm::Twine &what) {
  return llvm::createStringError("cuDNN can't access '" + name + "': " + what);
}

static llvm::Error checkStrides(const cudnn::Problem &problem) {
  const std::pair<const char *, const cudnn::TensorShape *> tensors[] = {
      {"q", &problem.q},
      {"k", &problem.k},
      {"v", &problem.v},
      {"o", &problem.o}};
  for (auto [name, shape] : tensors)
    for (unsigned dim = 0; dim < 3; ++dim) {
      const int64_t bytes = shape->strides[dim] * getByteSize(problem.dtype);
      if (shape->sizes[dim] > 1 && bytes % kAlignment != 0)
        return getAlignmentError(
            name, "the stride of dimension " + llvm::Twine(dim) + " is " +
                      llvm::Twine(bytes) + " bytes, no multiple of " +
                      llvm::Twine(kAlignment));
    }
  return llvm::Error::success();
}

/// Elements of a tensor; none if others lie between them.
static std::optional<int64_t> countDense(const cudnn::TensorShape &shape) {
  llvm::SmallVector<std::pair<int64_t, int64_t>, 4> dims;
  for (auto [size, stride] : llvm::zip_equal(shape.sizes, shape.strides))
    if (size != 1)
      dims.push_back({stride, size});
  llvm::sort(dims);
  int64_t count = 1;
  for (auto [stride, size] : dims) {
    if (stride != count)
      return std::nullopt;
    count *= size;
  }
  return count;
}

/// cuDNN writes nothing for a sequence without keys: what it leaves must be
/// there before.
llvm::Error CudnnKernel::fillOutputs(const Call &call, Stream stream) {
  const cudnn::Problem &problem = call.problem;
  const std::optional<int64_t> numElements = countDense(problem.o);
  const std::optional<int64_t> numRows =
      problem.lse ? countDense(*problem.lse) : 0;
  if (!numElements || !numRows)
    return llvm::createStringError(
        "cuDNN needs " + llvm::StringRef(numElements ? "lse" : "o") +
        " without gaps where keys have lengths, as it writes nothing for a "
        "sequence without keys; pass a contiguous one, or choose the backend "
        "fused");
  auto fill = [&](void *address, uint32_t bits, int64_t words) -> llvm::Error {
    if (words == 0)
      return llvm::Error::success();
    return context.driver.check(
        context.driver.MemsetD32Async(
            reinterpret_cast<cuda::CUdeviceptr>(address), bits, words,
            static_cast<cuda::CUstream>(stream.handle)),
        "cuMemsetD32Async");
  };
  // A row of 16-bit elements has 16 bytes or more.
  const int64_t words = *numElements * getByteSize(problem.dtype) / 4;
  if (llvm::Error error = fill(call.addresses.o, 0, words))
    return error;
  constexpr uint32_t kMinusInfinity = 0xFF800000;
  return fill(call.addresses.lse, kMinusInfinity, *numRows);
}

static llvm::Error checkAddresses(const cudnn::Addresses &addresses) {
  const std::pair<const char *, const void *> tensors[] = {
      {"q", addresses.q}, {"k", addresses.k},     {"v", addresses.v},
      {"o", addresses.o}, {"lse", addresses.lse}, {"bias", addresses.bias}};
  for (auto [name, address] : tensors)
    if (const auto bits = reinterpret_cast<uintptr_t>(address);
        bits % kAlignment != 0)
      return getAlignmentError(
          name, "its base lies " + llvm::Twine(bits % kAlignment) +
                    " bytes past a multiple of " + llvm::Twine(kAlignment));
  return llvm::Error::success();
}

llvm::Expected<std::unique_ptr<CudnnKernel::Plan>>
CudnnKernel::makePlan(const cudnn::Problem &problem) {
  HostWorkTimer timer(HostWork::Plan);
  auto plan = std::make_unique<Plan>();
  std::string error;
  plan->graph = cudnn::buildGraph(context.handle, problem, error);
  if (!plan->graph)
    return llvm::createStringError("cuDNN " + getCudnnVersion() +
                                   " can't compute this: " + error);
  if (problem.hasLengths) {
    const std::vector<int32_t> lengths(problem.q.sizes[0], problem.q.sizes[2]);
    const int64_t bytes = lengths.size() * sizeof(int32_t);
    auto memory = DeviceMemory::allocate(device, bytes);
    if (!memory)
      return memory.takeError();
    plan->queryLengths = std::move(*memory);
    if (llvm::Error error = device.upload(plan->queryLengths.getAddress(),
                                          lengths.data(), bytes))
      return std::move(error);
  }
  timer.finish("cuDNN's graph");
  return plan;
}

llvm::Error CudnnKernel::evictPlan() {
  // Launches with its workspaces may be under way.
  if (llvm::Error error = device.synchronizeAll())
    return error;
  auto oldest = plans.find(order.front());
  if (oldest->second->isCaptured)
    captured.push_back(std::move(oldest->second));
  plans.erase(oldest);
  order.pop_front();
  return llvm::Error::success();
}

llvm::Expected<CudnnKernel::Plan *>
CudnnKernel::getPlan(llvm::StringRef key, const cudnn::Problem &problem,
                     bool isCapturing) {
  if (auto found = plans.find(key); found != plans.end())
    return found->second.get();
  if (llvm::Error error = checkStrides(problem))
    return std::move(error);
  cuda::ScopedRelaxedCapture relaxed(context.driver);
  llvm::Expected<std::unique_ptr<Plan>> plan = makePlan(problem);
  if (!plan)
    return plan.takeError();
  // Waiting would end the capture.
  if (plans.size() >= kMaxPlans && !isCapturing)
    if (llvm::Error error = evictPlan())
      return std::move(error);
  order.push_back(key.str());
  return (plans[key] = std::move(*plan)).get();
}

llvm::Expected<DeviceAddress>
CudnnKernel::getWorkspace(Plan &plan, Stream stream, bool isCapturing) {
  const int64_t bytes = plan.graph->getWorkspaceBytes();
  if (bytes == 0)
    return 0;
  DeviceMemory *memory;
  if (isCapturing) {
    memory = &plan.capturedWorkspaces.emplace_back();
  } else {
    llvm::Expected<uint64_t> id = device.getStreamId(stream);
    if (!id)
      return id.takeError();
    memory = &plan.workspaces[*id];
  }
  if (memory->getAddress())
    return memory->getAddress();
  auto allocated = DeviceMemory::allocate(device, bytes);
  if (!allocated)
    return allocated.takeError();
  *memory = std::move(*allocated);
  return memory->getAddress();
}

static llvm::Error getParameterError() {
  return llvm::createStringError("the plan doesn't call '" + kCudnnKernelName +
                                 "' as it is defined");
}

llvm::Error CudnnKernel::prepare(llvm::ArrayRef<void *> params) {
  ParameterReader reader(params);
  if (!reader.isComplete())
    return getParameterError();
  const Call call = reader.read();
  cuda::ScopedContext scope(context.driver, context.context);
  std::lock_guard<std::mutex> lock(context.mutex);
  return getPlan(reader.getKey(), call.problem, /*isCapturing=*/false)
      .takeError();
}

llvm::Error CudnnKernel::launch(int64_t, llvm::MutableArrayRef<void *> params,
                                Stream stream) {
  ParameterReader reader(params);
  if (!reader.isComplete())
    return getParameterError();
  Call call = reader.read();
  if (llvm::Error error = checkAddresses(call.addresses))
    return error;
  llvm::Expected<bool> isCapturing = device.isCapturing(stream);
  if (!isCapturing)
    return isCapturing.takeError();
  std::lock_guard<std::mutex> lock(context.mutex);
  llvm::Expected<Plan *> plan =
      getPlan(reader.getKey(), call.problem, *isCapturing);
  if (!plan)
    return plan.takeError();
  (*plan)->isCaptured |= *isCapturing;
  call.addresses.queryLengths =
      reinterpret_cast<void *>((*plan)->queryLengths.getAddress());
  llvm::Expected<DeviceAddress> workspace =
      getWorkspace(**plan, stream, *isCapturing);
  if (!workspace)
    return workspace.takeError();
  if (call.problem.hasLengths)
    if (llvm::Error error = fillOutputs(call, stream))
      return error;
  std::string error = cudnn::setStream(context.handle, stream.handle);
  if (error.empty())
    error = (*plan)->graph->execute(context.handle, call.addresses,
                                    reinterpret_cast<void *>(*workspace));
  return error.empty() ? llvm::Error::success()
                       : llvm::createStringError("cuDNN: " + error);
}

/// cuDNN unloads the plans' code.
CudnnKernel::~CudnnKernel() {
  cuda::ScopedContext scope(context.driver, context.context);
  std::lock_guard<std::mutex> lock(context.mutex);
  plans.clear();
  captured.clear();
}

llvm::Expected<std::unique_ptr<LoadedKernel>>
CudnnModule::getKernel(const Kernel &kernel) {
  if (kernel.name != kCudnnKernelName)
    return llvm::createStringError("cuDNN brings no kernel '" + kernel.name +
                                   "'");
  return std::make_unique<CudnnKernel>(context, device);
}

std::unique_ptr<LoadedModule> attn::createCudnnModule(CudnnContext &context,
                                                      Device &device) {
  return std::make_unique<CudnnModule>(context, device);
}
