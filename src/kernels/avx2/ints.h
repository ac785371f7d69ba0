#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/avx2/sums.h"

namespace openelm::kernels {
namespace {

/// Whole numbers of 16 rows in two AVX2 registers. The one instruction that multiplies bytes adds
/// pairs of products with saturation at 16 bits, which 255 * 127 * 2 passes; so bytes are widened:
/// 32-bit lanes hold the even, then the odd ones of a row's four.
struct Avx2Ints : Avx2Sums {
  struct Weights {
    Sum even, odd;
  };
  struct Quad {
    __m256i even, odd;
  };
  static constexpr int kValueBytes = 2;  ///< four activations are stored in the order 0 2 1 3
  static constexpr int kMaxTokens = 4;

  [[gnu::always_inline]] static Weights load_bytes(const std::byte* p) {
    const __m256i mask = _mm256_set1_epi16(0x00FF);
    const Sum w = load(p);
    return {{_mm256_and_si256(w.lo, mask), _mm256_and_si256(w.hi, mask)},
            {_mm256_srli_epi16(w.lo, 8), _mm256_srli_epi16(w.hi, 8)}};
  }
  [[gnu::always_inline]] static void load_nibbles(const std::byte* p, Weights& first,
                                                  Weights& second) {
    const Sum w = load(p);
    first = {{nibble<0>(w.lo), nibble<0>(w.hi)}, {nibble<8>(w.lo), nibble<8>(w.hi)}};
    second = {{nibble<4>(w.lo), nibble<4>(w.hi)},
              {_mm256_srli_epi16(w.lo, 12), _mm256_srli_epi16(w.hi, 12)}};
  }
  [[gnu::always_inline]] static Quad broadcast(const std::byte* p) {
    return {broadcast_pair(p), broadcast_pair(p + 4)};
  }
  [[gnu::always_inline]] static Sum dot(Sum sum, const Weights& w, Quad x) {
    sum = add(sum, {_mm256_madd_epi16(w.even.lo, x.even), _mm256_madd_epi16(w.even.hi, x.even)});
    sum = add(sum, {_mm256_madd_epi16(w.odd.lo, x.odd), _mm256_madd_epi16(w.odd.hi, x.odd)});
    // Keeps the optimiser from adding up the products of a whole block at its end, as it may with
    // whole numbers: there are far more of them than registers.
    __asm__("" : "+x"(sum.lo), "+x"(sum.hi));
    return sum;
  }
  /// values[i] = x[i] * factor to the nearest whole number; returns their sum. n is a multiple
  /// of 8.
  static std::int32_t round(const float* x, float factor, std::int32_t n, std::byte* values) {
    const __m256 by = _mm256_set1_ps(factor);
    __m256i sum = _mm256_setzero_si256();
    for (std::int32_t i = 0; i < n; i += 8) {
      const __m256i whole = avx2_round_eight(x + i, by);
      const __m256i ordered = _mm256_shuffle_epi32(whole, 0xD8);
      const __m128i packed =
          _mm_packs_epi32(_mm256_castsi256_si128(ordered), _mm256_extracti128_si256(ordered, 1));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(values + i * kValueBytes), packed);
      sum = _mm256_add_epi32(sum, whole);
    }
    return avx2_fold(sum);
  }

 private:
  /// Loaded by the broadcast itself: two of them made from eight bytes go by way of the integer
  /// registers, which halves the speed of the loop.
  [[gnu::always_inline]] static __m256i broadcast_pair(const std::byte* p) {
    return _mm256_castps_si256(_mm256_broadcast_ss(reinterpret_cast<const float*>(p)));
  }
  template <int Shift>
  [[gnu::always_inline]] static __m256i nibble(__m256i w) {
    return _mm256_and_si256(_mm256_srli_epi16(w, Shift), _mm256_set1_epi16(0x000F));
  }
};

}  // namespace
}  // namespace openelm::kernels
