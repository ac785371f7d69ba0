#pragma once

#include <algorithm>
#include <cstdint>

namespace openelm {

/// A half-open range of work items.
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t size() const noexcept { return end - begin; }
  bool empty() const noexcept { return begin >= end; }
};

/// Part `index` of `n_items` cut into `n_parts` contiguous parts whose sizes differ by at most one.
/// Static, so that the same worker always owns the same weights.
constexpr Range partition(std::int64_t n_items, int index, int n_parts) noexcept {
  const std::int64_t base = n_items / n_parts;
  const std::int64_t extra = n_items % n_parts;
  const std::int64_t begin = index * base + std::min<std::int64_t>(index, extra);
  return {begin, begin + base + (index < extra ? 1 : 0)};
}

}  // namespace openelm
