//===- Cupti.cpp - Records of everything that runs on a GPU ---------------===//

#include "Cupti.h"
#include "CuptiABI.h"
#include "attn/Profile/MachineCode.h"
#include "attn/Runtime/LibrarySymbol.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Demangle/Demangle.h"
#include "llvm/Support/Process.h"
#include <atomic>
#include <cstdlib>

using namespace attn;
using namespace attn::cupti;

/// As CUPTI's samples take.
static constexpr size_t kBufferBytes = 8 << 20;
static constexpr size_t kBufferAlignment = 8;

//===----------------------------------------------------------------------===//
// Library
//===----------------------------------------------------------------------===//

namespace {

struct Library {
#define ATTN_CUPTI_MEMBER(name, symbol, ...) Result (*name)(__VA_ARGS__);
  ATTN_CUPTI_FUNCTIONS(ATTN_CUPTI_MEMBER)
#undef ATTN_CUPTI_MEMBER

  static llvm::Expected<const Library *> get();

  llvm::Error check(Result result, llvm::StringRef call) const;
};

} // namespace

/// $ATTNC_CUPTI, where a loader finds it (torch's, once torch is imported), and
/// CUDA's folders.
static llvm::SmallVector<std::string> getCandidates() {
  if (std::optional<std::string> path =
          llvm::sys::Process::GetEnv("ATTNC_CUPTI"))
    return {*path};
  llvm::SmallVector<std::string> candidates = {
      "libcupti.so.13", "libcupti.so.12", "libcupti.so.11.8", "libcupti.so"};
  llvm::SmallVector<std::string> roots;
  for (const char *variable : {"CUDA_HOME", "CUDA_PATH"})
    if (std::optional<std::string> root = llvm::sys::Process::GetEnv(variable))
      roots.push_back(*root);
  roots.push_back("/usr/local/cuda");
  for (const std::string &root : roots)
    for (const char *folder : {"/extras/CUPTI/lib64/", "/lib64/", "/lib/"})
      candidates.push_back(root + folder + "libcupti.so");
  return candidates;
}

static llvm::Error loadSymbols(Library &library) {
  llvm::sys::DynamicLibrary handle;
  for (const std::string &candidate : getCandidates()) {
    handle = llvm::sys::DynamicLibrary::getPermanentLibrary(candidate.c_str(),
                                                            /*Err=*/nullptr);
    if (handle.isValid())
      break;
  }
  if (!handle.isValid())
    return llvm::createStringError("CUPTI was not found: set ATTNC_CUPTI to "
                                   "libcupti.so (part of CUDA; torch brings "
                                   "one in nvidia/cuda_cupti/lib)");
#define ATTN_CUPTI_LOAD(name, symbol, ...)                                     \
  if (llvm::Error error = loadSymbol(handle, "CUPTI", symbol, library.name))   \
    return error;
  ATTN_CUPTI_FUNCTIONS(ATTN_CUPTI_LOAD)
#undef ATTN_CUPTI_LOAD
  uint32_t version = 0;
  if (llvm::Error error =
          library.check(library.GetVersion(&version), "cuptiGetVersion"))
    return error;
  if (version < kMinVersion)
    return llvm::createStringError("CUPTI is too old: CUDA 11.8 or later has "
                                   "one that serves");
  return llvm::Error::success();
}

llvm::Expected<const Library *> Library::get() {
  // Once a process; the message is kept, as an Error can be taken only once.
  struct Once {
    Library library;
    std::string failure;
    Once() { failure = llvm::toString(loadSymbols(library)); }
  };
  static const Once once;
  if (!once.failure.empty())
    return llvm::createStringError(once.failure);
  return &once.library;
}

llvm::Error Library::check(Result result, llvm::StringRef call) const {
  if (result == SUCCESS)
    return llvm::Error::success();
  const char *text = nullptr;
  if (GetResultString(result, &text) != SUCCESS || !text)
    text = "unknown error";
  return llvm::createStringError(call + ": " + text);
}

//===----------------------------------------------------------------------===//
// Collector
//===----------------------------------------------------------------------===//

struct CuptiCollector::State {
  const Library &library;
  Recorder &recorder;
  void *subscriber = nullptr;
  llvm::SmallVector<ActivityKind> enabled;

  /// Calls whose kernels have not been seen yet, or are none: a driver call
  /// that launches nothing is not kept.
  struct Call {
    std::string name;
    int64_t startNs, endNs, thread;
  };
  std::mutex mutex;
  std::map<uint32_t, Call> calls;
  llvm::DenseSet<uint32_t> launched;

  State(const Library &library, Recorder &recorder)
      : library(library), recorder(recorder) {}
  llvm::Error enable();
  void disable();
  void read(uint8_t *buffer, size_t size);
  void read(const Activity &record);
  void read(const ActivityKernel &kernel);
  void read(const ActivityMemcpy &copy);
  void read(const ActivityMemset &memset);
  void read(const ActivityAPI &call);
  void readModule(llvm::StringRef cubin);
  void matchCalls();
};

/// Of this process; CUPTI's buffer callbacks have no user data.
static std::atomic<CuptiCollector::State *> active = nullptr;

/// Buffers that come after the collector has gone are freed unread.
static void giveBuffer(uint8_t **buffer, size_t *size, size_t *maxRecords) {
  *buffer = static_cast<uint8_t *>(
      std::aligned_alloc(kBufferAlignment, kBufferBytes));
  *size = *buffer ? kBufferBytes : 0;
  *maxRecords = 0;
}

static void takeBuffer(void *, uint32_t, uint8_t *buffer, size_t,
                       size_t validSize) {
  if (CuptiCollector::State *state = active)
    state->read(buffer, validSize);
  std::free(buffer);
}

static void onResource(void *userdata, uint32_t domain, uint32_t cbid,
                       const void *data) {
  if (domain != CB_DOMAIN_RESOURCE || cbid != CBID_RESOURCE_MODULE_LOADED)
    return;
  const auto *module = static_cast<const ModuleResourceData *>(
      static_cast<const ResourceData *>(data)->resourceDescriptor);
  if (module && module->pCubin)
    static_cast<CuptiCollector::State *>(userdata)->readModule(
        llvm::StringRef(module->pCubin, module->cubinSize));
}

static int64_t readCuptiClock() {
  uint64_t timestamp = 0;
  // It was there when the collector was made.
  llvm::cantFail(Library::get())->GetTimestamp(&timestamp);
  return static_cast<int64_t>(timestamp);
}

llvm::Error CuptiCollector::State::enable() {
  if (llvm::Error error = library.check(
          library.ActivityRegisterCallbacks(giveBuffer, takeBuffer),
          "cuptiActivityRegisterCallbacks"))
    return error;
  for (ActivityKind kind :
       {ACTIVITY_KIND_CONCURRENT_KERNEL, ACTIVITY_KIND_MEMCPY,
        ACTIVITY_KIND_MEMSET, ACTIVITY_KIND_DRIVER, ACTIVITY_KIND_RUNTIME}) {
    if (llvm::Error error =
            library.check(library.ActivityEnable(kind), "cuptiActivityEnable"))
      return error;
    enabled.push_back(kind);
  }
  // Without it, as when another tool has subscribed, paths come from elsewhere.
  if (library.Subscribe(&subscriber, onResource, this) != SUCCESS)
    subscriber = nullptr;
  else
    library.EnableCallback(1, subscriber, CB_DOMAIN_RESOURCE,
                           CBID_RESOURCE_MODULE_LOADED);
  return llvm::Error::success();
}

/// Afterwards no buffer comes anymore.
void CuptiCollector::State::disable() {
  for (ActivityKind kind : enabled)
    library.ActivityDisable(kind);
  if (!enabled.empty())
    library.ActivityFlushAll(ACTIVITY_FLAG_FLUSH_FORCED);
  enabled.clear();
  if (subscriber)
    library.Unsubscribe(subscriber);
  subscriber = nullptr;
}

llvm::Expected<std::unique_ptr<CuptiCollector>>
CuptiCollector::create(Recorder &recorder) {
  llvm::Expected<const Library *> library = Library::get();
  if (!library)
    return library.takeError();
  auto state = std::make_unique<State>(**library, recorder);
  State *none = nullptr;
  if (!active.compare_exchange_strong(none, state.get()))
    return llvm::createStringError("a profile is being recorded already");
  if (llvm::Error error = state->enable()) {
    state->disable();
    active = nullptr;
    return std::move(error);
  }
  recorder.setClock(readCuptiClock);
  return std::unique_ptr<CuptiCollector>(new CuptiCollector(std::move(state)));
}

CuptiCollector::CuptiCollector(std::unique_ptr<State> state)
    : state(std::move(state)) {}

CuptiCollector::~CuptiCollector() {
  state->disable();
  active = nullptr;
}

llvm::Error CuptiCollector::flush() {
  const Library &library = state->library;
  if (llvm::Error error =
          library.check(library.ActivityFlushAll(ACTIVITY_FLAG_FLUSH_FORCED),
                        "cuptiActivityFlushAll"))
    return error;
  state->matchCalls();
  size_t dropped = 0;
  if (library.ActivityGetNumDroppedRecords(nullptr, 0, &dropped) == SUCCESS &&
      dropped > 0)
    state->recorder.addNote("CUPTI dropped " + llvm::Twine(dropped) +
                            " records");
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Records
//===----------------------------------------------------------------------===//

void CuptiCollector::State::read(uint8_t *buffer, size_t size) {
  std::lock_guard<std::mutex> lock(mutex);
  Activity *record = nullptr;
  while (library.ActivityGetNextRecord(buffer, size, &record) == SUCCESS)
    read(*record);
}

void CuptiCollector::State::read(const Activity &record) {
  switch (record.kind) {
  case ACTIVITY_KIND_CONCURRENT_KERNEL:
    return read(reinterpret_cast<const ActivityKernel &>(record));
  case ACTIVITY_KIND_MEMCPY:
    return read(reinterpret_cast<const ActivityMemcpy &>(record));
  case ACTIVITY_KIND_MEMSET:
    return read(reinterpret_cast<const ActivityMemset &>(record));
  case ACTIVITY_KIND_DRIVER:
  case ACTIVITY_KIND_RUNTIME:
    return read(reinterpret_cast<const ActivityAPI &>(record));
  }
}

template <typename Record>
static DeviceRecord makeRecord(DeviceActivity activity, const Record &from) {
  DeviceRecord record = {};
  record.activity = activity;
  record.startNs = static_cast<int64_t>(from.start);
  record.endNs = static_cast<int64_t>(from.end);
  record.stream = from.streamId;
  record.correlation = from.correlationId;
  return record;
}

void CuptiCollector::State::read(const ActivityKernel &kernel) {
  LaunchConfig launch;
  launch.grid = {kernel.gridX, kernel.gridY, kernel.gridZ};
  launch.block = {kernel.blockX, kernel.blockY, kernel.blockZ};
  // 0 where the launch has no clusters.
  launch.cluster = {std::max<int64_t>(kernel.clusterX, 1),
                    std::max<int64_t>(kernel.clusterY, 1),
                    std::max<int64_t>(kernel.clusterZ, 1)};
  launch.registers = kernel.registersPerThread;
  launch.staticSharedBytes = kernel.staticSharedMemory;
  launch.dynamicSharedBytes = kernel.dynamicSharedMemory;
  launch.localBytes = kernel.localMemoryPerThread;
  const std::string name = llvm::demangle(kernel.name ? kernel.name : "?");
  recorder.add(makeRecord(DeviceActivity::Kernel, kernel), name, launch);
  launched.insert(kernel.correlationId);
}

void CuptiCollector::State::read(const ActivityMemcpy &copy) {
  struct Kind {
    MemcpyKind kind;
    DeviceActivity activity;
    const char *name;
  };
  static constexpr Kind kKinds[] = {
      {ACTIVITY_MEMCPY_KIND_HTOD, DeviceActivity::Upload, "memcpy HtoD"},
      {ACTIVITY_MEMCPY_KIND_DTOH, DeviceActivity::Download, "memcpy DtoH"},
      {ACTIVITY_MEMCPY_KIND_DTOD, DeviceActivity::Copy, "memcpy DtoD"}};
  for (const Kind &kind : kKinds) {
    if (kind.kind != copy.copyKind)
      continue;
    DeviceRecord record = makeRecord(kind.activity, copy);
    record.bytes = static_cast<int64_t>(copy.bytes);
    recorder.add(record, kind.name, std::nullopt);
    launched.insert(copy.correlationId);
  }
}

void CuptiCollector::State::read(const ActivityMemset &memset) {
  DeviceRecord record = makeRecord(DeviceActivity::Memset, memset);
  record.bytes = static_cast<int64_t>(memset.bytes);
  recorder.add(record, "memset", std::nullopt);
  launched.insert(memset.correlationId);
}

void CuptiCollector::State::read(const ActivityAPI &call) {
  const char *name = nullptr;
  const uint32_t domain = call.kind == ACTIVITY_KIND_DRIVER
                              ? CB_DOMAIN_DRIVER_API
                              : CB_DOMAIN_RUNTIME_API;
  if (library.GetCallbackName(domain, call.cbid, &name) != SUCCESS || !name)
    name = "launch";
  // A runtime call and the driver call within it have one number: the outer
  // one is what the caller waits for.
  auto [entry, isNew] = calls.try_emplace(
      call.correlationId,
      Call{name, int64_t(call.start), int64_t(call.end), call.threadId});
  if (!isNew && int64_t(call.end - call.start) >
                    entry->second.endNs - entry->second.startNs)
    entry->second = {name, int64_t(call.start), int64_t(call.end),
                     call.threadId};
}

/// Gives the recorder the calls that launched something.
void CuptiCollector::State::matchCalls() {
  std::lock_guard<std::mutex> lock(mutex);
  for (uint32_t correlation : launched) {
    auto call = calls.find(correlation);
    if (call == calls.end())
      continue;
    recorder.add(HostActivity::Launch, call->second.name, call->second.startNs,
                 call->second.endNs, correlation, call->second.thread);
  }
  calls.clear();
  launched.clear();
}

void CuptiCollector::State::readModule(llvm::StringRef cubin) {
  llvm::Expected<MatrixPaths> paths = readMatrixPaths(cubin);
  if (!paths) {
    llvm::consumeError(paths.takeError());
    return;
  }
  for (const auto &entry : *paths)
    recorder.setPath(llvm::demangle(entry.first()), entry.second,
                     "machine code");
}
