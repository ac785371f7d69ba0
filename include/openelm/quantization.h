#pragma once

#include <array>
#include <cstdint>

namespace openelm {

/// What affine groups may have.
inline constexpr std::array<std::int32_t, 2> kAffineBits = {4, 8};
inline constexpr std::array<std::int32_t, 3> kAffineGroupSizes = {32, 64, 128};

/// How plain weights are brought to affine groups (see WeightFormat).
struct QuantizeOptions {
  std::int32_t bits = 8;  ///< of the layers' matrices
  std::int32_t group_size = 64;
  std::int32_t head_bits = 8;  ///< of the embedding and the head, which suffer more from 4

  friend bool operator==(const QuantizeOptions&, const QuantizeOptions&) = default;
};

}  // namespace openelm
