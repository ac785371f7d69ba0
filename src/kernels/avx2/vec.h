#pragma once

#include <cstddef>
#include <cstdint>

#include <immintrin.h>

namespace openelm::kernels {
namespace {

/// Selects the odd values of bf16 pairs. Volatile makes it an operand in memory: in a register it
/// would be one too many beside the 12 sums of the widest strip, and GCC would spill sums.
alignas(32) constexpr volatile std::uint32_t kUpperHalves[8] = {
    0xFFFF0000U, 0xFFFF0000U, 0xFFFF0000U, 0xFFFF0000U,
    0xFFFF0000U, 0xFFFF0000U, 0xFFFF0000U, 0xFFFF0000U};

/// 16 float lanes in two AVX2 registers.
struct Avx2Vec {
  /// Tokens that one, two and four tiles at once leave registers for.
  static constexpr int kMaxTokens[] = {6, 2, 1};

  __m256 lo, hi;

  [[gnu::always_inline]] static Avx2Vec splat(float x) {
    return {_mm256_set1_ps(x), _mm256_set1_ps(x)};
  }
  [[gnu::always_inline]] static Avx2Vec load(const float* p) {
    return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
  }
  [[gnu::always_inline]] void store(float* p) const {
    _mm256_storeu_ps(p, lo);
    _mm256_storeu_ps(p + 8, hi);
  }
  [[gnu::always_inline]] void store_first(float* p) const {
    _mm_store_ss(p, _mm256_castps256_ps128(lo));
  }

  // Stored numbers, widened; each conversion is exact.
  [[gnu::always_inline]] static Avx2Vec load_f16(const std::byte* p) {
    return {_mm256_cvtph_ps(load_128(p)), _mm256_cvtph_ps(load_128(p + 16))};
  }
  [[gnu::always_inline]] static Avx2Vec load_i8(const std::byte* p) {
    const __m128i bytes = load_128(p);
    return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes)),
            _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_unpackhi_epi64(bytes, bytes)))};
  }
  [[gnu::always_inline]] static Avx2Vec load_bf16(const std::byte* p) {
    return {upper_half(_mm256_cvtepu16_epi32(load_128(p))),
            upper_half(_mm256_cvtepu16_epi32(load_128(p + 16)))};
  }
  [[gnu::always_inline]] static Avx2Vec load_bf16_even(const std::byte* p) {
    return {upper_half(load_256(p)), upper_half(load_256(p + 32))};
  }
  [[gnu::always_inline]] static Avx2Vec load_bf16_odd(const std::byte* p) {
    const __m256i mask = *reinterpret_cast<const volatile __m256i*>(kUpperHalves);
    return {_mm256_castsi256_ps(_mm256_and_si256(load_256(p), mask)),
            _mm256_castsi256_ps(_mm256_and_si256(load_256(p + 32), mask))};
  }
  [[gnu::always_inline]] void store_f16(std::byte* p) const {
    store_128(p, _mm256_cvtps_ph(lo, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    store_128(p + 16, _mm256_cvtps_ph(hi, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
  [[gnu::always_inline]] void store_bf16(std::byte* p) const {
    // packus works within 128-bit halves; the permutation restores the order.
    const __m256i packed = _mm256_packus_epi32(to_bf16(lo), to_bf16(hi));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm256_permute4x64_epi64(packed, 0xD8));
  }

  [[gnu::always_inline]] static Avx2Vec add(Avx2Vec a, Avx2Vec b) {
    return {_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)};
  }
  [[gnu::always_inline]] static Avx2Vec sub(Avx2Vec a, Avx2Vec b) {
    return {_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)};
  }
  [[gnu::always_inline]] static Avx2Vec mul(Avx2Vec a, Avx2Vec b) {
    return {_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)};
  }
  [[gnu::always_inline]] static Avx2Vec div(Avx2Vec a, Avx2Vec b) {
    return {_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)};
  }
  /// a * b + c, rounded once.
  [[gnu::always_inline]] static Avx2Vec fma(Avx2Vec a, Avx2Vec b, Avx2Vec c) {
    return {_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
  }
  [[gnu::always_inline]] static Avx2Vec negate(Avx2Vec a) {
    const __m256 sign = _mm256_set1_ps(-0.0F);
    return {_mm256_xor_ps(a.lo, sign), _mm256_xor_ps(a.hi, sign)};
  }
  /// a > b ? a : b.
  [[gnu::always_inline]] static Avx2Vec max(Avx2Vec a, Avx2Vec b) {
    return {_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)};
  }
  /// a < b ? a : b.
  [[gnu::always_inline]] static Avx2Vec min(Avx2Vec a, Avx2Vec b) {
    return {_mm256_min_ps(a.lo, b.lo), _mm256_min_ps(a.hi, b.hi)};
  }
  /// To the nearest integer, ties to even.
  [[gnu::always_inline]] static Avx2Vec round(Avx2Vec a) {
    return {_mm256_round_ps(a.lo, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC),
            _mm256_round_ps(a.hi, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
  }
  /// a * 2^n for whole n in [-252, 254], by two factors so that only the last product rounds.
  [[gnu::always_inline]] static Avx2Vec scale_by_power_of_two(Avx2Vec a, Avx2Vec n) {
    return {scale_by_power_of_two(a.lo, n.lo), scale_by_power_of_two(a.hi, n.hi)};
  }

  /// Sum of the lanes, by halves.
  [[gnu::always_inline]] float fold_sum() const {
    const __m256 eight = _mm256_add_ps(lo, hi);
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
  }
  /// Greatest lane; lanes are not NaN.
  [[gnu::always_inline]] float fold_max() const {
    const __m256 eight = _mm256_max_ps(lo, hi);
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
  }

 private:
  [[gnu::always_inline]] static __m128i load_128(const std::byte* p) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  }
  [[gnu::always_inline]] static __m256i load_256(const std::byte* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  }
  [[gnu::always_inline]] static void store_128(std::byte* p, __m128i value) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), value);
  }
  [[gnu::always_inline]] static __m256 upper_half(__m256i bits) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(bits, 16));
  }
  /// Nearest bfloat16, ties to even, in the lower half of each lane; NaN is kept and made quiet.
  [[gnu::always_inline]] static __m256i to_bf16(__m256 value) {
    const __m256i bits = _mm256_castps_si256(value);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i rounded =
        _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7FFF)));
    const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
    const __m256 is_nan = _mm256_cmp_ps(value, value, _CMP_UNORD_Q);
    return _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, _mm256_castps_si256(is_nan)), 16);
  }
  [[gnu::always_inline]] static __m256 scale_by_power_of_two(__m256 a, __m256 n) {
    const __m256i exponent = _mm256_cvtps_epi32(n);
    const __m256i first = _mm256_srai_epi32(exponent, 1);
    const __m256i second = _mm256_sub_epi32(exponent, first);
    return _mm256_mul_ps(power_of_two(second), _mm256_mul_ps(power_of_two(first), a));
  }
  [[gnu::always_inline]] static __m256 power_of_two(__m256i n) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(n, _mm256_set1_epi32(127)), 23));
  }
};

}  // namespace
}  // namespace openelm::kernels
