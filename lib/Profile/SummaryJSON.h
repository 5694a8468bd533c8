//===- SummaryJSON.h - The summary in a profile's file ----------*- C++ -*-===//

#ifndef ATTN_LIB_PROFILE_SUMMARYJSON_H
#define ATTN_LIB_PROFILE_SUMMARYJSON_H

#include "attn/Profile/Profile.h"
#include "llvm/Support/JSON.h"

namespace attn {

/// Writes one object: totals, kernels and findings of `region`.
void writeSummary(llvm::json::OStream &os,
                  const ProfileEnvironment &environment,
                  const RegionProfile &region);

} // namespace attn

#endif // ATTN_LIB_PROFILE_SUMMARYJSON_H
