#pragma once

#include <cstdint>
#include <vector>

namespace openelm {

/// The multiple of `divisor` nearest to `value` (0 or more), at least `divisor`, and one `divisor`
/// more where that lies below 0.9 * value. As corenet/utils/math_utils.py computes it.
std::int64_t make_divisible(double value, std::int64_t divisor);

/// numpy's linspace(first, last, count) in double, every value rounded to two decimals in numpy's
/// way (rint(v * 100) / 100, halves to even).
std::vector<double> spread_multipliers(double first, double last, std::size_t count);

/// Query heads of a layer: its query width is `multiplier * model_dim`, made divisible by `unit`
/// heads of `head_dim`.
std::int64_t scaled_heads(std::int64_t model_dim, double multiplier, std::int64_t head_dim,
                          std::int64_t unit);

}  // namespace openelm
