//===- CuptiABITest.cpp - Our declarations against CUPTI's headers --------===//
//
// Compiled only where CMake finds the headers.
//
//===----------------------------------------------------------------------===//

#include "../../lib/Profile/CuptiABI.h"
#include <cupti.h>
#include <gtest/gtest.h>

namespace cupti = attn::cupti;

#define SAME_OFFSET(ours, theirs, field)                                       \
  EXPECT_EQ(offsetof(cupti::ours, field), offsetof(theirs, field))

TEST(CuptiABITest, RecordsAreLaidOutAlike) {
  SAME_OFFSET(ActivityMemcpy, CUpti_ActivityMemcpy6, copyKind);
  SAME_OFFSET(ActivityMemcpy, CUpti_ActivityMemcpy6, bytes);
  SAME_OFFSET(ActivityMemcpy, CUpti_ActivityMemcpy6, start);
  SAME_OFFSET(ActivityMemcpy, CUpti_ActivityMemcpy6, end);
  SAME_OFFSET(ActivityMemcpy, CUpti_ActivityMemcpy6, streamId);
  SAME_OFFSET(ActivityMemcpy, CUpti_ActivityMemcpy6, correlationId);

  SAME_OFFSET(ActivityMemset, CUpti_ActivityMemset4, bytes);
  SAME_OFFSET(ActivityMemset, CUpti_ActivityMemset4, start);
  SAME_OFFSET(ActivityMemset, CUpti_ActivityMemset4, end);
  SAME_OFFSET(ActivityMemset, CUpti_ActivityMemset4, streamId);
  SAME_OFFSET(ActivityMemset, CUpti_ActivityMemset4, correlationId);

  SAME_OFFSET(ActivityAPI, CUpti_ActivityAPI, cbid);
  SAME_OFFSET(ActivityAPI, CUpti_ActivityAPI, start);
  SAME_OFFSET(ActivityAPI, CUpti_ActivityAPI, end);
  SAME_OFFSET(ActivityAPI, CUpti_ActivityAPI, threadId);
  SAME_OFFSET(ActivityAPI, CUpti_ActivityAPI, correlationId);

  // The first with clusters, and the latest.
#define KERNEL_FIELD(field)                                                    \
  SAME_OFFSET(ActivityKernel, CUpti_ActivityKernel8, field);                   \
  SAME_OFFSET(ActivityKernel, CUpti_ActivityKernel10, field)
  KERNEL_FIELD(registersPerThread);
  KERNEL_FIELD(start);
  KERNEL_FIELD(end);
  KERNEL_FIELD(streamId);
  KERNEL_FIELD(gridX);
  KERNEL_FIELD(blockZ);
  KERNEL_FIELD(staticSharedMemory);
  KERNEL_FIELD(dynamicSharedMemory);
  KERNEL_FIELD(localMemoryPerThread);
  KERNEL_FIELD(correlationId);
  KERNEL_FIELD(name);
  KERNEL_FIELD(clusterX);
  KERNEL_FIELD(clusterZ);

  SAME_OFFSET(ResourceData, CUpti_ResourceData, resourceDescriptor);
  SAME_OFFSET(ModuleResourceData, CUpti_ModuleResourceData, cubinSize);
  SAME_OFFSET(ModuleResourceData, CUpti_ModuleResourceData, pCubin);
}

TEST(CuptiABITest, NumbersAreTheSame) {
  EXPECT_EQ(int(cupti::ACTIVITY_KIND_MEMCPY), int(CUPTI_ACTIVITY_KIND_MEMCPY));
  EXPECT_EQ(int(cupti::ACTIVITY_KIND_MEMSET), int(CUPTI_ACTIVITY_KIND_MEMSET));
  EXPECT_EQ(int(cupti::ACTIVITY_KIND_DRIVER), int(CUPTI_ACTIVITY_KIND_DRIVER));
  EXPECT_EQ(int(cupti::ACTIVITY_KIND_RUNTIME),
            int(CUPTI_ACTIVITY_KIND_RUNTIME));
  EXPECT_EQ(int(cupti::ACTIVITY_KIND_CONCURRENT_KERNEL),
            int(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
  EXPECT_EQ(int(cupti::ACTIVITY_MEMCPY_KIND_HTOD),
            int(CUPTI_ACTIVITY_MEMCPY_KIND_HTOD));
  EXPECT_EQ(int(cupti::ACTIVITY_MEMCPY_KIND_DTOH),
            int(CUPTI_ACTIVITY_MEMCPY_KIND_DTOH));
  EXPECT_EQ(int(cupti::ACTIVITY_MEMCPY_KIND_DTOD),
            int(CUPTI_ACTIVITY_MEMCPY_KIND_DTOD));
  EXPECT_EQ(int(cupti::ACTIVITY_FLAG_FLUSH_FORCED),
            int(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
  EXPECT_EQ(int(cupti::CB_DOMAIN_DRIVER_API), int(CUPTI_CB_DOMAIN_DRIVER_API));
  EXPECT_EQ(int(cupti::CB_DOMAIN_RUNTIME_API),
            int(CUPTI_CB_DOMAIN_RUNTIME_API));
  EXPECT_EQ(int(cupti::CB_DOMAIN_RESOURCE), int(CUPTI_CB_DOMAIN_RESOURCE));
  EXPECT_EQ(int(cupti::CBID_RESOURCE_MODULE_LOADED),
            int(CUPTI_CBID_RESOURCE_MODULE_LOADED));
}
