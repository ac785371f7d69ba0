#include <cmath>
#include <limits>

#include "kernels/ref/ref.h"

namespace openelm::kernels::ref {

float fold_sum(float (&partial)[16]) {
  for (int width = 8; width >= 1; width /= 2) {
    for (int i = 0; i < width; ++i) partial[i] += partial[i + width];
  }
  return partial[0];
}

float softmax_row(float* s, std::int32_t n, std::int32_t valid, float* sum) {
  float max = -std::numeric_limits<float>::infinity();
  for (std::int32_t i = 0; i < valid; ++i) {
    if (s[i] > max) max = s[i];
  }
  max += 0.0F;  // a zero maximum is +0, whichever zero came first

  float partial[16] = {};
  for (std::int32_t i = 0; i < valid; ++i) {
    s[i] = exp(s[i] - max);
    partial[i % 16] += s[i];
  }
  for (std::int32_t i = valid; i < n; ++i) s[i] = 0.0F;
  *sum = fold_sum(partial);
  return max;
}

void softmax_merge(float* m, float* l, float* o, float m2, float l2, const float* o2,
                   std::int32_t n) {
  const float max = m2 > *m ? m2 : *m;
  const float a = exp(*m - max);
  const float b = exp(m2 - max);
  *m = max;
  *l = std::fma(*l, a, l2 * b);
  for (std::int32_t i = 0; i < n; ++i) o[i] = std::fma(o[i], a, o2[i] * b);
}

}  // namespace openelm::kernels::ref
