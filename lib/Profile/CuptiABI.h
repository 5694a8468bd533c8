//===- CuptiABI.h - What is used of CUPTI's interface -----------*- C++ -*-===//
//
// The few types, constants and functions of CUPTI's activity and callback APIs
// that the profiler needs, so that building asks for no CUDA. Names and numbers
// are those of cupti_activity.h and cupti_callbacks.h; records grow at their
// end only, so that these beginnings hold from CUDA 11.8 on. A unit test
// compares them with the real headers where those are found.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_PROFILE_CUPTIABI_H
#define ATTN_LIB_PROFILE_CUPTIABI_H

#include <cstddef>
#include <cstdint>

namespace attn::cupti {

using Result = int;
constexpr Result SUCCESS = 0;

/// CUPTI_API_VERSION of CUDA 11.8, the first with clusters in its records.
constexpr uint32_t kMinVersion = 18;

enum ActivityKind : uint32_t {
  ACTIVITY_KIND_MEMCPY = 1,
  ACTIVITY_KIND_MEMSET = 2,
  ACTIVITY_KIND_DRIVER = 4,
  ACTIVITY_KIND_RUNTIME = 5,
  ACTIVITY_KIND_CONCURRENT_KERNEL = 10,
};

enum MemcpyKind : uint8_t {
  ACTIVITY_MEMCPY_KIND_HTOD = 1,
  ACTIVITY_MEMCPY_KIND_DTOH = 2,
  ACTIVITY_MEMCPY_KIND_DTOD = 8,
};

constexpr uint32_t ACTIVITY_FLAG_FLUSH_FORCED = 1;

constexpr uint32_t CB_DOMAIN_DRIVER_API = 1;
constexpr uint32_t CB_DOMAIN_RUNTIME_API = 2;
constexpr uint32_t CB_DOMAIN_RESOURCE = 3;
constexpr uint32_t CBID_RESOURCE_MODULE_LOADED = 6;

struct Activity {
  ActivityKind kind;
};

struct ActivityMemcpy {
  ActivityKind kind;
  uint8_t copyKind, srcKind, dstKind, flags;
  uint64_t bytes, start, end;
  uint32_t deviceId, contextId, streamId, correlationId;
};

struct ActivityMemset {
  ActivityKind kind;
  uint32_t value;
  uint64_t bytes, start, end;
  uint32_t deviceId, contextId, streamId, correlationId;
};

struct ActivityAPI {
  ActivityKind kind;
  uint32_t cbid;
  uint64_t start, end;
  uint32_t processId, threadId, correlationId, returnValue;
};

struct ActivityKernel {
  ActivityKind kind;
  uint8_t cacheConfig, sharedMemoryConfig;
  uint16_t registersPerThread;
  uint32_t partitionedGlobalCacheRequested, partitionedGlobalCacheExecuted;
  uint64_t start, end, completed;
  uint32_t deviceId, contextId, streamId;
  int32_t gridX, gridY, gridZ, blockX, blockY, blockZ;
  int32_t staticSharedMemory, dynamicSharedMemory;
  uint32_t localMemoryPerThread, localMemoryTotal, correlationId;
  int64_t gridId;
  const char *name;
  void *reserved0;
  uint64_t queued, submitted;
  uint8_t launchType, isSharedMemoryCarveoutRequested,
      sharedMemoryCarveoutRequested, padding;
  uint32_t sharedMemoryExecuted;
  uint64_t graphNodeId;
  uint32_t shmemLimitConfig, graphId;
  void *accessPolicyWindow;
  uint32_t channelID, channelType;
  uint32_t clusterX, clusterY, clusterZ;
};

struct ResourceData {
  void *context;
  void *resourceHandle;
  void *resourceDescriptor;
};

struct ModuleResourceData {
  uint32_t moduleId;
  size_t cubinSize;
  const char *pCubin;
};

using BufferRequested = void (*)(uint8_t **buffer, size_t *size,
                                 size_t *maxRecords);
using BufferCompleted = void (*)(void *context, uint32_t stream,
                                 uint8_t *buffer, size_t size,
                                 size_t validSize);
using Callback = void (*)(void *userdata, uint32_t domain, uint32_t cbid,
                          const void *data);

// X(member, exported symbol, parameters)
#define ATTN_CUPTI_FUNCTIONS(X)                                                \
  X(GetVersion, "cuptiGetVersion", uint32_t *)                                 \
  X(GetResultString, "cuptiGetResultString", Result, const char **)            \
  X(GetTimestamp, "cuptiGetTimestamp", uint64_t *)                             \
  X(GetCallbackName, "cuptiGetCallbackName", uint32_t, uint32_t,               \
    const char **)                                                             \
  X(ActivityRegisterCallbacks, "cuptiActivityRegisterCallbacks",               \
    BufferRequested, BufferCompleted)                                          \
  X(ActivityEnable, "cuptiActivityEnable", ActivityKind)                       \
  X(ActivityDisable, "cuptiActivityDisable", ActivityKind)                     \
  X(ActivityFlushAll, "cuptiActivityFlushAll", uint32_t)                       \
  X(ActivityGetNextRecord, "cuptiActivityGetNextRecord", uint8_t *, size_t,    \
    Activity **)                                                               \
  X(ActivityGetNumDroppedRecords, "cuptiActivityGetNumDroppedRecords", void *, \
    uint32_t, size_t *)                                                        \
  X(Subscribe, "cuptiSubscribe", void **, Callback, void *)                    \
  X(EnableCallback, "cuptiEnableCallback", uint32_t, void *, uint32_t,         \
    uint32_t)                                                                  \
  X(Unsubscribe, "cuptiUnsubscribe", void *)

} // namespace attn::cupti

#endif // ATTN_LIB_PROFILE_CUPTIABI_H
