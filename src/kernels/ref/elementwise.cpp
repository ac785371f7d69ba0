#include <cmath>
#include <cstring>

#include "base/float16.h"
#include "kernels/ref/ref.h"

namespace openelm::kernels::ref {

void divide(const float* x, float divisor, std::int32_t n, float* y) {
  for (std::int32_t i = 0; i < n; ++i) y[i] = x[i] / divisor;
}

void rms_norm(const float* x, const float* weight, std::int32_t n, float eps, float* y) {
  float partial[16] = {};
  for (std::int32_t i = 0; i < n; ++i) partial[i % 16] = std::fma(x[i], x[i], partial[i % 16]);
  const float mean_square = fold_sum(partial) / static_cast<float>(n);
  const float r = 1.0F / std::sqrt(mean_square + eps);
  for (std::int32_t i = 0; i < n; ++i) y[i] = (x[i] * r) * weight[i];
}

void rope(float* x, const float* cos, const float* sin, std::int32_t half) {
  for (std::int32_t i = 0; i < half; ++i) {
    const float x0 = x[i];
    const float x1 = x[i + half];
    x[i] = std::fma(x0, cos[i], -(x1 * sin[i]));
    x[i + half] = std::fma(x1, cos[i], x0 * sin[i]);
  }
}

void scale(float* x, float factor, std::int32_t n) {
  for (std::int32_t i = 0; i < n; ++i) x[i] *= factor;
}

void multiply(float* x, const float* by, std::int32_t n) {
  for (std::int32_t i = 0; i < n; ++i) x[i] *= by[i];
}

template <KvType Type>
float narrow(const float* x, std::int32_t n, void* y) {
  auto* out = static_cast<std::byte*>(y);
  for (std::int32_t i = 0; i < n; ++i) {
    if constexpr (Type == KvType::f32) {
      std::memcpy(out + i * 4, &x[i], 4);
    } else {
      const std::uint16_t bits = Type == KvType::f16 ? f32_to_f16(x[i]) : f32_to_bf16(x[i]);
      std::memcpy(out + i * 2, &bits, 2);
    }
  }
  return 1.0F;
}

float narrow_q8(const float* x, std::int32_t n, void* y) {
  const QuantiseScale scale = quantise_scale(x, n);
  auto* out = static_cast<std::int8_t*>(y);
  for (std::int32_t i = 0; i < n; ++i) out[i] = static_cast<std::int8_t>(scale.round(x[i]));
  return scale.scale;
}

template float narrow<KvType::f32>(const float*, std::int32_t, void*);
template float narrow<KvType::f16>(const float*, std::int32_t, void*);
template float narrow<KvType::bf16>(const float*, std::int32_t, void*);

}  // namespace openelm::kernels::ref
