//===- SequenceChecks.h - Offsets, lengths and pages -----------*- C++ -*-===//

#ifndef ATTN_RUNTIME_SEQUENCECHECKS_H
#define ATTN_RUNTIME_SEQUENCECHECKS_H

#include "attn/Runtime/BoundPlan.h"

namespace attn {

/// Refuses sequences that don't fit the tensors (docs/Sequences.md). `read`
/// gives an argument's numbers in host memory.
llvm::Error checkSequences(
    const Manifest &manifest, const BoundPlan &plan,
    llvm::function_ref<llvm::Expected<Tensor>(unsigned argument)> read);

} // namespace attn

#endif // ATTN_RUNTIME_SEQUENCECHECKS_H
