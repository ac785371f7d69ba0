#pragma once

#include <cstring>
#include <span>
#include <vector>

namespace openelm::test {

/// Equal to the last bit: NaNs and signed zeros count as what they are.
inline bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

}  // namespace openelm::test
