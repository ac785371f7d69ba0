#pragma once

#include <cstddef>

#include <immintrin.h>

namespace openelm::kernels {
namespace {

/// 16 float lanes in one AVX-512 register.
struct Avx512Vec {
  /// Tokens that one, two and four tiles at once leave registers for.
  static constexpr int kMaxTokens[] = {12, 12, 5};

  __m512 lanes;

  [[gnu::always_inline]] static Avx512Vec splat(float x) { return {_mm512_set1_ps(x)}; }
  [[gnu::always_inline]] static Avx512Vec load(const float* p) { return {_mm512_loadu_ps(p)}; }
  [[gnu::always_inline]] void store(float* p) const { _mm512_storeu_ps(p, lanes); }
  [[gnu::always_inline]] void store_first(float* p) const {
    _mm_store_ss(p, _mm512_castps512_ps128(lanes));
  }

  // Stored numbers, widened; each conversion is exact.
  [[gnu::always_inline]] static Avx512Vec load_f16(const std::byte* p) {
    return {_mm512_cvtph_ps(load_256(p))};
  }
  [[gnu::always_inline]] static Avx512Vec load_i8(const std::byte* p) {
    return {_mm512_cvtepi32_ps(
        _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))))};
  }
  [[gnu::always_inline]] static Avx512Vec load_bf16(const std::byte* p) {
    return {upper_half(_mm512_cvtepu16_epi32(load_256(p)))};
  }
  [[gnu::always_inline]] static Avx512Vec load_bf16_even(const std::byte* p) {
    return {upper_half(_mm512_loadu_si512(p))};
  }
  [[gnu::always_inline]] static Avx512Vec load_bf16_odd(const std::byte* p) {
    const __m512i mask = _mm512_set1_epi32(static_cast<int>(0xFFFF0000U));
    return {_mm512_castsi512_ps(_mm512_and_si512(_mm512_loadu_si512(p), mask))};
  }
  [[gnu::always_inline]] void store_f16(std::byte* p) const {
    store_256(p, _mm512_cvtps_ph(lanes, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
  /// Nearest bfloat16, ties to even; NaN is kept and made quiet.
  [[gnu::always_inline]] void store_bf16(std::byte* p) const {
    const __m512i bits = _mm512_castps_si512(lanes);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i rounded =
        _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7FFF)));
    const __m512i quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x400000));
    const __mmask16 is_nan = _mm512_cmp_ps_mask(lanes, lanes, _CMP_UNORD_Q);
    const __m512i chosen = _mm512_mask_blend_epi32(is_nan, rounded, quiet);
    store_256(p, _mm512_cvtepi32_epi16(_mm512_srli_epi32(chosen, 16)));
  }

  [[gnu::always_inline]] static Avx512Vec add(Avx512Vec a, Avx512Vec b) {
    return {_mm512_add_ps(a.lanes, b.lanes)};
  }
  [[gnu::always_inline]] static Avx512Vec sub(Avx512Vec a, Avx512Vec b) {
    return {_mm512_sub_ps(a.lanes, b.lanes)};
  }
  [[gnu::always_inline]] static Avx512Vec mul(Avx512Vec a, Avx512Vec b) {
    return {_mm512_mul_ps(a.lanes, b.lanes)};
  }
  [[gnu::always_inline]] static Avx512Vec div(Avx512Vec a, Avx512Vec b) {
    return {_mm512_div_ps(a.lanes, b.lanes)};
  }
  /// a * b + c, rounded once.
  [[gnu::always_inline]] static Avx512Vec fma(Avx512Vec a, Avx512Vec b, Avx512Vec c) {
    return {_mm512_fmadd_ps(a.lanes, b.lanes, c.lanes)};
  }
  [[gnu::always_inline]] static Avx512Vec negate(Avx512Vec a) {
    return {_mm512_xor_ps(a.lanes, _mm512_set1_ps(-0.0F))};
  }
  /// a > b ? a : b.
  [[gnu::always_inline]] static Avx512Vec max(Avx512Vec a, Avx512Vec b) {
    return {_mm512_max_ps(a.lanes, b.lanes)};
  }
  /// a < b ? a : b.
  [[gnu::always_inline]] static Avx512Vec min(Avx512Vec a, Avx512Vec b) {
    return {_mm512_min_ps(a.lanes, b.lanes)};
  }
  /// To the nearest integer, ties to even.
  [[gnu::always_inline]] static Avx512Vec round(Avx512Vec a) {
    return {_mm512_roundscale_ps(a.lanes, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
  }
  /// a * 2^n for whole n in [-252, 254], by two factors so that only the last product rounds.
  [[gnu::always_inline]] static Avx512Vec scale_by_power_of_two(Avx512Vec a, Avx512Vec n) {
    const __m512i exponent = _mm512_cvtps_epi32(n.lanes);
    const __m512i first = _mm512_srai_epi32(exponent, 1);
    const __m512i second = _mm512_sub_epi32(exponent, first);
    return {_mm512_mul_ps(power_of_two(second), _mm512_mul_ps(power_of_two(first), a.lanes))};
  }

  /// Sum of the lanes, by halves.
  [[gnu::always_inline]] float fold_sum() const {
    const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(lanes), upper_lanes());
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
  }
  /// Greatest lane; lanes are not NaN.
  [[gnu::always_inline]] float fold_max() const {
    const __m256 eight = _mm256_max_ps(_mm512_castps512_ps256(lanes), upper_lanes());
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
  }

 private:
  [[gnu::always_inline]] static __m256i load_256(const std::byte* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  }
  [[gnu::always_inline]] static void store_256(std::byte* p, __m256i value) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), value);
  }
  [[gnu::always_inline]] static __m512 upper_half(__m512i bits) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(bits, 16));
  }
  [[gnu::always_inline]] static __m512 power_of_two(__m512i n) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_add_epi32(n, _mm512_set1_epi32(127)), 23));
  }
  [[gnu::always_inline]] __m256 upper_lanes() const { return _mm512_extractf32x8_ps(lanes, 1); }
};

}  // namespace
}  // namespace openelm::kernels
