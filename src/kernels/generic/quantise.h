#pragma once

#include <cstddef>

#include "kernels/kernels.h"

namespace openelm::kernels {
namespace {

/// One block; returns the group's total so far, its share included. Magnitudes are compared as
/// whole numbers: the order is the same, and infinities and NaN, whose exponent is the greatest,
/// come out on top.
template <class V, class Ints>
[[gnu::always_inline]] inline float quantise_block(const float* x, std::int32_t block, float total,
                                                   std::byte* xq) {
  constexpr std::uint32_t kInfinity = 0x7F800000U;
  const std::uint32_t bits = Ints::largest_magnitude(x, block);
  const float largest = __builtin_bit_cast(float, bits);
  QuantisedBlock header{};
  std::byte* const values = xq + sizeof header;
  if (bits >= kInfinity || largest < kQuantiseLeast) {
    if (bits >= kInfinity) header.scale = __builtin_nanf("");
    __builtin_memset(values, 0, static_cast<std::size_t>(block * Ints::kValueBytes));
  } else {
    header.scale = largest / 127.0F;
    header.sum = Ints::round(x, 127.0F / largest, block, values);
  }
  __builtin_memcpy(xq, &header, sizeof header);
  return __builtin_fmaf(header.scale, static_cast<float>(header.sum), total);
}

template <class V, class Ints>
void quantise(const float* x, std::int32_t k, std::int32_t group_size, std::int32_t block,
              std::byte* xq) {
  const auto block_bytes =
      static_cast<std::ptrdiff_t>(sizeof(QuantisedBlock)) + block * Ints::kValueBytes;
  for (std::int32_t first = 0; first < k; first += group_size) {
    std::byte* const first_block = xq;
    float total = 0.0F;
    for (std::int32_t i = 0; i < group_size; i += block, xq += block_bytes) {
      total = quantise_block<V, Ints>(x + first + i, block, total, xq);
    }
    __builtin_memcpy(first_block + offsetof(QuantisedBlock, total), &total, sizeof total);
  }
}

}  // namespace
}  // namespace openelm::kernels
