#pragma once

#include <cstddef>

#include "kernels/generic/vector_math.h"
#include "kernels/kernels.h"

namespace openelm::kernels {
namespace {

template <class V>
void divide(const float* x, float divisor, std::int32_t n, float* y) {
  const V d = V::splat(divisor);
  for_each_vector<V>(
      n, [&](std::int32_t i, auto load, auto store) { store(V::div(load(x + i), d), y + i); });
}

template <class V>
void rms_norm(const float* x, const float* weight, std::int32_t n, float eps, float* y) {
  V partial = V::splat(0.0F);
  for_each_vector<V>(n, [&](std::int32_t i, auto load, auto) {
    const V value = load(x + i);
    partial = V::fma(value, value, partial);
  });
  const float mean_square = partial.fold_sum() / static_cast<float>(n);
  const V r = V::splat(1.0F / __builtin_sqrtf(mean_square + eps));
  for_each_vector<V>(n, [&](std::int32_t i, auto load, auto store) {
    store(V::mul(V::mul(load(x + i), r), load(weight + i)), y + i);
  });
}

template <class V>
void rope(float* x, const float* cos, const float* sin, std::int32_t half) {
  for_each_vector<V>(half, [&](std::int32_t i, auto load, auto store) {
    const V x0 = load(x + i);
    const V x1 = load(x + half + i);
    const V c = load(cos + i);
    const V s = load(sin + i);
    store(V::fma(x0, c, V::negate(V::mul(x1, s))), x + i);
    store(V::fma(x1, c, V::mul(x0, s)), x + half + i);
  });
}

template <class V>
void scale(float* x, float factor, std::int32_t n) {
  const V f = V::splat(factor);
  for_each_vector<V>(
      n, [&](std::int32_t i, auto load, auto store) { store(V::mul(load(x + i), f), x + i); });
}

template <class V>
void multiply(float* x, const float* by, std::int32_t n) {
  for_each_vector<V>(n, [&](std::int32_t i, auto load, auto store) {
    store(V::mul(load(x + i), load(by + i)), x + i);
  });
}

template <class V, KvType Type>
[[gnu::always_inline]] inline void store_narrow(V value, std::byte* to) {
  if constexpr (Type == KvType::f32) value.store(reinterpret_cast<float*>(to));
  if constexpr (Type == KvType::f16) value.store_f16(to);
  if constexpr (Type == KvType::bf16) value.store_bf16(to);
}

template <class V, KvType Type>
float narrow(const float* x, std::int32_t n, void* y) {
  constexpr std::int32_t kBytes = Type == KvType::f32 ? 4 : 2;
  std::byte* out = static_cast<std::byte*>(y);
  std::int32_t i = 0;
  for (; i + 16 <= n; i += 16) store_narrow<V, Type>(V::load(x + i), out + i * kBytes);
  if (i < n) {
    std::byte lanes[16 * kBytes];
    store_narrow<V, Type>(load_some<V>(x + i, n - i), lanes);
    for (std::int32_t b = 0; b < (n - i) * kBytes; ++b) out[i * kBytes + b] = lanes[b];
  }
  return 1.0F;
}

}  // namespace
}  // namespace openelm::kernels
