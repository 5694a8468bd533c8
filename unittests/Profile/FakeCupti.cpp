//===- FakeCupti.cpp - A CUPTI that has seen one call of a region ---------===//
//
// A library with CUPTI's interface, for machines without a GPU: a flush hands
// over the records of one upload, one memset, one copy and one kernel of a
// mangled name, each with its call, and calls that launch nothing.
//
//===----------------------------------------------------------------------===//

#include "../../lib/Profile/CuptiABI.h"
#include <cstring>

using namespace attn::cupti;

static BufferRequested requestBuffer;
static BufferCompleted completeBuffer;
static uint64_t now = 1000;
static bool wasFlushed = false;

namespace {

/// Writes records one after the other, as long as the real ones: longer than
/// what is declared of them.
class Buffer {
public:
  Buffer() { requestBuffer(&data, &size, &maxRecords); }
  template <typename Record>
  void add(const Record &record) {
    std::memcpy(data + used, &record, sizeof(record));
    used += kStride;
  }
  void complete() { completeBuffer(nullptr, 0, data, size, used); }

  static constexpr size_t kStride = 256;

private:
  uint8_t *data = nullptr;
  size_t size = 0, maxRecords = 0, used = 0;
};

} // namespace

static ActivityAPI makeCall(ActivityKind kind, uint32_t cbid, uint64_t start,
                            uint64_t end, uint32_t correlation) {
  ActivityAPI call = {};
  call.kind = kind;
  call.cbid = cbid;
  call.start = start;
  call.end = end;
  call.threadId = 42;
  call.correlationId = correlation;
  return call;
}

static ActivityMemcpy makeCopy(MemcpyKind kind, uint64_t start,
                               uint32_t correlation) {
  ActivityMemcpy copy = {};
  copy.kind = ACTIVITY_KIND_MEMCPY;
  copy.copyKind = kind;
  copy.bytes = 4096;
  copy.start = start;
  copy.end = start + 100;
  copy.streamId = 7;
  copy.correlationId = correlation;
  return copy;
}

static ActivityKernel makeKernel() {
  ActivityKernel kernel = {};
  kernel.kind = ACTIVITY_KIND_CONCURRENT_KERNEL;
  kernel.name = "_Z6kernelIfEvPT_";
  kernel.registersPerThread = 255;
  kernel.start = 2400;
  kernel.end = 2900;
  kernel.streamId = 7;
  kernel.gridX = 10, kernel.gridY = 2, kernel.gridZ = 1;
  kernel.blockX = 128, kernel.blockY = kernel.blockZ = 1;
  kernel.staticSharedMemory = 16;
  kernel.dynamicSharedMemory = 65536;
  kernel.localMemoryPerThread = 8;
  kernel.correlationId = 4;
  // No cluster.
  kernel.clusterX = kernel.clusterY = kernel.clusterZ = 0;
  return kernel;
}

extern "C" {

Result cuptiGetVersion(uint32_t *version) {
  *version = 130000;
  return SUCCESS;
}
Result cuptiGetResultString(Result, const char **text) {
  *text = "CUPTI_ERROR_FAKE";
  return SUCCESS;
}
Result cuptiGetTimestamp(uint64_t *timestamp) {
  *timestamp = now++;
  return SUCCESS;
}
Result cuptiGetCallbackName(uint32_t domain, uint32_t cbid, const char **name) {
  if (cbid == 0)
    return 1;
  *name = domain == CB_DOMAIN_DRIVER_API ? "cuLaunchKernel" : "cudaLaunch";
  return SUCCESS;
}
Result cuptiActivityRegisterCallbacks(BufferRequested requested,
                                      BufferCompleted completed) {
  requestBuffer = requested;
  completeBuffer = completed;
  return SUCCESS;
}
Result cuptiActivityEnable(ActivityKind) { return SUCCESS; }
Result cuptiActivityDisable(ActivityKind) { return SUCCESS; }
Result cuptiActivityFlushAll(uint32_t) {
  if (wasFlushed)
    return SUCCESS;
  wasFlushed = true;
  Buffer buffer;
  // The driver's call within the runtime's, whichever comes first.
  buffer.add(makeCall(ACTIVITY_KIND_DRIVER, 307, 2310, 2350, 4));
  buffer.add(makeCall(ACTIVITY_KIND_RUNTIME, 211, 2300, 2360, 4));
  buffer.add(makeCall(ACTIVITY_KIND_DRIVER, 0, 2000, 2010, 1));
  buffer.add(makeCall(ACTIVITY_KIND_DRIVER, 5, 2500, 2510, 99));
  buffer.add(makeCopy(ACTIVITY_MEMCPY_KIND_HTOD, 2050, 1));
  ActivityMemset memset = {};
  memset.kind = ACTIVITY_KIND_MEMSET;
  memset.bytes = 64;
  memset.start = 2150;
  memset.end = 2160;
  memset.streamId = 7;
  memset.correlationId = 2;
  buffer.add(memset);
  buffer.add(makeCopy(ACTIVITY_MEMCPY_KIND_DTOD, 2200, 3));
  buffer.add(makeKernel());
  // A record of a kind that nobody asked for.
  Activity other = {static_cast<ActivityKind>(33)};
  buffer.add(other);
  buffer.complete();
  return SUCCESS;
}
Result cuptiActivityGetNextRecord(uint8_t *buffer, size_t size,
                                  Activity **record) {
  auto *next = reinterpret_cast<uint8_t *>(*record);
  next = next ? next + Buffer::kStride : buffer;
  if (next + Buffer::kStride > buffer + size)
    return 12;
  *record = reinterpret_cast<Activity *>(next);
  return SUCCESS;
}
Result cuptiActivityGetNumDroppedRecords(void *, uint32_t, size_t *dropped) {
  *dropped = 3;
  return SUCCESS;
}
/// As if another tool had subscribed.
Result cuptiSubscribe(void **, Callback, void *) { return 39; }
Result cuptiEnableCallback(uint32_t, void *, uint32_t, uint32_t) { return 1; }
Result cuptiUnsubscribe(void *) { return 1; }
}
