#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>

#include "kernels/ref/ref.h"

namespace openelm::kernels::ref {

std::int32_t QuantiseScale::round(float x) const {
  return factor == 0.0F ? 0 : static_cast<std::int32_t>(std::nearbyint(x * factor));
}

QuantiseScale quantise_scale(const float* x, std::int32_t n) {
  float largest = 0.0F;
  for (std::int32_t i = 0; i < n; ++i) {
    if (!std::isfinite(x[i])) return {std::numeric_limits<float>::quiet_NaN(), 0.0F};
    largest = std::fmax(largest, std::fabs(x[i]));
  }
  if (largest < kQuantiseLeast) return {0.0F, 0.0F};
  return {largest / 127.0F, 127.0F / largest};
}

void quantise(const float* x, std::int32_t k, std::int32_t group_size, std::int32_t block,
              std::byte* xq) {
  for (std::int32_t first = 0; first < k; first += group_size) {
    std::byte* const first_block = xq;
    float total = 0.0F;
    for (std::int32_t in_group = 0; in_group < group_size; in_group += block) {
      const QuantiseScale scale = quantise_scale(x, block);
      QuantisedBlock header{.scale = scale.scale, .total = 0.0F, .sum = 0, .unused = 0};
      std::byte* const values = xq + sizeof header;
      for (std::int32_t i = 0; i < block; ++i) {
        const std::int32_t whole = scale.round(x[i]);
        values[i] = static_cast<std::byte>(whole);
        header.sum += whole;
      }
      total = std::fma(header.scale, static_cast<float>(header.sum), total);
      std::memcpy(xq, &header, sizeof header);
      x += block;
      xq = values + block;
    }
    std::memcpy(first_block + offsetof(QuantisedBlock, total), &total, sizeof total);
  }
}

}  // namespace openelm::kernels::ref
