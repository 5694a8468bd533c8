//===- Counters.h - What a GPU's counters measured --------------*- C++ -*-===//

#ifndef ATTN_PROFILE_COUNTERS_H
#define ATTN_PROFILE_COUNTERS_H

#include "attn/Profile/Profile.h"

namespace attn {

/// The metrics of NVIDIA's ncu that addCounters knows, separated by commas.
std::string listCounterMetrics();

/// Adds to the kernels of a profile what `ncu --csv` measured of them, in a run
/// of its own; `text` may hold other lines beside the table. Means over all
/// launches of a name.
llvm::Error addCounters(ProfileFile &file, llvm::StringRef text);

} // namespace attn

#endif // ATTN_PROFILE_COUNTERS_H
