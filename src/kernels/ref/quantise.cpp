#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/ref/ref.h"

namespace openelm::kernels::ref {

void quantise(const float* x, std::int32_t k, std::int32_t group_size, std::byte* xq) {
  for (std::int32_t first = 0; first < k; first += group_size, x += group_size) {
    float largest = 0.0F;
    bool finite = true;
    for (std::int32_t i = 0; i < group_size; ++i) {
      largest = std::fmax(largest, std::fabs(x[i]));
      finite = finite && std::isfinite(x[i]);
    }
    const bool zero = !finite || largest < kQuantiseLeast;
    const float factor = zero ? 0.0F : 127.0F / largest;
    QuantisedGroup group{
        .scale = zero ? 0.0F : largest / 127.0F, .total = 0, .sum = 0, .unused = 0};
    if (!finite) group.scale = std::numeric_limits<float>::quiet_NaN();
    std::byte* const values = xq + sizeof group;
    for (std::int32_t i = 0; i < group_size; ++i) {
      const float scaled = zero ? 0.0F : x[i] * factor;
      const auto whole = static_cast<std::int32_t>(std::nearbyint(scaled));
      values[i] = static_cast<std::byte>(whole);
      group.sum += whole;
    }
    group.total = group.scale * static_cast<float>(group.sum);
    std::memcpy(xq, &group, sizeof group);
    xq = values + group_size;
  }
}

}  // namespace openelm::kernels::ref
