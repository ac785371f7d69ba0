#pragma once

#include <cstdint>

#include <immintrin.h>

/// What the x86 variants of quantisation share.
namespace openelm::kernels {
namespace {

/// The greatest lane; lanes are not negative. Returned as bits.
[[gnu::always_inline]] inline std::uint32_t avx2_fold_max(__m256i lanes) {
  const __m128i four =
      _mm_max_epi32(_mm256_castsi256_si128(lanes), _mm256_extracti128_si256(lanes, 1));
  const __m128i two = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0x4E));
  const __m128i one = _mm_max_epi32(two, _mm_shuffle_epi32(two, 0xB1));
  return static_cast<std::uint32_t>(_mm_cvtsi128_si32(one));
}

[[gnu::always_inline]] inline std::int32_t avx2_fold_sum(__m256i lanes) {
  const __m128i four =
      _mm_add_epi32(_mm256_castsi256_si128(lanes), _mm256_extracti128_si256(lanes, 1));
  const __m128i two = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4E));
  return _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32(two, 0xB1)));
}

/// The greatest |x[i]| as bits; n is a multiple of 8.
inline std::uint32_t avx2_largest_magnitude(const float* x, std::int32_t n) {
  const __m256i mask = _mm256_set1_epi32(0x7FFFFFFF);
  __m256i largest = _mm256_setzero_si256();
  for (std::int32_t i = 0; i < n; i += 8) {
    const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + i));
    largest = _mm256_max_epi32(largest, _mm256_and_si256(bits, mask));
  }
  return avx2_fold_max(largest);
}

/// Eight products to the nearest whole numbers.
[[gnu::always_inline]] inline __m256i avx2_round_eight(const float* x, __m256 factor) {
  return _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x), factor));
}

}  // namespace
}  // namespace openelm::kernels
