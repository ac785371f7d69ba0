#pragma once

#include_next <immintrin.h>

/// Stands in for the compiler's header while the AVX-512 kernels are compiled for their emulation:
/// SIMDe gives most AVX-512 intrinsics in terms of AVX2, which the test's CPU has, and the
/// functions below give the others by halves.
#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx512.h>

namespace emulation {
namespace {

struct Halves {
  __m256i low, high;
};

inline Halves split(simde__m512i value) {
  return {simde_mm512_extracti64x4_epi64(value, 0), simde_mm512_extracti64x4_epi64(value, 1)};
}
inline Halves split(simde__m512 value) { return split(simde_mm512_castps_si512(value)); }
inline simde__m512i join(__m256i low, __m256i high) {
  return simde_mm512_inserti32x8(simde_mm512_castsi256_si512(low), high, 1);
}

inline simde__m512 cvtph_ps(__m256i half) {
  const __m256 low = _mm256_cvtph_ps(_mm256_castsi256_si128(half));
  const __m256 high = _mm256_cvtph_ps(_mm256_extracti128_si256(half, 1));
  return simde_mm512_castsi512_ps(join(_mm256_castps_si256(low), _mm256_castps_si256(high)));
}
inline __m256i cvtps_ph(simde__m512 value) {
  const auto [low, high] = split(value);
  return _mm256_set_m128i(_mm256_cvtps_ph(_mm256_castsi256_ps(high), _MM_FROUND_TO_NEAREST_INT),
                          _mm256_cvtps_ph(_mm256_castsi256_ps(low), _MM_FROUND_TO_NEAREST_INT));
}
inline simde__m512i cvtepu16_epi32(__m256i value) {
  return join(_mm256_cvtepu16_epi32(_mm256_castsi256_si128(value)),
              _mm256_cvtepu16_epi32(_mm256_extracti128_si256(value, 1)));
}
inline simde__m512i cvtepi8_epi32(__m128i value) {
  return join(_mm256_cvtepi8_epi32(value), _mm256_cvtepi8_epi32(_mm_srli_si128(value, 8)));
}
inline __m256i cvtepi32_epi16(simde__m512i value) {
  unsigned wide[16];
  unsigned short narrow[16];
  simde_mm512_storeu_si512(wide, value);
  for (int i = 0; i < 16; ++i) narrow[i] = static_cast<unsigned short>(wide[i]);
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(narrow));
}
inline __m128i cvtepi32_epi8(simde__m512i value) {
  unsigned wide[16];
  unsigned char narrow[16];
  simde_mm512_storeu_si512(wide, value);
  for (int i = 0; i < 16; ++i) narrow[i] = static_cast<unsigned char>(wide[i]);
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(narrow));
}
/// Four products of an unsigned and a signed byte added to each lane. Products are formed of the
/// even and odd bytes apart, in 16 bits: the instruction for both at once would saturate.
inline __m256i dpbusd(__m256i sum, __m256i u, __m256i s) {
  const __m256i mask = _mm256_set1_epi16(0x00FF);
  const __m256i even =
      _mm256_madd_epi16(_mm256_and_si256(u, mask), _mm256_srai_epi16(_mm256_slli_epi16(s, 8), 8));
  const __m256i odd = _mm256_madd_epi16(_mm256_srli_epi16(u, 8), _mm256_srai_epi16(s, 8));
  return _mm256_add_epi32(sum, _mm256_add_epi32(even, odd));
}
inline simde__m512i dpbusd_epi32(simde__m512i sum, simde__m512i u, simde__m512i s) {
  return join(dpbusd(split(sum).low, split(u).low, split(s).low),
              dpbusd(split(sum).high, split(u).high, split(s).high));
}
inline simde__m512i cvtps_epi32(simde__m512 value) {
  const auto [low, high] = split(value);
  return join(_mm256_cvtps_epi32(_mm256_castsi256_ps(low)),
              _mm256_cvtps_epi32(_mm256_castsi256_ps(high)));
}
inline simde__m512 cvtepi32_ps(simde__m512i value) {
  const auto [low, high] = split(value);
  return simde_mm512_castsi512_ps(join(_mm256_castps_si256(_mm256_cvtepi32_ps(low)),
                                       _mm256_castps_si256(_mm256_cvtepi32_ps(high))));
}
inline simde__m512i srai_epi32(simde__m512i value, int count) {
  const auto [low, high] = split(value);
  return join(_mm256_srai_epi32(low, count), _mm256_srai_epi32(high, count));
}
inline __m256 extractf32x8_ps(simde__m512 value, int index) {
  return _mm256_castsi256_ps(index == 0 ? split(value).low : split(value).high);
}

}  // namespace
}  // namespace emulation

// Clang's header has some of these as macros.
#undef _mm512_cvtph_ps
#undef _mm512_cvtps_ph
#undef _mm512_cvtepu16_epi32
#undef _mm512_cvtepi8_epi32
#undef _mm512_cvtepi32_epi16
#undef _mm512_cvtepi32_epi8
#undef _mm512_dpbusd_epi32
#undef _mm512_cvtps_epi32
#undef _mm512_cvtepi32_ps
#undef _mm512_srai_epi32
#undef _mm512_extractf32x8_ps

#define _mm512_cvtph_ps(half) emulation::cvtph_ps(half)
#define _mm512_cvtps_ph(value, rounding) emulation::cvtps_ph(value)
#define _mm512_cvtepu16_epi32(value) emulation::cvtepu16_epi32(value)
#define _mm512_cvtepi8_epi32(value) emulation::cvtepi8_epi32(value)
#define _mm512_cvtepi32_epi16(value) emulation::cvtepi32_epi16(value)
#define _mm512_cvtepi32_epi8(value) emulation::cvtepi32_epi8(value)
#define _mm512_dpbusd_epi32(sum, u, s) emulation::dpbusd_epi32(sum, u, s)
#define _mm512_cvtps_epi32(value) emulation::cvtps_epi32(value)
#define _mm512_cvtepi32_ps(value) emulation::cvtepi32_ps(value)
#define _mm512_srai_epi32(value, count) emulation::srai_epi32(value, count)
#define _mm512_extractf32x8_ps(value, index) emulation::extractf32x8_ps(value, index)
