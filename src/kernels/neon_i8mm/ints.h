#pragma once

#include <cstdint>

#include "kernels/neon/ints.h"

namespace openelm::kernels {
namespace {

/// Whole numbers of 16 rows in four registers, multiplied by the mixed-sign dot product that comes
/// with the matrix-multiply extension: quants stay unsigned.
struct NeonI8mmInts : NeonRounding, NeonRowSums {
  using Weights = Bytes;

  [[gnu::always_inline]] static Weights load_bytes(const std::byte* p) { return load_unsigned(p); }
  [[gnu::always_inline]] static void load_nibbles(const std::byte* p, Weights& first,
                                                  Weights& second) {
    const Bytes w = load_unsigned(p);
    first = low_nibbles(w);
    second = high_nibbles(w);
  }
  [[gnu::always_inline]] static Sum dot(const Sum& sum, const Weights& w, int8x16_t x) {
    return {{vusdotq_s32(sum.q[0], w.q[0], x), vusdotq_s32(sum.q[1], w.q[1], x),
             vusdotq_s32(sum.q[2], w.q[2], x), vusdotq_s32(sum.q[3], w.q[3], x)}};
  }
  template <int Bits>
  [[gnu::always_inline]] static NeonVec to_float(const Sum& sum, std::int32_t) {
    return {{vcvtq_f32_s32(sum.q[0]), vcvtq_f32_s32(sum.q[1]), vcvtq_f32_s32(sum.q[2]),
             vcvtq_f32_s32(sum.q[3])}};
  }
};

}  // namespace
}  // namespace openelm::kernels
