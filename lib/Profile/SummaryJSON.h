//===- SummaryJSON.h - The summary in a profile's file ----------*- C++ -*-===//

#ifndef ATTN_LIB_PROFILE_SUMMARYJSON_H
#define ATTN_LIB_PROFILE_SUMMARYJSON_H

#include "attn/Profile/Print.h"
#include "llvm/Support/JSON.h"

namespace attn {

/// The value of a region's "summary".
void writeSummary(llvm::json::OStream &os,
                  const ProfileEnvironment &environment,
                  const RegionProfile &region, const PrintOptions &options);

/// The value of the file's "comparison".
void writeComparison(llvm::json::OStream &os, const Comparison &comparison);

/// What writeProfile writes, with at most `maxRecords` of host and device each
/// in a region: the first ones of its steady phase.
void writeProfileForPage(llvm::raw_ostream &os, const ProfileFile &file,
                         const PrintOptions &options, size_t maxRecords);

} // namespace attn

#endif // ATTN_LIB_PROFILE_SUMMARYJSON_H
