#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/avx2/vec.h"

/// What the x86 variants of the whole-number half share.
namespace openelm::kernels {
namespace {

/// Whole numbers of 16 rows in two AVX2 registers.
struct Avx2Sums {
  struct Sum {
    __m256i lo, hi;
  };
  static constexpr int kTiles = 1;

  [[gnu::always_inline]] static Sum zero() {
    return {_mm256_setzero_si256(), _mm256_setzero_si256()};
  }
  [[gnu::always_inline]] static Sum add(Sum a, Sum b) {
    return {_mm256_add_epi32(a.lo, b.lo), _mm256_add_epi32(a.hi, b.hi)};
  }
  [[gnu::always_inline]] static Sum load(const std::byte* p) {
    return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)),
            _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 32))};
  }
  template <int Bits>
  [[gnu::always_inline]] static Avx2Vec to_float(Sum sum, std::int32_t) {
    return {_mm256_cvtepi32_ps(sum.lo), _mm256_cvtepi32_ps(sum.hi)};
  }
};

[[gnu::always_inline]] inline std::int32_t avx2_fold(__m256i lanes) {
  const __m128i four =
      _mm_add_epi32(_mm256_castsi256_si128(lanes), _mm256_extracti128_si256(lanes, 1));
  const __m128i two = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4E));
  return _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32(two, 0xB1)));
}

/// Eight products to the nearest whole numbers.
[[gnu::always_inline]] inline __m256i avx2_round_eight(const float* x, __m256 factor) {
  return _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x), factor));
}

}  // namespace
}  // namespace openelm::kernels
