#pragma once

#include <cstddef>

#include "kernels/generic/vector_math.h"
#include "kernels/kernels.h"

namespace openelm::kernels {
namespace {

/// How a run of numbers becomes whole numbers of -127 .. 127.
struct Rounding {
  float scale;   ///< NaN: some number is not finite
  float factor;  ///< 0: all become zero
};

/// Magnitudes are compared as whole numbers: the order is the same, and infinities and NaN, whose
/// exponent is the greatest, come out on top.
[[gnu::always_inline]] inline Rounding rounding_of(const float* x, std::int32_t n) {
  constexpr std::int32_t kInfinity = 0x7F800000;
  std::int32_t bits = 0;
  for (std::int32_t i = 0; i < n; ++i) {
    const std::int32_t magnitude = __builtin_bit_cast(std::int32_t, x[i]) & 0x7FFFFFFF;
    bits = magnitude > bits ? magnitude : bits;
  }
  if (bits >= kInfinity) return {__builtin_nanf(""), 0.0F};
  const float largest = __builtin_bit_cast(float, bits);
  if (largest < kQuantiseLeast) return {0.0F, 0.0F};
  return {largest / 127.0F, 127.0F / largest};
}

/// One block; returns the group's total so far, its share included.
template <class Ints>
[[gnu::always_inline]] inline float quantise_block(const float* x, std::int32_t block, float total,
                                                   std::byte* xq) {
  const Rounding rounding = rounding_of(x, block);
  QuantisedBlock header{};
  header.scale = rounding.scale;
  std::byte* const values = xq + sizeof header;
  if (rounding.factor == 0.0F) {
    __builtin_memset(values, 0, static_cast<std::size_t>(block * Ints::kValueBytes));
  } else {
    header.sum = Ints::round(x, rounding.factor, block, values);
  }
  __builtin_memcpy(xq, &header, sizeof header);
  return __builtin_fmaf(header.scale, static_cast<float>(header.sum), total);
}

template <class Ints>
void quantise(const float* x, std::int32_t k, std::int32_t group_size, std::int32_t block,
              std::byte* xq) {
  const auto block_bytes =
      static_cast<std::ptrdiff_t>(sizeof(QuantisedBlock)) + block * Ints::kValueBytes;
  for (std::int32_t first = 0; first < k; first += group_size) {
    std::byte* const first_block = xq;
    float total = 0.0F;
    for (std::int32_t i = 0; i < group_size; i += block, xq += block_bytes) {
      total = quantise_block<Ints>(x + first + i, block, total, xq);
    }
    __builtin_memcpy(first_block + offsetof(QuantisedBlock, total), &total, sizeof total);
  }
}

/// A key or value of the cache.
template <class V>
float narrow_q8(const float* x, std::int32_t n, void* y) {
  const Rounding rounding = rounding_of(x, n);
  auto* const out = static_cast<std::int8_t*>(y);
  if (rounding.factor == 0.0F) {
    __builtin_memset(out, 0, static_cast<std::size_t>(n));
    return rounding.scale;
  }
  const V factor = V::splat(rounding.factor);
  for_each_vector<V>(n, [&](std::int32_t i, auto load, auto) {
    float whole[16];
    V::round(V::mul(load(x + i), factor)).store(whole);
    for (std::int32_t lane = 0; lane < 16 && i + lane < n; ++lane) {
      out[i + lane] = static_cast<std::int8_t>(whole[lane]);
    }
  });
  return rounding.scale;
}

}  // namespace
}  // namespace openelm::kernels
