#pragma once

#include <cstddef>
#include <cstdint>

#include "base/aligned_buffer.h"

namespace openelm {

/// cos and sin of every position's angles: angle(p, j) = p / base^(2j / head_dim), formed in double
/// and rounded once, which is closer to the exact value than float32 angles.
class RopeTable {
 public:
  RopeTable(std::int32_t head_dim, double base, std::int32_t n_positions);

  std::int32_t half() const noexcept { return half_; }
  const float* cos(std::int32_t position) const noexcept {
    return table_.data() + 2 * static_cast<std::size_t>(position) * static_cast<std::size_t>(half_);
  }
  const float* sin(std::int32_t position) const noexcept { return cos(position) + half_; }

 private:
  std::int32_t half_;
  AlignedArray<float> table_;  // [n_positions][2][half]: cos, then sin
};

}  // namespace openelm
