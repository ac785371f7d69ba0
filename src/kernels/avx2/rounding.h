#pragma once

#include <cstdint>

#include <immintrin.h>

/// What the AVX2 and AVX-VNNI halves of quantisation share.
namespace openelm::kernels {
namespace {

/// The greatest |x[i]| as bits; n is a multiple of 8.
inline std::uint32_t avx2_largest_magnitude(const float* x, std::int32_t n) {
  const __m256i mask = _mm256_set1_epi32(0x7FFFFFFF);
  __m256i largest = _mm256_setzero_si256();
  for (std::int32_t i = 0; i < n; i += 8) {
    const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + i));
    largest = _mm256_max_epi32(largest, _mm256_and_si256(bits, mask));
  }
  std::int32_t lanes[8];
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(lanes), largest);
  std::int32_t most = 0;
  for (const std::int32_t lane : lanes) most = lane > most ? lane : most;
  return static_cast<std::uint32_t>(most);
}

/// Four products to the nearest whole numbers.
[[gnu::always_inline]] inline __m128i avx2_round_four(const float* x, __m128 factor) {
  return _mm_cvtps_epi32(_mm_mul_ps(_mm_loadu_ps(x), factor));
}

inline std::int32_t avx2_fold(__m128i sum) {
  const __m128i two = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0x4E));
  return _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32(two, 0xB1)));
}

}  // namespace
}  // namespace openelm::kernels
