#include "checkpoint/layer_scaling.h"

#include <algorithm>
#include <cmath>

namespace openelm {
namespace {

double round_to_cents(double value) { return std::rint(value * 100.0) / 100.0; }

}  // namespace

std::int64_t make_divisible(double value, std::int64_t divisor) {
  const double half = static_cast<double>(divisor) / 2.0;
  const auto nearest = static_cast<std::int64_t>(value + half) / divisor * divisor;
  const std::int64_t width = std::max(nearest, divisor);
  return static_cast<double>(width) < 0.9 * value ? width + divisor : width;
}

std::vector<double> spread_multipliers(double first, double last, std::size_t count) {
  std::vector<double> out(count, round_to_cents(first));
  if (count < 2) return out;
  const double step = (last - first) / static_cast<double>(count - 1);
  for (std::size_t i = 0; i < count; ++i) {
    out[i] = round_to_cents(static_cast<double>(i) * step + first);
  }
  out.back() = round_to_cents(last);
  return out;
}

std::int64_t scaled_heads(std::int64_t model_dim, double multiplier, std::int64_t head_dim,
                          std::int64_t unit) {
  return make_divisible(static_cast<double>(model_dim) * multiplier, head_dim * unit) / head_dim;
}

}  // namespace openelm
