#pragma once

#include <cstdint>

#include "kernels/neon/ints.h"

namespace openelm::kernels {
namespace {

/// Whole numbers of 16 rows in four registers, multiplied by the dot-product extension.
struct NeonDotprodInts : NeonSignedWeights, NeonRowSums {
  [[gnu::always_inline]] static Sum dot(const Sum& sum, const Weights& w, int8x16_t x) {
    return {{vdotq_s32(sum.q[0], w.q[0], x), vdotq_s32(sum.q[1], w.q[1], x),
             vdotq_s32(sum.q[2], w.q[2], x), vdotq_s32(sum.q[3], w.q[3], x)}};
  }
  template <int Bits>
  [[gnu::always_inline]] static NeonVec to_float(const Sum& sum, std::int32_t sum_of_x) {
    return {{restore<Bits>(sum.q[0], sum_of_x), restore<Bits>(sum.q[1], sum_of_x),
             restore<Bits>(sum.q[2], sum_of_x), restore<Bits>(sum.q[3], sum_of_x)}};
  }
};

}  // namespace
}  // namespace openelm::kernels
