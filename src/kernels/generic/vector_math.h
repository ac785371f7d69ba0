#pragma once

#include <cstdint>

#include "kernels/exp_constants.h"

/// Arithmetic on vectors of 16 lanes that no instruction set has ready-made. See sources.h for the
/// unnamed namespace.
namespace openelm::kernels {
namespace {

/// kernels.h states the algorithm. `max(a, b)` and `min(a, b)` return b when either is NaN.
template <class V>
[[gnu::always_inline]] inline V exp(V x) {
  x = V::min(V::splat(kExpMax), V::max(V::splat(kExpMin), x));
  const V n = V::round(V::mul(x, V::splat(kLog2e)));
  V r = V::fma(n, V::splat(-kLn2Hi), x);
  r = V::fma(n, V::splat(-kLn2Lo), r);
  V p = V::splat(kExpC6);
  p = V::fma(p, r, V::splat(kExpC5));
  p = V::fma(p, r, V::splat(kExpC4));
  p = V::fma(p, r, V::splat(kExpC3));
  p = V::fma(p, r, V::splat(kExpC2));
  p = V::fma(p, r, V::splat(1.0F));
  p = V::fma(p, r, V::splat(1.0F));
  return V::scale_by_power_of_two(p, n);
}

template <class V>
[[gnu::always_inline]] inline V silu(V z) {
  return V::div(z, V::add(V::splat(1.0F), exp(V::negate(z))));
}

/// The first `count` lanes from memory, `fill` in the others.
template <class V>
V load_some(const float* from, std::int32_t count, float fill = 0.0F) {
  float lanes[16];
  for (std::int32_t i = 0; i < 16; ++i) lanes[i] = i < count ? from[i] : fill;
  return V::load(lanes);
}

/// The first `count` lanes to memory.
template <class V>
void store_some(V value, std::int32_t count, float* to) {
  float lanes[16];
  value.store(lanes);
  for (std::int32_t i = 0; i < count; ++i) to[i] = lanes[i];
}

/// Calls apply(i, load, store) for each 16 values of n, the last ones with a partial load and
/// store.
template <class V, class Apply>
[[gnu::always_inline]] inline void for_each_vector(std::int32_t n, const Apply& apply) {
  std::int32_t i = 0;
  for (; i + 16 <= n; i += 16) {
    apply(
        i, [](const float* from) { return V::load(from); },
        [](V value, float* to) { value.store(to); });
  }
  if (i < n) {
    const std::int32_t count = n - i;
    apply(
        i, [count](const float* from) { return load_some<V>(from, count); },
        [count](V value, float* to) { store_some(value, count, to); });
  }
}

}  // namespace
}  // namespace openelm::kernels
