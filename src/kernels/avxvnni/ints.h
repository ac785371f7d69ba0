#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/avx2/sums.h"

namespace openelm::kernels {
namespace {

/// Whole numbers of 16 rows in two AVX2 registers, multiplied by AVX-VNNI.
struct AvxVnniInts : Avx2Sums {
  using Weights = Sum;   ///< four unsigned bytes of each row
  using Quad = __m256i;  ///< four signed bytes in every lane
  static constexpr int kValueBytes = 1;
  static constexpr int kMaxTokens = 6;

  [[gnu::always_inline]] static Weights load_bytes(const std::byte* p) { return load(p); }
  [[gnu::always_inline]] static void load_nibbles(const std::byte* p, Weights& first,
                                                  Weights& second) {
    const __m256i mask = _mm256_set1_epi8(0x0F);
    const Weights w = load(p);
    first = {_mm256_and_si256(w.lo, mask), _mm256_and_si256(w.hi, mask)};
    second = {_mm256_and_si256(_mm256_srli_epi16(w.lo, 4), mask),
              _mm256_and_si256(_mm256_srli_epi16(w.hi, 4), mask)};
  }
  [[gnu::always_inline]] static Quad broadcast(const std::byte* p) {
    std::int32_t four;
    __builtin_memcpy(&four, p, sizeof four);
    return _mm256_set1_epi32(four);
  }
  [[gnu::always_inline]] static Sum dot(Sum sum, Weights w, Quad x) {
    return {_mm256_dpbusd_avx_epi32(sum.lo, w.lo, x), _mm256_dpbusd_avx_epi32(sum.hi, w.hi, x)};
  }
  /// values[i] = x[i] * factor to the nearest whole number; returns their sum. n is a multiple of
  /// 16.
  static std::int32_t round(const float* x, float factor, std::int32_t n, std::byte* values) {
    const __m256 by = _mm256_set1_ps(factor);
    __m256i sum = _mm256_setzero_si256();
    for (std::int32_t i = 0; i < n; i += 16) {
      const __m256i a = avx2_round_eight(x + i, by);
      const __m256i b = avx2_round_eight(x + i + 8, by);
      // Packing works within 128-bit halves; the permutation restores the order.
      const __m256i pairs = _mm256_permute4x64_epi64(_mm256_packs_epi32(a, b), 0xD8);
      const __m128i packed =
          _mm_packs_epi16(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256(pairs, 1));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(values + i), packed);
      sum = _mm256_add_epi32(sum, _mm256_add_epi32(a, b));
    }
    return avx2_fold(sum);
  }
};

}  // namespace
}  // namespace openelm::kernels
