//===- Unfused.cpp - Attention as matmul, softmax, matmul -----------------===//

#include "Unfused.h"
#include <algorithm>
#include <cblas.h>
#include <cmath>
#include <cstring>

/// exp for x <= 0 in a form that compilers vectorise (Cephes' polynomial).
static inline float expNonPositive(float x) {
  x = std::max(x, -87.0f);
  float n = std::rint(x * 1.44269504088896341f);
  float r = x - n * 0.693359375f + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  for (float c : {1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f,
                  1.6666665459e-1f, 5.0000001201e-1f})
    p = p * r + c;
  p = p * r * r + r + 1.0f;
  int32_t bits = (int32_t(n) + 127) << 23;
  float power;
  std::memcpy(&power, &bits, sizeof(power));
  return p * power;
}

static void softmaxRow(float *row, int64_t n, float scale) {
  float max = row[0];
  for (int64_t j = 1; j < n; ++j)
    max = std::max(max, row[j]);
  float sum = 0;
  for (int64_t j = 0; j < n; ++j) {
    row[j] = expNonPositive((row[j] - max) * scale);
    sum += row[j];
  }
  float inverse = 1 / sum;
  for (int64_t j = 0; j < n; ++j)
    row[j] *= inverse;
}

void runUnfusedHead(const float *q, const float *k, const float *v, float *o,
                    float *scores, int64_t n, int64_t d, bool causal) {
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, n, n, d, 1, q, d, k, d,
              0, scores, n);
  for (int64_t i = 0; i < n; ++i) {
    float *row = scores + i * n;
    int64_t visible = causal ? i + 1 : n;
    softmaxRow(row, visible, 1 / std::sqrt(float(d)));
    std::fill(row + visible, row + n, 0.0f);
  }
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, d, n, 1, scores, n,
              v, d, 0, o, d);
}

void setSingleThreadedBlas() { openblas_set_num_threads(1); }
