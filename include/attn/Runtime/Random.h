//===- Random.h - Reproducible test input -----------------------*- C++ -*-===//

#ifndef ATTN_RUNTIME_RANDOM_H
#define ATTN_RUNTIME_RANDOM_H

#include "attn/Runtime/Tensor.h"

namespace attn {

/// Fills `tensor` with standard normal values rounded to its dtype (i1: true
/// with probability 1/2). Element i, counted with the last dimension fastest,
/// is a function of `seed`, `stream` and i alone; give each argument of a call
/// its own stream.
void fillNormal(const Tensor &tensor, uint64_t seed, uint64_t stream);

} // namespace attn

#endif // ATTN_RUNTIME_RANDOM_H
