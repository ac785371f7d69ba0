#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/avx2/sums.h"
#include "kernels/avx512/vec.h"

namespace openelm::kernels {
namespace {

/// Whole numbers of 16 rows in one AVX-512 register, multiplied by VNNI.
struct Avx512Ints {
  using Sum = __m512i;
  using Weights = __m512i;  ///< four unsigned bytes of each row
  using Quad = __m512i;     ///< four signed bytes in every lane
  static constexpr int kValueBytes = 1;
  static constexpr int kTiles = 2;
  static constexpr int kMaxTokens = 6;

  [[gnu::always_inline]] static Sum zero() { return _mm512_setzero_si512(); }
  [[gnu::always_inline]] static Sum add(Sum a, Sum b) { return _mm512_add_epi32(a, b); }
  [[gnu::always_inline]] static Weights load_bytes(const std::byte* p) {
    return _mm512_loadu_si512(p);
  }
  [[gnu::always_inline]] static void load_nibbles(const std::byte* p, Weights& first,
                                                  Weights& second) {
    const __m512i mask = _mm512_set1_epi8(0x0F);
    const __m512i pairs = _mm512_loadu_si512(p);
    first = _mm512_and_si512(pairs, mask);
    second = _mm512_and_si512(_mm512_srli_epi16(pairs, 4), mask);
  }
  [[gnu::always_inline]] static Quad broadcast(const std::byte* p) {
    std::int32_t four;
    __builtin_memcpy(&four, p, sizeof four);
    return _mm512_set1_epi32(four);
  }
  [[gnu::always_inline]] static Sum dot(Sum sum, Weights w, Quad x) {
    return _mm512_dpbusd_epi32(sum, w, x);
  }
  template <int Bits>
  [[gnu::always_inline]] static Avx512Vec to_float(Sum sum, std::int32_t) {
    return {_mm512_cvtepi32_ps(sum)};
  }

  /// values[i] = x[i] * factor to the nearest whole number; returns their sum.
  static std::int32_t round(const float* x, float factor, std::int32_t n, std::byte* values) {
    const __m512 by = _mm512_set1_ps(factor);
    __m512i sum = _mm512_setzero_si512();
    for (std::int32_t i = 0; i < n; i += 16) {
      const __m512i whole = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_loadu_ps(x + i), by));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(values + i), _mm512_cvtepi32_epi8(whole));
      sum = _mm512_add_epi32(sum, whole);
    }
    return avx2_fold(
        _mm256_add_epi32(_mm512_castsi512_si256(sum), _mm512_extracti64x4_epi64(sum, 1)));
  }
};

}  // namespace
}  // namespace openelm::kernels
