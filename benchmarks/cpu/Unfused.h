//===- Unfused.h - Attention as matmul, softmax, matmul ---------*- C++ -*-===//

#ifndef ATTN_BENCHMARKS_CPU_UNFUSED_H
#define ATTN_BENCHMARKS_CPU_UNFUSED_H

#include <cstdint>

/// Attention of one head, n x d in f32, as a person writes it on a BLAS:
/// sgemm, scaled (and causally masked) softmax, sgemm. `scores` holds n * n.
void runUnfusedHead(const float *q, const float *k, const float *v, float *o,
                    float *scores, int64_t n, int64_t d, bool causal);

/// One thread a BLAS call; heads are what runs in parallel.
void setSingleThreadedBlas();

#endif // ATTN_BENCHMARKS_CPU_UNFUSED_H
