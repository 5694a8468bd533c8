//===- BenchDiff.h - What changed between two benchmarks --------*- C++ -*-===//

#ifndef ATTN_TOOLS_ATTNBENCH_BENCHDIFF_H
#define ATTN_TOOLS_ATTNBENCH_BENCHDIFF_H

#include "BenchFile.h"

namespace attn {

/// Prints each backend of each case in both files, and marks as slower or
/// faster what changed by more than `tolerance` and lies outside of the spread:
/// nine tenths of the samples on one side of nine tenths of the others. What
/// ran before and doesn't now counts as slower. Returns whether nothing is.
bool printDiff(llvm::raw_ostream &os, const BenchFile &before,
               const BenchFile &after, double tolerance);

} // namespace attn

#endif // ATTN_TOOLS_ATTNBENCH_BENCHDIFF_H
