#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace openelm {

/// Logits are searched by blocks of neighbours: few blocks hold a candidate, and the largest logit
/// of a block tells whether it can.
constexpr std::size_t kLogitBlock = 32;

/// maxima[b] = the largest logit of block b; the last block may be short. Throws Error when a logit
/// is NaN or +inf.
void find_block_maxima(std::span<const float> logits, std::vector<float>& maxima);

struct MassBounds {
  double low = 0;
  double high = 0;
};

/// Bounds of the sum of exp((logit - best) / temperature), where `best` is the largest logit and
/// finite, `maxima` are those of the blocks, and `temperature` > 0. Estimated in float32, in a
/// tenth of the time that the exact sum takes; hardly any choice lies within the error.
MassBounds bound_mass(std::span<const float> logits, std::span<const float> maxima, float best,
                      float temperature) noexcept;

}  // namespace openelm
