#include <cmath>

#include "kernels/exp_constants.h"
#include "kernels/ref/ref.h"

namespace openelm::kernels::ref {

float exp(float x) {
  if (std::isnan(x)) return x;
  if (x < kExpMin) x = kExpMin;
  if (x > kExpMax) x = kExpMax;

  const float n = std::nearbyint(x * kLog2e);
  float r = std::fma(n, -kLn2Hi, x);
  r = std::fma(n, -kLn2Lo, r);

  float p = kExpC6;
  p = std::fma(p, r, kExpC5);
  p = std::fma(p, r, kExpC4);
  p = std::fma(p, r, kExpC3);
  p = std::fma(p, r, kExpC2);
  p = std::fma(p, r, 1.0F);
  p = std::fma(p, r, 1.0F);

  // 2^n may lie outside the normal floats; its two halves do not, and only the second product can
  // round.
  const int exponent = static_cast<int>(n);
  const int first = exponent >> 1;
  return std::ldexp(1.0F, exponent - first) * (std::ldexp(1.0F, first) * p);
}

float silu(float z) { return z / (1.0F + exp(-z)); }

}  // namespace openelm::kernels::ref
