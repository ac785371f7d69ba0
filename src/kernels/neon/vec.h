#pragma once

#include <cstddef>
#include <cstdint>

#include <arm_neon.h>

namespace openelm::kernels {
namespace {

/// 16 float lanes in four NEON registers.
struct NeonVec {
  /// Tokens that one, two and four tiles at once leave registers for.
  static constexpr int kMaxTokens[] = {5, 2, 1};

  float32x4_t q[4];

  [[gnu::always_inline]] static NeonVec splat(float x) {
    const float32x4_t v = vdupq_n_f32(x);
    return {{v, v, v, v}};
  }
  [[gnu::always_inline]] static NeonVec load(const float* p) {
    return {{vld1q_f32(p), vld1q_f32(p + 4), vld1q_f32(p + 8), vld1q_f32(p + 12)}};
  }
  [[gnu::always_inline]] void store(float* p) const {
    vst1q_f32(p, q[0]);
    vst1q_f32(p + 4, q[1]);
    vst1q_f32(p + 8, q[2]);
    vst1q_f32(p + 12, q[3]);
  }
  [[gnu::always_inline]] void store_first(float* p) const { vst1q_lane_f32(p, q[0], 0); }

  // Stored numbers, widened; each conversion is exact.
  [[gnu::always_inline]] static NeonVec load_f16(const std::byte* p) {
    const uint16x8_t a = load_u16(p);
    const uint16x8_t b = load_u16(p + 16);
    return {{widen_f16(vget_low_u16(a)), widen_f16(vget_high_u16(a)), widen_f16(vget_low_u16(b)),
             widen_f16(vget_high_u16(b))}};
  }
  [[gnu::always_inline]] static NeonVec load_i8(const std::byte* p) {
    const int8x16_t bytes = vld1q_s8(reinterpret_cast<const std::int8_t*>(p));
    const int16x8_t low = vmovl_s8(vget_low_s8(bytes));
    const int16x8_t high = vmovl_high_s8(bytes);
    return {{vcvtq_f32_s32(vmovl_s16(vget_low_s16(low))), vcvtq_f32_s32(vmovl_high_s16(low)),
             vcvtq_f32_s32(vmovl_s16(vget_low_s16(high))), vcvtq_f32_s32(vmovl_high_s16(high))}};
  }
  [[gnu::always_inline]] static NeonVec load_bf16(const std::byte* p) {
    const uint16x8_t a = load_u16(p);
    const uint16x8_t b = load_u16(p + 16);
    return {{widen_bf16(vget_low_u16(a)), widen_bf16(vget_high_u16(a)), widen_bf16(vget_low_u16(b)),
             widen_bf16(vget_high_u16(b))}};
  }
  [[gnu::always_inline]] static NeonVec load_bf16_even(const std::byte* p) {
    return {{even(p), even(p + 16), even(p + 32), even(p + 48)}};
  }
  [[gnu::always_inline]] static NeonVec load_bf16_odd(const std::byte* p) {
    return {{odd(p), odd(p + 16), odd(p + 32), odd(p + 48)}};
  }
  [[gnu::always_inline]] void store_f16(std::byte* p) const {
    store_u16(p, vcombine_u16(narrow_f16(q[0]), narrow_f16(q[1])));
    store_u16(p + 16, vcombine_u16(narrow_f16(q[2]), narrow_f16(q[3])));
  }
  [[gnu::always_inline]] void store_bf16(std::byte* p) const {
    store_u16(p, vcombine_u16(narrow_bf16(q[0]), narrow_bf16(q[1])));
    store_u16(p + 16, vcombine_u16(narrow_bf16(q[2]), narrow_bf16(q[3])));
  }

  [[gnu::always_inline]] static NeonVec add(NeonVec a, NeonVec b) {
    return {{vaddq_f32(a.q[0], b.q[0]), vaddq_f32(a.q[1], b.q[1]), vaddq_f32(a.q[2], b.q[2]),
             vaddq_f32(a.q[3], b.q[3])}};
  }
  [[gnu::always_inline]] static NeonVec sub(NeonVec a, NeonVec b) {
    return {{vsubq_f32(a.q[0], b.q[0]), vsubq_f32(a.q[1], b.q[1]), vsubq_f32(a.q[2], b.q[2]),
             vsubq_f32(a.q[3], b.q[3])}};
  }
  [[gnu::always_inline]] static NeonVec mul(NeonVec a, NeonVec b) {
    return {{vmulq_f32(a.q[0], b.q[0]), vmulq_f32(a.q[1], b.q[1]), vmulq_f32(a.q[2], b.q[2]),
             vmulq_f32(a.q[3], b.q[3])}};
  }
  [[gnu::always_inline]] static NeonVec div(NeonVec a, NeonVec b) {
    return {{vdivq_f32(a.q[0], b.q[0]), vdivq_f32(a.q[1], b.q[1]), vdivq_f32(a.q[2], b.q[2]),
             vdivq_f32(a.q[3], b.q[3])}};
  }
  /// a * b + c, rounded once.
  [[gnu::always_inline]] static NeonVec fma(NeonVec a, NeonVec b, NeonVec c) {
    return {{vfmaq_f32(c.q[0], a.q[0], b.q[0]), vfmaq_f32(c.q[1], a.q[1], b.q[1]),
             vfmaq_f32(c.q[2], a.q[2], b.q[2]), vfmaq_f32(c.q[3], a.q[3], b.q[3])}};
  }
  [[gnu::always_inline]] static NeonVec negate(NeonVec a) {
    return {{vnegq_f32(a.q[0]), vnegq_f32(a.q[1]), vnegq_f32(a.q[2]), vnegq_f32(a.q[3])}};
  }
  /// a > b ? a : b; the instruction of that name would return any NaN.
  [[gnu::always_inline]] static NeonVec max(NeonVec a, NeonVec b) {
    return {{max(a.q[0], b.q[0]), max(a.q[1], b.q[1]), max(a.q[2], b.q[2]), max(a.q[3], b.q[3])}};
  }
  /// a < b ? a : b.
  [[gnu::always_inline]] static NeonVec min(NeonVec a, NeonVec b) {
    return {{min(a.q[0], b.q[0]), min(a.q[1], b.q[1]), min(a.q[2], b.q[2]), min(a.q[3], b.q[3])}};
  }
  /// To the nearest integer, ties to even.
  [[gnu::always_inline]] static NeonVec round(NeonVec a) {
    return {{vrndnq_f32(a.q[0]), vrndnq_f32(a.q[1]), vrndnq_f32(a.q[2]), vrndnq_f32(a.q[3])}};
  }
  /// a * 2^n for whole n in [-252, 254], by two factors so that only the last product rounds.
  [[gnu::always_inline]] static NeonVec scale_by_power_of_two(NeonVec a, NeonVec n) {
    return {{scale_by_power_of_two(a.q[0], n.q[0]), scale_by_power_of_two(a.q[1], n.q[1]),
             scale_by_power_of_two(a.q[2], n.q[2]), scale_by_power_of_two(a.q[3], n.q[3])}};
  }

  /// Sum of the lanes, by halves.
  [[gnu::always_inline]] float fold_sum() const {
    const float32x4_t four = vaddq_f32(vaddq_f32(q[0], q[2]), vaddq_f32(q[1], q[3]));
    const float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
    return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
  }
  /// Greatest lane; lanes are not NaN.
  [[gnu::always_inline]] float fold_max() const {
    return vmaxvq_f32(max(max(q[0], q[2]), max(q[1], q[3])));
  }

 private:
  [[gnu::always_inline]] static uint16x8_t load_u16(const std::byte* p) {
    return vreinterpretq_u16_u8(vld1q_u8(reinterpret_cast<const std::uint8_t*>(p)));
  }
  [[gnu::always_inline]] static uint32x4_t load_u32(const std::byte* p) {
    return vreinterpretq_u32_u8(vld1q_u8(reinterpret_cast<const std::uint8_t*>(p)));
  }
  [[gnu::always_inline]] static void store_u16(std::byte* p, uint16x8_t value) {
    vst1q_u8(reinterpret_cast<std::uint8_t*>(p), vreinterpretq_u8_u16(value));
  }
  [[gnu::always_inline]] static float32x4_t widen_f16(uint16x4_t bits) {
    return vcvt_f32_f16(vreinterpret_f16_u16(bits));
  }
  [[gnu::always_inline]] static float32x4_t widen_bf16(uint16x4_t bits) {
    return vreinterpretq_f32_u32(vshll_n_u16(bits, 16));
  }
  [[gnu::always_inline]] static float32x4_t even(const std::byte* p) {
    return vreinterpretq_f32_u32(vshlq_n_u32(load_u32(p), 16));
  }
  [[gnu::always_inline]] static float32x4_t odd(const std::byte* p) {
    return vreinterpretq_f32_u32(vandq_u32(load_u32(p), vdupq_n_u32(0xFFFF0000U)));
  }
  [[gnu::always_inline]] static uint16x4_t narrow_f16(float32x4_t value) {
    return vreinterpret_u16_f16(vcvt_f16_f32(value));
  }
  /// Nearest bfloat16, ties to even; NaN is kept and made quiet.
  [[gnu::always_inline]] static uint16x4_t narrow_bf16(float32x4_t value) {
    const uint32x4_t bits = vreinterpretq_u32_f32(value);
    const uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
    const uint32x4_t rounded = vaddq_u32(bits, vaddq_u32(odd, vdupq_n_u32(0x7FFF)));
    const uint32x4_t quiet = vorrq_u32(bits, vdupq_n_u32(0x400000));
    const uint32x4_t is_number = vceqq_f32(value, value);
    return vshrn_n_u32(vbslq_u32(is_number, rounded, quiet), 16);
  }
  [[gnu::always_inline]] static float32x4_t max(float32x4_t a, float32x4_t b) {
    return vbslq_f32(vcgtq_f32(a, b), a, b);
  }
  [[gnu::always_inline]] static float32x4_t min(float32x4_t a, float32x4_t b) {
    return vbslq_f32(vcltq_f32(a, b), a, b);
  }
  [[gnu::always_inline]] static float32x4_t scale_by_power_of_two(float32x4_t a, float32x4_t n) {
    const int32x4_t exponent = vcvtq_s32_f32(n);
    const int32x4_t first = vshrq_n_s32(exponent, 1);
    const int32x4_t second = vsubq_s32(exponent, first);
    return vmulq_f32(power_of_two(second), vmulq_f32(power_of_two(first), a));
  }
  [[gnu::always_inline]] static float32x4_t power_of_two(int32x4_t n) {
    return vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(n, vdupq_n_s32(127)), 23));
  }
};

}  // namespace
}  // namespace openelm::kernels
