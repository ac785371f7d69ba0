#pragma once

#include <cstdint>

namespace openelm {

/// How plain weights are brought to affine groups (see WeightFormat).
struct QuantizeOptions {
  std::int32_t bits = 8;         ///< of the layers' matrices: 4 or 8
  std::int32_t group_size = 64;  ///< 32, 64 or 128
  std::int32_t head_bits = 8;    ///< of the embedding and the head, which suffer more from 4

  friend bool operator==(const QuantizeOptions&, const QuantizeOptions&) = default;
};

}  // namespace openelm
