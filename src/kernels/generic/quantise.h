#pragma once

#include "kernels/kernels.h"

namespace openelm::kernels {
namespace {

/// Magnitudes are compared as whole numbers: the order is the same, and infinities and NaN, whose
/// exponent is the greatest, come out on top.
template <class V, class Ints>
void quantise(const float* x, std::int32_t k, std::int32_t group_size, std::byte* xq) {
  constexpr std::uint32_t kInfinity = 0x7F800000U;
  for (std::int32_t first = 0; first < k; first += group_size, x += group_size) {
    const std::uint32_t bits = Ints::largest_magnitude(x, group_size);
    const float largest = __builtin_bit_cast(float, bits);
    const bool zero = bits >= kInfinity || largest < kQuantiseLeast;
    QuantisedGroup group{};
    if (!zero) group.scale = largest / 127.0F;
    if (bits >= kInfinity) group.scale = __builtin_nanf("");
    std::byte* const values = xq + sizeof group;
    if (zero) {
      __builtin_memset(values, 0, static_cast<std::size_t>(group_size * Ints::kValueBytes));
    } else {
      group.sum = Ints::round(x, 127.0F / largest, group_size, values);
    }
    group.total = group.scale * static_cast<float>(group.sum);
    __builtin_memcpy(xq, &group, sizeof group);
    xq = values + group_size * Ints::kValueBytes;
  }
}

}  // namespace
}  // namespace openelm::kernels
