//===- Trace.h - A profile for Perfetto or chrome://tracing -----*- C++ -*-===//

#ifndef ATTN_PROFILE_TRACE_H
#define ATTN_PROFILE_TRACE_H

#include "attn/Profile/Profile.h"

namespace attn {

struct TraceOptions {
  /// A trace of more than some 100 MB doesn't open in a browser; events beyond
  /// this are left out, the last ones first, and their number is written.
  uint64_t maxBytes = 32 << 20;
};

/// Writes Chrome's JSON trace format: one process a region, in it the phases
/// and host threads above the device's streams, with an arrow from each launch
/// to what it launched.
void writeTrace(llvm::raw_ostream &os, const ProfileFile &file,
                const TraceOptions &options = {});

} // namespace attn

#endif // ATTN_PROFILE_TRACE_H
