#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/neon/vec.h"

namespace openelm::kernels {
namespace {

/// What every NEON variant of the whole-number half shares: loading and rounding.
struct NeonRounding {
  static constexpr int kValueBytes = 1;
  static constexpr int kTiles = 1;

  struct Bytes {
    uint8x16_t q[4];
  };
  [[gnu::always_inline]] static Bytes load_unsigned(const std::byte* p) {
    const auto* const from = reinterpret_cast<const std::uint8_t*>(p);
    return {{vld1q_u8(from), vld1q_u8(from + 16), vld1q_u8(from + 32), vld1q_u8(from + 48)}};
  }
  [[gnu::always_inline]] static Bytes low_nibbles(const Bytes& w) {
    const uint8x16_t mask = vdupq_n_u8(0x0F);
    return {{vandq_u8(w.q[0], mask), vandq_u8(w.q[1], mask), vandq_u8(w.q[2], mask),
             vandq_u8(w.q[3], mask)}};
  }
  [[gnu::always_inline]] static Bytes high_nibbles(const Bytes& w) {
    return {{vshrq_n_u8(w.q[0], 4), vshrq_n_u8(w.q[1], 4), vshrq_n_u8(w.q[2], 4),
             vshrq_n_u8(w.q[3], 4)}};
  }
  [[gnu::always_inline]] static int8x16_t broadcast(const std::byte* p) {
    std::int32_t four;
    __builtin_memcpy(&four, p, sizeof four);
    return vreinterpretq_s8_s32(vdupq_n_s32(four));
  }

  /// values[i] = x[i] * factor to the nearest whole number; returns their sum. n is a multiple of
  /// 16.
  static std::int32_t round(const float* x, float factor, std::int32_t n, std::byte* values) {
    int32x4_t sum = vdupq_n_s32(0);
    for (std::int32_t i = 0; i < n; i += 16) {
      int32x4_t whole[4];
      for (int j = 0; j < 4; ++j) {
        whole[j] = vcvtnq_s32_f32(vmulq_n_f32(vld1q_f32(x + i + j * 4), factor));
        sum = vaddq_s32(sum, whole[j]);
      }
      const int16x8_t low = vcombine_s16(vmovn_s32(whole[0]), vmovn_s32(whole[1]));
      const int16x8_t high = vcombine_s16(vmovn_s32(whole[2]), vmovn_s32(whole[3]));
      vst1q_s8(reinterpret_cast<std::int8_t*>(values + i),
               vcombine_s8(vmovn_s16(low), vmovn_s16(high)));
    }
    return vaddvq_s32(sum);
  }
};

/// Sums of 16 rows in four registers, a row to a lane.
struct NeonRowSums {
  struct Sum {
    int32x4_t q[4];
  };
  static constexpr int kMaxTokens = 5;

  [[gnu::always_inline]] static Sum zero() {
    const int32x4_t v = vdupq_n_s32(0);
    return {{v, v, v, v}};
  }
  [[gnu::always_inline]] static Sum add(const Sum& a, const Sum& b) {
    return {{vaddq_s32(a.q[0], b.q[0]), vaddq_s32(a.q[1], b.q[1]), vaddq_s32(a.q[2], b.q[2]),
             vaddq_s32(a.q[3], b.q[3])}};
  }
};

/// Signed bytes for instruction sets that multiply signed by signed: 8-bit quants are taken less
/// 128, and 128 times the sum of the activations is added back.
struct NeonSignedWeights : NeonRounding {
  struct Weights {
    int8x16_t q[4];
  };
  [[gnu::always_inline]] static Weights load_bytes(const std::byte* p) {
    const Bytes w = load_unsigned(p);
    const uint8x16_t sign = vdupq_n_u8(0x80);
    return as_signed({{veorq_u8(w.q[0], sign), veorq_u8(w.q[1], sign), veorq_u8(w.q[2], sign),
                       veorq_u8(w.q[3], sign)}});
  }
  [[gnu::always_inline]] static void load_nibbles(const std::byte* p, Weights& first,
                                                  Weights& second) {
    const Bytes w = load_unsigned(p);
    first = as_signed(low_nibbles(w));
    second = as_signed(high_nibbles(w));
  }

 protected:
  template <int Bits>
  [[gnu::always_inline]] static float32x4_t restore(int32x4_t sum, std::int32_t sum_of_x) {
    if constexpr (Bits == 8) sum = vaddq_s32(sum, vdupq_n_s32(sum_of_x * 128));
    return vcvtq_f32_s32(sum);
  }

 private:
  [[gnu::always_inline]] static Weights as_signed(const Bytes& w) {
    return {{vreinterpretq_s8_u8(w.q[0]), vreinterpretq_s8_u8(w.q[1]), vreinterpretq_s8_u8(w.q[2]),
             vreinterpretq_s8_u8(w.q[3])}};
  }
};

/// Whole numbers of 16 rows on any AArch64 CPU: products of 16 bits, added up in pairs. A sum's
/// register holds two rows, two lanes each.
struct NeonInts : NeonSignedWeights {
  struct Sum {
    int32x4_t q[8];
  };
  static constexpr int kMaxTokens = 2;

  [[gnu::always_inline]] static Sum zero() {
    const int32x4_t v = vdupq_n_s32(0);
    return {{v, v, v, v, v, v, v, v}};
  }
  [[gnu::always_inline]] static Sum add(const Sum& a, const Sum& b) {
    Sum sum;
    for (int i = 0; i < 8; ++i) sum.q[i] = vaddq_s32(a.q[i], b.q[i]);
    return sum;
  }
  [[gnu::always_inline]] static Sum dot(Sum sum, const Weights& w, int8x16_t x) {
    for (int i = 0; i < 4; ++i) {
      sum.q[2 * i] = vpadalq_s16(sum.q[2 * i], vmull_s8(vget_low_s8(w.q[i]), vget_low_s8(x)));
      sum.q[2 * i + 1] = vpadalq_s16(sum.q[2 * i + 1], vmull_high_s8(w.q[i], x));
    }
    return sum;
  }
  template <int Bits>
  [[gnu::always_inline]] static NeonVec to_float(const Sum& sum, std::int32_t sum_of_x) {
    NeonVec result;
    for (int i = 0; i < 4; ++i) {
      result.q[i] = restore<Bits>(vpaddq_s32(sum.q[2 * i], sum.q[2 * i + 1]), sum_of_x);
    }
    return result;
  }
};

}  // namespace
}  // namespace openelm::kernels
