#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include <openelm/config.h>

namespace openelm {

/// How many tokens two lists begin with in common.
inline std::size_t prefix_length(std::span<const TokenId> a, std::span<const TokenId> b) {
  return static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first -
                                  a.begin());
}

}  // namespace openelm
