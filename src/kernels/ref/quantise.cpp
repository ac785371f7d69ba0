#include <cmath>
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

void quantise(const float* x, std::int32_t k, std::int32_t group_size, std::byte* xq) {
  for (std::int32_t first = 0; first < k; first += group_size, x += group_size) {
    const QuantiseScale scale = quantise_scale(x, group_size);
    QuantisedGroup group{.scale = scale.scale, .total = 0.0F, .sum = 0, .unused = 0};
    std::byte* const values = xq + sizeof group;
    for (std::int32_t i = 0; i < group_size; ++i) {
      const std::int32_t whole = scale.round(x[i]);
      values[i] = static_cast<std::byte>(whole);
      group.sum += whole;
    }
    group.total = group.scale * static_cast<float>(group.sum);
    std::memcpy(xq, &group, sizeof group);
    xq = values + group_size;
  }
}

}  // namespace openelm::kernels::ref
