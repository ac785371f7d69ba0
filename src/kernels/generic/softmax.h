#pragma once

#include "kernels/generic/vector_math.h"

namespace openelm::kernels {
namespace {

template <class V>
float softmax_row(float* s, std::int32_t n, std::int32_t valid, float* sum) {
  const std::int32_t whole = valid / 16 * 16;
  const std::int32_t rest = valid - whole;
  constexpr float kLowest = -__builtin_inff();

  V lane_max = V::splat(kLowest);
  for (std::int32_t i = 0; i < whole; i += 16) lane_max = V::max(V::load(s + i), lane_max);
  if (rest > 0) lane_max = V::max(load_some<V>(s + whole, rest, kLowest), lane_max);
  const float max = lane_max.fold_max() + 0.0F;  // a zero maximum is +0, whichever zero came first

  const V shift = V::splat(max);
  V partial = V::splat(0.0F);
  for (std::int32_t i = 0; i < whole; i += 16) {
    const V p = exp(V::sub(V::load(s + i), shift));
    p.store(s + i);
    partial = V::add(partial, p);
  }
  if (rest > 0) {
    store_some(exp(V::sub(load_some<V>(s + whole, rest), shift)), rest, s + whole);
    partial = V::add(partial, load_some<V>(s + whole, rest));
  }
  for (std::int32_t i = valid; i < n; ++i) s[i] = 0.0F;
  *sum = partial.fold_sum();
  return max;
}

template <class V>
void softmax_merge(float* m, float* l, float* o, float m2, float l2, const float* o2,
                   std::int32_t n) {
  const float max = m2 > *m ? m2 : *m;
  const V a = exp(V::splat(*m - max));
  const V b = exp(V::splat(m2 - max));
  *m = max;
  V::fma(V::splat(*l), a, V::mul(V::splat(l2), b)).store_first(l);
  for_each_vector<V>(n, [&](std::int32_t i, auto load, auto store) {
    store(V::fma(load(o + i), a, V::mul(load(o2 + i), b)), o + i);
  });
}

}  // namespace
}  // namespace openelm::kernels
